"""BI tools read the Parquet export with equal results, and those are what the ledger holds."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

import duckdb
import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples/bi/read_export.py"

pytest.importorskip("polars", reason="needs polars")
pytest.importorskip("pyarrow", reason="needs pyarrow")


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("read_export", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(small_ledger, tmp_path_factory):
    target = tmp_path_factory.mktemp("bi") / "events.parquet"
    arguments = ["--ledger", small_ledger, "export", "--parquet", target]
    subprocess.run([sys.executable, "-m", "ledger.cli", *arguments], check=True)
    return str(target)


@pytest.mark.parametrize("tool", ["polars", "pyarrow", "duckdb"])
def test_each_tool_counts_what_the_ledger_holds(example, folder, small_ledger, tool):
    with duckdb.connect(str(small_ledger), read_only=True) as con:
        rows = con.execute(
            "SELECT campaign, kind, count(*), min(seq), max(seq) FROM events GROUP BY ALL"
        ).fetchall()
    want = sorted(rows, key=lambda r: (r[0] or "", r[1]))
    assert want[0][:3] == (None, "subject_identified", 1)
    assert example.TOOLS[tool](folder) == want


def test_metrics_come_out_of_the_payload_and_null_stays_null(example, folder):
    frame = example.trials_of(folder, "small")
    assert frame.height == 8
    times = {(r["subject"], r["wall_ns"]) for r in frame.to_dicts()}
    assert times == {("git", 500_000_000), ("oak", None)}
    assert example.trials_of(folder, "another").height == 0


def test_the_script(folder):
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("polars, pyarrow, duckdb agree\n")
    assert subprocess.run([sys.executable, SCRIPT], capture_output=True, check=False).returncode == 1
