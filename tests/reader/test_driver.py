"""The driver: whatever the child does, there is one report of the known shape, in bounded time."""

import json
import os
import stat
import subprocess
import sys
import time

import pytest

from reader import driver
from reader.driver import Request, default_backend, read
from reader.invocation import reader_invoked
from reader.scoped_read import REASONS

FIELDS = {
    "report", "reader", "reader_version", "vcs", "backend", "code_sha256", "codec_sha256", "dependencies",
    "outcome", "exit_status", "reason", "detail", "head", "format", "scope", "bounds", "counts", "verified",
    "nonregular_paths", "oversize_paths", "missing_paths", "unsafe_paths", "colliding_paths",
    "decompressed_chunks", "shallow_boundary", "hard_linked", "manifest_sha256", "duration_ns",
}  # fmt: skip


@pytest.fixture
def repo(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()

    def git(*args):
        env = {
            **os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
        }  # fmt: skip
        subprocess.run(["git", "-C", str(folder), *args], check=True, capture_output=True, env=env)

    git("init", "-q")
    (folder / "a.txt").write_text("hello\n")
    (folder / "-dash").write_text("dash\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    return str(folder)


def python_that(tmp_path, body):
    """A program in place of the interpreter."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return {"OAK_BENCH_OAK_READER_PYTHON": str(path), "PATH": os.environ["PATH"]}


def shape(reading):
    assert set(reading.report) >= FIELDS
    assert json.loads(reading.text) == reading.report
    assert reading.exit_status == reading.report["exit_status"]
    assert (reading.reason is None) == (reading.exit_status == 0)
    if reading.reason is not None:
        assert reading.reason in REASONS
        assert reading.message.count("\n") == 0 and reading.message
    return reading


@pytest.mark.parametrize("backend", ["pure", "git"])
def test_a_real_read(repo, tmp_path, backend):
    dest = str(tmp_path / "dest")
    reading = shape(read(Request("git", repo, backend, scope=(b"a.txt", b"-dash", b"none"), dest=dest)))
    assert reading.outcome == "ok", reading.message
    assert [e["path"] for e in reading.report["entries"]] == ["-dash", "a.txt"]
    assert reading.report["missing_paths"] == ["none"]
    assert sorted(os.listdir(dest)) == ["-dash", "a.txt"]
    assert reading.python_version == ".".join(map(str, sys.version_info[:3]))
    assert len(reading.python_sha256) == 64


def test_git_backends_give_one_manifest(repo):
    one, other = (read(Request("git", repo, backend)) for backend in ("pure", "git"))
    assert one.report["manifest_sha256"] == other.report["manifest_sha256"] is not None
    assert one.report["entries"] == other.report["entries"]


@pytest.mark.parametrize("value", ["python3", "./python", "/no/such/python", "/"])
def test_a_wrong_interpreter_is_unmeasured(repo, value):
    reading = shape(read(Request("git", repo, "pure"), {"OAK_BENCH_OAK_READER_PYTHON": value}))
    assert (reading.exit_status, reading.reason) == (77, "instrument_missing")


@pytest.mark.parametrize(
    "body",
    ["exit 0", "echo nonsense", "echo '{}'", "echo '[1]'", "kill -9 $$", "exit 5", "printf '\\377\\376'",
     "echo '{\"report\":\"oakledger-reader-report/1\"}'"],
)  # fmt: skip
def test_a_child_without_a_report(repo, tmp_path, body):
    reading = shape(read(Request("git", repo, "pure"), python_that(tmp_path, body)))
    assert (reading.exit_status, reading.reason) == (77, "instrument_failed")


def test_a_report_that_belies_its_exit_status_is_not_believed(repo, tmp_path):
    text = read(Request("git", repo, "pure")).text.decode()
    (tmp_path / "report").write_text(text)
    env = python_that(tmp_path, f"cat {tmp_path}/report; exit 3")
    assert shape(read(Request("git", repo, "pure"), env)).reason == "instrument_failed"


def test_a_child_that_hangs_dies_with_everything_it_started(repo, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "GRACE_SECONDS", 0.5)
    env = python_that(
        tmp_path, f"sh -c 'sleep 300; touch {tmp_path}/late' & echo $! > {tmp_path}/pid; sleep 300"
    )
    started = time.monotonic()
    reading = shape(read(Request("git", repo, "pure", deadline_s=0.5), env))
    assert time.monotonic() - started < 20
    assert (reading.exit_status, reading.reason) == (77, "deadline")
    pid = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not os.path.exists(f"/proc/{pid}"):
            break
        with open(f"/proc/{pid}/stat") as f:
            if f.read().split(")")[1].split()[0] == "Z":
                break
        time.sleep(0.05)
    else:
        pytest.fail("a process that the child started is still there")


def test_a_flood_is_cut(repo, tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "MAX_REPORT_BYTES", 1 << 20)
    reading = shape(read(Request("git", repo, "pure"), python_that(tmp_path, "yes")))
    assert (reading.exit_status, reading.reason) == (77, "bound_total_bytes")


def test_a_flood_of_errors_is_drained(repo, tmp_path):
    env = python_that(tmp_path, "head -c 3000000 /dev/zero >&2; exit 1")
    assert shape(read(Request("git", repo, "pure"), env)).reason == "instrument_failed"


def test_the_child_gets_an_environment_built_from_nothing(repo, tmp_path):
    env = python_that(tmp_path, f"env > {tmp_path}/seen; exit 1")
    read(
        Request("git", repo, "pure"),
        {**env, "SECRET_TOKEN": "x", "GIT_DIR": "/elsewhere", "PYTHONPATH": "/y"},
    )
    names = {line.split("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert names <= {"LC_ALL", "TMPDIR", "HOME", "PWD", "_", "SHLVL", "OLDPWD"}


def test_the_memory_limit_is_unmeasured(repo):
    big = os.path.join(repo, "big")
    with open(big, "wb") as f:
        f.write(b"\0" * (200 << 20))
    for args in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "big"]):
        subprocess.run(["git", "-C", repo, *args], check=True, capture_output=True)
    reading = shape(read(Request("git", repo, "pure", memory_bytes=128 << 20)))
    assert reading.exit_status == 77
    assert reading.reason in ("memory", "instrument_failed")


def test_no_temporary_thing_is_left(repo, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    read(Request("git", repo, "pure"))
    read(Request("git", repo, "git"))
    read(Request("git", repo, "pure"), python_that(tmp_path, "kill -9 $$"))
    assert os.listdir(scratch) == []


def test_backends_by_environment():
    assert default_backend("git", {"OAK_BENCH_READER_BACKEND": "native"}) == "git"
    assert default_backend("oak", {}) == "pure"
    assert default_backend("oak", {"OAK_BENCH_READER_BACKEND": "native"}) == "native"
    both = {"OAK_BENCH_READER_BACKEND": "native", "OAK_BENCH_OAK_COMMITTED_READER": "export"}
    assert default_backend("oak", both) == "export"
    for wrong in ({"OAK_BENCH_READER_BACKEND": "fast"}, {"OAK_BENCH_OAK_COMMITTED_READER": "exports"}):
        with pytest.raises(ValueError):
            default_backend("oak", wrong)
    with pytest.raises(ValueError):
        read(Request("svn", "/", "pure"))


def test_the_event_is_valid_for_every_outcome(repo, tmp_path):
    from ledger.decode import event_from_mapping

    envelope = {"source": "s", "ordinal": 0, "recorded_at_ns": 1_750_000_000_000_000_000}
    empty = tmp_path / "empty"
    empty.mkdir()
    for request in (
        Request("git", repo, "pure", scope=(b"a.txt", b"none")),
        Request("git", repo, "git"),
        Request("git", str(empty), "pure"),
        Request("git", str(tmp_path / "nowhere"), "pure"),
        Request("git", repo, "pure", deadline_s=0.0),
    ):
        reading = read(request)
        event = reader_invoked(reading, relation="independent", campaign="c", trial="t", subject="git")
        struct = event_from_mapping({**envelope, **event})
        assert struct.outcome == reading.outcome
        assert struct.exit_status == reading.exit_status


def test_record_appends_and_looking_does_not(repo, tmp_path):
    ledger = tmp_path / "l.duckdb"

    def oakledger(*args):
        return subprocess.run(
            [sys.executable, "-m", "ledger.cli", "--ledger", str(ledger), "read", "git", repo, *args],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    looked = oakledger("--backend", "pure", "--path", "a.txt")
    assert looked.returncode == 0 and not ledger.exists() and looked.stderr == ""
    assert oakledger("--record").returncode == 2
    done = oakledger("--backend", "pure", "--record", "--campaign", "c", "--trial", "t", "--subject", "git",
                     "--subject-binary", sys.executable)  # fmt: skip
    assert done.returncode == 0, done.stderr
    event_id = done.stderr.split()[-1]
    asked = subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", str(ledger), "sql", "--json",
         "SELECT event_id, kind, trial, outcome, payload ->> '$.relation' AS relation FROM events"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert json.loads(asked.stdout) == [
        {
            "event_id": event_id,
            "kind": "reader_invoked",
            "trial": "t",
            "outcome": "ok",
            "relation": "independent",
        }
    ]


def test_scripts_are_not_writable_by_others():
    for name in driver._SCRIPTS.values():
        path = os.path.join(os.path.dirname(driver.__file__), name)
        if os.path.exists(path):
            assert not os.stat(path).st_mode & stat.S_IWOTH
