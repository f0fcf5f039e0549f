"""`oakledger demo`: a whole small campaign with real programs, in one directory that can be looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import click

from ledger.events import canonical_sha256
from ledger.spool import Spool
from oracles.demo.campaign import Harness
from oracles.demo.plan import CAMPAIGN, campaign_file, condition
from oracles.demo.subjects import Subject, environment_facts, find_subjects

QUERIES = (
    "SELECT subject, scenario, outcome, count(*) AS trials FROM trial_outcomes GROUP BY ALL ORDER BY ALL",
    "SELECT DISTINCT subject, correctness_class, reader, backend FROM correctness_classes "
    "WHERE verdict = 'pass' ORDER BY ALL",
    "SELECT trial, subject, status, status_code, outcome FROM trial_outcomes WHERE outcome = 'replaced'",
)


@click.command()
@click.argument("folder", type=click.Path(), default="demo")
@click.option(
    "--trials",
    type=click.IntRange(1, 1000),
    default=30,
    show_default=True,
    help="Planned trials of each cell.",
)
@click.option(
    "--keep",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Repetitions whose repositories stay.",
)
@click.pass_context
def demo(ctx: click.Context, /, folder: str, trials: int, keep: int) -> None:
    """Run a small campaign from plan to decision in a new FOLDER.

    Three scenarios, two subjects, thirty trials each in blocked random order, with real git and, where an
    `oak` is on PATH, real Oak; some trials go wrong on purpose, and one meets a broken machine and is
    replaced. Ends in `oakledger qualify`, which answers that the campaign is diagnostic: a demo is no study.
    """
    if os.path.lexists(folder):
        raise click.UsageError(f"{folder} exists: name a new folder, or remove it", ctx)
    try:
        subjects = find_subjects()
    except OSError as e:
        raise click.UsageError(str(e), ctx) from e
    os.makedirs(os.path.join(folder, "trials"))
    os.mkdir(os.path.join(folder, "spool"))
    ledger = os.path.join(folder, "oakledger.duckdb")
    _say_subjects(subjects)
    facts = environment_facts()
    plan = os.path.join(folder, "campaign.toml")
    with open(plan, "x", encoding="utf-8") as stream:
        stream.write(campaign_file([s.name for s in subjects], trials, facts))
    oakledger(ledger, "campaign", "declare", plan)
    listed = oakledger(ledger, "campaign", "plan", plan, quiet=True)
    slots = [json.loads(line) for line in listed.splitlines()]
    started = time.monotonic()
    with Spool(os.path.join(folder, "spool"), source=f"demo-harness/{time.time_ns()}") as spool:
        observed = {k: v for k, v in condition(facts).items() if k != "environment"}
        observed["environment_id"] = canonical_sha256(facts)
        harness = Harness(os.path.join(folder, "trials"), subjects, observed, spool, keep)
        with click.progressbar(length=len(slots), label="trials", file=sys.stderr) as bar:
            harness.run(slots, lambda: bar.update(1))
    click.echo(f"{len(slots)} planned trials ran in {time.monotonic() - started:.0f} s")
    oakledger(ledger, "ingest", os.path.join(folder, "spool"))
    oakledger(ledger, "audit")
    oakledger(ledger, "qualify", "--campaign", CAMPAIGN, expect=(0, 1))
    click.echo(f"\nThe ledger is {ledger}, the repositories are in {os.path.join(folder, 'trials')}.")
    click.echo("Three questions to ask it:")
    for query in QUERIES:
        click.echo(f'  oakledger --ledger {ledger} sql "{query}"')


def _say_subjects(subjects: list[Subject]) -> None:
    for subject in subjects:
        click.echo(f"subject {subject.name}: {subject.version}, SHA-256 {subject.binary_sha256[:16]}...")
        if subject.program is None:
            click.echo(
                "  There is no oak on PATH: its repositories are stores that a real client wrote earlier.\n"
                "  They are read and judged like any other; nothing is measured about Oak by them."
            )


def oakledger(ledger: str, *args: str, expect: tuple[int, ...] = (0,), quiet: bool = False) -> str:
    """Run one command of the tool as a person would, show it and its output, and return the output."""
    if not quiet:
        click.echo(f"\n$ oakledger --ledger {ledger} {' '.join(args)}")
    done = subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", ledger, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not quiet:
        click.echo(done.stdout, nl=False)
    if done.returncode not in expect:
        raise click.ClickException(f"oakledger {args[0]} ended with {done.returncode}")
    return done.stdout
