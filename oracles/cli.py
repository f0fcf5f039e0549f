"""`oakledger verify`: read one trial's repository, judge it, and record both when told which trial it is."""

from __future__ import annotations

import os
from typing import Any

import click
import msgspec

from oracles.contract import ContractError, load
from oracles.trial import Instrument, Outcome, TrialIdentity, events
from oracles.trial import verify as verify_repository
from reader.driver import default_backend

EXIT = {"pass": 0, "fail": 1, "unmeasured": 77}


@click.command()
@click.option("--scenario", required=True, help="Scenario whose contract applies.")
@click.option("--scenario-version", type=click.IntRange(min=1), help="Version; default: the newest.")
@click.option("--contracts", metavar="DIR", help="Folder of contracts to use instead of the shipped ones.")
@click.option("--vcs", required=True, type=click.Choice(["git", "oak"]), help="Kind of repository.")
@click.option("--repo", required=True, metavar="DIR", help="The trial's working directory.")
@click.option(
    "--lane",
    type=click.Choice(["core", "workflow", "agent", "contention", "mount"]),
    help="Lane of the trial; decides whether a retained test suite is part of the task.",
)
@click.option(
    "--backend",
    type=click.Choice(["pure", "native", "git", "export"]),
    help="Reader backend. Default: pure; for Oak what the environment variables say.",
)
@click.option("--deadline", type=click.FloatRange(min=0), metavar="SECONDS", help="Time limit of each read.")
@click.option("--campaign", help="Record the events in this campaign; also needs --trial and --subject.")
@click.option("--trial", help="Trial whose repository this is.")
@click.option("--subject", help="Subject that wrote the repository.")
@click.option(
    "--subject-binary",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="The subject's program, to tell how the reader relates to it.",
)
@click.option(
    "--instrument-qualified-by", "qualified_by", metavar="WHO", help="Who vouches for the instrument."
)
@click.option("--because", metavar="WHY", help="Why it is independent; recorded as their assertion.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.pass_context
def verify(ctx: click.Context, /, **options: Any) -> None:
    """Read a trial's repository, judge it by its scenario's contract, and say pass, fail or unmeasured.

    Exit status: 0 pass, 1 fail, 2 usage, 77 unmeasured. Looking leaves no trace; with --campaign, --trial
    and --subject the reader invocation and the verdict are appended to the ledger.
    """
    named = [options[k] for k in ("campaign", "trial", "subject")]
    if any(named) and not all(named):
        raise click.UsageError("--campaign, --trial and --subject go together", ctx)
    if (options["qualified_by"] is None) != (options["because"] is None):
        raise click.UsageError("--instrument-qualified-by and --because go together", ctx)
    if not os.path.isdir(options["repo"]):
        raise click.UsageError(f"--repo {options['repo']!r} is no directory", ctx)
    instrument = Instrument(options["subject_binary"], options["qualified_by"], options["because"])
    try:
        contract = load(options["scenario"], options["scenario_version"], options["contracts"])
        backend = options["backend"] or ("pure" if options["vcs"] == "git" else default_backend("oak"))
        outcome = verify_repository(
            contract,
            options["vcs"],
            options["repo"],
            backend=backend,
            lane=options["lane"],
            instrument=instrument,
            deadline_s=options["deadline"],
        )
    except (ContractError, ValueError, OSError) as e:
        raise click.UsageError(str(e), ctx) from e
    recorded: list[str] = []
    if all(named):
        identity = TrialIdentity(*named)
        _, recorded = ctx.obj.record(events(outcome, identity, instrument))
    if options["as_json"]:
        ctx.obj.print_json(as_json(outcome, recorded))
    else:
        _print(outcome, recorded)
    ctx.exit(EXIT[outcome.judgement.verdict])


def as_json(outcome: Outcome, recorded: list[str]) -> dict[str, Any]:
    """Return what --json prints; docs/contracts.md describes the fields."""
    task = outcome.contract.contract
    report = {k: v for k, v in outcome.reading.report.items() if k != "entries"}
    return {
        "scenario": task.scenario,
        "scenario_version": task.scenario_version,
        "contract_sha256": outcome.contract.sha256,
        "evidence_class": outcome.evidence_class,
        "relation": outcome.relation.value,
        **msgspec.to_builtins(outcome.judgement),
        "reader_report": report,
        "recorded": recorded,
    }


def _print(outcome: Outcome, recorded: list[str]) -> None:
    judged = outcome.judgement
    task = outcome.contract.contract
    why = f" ({judged.reason})" if judged.reason else ""
    click.echo(f"{judged.verdict}{why}: {task.scenario} version {task.scenario_version}")
    for check in judged.checks:
        if check.result == "pass" and judged.verdict == "pass" and len(judged.checks) > 20:
            continue
        parts = [f"  {check.result:10} {check.check}", check.reason or "", _shown(check.path)]
        if check.expected is not None:
            parts.append(f"expected {check.expected}")
        if check.found is not None:
            parts.append(f"found {check.found}")
        click.echo(" ".join(p for p in parts if p))
    report = outcome.reading.report
    click.echo(f"  read by    {report['reader']} ({report['backend']}), head {report['head'] or 'none'}")
    if judged.verdict == "pass":
        click.echo(f"  evidence   {outcome.evidence_class or outcome.relation.detail}")
    if judged.depth == "committed_payload":
        click.echo("  scope      committed payload: not the whole repository, and no proof of behaviour")
    for event_id in recorded[-2:]:
        click.echo(f"  recorded   {event_id}")


def _shown(path: Any) -> str:
    if path is None:
        return ""
    text = path if isinstance(path, str) else path.path_b64
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
