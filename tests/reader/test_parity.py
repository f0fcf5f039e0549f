"""One tree, both systems, every backend: the same report field by field.

The files are committed with real git and put into an Oak store; whatever a task can ask about them, the four
backends must answer alike, with the same reason codes.
"""

import os
import subprocess
import sys

import oak_store
import pytest

from reader.driver import Request, read

try:
    import blake3  # noqa: F401
    import zstandard  # noqa: F401

    NATIVE = True
except ImportError:
    NATIVE = False

BACKENDS = [("git", "git"), ("git", "pure"), ("oak", "pure")] + [("oak", "native")] * NATIVE

# What must be equal for equal trees; the rest of a report is about the store and the reader.
SHARED = (
    "report", "outcome", "exit_status", "reason", "scope", "bounds", "nonregular_paths", "oversize_paths",
    "missing_paths", "unsafe_paths", "colliding_paths", "decompressed_chunks", "shallow_boundary",
    "hard_linked", "manifest_sha256", "entries",
)  # fmt: skip

PLAIN = {
    "a.txt": (b"hello\n", "regular"),
    "empty": (b"", "regular"),
    "with space.txt": (b"x", "regular"),
    "dir/run.sh": (b"#!/bin/sh\n", "executable"),
    "dir/deeper/z": (bytes(range(256)) * 40, "regular"),
    "dir-file": (b"sorts between", "regular"),
    "dir.txt": (b"and after", "regular"),
    "\u00e9t\u00e9/na\u00efve \U0001f600.txt": ("\u00fc\n".encode(), "regular"),
    "\uff21.txt": (b"fullwidth", "regular"),
    "link": (b"dir/run.sh", "symlink"),
    "dangling": (b"../nowhere \xe2\x82\xac", "symlink"),
    'quote"and\\backslash': (b"odd name", "regular"),
    "big.bin": (b"0123456789abcdef" * 8192, "regular"),
}
COLLIDING = {
    "readme": (b"1", "regular"),
    "README": (b"2", "regular"),
    "d/x": (b"3", "regular"),
    "D/x": (b"4", "regular"),
    "caf\u00e9": (b"5", "regular"),
    "cafe\u0301": (b"6", "regular"),
    "alone": (b"7", "regular"),
}
MODES = {"regular": "100644", "executable": "100755", "symlink": "120000"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Make (and keep for the module) a Git and an Oak repository of the same files."""
    made = {}

    def make(name, files):
        if name not in made:
            root = tmp_path_factory.mktemp(name)
            made[name] = {
                "git": commit_with_git(root / "git", files),
                "oak": commit_with_oak(root / "oak", files),
            }
        return made[name]

    return make


def commit_with_git(repo, files):
    """Real git, without a worktree, so that the file system refuses no name."""
    repo.mkdir()
    who = {f"GIT_{r}_{k}": v for r in ("AUTHOR", "COMMITTER") for k, v in (("NAME", "a"), ("EMAIL", "a@b"))}
    env = {**who, "PATH": os.environ["PATH"], "HOME": str(repo), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args, data=b""):
        return subprocess.run(
            ["git", "-C", str(repo), *args], input=data, capture_output=True, check=True, env=env
        ).stdout

    git("init", "-q")
    lines = []
    for path, (content, kind) in files.items():
        blob = git("hash-object", "-w", "--stdin", data=content).decode().strip()
        lines.append(f"{MODES[kind]} {blob} 0\t".encode() + path.encode() + b"\0")
    git("update-index", "-z", "--index-info", data=b"".join(lines))
    git("commit", "-qm", "all")
    return str(repo)


def commit_with_oak(repo, files):
    store = oak_store.make(repo, {p: oak_store.File(c, kind) for p, (c, kind) in files.items()})
    return str(store.close())


def readings(repos, **request):
    found = {}
    for vcs, backend in BACKENDS:
        reading = read(Request(vcs, repos[vcs], backend, **request))
        found[vcs, backend] = {name: reading.report.get(name) for name in SHARED}
    return found


def same(repos, **request):
    found = readings(repos, **request)
    first = found[BACKENDS[0]]
    for key, report in found.items():
        assert report == first, key
    return first


def test_equal_trees_have_equal_manifests(stores):
    report = same(stores("plain", PLAIN))
    assert report["outcome"] == "ok"
    assert [e["path"] for e in report["entries"]] == sorted(PLAIN, key=str.encode)
    assert {e["path"]: e["mode"] for e in report["entries"]} == {p: MODES[k] for p, (_, k) in PLAIN.items()}
    assert report["nonregular_paths"] == ["dangling", "link"]


SCOPES = {
    "some": ["a.txt", "dir/run.sh"],
    "missing": ["a.txt", "none", "dir/none", "a.txt/below", "none/below"],
    "directory": ["dir", "a.txt", "dir/deeper"],
    "links": ["link", "dangling", "link/below"],
    "unicode": ["\u00e9t\u00e9/na\u00efve \U0001f600.txt", "\uff21.txt", "e\u0301te\u0301"],
    "odd": ['quote"and\\backslash', "with space.txt", "-dash"],
    "nothing": [],
    "doubled": ["a.txt", "a.txt"],
}


@pytest.mark.parametrize("scope", SCOPES)
def test_scopes(stores, scope):
    report = same(stores("plain", PLAIN), scope=tuple(p.encode() for p in SCOPES[scope]))
    assert report["outcome"] == "ok"


def test_what_a_scope_finds(stores):
    wanted = tuple(p.encode() for p in ("dir", "link", "none", "big.bin", "a.txt"))
    report = same(stores("plain", PLAIN), scope=wanted, max_blob_bytes=100_000)
    assert report["nonregular_paths"] == ["dir", "link"]
    assert report["missing_paths"] == ["none"]
    assert report["oversize_paths"] == ["big.bin"]
    by_path = {e["path"]: e for e in report["entries"]}
    assert by_path["dir"] == {"path": "dir", "mode": "040000", "size": None, "sha256": None}
    assert by_path["big.bin"]["size"] == 131072 and by_path["big.bin"]["sha256"] is None
    assert by_path["link"]["target"] == "dir/run.sh"


@pytest.mark.parametrize("size", [131071, 131072, 131073])
def test_the_size_limit_is_inclusive(stores, size):
    report = same(stores("plain", PLAIN), scope=(b"big.bin",), max_blob_bytes=size)
    assert (report["oversize_paths"] == []) == (size >= 131072)


def test_collisions(stores):
    scope = tuple(p.encode() for p in COLLIDING)
    report = same(stores("colliding", COLLIDING), scope=scope)
    groups = [sorted(g) for g in report["colliding_paths"]]
    assert (
        ["README", "readme"] in groups and ["D/x", "d/x"] in groups and ["cafe\u0301", "caf\u00e9"] in groups
    )
    assert report["unsafe_paths"] == []
    same(stores("colliding", COLLIDING))


def test_facts_come_before_bounds(stores):
    """The facts are in the report although a bound ends the read."""
    scope = tuple(p.encode() for p in ("big.bin", "link", "none", "a.txt", "dir/deeper/z"))
    report = same(stores("plain", PLAIN), scope=scope, max_blob_bytes=100_000, max_total_bytes=5)
    assert (report["exit_status"], report["reason"]) == (77, "bound_total_bytes")
    assert (report["oversize_paths"], report["nonregular_paths"]) == (["big.bin"], ["link"])
    assert report["missing_paths"] == ["none"]


@pytest.mark.parametrize(
    ("bound", "value", "reason"),
    [
        ("max_entries", 3, "bound_entries"),
        ("max_depth", 1, "bound_depth"),
        ("max_object_bytes", 9000, "bound_object_bytes"),
        ("deadline_s", 0.0, "deadline"),
    ],
)
def test_bounds_have_the_same_reasons(stores, bound, value, reason):
    found = readings(stores("plain", PLAIN), **{bound: value})
    assert {(r["exit_status"], r["reason"]) for r in found.values()} == {(77, reason)}


def test_materialised_trees_are_the_same(stores, tmp_path):
    repos = stores("plain", PLAIN)
    for vcs, backend in BACKENDS:
        dest = tmp_path / f"{vcs}-{backend}"
        assert read(Request(vcs, repos[vcs], backend, dest=str(dest))).outcome == "ok"
        for path, (content, kind) in PLAIN.items():
            name = os.path.join(dest, path)
            if kind == "symlink":
                assert os.fsencode(os.readlink(name)) == content
            else:
                with open(name, "rb") as stream:
                    assert stream.read() == content
                assert bool(os.stat(name).st_mode & 0o100) == (kind == "executable")


def test_an_unsafe_path_is_listed_and_not_written(stores, tmp_path):
    files = {"ok": (b"1", "regular"), "sub/.GIT/config": (b"2", "regular"), ".oak/oak.db": (b"3", "regular")}
    root = tmp_path / "r"
    root.mkdir()
    oak = commit_with_oak(root / "oak", files)
    report = read(Request("oak", oak, "pure")).report
    assert report["unsafe_paths"] == [".oak/oak.db", "sub/.GIT/config"] and report["outcome"] == "ok"
    reading = read(Request("oak", oak, "pure", dest=str(tmp_path / "dest")))
    assert (reading.exit_status, reading.reason) == (1, "unsafe_path")
    assert not (tmp_path / "dest").exists()


def test_nothing_committed_is_the_same_failure(tmp_path):
    git = tmp_path / "git"
    git.mkdir()
    subprocess.run(["git", "init", "-q", str(git)], check=True)
    bare = tmp_path / "empty"
    bare.mkdir()
    for vcs, backend in BACKENDS:
        reading = read(Request(vcs, str(bare), backend))
        assert (reading.exit_status, reading.reason) == (1, "store_missing")
    for backend in ("git", "pure"):
        assert read(Request("git", str(git), backend)).reason == "no_committed_head"


def test_a_newline_in_a_name(tmp_path):
    """Git commits it and lists it; Oak's trees cannot hold it, so a tree that does is refused."""
    files = {"line\nbreak": (b"1", "regular"), "tab\there": (b"2", "regular")}
    git = commit_with_git(tmp_path / "git", files)
    for backend in ("git", "pure"):
        report = read(Request("git", git, backend, scope=(b"line\nbreak",))).report
        assert [e["path"] for e in report["entries"]] == ["line\nbreak"]


def test_usage_errors_are_the_same(stores):
    repos = stores("plain", PLAIN)
    for scope in ("../x", "/x", "x/", "a//b", "./x", ""):
        for vcs, backend in BACKENDS:
            reading = read(Request(vcs, repos[vcs], backend, scope=(scope.encode(),)))
            assert (reading.exit_status, reading.reason) == (2, "usage"), (scope, vcs, backend)


def test_python_runs_the_scripts_isolated(stores):
    """As a harness runs them: `python -I SCRIPT`, from any directory."""
    repos = stores("plain", PLAIN)
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for vcs, script in (("git", "git_object_reader.py"), ("oak", "oak_sqlite_reader.py")):
        done = subprocess.run(
            [sys.executable, "-I", os.path.join(here, "reader", script), repos[vcs], "--path", "a.txt"],
            capture_output=True, cwd="/", env={}, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0 and done.stderr == b""
