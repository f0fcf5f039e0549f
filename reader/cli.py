"""`oakledger read`: one reader invocation on one repository.

Looking leaves no trace; `--record` appends a `reader_invoked` event. The ledger is reached through the
click context alone (`record`), never by import.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from reader.driver import Reading, Request, default_backend, file_sha256
from reader.driver import read as run_reader
from reader.invocation import reader_invoked
from reader.relation import relation
from reader.scoped_read import Stop, read_scope_file

F = TypeVar("F", bound=Callable[..., Any])
_count = click.IntRange(min=0)


@click.group()
def read() -> None:
    """Read what a repository's HEAD really contains, every hash verified.

    Prints one JSON report (docs/reader-report.md). Exit status: 0 read and verified, 1 measured failure of
    the repository, 2 usage, 3 invalid store, 77 unmeasured.
    """


def read_options(command: F) -> F:
    """Add the options that both readers share."""
    options = [
        click.argument("repo", type=click.Path()),
        click.argument("dest", type=click.Path(), required=False),
        click.option("--scope", metavar="FILE", help="Exact committed paths, separated by NUL or newline."),
        click.option("--path", "paths", metavar="P", multiple=True, help="One exact committed path."),
        click.option("--manifest", metavar="-", type=click.Choice(["-"]), help="Entries in the report."),
        click.option("--max-blob-bytes", type=_count, help="Report larger blobs in scope, do not read them."),
        click.option("--max-object-bytes", type=_count, help="Decoded size of one object."),
        click.option("--max-total-bytes", type=_count, help="Decoded size of all objects read."),
        click.option("--max-entries", type=_count, help="Entries of all trees read."),
        click.option("--max-depth", type=_count, help="Components of a path."),
        click.option("--deadline", type=click.FloatRange(min=0), metavar="SECONDS", help="Time limit."),
        click.option("--deep", is_flag=True, help="Also verify every ancestor commit."),
        click.option("--complete", is_flag=True, help="Absent content in scope is invalid, not unmeasured."),
        click.option("--record", is_flag=True, help="Append the invocation to the ledger."),
        click.option("--campaign", help="Campaign of the recorded event."),
        click.option("--trial", help="Trial whose repository this is."),
        click.option("--subject", help="Subject that wrote the repository."),
        click.option(
            "--subject-binary",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="The subject's program, to tell how the instrument relates to it.",
        ),
        click.option(
            "--instrument-qualified-by", "qualified_by", metavar="WHO", help="Who vouches for the instrument."
        ),
        click.option("--because", metavar="WHY", help="Why it is independent; recorded as their assertion."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@read.command()
@read_options
@click.option(
    "--backend",
    type=click.Choice(["git", "pure"]),
    default="git",
    show_default=True,
    help="git: the instrument on PATH or in OAK_BENCH_GIT_INSTRUMENT; pure: our own object reader.",
)
@click.pass_context
def git(ctx: click.Context, /, **options: Any) -> None:
    """Read a Git repository's HEAD."""
    _read(ctx, "git", options)


@read.command()
@read_options
@click.option(
    "--backend",
    type=click.Choice(["pure", "native", "export"]),
    help="pure: standard library only (default); native: blake3 and zstandard packages; "
    "export: the subject's own export.",
)
@click.pass_context
def oak(ctx: click.Context, /, **options: Any) -> None:
    """Read an Oak repository's HEAD without running Oak."""
    try:
        options["backend"] = options["backend"] or default_backend("oak")
    except ValueError as e:
        raise click.UsageError(str(e), ctx) from e
    _read(ctx, "oak", options)


def _read(ctx: click.Context, vcs: str, options: dict[str, Any]) -> None:
    if (options["qualified_by"] is None) != (options["because"] is None):
        raise click.UsageError("--instrument-qualified-by and --because go together", ctx)
    if options["record"]:
        missing = [name for name in ("campaign", "trial", "subject") if options[name] is None]
        if missing:
            raise click.UsageError(f"--record also needs --{' --'.join(missing)}", ctx)
    reading = run_reader(_request(ctx, vcs, options))
    click.echo(reading.text, nl=False)
    if reading.exit_status != 0:
        click.echo(reading.message, err=True)
    if options["record"]:
        event_id = record(ctx, reading, options)
        if reading.exit_status == 0:
            click.echo(f"recorded {event_id}", err=True)
    ctx.exit(reading.exit_status)


def _request(ctx: click.Context, vcs: str, options: dict[str, Any]) -> Request:
    scope: tuple[bytes, ...] | None = None
    if options["scope"] is not None or options["paths"]:
        try:
            listed = read_scope_file(options["scope"]) if options["scope"] is not None else []
        except Stop as stop:
            raise click.UsageError(stop.detail, ctx) from stop
        scope = (*listed, *(os.fsencode(p) for p in options["paths"]))
    return Request(
        vcs=vcs,
        repo=options["repo"],
        backend=options["backend"],
        scope=scope,
        dest=options["dest"],
        manifest=options["manifest"] is not None,
        max_blob_bytes=options["max_blob_bytes"],
        max_object_bytes=options["max_object_bytes"],
        max_total_bytes=options["max_total_bytes"],
        max_entries=options["max_entries"],
        max_depth=options["max_depth"],
        deadline_s=options["deadline"],
        deep=options["deep"],
        complete=options["complete"],
        subject_binary=options["subject_binary"],
    )


def record(ctx: click.Context, reading: Reading, options: dict[str, Any]) -> str:
    """Append the invocation and return its event id."""
    binary = options["subject_binary"]
    subject_sha256 = None if binary is None else file_sha256(binary)
    report = reading.report
    found = relation(
        report["reader"],
        report["backend"],
        (report.get("instrument") or {}).get("sha256"),
        subject_sha256,
        options["qualified_by"],
        options["because"],
        instrument_is_script=bool((report.get("instrument") or {}).get("is_script")),
    )
    event = reader_invoked(
        reading,
        relation=found.value,
        campaign=options["campaign"],
        trial=options["trial"],
        subject=options["subject"],
        subject_binary_sha256=subject_sha256,
        qualified_by=options["qualified_by"],
        qualified_because=options["because"],
    )
    _, ids = ctx.obj.record([event])
    return str(ids[0])
