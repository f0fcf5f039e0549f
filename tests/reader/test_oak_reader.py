"""What the isolated Oak reader says of stores: HEAD, commits, trees, blobs, chunks, and what a mismatch
means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import oak_store
import pytest
from oak_store import (
    AUTHOR,
    BRANCH,
    EMPTY,
    SAMPLE,
    TIME,
    File,
    Store,
    edited,
    frame,
    h,
    make,
    outcome,
    paths,
    read,
)

OTHER = h(b"other")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return tmp_path / "repo"


# --- A good store ---------------------------------------------------------------------------------


def test_true_content(repo: Path) -> None:
    store = make(repo)
    head = store.db.execute("SELECT hash FROM commits").fetchone()[0]
    report = read(store.close(), "--manifest", "-")
    assert outcome(report) == (0, None)
    assert (report["head"], report["outcome"], report["vcs"], report["backend"]) == (
        head,
        "ok",
        "oak",
        "pure",
    )
    expected = []
    for path, item in sorted(SAMPLE.items(), key=lambda pair: pair[0].encode()):
        file = item if isinstance(item, File) else File(item)
        entry = {
            "path": path,
            "mode": oak_store.MODES[file.mode],
            "size": len(file.content),
            "sha256": hashlib.sha256(file.content).hexdigest(),
        }
        if file.mode == "symlink":
            entry["target"] = file.content.decode()
        expected.append(entry)
    assert report["entries"] == expected
    assert report["verified"] == {"commits": 1, "trees": 3, "blobs": 6}
    assert report["nonregular_paths"] == ["link"]
    assert report["format"] == {
        "name": "oak-sqlite-v1",
        "newest_migration": "0014_change_captures",
        "old_migrations": [],
        "compacted": False,
        "sparse": False,
        "commit_form": "v1",
        "tree_storage": "content",
    }


def test_both_backends_agree(repo: Path) -> None:
    pytest.importorskip("blake3")
    pytest.importorskip("zstandard")
    make(repo).close()
    pure, native = (read(repo, "--manifest", "-", "--deep", "--backend", name) for name in ("pure", "native"))
    assert pure["codec_sha256"] != native["codec_sha256"]
    assert pure["dependencies"] == {} and set(native["dependencies"]) == {"blake3", "zstandard"}
    differing = {key for key in pure if pure[key] != native[key]}
    assert differing == {"backend", "codec_sha256", "dependencies", "duration_ns"}


def test_equal_trees_have_equal_manifests(tmp_path: Path) -> None:
    """Storage, history and unreferenced objects do not show in the manifest."""
    plain = make(tmp_path / "plain").close()
    store = Store(tmp_path / "other", page_size=512, encoding="UTF-16le")
    first = store.commit(store.files({"old": b"old"}))
    root = store.files(SAMPLE, legacy=True)
    store.commit(root, parent=first, message="second")
    store.blob(b"unreferenced")
    digests = {read(plain)["manifest_sha256"], read(store.close())["manifest_sha256"]}
    assert len(digests) == 1 and None not in digests


def test_rows_of_empty_objects_are_optional(tmp_path: Path) -> None:
    for number, row in enumerate([None, (b"", 0), (frame(b""), 1)]):
        store = Store(tmp_path / str(number))
        root = store.tree([("blob", "empty", EMPTY, "regular"), ("tree", "none", EMPTY, "tree")])
        store.commit(root)
        if row:
            store.run("INSERT INTO blobs VALUES (?, ?, 0, ?)", EMPTY, *row)
            store.run("INSERT INTO trees (hash, content) VALUES (?, ?)", EMPTY, frame(b""))
        report = read(store.close(), "--manifest", "-")
        assert outcome(report) == (0, None)
        assert [(entry["path"], entry["size"]) for entry in report["entries"]] == [("empty", 0)]


def test_a_commit_of_nothing(repo: Path) -> None:
    store = Store(repo)
    store.commit(EMPTY)
    report = read(store.close(), "--manifest", "-")
    assert outcome(report) == (0, None) and report["entries"] == []


# --- HEAD (traps 2, 3, 4) -------------------------------------------------------------------------


def metadata(key: str, value: object) -> Callable[[Store], None]:
    return lambda store: store.run("INSERT OR REPLACE INTO metadata VALUES (?, ?)", key, value)


def test_the_branch_head_wins_over_metadata(repo: Path) -> None:
    store = make(repo)
    store.set("head", OTHER)
    assert outcome(read(store.close())) == (0, None)


@pytest.mark.parametrize("branch", ["", None])
def test_detached(repo: Path, branch: str | None) -> None:
    store = make(repo)
    first = store.db.execute("SELECT hash FROM commits").fetchone()[0]
    store.commit(store.files({"later": b""}), parent=first)
    store.set("head", first)
    if branch is None:
        store.run("DELETE FROM metadata WHERE key='current_branch'")
    else:
        store.set("current_branch", branch)
    report = read(store.close(), "--manifest", "-")
    assert (report["head"], outcome(report)) == (first, (0, None))
    assert "hello.txt" in paths(report)


def test_a_branch_without_commits_is_at_its_parents_head(repo: Path) -> None:
    store = make(repo)
    for number in range(128):
        parent = f"b{number - 1}" if number else BRANCH
        store.run("INSERT INTO branches (name, parent_branch) VALUES (?, ?)", f"b{number}", parent)
    store.set("current_branch", "b127")
    assert outcome(read(store.close())) == (0, None)


def test_too_many_parents(repo: Path) -> None:
    store = make(repo)
    for number in range(129):
        parent = f"b{number - 1}" if number else BRANCH
        store.run("INSERT INTO branches (name, parent_branch) VALUES (?, ?)", f"b{number}", parent)
    store.set("current_branch", "b128")
    assert outcome(read(store.close())) == (1, "head_cycle")


def heads(value: object) -> Callable[[Store], None]:
    return lambda store: store.run("UPDATE branch_heads SET head_hash=?", value)


def detached(value: object) -> Callable[[Store], None]:
    def change(store: Store) -> None:
        store.run("DELETE FROM metadata WHERE key IN ('current_branch', 'head')")
        if value is not None:
            store.run("INSERT INTO metadata VALUES ('head', ?)", value)

    return change


def circle(store: Store) -> None:
    store.run("DELETE FROM branch_heads")
    store.run("INSERT INTO branches (name, parent_branch) VALUES ('main', ?)", BRANCH)


def loop(store: Store) -> None:
    store.run("DELETE FROM branch_heads")
    store.run("UPDATE branches SET parent_branch=name")


HEADS: dict[str, tuple[Callable[[Store], None], str]] = {
    "no row and no parent": (lambda s: s.run("DELETE FROM branch_heads"), "no_committed_head"),
    "unknown branch": (metadata("current_branch", "other"), "no_committed_head"),
    "detached without head": (detached(None), "no_committed_head"),
    "null parent": (
        lambda s: (s.run("DELETE FROM branch_heads"), s.run("UPDATE branches SET parent_branch=NULL"))[0],
        "no_committed_head",
    ),
    "circle": (circle, "head_cycle"),
    "loop": (loop, "head_cycle"),
    "dangling": (heads(OTHER), "head_commit_missing"),
    "detached dangling": (detached(OTHER), "head_commit_missing"),
    "the empty hash": (heads(EMPTY), "head_commit_missing"),
    "short": (heads(OTHER[:40]), "malformed_head"),
    "upper case": (heads(OTHER.upper()), "malformed_head"),
    "empty": (heads(""), "malformed_head"),
    "newline": (heads(OTHER + "\n"), "malformed_head"),
    "detached empty": (detached(""), "malformed_head"),
    "head as blob": (heads(OTHER.encode()), "malformed_head"),
    "head as number": (heads(7), "malformed_head"),
    "branch as blob": (metadata("current_branch", BRANCH.encode()), "malformed_head"),
    "detached head as blob": (detached(OTHER.encode()), "malformed_head"),
    "branch not UTF-8": (
        lambda s: s.run("UPDATE metadata SET value=CAST(x'ff' AS TEXT) WHERE key='current_branch'"),
        "malformed_head",
    ),
    "parent as blob": (
        lambda s: (s.run("DELETE FROM branch_heads"), s.run("UPDATE branches SET parent_branch=x'61'"))[0],
        "malformed_head",
    ),
}


@pytest.mark.parametrize("case", HEADS)
def test_heads_that_name_no_commit(repo: Path, case: str) -> None:
    change, reason = HEADS[case]
    store = make(repo)
    store.commit(store.files({"x": b"x"}), branch="unrelated")
    change(store)
    report = read(store.close())
    assert outcome(report) == (1, reason)
    assert report["outcome"] == "failed"


def keyless(table: str) -> str:
    """The schema with a table that has lost its primary key."""
    start = oak_store.SCHEMA.index(f"CREATE TABLE {table} (")
    end = oak_store.SCHEMA.index(";", start)
    body = oak_store.SCHEMA[start:end].replace(" PRIMARY KEY", "", 1)
    return oak_store.SCHEMA[:start] + body + oak_store.SCHEMA[end:]


@pytest.mark.parametrize(
    ("table", "where", "expected"),
    [
        ("metadata", "key='current_branch'", (1, "malformed_head")),
        ("branch_heads", "1", (1, "malformed_head")),
        ("metadata", "key='repo_name'", (0, None)),
    ],
)
def test_doubled_rows_that_give_head(
    repo: Path, table: str, where: str, expected: tuple[int, str | None]
) -> None:
    store = Store(repo, schema=keyless(table))
    store.commit(store.files(SAMPLE))
    if table == "branch_heads":
        store.run("DELETE FROM branch_heads WHERE rowid > (SELECT min(rowid) FROM branch_heads)")
    store.run(f"INSERT INTO {table} SELECT * FROM {table} WHERE {where}")
    assert outcome(read(store.close())) == expected


def test_no_metadata_value_is_shown(repo: Path) -> None:
    store = make(repo)
    for key in ("api_key", "remote_url", "repo_owner", "current_branch"):
        store.set(key, "s3cret-value")
    store.set("sparse_paths", "s3cret-value")
    repo = store.close()
    status, report, stderr = oak_store.script(repo)
    assert (status, report["reason"]) == (1, "no_committed_head")
    assert "s3cret" not in str(report) + stderr


# --- Commits (traps 8 to 12) ----------------------------------------------------------------------


def test_recovered_and_legacy_commits(tmp_path: Path) -> None:
    for number, (options, form) in enumerate(
        [
            ({"time": "2026-07-04T08:25:15.778307228+00:00", "stored_time": TIME}, "v1_recovered"),
            ({"legacy": True}, "v1_legacy"),
            ({"stored_time": "2026-07-04t10:25:15.7783070+02:00"}, "v1"),
        ]
    ):
        store = Store(tmp_path / str(number))
        store.commit(store.files(SAMPLE), **options)  # type: ignore[arg-type]
        report = read(store.close())
        assert outcome(report) == (0, None)
        assert report["format"]["commit_form"] == form


COMMIT_CHANGES = {
    "author": "UPDATE commits SET author='Eve <eve@example.com>' WHERE hash=?",
    "message": "UPDATE commits SET message='other' WHERE hash=?",
    "time": "UPDATE commits SET timestamp='2026-07-04T08:25:15.778308+00:00' WHERE hash=?",
    "leap second": "UPDATE commits SET timestamp='2026-07-04T08:25:60Z' WHERE hash=?",
    "parent": "UPDATE commits SET parent_hash=manifest_hash WHERE hash=?",
    "empty parent": "UPDATE commits SET parent_hash='' WHERE hash=?",
    "merge parent": "UPDATE commits SET merge_parent_hash=manifest_hash WHERE hash=?",
    "control character": "UPDATE commits SET author=author||char(10) WHERE hash=?",
    "branch": "UPDATE commits SET branch_name='renamed' WHERE hash=?",
}


@pytest.mark.parametrize("change", COMMIT_CHANGES)
def test_a_lone_header_that_does_not_verify_looks_like_a_renamed_branch(repo: Path, change: str) -> None:
    store = make(repo)
    store.run(COMMIT_CHANGES[change], store.db.execute("SELECT hash FROM commits").fetchone()[0])
    assert outcome(read(store.close())) == (77, "commit_header_not_reproducible")


@pytest.mark.parametrize(
    "change", [name for name in COMMIT_CHANGES if name not in ("branch", "parent", "empty parent")]
)
def test_a_header_above_a_verified_one_of_its_branch_is_invalid(repo: Path, change: str) -> None:
    store = make(repo)
    first = store.db.execute("SELECT hash FROM commits").fetchone()[0]
    head = store.commit(store.files({"x": b"x"}), parent=first)
    store.run(COMMIT_CHANGES[change], head)
    assert outcome(read(store.close())) == (3, "commit_mismatch")


def chain(store: Store, length: int, branch: str, parent: str | None = None, start: int = 0) -> list[str]:
    commits = []
    for number in range(start, start + length):
        root = store.files({"number": b"%d" % number})
        parent = store.commit(root, parent=parent, branch=branch, time=f"2026-07-04T08:{number:02d}:00+00:00")
        commits.append(parent)
    return commits


def test_renamed_branch(repo: Path) -> None:
    """All commits of the branch lose their header, those it grew from do not."""
    store = Store(repo)
    base = chain(store, 3, "main")
    chain(store, 3, "before", base[-1], 10)
    store.run("UPDATE commits SET branch_name='after' WHERE branch_name='before'")
    store.run("UPDATE branch_heads SET branch_name='after' WHERE branch_name='before'")
    store.set("current_branch", "after")
    report = read(store.close())
    assert outcome(report) == (77, "commit_header_not_reproducible")
    assert report["head"] is not None


def test_commits_made_after_renaming(repo: Path) -> None:
    store = Store(repo)
    base = chain(store, 2, "main")
    mine = chain(store, 2, "before", base[-1], 10)
    store.run("UPDATE commits SET branch_name='after' WHERE branch_name='before'")
    store.run("DELETE FROM branch_heads WHERE branch_name='before'")
    chain(store, 2, "after", mine[-1], 20)
    store.set("current_branch", "after")
    repo = store.close()
    assert outcome(read(repo)) == (0, None)
    assert outcome(read(repo, "--deep")) == (77, "commit_header_not_reproducible")


def test_renaming_does_not_excuse_a_bad_root_tree(repo: Path) -> None:
    store = make(repo)
    store.run("UPDATE commits SET branch_name='after'")
    store.run("UPDATE trees SET content=?", frame(b"nonsense"))
    assert outcome(read(store.close())) == (77, "unrecognised_format")


def test_renaming_with_another_verifying_commit_and_a_bad_root_tree(repo: Path) -> None:
    store = make(repo)
    store.run("UPDATE commits SET branch_name='after'")
    store.run("UPDATE trees SET content=?", frame(b"nonsense"))
    store.commit(EMPTY, branch="other", head=False)
    assert outcome(read(store.close())) == (3, "commit_mismatch")


@pytest.mark.parametrize(
    "column", ["branch_name", "manifest_hash", "author", "timestamp", "message", "parent_hash"]
)
@pytest.mark.parametrize("other", [False, True])
def test_commit_values_of_the_wrong_class(repo: Path, column: str, other: bool) -> None:
    store = make(repo)
    store.run(f"UPDATE commits SET {column}=x'6162'")
    if other:
        store.commit(EMPTY, branch="other", head=False)
    expected = (3, "commit_mismatch") if other else (77, "unrecognised_format")
    assert outcome(read(store.close())) == expected


@pytest.mark.parametrize("other", [False, True])
def test_doubled_commits(repo: Path, other: bool) -> None:
    store = Store(repo, schema=keyless("commits"))
    store.commit(store.files(SAMPLE))
    store.run("INSERT INTO commits SELECT * FROM commits")
    if other:
        store.commit(EMPTY, branch="other", head=False)
    expected = (3, "commit_mismatch") if other else (77, "unrecognised_format")
    assert outcome(read(store.close())) == expected


def test_a_hash_stored_as_blob_is_another_key(repo: Path) -> None:
    store = make(repo)
    store.run("UPDATE commits SET hash=CAST(hash AS BLOB)")
    assert outcome(read(store.close())) == (1, "head_commit_missing")


def test_commit_header_over_the_object_bound(repo: Path) -> None:
    store = Store(repo)
    root = store.files({"x": b""})
    store.commit(root, message="m" * 1000)
    repo = store.close()
    fields = len(f"{BRANCH}{root}{AUTHOR}{TIME}") + 1000
    assert outcome(read(repo, "--max-object-bytes", str(fields))) == (0, None)
    assert outcome(read(repo, "--max-object-bytes", str(fields - 1))) == (77, "bound_object_bytes")


# --- Deep -----------------------------------------------------------------------------------------


def test_ancestors_and_the_shallow_boundary(repo: Path) -> None:
    store = Store(repo)
    base = chain(store, 3, "main", OTHER)
    side = chain(store, 2, "side", h(b"another"), 10)
    store.commit(EMPTY, parent=base[-1], merge=side[-1])
    repo = store.close()
    shallow = read(repo)
    assert (outcome(shallow), shallow["shallow_boundary"]) == ((0, None), [])
    report = read(repo, "--deep", "--complete")
    assert outcome(report) == (0, None)
    assert report["shallow_boundary"] == sorted([OTHER, h(b"another")])
    assert report["verified"]["ancestors"] == 5


def test_a_bad_ancestor(repo: Path) -> None:
    store = Store(repo)
    commits = chain(store, 5, BRANCH)
    store.run("UPDATE commits SET author='Eve' WHERE hash=?", commits[2])
    repo = store.close()
    assert outcome(read(repo)) == (0, None)
    report = read(repo, "--deep")
    assert outcome(report) == (3, "commit_mismatch")
    assert commits[2][:12] in report["detail"]


def test_history_in_a_circle_ends(repo: Path) -> None:
    store = Store(repo)
    commits = chain(store, 3, BRANCH)
    store.run("UPDATE commits SET parent_hash=? WHERE hash=?", commits[1], commits[0])
    assert outcome(read(store.close(), "--deep")) == (3, "commit_mismatch")


def test_ancestors_in_rare_forms(repo: Path) -> None:
    store = Store(repo)
    first = store.commit(EMPTY, legacy=True)
    second = store.commit(EMPTY, parent=first, time="2026-07-04T08:25:15.778307001+00:00", stored_time=TIME)
    store.commit(EMPTY, parent=second)
    report = read(store.close(), "--deep")
    assert (outcome(report), report["verified"]["ancestors"]) == ((0, None), 2)


# --- Trees (traps 5 to 8, 14) ---------------------------------------------------------------------


@pytest.mark.parametrize("legacy", ["all", "none", "mixed"])
def test_legacy_trees(repo: Path, legacy: str) -> None:
    store = Store(repo)
    files = {f"d{number}/f{number}": b"%d" % number for number in range(5)}
    store.commit(store.files(files, legacy=legacy != "none"))
    if legacy == "mixed":
        root = store.db.execute("SELECT manifest_hash FROM commits").fetchone()[0]
        rows = store.db.execute(
            "SELECT kind, name, hash, 'tree' FROM tree_entries WHERE tree_hash=?", (root,)
        )
        store.raw_tree(oak_store.tree_bytes(sorted(rows, key=lambda row: row[1])))
    report = read(store.close(), "--manifest", "-")
    assert (outcome(report), paths(report)) == ((0, None), sorted(files))
    assert report["format"]["tree_storage"] == {"all": "entries", "none": "content", "mixed": "mixed"}[legacy]


def test_content_wins_over_rows(repo: Path) -> None:
    store = make(repo)
    root = store.db.execute("SELECT manifest_hash FROM commits").fetchone()[0]
    store.run("INSERT INTO tree_entries VALUES (?, 'lie', 'blob', ?, 'regular')", root, EMPTY)
    assert outcome(read(store.close())) == (0, None)


def test_compacted(repo: Path) -> None:
    store = make(repo)
    store.run("DROP TABLE tree_entries")
    report = read(store.close())
    assert (outcome(report), report["format"]["compacted"]) == ((0, None), True)


def test_compacted_with_a_tree_that_has_no_content(repo: Path) -> None:
    store = make(repo)
    store.run("DROP TABLE tree_entries")
    store.run("UPDATE trees SET content=NULL")
    assert outcome(read(store.close())) == (77, "content_absent")


BAD_TREES = {
    "order": b"blob\tb\t%s\tregular\nblob\ta\t%s\tregular" % (EMPTY.encode(), EMPTY.encode()),
    "duplicate": b"blob\ta\t%s\tregular\nblob\ta\t%s\tregular" % (EMPTY.encode(), EMPTY.encode()),
    "file and directory": b"blob\ta\t%s\tregular\ntree\ta\t%s\ttree" % (EMPTY.encode(), EMPTY.encode()),
    "newline at the end": b"blob\ta\t%s\tregular\n" % EMPTY.encode(),
    "kind": b"tree\ta\t%s\tregular" % EMPTY.encode(),
    "dot dot": b"blob\t..\t%s\tregular" % EMPTY.encode(),
    "slash": b"blob\ta/b\t%s\tregular" % EMPTY.encode(),
    "control": b"blob\ta\x01\t%s\tregular" % EMPTY.encode(),
    "not UTF-8": b"blob\ta\xff\t%s\tregular" % EMPTY.encode(),
    "garbage": b"garbage",
}


@pytest.mark.parametrize("case", BAD_TREES)
def test_trees_below_a_verified_root_are_strict(repo: Path, case: str) -> None:
    """Hash right, form wrong: invalid even where old clients wrote such trees."""
    store = Store(repo)
    store.commit(store.tree([("tree", "d", store.raw_tree(BAD_TREES[case]), "tree")]))
    assert outcome(read(store.close())) == (3, "tree_mismatch")


@pytest.mark.parametrize("case", BAD_TREES)
@pytest.mark.parametrize("other", [False, True])
def test_root_trees_are_strict(repo: Path, case: str, other: bool) -> None:
    store = Store(repo)
    store.commit(store.raw_tree(BAD_TREES[case]))
    if other:
        store.tree([("blob", "fine", EMPTY, "regular")])
    expected = (3, "tree_mismatch") if other else (77, "unrecognised_format")
    assert outcome(read(store.close())) == expected


def tree_change(sql: str, *parameters: object) -> Callable[[Store, str], None]:
    return lambda store, tree: store.run(sql, *parameters, tree)


TREE_CHANGES: dict[str, tuple[Callable[[Store, str], None], str]] = {
    "other content": (tree_change("UPDATE trees SET content=? WHERE hash=?", frame(b"x")), "tree_mismatch"),
    "not zstd": (tree_change("UPDATE trees SET content=? WHERE hash=?", b"plain"), "tree_mismatch"),
    "no frame": (tree_change("UPDATE trees SET content=x'' WHERE hash=?"), "tree_mismatch"),
    "text": (tree_change("UPDATE trees SET content='text' WHERE hash=?"), "tree_mismatch"),
    "number": (tree_change("UPDATE trees SET content=7 WHERE hash=?"), "tree_mismatch"),
    "gone": (tree_change("DELETE FROM trees WHERE hash=?"), "content_absent"),
    "rows gone": (tree_change("UPDATE trees SET content=NULL WHERE hash=?"), "content_absent"),
    "key as blob": (tree_change("UPDATE trees SET hash=CAST(hash AS BLOB) WHERE hash=?"), "content_absent"),
    "dictionary": (
        tree_change("UPDATE trees SET content=? WHERE hash=?", b"\x28\xb5\x2f\xfd\x21\x01\x00\x01\x00\x00"),
        "unsupported_format",
    ),
    "window": (
        tree_change("UPDATE trees SET content=? WHERE hash=?", b"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00"),
        "unsupported_format",
    ),
    "reserved bit": (
        tree_change("UPDATE trees SET content=? WHERE hash=?", b"\x28\xb5\x2f\xfd\x28\x00\x01\x00\x00"),
        "tree_mismatch",
    ),
}


@pytest.mark.parametrize("backend", ["pure", "native"])
@pytest.mark.parametrize("case", TREE_CHANGES)
def test_sub_trees_that_do_not_verify(repo: Path, case: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("blake3")
        pytest.importorskip("zstandard")
    change, reason = TREE_CHANGES[case]
    store = make(repo, {"d/f": b"f", "other": b"o"})
    change(store, store.tree([("blob", "f", h(b"f"), "regular")]))
    repo = store.close()
    status = 3 if reason == "tree_mismatch" else 77
    assert outcome(read(repo, "--backend", backend)) == (status, reason)
    complete = 3 if reason == "content_absent" else status
    assert outcome(read(repo, "--complete", "--backend", backend)) == (complete, reason)
    assert outcome(read(repo, "--path", "other", "--complete", "--backend", backend)) == (0, None)


def test_concatenated_and_skippable_frames(repo: Path) -> None:
    store = make(repo, {"f": b"f" * 100, "d/g": b"g"})
    tree = oak_store.tree_bytes([("blob", "g", h(b"g"), "regular")])
    skip = b"\x50\x2a\x4d\x18\x02\x00\x00\x00xx"
    packed = skip + frame(tree[:10]) + skip + frame(tree[10:])
    store.run("UPDATE trees SET content=? WHERE hash=?", packed, h(tree))
    packed = frame(b"f" * 50) + frame(b"f" * 50, content_size=True) + skip
    store.run("UPDATE blobs SET content=?, codec=1 WHERE hash=?", packed, h(b"f" * 100))
    repo = store.close()
    assert outcome(read(repo)) == (0, None)
    pytest.importorskip("zstandard")
    assert outcome(read(repo, "--backend", "native")) == (0, None)


@pytest.mark.parametrize("column", ["name", "hash", "mode"])
def test_legacy_rows_of_the_wrong_class(repo: Path, column: str) -> None:
    store = Store(repo)
    store.commit(store.tree([("tree", "d", store.files({"f": b"f"}, legacy=True), "tree")]))
    store.run(f"UPDATE tree_entries SET {column}=CAST({column} AS BLOB)")
    assert outcome(read(store.close())) == (3, "tree_mismatch")


def test_doubled_sub_tree(repo: Path) -> None:
    store = Store(repo, schema=keyless("trees"))
    store.commit(store.files({"d/f": b"f"}))
    below = store.tree([("blob", "f", h(b"f"), "regular")])
    assert below
    assert outcome(read(store.close())) == (3, "tree_mismatch")


@pytest.mark.parametrize("other", [False, True])
def test_doubled_root_tree(repo: Path, other: bool) -> None:
    store = Store(repo, schema=keyless("trees"))
    store.commit(store.files({"f": b"f"}))
    store.run("INSERT INTO trees SELECT * FROM trees")
    if other:
        store.files({"other": b"f"})
    expected = (3, "tree_mismatch") if other else (77, "unrecognised_format")
    assert outcome(read(store.close())) == expected


@pytest.mark.parametrize("other", [False, True])
def test_root_tree_of_another_hash(repo: Path, other: bool) -> None:
    store = make(repo, {"f": b"f"})
    store.run("UPDATE trees SET content=?", frame(b"x"))
    if other:
        store.files({"other": b"f"})
    expected = (3, "tree_mismatch") if other else (77, "unrecognised_format")
    assert outcome(read(store.close())) == expected


def test_root_tree_absent(repo: Path) -> None:
    store = make(repo, {"f": b"f"})
    store.run("DELETE FROM trees")
    repo = store.close()
    assert outcome(read(repo)) == (77, "content_absent")
    assert outcome(read(repo, "--complete")) == (3, "content_absent")


# --- Blobs (traps 6, 13, 14) ----------------------------------------------------------------------


BLOB = b"wanted content\n" * 20


def blob_change(sql: str, *parameters: object) -> Callable[[Store], None]:
    return lambda store: store.run(sql, *parameters, h(BLOB))


BLOB_CHANGES: dict[str, tuple[Callable[[Store], None], int, str]] = {
    "other content": (
        blob_change("UPDATE blobs SET content=?, codec=1 WHERE hash=?", frame(BLOB[::-1])),
        3,
        "blob_mismatch",
    ),
    "other raw content": (
        blob_change("UPDATE blobs SET content=?, codec=0 WHERE hash=?", BLOB[::-1]),
        3,
        "blob_mismatch",
    ),
    "not zstd": (blob_change("UPDATE blobs SET content=?, codec=1 WHERE hash=?", BLOB), 3, "blob_mismatch"),
    "cut off": (
        blob_change("UPDATE blobs SET content=?, codec=1 WHERE hash=?", frame(BLOB)[:-1]),
        3,
        "blob_mismatch",
    ),
    "bytes after": (
        blob_change("UPDATE blobs SET content=?, codec=1 WHERE hash=?", frame(BLOB) + b"x"),
        3,
        "blob_mismatch",
    ),
    "too long": (blob_change("UPDATE blobs SET size=size-1 WHERE hash=?"), 3, "size_mismatch"),
    "too short": (blob_change("UPDATE blobs SET size=size+1 WHERE hash=?"), 3, "size_mismatch"),
    "raw too short": (
        blob_change("UPDATE blobs SET content=?, codec=0 WHERE hash=?", BLOB[:-1]),
        3,
        "size_mismatch",
    ),
    "raw too long": (
        blob_change("UPDATE blobs SET content=?, codec=0 WHERE hash=?", BLOB + b"x"),
        3,
        "size_mismatch",
    ),
    "negative size": (blob_change("UPDATE blobs SET size=-1 WHERE hash=?"), 3, "size_mismatch"),
    "no size": (blob_change("UPDATE blobs SET size=0 WHERE hash=?"), 3, "size_mismatch"),
    "size as text": (blob_change("UPDATE blobs SET size='x' WHERE hash=?"), 3, "blob_mismatch"),
    "size as real": (blob_change("UPDATE blobs SET size=1.5 WHERE hash=?"), 3, "blob_mismatch"),
    "codec as text": (blob_change("UPDATE blobs SET codec='x' WHERE hash=?"), 3, "blob_mismatch"),
    "content as text": (blob_change("UPDATE blobs SET content='x' WHERE hash=?"), 3, "blob_mismatch"),
    "codec 2": (blob_change("UPDATE blobs SET codec=2 WHERE hash=?"), 77, "unsupported_format"),
    "codec -1": (blob_change("UPDATE blobs SET codec=-1 WHERE hash=?"), 77, "unsupported_format"),
    "gone": (blob_change("DELETE FROM blobs WHERE hash=?"), 77, "content_absent"),
    "key as blob": (
        blob_change("UPDATE blobs SET hash=CAST(hash AS BLOB) WHERE hash=?"),
        77,
        "content_absent",
    ),
    "upper case key": (blob_change("UPDATE blobs SET hash=upper(hash) WHERE hash=?"), 77, "content_absent"),
    "placeholder": (blob_change("UPDATE blobs SET content=x'', codec=0 WHERE hash=?"), 77, "content_absent"),
    "dictionary": (
        blob_change(
            "UPDATE blobs SET content=?, codec=1 WHERE hash=?", b"\x28\xb5\x2f\xfd\x21\x01\x00\x01\x00\x00"
        ),
        77,
        "unsupported_format",
    ),
    "window": (
        blob_change(
            "UPDATE blobs SET content=?, codec=1 WHERE hash=?", b"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00"
        ),
        77,
        "unsupported_format",
    ),
    "reserved bit": (
        blob_change(
            "UPDATE blobs SET content=?, codec=1 WHERE hash=?", b"\x28\xb5\x2f\xfd\x28\x00\x01\x00\x00"
        ),
        3,
        "blob_mismatch",
    ),
}


@pytest.mark.parametrize("backend", ["pure", "native"])
@pytest.mark.parametrize("case", BLOB_CHANGES)
def test_blobs_that_do_not_verify(repo: Path, case: str, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("blake3")
        pytest.importorskip("zstandard")
    change, status, reason = BLOB_CHANGES[case]
    store = make(repo, {"wanted": BLOB, "other": b"other content"})
    change(store)
    repo = store.close()
    report = read(repo, "--backend", backend, "--manifest", "-")
    assert outcome(report) == (status, reason)
    assert "entries" not in report and report["manifest_sha256"] is None
    assert '"wanted"' in report["detail"]
    # Out of scope it is never decoded.
    assert outcome(read(repo, "--backend", backend, "--path", "other")) == (0, None)


@pytest.mark.parametrize(
    "case", [name for name, (_, _, reason) in BLOB_CHANGES.items() if reason == "blob_mismatch"]
)
def test_a_lone_blob_that_does_not_verify(repo: Path, case: str) -> None:
    """No other blob verifies, empty ones do not count: perhaps another hash convention."""
    store = make(repo, {"wanted": BLOB, "empty": b""})
    store.run("INSERT INTO blobs VALUES (?, x'', 0, 0)", EMPTY)
    store.run("INSERT INTO blobs VALUES (?, x'00', 1, 0)", OTHER)
    BLOB_CHANGES[case][0](store)
    assert outcome(read(store.close())) == (77, "unrecognised_format")


@pytest.mark.parametrize(
    "case", [name for name, (_, _, reason) in BLOB_CHANGES.items() if reason == "size_mismatch"]
)
def test_a_wrong_size_is_invalid_whatever_else_verifies(repo: Path, case: str) -> None:
    store = make(repo, {"wanted": BLOB})
    BLOB_CHANGES[case][0](store)
    assert outcome(read(store.close())) == (3, "size_mismatch")


def test_the_sample_is_64_others_in_hash_order(tmp_path: Path) -> None:
    """A verifying blob counts in the sample of the first 64 others by hash, not behind it."""
    good = b"good"
    for count, expected in ((63, (3, "blob_mismatch")), (64, (77, "unrecognised_format"))):
        store = make(tmp_path / str(count), {"wanted": BLOB})
        store.run("UPDATE blobs SET content=?, codec=0 WHERE hash=?", BLOB[::-1], h(BLOB))
        for number in range(count):
            # All before the good one in hash order; none verifies.
            store.run("INSERT INTO blobs VALUES (?, x'00', 1, 0)", f"{number:064x}")
        store.blob(good)
        assert h(good) > f"{count:064x}"
        assert outcome(read(store.close(), "--path", "wanted")) == expected


def test_sampling_counts_towards_no_bound(repo: Path) -> None:
    store = make(repo, {"wanted": BLOB})
    store.run("UPDATE blobs SET content=?, codec=0", BLOB[::-1])
    store.blob(b"x" * 2000, codec=0)
    repo = store.close()
    bounds = ("--max-total-bytes", str(len(BLOB) + 100))
    assert outcome(read(repo, *bounds)) == (3, "blob_mismatch")
    # An object of the sample that is over a bound does not verify.
    assert outcome(read(repo, "--max-object-bytes", "1999")) == (77, "unrecognised_format")


def test_doubled_blobs(repo: Path) -> None:
    store = Store(repo, schema=keyless("blobs"))
    store.commit(store.files({"wanted": BLOB, "other": b"other"}))
    store.run("INSERT INTO blobs SELECT * FROM blobs WHERE hash=?", h(BLOB))
    repo = store.close()
    assert outcome(read(repo)) == (3, "blob_mismatch")
    assert outcome(read(repo, "--path", "other")) == (0, None)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("known_lost_blobs", f"{OTHER}\n{h(BLOB)}", "content_absent_lost"),
        ("restricted_blobs", h(BLOB), "content_absent_restricted"),
        ("sparse_paths", "other\nelse/where", "content_absent_sparse"),
        ("sparse_paths", "/want\\", "content_absent_sparse"),
        ("sparse_paths", "wanted", "content_absent"),
        ("sparse_paths", "/dir/", "content_absent"),
        ("sparse_paths", " \n ", "content_absent"),
        ("restricted_blobs", OTHER, "content_absent"),
    ],
)
def test_what_explains_absence(repo: Path, key: str, value: str, reason: str) -> None:
    name = "dir/wanted" if "dir" in value else "wanted"
    store = make(repo, {name: BLOB, "other": b"other"})
    store.run("DELETE FROM blobs WHERE hash=?", h(BLOB))
    store.set(key, value)
    repo = store.close()
    assert outcome(read(repo)) == (77, reason)
    assert outcome(read(repo, "--complete")) == (3, reason)
    assert outcome(read(repo, "--complete", "--path", "other")) == (0, None)


def test_listed_but_present(repo: Path) -> None:
    store = make(repo, {"wanted": BLOB})
    store.set("known_lost_blobs", h(BLOB))
    store.set("sparse_paths", "elsewhere")
    report = read(store.close(), "--complete")
    assert (outcome(report), report["format"]["sparse"]) == ((0, None), True)


# --- Chunks ---------------------------------------------------------------------------------------


BIG = bytes(range(256)) * 40
SIZES = [4000, 4000, 2240]


def chunk_store(repo: Path, *, whole: bool = False, other: bool = True) -> Store:
    store = Store(repo)
    store.chunked(BIG, SIZES, whole=whole)
    entries = [("blob", "big", h(BIG), "regular")]
    if other:
        entries.append(("blob", "other", store.blob(b"other"), "regular"))
    store.commit(store.tree(entries))  # type: ignore[arg-type]
    return store


def test_chunks_only(repo: Path) -> None:
    report = read(chunk_store(repo).close(), "--manifest", "-")
    assert outcome(report) == (0, None)
    assert report["entries"][0]["sha256"] == hashlib.sha256(BIG).hexdigest()
    assert report["verified"]["chunked_blobs"] == 1
    assert report["decompressed_chunks"] == []


def test_placeholder_rows_lead_to_chunks(repo: Path) -> None:
    store = chunk_store(repo)
    store.run("INSERT INTO blobs VALUES (?, x'', ?, 0)", h(BIG), len(BIG))
    assert outcome(read(store.close())) == (0, None)


def test_a_placeholder_of_another_size(repo: Path) -> None:
    store = chunk_store(repo, other=False)
    store.run("INSERT INTO blobs VALUES (?, x'', ?, 0)", h(BIG), len(BIG) - 1)
    assert outcome(read(store.close())) == (3, "size_mismatch")


CHUNK_CHANGES = {
    "gap": ("UPDATE blob_chunks SET offset=offset+1 WHERE chunk_index=1", 3, "chunk_mismatch"),
    "not from 0": ("UPDATE blob_chunks SET offset=offset+1", 3, "chunk_mismatch"),
    "index gap": ("UPDATE blob_chunks SET chunk_index=3 WHERE chunk_index=2", 3, "chunk_mismatch"),
    "index from 1": ("UPDATE blob_chunks SET chunk_index=chunk_index+10", 3, "chunk_mismatch"),
    "no size": ("UPDATE blob_chunks SET size=0 WHERE chunk_index=0", 3, "chunk_mismatch"),
    "negative": ("UPDATE blob_chunks SET size=-4000 WHERE chunk_index=0", 3, "chunk_mismatch"),
    "class": ("UPDATE blob_chunks SET chunk_index='x' WHERE chunk_index=0", 3, "chunk_mismatch"),
    "chunk key": ("UPDATE blob_chunks SET chunk_hash=upper(chunk_hash)", 3, "chunk_mismatch"),
    "chunk gone": ("DELETE FROM chunks WHERE size=2240", 77, "content_absent"),
    "all chunks gone": ("DELETE FROM chunks", 77, "content_absent"),
    "map gone": ("DELETE FROM blob_chunks", 77, "content_absent"),
    "chunk content": ("UPDATE chunks SET content=zeroblob(2240) WHERE size=2240", 3, "chunk_mismatch"),
    "chunk size": ("UPDATE chunks SET size=2241 WHERE size=2240", 3, "size_mismatch"),
    "chunk length": (
        "UPDATE chunks SET content=zeroblob(2241), size=2241 WHERE size=2240",
        3,
        "size_mismatch",
    ),
    "chunk class": ("UPDATE chunks SET content='x' WHERE size=2240", 3, "chunk_mismatch"),
    "map cut": ("DELETE FROM blob_chunks WHERE chunk_index=2", 3, "blob_mismatch"),
}


@pytest.mark.parametrize("case", CHUNK_CHANGES)
def test_chunks_that_do_not_verify(repo: Path, case: str) -> None:
    sql, status, reason = CHUNK_CHANGES[case]
    store = chunk_store(repo)
    store.run(sql)
    repo = store.close()
    assert outcome(read(repo)) == (status, reason)
    assert outcome(read(repo, "--path", "other")) == (0, None)


def compressed_chunks(repo: Path, **options: object) -> Store:
    """A map that some server cut from the compressed bytes."""
    store = Store(repo)
    packed = frame(BIG)
    half = len(packed) // 2
    store.chunked(packed, [half, len(packed) - half])
    store.run("UPDATE blob_chunks SET blob_hash=?", h(BIG))
    store.commit(store.tree([("blob", "big", h(BIG), "regular"), ("blob", "o", store.blob(b"o"), "regular")]))
    return store


def test_chunks_of_a_frame(repo: Path) -> None:
    store = compressed_chunks(repo)
    report = read(store.close(), "--manifest", "-")
    assert (outcome(report), report["decompressed_chunks"]) == ((0, None), ["big"])
    assert report["entries"][0]["sha256"] == hashlib.sha256(BIG).hexdigest()
    assert report["entries"][0]["size"] == len(BIG)


def test_chunks_of_a_frame_are_bounded(repo: Path) -> None:
    repo = compressed_chunks(repo).close()
    size = len(BIG)
    assert outcome(read(repo, "--max-object-bytes", str(size))) == (0, None)
    assert outcome(read(repo, "--max-object-bytes", str(size - 1))) == (77, "bound_object_bytes")
    report = read(repo, "--max-blob-bytes", str(size - 1), "--manifest", "-")
    assert (outcome(report), report["oversize_paths"]) == ((0, None), ["big"])
    assert report["entries"][0]["sha256"] is None


def test_chunks_of_another_frame(repo: Path) -> None:
    store = compressed_chunks(repo)
    store.run("UPDATE blob_chunks SET blob_hash=?", OTHER)
    store.run("DELETE FROM commits")
    store.commit(store.tree([("blob", "big", OTHER, "regular"), ("blob", "o", h(b"o"), "regular")]))
    assert outcome(read(store.close())) == (3, "blob_mismatch")


DEEP_CHANGES = {
    "untouched": ("SELECT 1", (0, None), 1, []),
    "chunk absent": ("DELETE FROM chunks WHERE size=2240", (0, None), 1, ["big"]),
    "gap": ("UPDATE blob_chunks SET offset=offset+1 WHERE chunk_index=1", (3, "chunk_mismatch"), None, []),
    "not from 0": ("DELETE FROM blob_chunks WHERE chunk_index=0", (3, "chunk_mismatch"), None, []),
    "chunk content": (
        "UPDATE chunks SET content=zeroblob(2240) WHERE size=2240",
        (3, "chunk_mismatch"),
        1,
        [],
    ),
    "other chunk": (
        "UPDATE blob_chunks SET chunk_hash=blob_hash WHERE chunk_index=0",
        (0, None),
        None,
        ["big"],
    ),
}


@pytest.mark.parametrize("case", DEEP_CHANGES)
def test_deep_holds_chunk_maps_against_complete_blobs(repo: Path, case: str) -> None:
    sql, expected, maps, incomplete = DEEP_CHANGES[case]
    store = chunk_store(repo, whole=True)
    store.run(sql)
    repo = store.close()
    assert outcome(read(repo)) == (0, None)
    report = read(repo, "--deep")
    assert outcome(report) == expected
    assert report["verified"].get("chunk_maps") == maps
    assert report["incomplete_chunk_maps"] == incomplete
    assert outcome(read(repo, "--deep", "--path", "other")) == (0, None)


def test_deep_knows_maps_of_compressed_bytes(repo: Path) -> None:
    store = compressed_chunks(repo)
    store.blob(BIG)
    report = read(store.close(), "--deep")
    assert (outcome(report), report["decompressed_chunks"]) == ((0, None), ["big"])


# --- Migrations -----------------------------------------------------------------------------------


def migrate(sql: str, *parameters: object) -> Callable[[Store], None]:
    return lambda store: store.run(sql, *parameters)


ADD = "INSERT INTO schema_migrations (version) VALUES (?)"
MIGRATION_CHANGES: dict[str, tuple[Callable[[Store], None], tuple[int, str | None]]] = {
    "newer": (migrate(ADD, "0015_serve_published_objects"), (77, "newer_format")),
    "much newer": (migrate(ADD, "0100_future"), (77, "newer_format")),
    "unknown": (migrate(ADD, "9_x"), (77, "unrecognised_format")),
    "other name of a known number": (migrate(ADD, "0003_other"), (77, "unrecognised_format")),
    "old": (migrate(ADD, "011_last_before"), (0, None)),
    "older": (migrate(ADD, "001"), (0, None)),
    "old number 12": (migrate(ADD, "012_x"), (77, "unrecognised_format")),
    "old number 0": (migrate(ADD, "000_x"), (77, "unrecognised_format")),
    "missing": (
        migrate("DELETE FROM schema_migrations WHERE version LIKE '0007%'"),
        (77, "unrecognised_format"),
    ),
    "last missing": (
        migrate("DELETE FROM schema_migrations WHERE version LIKE '0014%'"),
        (77, "unrecognised_format"),
    ),
    "none": (migrate("DELETE FROM schema_migrations"), (77, "unrecognised_format")),
    "failed": (
        migrate("UPDATE schema_migrations SET succeeded=0 WHERE version LIKE '0011%'"),
        (77, "unrecognised_format"),
    ),
    "succeeded as text": (
        migrate("UPDATE schema_migrations SET succeeded='yes'"),
        (77, "unrecognised_format"),
    ),
    "name as blob": (
        migrate("UPDATE schema_migrations SET version=CAST(version AS BLOB)"),
        (77, "unrecognised_format"),
    ),
    "hash format v1": (metadata("hash_format", "v1"), (0, None)),
    "hash format v2": (metadata("hash_format", "v2"), (77, "unrecognised_format")),
    "hash format empty": (metadata("hash_format", ""), (77, "unrecognised_format")),
    "hash format as blob": (metadata("hash_format", b"v1"), (77, "unrecognised_format")),
    "unknown metadata": (metadata("view_spec", "anything"), (0, None)),
}


@pytest.mark.parametrize("case", MIGRATION_CHANGES)
def test_format_pin(repo: Path, case: str) -> None:
    change, expected = MIGRATION_CHANGES[case]
    store = make(repo)
    change(store)
    report = read(store.close())
    assert outcome(report) == expected
    if case in ("old", "older"):
        assert len(report["format"]["old_migrations"]) == 1


def test_many_migrations(repo: Path) -> None:
    store = make(repo)
    for number in range(2000):
        store.run(ADD, f"001_{number}")
    assert outcome(read(store.close())) == (77, "unrecognised_format")


def test_an_open_migration_beats_a_missing_head(repo: Path) -> None:
    store = make(repo)
    store.run(ADD, "0015_x")
    store.run("DELETE FROM commits")
    assert outcome(read(store.close())) == (77, "newer_format")


def test_edits_keep_the_store_readable(repo: Path) -> None:
    make(repo).close()
    with edited(repo) as db:
        db.execute("INSERT INTO metadata VALUES ('x', 'y')")
    assert outcome(read(repo)) == (0, None)
