"""Are the guards and the views of a ledger file those that this package ships?

The file's catalogue is compared, object by object and by text, with that of a ledger made new in memory by
the same DuckDB. What is missing or differs is a finding, and so is every object more: a view, table, macro or
type of somebody else's can shadow what the shipped SQL means. A macro named `sha256` in the file, for
example, replaces the function for everybody who opens the file directly; so the audit asks from a database of
its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import duckdb

from ledger import sqlfiles, views
from ledger.audit_finding import Finding
from ledger.audit_source import columns_of, outside

#: Kind of object -> query for its schema, name and defining text in database `?`.
_OBJECTS: dict[str, str] = {
    "schema": "SELECT schema_name, '', '' FROM duckdb_schemas() WHERE database_name = ? AND NOT internal",
    "table": (
        "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE database_name = ? AND NOT internal"
    ),
    "view": "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = ? AND NOT internal",
    "trigger": "SELECT schema_name, trigger_name, sql FROM duckdb_triggers() WHERE database_name = ?",
    "index": "SELECT schema_name, index_name, sql FROM duckdb_indexes() WHERE database_name = ?",
    "sequence": "SELECT schema_name, sequence_name, '' FROM duckdb_sequences() WHERE database_name = ?",
    "macro": (
        "SELECT schema_name, function_name, concat_ws(' ', function_type, parameters, macro_definition) "
        "FROM duckdb_functions() WHERE database_name = ? AND NOT internal"
    ),
    "type": (
        "SELECT schema_name, type_name, logical_type FROM duckdb_types() "
        "WHERE database_name = ? AND NOT internal"
    ),
}

_CONSTRAINTS = (
    "SELECT constraint_text "
    "|| CASE constraint_type WHEN 'NOT NULL' THEN ' on ' || constraint_column_names[1] ELSE '' END "
    "FROM duckdb_constraints() WHERE database_name = ? AND schema_name = 'main' AND table_name = ?"
)

# A word in upper case with a space before the parenthesis: functions are printed without one.
_STAR_LIST = re.compile(r"(?<=[*)] )(?:EXCLUDE|REPLACE|RENAME) \(")

#: (kind, schema, name)
_Key = tuple[str, str, str]


def _catalogue(con: duckdb.DuckDBPyConnection, database: str) -> dict[_Key, list[str]]:
    found: dict[_Key, list[str]] = {}
    for kind, query in _OBJECTS.items():
        for schema, name, text in con.execute(query, [database]).fetchall():
            found.setdefault((kind, schema, name), []).append(normal(str(text)))
    for texts in found.values():
        texts.sort()  # overloads of one macro
    return found


def normal(text: str) -> str:
    """Return SQL as DuckDB prints it with the lists after a star in order.

    What stands in `* EXCLUDE (...)`, `* REPLACE (...)` and `* RENAME (...)` is a set, which DuckDB prints in
    another order from one opening of a file to the next.
    """
    pieces: list[str] = []
    end = 0
    for match in _STAR_LIST.finditer(text):
        if match.start() < end:
            continue
        items, close = _items(text, match.end())
        pieces += [text[end : match.end()], ", ".join(sorted(items))]
        end = close
    return "".join(pieces) + text[end:]


def _items(text: str, start: int) -> tuple[list[str], int]:
    """Return the comma-separated items from `start` to the closing parenthesis, and where that is."""
    items: list[str] = []
    depth, quote, first = 0, "", start
    for at in range(start, len(text)):
        c = text[at]
        if quote:
            quote = "" if c == quote else quote  # a doubled quote closes and opens again
        elif c in "'\"":
            quote = c
        elif c == "(":
            depth += 1
        elif c in "),":
            if depth == 0:
                items.append(text[first:at].strip())
                first = at + 1
                if c == ")":
                    return items, at
            elif c == ")":
                depth -= 1
    return [text[start:]], len(text)


def _parts(con: duckdb.DuckDBPyConnection, database: str, table: str) -> set[str]:
    """Return the columns and constraints of a table, in words."""
    parts = {f"column {name} {kind}" for name, kind in columns_of(con, database, table)}
    return parts | {row[0] for row in con.execute(_CONSTRAINTS, [database, table]).fetchall()}


@dataclass(frozen=True)
class _Shipped:
    """The catalogue of a new ledger, and the parts of its tables."""

    objects: dict[_Key, list[str]]
    parts: dict[str, set[str]]


@cache
def _shipped() -> _Shipped:
    """Return what a ledger made new has. That takes most of a second, for the length of its views."""
    from ledger.store import _create

    with duckdb.connect() as con:
        _create(con, "audit")
        return _of_memory(con)


@cache
def _composed() -> _Shipped:
    """Return the same in a tenth of the time: each view printed once by DuckDB, then put together as text.

    A file whose views have these texts has the shipped ones. One whose views have others is compared with
    `_shipped`, so nothing depends on how exactly DuckDB puts a statement together.
    """
    with duckdb.connect() as con:
        con.execute(sqlfiles.read("000_schema.sql"))
        for view in views.shipped():
            con.execute(f"CREATE VIEW {view.name} WITH (DEFER_BINDING) AS {view.select}")
        shipped = _of_memory(con)
    printed = {
        name: texts[0].removeprefix(f"CREATE VIEW {name} AS ").removesuffix(";")
        for (kind, _, name), texts in shipped.objects.items()
        if kind == "view"
    }
    for name, text in printed.items():
        if below := views.below(name):
            parts = ", ".join(
                f"{one} AS ({views.select_by_name(one) if by_name else printed[one]})"
                for one, by_name in below.items()
            )
            text = f"WITH {parts} SELECT * FROM ({text})"  # noqa: S608 - compared, never run
        shipped.objects["view", "main", name] = [f"CREATE VIEW {name} AS {text};"]
    return shipped


def _of_memory(con: duckdb.DuckDBPyConnection) -> _Shipped:
    outside(con)
    found = _catalogue(con, "memory")
    tables = [name for kind, _, name in found if kind == "table"]
    return _Shipped(found, {table: _parts(con, "memory", table) for table in tables})


#: What to do about views when the file says that another version of the package stored them.
_OTHER_VERSION = " (by its own account of another version of oakledger: the next ingest stores this one's)"


def check_catalogue(
    con: duckdb.DuckDBPyConnection, database: str, *, of_another_version: bool = False
) -> Iterator[Finding]:
    """Yield a finding for each object that is missing, differs, or does not belong in a ledger.

    With `of_another_version` a finding about a view says what to do when the file is merely an older one.
    `con` must have been moved `outside`. Codes: `missing_<kind>`, `changed_<kind>`, `extra_<kind>`, where a
    table that lost a CHECK or a key is a `changed_table` that names what it lost.
    """
    found = _catalogue(con, database)
    shipped, shipped_parts = _composed().objects, _composed().parts
    if any(found.get(key) != texts for key, texts in shipped.items() if key[0] == "view"):
        shipped = _shipped().objects
    for key in sorted(shipped.keys() | found.keys()):
        kind, schema, name = key
        label = f"{kind} {name}" if schema == "main" else f"{kind} {schema}{name and '.' + name}"
        hint = _OTHER_VERSION if of_another_version and kind == "view" else ""
        if key not in found:
            yield Finding(f"missing_{kind}", f"{label} is missing: a ledger has it{hint}")
        elif key not in shipped:
            yield Finding(f"extra_{kind}", f"{label} is no part of a ledger and may shadow one{hint}")
        elif shipped[key] != found[key]:
            what = ""
            if kind == "table":
                wanted, present = shipped_parts[name], _parts(con, database, name)
                what = "; ".join(
                    [f"lacks {part}" for part in sorted(wanted - present)]
                    + [f"has {part} more" for part in sorted(present - wanted)]
                )
            yield Finding(
                f"changed_{kind}",
                f"{label} is not the shipped one{hint}: {what or _differ(shipped[key], found[key])}",
            )


def _differ(shipped: list[str], found: list[str]) -> str:
    """Say where two texts part, with a little of both."""
    a, b = "; ".join(shipped), "; ".join(found)
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    start = max(0, at - 20)
    return f"shipped ...{a[start : at + 60]!r}, in the file ...{b[start : at + 60]!r}"
