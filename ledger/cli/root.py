"""The root command. Commands are named here and loaded when they are used, so that each starts fast.

A command of another package is named as text, not imported: the ledger knows nothing of readers, oracles and
qualification. What such a command needs of the ledger it finds in the click context (`ledger.cli.context`).
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, NoReturn

import click

from ledger.cli.context import Context, printable
from ledger.errors import EXIT_INTERRUPTED, EXIT_NEGATIVE, EXIT_OK, EXIT_USAGE, OakledgerError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Command name -> (module:attribute, one line of help), in the order of the help page.
COMMANDS: dict[str, tuple[str, str]] = {
    "campaign": ("ledger.cli.campaign:campaign", "Plan and declare campaigns."),
    "ingest": (
        "ledger.cli.ingest:ingest",
        "Append events or harness rows from files, run directories or a pipe.",
    ),
    "import": ("ledger.cli.importing:import_", "Convert other tools' result files into events."),
    "read": ("reader.cli:read", "Read a repository's HEAD with one reader."),
    "verify": ("oracles.cli:verify", "Read and judge one trial's repository."),
    "qualify": ("qualify.cli:qualify", "Decide whether a campaign's comparison may be published."),
    "report": ("qualify.report_cli:report", "Write a campaign's report as one HTML page."),
    "verify-certificate": (
        "qualify.certificate_cli:verify_certificate",
        "Check a certificate, with the ledger or by its proofs alone.",
    ),
    "status": ("ledger.cli.status:status", "Show campaigns, events, the last checkpoint, decisions."),
    "show": ("ledger.cli.show:show", "Show an event, trial or campaign with its chain of evidence."),
    "audit": ("ledger.cli.audit:audit", "Verify the ledger: contents, tree, guards, views, checkpoints."),
    "checkpoint": ("ledger.cli.proofs:checkpoint", "Print the current checkpoint, signed if a key is given."),
    "prove": ("ledger.cli.proofs:prove", "Make an inclusion proof of one event."),
    "verify-proof": ("ledger.cli.proofs:verify_proof", "Check a proof without the ledger."),
    "keygen": ("ledger.cli.proofs:keygen", "Make an Ed25519 key pair for checkpoints."),
    "sql": ("ledger.cli.sql:sql", "Ask the ledger in SQL, read-only."),
    "merge": ("ledger.cli.merge:merge", "Take in the events of other ledgers."),
    "export": ("ledger.cli.export:export", "Export events as Parquet."),
    "schema": ("ledger.cli.schema:schema", "Print the JSON Schema of events and rows."),
    "completion": ("ledger.cli.completion:completion", "Print a shell's completion script."),
    "demo": ("oracles.demo.cli:demo", "Run a small real campaign from plan to decision."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in table order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands from the table, importing nothing, and the options of the root."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=text)
            for name, (_, text) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command list from the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name near misses when a command does not exist."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f": did you mean {near[0]}?" if near else ""
            ctx.fail(f"no such command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    """Print the two versions that decide what a ledger file can be opened with."""
    if not asked or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    from ledger.store import SCHEMA_VERSION

    click.echo(f"oakledger, version {version('oakledger')} (ledger schema {SCHEMA_VERSION})")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--ledger",
    "ledger_path",
    metavar="PATH",
    help="The ledger file. Default: the environment variable OAKLEDGER, else oakledger.duckdb here.",
)
@click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait while another process holds the ledger.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions of package and ledger schema and exit.",
)
@click.pass_context
def cli(ctx: click.Context, ledger_path: str | None, lock_timeout: float) -> None:
    """Evidence for claims that one version control system beats another.

    Readers say what a repository's HEAD really holds, oracles judge it, and every reader invocation, verdict
    and trial becomes an immutable event in a DuckDB ledger, from which SQL views derive whether a comparison
    may be published.
    """
    ctx.obj = Context(ledger_path=ledger_path, lock_timeout_s=lock_timeout)


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line. An error becomes one line on standard error and its exit status."""
    try:
        result = cli.main(args=argv, prog_name="oakledger", standalone_mode=False)
        sys.exit(result if isinstance(result, int) else EXIT_OK)
    except OakledgerError as e:
        _fail(str(e), e.exit_status)
    except click.exceptions.NoArgsIsHelpError as e:
        click.echo(e.format_message())
        sys.exit(EXIT_USAGE)
    except click.ClickException as e:
        where = e.ctx.command_path if isinstance(e, click.UsageError) and e.ctx else "oakledger"
        _fail(f"{e.format_message().rstrip('.')}: see {where} --help", EXIT_USAGE)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_NEGATIVE)


def _fail(message: str, status: int) -> NoReturn:
    click.echo(f"oakledger: {printable(message)}", err=True)
    sys.exit(status)
