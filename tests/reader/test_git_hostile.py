"""Every hostile repository on both Git backends: the same outcome, the true content, and no trace.

A server process, which has the readers loaded and nothing else, forks one process for each read: what a
reader does with signals, memory and descriptors happens in a process of its own, as when it is run as a
script, at a fiftieth of the price. Cases about the environment run the scripts themselves.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import git_hostile as hostile
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


SCRIPTS = {"git": "git_instrument_reader", "pure": "git_object_reader"}
HANGING = 60.0
"""Seconds after which a read counts as hanging; every case has a deadline far below that."""


class Outcome(NamedTuple):
    """What one read gave."""

    status: int
    report: dict[str, Any]
    stderr: str


class Readers:
    """Runs readers; see the module's docstring."""

    def __init__(self, folder: Path) -> None:
        self._files = (folder / "stdout", folder / "stderr")
        self._server = subprocess.Popen(
            [sys.executable, "-I", str(HERE / "git_read_server.py"), str(ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, backend: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Outcome:
        for path in self._files:
            path.write_bytes(b"")
        job = {
            "script": SCRIPTS[backend],
            "arguments": list(arguments),
            "environment": dict(environment),
            "stdout": str(self._files[0]),
            "stderr": str(self._files[1]),
            "seconds": HANGING,
        }
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline().strip()
        assert answer != "hang", "the read did not end"
        return outcome(int(answer), *(path.read_text("utf-8") for path in self._files))

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(10)


def run_script(backend: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Outcome:
    """The same in a process that starts from nothing."""
    done = subprocess.run(
        [sys.executable, "-I", str(ROOT / "reader" / f"{SCRIPTS[backend]}.py"), *arguments],
        env=dict(environment),
        capture_output=True,
        timeout=HANGING,
        check=False,
    )
    return outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def outcome(status: int, stdout: str, stderr: str) -> Outcome:
    assert stdout.count("\n") == 1 and stdout.endswith("\n"), (status, stdout[:300], stderr[-2000:])
    assert "Traceback" not in stderr, stderr
    return Outcome(status, json.loads(stdout), stderr)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder for repositories."""
    yield from hostile.quick_folder()


@pytest.fixture(scope="module")
def bases(place: Path) -> dict[str, Any]:
    """The repository that every case begins with, for each object format."""
    return {name: hostile.make_base(place / f"base-{name}", name) for name in ("sha1", "sha256")}


@pytest.fixture(scope="module")
def readers(place: Path) -> Iterator[Readers]:
    (place / "run").mkdir()
    running = Readers(place / "run")
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def folder(place: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(dir=place))
    try:
        yield path
    finally:
        for name, _, _ in os.walk(path):
            Path(name).chmod(0o700)
        shutil.rmtree(path)


def environment_of(repo: Any, scratch: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "TMPDIR": str(scratch),
        "HOME": "/",
        **repo.environment,
    }


def path_of(value: Any) -> bytes:
    """A path as a list of the report has it."""
    return value.encode() if isinstance(value, str) else base64.b64decode(value["path_b64"])


def content_of(report: Mapping[str, Any]) -> dict[bytes, tuple[str, int, str]]:
    """Entries with content: mode, size, digest."""
    found = {}
    for entry in report["entries"]:
        path = path_of(entry.get("path", entry))
        if entry["sha256"] is not None:
            found[path] = (entry["mode"], entry["size"], entry["sha256"])
    return found


def files_below(root: Path) -> dict[bytes, tuple[str, bytes]]:
    found = {}
    for folder, _, names in os.walk(os.fsencode(root)):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                entry = ("120000", os.readlink(path))
            else:
                mode = "100755" if os.stat(path).st_mode & 0o100 else "100644"
                entry = (mode, Path(os.fsdecode(path)).read_bytes())
            found[os.path.relpath(path, os.fsencode(root))] = entry
    # A link to a directory is among the directories.
    for folder, folders, _ in os.walk(os.fsencode(root)):
        for name in folders:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, os.fsencode(root))] = ("120000", os.readlink(path))
    return found


IGNORED = ("reader", "backend", "code_sha256", "detail", "duration_ns", "instrument", "counts", "verified")


def comparable(report: Mapping[str, Any]) -> dict[str, Any]:
    """What both backends must say alike. Counts may differ where a read ends early."""
    return {key: value for key, value in report.items() if key not in IGNORED}


def check(case: Any, repo: Any, found: Outcome, destination: Path) -> None:
    """One read against what the case expects."""
    report = found.report
    assert found.status == report["exit_status"]
    assert (found.status, report["reason"]) in case.allowed, (report["reason"], report["detail"])
    assert found.stderr.count("\n") == (1 if found.status else 0)
    text = json.dumps(report)
    assert hostile.SECRET.decode().strip() not in text + found.stderr
    if found.status:
        assert "entries" not in report and report["manifest_sha256"] is None
        assert not destination.exists()
        return
    wanted = {
        path: (mode, len(data), hashlib.sha256(data).hexdigest())
        for path, (mode, data) in repo.content.items()
    }
    assert content_of(report) == wanted
    for key, value in repo.report.items():
        if key == "ancestors":
            assert report["verified"].get("ancestors", 0) == value
        elif key == "object_format":
            assert report["format"]["object_format"] == value
        elif key == "unsafe":
            assert [path_of(path) for path in report["unsafe_paths"]] == value
        else:
            assert report[key] == value
    if case.destination:
        assert files_below(destination) == repo.content


@pytest.mark.parametrize(
    "case", hostile.CASES, ids=lambda case: f"{case.family}:{case.name}".replace(" ", "-")
)
def test_hostile(case: Any, bases: dict[str, Any], readers: Readers, folder: Path) -> None:
    repo = hostile.copy_base(bases[case.algorithm], folder / "case")
    case.build(repo)
    scratch = folder / "scratch"
    scratch.mkdir()
    before = hostile.snapshot(repo.root)
    reports = []
    for backend in SCRIPTS:
        destination = folder / f"out-{backend}"
        arguments = [str(repo.work), *([str(destination)] if case.destination else [])]
        arguments += ["--manifest", "-", *case.arguments]
        if "--deadline" not in case.arguments:
            arguments += ["--deadline", case.deadline]
        run = run_script if case.family == hostile.ENVIRONMENT else readers.run
        found = run(backend, arguments, environment_of(repo, scratch))
        assert not repo.canary.exists(), f"a planted program ran ({backend})"
        assert hostile.snapshot(repo.root) == before, f"the subject's files were touched ({backend})"
        assert not list(scratch.iterdir()), f"something was left behind ({backend})"
        try:
            check(case, repo, found, destination)
        except AssertionError as error:
            raise AssertionError(f"backend {backend}: {error}") from None
        reports.append(comparable(found.report))
    if all((report["exit_status"], report["reason"]) == hostile.OK for report in reports):
        assert reports[0] == reports[1]
    elif len(case.allowed) == 1:
        assert reports[0]["reason"] == reports[1]["reason"]
