"""The notebook opens a ledger that it does not know, draws, and leaves it as it was."""

from __future__ import annotations

import ast
import importlib.util
import json
import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples/notebook.ipynb"

pytest.importorskip("polars", reason="needs polars")
alt = pytest.importorskip("altair", reason="needs altair")


def cells():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


def run(names):
    """Run the code cells as a notebook does; return the value of the last expression of each."""
    values = []
    for number, source in enumerate(cells()):
        tree = ast.parse(source, f"cell {number}")
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            values.append(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    return values


def test_every_cell_runs_and_every_chart_is_drawn(small_ledger, monkeypatch):
    monkeypatch.setenv("OAKLEDGER", str(small_ledger))
    before = small_ledger.read_bytes()
    names = {}
    values = run(names)
    assert names["campaign"] == "small"
    charts = [v for v in values if isinstance(v, alt.TopLevelMixin)]
    assert len(charts) == 3
    for chart in charts:
        assert chart.to_dict()["$schema"]  # Altair validates here, against the schema of Vega-Lite.
    # What is drawn is what the ledger holds: five planned trials for each subject, one of them missing.
    drawn = {
        (r["cell"].split()[0], r["outcome"]): r["trials"] for r in names["outcomes"].to_dicts() if r["trials"]
    }
    assert drawn[("git", "passed")] == drawn[("oak", "missing")] == drawn[("git", "harness_failure")] == 1
    assert sum(drawn.values()) == 10
    assert names["starts"].height == 8 and sorted(names["starts"]["second"]) == list(range(8))
    assert {"too_few_recorded", "no_criteria"} <= set(names["found"]["what"])
    assert small_ledger.read_bytes() == before


def test_charts_become_pictures(small_ledger, monkeypatch):
    convert = pytest.importorskip("vl_convert", reason="needs vl-convert-python")
    monkeypatch.setenv("OAKLEDGER", str(small_ledger))
    for chart in run({}):
        if isinstance(chart, alt.TopLevelMixin):
            svg = convert.vegalite_to_svg(chart.to_json())
            assert svg.startswith("<svg") and ">git" in svg and ">oak" in svg


def test_no_outputs_are_kept():
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("nbclient", "nbformat", "ipykernel")),
    reason="needs nbclient and ipykernel; the cells are run as plain Python above",
)
def test_jupyter_executes_it(small_ledger, monkeypatch):
    import nbclient
    import nbformat

    monkeypatch.setenv("OAKLEDGER", str(small_ledger))
    nbclient.NotebookClient(nbformat.read(NOTEBOOK, as_version=4), timeout=120).execute()
