"""`oakledger sql`: ad-hoc questions in SQL, on a snapshot that cannot reach the ledger."""

from __future__ import annotations

import contextlib
import csv
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
import duckdb

from ledger.cli.context import Context, pass_context, printable
from ledger.errors import EXIT_USAGE, OakledgerError
from ledger.snapshot import snapshot

FORMATS = ("table", "json", "ndjson", "csv")
_BATCH = 10_000


class QueryError(OakledgerError):
    """The SQL failed, ran out of time or was interrupted."""

    exit_status = EXIT_USAGE


@click.command()
@click.argument("query", required=False)
@click.option(
    "--format",
    "output",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the rows.",
)
@click.option("--json", "output", flag_value="json", help="Same as --format json.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Interrupt a query that runs longer.",
)
@pass_context
def sql(context: Context, query: str | None, output: str, timeout: float) -> None:
    """Run one SQL QUERY on a read-only snapshot of the ledger, or a shell when none is given.

    Without QUERY, statements are read from standard input; on a terminal there is a prompt. Start with
    `SHOW TABLES` and `DESCRIBE trials`. Nothing in the query can change the ledger or read other files.

    Example: oakledger sql "SELECT kind, count(*) FROM ledger_events GROUP BY kind"
    """
    with snapshot(context.path, lock_timeout_s=context.lock_timeout_s) as con:
        if query is not None:
            run(con, query, output, timeout)
        elif sys.stdin.isatty():
            shell(con, output, timeout)
        else:
            run(con, sys.stdin.read(), output, timeout)


def shell(con: duckdb.DuckDBPyConnection, output: str, timeout: float) -> None:
    """Read statements from a terminal until end of input; an error ends the statement, not the shell."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - line editing for input()
    click.echo("Read-only snapshot. End a statement with ;  Leave with Ctrl-D. Try: SHOW TABLES;", err=True)
    pending = ""
    while True:
        try:
            pending += input("oakledger> " if not pending else "      ...> ") + "\n"
        except EOFError:
            click.echo(err=True)
            return
        except KeyboardInterrupt:
            click.echo(err=True)
            pending = ""
            continue
        if pending.rstrip().endswith(";"):
            try:
                run(con, pending, output, timeout)
            except OakledgerError as e:
                click.echo(f"oakledger: {e}", err=True)
            pending = ""


def run(con: duckdb.DuckDBPyConnection, query: str, output: str, timeout: float) -> None:
    """Run statements and print the rows of the last one. Raises QueryError."""
    try:
        _run(con, query, output, timeout)
    except KeyboardInterrupt as e:
        raise QueryError("the query was interrupted") from e


def _run(con: duckdb.DuckDBPyConnection, query: str, output: str, timeout: float) -> None:
    if not query.strip():
        raise QueryError('no SQL given: pass a query, for example "SELECT count(*) FROM ledger_events"')
    with interruptible(con, timeout) as timed_out:
        try:
            result = con.execute(query)
            names = [d[0] for d in result.description or []]
            _WRITERS[output](names, _rows(result))
        except duckdb.InterruptException as e:
            why = (
                f"ran longer than {timeout:g} s: narrow it, or raise --timeout"
                if timed_out()
                else "was interrupted"
            )
            raise QueryError(f"the query {why}") from e
        except duckdb.Error as e:
            raise QueryError(" ".join(str(e).split())) from e
        except RuntimeError as e:  # how the client library may report Ctrl-C
            raise QueryError("the query was interrupted") from e


@contextlib.contextmanager
def interruptible(con: duckdb.DuckDBPyConnection, timeout: float) -> Iterator[Callable[[], bool]]:
    """Interrupt the query on Ctrl-C or after `timeout` seconds; yields a function: was it the time?

    Python runs signal handlers only between its own instructions, and a query is one long call, so a thread
    waits for the byte that the signal writes to a wake-up descriptor.
    """
    late = threading.Event()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    on_main = threading.current_thread() is threading.main_thread()
    before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False) if on_main else -1

    def watch() -> None:
        ours.settimeout(timeout)
        try:
            if ours.recv(1) != b"":
                con.interrupt()
        except TimeoutError:
            late.set()
            con.interrupt()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield late.is_set
    finally:
        if on_main:
            signal.set_wakeup_fd(before)
        theirs.close()  # the watcher reads the end of the stream and leaves
        watcher.join()
        ours.close()


def _rows(result: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    while batch := result.fetchmany(_BATCH):
        yield from batch


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value)


def _objects(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[str]:
    unique: list[str] = []
    for name in names:
        unique.append(name if name not in unique else f"{name}_{len(unique)}")
    for row in rows:
        yield json.dumps({n: _plain(v) for n, v in zip(unique, row, strict=True)}, ensure_ascii=False)


def _write_json(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    click.echo("[", nl=False)
    for i, text in enumerate(_objects(names, rows)):
        click.echo(("," if i else "") + "\n" + text, nl=False)
    click.echo("\n]")


def _write_ndjson(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    for text in _objects(names, rows):
        click.echo(text)


def _write_csv(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        plain = (_plain(v) for v in row)
        writer.writerow(
            [json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else v for v in plain]
        )


def _write_table(names: Sequence[str], rows: Iterator[Sequence[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_edge=False, header_style="bold")
    for name in names:
        table.add_column(Text(printable(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if v is None else printable(str(_plain(v)))) for v in row))
    if names:
        Console(highlight=False).print(table)


_WRITERS = {"table": _write_table, "json": _write_json, "ndjson": _write_ndjson, "csv": _write_csv}
