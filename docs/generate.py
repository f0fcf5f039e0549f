"""Writes the generated pages of the reference: `python docs/generate.py`. A test fails when they are stale.

`reference/cli.md` comes from the help of every command, `reference/views.md` from the comment above each view
and from what DuckDB says of its columns. (`docs/events.md` is made by `python -m ledger.schema`.)
"""

from __future__ import annotations

import pathlib
import re
import tempfile
from collections.abc import Iterator

import click
import duckdb

from ledger import sqlfiles, views
from ledger.cli.root import cli
from ledger.store import open_ledger

REFERENCE = pathlib.Path(__file__).resolve().parent / "reference"

#: Width of help texts in characters, whatever the terminal.
WIDTH = 88

MADE = "<!-- Made from the code by `python docs/generate.py`; a test fails when it is stale. -->\n\n"


def _help(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """Yield name and help of a command and of the commands below it."""
    context = click.Context(
        command, parent=parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None and not found.hidden:
                yield from _help(found, inner, context)


def cli_reference() -> str:
    """Return the page about the command line."""
    pages = list(_help(cli, "oakledger", None))
    parts = [
        MADE + "# Command line\n\n"
        "What `oakledger COMMAND --help` prints. `--ledger` and `--lock-timeout` stand before the command. "
        "The table of exit statuses is in [README](../../README.md#exit-statuses).\n",
        "".join(f"* [`{path}`](#{path.replace(' ', '-')})\n" for path, _ in pages),
    ]
    parts += [f"## {path}\n\n```text\n{text.rstrip()}\n```\n" for path, text in pages]
    return "\n".join(parts)


def _prose(comment: str) -> str:
    """Turn the comment above a view into Markdown: its named parts become paragraphs."""
    text = " ".join(comment.split())
    text = re.sub(r"^\w+: ", "", text)
    text = text[:1].upper() + text[1:]
    text = text.replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r" (Grain|Columns|Serves|Rule)\b", r"\n\n**\1**", text)


def _columns(con: duckdb.DuckDBPyConnection, name: str) -> str:
    rows = con.execute(f"DESCRIBE {name}").fetchall()
    return ", ".join(f"`{column}` {str(kind).lower()}" for column, kind, *_ in rows)


def view_reference() -> str:
    """Return the page about tables and views."""
    parts = [
        MADE + "# Tables and views\n\n"
        "What a ledger file holds, as the comments in [sql/](../../sql) describe it. Views build on those "
        "before them. Start at `trial_outcomes`, `cells` and `violations`.\n",
        "".join(f"* [`{one.name}`](#{one.name})\n" for one in views.shipped()),
        "# Tables\n\n```sql\n" + _tables() + "\n```\n",
        "# Views\n",
    ]
    with tempfile.TemporaryDirectory() as folder, open_ledger(f"{folder}/new.duckdb") as ledger:
        for one in views.shipped():
            parts.append(
                f"## {one.name}\n\n{_prose(one.comment)}\n\n"
                f"{_columns(ledger.con, one.name)}\n\nIn [{one.file}](../../sql/{one.file}).\n"
            )
    parts.append(
        "# For auditors\n\n"
        "Queries that need nothing but DuckDB 2: they compute again what the ledger says about itself.\n"
    )
    for path in sorted(
        (pathlib.Path(sqlfiles.__file__).resolve().parents[1] / "sql" / "audit").glob("*.sql")
    ):
        parts.append(f"## audit/{path.name}\n\n```text\n{_leading_comment(path.read_text())}\n```\n")
    return "\n".join(parts)


def _tables() -> str:
    """Return the statements that make the tables, without the guards."""
    found = re.findall(
        r"(?:^--[^\n]*\n)*^CREATE TABLE [a-z]\w* \(.*?^\);", sqlfiles.read("000_schema.sql"), re.M | re.S
    )
    return "\n\n".join(found)


def _leading_comment(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line[3:] if line.startswith("-- ") else line[2:])
    return "\n".join(lines)


def pages() -> dict[pathlib.Path, str]:
    """Return every generated page by its path."""
    return {REFERENCE / "cli.md": cli_reference(), REFERENCE / "views.md": view_reference()}


def main() -> None:
    """Write every generated page."""
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
