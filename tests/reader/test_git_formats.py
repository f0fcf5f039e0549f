"""Trees, commits, references, configuration, loose objects: what Git writes is read, all else refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.git_config import ConfigFault, object_format_of, parse_config
from reader.git_files import FilePool, Irregular, StableFile, TooLong, read_file
from reader.git_loose import LooseObjects, parse_header
from reader.git_objects import SHA1, SHA256, LimitExceeded, Malformed, StoreChanged, parse_commit
from reader.git_refs import RefFault, find_packed, is_ref_name, parse_ref, resolve_head
from reader.git_trees import parse_tree

A, B = "a1" * 20, "b2" * 20


def run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *arguments], cwd=folder, env=environment, capture_output=True, check=False)


def tree(*entries: tuple[bytes, bytes]) -> bytes:
    return b"".join(mode + b" " + name + b"\0" + bytes.fromhex(A) for mode, name in entries)


FILE, DIRECTORY = b"100644", b"40000"


# --- objects ------------------------------------------------------------------------------------------------


def test_names_of_well_known_objects() -> None:
    assert SHA1.empty_tree.hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert SHA256.empty_tree.hex() == "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
    assert SHA1.name_of(b"blob", b"").hex() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 200_000])
def test_name_is_the_same_for_small_and_large_objects(size: int) -> None:
    data = os.urandom(size)
    assert SHA256.name_of(b"blob", data) == hashlib.sha256(b"blob %d\0" % size + data).digest()


def commit_text(*lines: str) -> bytes:
    return "\n".join(lines).encode() + b"\n\nmessage\n"


def test_commit_with_parents_and_signature() -> None:
    text = commit_text(
        f"tree {A}", f"parent {B}", f"parent {A}", "author x", "committer x", "gpgsig -----", " tree no"
    )
    commit = parse_commit(text, SHA1)
    assert commit.tree.hex() == A
    assert [parent.hex() for parent in commit.parents] == [B, A]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"tree " + A.encode(),
        commit_text(f"tree {A[:-1]}", "author x", "committer x"),
        commit_text(f"tree {A.upper()}", "author x", "committer x"),
        commit_text(f"tree {A} ", "author x", "committer x"),
        commit_text(f"tree  {A}", "author x", "committer x"),
        commit_text(f"tree {A}", "committer x"),
        commit_text(f"tree {A}", "author x"),
        commit_text(f"tree {A}", "author x", f"parent {B}", "committer x"),
        commit_text(f"tree {A}", f"tree {A}", "author x", "committer x"),
        commit_text(f"parent {B}", f"tree {A}", "author x", "committer x"),
        commit_text(f"tree {A}", f"parent {B}00", "author x", "committer x"),
        commit_text(f"tree {A}", "author x", "author x", "committer x"),
        commit_text(f"\ntree {A}", "author x", "committer x"),
    ],
)
def test_malformed_commits(text: bytes) -> None:
    with pytest.raises(Malformed):
        parse_commit(text, SHA1)


def test_commit_of_the_other_format_is_malformed() -> None:
    text = commit_text(f"tree {A}", "author x", "committer x")
    with pytest.raises(Malformed):
        parse_commit(text, SHA256)


# --- trees --------------------------------------------------------------------------------------------------


def test_tree_with_every_mode_and_odd_names() -> None:
    entries = [
        (b"100644", b"\x01\n"),
        (b"100755", b" "),
        (b"40000", b".git"),
        (b"120000", b"a b"),
        (b"160000", b"sub"),
        (b"100644", b"\xff\xfe"),
    ]
    found = parse_tree(tree(*entries), SHA1)
    assert [(mode, name) for mode, name, _ in found] == entries
    assert {child.hex() for _, _, child in found} == {A}


def test_directories_sort_as_if_they_ended_in_a_slash() -> None:
    parse_tree(tree((FILE, b"a.b"), (DIRECTORY, b"a"), (FILE, b"a0")), SHA1)
    with pytest.raises(Malformed, match="out of order"):
        parse_tree(tree((DIRECTORY, b"a"), (FILE, b"a.b")), SHA1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tree((FILE, b"b"), (FILE, b"a")), "entry 2 is out of order"),
        (tree((FILE, b"a"), (FILE, b"a")), "entry 2 occurs twice"),
        (tree((FILE, b"a"), (FILE, b"a-"), (DIRECTORY, b"a")), "same name"),
        (tree((FILE, b"")), "entry 1 has an empty name"),
        (tree((FILE, b"a"), (FILE, b"b/c")), "entry 2 has a slash"),
        (tree((FILE, b".")), "'.' or '..'"),
        (tree((DIRECTORY, b"..")), "'.' or '..'"),
        (tree((b"100664", b"a")), "no mode that Git writes"),
        (tree((b"040000", b"a")), "no mode that Git writes"),
        (tree((b"0100644", b"a")), "no mode that Git writes"),
        (tree((b"100600", b"a")), "no mode that Git writes"),
        (tree((b"140000", b"a")), "no mode that Git writes"),
        (tree((b"", b"a")), "no mode that Git writes"),
        (tree((FILE, b"a"))[:-1], "ends before its object name"),
        (tree((FILE, b"a")) + b"\0", "no mode that Git writes"),
        (tree((FILE, b"a")) + b"100644 b", "name without an end"),
        (b"x" + tree((FILE, b"a")), "no mode that Git writes"),
        (tree((FILE, b"a")) + b"junk" + tree((FILE, b"b")), "entry 2 has no mode"),
    ],
)
def test_malformed_trees(data: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        parse_tree(data, SHA1)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_tree_or_malformed(data: bytes) -> None:
    try:
        entries = parse_tree(data, SHA1)
    except Malformed:
        return
    assert b"".join(mode + b" " + name + b"\0" + child for mode, name, child in entries) == data


@given(
    st.sets(st.binary(min_size=1, max_size=6).filter(lambda n: not {0, 47} & set(n)), max_size=12), st.data()
)
def test_well_formed_trees_are_read_back(names: set[bytes], data: st.DataObject) -> None:
    names -= {b".", b".."}
    modes = {name: data.draw(st.sampled_from([FILE, DIRECTORY, b"120000"])) for name in names}
    ordered = sorted(names, key=lambda name: name + b"/" if modes[name] == DIRECTORY else name)
    entries = [(modes[name], name) for name in ordered]
    assert [(mode, name) for mode, name, _ in parse_tree(tree(*entries), SHA1)] == entries


# --- references ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [f"{A}\n", A, f"{A} \n\n", f"{A.upper()}\n", f"{A}\r\n"])
def test_reference_with_a_full_name(text: str) -> None:
    name, target = parse_ref(text.encode(), SHA1)
    assert name is not None and name.hex() == A and target is None


@pytest.mark.parametrize("text", ["ref: refs/heads/m\n", "ref:refs/heads/m", "ref:\t refs/heads/m \n"])
def test_symbolic_reference(text: str) -> None:
    assert parse_ref(text.encode(), SHA1) == (None, b"refs/heads/m")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        A[:-1],
        A + "0",
        f"{A}\t\n{B}\n",
        f"{A} branch 'x'\n",
        f" {A}\n",
        f"{A}\n\0",
        "0" * 40,
        "g" * 40,
        "ref: \n",
        "ref: main\n",
        "ref: refs/\n",
        "ref: ../outside\n",
        "ref: refs/../../outside\n",
        "ref: refs/heads/a b\n",
        "ref: refs/heads/a\nref: refs/heads/b\n",
        "ref: refs//heads/m\n",
        "ref: refs/heads/.m\n",
        "ref: refs/heads/m.lock\n",
        "ref: refs/heads/m.lock/x\n",
        "ref: refs/heads/m.\n",
        "ref: refs/heads/m/\n",
        "ref: refs/heads/m~1\n",
        "ref: refs/heads/@{0}\n",
        "ref: /refs/heads/m\n",
        "Ref: refs/heads/m\n",
        "ref: refs/heads/" + "m" * 2000,
    ],
)
def test_malformed_references(text: str) -> None:
    with pytest.raises(RefFault) as caught:
        parse_ref(text.encode(), SHA1)
    assert caught.value.reason == "malformed_head"


def test_reference_names_agree_with_git(tmp_path: Path) -> None:
    names = (
        b"a", b"a/b", b"a..b", b"a.b", b".a", b"a.", b"a.lock", b"a.lock.b", b"@", b"a@{b", b"@{", b"a{b",
        b"a*", b"a[", b"a]", b"a?", b"a:", b"a^", b"a~", b"a\\b", b"a\x7f", b"a\x01", b"\xc3\xa4", b"\xff",
        b"-", b"a//b",
    )  # fmt: skip
    samples = [b"refs/heads/" + name for name in names]
    for name in samples:
        accepted = run_git(tmp_path, "check-ref-format", os.fsdecode(name)).returncode == 0
        assert is_ref_name(name) == accepted, name


PACKED = (
    "# pack-refs with: peeled fully-peeled sorted \n"
    f"{B} refs/heads/a\n{A} refs/heads/m\n^{B}\n{B} refs/tags/t\n"
)


def test_packed_reference() -> None:
    found = find_packed(PACKED.encode(), b"refs/heads/m", SHA1)
    assert found is not None and found.hex() == A
    assert find_packed(PACKED.encode(), b"refs/heads/n", SHA1) is None
    assert find_packed(b"", b"refs/heads/n", SHA1) is None


def test_packed_references_without_the_sorted_trait_may_stand_in_any_order() -> None:
    text = f"{A} refs/heads/m\n{B} refs/heads/a\n"
    found = find_packed(text.encode(), b"refs/heads/a", SHA1)
    assert found is not None and found.hex() == B


@pytest.mark.parametrize(
    "text",
    [
        PACKED[:-1],
        PACKED + "garbage\n",
        PACKED + "\n",
        PACKED.replace("refs/heads/a", "refs/heads/z"),
        PACKED.replace("^", "^^"),
        f"^{B}\n{A} refs/heads/m\n",
        f"{A} refs/heads/m\n^{B}\n^{B}\n",
        f"{A} refs/heads/m\n{B} refs/heads/m\n",
        f"{A}  \n".replace("  ", " "),
        f"{A}\trefs/heads/m\n",
        f"{A[:-1]} refs/heads/m\n",
        f"{'0' * 40} refs/heads/m\n",
        f"{A} refs/heads/\0m\n{A} refs/heads/m\n",
    ],
)
def test_malformed_packed_references(text: str) -> None:
    with pytest.raises(RefFault):
        find_packed(text.encode(), b"refs/heads/m", SHA1)


def head(folder: Path) -> str:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return resolve_head(descriptor, SHA1).name.hex()
    finally:
        os.close(descriptor)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "refs/heads").mkdir(parents=True)
    (tmp_path / "HEAD").write_text("ref: refs/heads/m\n")
    return tmp_path


def test_loose_reference_hides_the_packed_one(store: Path) -> None:
    (store / "packed-refs").write_text(f"{A} refs/heads/m\n")
    assert head(store) == A
    (store / "refs/heads/m").write_text(f"{B}\n")
    assert head(store) == B


def test_directory_or_file_in_the_way_hides_nothing(store: Path) -> None:
    (store / "packed-refs").write_text(f"{A} refs/heads/m\n")
    (store / "refs/heads/m").mkdir()
    assert head(store) == A
    (store / "HEAD").write_text("ref: refs/heads/x/y\n")
    (store / "packed-refs").write_text(f"{A} refs/heads/x/y\n")
    (store / "refs/heads/x").write_text(f"{B}\n")
    assert head(store) == A


def chain(store: Path, length: int) -> None:
    """HEAD and further symbolic references, ``length`` references in all, the last with a name."""
    names = ["HEAD", *(f"refs/heads/{number}" for number in range(1, length))]
    for name, following in pairwise(names):
        (store / name).write_text(f"ref: {following}\n")
    (store / names[-1]).write_text(A)


def test_five_references_are_followed_and_no_sixth(store: Path) -> None:
    chain(store, 5)
    assert head(store) == A
    chain(store, 6)
    with pytest.raises(RefFault) as caught:
        head(store)
    assert caught.value.reason == "head_cycle"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("no_committed_head", "ref: refs/heads/new\n"),
        ("no_committed_head", f"ref: refs/heads/{'long' * 100}\n"),
        ("head_cycle", "ref: refs/heads/loop\n"),
    ],
)
def test_head_that_leads_nowhere(store: Path, reason: str, text: str) -> None:
    (store / "refs/heads/loop").write_text("ref: refs/heads/loop\n")
    (store / "HEAD").write_text(text)
    with pytest.raises(RefFault) as caught:
        head(store)
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/m", "packed-refs", "refs/heads", "refs"])
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_reference_that_is_a_link_or_fifo(store: Path, tmp_path: Path, name: str, kind: str) -> None:
    target = store / name
    if target.exists():
        target.rename(tmp_path / "moved")
    if kind == "link":
        (tmp_path / "moved").touch()
        target.symlink_to(tmp_path / "moved")
    else:
        os.mkfifo(target)
    with pytest.raises((RefFault, Irregular)) as caught:
        head(store)
    assert not isinstance(caught.value, RefFault) or caught.value.reason == "ref_not_regular"


# --- configuration ------------------------------------------------------------------------------------------


def test_config_values() -> None:
    text = (
        b"\xef\xbb\xbf# c\n[Core] ; c\n\tRepositoryFormatVersion = 1 # x\n"
        b'[extensions]objectFormat="sha" 256\\\n\n'
        b'[other "sub\\"]"]\n\tkey = a;b\n[core "x"]\n repositoryformatversion = 9\n[core]\r\n\tbare\r\n'
    )
    settings = parse_config(text)
    assert settings[(b"core", b"repositoryformatversion")] == [b"1"]
    assert settings[(b"extensions", b"objectformat")] == [b"sha 256"]
    assert settings[(b"core", b"bare")] == [None]


def test_config_values_agree_with_git(tmp_path: Path) -> None:
    values = [
        b"plain", b" inner  space ", b'"quoted ; # "', b'a"b c"d', b"tail   # comment", b'"x\\ty"', b"a\\\\b",
        b"one\\\ntwo", b'"one\\\n two"', b"", b'""', b"a\\\"b", b" \t lead", b"x ; y", b'" "x',
    ]  # fmt: skip
    for value in values:
        (tmp_path / "c").write_bytes(b"[core]\n\tv =" + value + b"\n\tw = 1\n")
        expected = run_git(tmp_path, "config", "-z", "--file", "c", "core.v").stdout[:-1]
        assert parse_config((tmp_path / "c").read_bytes())[(b"core", b"v")] == [expected], value


@pytest.mark.parametrize(
    "text",
    [
        b"[core",
        b"[core]]\n",
        b"key = value\n",
        b"[core]\n\t= value\n",
        b"[core]\n\tkey value\n",
        b"[core]\n\t1key = value\n",
        b'[core]\n\tkey = "open\n',
        b"[core]\n\tkey = \\x\n",
        b"[core]\n\tkey = \\",
        b"[core]\n\tkey = a\0b\n",
        b'[core "a\nb"]\n',
        b"\xff\xfe[core]\n",
    ],
)
def test_malformed_config(text: bytes) -> None:
    with pytest.raises(ConfigFault) as caught:
        parse_config(text)
    assert caught.value.reason == "unrecognised_format"


V1 = b"[core]\n\trepositoryformatversion = 1\n[extensions]\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (None, "sha1"),
        (b"", "sha1"),
        (b"[core]\n\trepositoryformatversion = 0\n[extensions]\n\tanything = x\n", "sha1"),
        (V1 + b"\tobjectFormat = sha1\n\trefStorage = files\n", "sha1"),
        (V1 + b"\tobjectFormat = sha256\n\tpartialClone = origin\n\tworktreeConfig\n", "sha256"),
        (V1 + b"\tnoop = x\n\tpreciousObjects = true\n", "sha1"),
        (b"[include]\n\tpath = /dev/zero\n[core]\n\tfsmonitor = ./run\n", "sha1"),
    ],
)
def test_supported_formats(text: bytes | None, name: str) -> None:
    assert object_format_of(text).name == name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[core]\n\trepositoryformatversion = 2\n", "newer_format"),
        (b"[core]\n\trepositoryformatversion = -1\n", "unrecognised_format"),
        (b"[core]\n\trepositoryformatversion\n", "unrecognised_format"),
        (b"[core]\n\trepositoryformatversion = 0\n\trepositoryformatversion = 1\n", "unrecognised_format"),
        (b"[extensions]\n\tobjectFormat = sha256\n", "unrecognised_format"),
        (V1 + b"\tobjectFormat = sha512\n", "unsupported_format"),
        (V1 + b"\tobjectFormat = SHA256\n", "unsupported_format"),
        (V1 + b"\tobjectFormat = sha1\n\tobjectFormat = sha256\n", "unrecognised_format"),
        (V1 + b"\tobjectFormat\n", "unrecognised_format"),
        (V1 + b"\trefStorage = reftable\n", "unsupported_format"),
        (V1 + b"\tcompatObjectFormat = sha1\n", "unsupported_format"),
        (V1 + b"\tunknownThing = 1\n", "unsupported_format"),
    ],
)
def test_unsupported_formats(text: bytes, reason: str) -> None:
    with pytest.raises(ConfigFault) as caught:
        object_format_of(text)
    assert caught.value.reason == reason


# --- files and loose objects --------------------------------------------------------------------------------


def test_files_are_read_within_bounds_and_never_through_links(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    (tmp_path / "l").symlink_to("f")
    os.mkfifo(tmp_path / "p")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert read_file(descriptor, b"f", 5) == b"12345"
        assert read_file(descriptor, b"none", 5) is None
        with pytest.raises(TooLong):
            read_file(descriptor, b"f", 4)
        for name in (b"l", b"p", b"."):
            with pytest.raises(Irregular):
                read_file(descriptor, name, 5)
    finally:
        os.close(descriptor)


def test_pool_keeps_few_files_open_and_notices_a_swap(tmp_path: Path) -> None:
    names = [b"%d" % number for number in range(5)]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(name * 3)
    descriptor = os.open(tmp_path, os.O_RDONLY)
    pool = FilePool(limit=2)
    try:
        files = [StableFile(pool, descriptor, name, os.stat(name, dir_fd=descriptor)) for name in names]
        assert [file.read(1, 9) for file in files] == [name * 2 for name in names]
        (tmp_path / "0").unlink()
        (tmp_path / "0").write_bytes(b"xxx")
        with pytest.raises(StoreChanged):
            files[0].read(0, 3)
        (tmp_path / "4").write_bytes(b"")
        with pytest.raises(StoreChanged):
            files[4].read(0, 3)
    finally:
        pool.close()
        os.close(descriptor)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"blob 5",
        b"blob  5\0",
        b"blob 05\0",
        b"blob 5 \0",
        b"blob -5\0",
        b"blob +5\0",
        b"blob\0",
        b"Blob 5\0",
        b"blub 5\0",
        b" 5\0",
        b"blob 5x\0",
        b"blob " + b"9" * 30 + b"\0",
        b"blob 9223372036854775808\0",
        b"blob \xb2\0",
    ],
)
def test_malformed_loose_headers(text: bytes) -> None:
    with pytest.raises(Malformed):
        parse_header(text)


def test_loose_header() -> None:
    assert parse_header(b"tag 0\0rest") == (b"tag", 0, 6)
    assert parse_header(b"blob 1048576\0") == (b"blob", 1048576, 13)


@pytest.fixture
def loose(tmp_path: Path) -> Callable[[bytes], tuple[LooseObjects, bytes]]:
    """Writes a loose object's file under a name of its own and gives a reader for it."""
    descriptor = os.open(tmp_path, os.O_RDONLY)

    def write(stream: bytes) -> tuple[LooseObjects, bytes]:
        name = bytes.fromhex(A)
        (tmp_path / A[:2]).mkdir(exist_ok=True)
        (tmp_path / A[:2] / A[2:]).write_bytes(stream)
        return LooseObjects(descriptor, lambda: None), name

    return write


@pytest.mark.parametrize("size", [0, 1, 20, 8191, 40_000, 700_000])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_loose_objects_of_many_sizes(
    loose: Callable[[bytes], tuple[LooseObjects, bytes]], size: int, level: int
) -> None:
    data = os.urandom(size // 2).ljust(size, b"z")
    objects, name = loose(zlib.compress(b"blob %d\0" % size + data, level))
    assert objects.info(name) == (b"blob", size)
    assert objects.read(name, size) == (b"blob", data)
    if size:
        with pytest.raises(LimitExceeded):
            objects.read(name, size - 1)
    objects.close()
    assert objects.info(bytes(20)) is None and objects.read(bytes(20), 9) is None


BLOB = b"blob 5\0hello"


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        zlib.compress(BLOB)[:-1],
        zlib.compress(BLOB)[:-5],
        zlib.compress(BLOB) + b"x",
        zlib.compress(BLOB) + zlib.compress(BLOB),
        zlib.compress(BLOB + b"!"),
        zlib.compress(BLOB[:-1]),
        zlib.compress(b"blob 5hello"),
        zlib.compress(b""),
        zlib.compress(BLOB)[:-1] + b"\0",
        BLOB,
        zlib.compress(b"blob 300000\0" + bytes(300_001)),
        zlib.compress(b"blob 300000\0" + bytes(300_000)) + b"x" * 200_000,
    ],
)
def test_malformed_loose_objects(loose: Callable[[bytes], tuple[LooseObjects, bytes]], stream: bytes) -> None:
    objects, name = loose(stream)
    with pytest.raises(Malformed):
        objects.read(name, 1 << 20)
    objects.close()


def test_loose_object_in_many_flushed_pieces(loose: Callable[[bytes], tuple[LooseObjects, bytes]]) -> None:
    packer = zlib.compressobj()
    pieces = [packer.compress(BLOB[:3]), *(packer.flush(zlib.Z_FULL_FLUSH) for _ in range(20_000))]
    pieces += [packer.compress(BLOB[3:]), packer.flush()]
    stream = b"".join(pieces)
    objects, name = loose(stream)
    assert objects.info(name) == (b"blob", 5)
    assert objects.read(name, 5) == (b"blob", b"hello")
    objects.close()
