# ruff: noqa: E501 - programs in one line read better
"""The git backend: which program it runs, what that program gets, and what it may do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import git_hostile as hostile
import pytest

from reader import git_instrument_reader, git_object_reader
from reader.git_instrument_reader import read
from reader.instrument import VARIABLE, clean_environment, end_group, find_git, identify, run_bounded
from reader.scoped_read import Bounds, Budget, Stop, run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GIT = os.path.realpath(shutil.which("git") or "git")
PATH = os.environ.get("PATH", os.defpath)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder in memory where there is such a place: the tests write many small files."""
    yield from hostile.quick_folder()


@pytest.fixture
def tmp_path(place: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=place))


@pytest.fixture(scope="module")
def base(place: Path) -> Any:
    return hostile.make_base(place / "base")


@pytest.fixture
def repo(base: Any, tmp_path: Path) -> Any:
    return hostile.copy_base(base, tmp_path / "copy")


def sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def report_of(argument: Any, environ: dict[str, str] | None = None, *more: str, **how: Any) -> dict[str, Any]:
    status, text, line = read([str(argument), *more], {"PATH": PATH} if environ is None else environ, **how)
    report: dict[str, Any] = json.loads(text)
    assert report["exit_status"] == status
    assert line.count("\n") == bool(status)
    return report


def write_program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def budget(seconds: float = 20) -> Budget:
    return Budget(Bounds(deadline_ns=int(seconds * 1e9)))


# --- finding and identifying -----------------------------------------------------------------------------------


def test_git_on_path_is_the_default_and_is_named(repo: Any) -> None:
    report = report_of(repo.work)
    assert report["outcome"] == "ok"
    assert report["reader"] == "git_instrument_reader" and report["backend"] == "git"
    version = subprocess.run([GIT, "version"], capture_output=True, text=True, check=True).stdout.strip()
    assert report["instrument"] == {
        "name": "git",
        "version": version.removeprefix("git version "),
        "sha256": sha256(GIT),
        "is_script": False,
    }
    assert str(Path(GIT).parent) not in json.dumps(report)


def test_the_script_says_the_same(repo: Any) -> None:
    script = [sys.executable, "-I", str(ROOT / "reader/git_instrument_reader.py"), str(repo.work)]
    done = subprocess.run(script, capture_output=True, text=True, env={"PATH": PATH}, cwd="/", check=True)
    first, second = json.loads(done.stdout), report_of(repo.work)
    for report in (first, second):
        del report["duration_ns"]
    assert first == second
    assert done.stderr == ""


def test_the_chosen_instrument_is_used_before_path(repo: Any, tmp_path: Path) -> None:
    copy = tmp_path / "another name"
    shutil.copy(GIT, copy)
    report = report_of(repo.work, {"PATH": "/nonexistent", VARIABLE: str(copy)})
    assert report["instrument"]["name"] == "another name"
    assert report["instrument"]["sha256"] == sha256(GIT), "a copy has the identity of what it is"


def test_links_have_the_identity_of_what_they_lead_to(repo: Any, tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(GIT)
    (tmp_path / "two").symlink_to(tmp_path / "one")
    report = report_of(repo.work, {VARIABLE: str(tmp_path / "two")})
    assert report["outcome"] == "ok" and report["instrument"]["sha256"] == sha256(GIT)


def test_one_byte_more_is_another_identity(repo: Any, tmp_path: Path) -> None:
    """Which is why identity must not be taken for independence."""
    copy = tmp_path / "git"
    shutil.copy(GIT, copy)
    with copy.open("ab") as out:
        out.write(b"\0")
    report = report_of(repo.work, {VARIABLE: str(copy)})
    assert report["outcome"] == "ok" and report["instrument"]["sha256"] not in (sha256(GIT), None)


def test_a_wrapper_is_known_for_one(tmp_path: Path) -> None:
    wrapper = write_program(tmp_path / "git", f'#!/bin/sh\nexec {GIT} "$@"\n')
    (tmp_path / "scratch").mkdir()
    found = identify(str(wrapper), str(tmp_path / "scratch"), budget())
    assert found.is_script and found.sha256 == sha256(wrapper) and found.owner == os.getuid()
    assert found.as_json()["is_script"] is True
    real = identify(GIT, str(tmp_path / "scratch"), budget())
    assert not real.is_script and real.size == os.stat(GIT).st_size and real.version == found.version


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "set but empty"),
        ("git", "not an absolute path"),
        ("./git", "not an absolute path"),
        ("/nonexistent/git", "no executable file"),
        ("/etc", "no executable file"),
        ("/etc/passwd", "no executable file"),
        ("/dev/null", "no executable file"),
    ],
)
def test_an_unusable_choice_is_said_and_not_replaced(repo: Any, value: str, words: str) -> None:
    report = report_of(repo.work, {"PATH": PATH, VARIABLE: value})
    assert (report["exit_status"], report["reason"]) == (77, "instrument_missing")
    assert words in report["detail"] and VARIABLE in report["detail"]
    assert report["instrument"] is None


@pytest.mark.parametrize("path", ["", ".", ":", "bin", "/nonexistent"])
def test_no_git_on_path_is_said(repo: Any, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty or relative directory of PATH leads into the repository that one stands in."""
    program = repo.program("git")
    for place in (repo.work, repo.work / "bin"):
        shutil.copy(program, place / "git")
    monkeypatch.chdir(repo.work)
    report = report_of(repo.work, {"PATH": path})
    assert report["reason"] == "instrument_missing" and not repo.canary.exists()


def test_a_git_inside_the_repository_is_refused(repo: Any, tmp_path: Path) -> None:
    inside = repo.work / "tools" / "git"
    inside.parent.mkdir()
    shutil.copy(GIT, inside)
    (tmp_path / "link").symlink_to(inside)
    for value in (inside, tmp_path / "link"):
        report = report_of(repo.work, {VARIABLE: str(value)})
        assert report["reason"] == "instrument_missing" and "lies in the repository" in report["detail"]
    report = report_of(repo.work, {"PATH": str(inside.parent)})
    assert report["reason"] == "instrument_missing"


def test_directories_of_path_are_tried_in_order(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/git").mkdir()
    (tmp_path / "b/git").write_text("no program")
    write_program(tmp_path / "c/git", "#!/bin/sh\n")
    path = ":".join(["", "relative", *(str(tmp_path / name) for name in ("a", "b", "c"))])
    assert find_git({"PATH": path}, "/nonexistent") == str(tmp_path / "c/git")


# --- programs that are not what they should be -----------------------------------------------------------------

VERSION = 'if sys.argv[1:] == ["version"]:\n    print("git version 2.99.1")\n    sys.exit(0)\n'


def fake(path: Path, body: str, version: str = VERSION) -> Path:
    text = f"#!{sys.executable} -IS\nimport os, signal, sys, time\n{version}{body}\n"
    return write_program(path, text)


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("", "does not say that it is a git"),
        ("sys.exit(1)\n", "does not say that it is a git"),
        ("print('git version banana'); sys.exit(0)\n", "does not say that it is a git"),
        ("print('git version 2.99.1'); print('more'); sys.exit(0)\n", "does not say that it is a git"),
        ("print('git version 2.99.1'); sys.exit(3)\n", "does not say that it is a git"),
        ("print('git version 2.35.9'); sys.exit(0)\n", "older than 2.36"),
        ("print('git version 1.99'); sys.exit(0)\n", "older than 2.36"),
        ("os.write(1, b'x' * 1000000); sys.exit(0)\n", "does not say that it is a git"),
        ("os.write(2, b'x' * 1000000); print('git version 2.1'); sys.exit(0)\n", "older than 2.36"),
    ],
)
def test_what_is_no_usable_git_is_said(repo: Any, tmp_path: Path, version: str, words: str) -> None:
    program = fake(tmp_path / "git", "sys.exit(0)", version)
    report = report_of(repo.work, {VARIABLE: str(program)})
    assert report["reason"] == "instrument_missing" and words in report["detail"], report["detail"]


def test_a_program_that_cannot_start_is_said(repo: Any, tmp_path: Path) -> None:
    program = write_program(tmp_path / "git", "#!/nonexistent/interpreter\n")
    report = report_of(repo.work, {VARIABLE: str(program)})
    assert report["reason"] == "instrument_missing" and "cannot be started" in report["detail"]


ANSWER = """
for line in sys.stdin.buffer:
    words = line.split()
    if words[0] == b"flush":
        sys.stdout.buffer.flush()
        continue
    command, name = words
"""

MISBEHAVIOUR = {
    "ends": "sys.exit(0)",
    "dies": "os.kill(os.getpid(), 9)",
    "says-nothing-and-ends": "sys.stdin.read(1)\nsys.exit(0)",
    "babbles": "os.write(1, b'hello\\n' * 1000)\ntime.sleep(60)",
    "endless-line": "while True:\n    os.write(1, b'x' * 65536)",
    "says-missing": ANSWER + "    sys.stdout.buffer.write(name + b' missing\\n')",
    "another-name": ANSWER + "    sys.stdout.buffer.write(b'%s commit 3\\nabc\\n' % (b'12' * 20))",
    "another-size": ANSWER + "    sys.stdout.buffer.write(b'%s commit 5\\nabc\\n' % name)",
    "no-newline": ANSWER
    + "    sys.stdout.buffer.write(b'%s commit 3' % name + (b'\\n' if command == b'info' else b'\\nabcX'))",
    "no-number": ANSWER + "    sys.stdout.buffer.write(b'%s commit x\\n' % name)",
    "negative": ANSWER + "    sys.stdout.buffer.write(b'%s commit -1\\n' % name)",
    "signature": ANSWER + "    sys.stdout.buffer.write(b'%s commit 1_0\\n' % name)",
    "odd-kind": ANSWER + "    sys.stdout.buffer.write(b'%s planted 3\\n' % name)",
    "closes-input": "os.close(0)\ntime.sleep(0.3)\nsys.exit(0)",
}


@pytest.mark.parametrize("body", MISBEHAVIOUR.values(), ids=MISBEHAVIOUR)
def test_a_broken_protocol_is_the_instruments_failure(repo: Any, tmp_path: Path, body: str) -> None:
    report = report_of(repo.work, {VARIABLE: str(fake(tmp_path / "git", body))}, "--deadline", "20")
    assert (report["exit_status"], report["reason"]) == (77, "instrument_failed"), report["detail"]
    assert report["instrument"]["version"] == "2.99.1"


def test_a_large_claim_of_the_instrument_is_a_bound(repo: Any, tmp_path: Path) -> None:
    body = ANSWER + "    sys.stdout.buffer.write(b'%s commit 999999999999\\n' % name)"
    report = report_of(repo.work, {VARIABLE: str(fake(tmp_path / "git", body))})
    assert report["reason"] == "bound_object_bytes"


def test_forged_content_is_invalid_whoever_forges_it(repo: Any, tmp_path: Path) -> None:
    body = (
        ANSWER
        + "    sys.stdout.buffer.write(b'%s commit 3\\n' % name + (b'' if command == b'info' else b'abc\\n'))"
    )
    report = report_of(repo.work, {VARIABLE: str(fake(tmp_path / "git", body))})
    assert (report["exit_status"], report["reason"]) == (3, "commit_mismatch")


@pytest.mark.parametrize("when", ["version", "cat-file"])
def test_a_silent_instrument_and_its_children_end_with_the_deadline(
    repo: Any, tmp_path: Path, when: str
) -> None:
    """The whole process group is killed: here a child that ignores everything that can be ignored."""
    marker = tmp_path / "pid"
    body = (
        f"child = os.fork()\n"
        f"signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"if not child:\n    open({str(marker)!r}, 'w').write(str(os.getpid()))\n"
        f"time.sleep(300)"
    )
    program = fake(tmp_path / "git", body, VERSION if when == "cat-file" else "")
    started = time.monotonic()
    report = report_of(repo.work, {VARIABLE: str(program)}, "--deadline", "1.5")
    assert time.monotonic() - started < 8
    assert report["reason"] == "deadline"
    for _ in range(100):
        if not _running(int(marker.read_text())):
            return
        time.sleep(0.02)
    raise AssertionError("a process of the instrument is still there")


def _running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_child_gets_an_environment_made_from_nothing(repo: Any, tmp_path: Path) -> None:
    out = tmp_path / "seen"
    body = f"open({str(out)!r}, 'w').write(repr((dict(os.environ), os.getcwd(), sys.argv[1:])))\nsys.exit(0)"
    environ = {
        VARIABLE: str(fake(tmp_path / "git", body)),
        "GIT_DIR": "/planted",
        "GIT_TRACE": "1",
        "LD_PRELOAD": "",
        "SECRET_TOKEN": "secret",
        "HOME": "/planted",
    }
    report_of(repo.work, environ)
    seen, folder, arguments = eval(out.read_text())  # what the fake wrote
    scratch = seen["HOME"]
    expected = {
        **clean_environment(scratch),
        "GIT_DIR": f"{scratch}/store/git",
        "GIT_OBJECT_DIRECTORY": f"{scratch}/store/objects",
    }
    assert {key: value for key, value in seen.items() if key != "LC_CTYPE"} == expected
    assert folder == scratch and not os.path.exists(scratch)
    assert arguments == ["cat-file", "--batch-command", "--buffer"]
    assert str(repo.work) not in repr(seen)


def test_the_child_inherits_no_other_descriptors(repo: Any, tmp_path: Path) -> None:
    out = tmp_path / "seen"
    body = (
        "names = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if os.path.lexists(f'/proc/self/fd/{n}')]\n"
        f"open({str(out)!r}, 'w').write(repr(names))\nsys.exit(0)"
    )
    with (repo.outside / "secret").open() as held:
        os.set_inheritable(held.fileno(), True)
        report_of(repo.work, {VARIABLE: str(fake(tmp_path / "git", body))})
    names = eval(out.read_text())
    assert str(repo.outside / "secret") not in names
    store = str(repo.objects)
    kept = [
        n for n in names if not n.startswith(("pipe:", "/dev/null", "/proc", store, str(tmp_path / "git")))
    ]
    assert kept == [], kept


def test_what_the_child_sees_is_only_what_was_checked(repo: Any, tmp_path: Path) -> None:
    """No side file, no reference, no configuration of the subject's; links lead to open descriptors only."""
    stem = repo.repack()
    for name in ("rev", "bitmap", "keep", "promisor"):
        stem.with_suffix(f".{name}").write_bytes(b"x")
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.objects / "info/commit-graph").write_bytes(b"x")
    repo.blob(b"loose\n")
    out = tmp_path / "seen"
    body = (
        "found = []\n"
        "for folder, folders, names in os.walk(os.path.dirname(os.environ['GIT_DIR'])):\n"
        "    found += [os.path.join(folder, name) for name in folders + names]\n"
        "start = len(os.path.dirname(os.environ['GIT_DIR'])) + 1\n"
        "found = {p[start:]: os.readlink(p) if os.path.islink(p) else '' for p in found}\n"
        f"open({str(out)!r}, 'w').write(repr((found, open(os.environ['GIT_DIR'] + '/config').read())))\nsys.exit(0)"
    )
    report_of(repo.work, {VARIABLE: str(fake(tmp_path / "git", body))})
    found, config = eval(out.read_text())
    loose = {path.parent.name for path in repo.objects.glob("??/*")}
    assert object_name(b"loose\n")[:2] in loose
    assert set(found) == {
        "git", "git/HEAD", "git/config", "git/refs", "git/refs/heads", "objects", "objects/info", "objects/pack",
        f"objects/pack/pack-{0:040x}.pack", f"objects/pack/pack-{0:040x}.idx",
        *(f"objects/{name}" for name in loose),
    }  # fmt: skip
    assert all(target == "" or target.startswith("/proc/self/fd/") for target in found.values())
    assert "example" not in config and "allow = never" in config


def object_name(data: bytes) -> str:
    name: str = hostile.object_id(b"blob", data)
    return name


# --- the ways to present a store -------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("packed", [False, True])
def test_pinned_copied_and_own_code_read_the_same(tmp_path: Path, algorithm: str, packed: bool) -> None:
    repo = hostile.make_base(tmp_path / "base", algorithm)
    if packed:
        repo.repack()
    before = hostile.snapshot(repo.root)
    pinned = report_of(repo.work, None, "--deep")
    copied = report_of(repo.work, None, "--deep", pin=False)
    own, stop = run(git_object_reader.READER, [str(repo.work), "--deep"])
    assert stop is None and pinned["outcome"] == copied["outcome"] == "ok"
    assert pinned["manifest_sha256"] == copied["manifest_sha256"] == own.manifest_sha256
    assert pinned["verified"] == copied["verified"] == own.verified
    assert hostile.snapshot(repo.root) == before


def test_packs_over_the_number_that_is_pinned_are_copied(repo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = repo.git("rev-list", "--objects", "HEAD").decode().split("\n")
    for line in filter(None, listed):
        repo.git("pack-objects", "-q", str(repo.objects / "pack/pack"), data=line.split()[0].encode() + b"\n")
    repo.git("prune-packed", "-q")
    assert len(list((repo.objects / "pack").glob("*.idx"))) > 8
    monkeypatch.setattr(git_instrument_reader, "MAX_PINNED_PACKS", 3)
    assert report_of(repo.work)["outcome"] == "ok"
    monkeypatch.setattr(git_instrument_reader, "MAX_COPIED_BYTES", 100)
    assert report_of(repo.work)["reason"] == "bound_store_bytes"


def test_a_scratch_directory_inside_the_repository_is_refused(repo: Any) -> None:
    script = [sys.executable, "-I", str(ROOT / "reader/git_instrument_reader.py"), str(repo.work)]
    before = hostile.snapshot(repo.dir)
    environ = {"PATH": PATH, "TMPDIR": str(repo.work)}
    done = subprocess.run(script, capture_output=True, text=True, env=environ, check=False)
    assert json.loads(done.stdout)["reason"] == "read_error" and "TMPDIR" in done.stderr
    assert hostile.snapshot(repo.dir) == before


def test_a_replaced_instrument_is_noticed(repo: Any, tmp_path: Path) -> None:
    program = tmp_path / "git"
    write_program(program, f'#!/bin/sh\n[ "$1" = version ] || touch {program}\nexec {GIT} "$@"\n')
    report = report_of(repo.work, {VARIABLE: str(program)})
    assert report["reason"] == "instrument_failed" and "replaced" in report["detail"]


# --- a store that moves ----------------------------------------------------------------------------------------


def while_changing(change: Callable[[int], None], action: Callable[[], None]) -> None:
    """Do `action` while another thread changes the repository over and over."""
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            change(number)
            number += 1

    worker = threading.Thread(target=work)
    worker.start()
    try:
        action()
    finally:
        stop.set()
        worker.join()


@pytest.mark.parametrize("backend", ["git", "pure"])
def test_a_moving_head_never_mixes_two_commits(repo: Any, backend: str) -> None:
    heads = [repo.rev("HEAD"), hostile.forged_commit(repo)]
    truth = {}
    for head in heads:
        (repo.dir / "HEAD").write_text(head + "\n")
        truth[head] = report_of(repo.work)["manifest_sha256"]
    seen: list[str] = []

    def change(number: int) -> None:
        temporary = repo.dir / "HEAD.new"
        temporary.write_text(heads[number % 2] + "\n")
        temporary.rename(repo.dir / "HEAD")
        time.sleep(0.002)

    def look() -> None:
        for _ in range(15):
            if backend == "git":
                report = report_of(repo.work)
                reason, head, manifest = report["reason"], report["head"], report["manifest_sha256"]
            else:
                found, stop = run(git_object_reader.READER, [str(repo.work)])
                reason, head, manifest = stop and stop.reason, found.head, found.manifest_sha256
            seen.append(str(reason))
            if reason is None:
                assert manifest == truth[head]
            else:
                assert reason == "store_changed"

    while_changing(change, look)
    assert len(seen) == 15


def test_repacking_during_the_read_is_true_content_or_a_changed_store(repo: Any) -> None:
    truth = report_of(repo.work)["manifest_sha256"]

    def change(number: int) -> None:
        if number % 2:
            repo.git("repack", "-adfq")
            repo.git("prune-packed", "-q")
        else:
            for pack in (repo.objects / "pack").glob("*.pack"):
                moved = repo.outside / pack.name
                shutil.move(pack, moved)
                pack.with_suffix(".idx").unlink(missing_ok=True)
                repo.git("unpack-objects", "-q", data=moved.read_bytes())

    def look() -> None:
        for _ in range(12):
            report = report_of(repo.work)
            if report["outcome"] == "ok":
                assert report["manifest_sha256"] == truth
            else:
                assert report["exit_status"] in (1, 77), report["detail"]
                allowed = ("store_changed", "content_absent", "head_commit_missing", "store_damaged")
                assert report["reason"] in allowed, (report["reason"], report["detail"])

    while_changing(change, look)


# --- small parts -----------------------------------------------------------------------------------------------


def test_run_bounded_ends_what_it_started(tmp_path: Path) -> None:
    program = fake(tmp_path / "git", "", "os.write(1, b'x')\nos.close(1)\ntime.sleep(300)\n")
    started = time.monotonic()
    with pytest.raises(Stop) as caught:
        run_bounded([str(program)], str(tmp_path), budget(1))
    assert caught.value.reason in ("deadline", "instrument_missing")
    assert time.monotonic() - started < 5


def test_end_group_can_be_called_twice(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, start_new_session=True)
    end_group(child)
    end_group(child)
    assert child.returncode == -9


def test_usage_errors_need_no_instrument(repo: Any) -> None:
    report = report_of(repo.work, {"PATH": ""}, "--max-depth", "x")
    assert report["exit_status"] == 2
    report = report_of(repo.work / "nothing", {"PATH": ""})
    assert report["exit_status"] == 2
