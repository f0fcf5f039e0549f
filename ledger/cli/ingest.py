"""`oakledger ingest`: the only writer that most people ever use."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context, json_option, pass_context
from ledger.errors import EXIT_NEGATIVE, EXIT_OK, EXIT_USAGE
from ledger.inputs import Found, find, shown
from ledger.rejects import Rejects

if TYPE_CHECKING:
    from ledger.ingest import Summary


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--keep-going", is_flag=True, help="Ingest the good lines of a file that has bad ones.")
@click.option(
    "--rejects",
    "rejects_path",
    metavar="FILE",
    help="Where to report bad lines. Default: beside the ledger, named after it and the time. "
    "Written only when there are some.",
)
@json_option
@pass_context
def ingest(
    context: Context, paths: tuple[str, ...], keep_going: bool, rejects_path: str | None, as_json: bool
) -> None:
    """Append events or harness rows to the ledger.

    PATH is a file of NDJSON, plain or compressed (.gz, .zst), a run directory that holds such files
    (.ndjson, .jsonl), or - for standard input. A line is an event (it has `kind`) or a harness row (it has
    `row`); see oakledger schema.

    Every file is one transaction, and what the ledger knows already is skipped, so ingesting again after a
    crash is safe. A file with a bad line is not ingested, unless --keep-going.

    \b
    Exit status: 0 everything is in the ledger; 1 some lines were rejected;
    2 usage, or an input or ledger that cannot be used; 3 the ledger does not verify.

    \b
    Example: oakledger ingest runs/2026-11-30 && oakledger audit
    """
    from ledger.ingest import Ingest

    found = find(paths)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    rejects = Rejects(rejects_path or f"{context.path}.rejects-{stamp}.ndjson")
    with _progress() as progress:
        taker = Ingest(lambda: context.open(create=True), rejects, keep_going=keep_going, progress=progress)
        with taker:
            taker.run(found)
    summary = taker.summary
    if as_json:
        context.print_json(_as_json(context, summary, found))
    else:
        _print(summary, keep_going)
    _complain(rejects, summary, found)
    sys.exit(EXIT_USAGE if summary.unreadable else EXIT_NEGATIVE if summary.rejected else EXIT_OK)


def _print(summary: Summary, keep_going: bool) -> None:
    files = len(summary.files)
    click.echo(
        f"{files} file{'' if files == 1 else 's'}: {summary.new} new, {summary.known} known, "
        f"{summary.rejected} rejected"
    )
    refused = sum(f.state == "refused" for f in summary.files)
    if refused:
        which = "not ingested" if len(summary.files) == 1 else f"{refused} of them not ingested"
        click.echo(f"{which} because of bad lines (--keep-going takes the good ones)")
    if summary.checkpoint is not None:
        head = summary.checkpoint
        click.echo(f"checkpoint {head.origin} {head.size} {base64.b64encode(head.root).decode()}")


def _complain(rejects: Rejects, summary: Summary, found: Found) -> None:
    """Say on standard error what went wrong, one line each."""
    for path in found.skipped:
        click.echo(f"oakledger: {shown(path)} is a link or no regular file: left alone", err=True)
    for reason in rejects.first:
        click.echo(f"oakledger: {reason}", err=True)
    if rejects.count > len(rejects.first):
        click.echo(f"oakledger: and {rejects.count - len(rejects.first)} more", err=True)
    if summary.rejects_file is not None:
        click.echo(f"oakledger: all of it is in {shown(summary.rejects_file)}", err=True)
    for file in summary.files:
        if file.kept_in is not None:
            click.echo(f"oakledger: what came by the pipe is kept in {file.kept_in}", err=True)


def _as_json(context: Context, summary: Summary, found: Found) -> dict[str, object]:
    head = summary.checkpoint
    return {
        "ledger": context.path,
        "new": summary.new,
        "known": summary.known,
        "rejected": summary.rejected,
        "unreadable": summary.unreadable,
        "rejects_file": summary.rejects_file,
        "checkpoint": None
        if head is None
        else {"origin": head.origin, "size": head.size, "root": base64.b64encode(head.root).decode()},
        "files": [
            {
                "path": shown(f.path),
                "state": f.state,
                "lines": f.lines,
                "new": f.new,
                "known": f.known,
                "rejected": f.rejected,
                "reason": f.reason,
                "kept_in": f.kept_in,
            }
            for f in summary.files
        ],
        "skipped": [shown(path) for path in found.skipped],
    }


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on a terminal's standard error, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda path, done, size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    name = TextColumn("{task.description}", markup=False)
    with Progress(
        name, BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as bar:
        tasks: dict[str, TaskID] = {}

        def report(path: str, done: int, size: int) -> None:
            if path not in tasks:
                for other in tasks.values():
                    bar.update(other, visible=False)
                tasks[path] = bar.add_task(shown(path)[-40:], total=size)
            bar.update(tasks[path], completed=done)

        yield report
