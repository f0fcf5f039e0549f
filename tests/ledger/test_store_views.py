"""Views are stored without being bound, which must change nothing but the time it takes."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from ledger import sqlfiles, views
from ledger.audit_catalog import _composed, _shipped, normal
from ledger.store import _create_views, open_ledger

VIEWS = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal AND database_name = ?"


def test_a_new_ledger_has_every_shipped_view_with_the_text_that_binding_gives(tmp_path):
    bound = duckdb.connect()
    bound.execute(sqlfiles.read("000_schema.sql"))
    for view in views.shipped():
        bound.execute(views.stored(view).replace(" WITH (DEFER_BINDING)", ""))
    expected = {name: normal(text) for name, text in bound.execute(VIEWS, ["memory"]).fetchall()}
    with open_ledger(tmp_path / "l.duckdb") as ledger:
        stored = {name: normal(text) for name, text in ledger.con.execute(VIEWS, ["l"]).fetchall()}
    assert stored == expected


def test_storing_views_binds_none():
    con = duckdb.connect()
    con.execute(sqlfiles.read("000_schema.sql"))
    _create_views(con)
    counts = con.execute(
        "SELECT count(*), count(*) FILTER (WHERE is_bound) FROM duckdb_views() WHERE NOT internal"
    ).fetchone()
    assert counts == (len(con.execute("FROM duckdb_views() WHERE NOT internal").fetchall()), 0)


def test_the_views_put_together_are_those_of_a_new_ledger():
    """Were they not, every audit would take the slow way and still be right."""
    assert _composed().objects == _shipped().objects
    assert _composed().parts == _shipped().parts


def test_views_of_an_older_package_are_brought_up_to_date_and_its_lost_ones_dropped(tmp_path, monkeypatch):
    now = views.shipped()[:3]
    older = (
        views.View("given_up", "SELECT 1 AS one", "199_given_up.sql", ""),
        replace(now[0], select="SELECT 2 AS two"),
        *now[1:],
    )
    monkeypatch.setattr(views, "shipped", lambda: older)
    with open_ledger(tmp_path / "l.duckdb") as ledger:
        ledger.con.execute("CREATE VIEW of_its_owner AS SELECT 3 AS three")
    monkeypatch.setattr(views, "shipped", lambda: now)
    with open_ledger(tmp_path / "l.duckdb", read_only=True) as ledger:
        assert ledger.con.execute("FROM given_up").fetchall() == [(1,)]
    for _ in range(2):
        with open_ledger(tmp_path / "l.duckdb") as ledger:
            stored = dict(ledger.con.execute(VIEWS, ["l"]).fetchall())
        assert stored.keys() == {*(v.name for v in now), "of_its_owner"}
        assert "two" not in stored[now[0].name]
