"""The Git object reader against git itself and dulwich, on repositories of every shape that git makes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from dulwich.object_store import iter_tree_contents
from dulwich.objects import Commit
from dulwich.repo import Repo

from reader.git_object_reader import READER, open_pure
from reader.git_objects import Malformed
from reader.git_repository import Copy, Fault, Repository, open_repository
from reader.scoped_read import Bounds, Budget, Options, Reader, Report, Stop, run

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "reader/git_object_reader.py"

Json = dict[str, Any]


def load_bench(name: str) -> ModuleType:
    """A module of the measurements, which are no part of the distribution."""
    if "bench" not in sys.modules:
        package = ModuleType("bench")
        package.__path__ = [str(ROOT / "bench")]
        sys.modules["bench"] = package
    return importlib.import_module(f"bench.{name}")


repositories = load_bench("git_repositories")


def git(folder: Path, *arguments: str, data: bytes = b"") -> bytes:
    """Run git on a fixture."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "T"), ("EMAIL", "t@example.invalid"), ("DATE", "1700000000 +0000"))},
    }  # fmt: skip
    command = ["git", "-c", "gc.auto=0", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments]
    done = subprocess.run(command, env=environment, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read(repository: Path, *arguments: str) -> Json:
    """One read in this process; its report."""
    report, stop = run(READER, [str(repository), *arguments])
    found: Json = json.loads(report.render(stop))
    assert stop is None or stop.reason != "instrument_failed", stop
    return found


def outcome(report: Json) -> tuple[int, str | None]:
    return report["exit_status"], report["reason"]


def path_of(entry: Json) -> bytes:
    return base64.b64decode(entry["path_b64"]) if "path_b64" in entry else entry["path"].encode()


def entries(report: Json) -> dict[bytes, tuple[str, int | None, str | None]]:
    """Mode, size and digest by path; every path once and sorted by bytes."""
    paths = [path_of(entry) for entry in report["entries"]]
    assert paths == sorted(set(paths))
    return {path_of(entry): (entry["mode"], entry["size"], entry["sha256"]) for entry in report["entries"]}


def truth(repository: Path) -> dict[bytes, tuple[str, int | None, str | None]]:
    """The same by git: ls-tree and one cat-file child."""
    listing = git(repository, "ls-tree", "-r", "-z", "--full-tree", "HEAD").split(b"\0")[:-1]
    rows: list[tuple[bytes, str, str, str]] = []
    for row in listing:
        facts, path = row.split(b"\t", 1)
        mode, kind, name = facts.decode().split(" ")
        rows.append((path, mode, kind, name))
    wanted = [name for _, _, kind, name in rows if kind == "blob"]
    stream = git(repository, "cat-file", "--batch", data="".join(f"{name}\n" for name in wanted).encode())
    found: dict[bytes, tuple[str, int | None, str | None]] = {}
    at = 0
    for path, mode, kind, name in rows:
        if kind != "blob":
            found[path] = (mode, None, None)
            continue
        end = stream.index(b"\n", at)
        size = int(stream[at:end].split()[2])
        assert stream[at:end].split()[0].decode() == name
        found[path] = (mode, size, hashlib.sha256(stream[end + 1 : end + 1 + size]).hexdigest())
        at = end + 2 + size
    return found


def manifest_digest(rows: dict[bytes, tuple[str, int | None, str | None]]) -> str:
    """`manifest_sha256` written from its definition in docs/reader-report.md."""
    digest = hashlib.sha256()
    for path in sorted(rows):
        mode, size, sha256 = rows[path]
        shown = "-" if size is None else str(size)
        digest.update(f"{mode} {shown} {sha256 or '-'} ".encode() + path + b"\0")
    return digest.hexdigest()


# --- repositories -------------------------------------------------------------------------------------------

ODD_NAMES = [
    b"plain", b"a b", b"new\nline", b"tab\there", b'quo"te', b"back\\slash", b"-dash",
    b"\xc3\xa4\xe2\x82\xac", b"\xff\xfe", b"a/b/c/d/e/f", b"a.b", b"a/b.c", b"a0", b"dir-x/f", b"dir/f",
    b"dir.x", b"\x01\x02", b":colon", b"*?[", b"~", b"CON",
]  # fmt: skip


def commit_files(folder: Path, files: dict[bytes, bytes], message: str = "m") -> None:
    for path, content in files.items():
        target = os.path.join(os.fsencode(folder), path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as stream:
            stream.write(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def start(folder: Path, object_format: str = "sha1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "--template=", f"--object-format={object_format}", "-b", "main", ".")
    return folder


def make_odd(folder: Path, object_format: str = "sha1") -> Path:
    """Odd names, an executable, links, an empty file; several commits, a merge and a tag."""
    start(folder, object_format)
    commit_files(folder, {b"old": b"gone later\n"})
    git(folder, "rm", "-q", "old")
    commit_files(folder, {name: b"content of " + name for name in ODD_NAMES})
    git(folder, "branch", "side")
    (folder / "run").write_bytes(b"#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("a b")
    os.symlink(b"\xff/nowhere", os.fsencode(folder) + b"/badlink")
    commit_files(folder, {b"empty": b"", b"big": b"0123456789abcdef" * 40_000})
    git(folder, "checkout", "-q", "side")
    commit_files(folder, {b"on-side": b"x"})
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge", "side")
    git(folder, "tag", "-a", "-m", "tagged", "main-tag")
    git(folder, "tag", "main")
    return folder


def make_packed(folder: Path, object_format: str = "sha1") -> Path:
    make_odd(folder, object_format)
    git(folder, "repack", "-adq")
    git(folder, "pack-refs", "--all")
    return folder


def make_mixed(folder: Path) -> Path:
    """Two packs, one with an index of version 1, and loose objects on top."""
    make_odd(folder)
    git(folder, "-c", "pack.indexVersion=1", "repack", "-dq")
    commit_files(folder, {b"second/%d" % number: b"second %d\n" % number * 30 for number in range(30)})
    git(folder, "repack", "-dq")
    commit_files(folder, {b"second/3": b"changed\n", b"third": b"loose\n"})
    git(folder, "multi-pack-index", "write")
    git(folder, "commit-graph", "write", "--reachable")
    return folder


def make_detached(folder: Path) -> Path:
    make_odd(folder)
    git(folder, "checkout", "-q", "--detach", "HEAD~1")
    return folder


def make_bare(folder: Path) -> Path:
    source = make_odd(folder.with_name(folder.name + "-source"))
    git(source, "clone", "-q", "--bare", "--no-local", str(source), str(folder))
    return folder


def make_shallow(folder: Path) -> Path:
    source = make_odd(folder.with_name(folder.name + "-source"))
    git(source, "clone", "-q", "--depth=1", source.as_uri(), str(folder))
    return folder


def make_submodule(folder: Path) -> Path:
    start(folder)
    commit_files(folder, {b"f": b"f\n"})
    name = git(folder, "rev-parse", "HEAD").decode().strip()
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{name},deep/sub")
    git(folder, "commit", "-q", "-m", "sub")
    return folder


def make_empty(folder: Path) -> Path:
    start(folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "empty")
    return folder


def make_symbolic(folder: Path) -> Path:
    """HEAD through two more symbolic references."""
    make_odd(folder)
    git(folder, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(folder, "symbolic-ref", "HEAD", "refs/heads/alias")
    return folder


def make_many(folder: Path) -> Path:
    made: Path = repositories.generate(folder, 3000, 4)
    return made


MAKERS: dict[str, Callable[[Path], Path]] = {
    "loose": make_odd,
    "packed": make_packed,
    "mixed": make_mixed,
    "sha256-loose": lambda folder: make_odd(folder, "sha256"),
    "sha256-packed": lambda folder: make_packed(folder, "sha256"),
    "detached": make_detached,
    "shallow": make_shallow,
    "submodule": make_submodule,
    "empty": make_empty,
    "symbolic": make_symbolic,
    "many": make_many,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Repositories by the name of their maker, each made once and not to be changed."""
    done: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in done:
            done[name] = MAKERS[name](tmp_path_factory.mktemp("git") / name)
        return done[name]

    return get


@pytest.fixture
def own(made: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy that a test may change."""

    def get(name: str) -> Path:
        shutil.copytree(made(name), tmp_path / "own", symlinks=True)
        for path in (tmp_path / "own").rglob("*"):
            if path.is_file() and not path.is_symlink():
                path.chmod(0o644)
        return tmp_path / "own"

    return get


# --- agreement ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_agrees_with_git(made: Callable[[str], Path], name: str) -> None:
    repository = made(name)
    report = read(repository, "--manifest", "-", "--deep")
    expected = truth(repository)
    assert outcome(report) == (0, None), report["detail"]
    assert entries(report) == expected
    assert report["manifest_sha256"] == manifest_digest(expected)
    assert report["head"] == git(repository, "rev-parse", "HEAD").decode().strip()
    assert report["format"] == {
        "name": "git",
        "object_format": "sha256" if name.startswith("sha256") else "sha1",
        "ref_storage": "files",
    }
    assert (report["vcs"], report["reader"], report["backend"]) == ("git", "git_object_reader", "pure")
    assert report["codec_sha256"] is None
    history = git(repository, "rev-list", "--count", "HEAD")
    assert report["verified"].get("ancestors", 0) == int(history) - 1
    trees = git(repository, "ls-tree", "-rdz", "HEAD").split(b"\0")[:-1]
    assert report["verified"]["trees"] == len({row.split()[2] for row in trees if b" tree " in row}) + 1
    regular = {path for path, (mode, _, _) in expected.items() if mode.startswith("100")}
    assert len(report["nonregular_paths"]) == len(set(expected) - regular)


@pytest.mark.parametrize("name", ["loose", "packed", "mixed", "many"])
def test_agrees_with_dulwich(made: Callable[[str], Path], name: str) -> None:
    rows: dict[bytes, tuple[str, int | None, str | None]] = {}
    with contextlib.closing(Repo(str(made(name)))) as repository:
        head = repository[repository.head()]
        assert isinstance(head, Commit)
        for entry in iter_tree_contents(repository.object_store, head.tree):
            _, content = repository.object_store.get_raw(entry.sha)
            rows[entry.path] = (f"{entry.mode:06o}", len(content), hashlib.sha256(content).hexdigest())
    assert read(made(name))["manifest_sha256"] == manifest_digest(rows)


def test_agrees_with_git_on_the_projects_own_repository(tmp_path: Path) -> None:
    if not (ROOT / ".git").is_dir():
        pytest.skip("this checkout has no .git directory")
    probe = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("this checkout has no commit")
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", "--no-checkout", "--no-local", str(ROOT), str(copy))
    report = read(copy, "--manifest", "-", "--deep")
    assert outcome(report) == (0, None), report["detail"]
    assert entries(report) == truth(copy)


def test_empty_tree_need_not_be_stored(own: Callable[[str], Path]) -> None:
    repository = own("empty")
    shutil.rmtree(repository / ".git/objects/4b", ignore_errors=True)
    report = read(repository, "--manifest", "-")
    assert outcome(report) == (0, None)
    assert report["entries"] == []


def test_a_linked_repo_argument_is_followed(made: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(made("loose"))
    assert read(tmp_path / "link")["manifest_sha256"] == read(made("loose"))["manifest_sha256"]


# --- the script ---------------------------------------------------------------------------------------------


def test_runs_isolated_with_the_standard_library_alone(made: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "zlib.py").write_text("raise SystemExit('planted')")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), str(made("mixed")), "--manifest", "-"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    report = json.loads(done.stdout)
    assert entries(report) == truth(made("mixed"))
    digest = hashlib.sha256()
    for path in sorted(READER.code_files, key=os.path.basename):
        data = Path(path).read_bytes()
        digest.update(f"{os.path.basename(path)}\0{len(data)}\0".encode() + data)
    assert report["code_sha256"] == digest.hexdigest()
    assert {os.path.basename(path) for path in READER.code_files} == {
        "scoped_read.py", "git_object_reader.py", "git_repository.py", "git_config.py", "git_files.py",
        "git_objects.py", "git_refs.py", "git_trees.py", "git_loose.py", "git_packs.py",
    }  # fmt: skip


def test_code_files_are_all_that_the_script_loads(made: Callable[[str], Path]) -> None:
    probe = (
        f"import runpy, sys; sys.argv = ['x', {str(made('mixed'))!r}]\n"
        f"try: runpy.run_path({str(SCRIPT)!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(*sorted(m.__file__ for n, m in sys.modules.items() if n.startswith('reader.')), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", probe], capture_output=True, check=True)
    assert set(done.stdout.decode().splitlines()[1:]) == set(READER.code_files)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["{missing}"], 2), (["{repo}", "--path", "../x"], 2), (["{plain}"], 1), ([], 2)],
)
def test_script_speaks_in_one_line(
    made: Callable[[str], Path], tmp_path: Path, arguments: list[str], status: int
) -> None:
    (tmp_path / "plain").mkdir()
    places = {"missing": tmp_path / "no", "repo": made("loose"), "plain": tmp_path / "plain"}
    filled = [argument.format(**places) for argument in arguments]
    done = subprocess.run([sys.executable, "-I", str(SCRIPT), *filled], capture_output=True, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_status"] == status
    assert done.stderr.count(b"\n") == 1 and report["reason"].encode() in done.stderr


# --- scope and bounds ---------------------------------------------------------------------------------------


def test_scoped_read_decodes_only_what_is_on_the_way(own: Callable[[str], Path]) -> None:
    repository = own("loose")
    for name, path in (("HEAD:plain", "plain"), ("HEAD:dir", "dir")):
        found = git(repository, "rev-parse", name).decode().strip()
        (repository / ".git/objects" / found[:2] / found[2:]).write_bytes(b"damage")
        assert outcome(read(repository, "--path", path + ("/f" if path == "dir" else "")))[0] == 3
    report = read(
        repository,
        "--path",
        "a/b/c/d/e/f",
        "--path",
        "run",
        "--path",
        "none",
        "--path",
        "a",
        "--manifest",
        "-",
    )
    assert outcome(report) == (0, None)
    assert sorted(entries(report)) == [b"a", b"a/b/c/d/e/f", b"run"]
    assert report["missing_paths"] == ["none"] and report["nonregular_paths"] == ["a"]
    assert report["verified"] == {"blobs": 2, "commits": 1, "trees": 6}
    assert outcome(read(repository))[0] == 3


@pytest.mark.parametrize("name", ["loose", "packed", "many"])
def test_bounds_are_inclusive(made: Callable[[str], Path], name: str) -> None:
    repository = made(name)
    whole = read(repository)
    counts = whole["counts"]
    largest = max(size or 0 for _, size, _ in truth(repository).values())
    deepest = max(path.count(b"/") + 1 for path in truth(repository))
    trees = max(
        int(row.split()[2])
        for row in git(repository, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
        if row.split()[1] in (b"tree", b"commit")
    )
    for option, value, reason in (
        ("--max-object-bytes", max(largest, trees), "bound_object_bytes"),
        ("--max-total-bytes", counts["bytes_decoded"], "bound_total_bytes"),
        ("--max-entries", counts["tree_entries"], "bound_entries"),
        ("--max-depth", deepest, "bound_depth"),
    ):
        at = read(repository, option, str(value))
        assert (outcome(at), at["manifest_sha256"]) == ((0, None), whole["manifest_sha256"])
        assert outcome(read(repository, option, str(value - 1))) == (77, reason)


def test_oversize_is_found_without_reading(own: Callable[[str], Path]) -> None:
    repository = own("packed")
    report = read(repository, "--max-blob-bytes", "1000", "--max-object-bytes", "5000", "--manifest", "-")
    assert outcome(report) == (0, None)
    assert report["oversize_paths"] == ["big"]
    assert entries(report)[b"big"] == ("100644", 640_000, None)


def test_materialises_what_was_committed(made: Callable[[str], Path], tmp_path: Path) -> None:
    report = read(made("mixed"), str(tmp_path / "out"))
    assert outcome(report) == (0, None), report["detail"]
    found: dict[bytes, tuple[str, int | None, str | None]] = {}
    root = os.fsencode(tmp_path / "out")
    for folder, directories, names in os.walk(root):
        for name in [*names, *(d for d in directories if os.path.islink(os.path.join(folder, d)))]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                mode, data = "120000", os.readlink(path)
            else:
                mode = "100755" if os.stat(path).st_mode & stat.S_IXUSR else "100644"
                data = Path(os.fsdecode(path)).read_bytes()
            found[path[len(root) + 1 :]] = (mode, len(data), hashlib.sha256(data).hexdigest())
    assert found == truth(made("mixed"))


# --- shape --------------------------------------------------------------------------------------------------


def _gone(store: Path) -> None:
    shutil.rmtree(store)


def _file(store: Path, text: str) -> None:
    shutil.rmtree(store)
    store.write_text(text)


def _link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def _fifo(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _pack(store: Path) -> Path:
    return next((store / "objects/pack").glob("*.pack"))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


VERSION_7 = "[core]\n\trepositoryformatversion = 7\n"

SHAPES: dict[str, tuple[tuple[int, str], Callable[[Path], object]]] = {
    "missing": ((1, "store_missing"), _gone),
    "link": ((1, "store_linked"), _link),
    "gitfile": ((1, "store_redirected"), lambda s: _file(s, "gitdir: ../elsewhere\n")),
    "file": ((1, "store_not_regular"), lambda s: _file(s, "garbage\n")),
    "fifo": ((1, "store_not_regular"), _fifo),
    "commondir": ((1, "store_redirected"), lambda s: _write(s / "commondir", "..\n")),
    "head-missing": ((1, "malformed_head"), lambda s: (s / "HEAD").unlink()),
    "head-link": ((1, "ref_not_regular"), lambda s: _link(s / "HEAD")),
    "head-fifo": ((1, "ref_not_regular"), lambda s: _fifo(s / "HEAD")),
    "head-long": ((1, "malformed_head"), lambda s: _write(s / "HEAD", "ref: refs/heads/main" + " " * 5000)),
    "refs-missing": ((1, "malformed_head"), lambda s: shutil.rmtree(s / "refs")),
    "refs-link": ((1, "ref_not_regular"), lambda s: _link(s / "refs")),
    "heads-link": ((1, "ref_not_regular"), lambda s: _link(s / "refs/heads")),
    "packed-refs-link": ((1, "ref_not_regular"), lambda s: _link(s / "packed-refs")),
    "packed-refs-fifo": ((1, "ref_not_regular"), lambda s: _fifo(s / "packed-refs")),
    "objects-missing": ((1, "store_missing"), lambda s: shutil.rmtree(s / "objects")),
    "objects-link": ((1, "ref_not_regular"), lambda s: _link(s / "objects")),
    "objects-fifo": ((1, "ref_not_regular"), lambda s: _fifo(s / "objects")),
    "pack-directory-link": ((1, "ref_not_regular"), lambda s: _link(s / "objects/pack")),
    "pack-link": ((1, "ref_not_regular"), lambda s: _link(_pack(s))),
    "pack-fifo": ((1, "ref_not_regular"), lambda s: _fifo(_pack(s))),
    "loose-fifo": ((1, "ref_not_regular"), lambda s: _fifo(_made(s / "objects/aa") / ("b" * 38))),
    "fan-out-link": ((1, "ref_not_regular"), lambda s: (s / "objects/ab").symlink_to("pack")),
    "config-fifo": ((1, "ref_not_regular"), lambda s: _fifo(s / "config")),
    "config-version": ((77, "newer_format"), lambda s: _write(s / "config", VERSION_7)),
    "config-broken": ((77, "unrecognised_format"), lambda s: _write(s / "config", "[core\n")),
    "alternates": ((77, "alternates"), lambda s: _write(s / "objects/info/alternates", "# c\n/elsewhere\n")),
    "http-alternates": ((77, "alternates"), lambda s: _write(s / "objects/info/http-alternates", "x\n")),
    "unborn": ((1, "no_committed_head"), lambda s: _write(s / "HEAD", "ref: refs/heads/none\n")),
    "tree": ((1, "malformed_head"), lambda s: _write(s / "HEAD", _rev(s, "HEAD^{tree}"))),
    "tag": ((1, "malformed_head"), lambda s: _write(s / "HEAD", _rev(s, "refs/tags/main-tag"))),
    "blob": ((1, "malformed_head"), lambda s: _write(s / "HEAD", _rev(s, "HEAD:plain"))),
    "dangling": ((1, "head_commit_missing"), lambda s: _write(s / "HEAD", "12" * 20)),
    "abbreviated": ((1, "malformed_head"), lambda s: _write(s / "HEAD", _rev(s, "HEAD")[:12])),
}  # fmt: skip


def _rev(store: Path, spec: str) -> str:
    return git(store.parent, "rev-parse", spec).decode().strip()


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(own: Callable[[str], Path], name: str) -> None:
    expected, change = SHAPES[name]
    repository = own("packed")
    change(repository / ".git")
    report = read(repository, "--deadline", "10")
    assert outcome(report) == expected, report["detail"]
    assert report["manifest_sha256"] is None and "entries" not in report


@pytest.mark.parametrize("name", ["HEAD", "pack"])
def test_hard_links_are_noted(own: Callable[[str], Path], name: str) -> None:
    repository = own("packed")
    assert read(repository)["hard_linked"] is False
    linked = _pack(repository / ".git") if name == "pack" else repository / ".git/HEAD"
    os.link(linked, repository / "other-name")
    report = read(repository)
    assert outcome(report) == (0, None) and report["hard_linked"] is True


def test_comments_and_nothing_in_alternates_borrow_nothing(own: Callable[[str], Path]) -> None:
    repository = own("packed")
    _write(repository / ".git/objects/info/alternates", "\n# nothing\n")
    assert outcome(read(repository)) == (0, None)


def test_a_bare_repository_is_none(tmp_path: Path) -> None:
    assert outcome(read(make_bare(tmp_path / "bare"))) == (1, "store_missing")


# --- damage and absence -------------------------------------------------------------------------------------


def loose_path(repository: Path, spec: str) -> Path:
    name = _rev(repository / ".git", spec)
    return repository / ".git/objects" / name[:2] / name[2:]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("HEAD", "commit_mismatch"),
        ("HEAD^{tree}", "tree_mismatch"),
        ("HEAD:dir", "tree_mismatch"),
        ("HEAD:big", "blob_mismatch"),
    ],
)
@pytest.mark.parametrize("how", ["damaged", "other", "empty"])
def test_objects_that_do_not_verify(own: Callable[[str], Path], spec: str, reason: str, how: str) -> None:
    repository = own("loose")
    path = loose_path(repository, spec)
    other = {
        "HEAD": "HEAD~1",
        "HEAD^{tree}": "HEAD~1^{tree}",
        "HEAD:dir": "HEAD:a",
        "HEAD:big": "HEAD:plain",
    }[spec]
    data = {
        "damaged": path.read_bytes()[:-6],
        "other": loose_path(repository, other).read_bytes(),
        "empty": b"",
    }
    path.write_bytes(data[how])
    assert outcome(read(repository)) == (3, reason)


def test_absent_content(own: Callable[[str], Path]) -> None:
    repository = own("loose")
    loose_path(repository, "HEAD:plain").unlink()
    assert outcome(read(repository)) == (77, "content_absent")
    assert outcome(read(repository, "--complete")) == (3, "content_absent")
    assert outcome(read(repository, "--path", "run", "--complete")) == (0, None)
    loose_path(repository, "HEAD").unlink()
    assert outcome(read(repository)) == (1, "head_commit_missing")


def test_a_good_copy_is_found_behind_a_bad_one(own: Callable[[str], Path]) -> None:
    repository = own("loose")
    git(repository, "repack", "-aq")
    whole = read(repository)
    for path in (repository / ".git/objects").glob("??/*"):
        path.write_bytes(b"damage")
    assert read(repository)["manifest_sha256"] == whole["manifest_sha256"]


def test_a_good_loose_copy_is_found_behind_a_bad_pack(own: Callable[[str], Path]) -> None:
    repository = own("loose")
    whole = read(repository)
    git(repository, "repack", "-aq")
    pack = _pack(repository / ".git")
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    data[12:-20] = bytes(len(data) - 32)
    pack.write_bytes(data)
    assert read(repository, "--deep")["manifest_sha256"] == whole["manifest_sha256"]


def test_damaged_container_is_no_absence(own: Callable[[str], Path]) -> None:
    repository = own("packed")
    index = _pack(repository / ".git").with_suffix(".idx")
    good = index.read_bytes()
    index.write_bytes(good[:-1])
    assert outcome(read(repository)) == (77, "unrecognised_format")
    name = bytes.fromhex(_rev_with(repository, index, good, "HEAD:plain"))
    at = good.index(name, 8 + 1024)
    index.write_bytes(good[: at + 19] + bytes([good[at + 19] ^ 1]) + good[at + 20 :])
    assert outcome(read(repository)) == (3, "store_damaged")
    assert outcome(read(repository, "--path", "run")) == (0, None)
    index.write_bytes(good[:4] + b"\0\0\0\3" + good[8:])
    assert outcome(read(repository)) == (77, "unsupported_format")


def _rev_with(repository: Path, index: Path, good: bytes, spec: str) -> str:
    now = index.read_bytes()
    index.write_bytes(good)
    try:
        return _rev(repository / ".git", spec)
    finally:
        index.write_bytes(now)


def test_history(own: Callable[[str], Path]) -> None:
    repository = own("loose")
    assert "ancestors" not in read(repository)["verified"]
    parent = _rev(repository / ".git", "HEAD~1")
    path = loose_path(repository, "HEAD~1")
    good = path.read_bytes()
    path.write_bytes(b"damage")
    assert outcome(read(repository)) == (0, None)
    assert outcome(read(repository, "--deep")) == (3, "commit_mismatch")
    path.unlink()
    report = read(repository, "--deep", "--complete")
    assert (outcome(report), report["shallow_boundary"]) == ((0, None), [parent])
    path.write_bytes(good)
    _write(repository / ".git/shallow", _rev(repository / ".git", "HEAD") + "\n")
    assert read(repository, "--deep")["shallow_boundary"] == []


def test_shallow_clone_has_its_boundary(made: Callable[[str], Path]) -> None:
    report = read(made("shallow"), "--deep")
    raw = git(made("shallow"), "cat-file", "commit", "HEAD").splitlines()
    parents = [line.split()[1].decode() for line in raw if line.startswith(b"parent ")]
    assert report["shallow_boundary"] == sorted(parents)
    assert len(parents) == 2


# --- a store that changes, and one that must not ------------------------------------------------------------


def open_only(repository: Path, stack: contextlib.ExitStack) -> Callable[[], None]:
    """Open a repository as a read does; returns the check that ends a read."""
    options = Options(str(repository), None, None, None, Bounds(), "pure")
    report = Report("r", "1", "git", ())
    return open_pure(options, report, Budget(options.bounds), stack).check


@pytest.mark.parametrize(
    "what", ["commit", "branch", "packed-refs", "repack", "config", "pack-touched", "swap"]
)
def test_store_that_changes_during_the_read(own: Callable[[str], Path], what: str) -> None:
    repository = own("mixed")
    store = repository / ".git"
    with contextlib.ExitStack() as stack:
        check = open_only(repository, stack)
        check()
        if what == "commit":
            git(repository, "commit", "-q", "--allow-empty", "-m", "new")
        elif what == "branch":
            git(repository, "symbolic-ref", "HEAD", "refs/heads/side")
        elif what == "packed-refs":
            git(repository, "pack-refs", "--all")
        elif what == "repack":
            git(repository, "repack", "-adq")
        elif what == "config":
            git(repository, "config", "x.y", "z")
        elif what == "pack-touched":
            os.utime(_pack(store), (1, 1))
        else:
            shutil.copytree(store / "objects/pack", store / "objects/new")
            shutil.rmtree(store / "objects/pack")
            (store / "objects/new").rename(store / "objects/pack")
        with pytest.raises(Stop) as caught:
            check()
        assert caught.value.reason == "store_changed"


def snapshot(root: Path) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for path in sorted(root.rglob("*")):
        state = path.lstat()
        found.append(
            (str(path), state.st_mode, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        )
    return found


@pytest.mark.parametrize("name", ["loose", "mixed"])
def test_nothing_is_written_or_left_open(made: Callable[[str], Path], name: str) -> None:
    before, descriptors = snapshot(made(name)), set(os.listdir("/dev/fd"))
    read(made(name), "--deep", "--manifest", "-")
    read(made(name), "--max-entries", "1")
    assert snapshot(made(name)) == before
    assert len(set(os.listdir("/dev/fd"))) == len(descriptors)


# --- another source -----------------------------------------------------------------------------------------


class Told:
    """An `ObjectSource` that answers from a dictionary, truly or not."""

    def __init__(self, objects: dict[bytes, Copy]) -> None:
        self.objects = objects

    def info(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, tuple[bytes, int] | Fault | None]]:
        for name in names:
            found = self.objects.get(name)
            yield name, None if found is None else (found[0], len(found[1]))

    def contents(self, names: Sequence[bytes], limit: int) -> Iterator[tuple[bytes, Copy | Fault | None]]:
        for name in reversed(names):
            yield name, self.objects.get(name)

    def copies(self, name: bytes, limit: int) -> Iterator[Copy]:
        return iter(())

    def doubt(self) -> Stop | None:
        return None


def read_told(repository: Path, objects: dict[bytes, Copy]) -> Json:
    reader = Reader(
        **{
            **READER.__dict__,
            "open": lambda o, r, b, c: open_repository(o, r, b, c, lambda *_: Told(objects)),
        }
    )
    report, stop = run(reader, [str(repository), "--manifest", "-"])
    found: Json = json.loads(report.render(stop))
    return found


def test_no_source_is_believed(made: Callable[[str], Path]) -> None:
    repository = made("loose")
    listing = git(repository, "cat-file", "--batch-all-objects", "--batch-check").decode().split()
    objects = {
        bytes.fromhex(name): (kind.encode(), git(repository, "cat-file", kind, name))
        for name, kind in zip(listing[::3], listing[1::3], strict=True)
    }
    assert entries(read_told(repository, objects)) == truth(repository)
    kinds = {"HEAD": "commit", "HEAD^{tree}": "tree", "HEAD:a/b": "tree", "HEAD:plain": "blob"}
    for spec, reason in kinds.items():
        name = bytes.fromhex(_rev(repository / ".git", spec))
        kind, content = objects[name]
        for lie in ((kind, content + b" "), (kind, b""), (b"tag", content)):
            report = read_told(repository, {**objects, name: lie})
            assert outcome(report) == (3, f"{reason}_mismatch"), (spec, lie)


def test_a_source_may_report_faults(made: Callable[[str], Path]) -> None:
    class Faulty(Told):
        def contents(self, names: Sequence[bytes], limit: int) -> Iterator[tuple[bytes, Copy | Fault | None]]:
            for name in names:
                yield name, Malformed("torn")

    repository: Path = made("loose")
    seen: list[Repository] = []

    def make(found: Repository, budget: Budget, cleanup: contextlib.ExitStack) -> Faulty:
        seen.append(found)
        return Faulty({})

    reader = Reader(**{**READER.__dict__, "open": lambda o, r, b, c: open_repository(o, r, b, c, make)})
    report, stop = run(reader, [str(repository)])
    assert stop is not None and stop.reason == "commit_mismatch" and "torn" in stop.detail
    assert report.head == seen[0].head.hex()
    assert seen[0].path == str(repository / ".git")
