"""`oakledger campaign`: plan the order of a campaign, and declare it before the runs."""

from __future__ import annotations

import json
from typing import IO

import click

from ledger.cli.context import Context, json_option, pass_context
from ledger.errors import OakledgerError


@click.group()
def campaign() -> None:
    """Plan and declare campaigns."""


@campaign.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o", "--output", type=click.File("w", lazy=True, encoding="utf-8"), default="-", help="Default: stdout."
)
def plan(file: str, output: IO[str]) -> None:
    """Write the trials that FILE plans, in the order in which they are to run.

    One JSON object a line: position, block_position and in_block (null when FILE declares no order),
    scenario, scenario_version, condition (its number in FILE, from 0), condition_key, repetition,
    subject.
    Nothing is recorded.
    """
    from ledger.campaign import read, slots_of_file
    from ledger.events import canonical_sha256

    campaign_file = read(file)
    number = {canonical_sha256(c): n for n, c in enumerate(campaign_file.plan.conditions)}
    for slot in slots_of_file(campaign_file):
        row = {
            "position": slot.position,
            "block_position": slot.block_position,
            "in_block": slot.in_block,
            "scenario": slot.scenario,
            "scenario_version": slot.scenario_version,
            "condition": number[slot.condition_key],
            "condition_key": slot.condition_key,
            "repetition": slot.repetition,
            "subject": slot.subject,
        }
        output.write(json.dumps(row) + "\n")


@campaign.command()
@click.argument("file", type=click.Path())
@json_option
@pass_context
def declare(ctx: Context, file: str, as_json: bool) -> None:
    """Record the plan in FILE, with its order, before any of its trials runs.

    Declaring the same file again changes nothing; declaring a campaign again with other content is refused.
    """
    from ledger.campaign import read

    campaign_file = read(file)
    known = _declared(ctx, campaign_file.campaign)
    if known:
        same = known == _content(campaign_file.declaration)
        if not same:
            raise OakledgerError(
                f"campaign {campaign_file.campaign} is declared already, with other content: a plan is not "
                "changed after it was declared; give the new one another campaign name"
            )
        ids: list[str] = []
    else:
        _, ids = ctx.record([campaign_file.declaration, *campaign_file.environments])
    if as_json:
        ctx.print_json(
            {
                "campaign": campaign_file.campaign,
                "plan_sha256": campaign_file.plan_sha256,
                "slots": campaign_file.slot_count,
                "new": bool(ids),
                "event_id": ids[0] if ids else None,
            }
        )
        return
    word = "declared" if ids else "was declared before, unchanged:"
    click.echo(
        f"{campaign_file.campaign} {word} {campaign_file.slot_count} planned trials, "
        f"plan {campaign_file.plan_sha256}"
    )


def _declared(ctx: Context, name: str) -> object | None:
    """Return the content of the campaign's declaration in the ledger, null if there is none."""
    import os

    if not os.path.lexists(ctx.path):
        return None
    with ctx.open(read_only=True) as ledger:
        row = ledger.con.execute(
            "SELECT payload FROM events WHERE kind = 'campaign_declared' AND campaign = ? "
            "ORDER BY recorded_at_ns LIMIT 1",
            [name],
        ).fetchone()
    return None if row is None else _content(json.loads(row[0]))


def _content(declaration: dict[str, object]) -> tuple[object, ...]:
    """Return what a declaration says, in canonical form."""
    import msgspec

    from ledger.events import Order, Plan, canonical

    plan = msgspec.convert(declaration["plan"], Plan)
    order = msgspec.convert(declaration.get("order"), Order | None)
    return canonical(plan), canonical(order), declaration["preregistered"]
