"""Git packs: many objects in one file, with an index beside it.

**Pack** (``pack-*.pack``): ``PACK``, version 2 or 3, number of objects (4 bytes each, big-endian), the
entries, and a hash over all of it. An entry begins with its type and inflated size: three bits of type and
four of size in the first byte, seven more of size in each further byte while the top bit is set, least
significant first. Types 1 to 4 are commit, tree, blob, tag, and a zlib stream follows. Type 6 is a delta
whose base is earlier in the same pack, by a distance (seven bits a byte, most significant first, one added
for each continuation); type 7 a delta whose base is named. After either, a zlib stream holds the delta.

**Delta**: inflated sizes of base and result (seven bits a byte, least significant first), then instructions.
A byte with its top bit set copies from the base: bits 0 to 3 say which bytes of a 32-bit offset follow, bits
4 to 6 which of a 24-bit length, a length of 0 means 65,536. A byte from 1 to 127 is followed by that many new
bytes. 0 is reserved.

**Index** (``pack-*.idx``): a fan-out of 256 counts (entry *n*: how many names begin with a byte up to *n*),
then

* version 1: an offset and a name for each object, ordered by name;
* version 2 (after the magic ``FF 't' 'O' 'c'`` and the version): all names, all CRC-32s, all 31-bit offsets,
  where the top bit refers to a table of 64-bit offsets behind them;

and at the end the pack's hash and the index's own.

Nothing that pack or index says is believed: the caller hashes each object again. What they say only decides
where to look, within the file. The bitmap, reverse-index, keep, promisor and mtimes files beside a pack and a
multi-pack-index are never opened: each pack has its own index all the same.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from reader.git_files import StableFile
from reader.git_objects import LimitExceeded, Malformed, ObjectFormat

MAX_CHAIN = 4095
"""Longest chain of deltas that is followed; Git itself writes none longer (``pack.depth`` is capped there).
"""

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
_WINDOW = 1 << 17
_MAX_HEADER = 64
_SMALL_DELTA = 1 << 14
_MAX_LOADED = 1 << 21
_VERIFY_STEP = 1 << 20
_NO_LIMIT = 1 << 62

Tick = Callable[[], None]
"""Called often in loops that a hostile file can make long; raises when time is up."""


class UnsupportedVersion(Malformed):
    """A pack or index of a version that is not known."""


def inflate(chunks: Iterator[bytes | memoryview], size: int, tick: Tick) -> bytes:
    """Inflate one zlib stream that must hold exactly ``size`` bytes.

    ``chunks`` yields what follows in the file; bytes behind the end of the stream are not used. At most one
    byte more than ``size`` is ever produced. Raises Malformed.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(next(chunks, b""), size + 1)
        if stream.eof and len(content) == size:
            return content
        parts = [content]
        produced = len(content)
        while not stream.eof and produced <= size:
            tick()
            # A call that produced nothing may still have input left; only an empty chunk is the end of the
            # file.
            chunk = stream.unconsumed_tail or next(chunks, b"")
            if not chunk:
                raise Malformed("a compressed stream ends early")
            content = stream.decompress(chunk, size + 1 - produced)
            produced += len(content)
            parts.append(content)
    except zlib.error as error:
        raise Malformed(f"a compressed stream is damaged ({error})") from None
    if produced != size:
        raise Malformed(
            f"a compressed stream holds {'more' if produced > size else 'fewer'} bytes than announced"
        )
    return b"".join(parts)


def delta_sizes(delta: bytes) -> tuple[int, int, int]:
    """Base size, result size and where the instructions begin, of the first bytes of a delta."""
    sizes = [0, 0]
    position = 0
    try:
        for which in (0, 1):
            byte = delta[position]
            position += 1
            size = byte & 0x7F
            shift = 7
            while byte & 0x80:
                byte = delta[position]
                position += 1
                size |= (byte & 0x7F) << shift
                shift += 7
                if shift > 70:
                    raise Malformed("a size in a delta has no end")
            sizes[which] = size
    except IndexError:
        raise Malformed("a delta ends within its header") from None
    return sizes[0], sizes[1], position


def apply_delta(base: bytes, delta: bytes, limit: int, tick: Tick) -> bytes:
    """The object that ``delta`` makes of ``base``.

    Raises Malformed, and LimitExceeded before anything is built when the result is longer than ``limit``.
    """
    base_size, result_size, position = delta_sizes(delta)
    if base_size != len(base):
        raise Malformed("a delta was made for a base of another size")
    if result_size > limit:
        raise _too_large(result_size, limit)
    end = len(delta)
    done: list[bytes] = []
    produced = large = 0
    while position < end:
        # In steps, so that millions of tiny instructions neither hide the deadline nor fill the memory.
        # Within a step only long copies are counted as they come: short ones make a few megabytes at most.
        stop = min(end, position + 65536)
        parts: list[bytes] = []
        append = parts.append
        try:
            while position < stop:
                code = delta[position]
                if code < 0x80:
                    if not code:
                        raise Malformed("a delta uses the reserved instruction")
                    append(delta[position + 1 : position + 1 + code])
                    position += 1 + code
                    continue
                # The two commonest copies: one length byte, one or two offset bytes.
                if code == 0x93:
                    offset = delta[position + 1] | delta[position + 2] << 8
                    until = offset + delta[position + 3]
                    if offset < until <= base_size:
                        append(base[offset:until])
                        position += 4
                        continue
                elif code == 0x91:
                    offset = delta[position + 1]
                    until = offset + delta[position + 2]
                    if offset < until <= base_size:
                        append(base[offset:until])
                        position += 3
                        continue
                position += 1
                offset = size = 0
                for bit in range(4):
                    if code & 0x01 << bit:
                        offset |= delta[position] << 8 * bit
                        position += 1
                for bit in range(3):
                    if code & 0x10 << bit:
                        size |= delta[position] << 8 * bit
                        position += 1
                size = size or 65536
                if size > 255:
                    large += size
                    if large > result_size:
                        raise Malformed("a delta makes more bytes than it announces")
                if offset + size > base_size:
                    raise Malformed("a delta copies from behind the end of its base")
                append(base[offset : offset + size])
        except IndexError:
            raise Malformed("a delta ends within an instruction") from None
        if position > end:
            raise Malformed("a delta ends within new bytes")
        done.append(b"".join(parts))
        produced += len(done[-1])
        if produced > result_size:
            raise Malformed("a delta makes more bytes than it announces")
        if position < end:
            tick()
    if produced != result_size:
        raise Malformed("a delta makes fewer bytes than it announces")
    return done[0] if len(done) == 1 else b"".join(done)


class PackIndex:
    """The index of one pack: where in the pack an object is said to begin."""

    def __init__(self, file: StableFile, object_format: ObjectFormat) -> None:
        self._file = file
        self._format = object_format
        self._buckets: dict[int, dict[bytes, int]] = {}
        self._loaded = 0
        size = object_format.size
        head = file.read(0, 8 + 1024)
        if head[:4] == b"\xfftOc":
            version = int.from_bytes(head[4:8], "big")
            if version != 2:
                raise UnsupportedVersion(f"a pack index has version {version}")
            fan_out = head[8:]
            self._names_at = 8 + 1024
            self.version = 2
        else:
            fan_out = head[:1024]
            self._names_at = 1024
            self.version = 1
        if len(fan_out) != 1024:
            raise Malformed("a pack index is too short")
        self._fan_out = (0, *struct.unpack(">256I", fan_out))
        if any(low > high for low, high in pairwise(self._fan_out)):
            raise Malformed("the fan-out of a pack index descends")
        self.count = count = self._fan_out[-1]
        rest = file.size - self._names_at - 2 * size
        if self.version == 1:
            if rest != count * (size + 4):
                raise Malformed("a pack index is not as long as its number of objects demands")
            self._large = 0
        else:
            self._offsets_at = self._names_at + count * (size + 4)
            self._large_at = self._offsets_at + 4 * count
            large = rest - count * (size + 8)
            if large < 0 or large % 8 or large // 8 > count:
                raise Malformed("a pack index is not as long as its number of objects demands")
            self._large = large // 8
        self.pack_hash = file.read(file.size - 2 * size, size)

    def find(self, name: bytes) -> int | None:
        """Offset at which the pack is said to hold the object; not checked against the pack's length."""
        bucket = self._buckets.get(name[0])
        if bucket is None:
            count = self._fan_out[name[0] + 1] - self._fan_out[name[0]]
            if self._loaded + count > _MAX_LOADED:
                return self._search(name)
            self._loaded += count
            bucket = self._buckets[name[0]] = self._load(name[0])
        return bucket.get(name)

    def _search(self, name: bytes) -> int | None:
        """Binary search in the file: for indexes that are too large to be held in memory."""
        size = self._format.size
        step, shift = (size + 4, 4) if self.version == 1 else (size, 0)
        low, high = self._fan_out[name[0]], self._fan_out[name[0] + 1]
        while low < high:
            middle = (low + high) // 2
            found = self._file.read(self._names_at + middle * step + shift, size)
            if found == name:
                if self.version == 1:
                    return int.from_bytes(self._file.read(self._names_at + middle * step, 4), "big")
                offset = int.from_bytes(self._file.read(self._offsets_at + 4 * middle, 4), "big")
                return self._wide(offset) if offset & 0x80000000 else offset
            if found < name:
                low = middle + 1
            else:
                high = middle
        return None

    def _wide(self, reference: int) -> int:
        """The 64-bit offset that an entry with its top bit set refers to."""
        number = reference & 0x7FFFFFFF
        if number >= self._large:
            raise Malformed("a pack index refers to a large offset that it does not hold")
        return int.from_bytes(self._file.read(self._large_at + 8 * number, 8), "big")

    def _load(self, first: int) -> dict[bytes, int]:
        """All names that the fan-out files under one first byte. Cheap enough to need no binary search."""
        low, high = self._fan_out[first], self._fan_out[first + 1]
        count = high - low
        size = self._format.size
        if self.version == 1:
            records = self._file.read(self._names_at + low * (size + 4), count * (size + 4))
            pairs = struct.iter_unpack(f">I{size}s", records)
            return {name: offset for offset, name in pairs}
        names = self._file.read(self._names_at + low * size, count * size)
        offsets = struct.unpack(f">{count}I", self._file.read(self._offsets_at + 4 * low, 4 * count))
        bucket = {
            name: offset
            for (name,), offset in zip(struct.iter_unpack(f"{size}s", names), offsets, strict=True)
        }
        if self._large:
            for name, offset in bucket.items():
                if offset & 0x80000000:
                    bucket[name] = self._wide(offset)
        return bucket

    def verify(self, tick: Tick) -> None:
        """Check the index's own hash and the order of its names: a name that is not found is then not there.

        Raises Malformed.
        """
        size = self._format.size
        digest = self._format.new(b"")
        position, end = 0, self._file.size - size
        while position < end:
            tick()
            digest.update(self._file.read(position, min(_VERIFY_STEP, end - position)))
            position += _VERIFY_STEP
        if digest.digest() != self._file.read(end, size):
            raise Malformed("a pack index does not have the hash that it ends with")
        step, shift = (size + 4, 4) if self.version == 1 else (size, 0)
        previous = b""
        for first in range(256):
            low, high = self._fan_out[first], self._fan_out[first + 1]
            for begin in range(low, high, 4096):
                tick()
                count = min(4096, high - begin)
                records = self._file.read(self._names_at + begin * step, count * step)
                names = [previous, *(records[at + shift : at + step] for at in range(0, len(records), step))]
                if any(lower >= upper for lower, upper in pairwise(names)):
                    raise Malformed("a pack index is out of order")
                if names[1][0] != first or names[-1][0] != first:
                    raise Malformed("the fan-out of a pack index does not fit its names")
                previous = names[-1]


class BaseCache:
    """Recently built objects that deltas are based on, up to a number of bytes."""

    def __init__(self, limit: int = 96 << 20) -> None:
        self._limit = limit
        self._bytes = 0
        self._objects: OrderedDict[tuple[int, int], tuple[bytes, bytes]] = OrderedDict()

    def get(self, key: tuple[int, int]) -> tuple[bytes, bytes] | None:
        """Kind and content, or None."""
        found = self._objects.get(key)
        if found is not None:
            self._objects.move_to_end(key)
        return found

    def put(self, key: tuple[int, int], kind: bytes, content: bytes) -> None:
        """Remember an object; older ones go when there is no room."""
        if key in self._objects or len(content) > self._limit // 4:
            return
        self._objects[key] = (kind, content)
        self._bytes += len(content) + 128
        while self._bytes > self._limit:
            _, (_, old) = self._objects.popitem(last=False)
            self._bytes -= len(old) + 128


class Windows:
    """Recently read parts of packs, shared by all of them."""

    def __init__(self, limit: int = 96) -> None:
        self._limit = limit
        self._parts: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def part(self, pack: int, file: StableFile, number: int) -> bytes:
        """The window with this number, ``_WINDOW`` bytes long (shorter at the end of the file)."""
        key = (pack, number)
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = file.read(number * _WINDOW, _WINDOW)
            if len(self._parts) > self._limit:
                self._parts.popitem(last=False)
        else:
            self._parts.move_to_end(key)
        return part


Header = tuple[int, int, int, int | bytes | None]
"""Of an entry: type, inflated size, where its zlib stream begins, base (offset, name or None)."""


class Pack:
    """One pack file with its index.

    ``number`` tells packs apart in the caches that they share. What is learnt while sizes are asked for is
    kept for the reading that follows: ``kinds`` by offset, the offsets of ``bases`` that other objects need,
    and inflated ``deltas`` with their bases, as many as their common allowance permits.
    """

    def __init__(
        self,
        number: int,
        file: StableFile,
        index: PackIndex,
        object_format: ObjectFormat,
        windows: Windows,
    ) -> None:
        self.number = number
        self.index = index
        self.file = file
        self.kinds: dict[int, bytes] = {}
        self.bases: set[int] = set()
        self.deltas: dict[int, tuple[int | bytes, bytes]] = {}
        self._windows = windows
        self._part = b""
        self._part_begin = 0
        self._part_end = 0
        self._end = file.size - object_format.size
        self._name_size = object_format.size
        head = file.read(0, 12)
        if len(head) != 12 or head[:4] != b"PACK" or self._end < 12:
            raise Malformed("a pack does not begin like one")
        version, count = struct.unpack(">II", head[4:])
        if version not in (2, 3):
            raise UnsupportedVersion(f"a pack has version {version}")
        if count != index.count:
            raise Malformed("a pack and its index disagree about the number of objects")
        if file.read(self._end, object_format.size) != index.pack_hash:
            raise Malformed("a pack index was made for another pack")

    def find(self, name: bytes) -> int | None:
        """Offset at which this pack is said to hold an object."""
        return self.index.find(name)

    def header(self, offset: int) -> Header:
        """Parse what stands before an entry's zlib stream. Raises Malformed."""
        if not 12 <= offset < self._end:
            raise Malformed("a pack index points outside its pack")
        if not self._part_begin <= offset < self._part_end:
            self._turn_to(offset)
        part = self._part
        position = offset - self._part_begin
        if offset + _MAX_HEADER > self._part_end:
            part = self.file.read(offset, min(_MAX_HEADER, self._end - offset))
            position = 0
        begin = position
        try:
            byte = part[position]
            position += 1
            entry_type = byte >> 4 & 7
            size = byte & 15
            shift = 4
            while byte & 0x80:
                byte = part[position]
                position += 1
                size |= (byte & 0x7F) << shift
                shift += 7
                if shift > 67:
                    raise Malformed("the size of a pack entry has no end")
            base: int | bytes | None = None
            if entry_type == _OFFSET_DELTA:
                byte = part[position]
                position += 1
                distance = byte & 0x7F
                while byte & 0x80:
                    byte = part[position]
                    position += 1
                    distance = (distance + 1) << 7 | byte & 0x7F
                    if distance >> 63:
                        raise Malformed("the base distance of a pack entry has no end")
                base = offset - distance
                if not 12 <= base < offset:
                    raise Malformed("the base of a delta is outside its pack")
            elif entry_type == _NAMED_DELTA:
                base = part[position : position + self._name_size]
                position += self._name_size
                if len(base) != self._name_size:
                    raise Malformed("a pack ends within an entry")
            elif entry_type not in _KINDS:
                raise Malformed(f"a pack entry has the reserved type {entry_type}")
        except IndexError:
            raise Malformed("a pack ends within an entry") from None
        return entry_type, size, offset + position - begin, base

    def _turn_to(self, offset: int) -> None:
        """Make the window that holds ``offset`` the current one; it ends before the pack's own hash does."""
        number = offset // _WINDOW
        self._part = self._windows.part(self.number, self.file, number)
        self._part_begin = number * _WINDOW
        self._part_end = min(self._part_begin + len(self._part), self._end)

    def chunks(self, position: int, first: int) -> Iterator[bytes | memoryview]:
        """What is in the pack from ``position`` on: at most ``first`` bytes, then more until its end."""
        wanted = first
        while position < self._end:
            if not self._part_begin <= position < self._part_end:
                self._turn_to(position)
            stop = min(position + wanted, self._part_end)
            yield memoryview(self._part)[position - self._part_begin : stop - self._part_begin]
            position = stop
            wanted = _WINDOW

    def inflate(self, position: int, size: int, tick: Tick) -> bytes:
        """Inflate the stream at ``position``, which must hold ``size`` bytes."""
        # Deflate adds at most a few bytes for each stored block: with this much input the stream usually
        # ends, and zlib need not copy much of what follows it.
        wanted = size + (size >> 10) + 64
        if self._part_begin <= position and position + wanted <= self._part_end:
            begin = position - self._part_begin
            stream = zlib.decompressobj()
            with contextlib.suppress(zlib.error):
                content = stream.decompress(self._part[begin : begin + wanted], size + 1)
                if stream.eof and len(content) == size:
                    return content
        return inflate(self.chunks(position, wanted), size, tick)

    def result_size(self, position: int, size: int, tick: Tick) -> int:
        """Size of the object that a delta makes, without inflating more than the delta's first bytes."""
        stream = zlib.decompressobj()
        begin = b""
        try:
            for chunk in self.chunks(position, 64):
                begin += stream.decompress(chunk, 32 - len(begin))
                if stream.eof or len(begin) >= 32:
                    break
                tick()
        except zlib.error as error:
            raise Malformed(f"a compressed stream is damaged ({error})") from None
        return delta_sizes(begin[:size])[1]


Location = tuple[Pack, int]
"""Where an object is: a pack and an offset in it."""


class PackedObjects:
    """Reads objects from a set of packs, following chains of deltas with a loop.

    ``loose`` finds a delta's named base that no pack holds: given a name and a bound for its size in bytes,
    it returns kind and content, or None. (Git never leaves such deltas in a store, but reads them.)
    """

    def __init__(
        self,
        packs: Iterable[Pack],
        tick: Tick,
        loose: Callable[[bytes, int], tuple[bytes, bytes] | None] = lambda name, limit: None,
    ) -> None:
        self.packs = list(packs)
        self.faults: list[Malformed] = []
        """Why packs that were there at first are used no more."""
        self._tick = tick
        self._loose = loose
        self._cache = BaseCache()
        self._recent = list(self.packs)
        self._delta_allowance = 48 << 20

    def locate(self, name: bytes) -> Location | None:
        """The first place where the object is said to be. The pack that had the last one is asked first."""
        recent = self._recent
        while True:
            for pack in recent:
                try:
                    offset = pack.find(name)
                except Malformed as error:
                    self._give_up(pack, error)
                    break
                if offset is not None:
                    if pack is not recent[0]:
                        recent.remove(pack)
                        recent.insert(0, pack)
                    return pack, offset
            else:
                return None

    def find(self, name: bytes) -> Iterator[Location]:
        """Every place where the object is said to be."""
        for pack in list(self.packs):
            try:
                offset = pack.find(name)
            except Malformed as error:
                self._give_up(pack, error)
                continue
            if offset is not None:
                yield pack, offset

    def _give_up(self, pack: Pack, error: Malformed) -> None:
        """Use a pack no more whose index turned out to be unusable."""
        self.faults.append(error)
        self.packs.remove(pack)
        self._recent.remove(pack)

    def info(self, location: Location) -> tuple[bytes, int]:
        """Kind and size that an object is said to have; nothing but headers is read.

        Raises Malformed and LimitExceeded (too many deltas).
        """
        pack, offset = location
        entry_type, size, position, base = pack.header(offset)
        if base is None:
            kind = pack.kinds[offset] = _KINDS[entry_type]
            return kind, size
        if size <= _SMALL_DELTA and self._delta_allowance > 0:
            delta = pack.inflate(position, size, self._tick)
            pack.deltas[offset] = base, delta
            self._delta_allowance -= size + 256
            size = delta_sizes(delta)[1]
        else:
            size = pack.result_size(position, size, self._tick)
        if isinstance(base, int):
            pack.bases.add(base)
        passed: list[Location] = []
        while True:
            known = pack.kinds.get(offset)
            if known is not None:
                kind = known
                break
            passed.append((pack, offset))
            if base is None:
                kind = _KINDS[entry_type]
                break
            if len(passed) > MAX_CHAIN:
                raise _endless(passed)
            found = self._base(pack, base)
            if found is None:
                assert isinstance(base, bytes)
                kind = self._loose_base(base, _NO_LIMIT)[0]
                break
            pack, offset = found
            entry_type, _, _, base = pack.header(offset)
        for pack, offset in passed:
            pack.kinds[offset] = kind
        return kind, size

    def read(self, location: Location, limit: int) -> tuple[bytes, bytes]:
        """Kind and content of the object at ``location``.

        ``limit`` bounds its size and that of every base and delta on the way, in bytes. Raises Malformed and
        LimitExceeded.
        """
        pack, offset = location
        keep = offset in pack.bases or pack.kinds.get(offset) != b"blob"
        waiting: list[tuple[Pack, int, int, int, bytes | None]] = []
        base: int | bytes | None
        while True:
            cached = self._cache.get((pack.number, offset))
            if cached is not None:
                kind, content = cached
                break
            learnt = pack.deltas.pop(offset, None)
            if learnt is not None:
                base, delta = learnt
                self._delta_allowance += len(delta) + 256
                waiting.append((pack, offset, 0, 0, delta))
            else:
                entry_type, size, position, base = pack.header(offset)
                if size > limit:
                    raise _too_large(size, limit)
                if base is None:
                    kind = _KINDS[entry_type]
                    content = pack.inflate(position, size, self._tick)
                    if waiting or keep:
                        self._cache.put((pack.number, offset), kind, content)
                    break
                waiting.append((pack, offset, position, size, None))
            if len(waiting) > MAX_CHAIN:
                raise _endless([(pack, offset) for pack, offset, *_ in waiting])
            found = self._base(pack, base)
            if found is None:
                assert isinstance(base, bytes)
                kind, content = self._loose_base(base, limit)
                break
            pack, offset = found
        if len(content) > limit:
            raise _too_large(len(content), limit)
        while waiting:
            pack, offset, position, size, ready = waiting.pop()
            delta = pack.inflate(position, size, self._tick) if ready is None else ready
            content = apply_delta(content, delta, limit, self._tick)
            if waiting or keep:
                self._cache.put((pack.number, offset), kind, content)
        return kind, content

    def _base(self, pack: Pack, base: int | bytes) -> Location | None:
        """Where a delta's base is: in its own pack, else in another."""
        if isinstance(base, int):
            return pack, base
        offset = pack.find(base)
        if offset is not None:
            return pack, offset
        return self.locate(base)

    def _loose_base(self, base: bytes, limit: int) -> tuple[bytes, bytes]:
        found = self._loose(base, limit)
        if found is None:
            raise Malformed("the base of a delta is not in the store")
        return found


def _endless(passed: list[Location]) -> Exception:
    """Why a chain of deltas is not followed further."""
    if len({(pack.number, offset) for pack, offset in passed}) < len(passed):
        return Malformed("a chain of deltas leads in a circle")
    return LimitExceeded("bound_depth", f"a chain of more than {MAX_CHAIN} deltas")


def _too_large(size: int, limit: int) -> LimitExceeded:
    return LimitExceeded("bound_object_bytes", f"{size} bytes are over the bound of {limit}")
