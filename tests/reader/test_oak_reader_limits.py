"""Scope, bounds, writing and manifest files of the Oak reader, as a whole and in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from oak_store import (
    EMPTY,
    SAMPLE,
    File,
    Store,
    frame,
    h,
    make,
    outcome,
    paths,
    read,
    script,
    tree_bytes,
    write,
)

from reader import oak_sqlite_reader


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "repo").close()


# --- Scope ----------------------------------------------------------------------------------------


def test_scope_file_of_the_script(repo: Path, tmp_path: Path) -> None:
    scope = tmp_path / "scope"
    scope.write_bytes(b"run.sh\0dir/inner.txt\0dir\0link\0none\0run.sh\0")
    status, report, _ = script(repo, "--scope", scope, "--path", "empty", "--manifest", "-")
    assert status == 0
    assert paths(report) == ["dir", "dir/inner.txt", "empty", "link", "run.sh"]
    assert report["entries"][0] == {"path": "dir", "mode": "040000", "size": None, "sha256": None}
    assert (report["nonregular_paths"], report["missing_paths"]) == (["dir", "link"], ["none"])
    names = ["dir", "dir/inner.txt", "empty", "link", "none", "run.sh"]
    digest = hashlib.sha256("".join(f"{name}\0" for name in names).encode()).hexdigest()
    assert report["scope"] == {"count": 6, "sha256": digest}


def test_an_empty_scope_reads_nothing(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "scope").touch()
    report = read(repo, "--scope", str(tmp_path / "scope"), "--manifest", "-")
    assert (outcome(report), report["entries"]) == ((0, None), [])
    assert report["verified"] == {"commits": 1, "trees": 1}


@pytest.mark.parametrize("path", ["../x", "/x", "x/", "a//b", ".", ""])
def test_usage_of_the_script(repo: Path, path: str) -> None:
    status, report, stderr = script(repo, "--path", path)
    assert (status, report["outcome"], report["reason"]) == (2, "usage", "usage")
    assert stderr.startswith("oak_sqlite_reader: usage: ")


def test_a_scope_that_is_not_utf8(repo: Path) -> None:
    status, report, _ = script(os.fsencode(repo), "--path", b"\xff")  # type: ignore[arg-type]
    assert (status, report["reason"]) == (2, "usage")


def test_what_is_out_of_scope_is_never_decoded(tmp_path: Path) -> None:
    """Everything that the scope does not name is corrupt, and the read is good."""
    store = make(
        tmp_path / "repo", {"in/a": b"a", "out/b": b"bb", "c": b"ccc", "out/deep/d": b"dddd", "l": b"e"}
    )
    store.run("UPDATE blobs SET content=x'ff', codec=1 WHERE hash<>?", h(b"a"))
    keep = tree_bytes([("blob", "a", h(b"a"), "regular")])
    root = store.db.execute("SELECT manifest_hash FROM commits").fetchone()[0]
    store.run("UPDATE trees SET content=x'ff' WHERE hash NOT IN (?, ?)", h(keep), root)
    repo = store.close()
    report = read(repo, "--path", "in/a", "--path", "in/none", "--deep", "--complete")
    assert (outcome(report), report["missing_paths"]) == ((0, None), ["in/none"])
    assert report["verified"] == {"commits": 1, "trees": 2, "blobs": 1}
    assert outcome(read(repo, "--path", "c")) == (3, "blob_mismatch")
    assert outcome(read(repo, "--path", "out/b")) == (3, "tree_mismatch")


# --- Path facts before everything else ------------------------------------------------------------


def test_facts_are_reported_with_every_outcome(tmp_path: Path) -> None:
    files: dict[str, File | bytes] = {
        "big": b"B" * 5000,
        "link": File(b"big", "symlink"),
        "Case": b"1",
        "case": b"2",
        ".git/config": b"3",
        "small": b"small",
    }
    store = make(tmp_path / "repo", files)
    store.run("UPDATE blobs SET content=x'00', codec=0, size=1 WHERE hash=?", h(b"small"))
    repo = store.close()
    scope = [option for name in [*files, "none"] for option in ("--path", name)]
    for bounds, expected in (
        ((), (3, "blob_mismatch")),
        (("--max-entries", "0"), (77, "bound_entries")),
        (("--max-depth", "1"), (77, "bound_depth")),
        (("--max-total-bytes", "0"), (77, "bound_total_bytes")),
    ):
        report = read(repo, *scope, "--max-blob-bytes", "4999", *bounds)
        assert outcome(report) == expected
        assert report["oversize_paths"] == ["big"]
        assert report["nonregular_paths"] == ["link"]
        assert report["colliding_paths"] == [["Case", "case"]]
        assert report["unsafe_paths"] == [".git/config"]
        assert report["missing_paths"] == ["none"]


def test_an_oversize_blob_is_not_decoded(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", {"big": b"B" * 5000})
    store.run("UPDATE blobs SET content=x'ff'")
    repo = store.close()
    report = read(repo, "--max-blob-bytes", "4999", "--max-object-bytes", "4000", "--manifest", "-")
    assert (outcome(report), report["oversize_paths"]) == ((0, None), ["big"])
    assert (report["entries"][0]["size"], report["entries"][0]["sha256"]) == (5000, None)
    assert outcome(read(repo, "--max-blob-bytes", "5000"))[0] in (3, 77)


# --- Bounds, exactly at and one over --------------------------------------------------------------


@pytest.mark.parametrize("scoped", [False, True])
@pytest.mark.parametrize("legacy", [False, True])
def test_bounds_exactly(tmp_path: Path, scoped: bool, legacy: bool) -> None:
    store = Store(tmp_path / "repo")
    files: dict[str, File | bytes] = {"a/b/c": b"c" * 900, "a/d": b"d" * 100}
    store.commit(store.files(files, legacy=legacy))
    b_tree = len(f"blob\tc\t{EMPTY}\tregular")
    a_tree = len(f"tree\tb\t{EMPTY}\ttree\nblob\td\t{EMPTY}\tregular")
    root = len(f"tree\ta\t{EMPTY}\ttree")
    total = b_tree + a_tree + root + 1000
    repo = store.close()
    scope = ("--path", "a/b/c", "--path", "a/d") if scoped else ()
    for option, exact, reason in (
        ("--max-object-bytes", 900, "bound_object_bytes"),
        ("--max-total-bytes", total, "bound_total_bytes"),
        ("--max-entries", 4, "bound_entries"),
        ("--max-depth", 3, "bound_depth"),
        ("--max-blob-bytes", 900, None),
    ):
        good = read(repo, *scope, option, str(exact))
        assert outcome(good) == (0, None)
        assert good["oversize_paths"] == []
        assert good["counts"] == {
            "entries": 2,
            "tree_entries": 4,
            "bytes_decoded": total,
            "objects_verified": 6,
        }
        over = read(repo, *scope, option, str(exact - 1))
        assert outcome(over) == ((0, None) if reason is None else (77, reason))
        assert over["oversize_paths"] == ([] if reason else ["a/b/c"])


def test_a_tree_over_the_object_bound(tmp_path: Path) -> None:
    names = {f"d/{'n' * 100}{number}": b"" for number in range(30)}
    for legacy in (False, True):
        store = Store(tmp_path / str(legacy))
        store.commit(store.files({"x": b"x", **names}, legacy=legacy))
        size = len(tree_bytes([("blob", name[2:], EMPTY, "regular") for name in names]))
        repo = store.close()
        assert outcome(read(repo, "--max-object-bytes", str(size))) == (0, None)
        assert outcome(read(repo, "--max-object-bytes", str(size - 1))) == (77, "bound_object_bytes")
        assert outcome(read(repo, "--max-object-bytes", str(size - 1), "--path", "x")) == (0, None)


def test_a_mismatch_found_beats_a_bound_met_later(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", {"a": b"aaaa", "b": b"b" * 1000, "ok": b"ok"})
    store.run("UPDATE blobs SET content=x'00000000' WHERE hash=?", h(b"aaaa"))
    repo = store.close()
    assert outcome(read(repo, "--max-object-bytes", "999")) == (3, "blob_mismatch")
    report = read(repo, "--path", "b", "--path", "ok", "--max-object-bytes", "999")
    assert outcome(report) == (77, "bound_object_bytes")


def test_invalid_beats_absent(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", {"a": b"aaaa", "b": b"bbbb", "ok": b"ok"})
    store.run("UPDATE blobs SET content=x'00000000' WHERE hash=?", h(b"bbbb"))
    store.run("DELETE FROM blobs WHERE hash=?", h(b"aaaa"))
    assert outcome(read(store.close())) == (3, "blob_mismatch")


def test_bombs(tmp_path: Path) -> None:
    """Little in the file, much when decoded: the bound ends it before the memory is taken."""
    packed = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\0" * 4000 + b"\x03\x00\x10\0"
    store = make(tmp_path / "repo", {"f": b"f", "d/g": b"g"})
    store.run("UPDATE blobs SET content=?, codec=1, size=500000000 WHERE hash=?", packed, h(b"f"))
    store.run(
        "UPDATE trees SET content=? WHERE hash=?", packed, h(tree_bytes([("blob", "g", h(b"g"), "regular")]))
    )
    repo = store.close()
    assert outcome(read(repo, "--path", "f")) == (77, "bound_object_bytes")
    bounded = ("--max-object-bytes", "1000000")
    assert outcome(read(repo, "--path", "d/g", *bounded)) == (77, "bound_object_bytes")


def test_a_million_paths_from_twenty_trees(tmp_path: Path) -> None:
    store = Store(tmp_path / "repo")
    tree = store.files({"f": b"f"})
    for _ in range(20):
        tree = store.tree([("tree", "a", tree, "tree"), ("tree", "b", tree, "tree")])
    store.commit(tree)
    repo = store.close()
    assert outcome(read(repo, "--max-entries", "5000")) == (77, "bound_entries")
    report = read(repo, "--path", "/".join(["a"] * 20 + ["f"]), "--max-depth", "21")
    assert outcome(report) == (0, None)


def test_the_deadline_of_the_script(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", {f"f{n}": os.urandom(400_000) for n in range(40)})
    repo = store.close()
    status, report, _ = script(repo, "--deadline", "0.3")
    assert (status, report["reason"]) == (77, "deadline")
    assert report["duration_ns"] < 1_500_000_000
    assert outcome(read(repo, "--deadline", "0")) == (77, "deadline")


def test_the_deadline_inside_sqlite(tmp_path: Path) -> None:
    """One long statement, no row: only the progress handler or the timer can end it."""
    store = make(tmp_path / "repo")
    store.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<400000)"
        " INSERT INTO blobs SELECT printf('%064x', i), zeroblob(100), 100, 0 FROM n"
    )
    report = read(store.close(), "--deadline", "0.2")
    assert outcome(report) == (77, "deadline")
    assert report["duration_ns"] < 1_500_000_000


# --- Writing --------------------------------------------------------------------------------------


def test_writing(repo: Path, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    assert script(repo, dest)[0] == 0
    found = {str(p.relative_to(dest)): p for p in dest.rglob("*") if p.is_symlink() or not p.is_dir()}
    assert set(found) == set(SAMPLE)
    for path, item in SAMPLE.items():
        file = item if isinstance(item, File) else File(item)
        if file.mode == "symlink":
            assert os.fsencode(os.readlink(found[path])) == file.content
        else:
            assert found[path].read_bytes() == file.content
            assert bool(found[path].stat().st_mode & 0o100) is (file.mode == "executable")


def test_writing_a_scope(repo: Path, tmp_path: Path) -> None:
    report = write(repo, tmp_path / "dest", "--path", "dir/inner.txt", "--path", "dir", "--path", "none")
    assert outcome(report) == (0, None)
    assert [str(p.relative_to(tmp_path / "dest")) for p in sorted((tmp_path / "dest").rglob("*"))] == [
        "dir",
        "dir/inner.txt",
    ]


@pytest.mark.parametrize("kind", ["file", "directory", "dangling link"])
def test_an_existing_destination(repo: Path, tmp_path: Path, kind: str) -> None:
    dest = tmp_path / "dest"
    {"file": dest.touch, "directory": dest.mkdir, "dangling link": lambda: dest.symlink_to("nowhere")}[kind]()
    assert outcome(write(repo, dest)) == (2, "usage")
    assert os.path.lexists(dest) and not (tmp_path / "nowhere").exists()


def test_a_destination_without_a_parent(repo: Path, tmp_path: Path) -> None:
    assert outcome(write(repo, tmp_path / "none" / "dest")) == (77, "destination")


@pytest.mark.parametrize(
    ("files", "unsafe"),
    [
        ({".oak/oak.db": b"x"}, True),
        ({".OAK/oak.db": b"x"}, True),
        ({"a/.git/config": b"x"}, True),
        ({".g\u200cit/config": b"x"}, True),
        ({"GIT~1/config": b"x"}, True),
        ({"readme": b"x", "README": b"y"}, True),
        ({"dir/a": b"x", "Dir/b": b"y"}, True),
        ({".oak/attributes": b"x", ".oak/workflows/ci/test.yml": b"y"}, False),
        ({".gitignore": b"x"}, False),
    ],
)
def test_unsafe_paths(tmp_path: Path, files: dict[str, File | bytes], unsafe: bool) -> None:
    repo = make(tmp_path / "repo", files).close()
    dest = tmp_path / "dest"
    assert outcome(write(repo, dest)) == ((1, "unsafe_path") if unsafe else (0, None))
    assert dest.exists() is not unsafe
    report = read(repo, "--manifest", "-")
    assert (outcome(report), sorted(paths(report))) == ((0, None), sorted(files))
    assert bool(report["unsafe_paths"] or report["colliding_paths"]) is unsafe


def test_links_lead_nowhere(tmp_path: Path) -> None:
    """A link out of the destination is written as it is, after all files, and never followed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    files: dict[str, File | bytes] = {
        "a": File(os.fsencode(outside), "symlink"),
        "b/up": File(b"../../outside/made", "symlink"),
        "b/z": b"z",
    }
    repo = make(tmp_path / "repo", files).close()
    assert outcome(write(repo, tmp_path / "dest")) == (0, None)
    assert list(outside.iterdir()) == []
    assert os.readlink(tmp_path / "dest" / "b" / "up") == "../../outside/made"


@pytest.mark.parametrize("target", [b"", b"a\0b", b"t" * 5000])
def test_impossible_links(tmp_path: Path, target: bytes) -> None:
    store = Store(tmp_path / "repo")
    if target:
        store.blob(target)
    store.commit(
        store.tree([("blob", "f", store.blob(b"f"), "regular"), ("blob", "l", h(target), "symlink")])
    )
    repo = store.close()
    assert outcome(read(repo)) == (0, None)
    assert outcome(write(repo, tmp_path / "dest")) == (77, "destination")
    assert not (tmp_path / "dest").exists()


def test_a_failed_read_leaves_no_destination(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", {"a": b"a" * 10, "z": b"z" * 10, "ok": b"ok"})
    store.run("UPDATE blobs SET content=zeroblob(10) WHERE hash=?", h(b"z" * 10))
    repo = store.close()
    for options in ((), ("--max-total-bytes", "300"), ("--path", "ok", "--path", "z")):
        report = write(repo, tmp_path / "dest", *options)
        assert report["exit_status"] in (3, 77)
        assert not (tmp_path / "dest").exists()


def test_oversize_files_are_left_out(tmp_path: Path) -> None:
    repo = make(tmp_path / "repo", {"big": b"B" * 100, "small": b"s"}).close()
    assert outcome(write(repo, tmp_path / "dest", "--max-blob-bytes", "99")) == (0, None)
    assert [path.name for path in (tmp_path / "dest").iterdir()] == ["small"]


# --- The manifest file ----------------------------------------------------------------------------


def test_manifest_file(repo: Path, tmp_path: Path) -> None:
    file = tmp_path / "manifest"
    report = read(repo, "--manifest", str(file))
    listed = read(repo, "--manifest", "-")
    assert "entries" not in report
    assert [json.loads(line) for line in file.read_text().splitlines()] == listed["entries"]
    assert report["manifest_sha256"] == listed["manifest_sha256"]
    assert outcome(read(repo, "--manifest", str(file))) == (2, "usage")


def test_no_manifest_file_unless_all_is_well(tmp_path: Path) -> None:
    store = make(tmp_path / "repo", {"a": b"a" * 10, "ok": b"ok"})
    store.run("UPDATE blobs SET content=zeroblob(10) WHERE hash=?", h(b"a" * 10))
    repo = store.close()
    assert outcome(read(repo, "--manifest", str(tmp_path / "m"))) == (3, "blob_mismatch")
    assert outcome(
        write(repo, tmp_path / "dest", "--path", "ok", "--manifest", str(tmp_path / "no" / "m"))
    ) == (
        77,
        "destination",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo"]


def test_names_of_every_kind(tmp_path: Path) -> None:
    names = [
        "é",
        "e\u0301x",
        "a b",
        " ",
        "-x",
        "\\",
        "a\\b",
        "\U0001f600",
        "\u202eabc",
        "*?[",
        "'\"",
        "\u00a0",
        "..a",
    ]
    repo = make(tmp_path / "repo", {name: name.encode() for name in names}).close()
    report = read(repo, "--manifest", "-")
    assert paths(report) == sorted(names, key=str.encode)
    scope = [part for name in names for part in ("--path=" + name,)]
    assert read(repo, *scope)["manifest_sha256"] == report["manifest_sha256"]
    assert outcome(write(repo, tmp_path / "dest")) == (0, None)
    assert sorted(path.name for path in (tmp_path / "dest").iterdir()) == sorted(names)


def test_frames_with_and_without_content_size(tmp_path: Path) -> None:
    for number, content_size in enumerate((False, True)):
        store = make(tmp_path / str(number), {"f": b"f" * 1000})
        store.run("UPDATE blobs SET content=?", frame(b"f" * 1000, content_size=content_size))
        assert outcome(read(store.close())) == (0, None)


def test_a_tree_of_far_too_many_entries(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oak_sqlite_reader, "_SPARE_ENTRIES", 0)
    assert outcome(read(repo, "--max-entries", "8")) == (0, None)
    assert outcome(read(repo, "--max-entries", "2")) == (77, "bound_entries")
