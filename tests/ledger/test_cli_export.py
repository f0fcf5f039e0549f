"""`oakledger export --parquet`: the events as Hive-partitioned Parquet, the same in every tool."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys

import duckdb
import pytest

from ledger.cli.root import main
from ledger.decode import event_from_mapping
from ledger.events import canonical_sha256
from ledger.store import open_ledger

pl = pytest.importorskip("polars", reason="needs polars")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
ds = pytest.importorskip("pyarrow.dataset", reason="needs pyarrow")

T = 1_760_000_000_000_000_000
NULL = "__HIVE_DEFAULT_PARTITION__"

#: Campaign names that mean something to file systems, to Hive's escapes, or to a guess at types.
NAMES = [
    "spring",
    "Spring",
    "a/b/../c",
    "a@b:c+d",
    "2026-01-01",
    "0042",
    "true",
    "null",
    "x.y-_z",
    "n" * 200,
]


def note(campaign: str, ordinal: int, why: str = "disk full") -> object:
    return event_from_mapping(
        {
            "kind": "trial_invalidated/1",
            "source": "run",
            "ordinal": ordinal,
            "recorded_at_ns": T + ordinal,
            "campaign": campaign,
            "trial": f"t{ordinal}",
            "who": "A. Person",
            "why": why,
        }
    )


def without_campaign(ordinal: int) -> object:
    facts = {"kernel": "6.1", "n": str(ordinal)}
    return event_from_mapping(
        {
            "kind": "environment_observed/1",
            "source": "run",
            "ordinal": ordinal,
            "recorded_at_ns": T + ordinal,
            "environment_id": canonical_sha256(facts),
            "facts": facts,
        }
    )


def make(path: pathlib.Path, events: list[object], origin: str = "o") -> pathlib.Path:
    with open_ledger(path, origin=origin) as ledger:
        if events:
            ledger.append(events)
    return path


def export(capsys, ledger: pathlib.Path, folder: pathlib.Path, *more: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["--ledger", str(ledger), "export", "--parquet", str(folder), *more])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


COLUMNS = ("origin", "seq", "event_id", "kind", "recorded_at_ns", "campaign", "trial", "payload")


def in_the_ledger(path: pathlib.Path) -> list[tuple]:
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute(f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY origin, seq").fetchall()


def _rows(found) -> list[tuple]:
    at = COLUMNS.index("campaign")
    fixed = [(*r[:at], None if r[at] == NULL else r[at], *r[at + 1 :]) for r in found]
    return sorted(fixed, key=lambda r: (r[0], r[1]))


def by_polars(folder: pathlib.Path) -> list[tuple]:
    types = {"campaign": pl.String, "kind": pl.String}
    return _rows(
        pl.scan_parquet(f"{folder}/**/*.parquet", hive_schema=types).select(COLUMNS).collect().rows()
    )


def by_pyarrow(folder: pathlib.Path) -> list[tuple]:
    parts = ds.partitioning(pa.schema([("campaign", pa.string()), ("kind", pa.string())]), flavor="hive")
    table = ds.dataset(folder, format="parquet", partitioning=parts).to_table(columns=list(COLUMNS))
    return _rows(tuple(row[c] for c in COLUMNS) for row in table.to_pylist())


def by_duckdb(folder: pathlib.Path) -> list[tuple]:
    with duckdb.connect() as con:
        return _rows(
            con.execute(
                f"SELECT {', '.join(COLUMNS)} FROM read_parquet('{folder}/**/*.parquet', "
                "hive_partitioning = true, hive_types = {'campaign': VARCHAR, 'kind': VARCHAR})"
            ).fetchall()
        )


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A ledger with every odd campaign name and events without a campaign, and its export."""
    folder = tmp_path_factory.mktemp("export")
    events = [note(name, n, why=f"reason {n}: 'quoted', \"twice\", ü, a\nb") for n, name in enumerate(NAMES)]
    events += [without_campaign(100 + n) for n in range(3)]
    path = make(folder / "l.duckdb", events)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ledger.cli",
            "--ledger",
            path,
            "export",
            "--parquet",
            folder / "parquet",
            "--json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"folder": str(folder / "parquet"), "events": len(events)}
    return path, folder / "parquet"


@pytest.mark.parametrize("read", [by_polars, by_pyarrow, by_duckdb])
def test_every_tool_reads_the_events_of_the_ledger(exported, read):
    path, folder = exported
    want = in_the_ledger(path)
    assert len(want) == len(NAMES) + 3
    found = read(folder)
    assert found == want
    # The text is the evidence: it still hashes to the event id.
    for row in found:
        assert hashlib.sha256(b"\0" + row[-1].encode()).hexdigest() == row[2]


def test_the_folders_are_campaign_and_kind(exported):
    _, folder = exported
    campaigns = {p.name for p in folder.iterdir()}
    assert {"campaign=spring", "campaign=Spring", f"campaign={NULL}"} <= campaigns
    assert len(campaigns) == len(NAMES) + 1
    assert [p.name for p in (folder / f"campaign={NULL}").iterdir()] == ["kind=environment_observed"]
    assert all(p.suffix == ".parquet" for p in folder.rglob("*") if p.is_file())
    assert not [p for p in folder.parent.iterdir() if p.name.startswith(".")]


def test_one_campaign_is_read_without_the_others(exported):
    _, folder = exported
    types = {"campaign": pl.String, "kind": pl.String}
    for n, name in enumerate(NAMES):
        frame = pl.scan_parquet(f"{folder}/**/*.parquet", hive_schema=types).filter(
            pl.col("campaign") == name
        )
        assert frame.select("trial").collect().rows() == [(f"t{n}",)]


def test_every_column_of_the_table_is_there(exported):
    path, folder = exported
    with duckdb.connect(str(path), read_only=True) as con:
        want = {r[0]: r[1] for r in con.execute("DESCRIBE events").fetchall()}
        found = con.execute(
            f"DESCRIBE SELECT * FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
        )
        assert {r[0]: r[1] for r in found.fetchall()} == want


def test_an_event_of_several_origins_appears_for_each(tmp_path, capsys):
    a = make(tmp_path / "a.duckdb", [note("c", 0)], "origin/a")
    b = make(tmp_path / "b.duckdb", [note("c", 0), note("c", 1)], "origin/b")
    with pytest.raises(SystemExit):
        main(["--ledger", str(a), "merge", str(b)])
    assert export(capsys, a, tmp_path / "p")[0] == 0
    found = by_polars(tmp_path / "p")
    assert found == in_the_ledger(a) and len(found) == 3 and len({r[2] for r in found}) == 2


def test_an_empty_ledger_gives_an_empty_folder(tmp_path, capsys):
    code, out, err = export(capsys, make(tmp_path / "l.duckdb", []), tmp_path / "p")
    assert (code, out, err) == (0, f"0 events in {tmp_path / 'p'}\n", "")
    assert list((tmp_path / "p").iterdir()) == []


@pytest.mark.parametrize("what", ["folder", "file", "link", "dangling"])
def test_what_exists_is_left_alone(tmp_path, capsys, what):
    path = make(tmp_path / "l.duckdb", [note("c", 0)])
    target = tmp_path / "p"
    if what == "folder":
        target.mkdir()
        (target / "mine").write_text("kept")
    elif what == "file":
        target.write_text("kept")
    else:
        os.symlink(tmp_path if what == "link" else tmp_path / "nowhere", target)
    before = sorted(p.name for p in tmp_path.iterdir())
    code, out, err = export(capsys, path, target)
    assert code == 2 and out == "" and err.startswith("oakledger: ") and err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    assert what != "folder" or (target / "mine").read_text() == "kept"


def test_errors_are_one_line_and_write_nothing(tmp_path, capsys):
    code, out, err = export(capsys, tmp_path / "none.duckdb", tmp_path / "p")
    assert code == 2 and out == "" and "none.duckdb" in err and err.count("\n") == 1
    path = make(tmp_path / "l.duckdb", [note("c", 0)])
    code, out, err = export(capsys, path, tmp_path / "no" / "p")
    assert code == 2 and out == "" and "make it first" in err and err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith("l.duckdb")) == []


def test_a_name_that_makes_no_folder_is_refused_in_one_line(tmp_path, capsys):
    """Hive writes three characters for a slash, and file systems have 255 bytes for a name."""
    path = make(tmp_path / "l.duckdb", [note("a" + "/" * 199, 0), note("b", 1)])
    code, out, err = export(capsys, path, tmp_path / "p")
    assert code == 2 and out == "" and err.startswith("oakledger: ") and err.count("\n") == 1
    assert not (tmp_path / "p").exists()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_quote_in_the_path(tmp_path, capsys):
    path = make(tmp_path / "l.duckdb", [note("c", 0)])
    folder = tmp_path / "it's; DROP TABLE events"
    assert export(capsys, path, folder)[0] == 0
    assert by_pyarrow(folder) == in_the_ledger(path)


def test_the_ledger_is_not_changed(tmp_path, capsys):
    path = make(tmp_path / "l.duckdb", [note("c", n) for n in range(5)])
    before = path.read_bytes()
    assert export(capsys, path, tmp_path / "p")[0] == 0
    assert path.read_bytes() == before
