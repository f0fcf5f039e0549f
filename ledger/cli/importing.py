"""`oakledger import`: other tools' result files into the ledger, or into a file to look at first."""

from __future__ import annotations

import base64
import contextlib
import os
from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context, json_option, pass_context
from ledger.importers import MODULES
from ledger.importers.shared import name
from ledger.inputs import shown

if TYPE_CHECKING:
    from ledger.importers.taking import Taken
    from ledger.store import AppendResult


@click.command("import")
@click.argument("tool", type=click.Choice(list(MODULES)))
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--campaign",
    metavar="NAME",
    help="The campaign of the trials. Default: one a file, import/TOOL/ and the start of the file's SHA-256.",
)
@click.option(
    "--subject", metavar="NAME", help="What was measured, for files that do not name it themselves."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the events to a new FILE as NDJSON (- for standard output) and leave the ledger alone.",
)
@json_option
@pass_context
def import_(
    context: Context,
    tool: str,
    files: tuple[str, ...],
    campaign: str | None,
    subject: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Convert another tool's result files into events.

    The files are taken as they are: what they do not say stays null, a success that they claim is shown and
    never believed, and no campaign is declared. All files are one transaction: when one of them cannot be
    imported, nothing is. Importing a file again changes nothing. docs/import.md says what becomes of each
    field.

    \b
    Exit status: 0 everything is in the ledger, or in FILE; 2 usage, or a file or ledger that cannot be used;
    3 the ledger does not verify.

    \b
    Example: oakledger import hyperfine results.json -o - | head
    """
    from ledger.importers.taking import take

    for option, value in (("--campaign", campaign), ("--subject", subject)):
        if value is not None and name(value) != value:
            raise click.UsageError(f"{option}: a name has letters, digits and . _ : @ + / -, at most 200")
    if output == "-" and as_json:
        raise click.UsageError("--json and -o - both want standard output: give -o a file")
    taken = [take(tool, path, campaign, subject) for path in files]
    result, written = None, 0
    if output is None:
        result = _append(context, taken)
    else:
        written = _write(context, taken, output)
    if as_json:
        context.print_json(_as_json(context, tool, taken, result, output, written))
    else:
        _print(taken, result, output, written)


def _append(context: Context, taken: list[Taken]) -> AppendResult:
    from ledger.checkpoints import keep
    from ledger.importers.taking import append, stage, unsaid
    from ledger.ingest import refuse_lost_events
    from ledger.staging import Staging

    ask = unsaid(taken) and os.path.lexists(context.path)
    with Staging() as staging:
        if not ask:
            stage(staging, taken, None)  # before the ledger is opened: bad files make no ledger
        with context.open(create=True) as ledger:
            refuse_lost_events(ledger)
            if ask:
                stage(staging, taken, ledger)
            result = append(ledger, staging)
            keep(ledger.path, result.checkpoint)
    return result


def _write(context: Context, taken: list[Taken], output: str) -> int:
    """Write the events; a ledger that is there is asked for the times of earlier imports."""
    from ledger.importers.taking import events, unsaid, write

    with contextlib.ExitStack() as stack:
        ask = unsaid(taken) and os.path.lexists(context.path)
        ledger = stack.enter_context(context.open(read_only=True)) if ask else None
        if output != "-":
            return write(output, events(taken, ledger))
        made = list(events(taken, ledger))
    for event in made:
        click.echo(event.payload)
    return len(made)


def _print(taken: list[Taken], result: AppendResult | None, output: str | None, written: int) -> None:
    to_stderr = output == "-"
    for file in taken:
        click.echo(f"{shown(file.path)}: {_trials(file)} of campaign {file.campaign}", err=to_stderr)
        for note in file.imported.notes:
            click.echo(f"  note: {note}", err=to_stderr)
    if result is None:
        click.echo(f"{written} events written, the ledger is as it was", err=to_stderr)
        return
    head = result.checkpoint
    click.echo(f"{result.new} new, {result.known} known")
    click.echo(f"checkpoint {head.origin} {head.size} {base64.b64encode(head.root).decode()}")


def _trials(file: Taken) -> str:
    number = file.imported.trials
    return f"{number} trial{'' if number == 1 else 's'}"


def _as_json(
    context: Context,
    tool: str,
    taken: list[Taken],
    result: AppendResult | None,
    output: str | None,
    written: int,
) -> dict[str, object]:
    head = None if result is None else result.checkpoint
    return {
        "tool": tool,
        "ledger": None if result is None else context.path,
        "output": output,
        "written": written,
        "new": None if result is None else result.new,
        "known": None if result is None else result.known,
        "checkpoint": None
        if head is None
        else {"origin": head.origin, "size": head.size, "root": base64.b64encode(head.root).decode()},
        "files": [
            {
                "path": shown(t.path),
                "sha256": t.sha256,
                "source": t.source,
                "campaign": t.campaign,
                "trials": t.imported.trials,
                "events": len(t.imported.drafts),
                "notes": t.imported.notes,
            }
            for t in taken
        ],
    }
