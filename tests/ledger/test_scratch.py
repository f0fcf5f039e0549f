"""Temporary folders are removed: by their process, or after it was killed by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger.scratch import scratch
from ledger.staging import Staging

HOLD = """
import sys
from ledger.scratch import scratch
with scratch(sys.argv[1]) as folder:
    open(folder + "/much", "w").close()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path):
    """Start a process that holds a folder, and return both."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).resolve().parents[2],
        text=True,
    )
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.communicate()


def age(folder):
    past = time.time() - 3600
    os.utime(folder, (past, past))


def test_a_folder_is_private_and_removed(tmp_path):
    with scratch(str(tmp_path)) as folder:
        assert os.stat(folder).st_mode & 0o077 == 0
        Path(folder, "x").write_text("x")
    with pytest.raises(ValueError, match="x"), scratch(str(tmp_path)):
        raise ValueError("x")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, held):
    process, folder = held
    age(folder)
    with scratch(str(tmp_path)):
        assert (folder / "much").exists()  # it lives
    process.send_signal(signal.SIGKILL)
    process.wait()
    with scratch(str(tmp_path)):
        assert not folder.exists()


def test_what_was_left_a_moment_ago_stays(tmp_path, held):
    process, folder = held
    process.send_signal(signal.SIGKILL)
    process.wait()
    with scratch(str(tmp_path)):
        assert folder.exists()


def test_nothing_else_is_removed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "lock").touch()
    parent = tmp_path / "parent"
    parent.mkdir()
    (parent / ".oakledger-scratch-link").symlink_to(outside)
    (parent / ".oakledger-scratch-file").write_text("x")
    (parent / "oakledger-scratch-shown").mkdir()
    (parent / ".another").mkdir()
    unlocked = parent / ".oakledger-scratch-unlocked"
    unlocked.mkdir()
    linked = parent / ".oakledger-scratch-linked"
    linked.mkdir()
    (linked / "lock").symlink_to(outside / "lock")
    before = sorted(parent.iterdir())
    for path in before:
        if not path.is_symlink():
            age(path)
    with scratch(str(parent)):
        pass
    assert sorted(parent.iterdir()) == before and (outside / "lock").exists()


def test_staging_uses_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Staging() as staging:
        staging.new_part()
        (folder,) = tmp_path.iterdir()
        assert {p.name for p in folder.iterdir()} == {"lock", "staged", "part-1"}
    assert list(tmp_path.iterdir()) == []
