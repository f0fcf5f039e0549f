"""Spool files: whole or not there, numbered, valid."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import pytest

from ledger.decode import decode
from ledger.errors import BadEventError, OakledgerError
from ledger.inputs import UnreadableError, find
from ledger.spool import Spool

NOTE: dict[str, Any] = {
    "kind": "trial_invalidated/1",
    "campaign": "c",
    "trial": "t",
    "who": "A. Person",
    "why": "disk full",
}


def lines(path: str | None) -> list[Any]:
    assert path is not None
    return [decode(line)[0] for line in pathlib.Path(path).read_bytes().splitlines()]


def test_events_are_numbered_and_published_at_the_end(tmp_path: pathlib.Path) -> None:
    with Spool(tmp_path, source="run-1", first_ordinal=5) as spool:
        assert [spool.add(**NOTE), spool.add(**NOTE, recorded_at_ns=1_760_000_000_000_000_000)] == [5, 6]
        with pytest.raises(UnreadableError, match="without event files"):
            find((str(tmp_path),))
    assert [(e.source, e.ordinal) for e in lines(spool.path)] == [("run-1", 5), ("run-1", 6)]
    assert lines(spool.path)[1].recorded_at_ns == 1_760_000_000_000_000_000
    assert [f.path for f in find((str(tmp_path),)).files] == [spool.path]
    assert os.listdir(tmp_path) == [os.path.basename(str(spool.path))]


def test_two_spools_have_sources_of_their_own(tmp_path: pathlib.Path) -> None:
    with Spool(tmp_path) as one, Spool(tmp_path) as two:
        one.add(**NOTE)
        two.add(**NOTE)
    assert one.source != two.source
    assert len(list(tmp_path.iterdir())) == 2


def test_an_invalid_event_is_refused_at_once_and_takes_no_number(tmp_path: pathlib.Path) -> None:
    with Spool(tmp_path) as spool:
        with pytest.raises(BadEventError, match="unknown field 'mood'"):
            spool.add(**NOTE, mood="good")
        with pytest.raises(BadEventError, match="ordinal is numbered by the spool"):
            spool.add(**NOTE, ordinal=1)
        assert spool.add(**NOTE) == 0
    assert len(lines(spool.path)) == 1


def test_an_error_publishes_nothing(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeError), Spool(tmp_path) as spool:
        spool.add(**NOTE)
        raise RuntimeError("harness failed")
    assert spool.path is None
    assert list(tmp_path.iterdir()) == []


def test_a_spool_without_events_publishes_no_file(tmp_path: pathlib.Path) -> None:
    with Spool(tmp_path) as spool:
        pass
    assert spool.path is None
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_none_is_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(OakledgerError, match="takes no spool file"):
        Spool(tmp_path / "missing")


def test_a_crash_leaves_a_temporary_file_that_ingest_does_not_see(tmp_path: pathlib.Path) -> None:
    program = (
        "import os, signal, sys; from ledger.spool import Spool\n"
        "with Spool(sys.argv[1]) as spool:\n"
        "    for _ in range(2000): spool.add(**eval(sys.argv[2]))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path), repr(NOTE)])
    assert run.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".tmp") and left.stat().st_size > 0
    with pytest.raises(UnreadableError, match="without event files"):
        find((str(tmp_path),))
