"""`oakledger ingest` as a person meets it: what goes in, what is refused, what is said, how it exits."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import pty
import select
import shutil
import stat
import subprocess
import sys
import time
from typing import Any

import duckdb
import pytest
import zstandard

from ledger.cli.root import main
from ledger.rows import REQUIRED, ROW
from ledger.store import open_ledger

T = 1_760_000_000_000_000_000


def note(ordinal: int, source: str = "run-1", **fields: Any) -> dict[str, Any]:
    return {
        "kind": "trial_invalidated/1",
        "source": source,
        "ordinal": ordinal,
        "recorded_at_ns": T + ordinal,
        "campaign": "c",
        "trial": f"t{ordinal}",
        "who": "A. Person",
        "why": "disk full",
    } | fields


def ndjson(*lines: dict[str, Any] | bytes) -> bytes:
    return b"".join((x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in lines)


class Desk:
    """A ledger in a folder of its own, and the command line on it."""

    def __init__(self, folder: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.ledger = folder / "oakledger.duckdb"
        self.capfd = capfd
        self.out = self.err = ""

    def write(self, name: str, data: bytes) -> str:
        path = self.folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    def ingest(self, *arguments: str | pathlib.Path, options: tuple[str, ...] = ()) -> int:
        self.capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["--ledger", str(self.ledger), *options, "ingest", *map(str, arguments)])
        self.out, self.err = self.capfd.readouterr()
        assert "Traceback" not in self.err
        return int(ended.value.code or 0)

    def summary(self, *arguments: str | pathlib.Path) -> tuple[int, dict[str, Any]]:
        status = self.ingest("--json", *arguments)
        return status, json.loads(self.out)

    def payloads(self) -> list[dict[str, Any]]:
        with open_ledger(self.ledger, read_only=True) as ledger:
            rows = ledger.con.execute("SELECT payload FROM events ORDER BY seq").fetchall()
        return [json.loads(row[0]) for row in rows]

    def trials(self) -> list[str]:
        return [p["trial"] for p in self.payloads()]

    def rejects(self) -> list[dict[str, Any]]:
        (path,) = self.folder.glob("oakledger.duckdb.rejects-*.ndjson")
        return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An empty ledger to copy: making one costs a second, copying it nothing."""
    path = tmp_path_factory.mktemp("template") / "oakledger.duckdb"
    open_ledger(path).close()
    return path


@pytest.fixture
def bare(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> Desk:
    """A desk without a ledger."""
    return Desk(tmp_path, capfd)


@pytest.fixture
def desk(bare: Desk, template: pathlib.Path) -> Desk:
    """A desk with an empty ledger."""
    shutil.copy(template, bare.ledger)
    return bare


# What goes in


def test_a_file_goes_in_once_however_often_it_is_ingested(desk: Desk) -> None:
    path = desk.write("a.ndjson", ndjson(note(0), note(1), note(1)))
    status, first = desk.summary(path)
    assert (status, first["new"], first["known"], first["rejected"]) == (0, 2, 1, 0)
    status, again = desk.summary(path)
    assert (status, again["new"], again["known"]) == (0, 0, 3)
    assert again["checkpoint"] == first["checkpoint"]
    assert first["checkpoint"]["size"] == 2
    assert desk.trials() == ["t0", "t1"]
    assert first["files"] == [
        {
            "path": path,
            "state": "ingested",
            "lines": 3,
            "new": 2,
            "known": 1,
            "rejected": 0,
            "reason": None,
            "kept_in": None,
        }
    ]
    assert first["rejects_file"] is None
    assert not list(desk.folder.glob("*.rejects*"))


def test_a_run_directory_goes_in_sorted_and_its_links_and_drafts_do_not(desk: Desk) -> None:
    desk.write("run/b/2.ndjson", ndjson(note(3)))
    desk.write("run/a.jsonl", ndjson(note(0)))
    desk.write("run/a.ndjson.gz", gzip.compress(ndjson(note(1))))
    desk.write("run/b/1.ndjson.zst", zstandard.compress(ndjson(note(2))))
    desk.write("run/.spool-1.tmp", b"half")
    desk.write("run/.hidden.ndjson", b"half")
    desk.write("run/notes.txt", b"no events")
    outside = desk.write("outside.ndjson", ndjson(note(9)))
    os.symlink(outside, desk.folder / "in/run/link.ndjson")
    os.symlink(desk.folder / "in", desk.folder / "in/run/up")
    os.mkfifo(desk.folder / "in/run/pipe.ndjson")
    status, got = desk.summary(desk.folder / "in/run")
    assert status == 0
    assert desk.trials() == ["t0", "t1", "t2", "t3"]
    assert sorted(os.path.basename(p) for p in got["skipped"]) == ["link.ndjson", "pipe.ndjson"]
    assert desk.err.count("is a link or no regular file: left alone") == 2


def test_rows_and_events_go_in_together(desk: Desk) -> None:
    row = {"row": ROW, **dict.fromkeys(REQUIRED["core"]), "lane": "core", "campaign": "c", "scenario": "s"}
    row |= {"scenario_version": 1, "subject": "git", "status": "completed", "recorded_at_ns": T}
    row |= {"metric_wall_ns": 3, "env_cpu": "x", "subject_version": "2.39"}
    rows = [{**row, "trial": f"r{i}"} for i in range(3)]
    path = desk.write("rows.ndjson", ndjson(rows[0], note(0), *rows[1:]))
    status, got = desk.summary(path)
    assert (status, got["files"][0]["lines"]) == (0, 4)
    kinds = [p["kind"].partition("/")[0] for p in desk.payloads()]
    # The facts come once a file, with the first row that has them.
    assert kinds == [
        "trial_recorded",
        "environment_observed",
        "subject_identified",
        "trial_invalidated",
        "trial_recorded",
        "trial_recorded",
    ]
    status, again = desk.summary(path)
    assert (status, again["new"], again["known"]) == (0, 0, 6)


def test_an_empty_file_is_fine(bare: Desk) -> None:
    status, got = bare.summary(bare.write("empty.ndjson", b""))
    assert (status, got["new"], got["rejected"], got["checkpoint"]) == (0, 0, 0, got["checkpoint"])
    assert bare.ingest(bare.write("blank.ndjson", b"\n  \n\r\n")) == 0
    assert bare.payloads() == []


def test_other_spellings_and_line_ends_are_the_same_event(desk: Desk) -> None:
    spelled = json.dumps(dict(reversed(note(0).items())), ensure_ascii=True).encode()
    path = desk.write("a.ndjson", ndjson(note(0)) + b"\n" + spelled + b" \r\n")
    assert desk.summary(path)[1]["known"] == 1


def test_standard_input_goes_in(desk: Desk) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", desk.ledger, "ingest", "-"],
        input=gzip.compress(ndjson(note(0))),
        capture_output=True,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert desk.trials() == ["t0"]


def test_what_came_by_a_pipe_and_was_refused_is_kept(desk: Desk) -> None:
    data = ndjson(note(0), b"{}")
    run = subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", desk.ledger, "ingest", "--json", "-"],
        input=data,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(desk.folder)},
    )
    assert run.returncode == 1
    (file,) = json.loads(run.stdout)["files"]
    assert file["path"] == "-"
    kept = pathlib.Path(file["kept_in"])
    assert kept.read_bytes() == data
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert desk.payloads() == []


def test_a_named_pipe_goes_in(desk: Desk) -> None:
    fifo = desk.folder / "fifo"
    os.mkfifo(fifo)
    feeder = subprocess.Popen(
        ["/bin/sh", "-c", 'exec cat "$1" > "$2"', "sh", desk.write("a", ndjson(note(0))), fifo]
    )
    assert desk.ingest(fifo) == 0
    assert feeder.wait() == 0
    assert desk.trials() == ["t0"]


# What is refused


def test_nothing_of_a_file_with_bad_lines_goes_in_and_every_bad_line_is_reported(desk: Desk) -> None:
    bad = desk.write("bad.ndjson", ndjson(note(0), b"{}", note(1, mood="x"), b"\xff", note(2)))
    good = desk.write("good.ndjson", ndjson(note(7)))
    status, got = desk.summary(bad, good)
    assert (status, got["new"], got["rejected"]) == (1, 1, 3)
    assert [f["state"] for f in got["files"]] == ["refused", "ingested"]
    assert desk.trials() == ["t7"]
    rejects = desk.rejects()
    assert [(r["file"], r["line"]) for r in rejects] == [(bad, 2), (bad, 3), (bad, 4)]
    assert "unknown field 'mood'" in rejects[1]["reason"]
    assert json.loads(rejects[1]["text"]) == note(1, mood="x")
    assert rejects[2]["bytes_b64"] == "/w=="
    assert f"{bad} line 2: no field kind" in desk.err
    (path,) = desk.folder.glob("*.rejects-*")
    assert got["rejects_file"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_keep_going_takes_the_good_lines(desk: Desk) -> None:
    bad = desk.write("bad.ndjson", ndjson(note(0), b"{}", note(2)))
    target = desk.folder / "why.ndjson"
    status, got = desk.summary("--keep-going", "--rejects", target, bad)
    assert (status, got["new"], got["rejected"], got["files"][0]["state"]) == (1, 2, 1, "ingested")
    assert desk.trials() == ["t0", "t2"]
    assert len(target.read_bytes().splitlines()) == 1


def test_a_line_without_newline_is_a_torn_write(desk: Desk) -> None:
    whole = ndjson(note(0), note(1))
    path = desk.write("torn.ndjson", whole[:-1])
    assert desk.ingest(path) == 1
    assert "torn.ndjson line 2: the last line has no newline" in desk.err
    assert desk.payloads() == []
    assert desk.ingest("--keep-going", path) == 1
    assert desk.trials() == ["t0"]
    desk.write("torn.ndjson", whole)
    assert desk.ingest(path) == 0
    assert desk.trials() == ["t0", "t1"]


def test_an_event_from_the_future_is_refused(desk: Desk) -> None:
    now = time.time_ns()
    hour = 3600 * 10**9
    late = desk.write("late.ndjson", ndjson(note(0, recorded_at_ns=now + 25 * hour)))
    assert desk.ingest(late) == 1
    assert "recorded_at_ns is 2" in desk.err and "ahead of this machine's clock" in desk.err
    assert desk.ingest(desk.write("soon.ndjson", ndjson(note(0, recorded_at_ns=now + 23 * hour)))) == 0


def test_the_same_producer_key_with_other_content_is_refused_and_both_are_shown(desk: Desk) -> None:
    assert desk.ingest(desk.write("a.ndjson", ndjson(note(0), note(1)))) == 0
    other = desk.write("b.ndjson", ndjson(note(2), note(1, why="another story"), note(3)))
    status, got = desk.summary(other)
    assert (status, got["new"], got["rejected"]) == (1, 0, 1)
    (reject,) = desk.rejects()
    assert (reject["file"], reject["line"]) == (other, 2)
    assert "disk full" in reject["reason"] and "another story" in reject["reason"]
    assert desk.trials() == ["t0", "t1"]
    status, got = desk.summary("--keep-going", other)
    assert (status, got["new"], got["rejected"]) == (1, 2, 1)
    assert desk.trials() == ["t0", "t1", "t2", "t3"]


def test_within_one_file_the_first_of_two_contents_stays(desk: Desk) -> None:
    path = desk.write("a.ndjson", ndjson(note(0), note(0, why="another story"), note(0), note(1)))
    assert desk.ingest(path) == 1
    assert "line 2: source run-1 ordinal 0 came twice" in desk.err
    assert desk.payloads() == []
    status, got = desk.summary("--keep-going", path)
    assert (status, got["new"], got["known"], got["rejected"]) == (1, 2, 1, 1)
    assert [p["why"] for p in desk.payloads()] == ["disk full", "disk full"]


def test_a_line_of_200_megabytes_is_refused_and_never_held(desk: Desk) -> None:
    path = pathlib.Path(desk.write("long.ndjson", ndjson(note(0))))
    with open(path, "ab") as f:
        for _ in range(200):
            f.write(b"x" * (1 << 20))
        f.write(b"\n" + ndjson(note(1)))
    # The process' own high-water mark: ru_maxrss would begin with that of the process that started it.
    program = (
        "import re, sys; from ledger.cli.root import main\n"
        "try: main(sys.argv[1:])\n"
        "finally:\n"
        "    peak = re.search(r'VmHWM:\\s+([0-9]+) kB', open('/proc/self/status').read())[1]\n"
        "    print('peak', int(peak) >> 10, file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, "--ledger", desk.ledger, "ingest", "--keep-going", path],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, run.stderr
    assert "line 2: 209715200 bytes in one line" in run.stderr
    assert desk.trials() == ["t0", "t1"]
    assert int(run.stderr.split("peak ")[1]) < 200


def test_a_name_with_a_newline_stays_one_line(desk: Desk) -> None:
    path = desk.write("evil\n\x1b[2Jname.ndjson", b"{}\n")
    assert desk.ingest(path) == 1
    assert "\x1b" not in desk.err
    assert r"evil\n\x1b[2Jname.ndjson line 1: no field kind" in desk.err
    assert desk.rejects()[0]["file"].endswith(r"evil\n\x1b[2Jname.ndjson")


def test_a_name_that_is_not_utf8_is_shown_escaped(desk: Desk) -> None:
    folder = os.fsencode(desk.folder)
    with open(folder + b"/\xff.ndjson", "wb") as f:
        f.write(b"{}\n")
    assert desk.ingest(os.fsdecode(folder + b"/\xff.ndjson")) == 1
    assert r"\xff.ndjson line 1" in desk.err


# Inputs that cannot be read


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.ndjson.gz", gzip.compress(ndjson(note(0)) * 50)[:-9], "no whole gzip file"),
        ("a.ndjson.gz", gzip.compress(ndjson(note(0)))[:-8] + b"\0" * 8, "no whole gzip file"),
        ("a.ndjson.gz", gzip.compress(ndjson(note(0))) + b"junk", "no whole gzip file"),
        ("a.ndjson.gz", b"", "ends with .gz and is not compressed so"),
        ("a.ndjson.gz", ndjson(note(0)), "ends with .gz and is not compressed so"),
        ("a.ndjson.zst", zstandard.compress(ndjson(note(0)) * 50)[:-3], "no whole zstd file"),
        ("a.ndjson.zst", zstandard.compress(ndjson(note(0))) + b"junk", "no good zstd file"),
        ("a.ndjson.zst", ndjson(note(0)), "ends with .zst and is not compressed so"),
    ],
)
def test_a_broken_compressed_file_is_refused_as_a_whole(
    desk: Desk, name: str, data: bytes, reason: str
) -> None:
    status, got = desk.summary(desk.write(name, data), desk.write("good.ndjson", ndjson(note(9))))
    assert status == 2
    assert [f["state"] for f in got["files"]] == ["unreadable", "ingested"]
    assert reason in got["files"][0]["reason"] and reason in desk.err
    assert desk.trials() == ["t9"]


def test_zstd_files_of_several_frames_and_skippable_ones_are_read(desk: Desk) -> None:
    frame = zstandard.ZstdCompressor(write_checksum=True).compress
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    path = desk.write(
        "a.zst", skippable + frame(ndjson(note(0))) + skippable + frame(b"") + frame(ndjson(note(1)))
    )
    assert desk.ingest(path) == 0
    assert desk.trials() == ["t0", "t1"]


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_a_bomb_is_stopped(desk: Desk, monkeypatch: pytest.MonkeyPatch, packing: str) -> None:
    monkeypatch.setattr("ledger.inputs.FREE_EXPANSION", 8 << 20)
    zeros = b"\0" * (64 << 20)
    data = gzip.compress(zeros) if packing == "gz" else zstandard.compress(zeros)
    assert len(data) * 200 + (8 << 20) < len(zeros)
    assert desk.ingest(desk.write(f"bomb.{packing}", data)) == 2
    assert "expands to more than" in desk.err


def test_zstd_without_its_package_names_the_extra(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert desk.ingest(desk.write("a.zst", zstandard.compress(ndjson(note(0))))) == 2
    assert "pip install 'oakledger[zstd]'" in desk.err


def test_paths_that_are_not_there_are_told_before_anything_is_done(desk: Desk) -> None:
    good = desk.write("good.ndjson", ndjson(note(0)))
    assert desk.ingest(good, desk.folder / "missing.ndjson") == 2
    assert "missing.ndjson cannot be read (No such file or directory)" in desk.err
    (desk.folder / "nothing").mkdir()
    assert desk.ingest(good, desk.folder / "nothing") == 2
    assert "is a directory without event files" in desk.err
    assert desk.ingest("/dev/zero") == 2
    assert "/dev/zero is no regular file" in desk.err
    assert desk.ingest("a\0b") == 2
    assert desk.err.count("\n") == 1
    assert desk.ingest() == 2


# The ledger itself


def test_a_ledger_path_that_is_a_directory_is_told(bare: Desk) -> None:
    bare.ledger.mkdir()
    assert bare.ingest(bare.write("a.ndjson", ndjson(note(0)))) == 2
    assert "is a directory: name a ledger file" in bare.err


def test_a_folder_that_is_not_there_is_told(bare: Desk) -> None:
    bare.ledger = bare.folder / "missing/oakledger.duckdb"
    assert bare.ingest(bare.write("a.ndjson", ndjson(note(0)))) == 2
    assert "missing is no directory" in bare.err


def test_a_file_that_is_no_database_is_told_and_left_alone(bare: Desk) -> None:
    bare.ledger.write_bytes(b"my thesis")
    assert bare.ingest(bare.write("a.ndjson", ndjson(note(0)))) == 2
    assert "is no DuckDB file" in bare.err
    assert bare.ledger.read_bytes() == b"my thesis"


def test_a_database_that_is_no_ledger_is_told_and_left_alone(bare: Desk) -> None:
    with duckdb.connect(str(bare.ledger)) as con:
        con.execute("CREATE TABLE mine AS SELECT 42 AS x")
    assert bare.ingest(bare.write("a.ndjson", ndjson(note(0)))) == 2
    assert "is a DuckDB file but no ledger" in bare.err
    with duckdb.connect(str(bare.ledger)) as con:
        assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("mine",)]


def test_a_ledger_of_a_newer_schema_is_refused(desk: Desk) -> None:
    with duckdb.connect(str(desk.ledger)) as con:
        con.execute("UPDATE ledger_meta SET value = '99' WHERE key = 'schema_version'")
    assert desk.ingest(desk.write("a.ndjson", ndjson(note(0)))) == 2
    assert "was written by a newer oakledger (ledger schema 99" in desk.err


def test_a_ledger_that_is_cut_short_is_damaged(desk: Desk) -> None:
    assert desk.ingest(desk.write("a.ndjson", ndjson(note(0)))) == 0
    os.truncate(desk.ledger, 5000)
    assert desk.ingest(desk.write("b.ndjson", ndjson(note(1)))) == 3
    assert "does not open as a ledger" in desk.err and desk.err.count("\n") == 1


def test_a_ledger_smaller_than_its_kept_checkpoint_takes_nothing_more(desk: Desk) -> None:
    assert desk.ingest(desk.write("a.ndjson", ndjson(note(0)))) == 0
    older = desk.ledger.read_bytes()
    assert desk.ingest(desk.write("b.ndjson", ndjson(note(1)))) == 0
    desk.ledger.write_bytes(older)
    assert desk.ingest(desk.write("c.ndjson", ndjson(note(2)))) == 3
    assert "1 events of its own and a kept checkpoint knows 2: events were lost" in desk.err
    assert desk.trials() == ["t0"]


def test_a_held_ledger_is_waited_for_and_then_the_holder_is_named(desk: Desk) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from ledger.store import open_ledger\n"
            "with open_ledger(sys.argv[1]): print('held', flush=True); sys.stdin.read()",
            desk.ledger,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None and holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    path = desk.write("a.ndjson", ndjson(note(0)))
    assert desk.ingest(path, options=("--lock-timeout", "0.3")) == 2
    with open(f"/proc/{holder.pid}/comm") as f:
        name = f.read().strip()
    assert f"is held by process {holder.pid} ({name})" in desk.err
    holder.stdin.close()
    assert desk.ingest(path, options=("--lock-timeout", "60")) == 0
    assert holder.wait() == 0
    assert desk.trials() == ["t0"]


def test_a_rejects_file_that_cannot_be_written_is_told(desk: Desk) -> None:
    bad = desk.write("bad.ndjson", b"{}\n")
    assert desk.ingest("--rejects", desk.folder / "missing/why.ndjson", bad) == 2
    assert "why.ndjson cannot be written (No such file or directory)" in desk.err


# What is shown


def test_text_output_says_what_happened_and_names_the_checkpoint(desk: Desk) -> None:
    assert desk.ingest(desk.write("a.ndjson", ndjson(note(0)))) == 0
    first, second = desk.out.splitlines()
    assert first == "1 file: 1 new, 0 known, 0 rejected"
    assert second.startswith("checkpoint oakledger/") and " 1 " in second
    assert desk.err == ""
    kept = list((desk.folder / "oakledger.duckdb.checkpoints").iterdir())
    assert len(kept) == 1
    assert kept[0].read_text().splitlines() == second.split()[1:]


def test_the_progress_bar_is_for_terminals(desk: Desk) -> None:
    path = desk.write("a.ndjson", ndjson(*(note(i) for i in range(50))))
    command = [sys.executable, "-m", "ledger.cli", "--ledger", str(desk.ledger), "ingest", path]
    quiet = subprocess.run(command, capture_output=True, check=True)
    assert quiet.stderr == b""
    terminal, other_end = pty.openpty()
    run = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=other_end, env={**os.environ, "TERM": "xterm"}
    )
    os.close(other_end)
    seen = b""
    while select.select([terminal], [], [], 30)[0]:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the terminal is closed when the process ends
            break
    os.close(terminal)
    assert run.wait() == 0
    assert b"a.ndjson" in seen and b"\x1b[" in seen


def test_the_python_in_the_docs_runs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, desk: Desk
) -> None:
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/ingest.md").read_text(encoding="utf-8")
    spooling, appending = (part.partition("```")[0] for part in page.split("```python\n")[1:])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/today").mkdir(parents=True)
    exec(spooling, {})
    assert desk.ingest("runs/today") == 0
    assert desk.trials() == ["spring/0007"]
    names: dict[str, Any] = {"events": []}
    exec(appending, names)
    assert names["result"].checkpoint.size == 1
