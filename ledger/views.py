"""The shipped views as single statements, and a workspace in which they run over one campaign.

A ledger file holds the views for any SQL client. The views build on each other, often one on several that
share an ancestor; DuckDB binds an ancestor again at every mention, which grows without bound. So the text
that is stored in the file has the ancestors of a view as common table expressions, each once. DuckDB also
parses every stored text whenever it opens the file, so the longest one that most views build on is not
repeated in all of them (_BY_NAME).

A decision evaluates the shipped texts in a workspace: an in-memory database in which `ledger_events` is one
campaign's events and the base views (`1xx_*.sql`) are run once, in order, into tables of their names, except
those read on the way to another (ON_THE_WAY). The rules then read tables, so hardly an event is parsed twice
and the cost is linear in the campaign. What the views stored in the file say plays no part.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import duckdb

from ledger import sqlfiles
from ledger.scratch import scratch

_VIEW = re.compile(r"^CREATE OR REPLACE VIEW (\w+) AS\n(.*?);\n", re.MULTILINE | re.DOTALL)

#: Views that others, where stored, select from by name instead of repeating their texts.
_BY_NAME = frozenset({"campaigns", "trial_outcomes"})

#: The file whose views a workspace replaces by its own.
SOURCE_FILE = "100_ledger_events.sql"

#: Wide views read once, or nearly, on the way to a table: keeping them would cost more than it saves.
ON_THE_WAY = frozenset({"trials", "reader_invocations", "verdicts", "attempts"})

WORKSPACE = "oakledger_workspace"

#: Memory that a workspace may use; what does not fit goes to temporary files.
MEMORY_LIMIT = "1400MiB"


@dataclass(frozen=True)
class View:
    """One shipped view: its name, the SELECT behind it, the file it is in, the comment above it."""

    name: str
    select: str
    file: str
    comment: str


@cache
def shipped() -> tuple[View, ...]:
    """Return every shipped view, in the order in which they build on each other."""
    views = []
    for file in sqlfiles.view_names():
        text = sqlfiles.read(file)
        end = 0
        for match in _VIEW.finditer(text):
            lead = text[end : match.start()]
            comment = "\n".join(line[2:].strip() for line in lead.splitlines() if line.startswith("--"))
            views.append(View(match[1], match[2], file, comment))
            end = match.end()
    return tuple(views)


def view(name: str) -> View:
    """Return a shipped view by name; raises KeyError."""
    for one in shipped():
        if one.name == name:
            return one
    raise KeyError(name)


@cache
def mentions(known: tuple[View, ...]) -> dict[str, tuple[str, ...]]:
    """Return, for each of some views in the order of their files, the ones before it that it mentions.

    A word that is the name of a later view is a column.
    """
    names: list[str] = []
    found: dict[str, tuple[str, ...]] = {}
    for one in known:
        found[one.name] = tuple(n for n in names if re.search(rf"\b{n}\b", one.select))
        names.append(one.name)
    return found


def builds_on(name: str, whole: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the views that a view builds on, itself left out, in the order of the files.

    What those named in `whole` build on themselves is left out.
    """
    direct = mentions(shipped())
    found: set[str] = set()

    def add(mentioned: tuple[str, ...]) -> None:
        for other in mentioned:
            if other not in found:
                found.add(other)
                if other not in whole:
                    add(direct[other])

    add(direct[name])
    return tuple(one.name for one in shipped() if one.name in found)


def below(name: str) -> dict[str, bool]:
    """Return the views that a view's stored text names first, in order, and whether each is taken by name."""
    return {other: other in _BY_NAME for other in builds_on(name, _BY_NAME)}


def stored(one: View) -> str:
    """Return the statement that stores a view in a ledger file, unbound: it is bound when it is used."""
    texts = {
        name: select_by_name(name) if by_name else view(name).select
        for name, by_name in below(one.name).items()
    }
    select = one.select
    if texts:
        expressions = ",\n".join(f"{name} AS (\n{text}\n)" for name, text in texts.items())
        select = f"WITH {expressions}\nSELECT * FROM (\n{one.select}\n)"
    return f"CREATE OR REPLACE VIEW {one.name} WITH (DEFER_BINDING) AS\n{select}"


def select_by_name(name: str) -> str:
    """Return the text that stands for a view which others take by name: not the expression of that name."""
    return f"SELECT * FROM main.{name}"  # noqa: S608 - a name of ours


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextlib.contextmanager
def workspace(con: duckdb.DuckDBPyConnection, campaign: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a cursor on which every shipped view of one campaign of an open ledger can be queried by name.

    `con` is a connection to a ledger file, which may be read-only: nothing is written to it. The base views
    are tables, the rule views are views on them. Raises duckdb.Error when a view fails: the caller refuses.
    """
    cursor = con.cursor()
    with scratch() as spill:
        row = cursor.execute("SELECT current_database()").fetchone()
        assert row is not None
        ledger = '"' + str(row[0]).replace('"', '""') + '"'
        cursor.execute("SET preserve_insertion_order = false")
        cursor.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
        cursor.execute(f"SET temp_directory = {_literal(spill)}")
        cursor.execute(f"ATTACH ':memory:' AS {WORKSPACE} (READ_WRITE)")
        try:
            cursor.execute(f"USE {WORKSPACE}")
            for table in ("events", "duplicates", "checkpoints"):
                cursor.execute(f"CREATE VIEW {table} AS SELECT * FROM {ledger}.main.{table}")  # noqa: S608
            build(cursor, campaign)
            yield cursor
        finally:
            with contextlib.suppress(duckdb.Error):
                cursor.execute(f"USE {ledger}")
                cursor.execute(f"DETACH {WORKSPACE}")
            cursor.close()


def build(con: duckdb.DuckDBPyConnection, campaign: str | None, upto: str = "290") -> None:
    """Make the shipped views over the relations `events`, `duplicates` and `checkpoints` of `con`.

    They are about one campaign, or about all with `campaign` null. Files named `upto` or later are left out.
    """
    history = view("ledger_history").select
    where = "" if campaign is None else f" WHERE campaign = {_literal(campaign)}"
    con.execute(f"CREATE VIEW ledger_history AS {history}")
    con.execute(f"CREATE VIEW ledger_events AS SELECT * FROM ({history}){where}")  # noqa: S608
    for one in shipped():
        if one.file == SOURCE_FILE or one.file >= upto:
            continue
        table = one.file.startswith("1") and one.name not in ON_THE_WAY
        form, name = ("TABLE", one.name) if table else ("VIEW", f"{one.name} WITH (DEFER_BINDING)")
        con.execute(f"CREATE {form} {name} AS {one.select}")
