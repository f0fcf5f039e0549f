"""The core that both isolated readers share: options, scope, path facts, bounds, manifest, writing."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader import scoped_read as core
from reader.scoped_read import (
    MODE_EXECUTABLE,
    MODE_GITLINK,
    MODE_LINK,
    MODE_REGULAR,
    MODE_TREE,
    Bounds,
    Budget,
    Options,
    Report,
    Scope,
    Stop,
    TreeEntry,
)

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reader-report.md"


class Memory:
    """A store of objects in memory; an object that is a `Stop` is one that cannot be used."""

    def __init__(
        self, trees: Mapping[str, Sequence[TreeEntry] | Stop], blobs: Mapping[str, bytes | Stop]
    ) -> None:
        self.trees = trees
        self.blobs = blobs
        self.budget = Budget(Bounds())
        self.read: list[str] = []

    def read_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[TreeEntry] | Stop]]:
        for tree in ids:
            self.read.append(tree)
            found = self.trees[tree]
            if not isinstance(found, Stop):
                self.budget.charge(sum(len(item.name) for item in found))
            yield tree, found

    def blob_sizes(self, ids: Sequence[str]) -> dict[str, int | None]:
        return {blob: None if isinstance(self.blobs[blob], Stop) else len(self.blobs[blob]) for blob in ids}

    def read_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | Stop]]:
        for blob in ids:
            self.read.append(blob)
            found = self.blobs[blob]
            if not isinstance(found, Stop):
                self.budget.charge(len(found))
            yield blob, found

    def judge(self, stop: Stop) -> Stop:
        return stop

    def verify_history(self) -> Iterator[Stop]:
        yield from ()


def entry(name: str | bytes, object_id: str, mode: int = MODE_REGULAR) -> TreeEntry:
    return TreeEntry(name.encode() if isinstance(name, str) else name, mode, object_id)


def snapshot(
    store: Memory, *, scope: Sequence[str] | None = None, sink: core.Materialiser | None = None, **bounds: Any
) -> tuple[list[core.Entry] | None, Stop | None, Report]:
    options = Options(
        ".", None, None if scope is None else Scope(p.encode() for p in scope), None, Bounds(**bounds), "pure"
    )
    report = Report("test", "1", "git", ())
    report.budget = store.budget = Budget(options.bounds)
    try:
        return core.read_snapshot(store, "root", options, report.budget, report, sink), None, report
    except Stop as stop:
        return None, stop, report


# --- Reason codes and options ---------------------------------------------------------------------


def test_reasons_are_those_of_the_documentation() -> None:
    table = DOCS.read_text(encoding="utf-8").split("## Reason codes")[1]
    documented: dict[str, tuple[int, str]] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            for code in re.findall(r"`(\w+)`", cells[0]):
                documented[code] = (int(cells[1].split()[0]), cells[2])
    assert {code: tuple(reason) for code, reason in core.REASONS.items()} == documented


def parse(*argv: str) -> Options:
    parser = core.make_parser("x", "x", ("pure", "native"), "pure")
    return core.parse_options(parser, argv)


def test_defaults_are_those_of_the_documentation(tmp_path: Path) -> None:
    options = parse(str(tmp_path))
    assert options.bounds == Bounds(None, 268435456, 4294967296, 1000000, 256, 120_000_000_000, False, False)
    assert (options.dest, options.scope, options.manifest, options.backend) == (None, None, None, "pure")


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("1", 10**9),
        ("0.5", 5 * 10**8),
        ("2.000000001", 2 * 10**9 + 1),
        ("999999999", 999999999 * 10**9),
    ],
)
def test_deadline_is_a_decimal_number(tmp_path: Path, text: str, nanoseconds: int) -> None:
    assert parse("--deadline", text, str(tmp_path)).bounds.deadline_ns == nanoseconds


@pytest.mark.parametrize(
    "option", ["--max-blob-bytes", "--max-object-bytes", "--max-total-bytes", "--max-entries"]
)
@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "0x10", "1e3", "+1", " 1", "1_000", "٣", "9" * 19])
def test_bounds_are_whole_numbers(tmp_path: Path, option: str, value: str) -> None:
    with pytest.raises(Stop) as caught:
        parse(f"{option}={value}", str(tmp_path))
    assert (caught.value.reason, caught.value.exit_status) == ("usage", 2)


@pytest.mark.parametrize("value", ["-1", "", "x", ".5", "1.", "nan", "inf", "1e3", "1.0000000001"])
def test_bad_deadlines(tmp_path: Path, value: str) -> None:
    with pytest.raises(Stop, match="deadline"):
        parse(f"--deadline={value}", str(tmp_path))


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["REPO", "new", "surplus"],
        ["REPO", "--unknown"],
        ["REPO", "--max-ent", "3"],
        ["REPO", "--backend", "other"],
        ["REPO", "--scope"],
        ["missing"],
        ["file"],
        [""],
        ["REPO", "file"],
        ["REPO", "dangling"],
        ["REPO", ""],
        ["REPO", "--manifest", "file"],
        ["REPO", "--manifest", ""],
        ["REPO", "--scope", "missing"],
        ["REPO", "--scope", "REPO"],
        ["REPO", "--scope", "fifo"],
        ["REPO", "--scope", ""],
    ],
)
def test_wrong_command_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("REPO").mkdir()
    Path("file").touch()
    os.mkfifo("fifo")
    os.symlink("nowhere", "dangling")
    with pytest.raises(Stop) as caught:
        parse(*argv)
    assert caught.value.reason == "usage"
    assert "\n" not in caught.value.detail


def test_repo_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert parse(str(tmp_path / "link")).repo.endswith("link")


# --- Scope ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["a", "a/b", "é", " ", "a b/c\td", "-x", "...", "a\\b", "a\nb", ".git/x"])
def test_scope_paths(path: str) -> None:
    assert Scope([path.encode()]).paths == [path.encode()]


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"/a",
        b"a/",
        b"a//b",
        b"//",
        b".",
        b"..",
        b"./a",
        b"a/.",
        b"a/../b",
        b"../a",
        b"\xff",
        b"a\0b",
    ],
)
def test_bad_scope_paths(path: bytes) -> None:
    with pytest.raises(Stop) as caught:
        Scope([path])
    assert caught.value.reason == "usage"


@pytest.mark.parametrize(
    ("data", "paths"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\0", [b"a"]),
        (b"a\nb\0c", [b"a\nb", b"c"]),
        (b"a\r\n", [b"a\r"]),
    ],
)
def test_scope_files(data: bytes, paths: list[bytes]) -> None:
    assert core.split_scope(data) == paths


@pytest.mark.parametrize("data", [b"\n", b"a\n\nb", b"\0", b"a\0\0"])
def test_an_empty_line_is_an_empty_path(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "scope"
    file.write_bytes(data)
    with pytest.raises(Stop, match="is empty"):
        parse("--scope", str(file), str(tmp_path))


def test_scope_and_paths_are_united(tmp_path: Path) -> None:
    file = tmp_path / "scope"
    file.write_bytes(b"b\na\nb\n")
    scope = parse("--scope", str(file), "--path", "c", "--path", "a", str(tmp_path)).scope
    assert scope is not None
    assert (scope.paths, scope.count) == ([b"a", b"b", b"c"], 3)
    assert scope.sha256 == hashlib.sha256(b"a\0b\0c\0").hexdigest()


def test_an_empty_scope_is_not_the_whole_tree(tmp_path: Path) -> None:
    (tmp_path / "scope").touch()
    scope = parse("--scope", str(tmp_path / "scope"), str(tmp_path)).scope
    assert scope is not None and scope.count == 0


# --- Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        "a/.git/config",
        ".GIT/x",
        ".gIt",
        ".g\u200cit/x",
        ".git\ufeff",
        "\u200d.git",
        ".git./x",
        ".git /x",
        ".git...  .",
        ".git::$INDEX_ALLOCATION/x",
        ".git:stream",
        "git~1",
        "GIT~1/config",
        "a\\.git\\config",
        "..\\x",
        "a\\..\\b",
        ".oak",
        ".oak/oak.db",
        ".OAK/attributes",
        ".Oak/workflows/x",
        ".oa\u212a/x",
        "oak~1/x",
        "a/.oak/attributes",
        ".oak/attributes/x",
        ".oak/workflows",
        ".oak/workflows/.git/x",
        ".oak/attributes.",
    ],
)
def test_unsafe_paths(path: str) -> None:
    assert core.is_unsafe_path(path.encode())


@pytest.mark.parametrize(
    "path",
    [
        "a",
        ".gitignore",
        ".gitattributes",
        "git",
        "x.git",
        ".git2",
        "..a",
        "...",
        ".oak/attributes",
        ".oak/workflows/a/b.yml",
        "oak",
        "a\\b",
        "git~x",
        ".oakley",
        "é",
        "a:b",
    ],
)
def test_safe_paths(path: str) -> None:
    assert not core.is_unsafe_path(path.encode())


def test_names_that_are_not_utf8_are_judged_too() -> None:
    assert core.is_unsafe_path(b"\xff/.git/x")
    assert not core.is_unsafe_path(b"\xff\xfe")


@pytest.mark.parametrize(
    ("paths", "groups"),
    [
        (["a", "b"], []),
        (["a", "A"], [["A", "a"]]),
        (["a/b", "A/c"], [["A/c", "a/b"]]),
        (["a", "A/c"], [["A/c", "a"]]),
        (["e\u0301", "\u00e9"], [["e\u0301", "\u00e9"]]),
        (["straße", "STRASSE"], [["STRASSE", "straße"]]),
        (["x/y/z", "x/Y/z", "x/q"], [["x/Y/z", "x/y/z"]]),
        (["p", "P", "q", "Q"], [["P", "p"], ["Q", "q"]]),
        (["d/a", "D/a", "d/A"], [["D/a", "d/A", "d/a"]]),
        (["a/b", "a"], []),
        (["ab", "a/b"], []),
    ],
)
def test_collisions(paths: list[str], groups: list[list[str]]) -> None:
    raw = sorted(path.encode() for path in paths)
    assert [[path.decode() for path in group] for group in core.find_collisions(raw)] == groups


NAMES = st.text(alphabet="aAbéÉe\u0301\u212akKß", min_size=1, max_size=3)


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=8, unique=True))
def test_collisions_against_the_definition(paths: list[str]) -> None:
    """Two paths are in one group when a chain of pairs leads from one to the other; a pair collides at
    some level.
    """

    def fold(text: str) -> str:
        return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())

    def collide(one: str, other: str) -> bool:
        a, b = one.split("/"), other.split("/")
        for depth in range(1, min(len(a), len(b)) + 1):
            if a[:depth] != b[:depth] and [fold(x) for x in a[:depth]] == [fold(x) for x in b[:depth]]:
                return True
        return False

    groups: list[set[str]] = [{path} for path in paths]
    for one in paths:
        for other in paths:
            if collide(one, other):
                joined = [group for group in groups if one in group or other in group]
                groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    expected = sorted(sorted(p.encode() for p in group) for group in groups if len(group) > 1)
    assert core.find_collisions([path.encode() for path in paths]) == expected


def test_collisions_of_very_deep_paths() -> None:
    deep = "/".join(["d"] * 5000)
    assert core.find_collisions([f"{deep}/x".encode(), f"{deep}/X".encode()]) != []


# --- Reading --------------------------------------------------------------------------------------


BASIC = {
    "root": [
        entry("a", "blob-a"),
        entry("d", "tree-d", MODE_TREE),
        entry("l", "blob-l", MODE_LINK),
        entry("m", "module", MODE_GITLINK),
        entry("x", "blob-a", MODE_EXECUTABLE),
    ],
    "tree-d": [entry("b", "blob-b"), entry("e", "tree-e", MODE_TREE)],
    "tree-e": [entry("c", "blob-a")],
}
BLOBS: dict[str, bytes | Stop] = {"blob-a": b"A", "blob-b": b"BB" * 10, "blob-l": b"a"}


def test_the_whole_tree() -> None:
    entries, stop, report = snapshot(Memory(BASIC, BLOBS))
    assert stop is None and entries is not None
    assert [e.path for e in entries] == [b"a", b"d/b", b"d/e/c", b"l", b"m", b"x"]
    assert report.findings.nonregular == {b"l", b"m"}
    assert entries[3].target == b"a"
    assert (entries[4].size, entries[4].sha256) == (None, None)
    assert report.budget.tree_entries == 8


def test_manifest_digest_is_that_of_the_documentation() -> None:
    entries, _, _ = snapshot(Memory(BASIC, BLOBS), scope=["a", "d", "m"])
    assert entries is not None
    digest = hashlib.sha256(b"A").hexdigest()
    lines = [f"100644 1 {digest} a", "040000 - - d", "160000 - - m"]
    text = "".join(f"{line}\0" for line in lines).encode()
    assert core.manifest_sha256(entries) == hashlib.sha256(text).hexdigest()


def test_a_scope_reads_only_what_it_names() -> None:
    store = Memory(
        {**BASIC, "tree-e": Stop("tree_mismatch", "x")}, {**BLOBS, "blob-a": Stop("blob_mismatch", "x")}
    )
    entries, stop, _ = snapshot(store, scope=["d/b"])
    assert stop is None and entries is not None
    assert store.read == ["root", "tree-d", "blob-b"]


@pytest.mark.parametrize(
    ("scope", "missing", "found"),
    [
        (["none"], [b"none"], []),
        (["a/under/file"], [b"a/under/file"], []),
        (["l/x", "m/x"], [b"l/x", b"m/x"], []),
        (["d", "d/b", "d/none"], [b"d/none"], [b"d", b"d/b"]),
        (["d/e/c/deeper"], [b"d/e/c/deeper"], []),
        ([], [], []),
    ],
)
def test_missing_and_directories(scope: list[str], missing: list[bytes], found: list[bytes]) -> None:
    entries, stop, report = snapshot(Memory(BASIC, BLOBS), scope=scope)
    assert stop is None and entries is not None
    assert sorted(report.findings.missing) == missing
    assert [e.path for e in entries] == found
    assert report.findings.nonregular == {path for path in found if path == b"d"}


def test_what_lies_behind_an_unusable_tree_is_not_called_missing() -> None:
    store = Memory({**BASIC, "tree-d": Stop("content_absent", "gone")}, BLOBS)
    _, stop, report = snapshot(store, scope=["d/b", "zzz"])
    assert stop is not None and stop.reason == "content_absent"
    assert report.findings.missing == {b"zzz"}


def test_oversize_is_reported_and_not_read() -> None:
    store = Memory(BASIC, BLOBS)
    entries, stop, report = snapshot(store, max_blob_bytes=19)
    assert stop is None and entries is not None
    assert report.findings.oversize == {b"d/b"}
    assert (entries[1].size, entries[1].sha256) == (20, None)
    assert "blob-b" not in store.read
    entries, _, report = snapshot(Memory(BASIC, BLOBS), max_blob_bytes=20)
    assert report.findings.oversize == set()


FACTS = {"a": "oversize", "l": "nonregular", ".git": "unsafe", "zz": "missing"}


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ({"max_entries": 0}, "bound_entries"),
        ({"max_total_bytes": 0}, "bound_total_bytes"),
        ({"max_depth": 0}, "bound_depth"),
        ({"max_total_bytes": 9}, "bound_total_bytes"),
    ],
)
@pytest.mark.parametrize("scoped", [False, True])
def test_path_facts_come_before_bounds(bounds: dict[str, int], reason: str, scoped: bool) -> None:
    trees = {
        "root": [
            entry(".git", "blob-s"),
            entry("C", "blob-s"),
            entry("a", "blob-b"),
            entry("c", "blob-s"),
            entry("l", "blob-s", MODE_LINK),
            entry("s", "blob-s"),
        ]
    }
    store = Memory(trees, {"blob-b": b"B" * 100, "blob-s": b"S" * 9})
    scope = [".git", "C", "a", "c", "l", "s", "zz"] if scoped else None
    _, stop, report = snapshot(store, scope=scope, max_blob_bytes=99, **bounds)
    assert stop is not None and (stop.reason, stop.exit_status) == (reason, 77)
    found = report.findings
    assert (found.oversize, found.nonregular, found.unsafe) == ({b"a"}, {b"l"}, {b".git"})
    assert found.colliding == [[b"C", b"c"]]
    assert found.missing == ({b"zz"} if scoped else set())


def test_facts_of_deep_scope_paths_come_before_bounds() -> None:
    trees = {
        "root": [entry("a", "t1", MODE_TREE), entry("z", "small")],
        "t1": [entry("b", "t2", MODE_TREE)],
        "t2": [entry("c", "big")],
    }
    for bounds in ({"max_entries": 1}, {"max_depth": 1}, {"max_total_bytes": 1}):
        store = Memory(trees, {"big": b"B" * 50, "small": b""})
        _, stop, report = snapshot(store, scope=["a/b/c"], max_blob_bytes=10, **bounds)
        assert stop is not None and stop.is_bound
        assert report.findings.oversize == {b"a/b/c"}


@pytest.mark.parametrize(
    ("bounds", "passes"),
    [
        ({"max_entries": 8}, True),
        ({"max_entries": 7}, False),
        ({"max_depth": 3}, True),
        ({"max_depth": 2}, False),
        ({"max_total_bytes": 8 + 22}, True),
        ({"max_total_bytes": 8 + 20}, False),
        ({"max_object_bytes": 20}, True),
        ({"max_object_bytes": 19}, False),
    ],
)
def test_bounds_are_inclusive(bounds: dict[str, int], passes: bool) -> None:
    _, stop, _ = snapshot(Memory(BASIC, BLOBS), **bounds)
    assert (stop is None) is passes
    assert stop is None or (stop.exit_status == 77 and stop.reason.startswith("bound_"))


def test_a_shared_tree_counts_as_often_as_it_is_expanded() -> None:
    """Twenty levels of two links would be a million paths; the bound ends it early, and nothing recurses."""
    trees = {
        f"t{n}": [entry("a", f"t{n + 1}", MODE_TREE), entry("b", f"t{n + 1}", MODE_TREE)] for n in range(60)
    }
    trees["t60"] = [entry("f", "blob-a")]
    trees["root"] = trees.pop("t0")
    _, stop, report = snapshot(Memory(trees, BLOBS), max_entries=10_000)
    assert stop is not None and stop.reason == "bound_entries"
    assert report.budget.tree_entries < 30_000


def test_long_names_in_deep_trees_are_bounded() -> None:
    """A megabyte a name, 200 levels, a thousand files: a few megabytes of trees, 200 gigabytes of paths."""
    name = "n" * 1_000_000
    trees = {f"t{n}": [entry(name, f"t{n + 1}", MODE_TREE)] for n in range(200)}
    trees["t200"] = [entry(f"f{n}", "blob-a") for n in range(1000)]
    trees["root"] = trees.pop("t0")
    _, stop, _ = snapshot(Memory(trees, BLOBS))
    assert stop is not None and stop.reason == "bound_entries"


def test_a_very_deep_tree_needs_no_stack() -> None:
    trees: dict[str, list[TreeEntry]] = {f"t{n}": [entry("d", f"t{n + 1}", MODE_TREE)] for n in range(4_000)}
    trees["t4000"] = [entry("f", "blob-a")]
    trees["root"] = trees.pop("t0")
    _, stop, _ = snapshot(Memory(trees, BLOBS))
    assert stop is not None and stop.reason == "bound_depth"
    entries, stop, _ = snapshot(
        Memory(trees, BLOBS), max_depth=30_000, scope=["/".join(["d"] * 4_000 + ["f"])]
    )
    assert stop is None and entries is not None and len(entries) == 1


BAD = Stop("blob_mismatch", "bad")
GONE = Stop("content_absent", "gone")


@pytest.mark.parametrize(
    ("blobs", "bounds", "reason"),
    [
        ({"1": GONE, "2": BAD}, {}, "blob_mismatch"),
        ({"1": BAD, "2": b"x" * 50}, {"max_total_bytes": 40}, "blob_mismatch"),
        ({"1": b"x" * 50, "2": BAD}, {"max_total_bytes": 40}, "bound_total_bytes"),
        ({"1": b"x" * 50, "2": BAD}, {"max_object_bytes": 40}, "blob_mismatch"),
        ({"1": GONE, "2": b"x" * 50}, {"max_object_bytes": 40}, "bound_object_bytes"),
        ({"1": Stop("unsupported_format", "codec"), "2": BAD}, {}, "blob_mismatch"),
        ({"1": GONE, "2": b""}, {}, "content_absent"),
    ],
)
def test_three_beats_seventy_seven(blobs: dict[str, Any], bounds: dict[str, int], reason: str) -> None:
    fresh = {key: Stop(v.reason, v.detail) if isinstance(v, Stop) else v for key, v in blobs.items()}
    _, stop, _ = snapshot(Memory({"root": [entry("p1", "1"), entry("p2", "2")]}, fresh), **bounds)
    assert stop is not None and stop.reason == reason


def test_a_finding_names_its_path() -> None:
    _, stop, _ = snapshot(Memory({"root": [entry("p\n1", "1")]}, {"1": Stop("blob_mismatch", "bad")}))
    assert stop is not None and stop.detail == '"p\\n1": bad'


def test_bad_tree_is_reported_with_facts_of_the_others() -> None:
    trees = {
        "root": [entry("a", "big"), entry("t", "bad", MODE_TREE), entry("u", "good", MODE_TREE)],
        "bad": Stop("tree_mismatch", "bad"),
        "good": [entry("l", "big", MODE_LINK)],
    }
    _, stop, report = snapshot(Memory(trees, {"big": b"B" * 50}), max_blob_bytes=10)
    assert stop is not None and stop.reason == "tree_mismatch"
    assert report.findings.oversize == {b"a", b"u/l"}
    assert report.findings.nonregular == {b"u/l"}


def test_a_link_target_over_a_bound_is_not_read_and_ends_nothing() -> None:
    trees = {"root": [entry("l", "target", MODE_LINK)]}
    for size, bounds in ((50, {"max_object_bytes": 40}), (50, {"max_total_bytes": 40}), (70_000, {})):
        entries, stop, report = snapshot(Memory(trees, {"target": b"t" * size}), **bounds)
        assert stop is None and entries is not None
        assert (entries[0].size, entries[0].sha256, entries[0].target) == (size, None, None)
        assert report.findings.nonregular == {b"l"}


def test_deadline() -> None:
    store = Memory(BASIC, BLOBS)
    options = Options(".", None, None, None, Bounds(deadline_ns=0), "pure")
    report = Report("test", "1", "git", ())
    report.budget = store.budget = Budget(options.bounds, started_ns=0)
    with pytest.raises(Stop) as caught:
        core.read_snapshot(store, "root", options, report.budget, report, None)
    assert (caught.value.reason, caught.value.exit_status) == ("deadline", 77)


# --- Writing --------------------------------------------------------------------------------------


@contextlib.contextmanager
def materialiser(dest: Path) -> Iterator[core.Materialiser]:
    with contextlib.ExitStack() as cleanup:
        yield core.Materialiser(str(dest), cleanup)


def test_files_are_written(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    with materialiser(dest) as sink:
        _, stop, _ = snapshot(Memory(BASIC, BLOBS), sink=sink)
        assert stop is None
        sink.keep()
    assert (dest / "d/b").read_bytes() == b"BB" * 10
    assert os.readlink(dest / "l") == "a"
    assert os.access(dest / "x", os.X_OK) and not os.access(dest / "a", os.X_OK)
    assert not (dest / "m").exists()


def test_a_destination_that_is_not_kept_disappears(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    with materialiser(dest) as sink:
        _, stop, _ = snapshot(Memory(BASIC, {**BLOBS, "blob-l": Stop("blob_mismatch", "bad")}), sink=sink)
        assert stop is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "trees",
    [
        {"root": [entry(".git", "t", MODE_TREE)], "t": [entry("config", "blob-a")]},
        {"root": [entry("A", "blob-a"), entry("a", "blob-a")]},
        {"root": [entry(".oak", "t", MODE_TREE)], "t": [entry("oak.db", "blob-a")]},
    ],
)
def test_unsafe_paths_are_not_written(tmp_path: Path, trees: dict[str, list[TreeEntry]]) -> None:
    with materialiser(tmp_path / "dest") as sink:
        _, stop, report = snapshot(Memory(trees, BLOBS), sink=sink)
        assert stop is not None and (stop.reason, stop.exit_status) == ("unsafe_path", 1)
    assert list(tmp_path.iterdir()) == []
    entries, stop, report = snapshot(Memory(trees, BLOBS))
    assert stop is None and entries is not None
    colliding = {path for group in report.findings.colliding for path in group}
    assert {e.path for e in entries} == report.findings.unsafe | colliding


def test_an_unsafe_path_comes_before_a_bound(tmp_path: Path) -> None:
    trees = {"root": [entry("A", "blob-b"), entry("a", "blob-b")]}
    with materialiser(tmp_path / "dest") as sink:
        _, stop, _ = snapshot(Memory(trees, BLOBS), sink=sink, max_object_bytes=1)
        assert stop is not None and stop.reason == "unsafe_path"


@pytest.mark.parametrize(
    ("name", "mode", "content"),
    [
        ("n" * 300, MODE_REGULAR, b""),
        ("l", MODE_LINK, b""),
        ("l", MODE_LINK, b"a\0b"),
        ("l", MODE_LINK, b"t" * 5000),
        ("l", MODE_LINK, b"t" * 70_000),
    ],
)
def test_what_the_file_system_refuses(tmp_path: Path, name: str, mode: int, content: bytes) -> None:
    store = Memory({"root": [entry("a", "ok"), entry(name, "blob", mode)]}, {"blob": content, "ok": b"fine"})
    with materialiser(tmp_path / "dest") as sink:
        _, stop, _ = snapshot(store, sink=sink)
        assert stop is not None and (stop.reason, stop.exit_status) == ("destination", 77)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """Someone swaps a directory for a link while the reader writes."""
    outside = tmp_path / "outside"
    outside.mkdir()
    with materialiser(tmp_path / "dest") as sink:
        sink.file(core.Entry(b"d/one", MODE_REGULAR, ""), b"1")
        (tmp_path / "dest/d/one").unlink()
        (tmp_path / "dest/d").rmdir()
        (tmp_path / "dest/d").symlink_to(outside)
        with pytest.raises(Stop) as caught:
            sink.file(core.Entry(b"d/two", MODE_REGULAR, ""), b"2")
        assert caught.value.reason == "destination"
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "dest").exists()


def test_a_destination_that_appears_is_left_alone(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    with materialiser(dest) as sink:
        dest.mkdir()
        (dest / "mine").touch()
        with pytest.raises(Stop) as caught:
            sink.create()
        assert caught.value.reason == "usage"
    assert (dest / "mine").exists()


def test_manifest_file(tmp_path: Path) -> None:
    entries, _, _ = snapshot(Memory(BASIC, BLOBS))
    assert entries is not None
    core.write_manifest(str(tmp_path / "m"), entries)
    lines = (tmp_path / "m").read_text().splitlines()
    assert [json.loads(line)["path"] for line in lines] == ["a", "d/b", "d/e/c", "l", "m", "x"]
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    with pytest.raises(Stop) as caught:
        core.write_manifest(str(tmp_path / "m"), entries)
    assert caught.value.reason == "usage"
    with pytest.raises(Stop) as caught:
        core.write_manifest(str(tmp_path / "none" / "m"), entries)
    assert caught.value.reason == "destination"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_paths_and_targets_that_are_not_utf8() -> None:
    store = Memory({"root": [entry(b"\xff", "t", MODE_LINK)]}, {"t": b"\xfe"})
    entries, _, report = snapshot(store)
    assert entries is not None
    assert core.entry_json(entries[0]) == {
        "path_b64": "/w==",
        "mode": "120000",
        "size": 1,
        "sha256": hashlib.sha256(b"\xfe").hexdigest(),
        "target_b64": "/g==",
    }
    assert report.as_json(None)["nonregular_paths"] == [{"path_b64": "/w=="}]


# --- The report -----------------------------------------------------------------------------------


def test_source_digest_is_that_of_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_bytes(b"two")
    (tmp_path / "a.py").write_bytes(b"1")
    expected = hashlib.sha256(b"a.py\0001\0001" + b"b.py\0003\0two").hexdigest()
    assert core.source_sha256([str(tmp_path / "b.py"), str(tmp_path / "a.py")]) == expected


def test_details_are_one_printable_line() -> None:
    stop = Stop("usage", "a\nb\x1b[31m\ud800é" + "x" * 1000)
    assert stop.detail.isascii() and stop.detail.isprintable() and len(stop.detail) <= 400


def failing(error: BaseException) -> core.Reader:
    def fail(*_: Any) -> core.Snapshot:
        raise error

    return core.Reader("test", "1", "git", "test", "test", ("pure",), "pure", (), fail)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "memory"),
        (RecursionError(), "memory"),
        (PermissionError(13, "Permission denied", "/secret"), "read_error"),
        (KeyboardInterrupt(), "instrument_failed"),
        (ValueError("secret"), "instrument_failed"),
        (Stop("deadline", "late"), "deadline"),
    ],
)
def test_every_failure_is_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException, reason: str
) -> None:
    status = core.main(failing(error), [str(tmp_path)])
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (status, report["exit_status"], report["reason"], report["outcome"]) == (
        77,
        77,
        reason,
        "unmeasured",
    )
    assert printed.err.count("\n") == 1 and "secret" not in printed.err + printed.out


def test_usage_is_a_report_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert core.main(failing(ValueError()), ["--no-such"]) == 2
    printed = capsys.readouterr()
    report = json.loads(printed.out)
    assert (report["exit_status"], report["outcome"], report["reason"]) == (2, "usage", "usage")
    assert printed.err.count("\n") == 1
