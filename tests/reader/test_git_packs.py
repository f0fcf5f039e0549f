"""Packs, their indexes and deltas: what git writes, what it could write, and what only a liar would."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader import git_packs
from reader.git_files import FilePool, StableFile
from reader.git_objects import SHA1, SHA256, LimitExceeded, Malformed, ObjectFormat
from reader.git_packs import (
    Location,
    Pack,
    PackedObjects,
    PackIndex,
    UnsupportedVersion,
    Windows,
    apply_delta,
    delta_sizes,
    inflate,
)

LIMIT = 1 << 24


def tick() -> None:
    """Time is never up here."""


# --- making packs -------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def entry_header(kind: int, size: int) -> bytes:
    first, size = kind << 4 | size & 15, size >> 4
    return bytes([first | 0x80]) + varint(size) if size else bytes([first])


def distance(value: int) -> bytes:
    out = [value & 0x7F]
    while value := value >> 7:
        value -= 1
        out.insert(0, 0x80 | value & 0x7F)
    return bytes(out)


def copy(offset: int, size: int) -> bytes:
    """A copy instruction with as few bytes as possible."""
    code, rest = 0x80, b""
    for bit, byte in enumerate((*offset.to_bytes(4, "little"), *(size & 0xFFFFFF).to_bytes(3, "little"))):
        if byte and not (bit >= 4 and size == 65536):
            code |= 1 << bit
            rest += bytes([byte])
    return bytes([code]) + rest


def delta(base: int, result: int, *instructions: bytes) -> bytes:
    return varint(base) + varint(result) + b"".join(instructions)


class Builder:
    """A pack under construction; ``add`` returns the offset of the entry."""

    def __init__(self, object_format: ObjectFormat = SHA1) -> None:
        self.format = object_format
        self.data = bytearray()
        self.offsets: dict[bytes, int] = {}

    def entry(self, name: bytes, kind: int, body: bytes, base: bytes = b"", size: int | None = None) -> int:
        offset = 12 + len(self.data)
        self.offsets[name] = offset
        self.data += entry_header(kind, len(body) if size is None else size) + base + zlib.compress(body)
        return offset

    def blob(self, content: bytes) -> tuple[bytes, int]:
        name = self.format.name_of(b"blob", content)
        return name, self.entry(name, 3, content)

    def next_offset(self) -> int:
        return 12 + len(self.data)

    def pack(self, version: int = 2) -> bytes:
        whole = b"PACK" + struct.pack(">II", version, len(self.offsets)) + self.data
        return bytes(whole + self.format.new(whole).digest())

    def fan_out(self) -> bytes:
        firsts = [name[0] for name in self.offsets]
        return b"".join(struct.pack(">I", sum(f <= n for f in firsts)) for n in range(256))

    def index(self, version: int = 2, large: frozenset[bytes] = frozenset()) -> bytes:
        pairs = sorted(self.offsets.items())
        if version == 1:
            out = self.fan_out() + b"".join(struct.pack(">I", offset) + name for name, offset in pairs)
        else:
            out = b"\xfftOc" + struct.pack(">I", version) + self.fan_out()
            out += b"".join(name for name, _ in pairs) + bytes(4 * len(pairs))
            wide = [offset for name, offset in pairs if name in large]
            ranks = iter(range(len(wide)))
            for name, offset in pairs:
                out += struct.pack(">I", 0x80000000 | next(ranks) if name in large else offset)
            out += b"".join(struct.pack(">Q", offset) for offset in wide)
        out += self.pack()[-self.format.size :]
        return bytes(out + self.format.new(out).digest())


class Shelf:
    """A directory of packs as the reader sees them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pool = FilePool()
        self.descriptor = os.open(folder, os.O_RDONLY)
        self.windows = Windows()
        self.count = 0

    def file(self, data: bytes) -> StableFile:
        self.count += 1
        name = b"%d" % self.count
        (self.folder / os.fsdecode(name)).write_bytes(data)
        return StableFile(self.pool, self.descriptor, name, os.stat(name, dir_fd=self.descriptor))

    def index(self, data: bytes, object_format: ObjectFormat = SHA1) -> PackIndex:
        return PackIndex(self.file(data), object_format)

    def pack(self, data: bytes, index: bytes, object_format: ObjectFormat = SHA1) -> Pack:
        return Pack(
            self.count, self.file(data), self.index(index, object_format), object_format, self.windows
        )

    def built(self, builder: Builder) -> Pack:
        return self.pack(builder.pack(), builder.index(), builder.format)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path)
    yield made
    made.pool.close()
    os.close(made.descriptor)


def read(packs: Sequence[Pack], name: bytes, limit: int = LIMIT) -> tuple[bytes, bytes]:
    """Read an object in both ways, which must agree: at once, and after its size was asked for."""
    fresh = PackedObjects(packs, tick)
    location = fresh.locate(name)
    assert location is not None
    at_once = fresh.read(location, limit)
    asked = PackedObjects(packs, tick)
    assert asked.info(location) == (at_once[0], len(at_once[1]))
    assert asked.read(location, limit) == at_once
    assert asked.read(location, limit) == at_once
    for pack in packs:
        pack.kinds.clear()
        pack.bases.clear()
        pack.deltas.clear()
    return at_once


# --- deltas -------------------------------------------------------------------------------------------------


@given(st.data())
def test_deltas_make_what_they_say(data: st.DataObject) -> None:
    base = data.draw(st.binary(max_size=400)) * data.draw(st.integers(1, 400))
    result, instructions = b"", b""
    for _ in range(data.draw(st.integers(0, 12))):
        if base and data.draw(st.booleans()):
            offset = data.draw(st.integers(0, len(base) - 1))
            size = data.draw(st.integers(1, len(base) - offset))
            instructions += copy(offset, size)
            result += base[offset : offset + size]
        else:
            new = data.draw(st.binary(min_size=1, max_size=127))
            instructions += bytes([len(new)]) + new
            result += new
    made = delta(len(base), len(result), instructions)
    assert apply_delta(base, made, len(result), tick) == result
    with pytest.raises(Malformed):
        apply_delta(base + b"x", made, LIMIT, tick)
    with pytest.raises(Malformed):
        apply_delta(base, delta(len(base), len(result) + 1, instructions), LIMIT, tick)
    if result:
        with pytest.raises(Malformed):
            apply_delta(base, delta(len(base), len(result) - 1, instructions), LIMIT, tick)
        with pytest.raises(LimitExceeded):
            apply_delta(base, made, len(result) - 1, tick)


@given(st.binary(max_size=300), st.binary(max_size=60))
def test_any_bytes_as_a_delta(base: bytes, data: bytes) -> None:
    for made in (data, varint(len(base)) + data):
        try:
            result = apply_delta(base, made, LIMIT, tick)
        except (Malformed, LimitExceeded):
            continue
        assert len(result) == delta_sizes(made)[1]


BASE = bytes(range(256)) * 300


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        (b"\0", "reserved"),
        (b"\x05abcd", "within new bytes"),
        (b"\x93\0\0", "within an instruction"),
        (b"\x91\0", "within an instruction"),
        (b"\xff\0\0\0", "within an instruction"),
        (copy(len(BASE) - 1, 2), "behind the end"),
        (copy(len(BASE), 1), "behind the end"),
        (copy(0xFFFFFFFF, 65536), "behind the end"),
        (copy(0, 65536) * 3, "makes more"),
        (b"\x90\x05" * 50_000, "makes more"),
        (b"\x01a" * 9, "fewer"),
    ],
)
def test_malformed_deltas(instructions: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        apply_delta(BASE, delta(len(BASE), 66000, instructions), LIMIT, tick)


def test_copy_of_64_kibibytes_has_no_length() -> None:
    assert apply_delta(BASE, delta(len(BASE), 65536, b"\x80"), LIMIT, tick) == BASE[:65536]
    assert apply_delta(BASE, delta(len(BASE), 65536, b"\x91\x02\0"), LIMIT, tick) == BASE[2:65538]
    assert apply_delta(BASE, delta(len(BASE), 65536, b"\x93\x02\x01\0"), LIMIT, tick) == BASE[258:65794]


def test_delta_of_many_steps_and_a_deadline_within() -> None:
    made = delta(len(BASE), 400_000, b"\x01z" * 400_000)
    assert apply_delta(BASE, made, LIMIT, tick) == b"z" * 400_000
    calls = []

    def impatient() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        apply_delta(BASE, made, LIMIT, impatient)


def test_delta_that_makes_gigabytes_is_refused_at_once() -> None:
    body = delta(len(BASE), 100, b"\xff\0\0\0\0\0\0\1" * 10_000)
    with pytest.raises(Malformed, match="more"):
        apply_delta(BASE, body, LIMIT, tick)


# --- streams ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_stream_in_pieces(piece: int) -> None:
    content = os.urandom(3000) + bytes(100_000)
    stream = zlib.compress(content) + b"following"
    chunks = [stream[at : at + piece] for at in range(0, len(stream), piece)]
    assert inflate(iter(chunks), len(content), tick) == content
    for size in (len(content) - 1, len(content) + 1, 0):
        with pytest.raises(Malformed):
            inflate(iter(chunks), size, tick)
    with pytest.raises(Malformed):
        inflate(iter([stream[:-15]]), len(content), tick)


def test_stream_that_never_ends_makes_no_more_than_asked() -> None:
    bomb = zlib.compress(bytes(50 << 20), 9)
    with pytest.raises(Malformed, match="more"):
        inflate(iter([bomb]), 100, tick)


# --- indexes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("object_format", [SHA1, SHA256], ids=lambda f: f.name)
@pytest.mark.parametrize("version", [1, 2])
def test_index_versions(shelf: Shelf, object_format: ObjectFormat, version: int) -> None:
    builder = Builder(object_format)
    names = [builder.blob(b"%d" % number)[0] for number in range(700)]
    index = shelf.index(builder.index(version), object_format)
    assert (index.version, index.count) == (version, 700)
    assert {name: index.find(name) for name in names} == builder.offsets
    assert index.find(object_format.name_of(b"blob", b"absent")) is None
    index.verify(tick)


@pytest.mark.parametrize("version", [1, 2])
def test_index_too_large_for_memory(shelf: Shelf, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_packs, "_MAX_LOADED", 3)
    builder = Builder()
    names = [builder.blob(b"%d" % number)[0] for number in range(700)]
    large = frozenset(names[::2]) if version == 2 else frozenset()
    index = shelf.index(builder.index(version, large))
    assert {name: index.find(name) for name in names} == builder.offsets
    for number in range(700, 1400):
        assert index.find(SHA1.name_of(b"blob", b"%d" % number)) is None
    index.verify(tick)


def test_offsets_of_64_bits(shelf: Shelf) -> None:
    builder = Builder()
    names = [builder.blob(b"%d" % number)[0] for number in range(20)]
    large = frozenset(names[::3])
    builder.offsets[names[0]] = 1 << 40
    index = shelf.index(builder.index(large=large))
    assert {name: index.find(name) for name in names} == builder.offsets
    data = bytearray(builder.index(large=large))
    at = 8 + 1024 + 20 * 24 + 4 * sorted(builder.offsets).index(names[3])
    data[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(Malformed, match="large offset"):
        shelf.index(bytes(data)).find(names[3])


def test_offset_of_64_bits_that_is_used(shelf: Shelf) -> None:
    builder = Builder()
    name, _ = builder.blob(b"content")
    pack = shelf.pack(builder.pack(), builder.index(large=frozenset([name])))
    assert read([pack], name) == (b"blob", b"content")


def damaged(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def test_damaged_indexes(shelf: Shelf) -> None:
    builder = Builder()
    for number in range(30):
        builder.blob(b"%d" % number)
    good = builder.index()
    bad = {
        "empty": b"",
        "cut": good[: len(good) // 2],
        "head": good[:600],
        "longer": good + b"x" * 8 * 31,
        "odd": good + b"xyz",
        "fan-out falls": damaged(good, 8, b"\xff\xff\xff\xff"),
        "count": damaged(good, 8 + 1020, b"\x7f\xff\xff\xff"),
    }
    for what, data in bad.items():
        with pytest.raises(Malformed):
            shelf.index(data)
            pytest.fail(what)
    with pytest.raises(UnsupportedVersion):
        shelf.index(damaged(good, 4, struct.pack(">I", 3)))


def test_verify_notices_what_hides_names(shelf: Shelf) -> None:
    builder = Builder()
    for number in range(300):
        builder.blob(b"%d" % number)
    good = builder.index()
    names_at = 8 + 1024

    def sealed(data: bytes) -> bytes:
        return data[:-20] + hashlib.sha1(data[:-20]).digest()

    first, second = good[names_at : names_at + 20], good[names_at + 20 : names_at + 40]
    shelf.index(good).verify(tick)
    for data in (
        damaged(good, names_at + 5, b"\0\0"),
        sealed(damaged(damaged(good, names_at, second), names_at + 20, first)),
        sealed(damaged(good, names_at + 20, first)),
        sealed(damaged(good, names_at, b"\xff")),
    ):
        with pytest.raises(Malformed):
            shelf.index(data).verify(tick)


# --- packs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_pack_versions(shelf: Shelf, version: int) -> None:
    builder = Builder()
    name, _ = builder.blob(b"content")
    data = builder.pack(version)
    index = builder.index()[:-40] + data[-20:]
    pack = shelf.pack(data, index + hashlib.sha1(index).digest())
    assert read([pack], name) == (b"blob", b"content")


def test_packs_that_do_not_fit_their_index(shelf: Shelf) -> None:
    builder = Builder()
    builder.blob(b"content")
    other = Builder()
    other.blob(b"other")
    for data in (b"", b"PACK", damaged(builder.pack(), 0, b"KCAP"), other.pack(), builder.pack() + b"x",
                 damaged(builder.pack(), 8, struct.pack(">I", 2))):  # fmt: skip
        with pytest.raises(Malformed):
            shelf.pack(data, builder.index())
    with pytest.raises(UnsupportedVersion):
        shelf.pack(damaged(builder.pack(), 4, struct.pack(">I", 4)), builder.index())


@pytest.mark.parametrize("size", [0, 15, 16, 2047, 2048, 100_000, 400_000])
def test_sizes_and_windows(shelf: Shelf, size: int) -> None:
    builder = Builder()
    content = os.urandom(size)
    builder.blob(b"before")
    name, _ = builder.blob(content)
    after, _ = builder.blob(b"after")
    packs = [shelf.built(builder)]
    assert read(packs, name) == (b"blob", content)
    assert read(packs, after) == (b"blob", b"after")


def test_entries_around_every_edge_of_a_window(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_packs, "_WINDOW", 97)
    builder = Builder()
    contents = [os.urandom(number % 50) for number in range(200)]
    names = [builder.blob(content)[0] for content in contents]
    _, base_at = builder.blob(b"base" * 30)
    at = builder.next_offset()
    near = SHA1.name_of(b"blob", b"base")
    builder.entry(near, 6, delta(120, 4, copy(4, 4)), distance(at - base_at))
    packs = [shelf.built(builder)]
    for name, content in zip(names, contents, strict=True):
        assert read(packs, name) == (b"blob", content)
    assert read(packs, near) == (b"blob", b"base")


def test_kinds(shelf: Shelf) -> None:
    builder = Builder()
    for code, kind in ((1, b"commit"), (2, b"tree"), (3, b"blob"), (4, b"tag")):
        builder.entry(SHA1.name_of(kind, b"x"), code, b"x")
    packs = [shelf.built(builder)]
    for kind in (b"commit", b"tree", b"blob", b"tag"):
        assert read(packs, SHA1.name_of(kind, b"x")) == (kind, b"x")
    for code in (0, 5):
        reserved = Builder()
        reserved.entry(b"\x11" * 20, code, b"x")
        with pytest.raises(Malformed, match="reserved type"):
            read([shelf.built(reserved)], b"\x11" * 20)


def long_chain(length: int, named: bool) -> tuple[Builder, bytes, bytes]:
    """A blob and ``length`` deltas, each on the one before; the last one's name and content."""
    builder = Builder()
    content = b"start\n" * 20
    name, at = builder.blob(content)
    for number in range(length):
        line = b"%d\n" % number
        made = delta(len(content), 120 + len(line), copy(0, 120), bytes([len(line)]) + line)
        previous, previous_at = name, at
        content = content[:120] + line
        name = SHA1.name_of(b"blob", content)
        base = previous if named else distance(builder.next_offset() - previous_at)
        at = builder.entry(name, 7 if named else 6, made, base)
    return builder, name, content


@pytest.mark.parametrize("named", [True, False])
def test_chains_of_deltas(shelf: Shelf, named: bool) -> None:
    builder, name, content = long_chain(300, named)
    packs = [shelf.built(builder)]
    assert read(packs, name) == (b"blob", content)
    objects = PackedObjects(packs, tick)
    for each in builder.offsets:
        location = objects.locate(each)
        assert location is not None
        assert SHA1.name_of(*objects.read(location, LIMIT)) == each


def ask_info(objects: PackedObjects, location: Location) -> object:
    return objects.info(location)


def ask_content(objects: PackedObjects, location: Location) -> object:
    return objects.read(location, LIMIT)


WAYS = (ask_info, ask_content)


def test_chain_at_and_over_the_bound(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_packs, "MAX_CHAIN", 40)
    builder, name, content = long_chain(40, named=False)
    assert read([shelf.built(builder)], name) == (b"blob", content)
    builder, name, _ = long_chain(41, named=False)
    pack = shelf.built(builder)
    for ask in WAYS:
        objects = PackedObjects([pack], tick)
        location = objects.locate(name)
        assert location is not None
        with pytest.raises(LimitExceeded) as caught:
            ask(objects, location)
        assert caught.value.reason == "bound_depth"


def test_a_small_cache_gives_the_same(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    builder, _, _ = long_chain(60, named=False)
    packs = [shelf.built(builder)]
    monkeypatch.setattr(git_packs.BaseCache.__init__, "__defaults__", (700,))
    objects = PackedObjects(packs, tick)
    for each in sorted(builder.offsets):
        location = objects.locate(each)
        assert location is not None
        assert SHA1.name_of(*objects.read(location, LIMIT)) == each


@pytest.mark.parametrize("length", [1, 2, 7])
def test_chains_that_lead_in_a_circle(shelf: Shelf, length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_packs, "MAX_CHAIN", 50)
    builder = Builder()
    names = [bytes([number + 1]) * 20 for number in range(length)]
    for number, name in enumerate(names):
        builder.entry(name, 7, delta(5, 5, copy(0, 5)), names[(number + 1) % length])
    pack = shelf.built(builder)
    for ask in WAYS:
        with pytest.raises(Malformed, match="circle"):
            ask(PackedObjects([pack], tick), (pack, builder.offsets[names[0]]))


def test_base_in_another_pack_or_loose_or_nowhere(shelf: Shelf) -> None:
    base = b"base content"
    base_name = SHA1.name_of(b"blob", base)
    thin = Builder()
    name = SHA1.name_of(b"blob", b"base")
    thin.entry(name, 7, delta(len(base), 4, copy(0, 4)), base_name)
    full = Builder()
    full.blob(base)
    thin_pack, full_pack = shelf.built(thin), shelf.built(full)
    assert read([thin_pack, full_pack], name) == (b"blob", b"base")
    loose = PackedObjects(
        [thin_pack], tick, lambda wanted, limit: (b"blob", base) if wanted == base_name else None
    )
    location = loose.locate(name)
    assert location is not None
    assert loose.info(location) == (b"blob", 4)
    assert loose.read(location, LIMIT) == (b"blob", b"base")
    with pytest.raises(Malformed, match="not in the store"):
        PackedObjects([thin_pack], tick).read(location, LIMIT)


@pytest.mark.parametrize("back", [0, 1, 5, 11, 12, 1 << 20, 1 << 70])
def test_bases_outside_the_pack_or_within_an_entry(shelf: Shelf, back: int) -> None:
    builder = Builder()
    name = b"\x22" * 20
    builder.blob(os.urandom(100))
    at = builder.next_offset()
    builder.entry(name, 6, delta(5, 5, copy(0, 5)), distance(at - 12 + back if back < 13 and back else back))
    with pytest.raises(Malformed):
        read([shelf.built(builder)], name)


@pytest.mark.parametrize("offset", [0, 11, 1 << 30, 13])
def test_indexes_that_point_elsewhere(shelf: Shelf, offset: int) -> None:
    builder = Builder()
    name, _ = builder.blob(bytes(100))
    data = builder.pack()
    builder.offsets[name] = offset
    index = builder.index()[:-40] + data[-20:]
    pack = shelf.pack(data, index + hashlib.sha1(index).digest())
    with pytest.raises(Malformed):
        read([pack], name)


def test_sizes_that_lie(shelf: Shelf) -> None:
    for size in (0, 4, 6, 1 << 20):
        builder = Builder()
        builder.entry(b"\x33" * 20, 3, b"hello", size=size)
        with pytest.raises(Malformed):
            read([shelf.built(builder)], b"\x33" * 20)


def test_bounds_come_before_content(shelf: Shelf) -> None:
    builder = Builder()
    big, _ = builder.blob(bytes(5000))
    small = SHA1.name_of(b"blob", bytes(10))
    builder.entry(small, 7, delta(5000, 10, copy(0, 10)), big)
    builder.entry(b"\x44" * 20, 3, b"", size=1 << 60)
    packs = [shelf.built(builder)]
    for name in (big, small, b"\x44" * 20):
        objects = PackedObjects(packs, tick)
        location = objects.locate(name)
        assert location is not None
        with pytest.raises(LimitExceeded):
            objects.read(location, 4999)
    assert read(packs, big, 5000) == (b"blob", bytes(5000))
    assert read(packs, small, 5000) == (b"blob", bytes(10))


def test_an_endless_size_is_malformed(shelf: Shelf) -> None:
    builder = Builder()
    builder.offsets[b"\x55" * 20] = 12
    builder.data += b"\xb0" + b"\xff" * 40 + zlib.compress(b"")
    with pytest.raises(Malformed, match="no end"):
        read([shelf.built(builder)], b"\x55" * 20)


# --- what git writes ----------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str, data: bytes = b"") -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, input=data, check=True, capture_output=True).stdout


@pytest.mark.parametrize(
    ("object_format", "settings"),
    [
        (SHA1, ["pack.indexVersion=2"]),
        (SHA1, ["pack.indexVersion=1"]),
        (SHA1, ["repack.useDeltaBaseOffset=false"]),
        (SHA1, ["pack.compression=0"]),
        (SHA256, ["pack.indexVersion=2"]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value.name,
)
def test_every_object_of_packs_that_git_wrote(
    tmp_path: Path, object_format: ObjectFormat, settings: list[str]
) -> None:
    git(tmp_path, "init", "-q", f"--object-format={object_format.name}", "-b", "main", ".")
    lines = [b"line %d %s" % (number, os.urandom(20).hex().encode()) for number in range(400)]
    stream = b""
    for number in range(60):
        lines[number * 6] = b"changed %d" % number
        content = b"\n".join(lines[number:])
        stream += b"commit refs/heads/main\ncommitter T <t@e> 1700000000 +0000\ndata 1\nm\n"
        stream += b"M 100644 inline f%d\ndata %d\n%s\n" % (number % 5, len(content), content)
    git(tmp_path, "fast-import", "--quiet", data=stream)
    options = [part for setting in settings for part in ("-c", setting)]
    git(tmp_path, *options, "repack", "-adfq", "--depth=30")
    folder = tmp_path / ".git/objects/pack"
    shelf = Shelf(folder)
    try:
        stem = next(folder.glob("*.pack")).with_suffix("")
        pack = shelf.pack(
            stem.with_suffix(".pack").read_bytes(), stem.with_suffix(".idx").read_bytes(), object_format
        )
        pack.index.verify(tick)
        listing = git(tmp_path, "cat-file", "--batch-all-objects", "--batch-check").decode().split()
        named = PackedObjects([pack], tick)
        deltas = 0
        for text, kind, size in zip(listing[::3], listing[1::3], listing[2::3], strict=True):
            location = named.locate(bytes.fromhex(text))
            assert location is not None
            assert named.info(location) == (kind.encode(), int(size))
            deltas += isinstance(pack.header(location[1])[3], bytes if "Offset" in settings[0] else int)
            found = named.read(location, LIMIT)
            assert found[0] == kind.encode() and object_format.name_of(*found).hex() == text
        assert deltas > 40
    finally:
        shelf.pool.close()
        os.close(shelf.descriptor)
