"""Faults that really happen: killed processes, many writers at once, a full disk."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.errors import OakledgerError
from ledger.ingest import Ingest
from ledger.inputs import find
from ledger.rejects import Rejects
from ledger.store import Ledger, open_ledger

T = 1_760_000_000_000_000_000
KILLS = 100


def note(source: str, ordinal: int, why: str = "disk full") -> bytes:
    event = {
        "kind": "trial_invalidated/1",
        "source": source,
        "ordinal": ordinal,
        "recorded_at_ns": T + ordinal,
        "campaign": "c",
        "trial": f"{source}/{ordinal}",
        "who": "A. Person",
        "why": why,
    }
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def spool(folder: pathlib.Path, name: str, count: int, **options: Any) -> str:
    path = folder / f"{name}.ndjson"
    path.write_bytes(b"".join(note(name, i, **options) for i in range(count)))
    return str(path)


def take(ledger_path: pathlib.Path, *paths: str) -> Ingest:
    rejects = Rejects(str(ledger_path) + ".rejects")
    with Ingest(functools.partial(open_ledger, ledger_path, lock_timeout_s=120), rejects) as ingest:
        ingest.run(find(paths))
    return ingest


def by_source(ledger: Ledger) -> Counter[str]:
    return Counter(dict(ledger.con.execute("SELECT source, count(*) FROM events GROUP BY source").fetchall()))


def counts(ledger_path: pathlib.Path) -> Counter[str]:
    with open_ledger(ledger_path, read_only=True) as ledger:
        return by_source(ledger)


def check_whole(ledger_path: pathlib.Path) -> None:
    """No gap, no double, and the tree is the tree of what is there."""
    from ledger.frontier import Frontier

    with open_ledger(ledger_path, read_only=True) as ledger:
        rows = ledger.con.execute("SELECT seq, event_id FROM events ORDER BY seq").fetchall()
        head = ledger.checkpoint()
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert len({row[1] for row in rows}) == len(rows)
    tree = Frontier()
    tree.extend(bytes.fromhex(row[1]) for row in rows)
    assert (head.size, head.root) == (len(rows), tree.root())


def in_child(work: Any) -> tuple[int, int]:
    """Run `work(acknowledge)` in a forked process; returns its pid and what it acknowledges through."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        os.close(reading)
        work(lambda text: os.write(writing, text.encode() + b"\n"))
        status = 0
    except BaseException as e:
        os.write(writing, f"!{type(e).__name__} {e}\n".encode())
    finally:
        os._exit(status)


def read_all(fd: int) -> list[str]:
    data = b""
    while chunk := os.read(fd, 65536):
        data += chunk
    os.close(fd)
    # A line that was being written when the process died was not said.
    return [line.decode() for line in data.split(b"\n")[:-1]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An empty ledger to copy: making one costs a second, copying it nothing."""
    path = tmp_path_factory.mktemp("template") / "oakledger.duckdb"
    open_ledger(path).close()
    return path


@pytest.mark.slow
def test_killed_at_random_moments_nothing_acknowledged_is_lost_and_nothing_half_is_visible(
    tmp_path: pathlib.Path, template: pathlib.Path
) -> None:
    """Forked children ingest spools until they are killed; the next child first looks at what it finds."""
    ledger = tmp_path / "oakledger.duckdb"
    shutil.copy(template, ledger)
    rng = random.Random(20)
    sizes: dict[str, int] = {}
    acknowledged: set[str] = set()
    kills = number = 0
    typical = 0.3

    while kills < KILLS:
        batch = []
        for _ in range(3):
            name = f"s{number:05d}"
            sizes[name] = rng.choice([1, 3, 20])
            batch.append(spool(tmp_path, name, sizes[name]))
            number += 1

        def work(acknowledge: Any, batch: list[str] = batch) -> None:
            with Ingest(functools.partial(open_ledger, ledger), Rejects(f"{ledger}.rejects")) as ingest:
                found = by_source(ingest.ledger())
                lost = [n for n in acknowledged if found[n] != sizes[n]]
                half = [n for n, count in found.items() if count != sizes[n]]
                if lost or half:
                    raise AssertionError(f"lost {lost}, half there {half}")
                acknowledge("looked")
                for path in batch:
                    ingest.run(find((path,)))
                    acknowledge(os.path.basename(path).partition(".")[0])

        started = time.monotonic()
        child, said = in_child(work)
        ready, _, _ = select.select([said], [], [], 120)
        assert ready, "the child does not look at the ledger"
        # Anywhere from the first opening to a little after the last checkpoint.
        pause = rng.uniform(0, typical * 1.1)
        while time.monotonic() - started < 120 and pause > 0:
            nap = min(pause, 0.05)
            time.sleep(nap)
            pause -= nap
            if os.waitpid(child, os.WNOHANG)[0]:
                child = 0
                break
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kills += 1
        else:
            # It was done before its time: the next one gets less.
            typical = max(0.02, typical * 0.8)
        words = read_all(said)
        assert not [w for w in words if w.startswith("!")], words
        if child and len(words) <= 2:
            typical = min(2.0, typical * 1.05)
        acknowledged.update(words)
        acknowledged.discard("looked")

    assert len(acknowledged) >= 20
    # Retried to the end, everything is there exactly once.
    take(ledger, str(tmp_path))
    assert counts(ledger) == sizes
    check_whole(ledger)


def test_killed_while_it_is_made_a_ledger_is_whole_or_not_there(tmp_path: pathlib.Path) -> None:
    ledger = tmp_path / "oakledger.duckdb"
    for round_, pause in enumerate((0.05, 0.2, 0.4, 0.8, 1.6)):
        path = spool(tmp_path, f"s{round_}", 3)
        child, said = in_child(lambda acknowledge, path=path: take(ledger, path))
        time.sleep(pause)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert read_all(said) == []
        if ledger.exists():
            assert set(counts(ledger).values()) <= {3}
    take(ledger, str(tmp_path))
    assert counts(ledger) == {f"s{n}": 3 for n in range(5)}


def test_eight_processes_at_once_bring_every_event_exactly_once(tmp_path: pathlib.Path) -> None:
    ledger = tmp_path / "oakledger.duckdb"
    shared = spool(tmp_path, "shared", 300)
    own = [[spool(tmp_path, f"p{i}-{j}", 20) for j in range(3)] for i in range(8)]
    command = [sys.executable, "-m", "ledger.cli", "--ledger", str(ledger), "--lock-timeout", "120", "ingest"]
    processes = [
        subprocess.Popen([*command, "--json", *paths, shared], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for paths in own
    ]
    results = []
    for process in processes:
        out, err = process.communicate(timeout=240)
        assert (process.returncode, err) == (0, b"")
        results.append(json.loads(out))
    assert sum(r["new"] for r in results) == 8 * 60 + 300
    assert sum(r["known"] for r in results) == 7 * 300
    assert counts(ledger) == {"shared": 300} | {f"p{i}-{j}": 20 for i in range(8) for j in range(3)}
    check_whole(ledger)


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, mebibytes: int) -> Iterator[pathlib.Path]:
    """A file system of its own, of a given size."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs root and mount to make a small file system")
    disk = folder / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        pytest.skip(f"no mounting here: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_too_little_space_is_told_before_anything_is_written(tmp_path: pathlib.Path) -> None:
    with small_disk(tmp_path, 32) as disk:
        ledger = disk / "oakledger.duckdb"
        with pytest.raises(OakledgerError, match=r"free and this batch needs .* nothing was written"):
            take(ledger, spool(tmp_path, "a", 10))
        assert counts(ledger) == {}


def test_a_disk_that_fills_up_in_the_middle_loses_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of free space is fooled, as it is when another program is quicker."""
    monkeypatch.setattr("ledger.store.FREE_SPACE_MARGIN", -(1 << 40))
    rng = random.Random(1)
    # Texts that do not compress, three bytes a character.
    texts = ["".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=1500))) for _ in range(4000)]
    large = tmp_path / "large.ndjson"
    large.write_bytes(b"".join(note("large", i, text) for i, text in enumerate(texts)))
    with small_disk(tmp_path, 12) as disk:
        ledger = disk / "oakledger.duckdb"
        take(ledger, spool(tmp_path, "before", 50))
        with pytest.raises(OakledgerError, match=r"No space left|no space left"):
            take(ledger, str(large))
        assert counts(ledger) == {"before": 50}
        take(ledger, spool(tmp_path, "after", 5))
        assert counts(ledger) == {"before": 50, "after": 5}
        check_whole(ledger)


def test_a_staging_folder_that_is_full_is_told(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "oakledger.duckdb"
    path = tmp_path / "a.ndjson"
    path.write_bytes(b"".join(note("a", i, "x" * 2000) for i in range(2000)))
    with small_disk(tmp_path, 1) as disk:
        monkeypatch.setattr("tempfile.tempdir", str(disk))
        with pytest.raises(OakledgerError, match=r"could not be staged in .*No space left"):
            take(ledger, str(path))
        assert counts(ledger) == {}
    monkeypatch.setattr("tempfile.tempdir", None)
    take(ledger, str(path))
    assert counts(ledger) == {"a": 2000}


def test_a_disk_too_full_for_a_new_ledger_is_told(tmp_path: pathlib.Path) -> None:
    with small_disk(tmp_path, 1) as disk:
        with pytest.raises(OakledgerError, match=r"no ledger could be made at .*No space left"):
            take(disk / "oakledger.duckdb", spool(tmp_path, "a", 1))
        assert list(disk.iterdir()) == []


def test_a_read_only_file_system_is_told(tmp_path: pathlib.Path, template: pathlib.Path) -> None:
    with small_disk(tmp_path, 16) as disk:
        ledger = disk / "oakledger.duckdb"
        shutil.copy(template, ledger)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(OakledgerError, match="cannot be written: check its permissions"):
            take(ledger, spool(tmp_path, "a", 1))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_ledger_is_told(tmp_path: pathlib.Path, template: pathlib.Path) -> None:
    ledger = tmp_path / "oakledger.duckdb"
    shutil.copy(template, ledger)
    ledger.chmod(0o400)
    with pytest.raises(OakledgerError, match="cannot be written: check its permissions"):
        take(ledger, spool(tmp_path, "a", 1))
