"""Ingest from within: files that change, helper processes, turns of several writers."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

import ledger.ingest
from ledger.checking import Helpers, check, helper_count
from ledger.ingest import Ingest, Summary
from ledger.inputs import Block, Input, InputFile, _blocks, find
from ledger.rejects import Rejects
from ledger.rows import REQUIRED, ROW
from ledger.store import open_ledger

T = 1_760_000_000_000_000_000


def note(ordinal: int, **fields: Any) -> bytes:
    event = {
        "kind": "trial_invalidated/1",
        "source": "run-1",
        "ordinal": ordinal,
        "recorded_at_ns": T + ordinal,
        "campaign": "c",
        "trial": f"t{ordinal}",
        "who": "A. Person",
        "why": "disk full",
    }
    return json.dumps(event | fields, separators=(",", ":")).encode() + b"\n"


def take(folder: pathlib.Path, *paths: pathlib.Path, **options: Any) -> Summary:
    """Ingest into a ledger in the folder."""
    with Ingest(
        functools.partial(open_ledger, folder / "oakledger.duckdb"),
        Rejects(str(folder / "rejects")),
        **options,
    ) as ingest:
        ingest.run(find(tuple(map(str, paths))))
    return ingest.summary


def stored(folder: pathlib.Path) -> list[bytes]:
    with open_ledger(folder / "oakledger.duckdb", read_only=True) as ledger:
        return [
            row[0].encode() + b"\n"
            for row in ledger.con.execute("SELECT payload FROM events ORDER BY seq").fetchall()
        ]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An empty ledger to copy: making one costs a second, copying it nothing."""
    path = tmp_path_factory.mktemp("template") / "oakledger.duckdb"
    open_ledger(path).close()
    return path


@pytest.fixture
def tmp_path(tmp_path: pathlib.Path, template: pathlib.Path) -> pathlib.Path:
    """A folder with an empty ledger."""
    shutil.copy(template, tmp_path)
    return tmp_path


# Files that change while they are read


def grow(path: pathlib.Path) -> None:
    with open(path, "ab") as f:
        f.write(note(1))


def shrink(path: pathlib.Path) -> None:
    os.truncate(path, 5)


def rewrite(path: pathlib.Path) -> None:
    data = path.read_bytes()
    os.utime(path)
    path.write_bytes(data.replace(b"disk full", b"DISK FULL"))


def swap(path: pathlib.Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    os.replace(other, path)


def remove(path: pathlib.Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [grow, shrink, rewrite, swap, remove], ids=lambda f: f.__name__)
def test_a_file_that_changes_while_it_is_read_is_refused_as_a_whole(
    tmp_path: pathlib.Path, change: Any
) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(note(0))
    other = tmp_path / "b.ndjson"
    other.write_bytes(note(7))
    done = []

    def meddle(name: str, position: int, size: int) -> None:
        if name == str(path) and not done:
            done.append(position)
            change(path)

    got = take(tmp_path, path, other, progress=meddle)
    assert done == [len(note(0))]
    assert [f.state for f in got.files] == ["unreadable", "ingested"]
    assert "changed while it was read" in str(got.files[0].reason)
    assert stored(tmp_path) == [note(7)]
    (reject,) = (tmp_path / "rejects").read_bytes().splitlines()
    assert json.loads(reject)["line"] is None


def test_a_file_of_a_run_directory_swapped_for_a_link_is_not_followed(tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside.ndjson"
    outside.write_bytes(note(0))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "a.ndjson").write_bytes(note(1))
    found = find((str(folder),))
    (folder / "a.ndjson").unlink()
    os.symlink(outside, folder / "a.ndjson")
    with Ingest(
        functools.partial(open_ledger, tmp_path / "oakledger.duckdb"), Rejects(str(tmp_path / "rejects"))
    ) as ingest:
        ingest.run(found)
    assert [f.state for f in ingest.summary.files] == ["unreadable"]
    assert stored(tmp_path) == []


# Lines in blocks


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_blocks_have_the_same_lines_however_the_chunks_fall(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("ledger.inputs.MAX_EVENT_BYTES", 10)
    lines = [b"a", b"", b"0123456789", b"0123456789+", b"b" * 50, b"c", b"d" * 11, b"e"]
    data = b"\n".join(lines) + b"\nlast"
    got: dict[int, bytes] = {}
    problems: dict[int, str] = {}
    for block in _blocks(data[i : i + size] for i in range(0, len(data), size)):
        if block.problem:
            problems[block.line] = block.problem
            continue
        for number, line in enumerate(block.data[:-1].split(b"\n"), start=block.line):
            got[number] = line
    assert problems.pop(9).startswith("the last line has no newline")
    # A line just over the bound may be held by one block; decoding refuses it then.
    for number, problem in problems.items():
        assert problem.startswith(f"{len(lines[number - 1])} bytes in one line")
        assert len(lines[number - 1]) > 10
    assert got == {n: line for n, line in enumerate(lines, start=1) if n not in problems}


# Helper processes


def test_helpers_say_exactly_what_this_process_says(tmp_path: pathlib.Path) -> None:
    row = {"row": ROW, **dict.fromkeys(REQUIRED["core"]), "lane": "core", "campaign": "c", "scenario": "s"}
    row |= {
        "scenario_version": 1,
        "subject": "git",
        "status": "completed",
        "recorded_at_ns": T,
        "env_cpu": "x",
    }
    blocks = [
        Block(1, note(0) + note(1)),
        Block(3, b"{}\n" + json.dumps({**row, "trial": "a"}).encode() + b"\n"),
        Block(5, b"", "too long"),
        Block(6, note(2) + b"\xff\n" + json.dumps({**row, "trial": "b"}).encode() + b"\n"),
        Block(9, b"abc", "torn"),
    ]
    now = time.time_ns()
    parts = [str(tmp_path / "p0"), str(tmp_path / "p1")]
    with Helpers(parts, now) as helpers:
        got = list(helpers.check(iter(blocks)))
    expected = [check(block, now) for block in blocks]
    written = b"".join(pathlib.Path(p).read_bytes() for p in parts)
    assert sorted(written.splitlines()) == sorted(b"".join(c.staged for c in expected).splitlines())
    for checked in expected:
        checked.staged = b""
    assert got == expected


def test_a_large_file_enters_in_its_order_through_helpers(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [note(i) for i in range(3000)]
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(lines) + b"{}\n" + note(3000))
    monkeypatch.setattr("ledger.inputs.BLOCK_BYTES", 20_000)
    got = take(tmp_path, path, keep_going=True)
    assert (got.new, got.rejected) == (3001, 1)
    assert stored(tmp_path) == [*lines, note(3000)]
    (reject,) = (tmp_path / "rejects").read_bytes().splitlines()
    assert json.loads(reject)["line"] == 3001


def test_helpers_that_get_nothing_to_do_are_no_problem(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One block more than are checked without helpers: one helper works, the others do not."""
    lines = [note(i) for i in range(ledger.ingest._BLOCKS_WITHOUT_HELPERS + 1)]
    monkeypatch.setattr("ledger.inputs.BLOCK_BYTES", len(lines[0]))
    monkeypatch.setattr("ledger.ingest.helper_count", lambda: 3)
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(lines))
    assert take(tmp_path, path).new == len(lines)
    assert stored(tmp_path) == lines


def test_a_helper_that_dies_is_an_error_and_nothing_goes_in(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(note(i) for i in range(3000)))
    monkeypatch.setattr("ledger.inputs.BLOCK_BYTES", 20_000)
    started: list[Any] = []
    real = subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> Any:
        started.append(real(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)

    def kill(name: str, done: int, size: int) -> None:
        for helper in started:
            helper.send_signal(signal.SIGKILL)

    with pytest.raises(ledger.ingest.OakledgerError, match="a checking process died"):
        take(tmp_path, path, progress=kill)
    assert len(started) == helper_count()
    assert all(helper.poll() is not None for helper in started)
    assert stored(tmp_path) == []


def test_helpers_end_with_the_process_that_they_help(tmp_path: pathlib.Path) -> None:
    program = (
        "import os, signal, sys, time; from ledger.checking import Helpers\n"
        "helpers = Helpers([sys.argv[1]], time.time_ns())\n"
        "print(helpers._processes[0].pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "part")], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == -signal.SIGKILL
    # The helper had the same standard error: that it has ended is why run() has returned.
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(int(run.stdout), 0)
            time.sleep(0.1)


# Turns


def test_the_ledger_is_let_go_between_files_when_held_long(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger.ingest, "_HOLD_S", 0.0)
    for name in "ab":
        (tmp_path / f"{name}.ndjson").write_bytes(note(ord(name)))
    turns = []

    def other_writer(name: str, done: int, size: int) -> None:
        program = (
            "import sys; from ledger.store import open_ledger\n"
            "open_ledger(sys.argv[1], lock_timeout_s=0).close()"
        )
        command = [sys.executable, "-c", program, str(tmp_path / "oakledger.duckdb")]
        turns.append(subprocess.run(command, stderr=subprocess.DEVNULL).returncode)

    take(tmp_path, tmp_path / "a.ndjson", tmp_path / "b.ndjson", progress=other_writer)
    assert turns == [0, 0]


def test_reading_waits_for_no_writer_of_a_fifo(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "a.ndjson")
    with pytest.raises(ledger.ingest.UnreadableError, match="is no regular file"):
        InputFile(Input(str(tmp_path / "a.ndjson"), "file"))
