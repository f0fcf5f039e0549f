"""The shape of the JSON that `oakledger qualify --json` prints: `oakledger-qualification/1`.

Nothing here takes part in a decision. `validate` holds a document to the shape, and
`python -m qualify.document` writes the JSON Schema beside this file; a test fails when it is stale. Null is
unmeasured or unknown, never zero. Rates are in thousandths.
"""

from __future__ import annotations

import pathlib
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from ledger.fields import Sha256

SCHEMA_FILE = pathlib.Path(__file__).with_name("qualification.schema.json")


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """Any object of the document: every field is there, and no other."""


class Head(Part, frozen=True):
    """A tree head: the first `size` events of `origin` have this RFC 6962 root."""

    origin: str
    size: int
    root: Sha256


class Facts(Part, frozen=True):
    """What the campaign is."""

    declared_event_id: Annotated[str | None, Meta(description="Null: never declared.")]
    declared_at_ns: int | None
    preregistered: bool | None
    trials_per_cell: int | None
    slots: Annotated[int | None, Meta(description="Planned trials in all.")]
    lane: str | None
    lanes_met: list[str]
    bound: Annotated[bool, Meta(description="Rules 2, 4 and 5 bind.")]
    attempts: int
    real_subjects: Annotated[int, Meta(description="Subjects that are not the null of another.")]
    order_basis: Literal["declared", "by observation only"]
    order_algorithm: str | None
    order_extent: str | None
    order_seed: str | None
    claim_count: int


class Found(Part, frozen=True):
    """One row of a rule view."""

    what: Annotated[str, Meta(description="Code of what was found.")]
    binding: Annotated[bool, Meta(description="False: shown, refuses nothing.")]
    scenario: str | None
    scenario_version: int | None
    condition_key: str | None
    subject: str | None
    trial: str | None
    detail: Annotated[str, Meta(description="For people.")]
    event_ids: Annotated[list[str], Meta(description="All events behind it.")]


class RuleFound(Part, frozen=True):
    """A rule and everything that it found."""

    number: int
    id: str
    title: str
    view: str
    lanes: str
    state: Literal["holds", "violated", "information", "not_applicable"]
    violations: list[Found]
    information: list[Found]


class Cell(Part, frozen=True):
    """One row of the view `cells`."""

    scenario: str
    scenario_version: int
    condition_key: str
    subject: str
    planned: int
    recorded: int
    measured: Annotated[int, Meta(description="The denominator.")]
    passed: int
    failed_committed: int
    failed_before_head: int
    unmeasured: int
    harness_failure: int
    unlaunched: int
    missing: int
    conflict: int
    slots_invalidated: int
    replaced: int
    invalidated: int
    surplus: int
    unplanned: int
    unmeasured_by_subject: int
    success_permille: float | None
    wilson_low_permille: float | None
    wilson_high_permille: float | None
    strict_success_permille: float | None


class ConditionFacts(Part, frozen=True):
    """One row of the view `conditions`."""

    condition_key: str
    planned: bool
    agent: str | None
    agent_version: str | None
    model: str | None
    instruction_level: str | None
    instruction_sha256: str | None
    track: str | None
    environment_id: str | None
    transport: str | None
    profile: str | None
    limits: Annotated[str | None, Meta(description="JSON text.")]
    same_but_environment: str


class Hole(Part, frozen=True):
    """A place of the coverage matrix where nothing was measured."""

    scenario: str
    scenario_version: int
    condition_key: str
    subject: str
    diagnostic: bool
    planned: int
    recorded: int
    measured: int


class ClassFound(Part, frozen=True):
    """One row of the view `class_pairs`."""

    scenario: str
    scenario_version: int
    diagnostic: bool
    condition_key: str
    subject: str
    correctness_class: str | None
    successes: int


class Pairs(Part, frozen=True):
    """One row of the view `paired_outcomes`."""

    scenario: str
    scenario_version: int
    diagnostic: bool
    condition_key: str
    subject_a: str
    subject_b: str
    null_pair: bool
    pairs: int
    both: int
    only_a: int
    only_b: int
    neither: int
    not_comparable: int
    before_head_a: int
    before_head_b: int
    classes_a: list[str | None] | None
    classes_b: list[str | None] | None


class ClaimFound(Part, frozen=True):
    """One row of the view `claims`."""

    claim: int
    metric: str
    operation: str | None
    scenario: str
    scenario_version: int
    condition_key: str
    subject: str
    baseline: str
    direction: str
    size_permille: int
    pairs: int
    unmeasured: int
    effect_permille: float | None
    low_permille: float | None
    high_permille: float | None
    advantage_permille: float | None
    null_comparisons: int
    floor_permille: float | None


class SetAside(Part, frozen=True):
    """An attempt that somebody took out of the count."""

    what: Literal["invalidated", "replaced"]
    trial: str
    replacement: str | None
    who: str | None
    why: str | None
    fact_outcome: str | None
    scenario: str | None
    scenario_version: int | None
    condition_key: str | None
    subject: str | None
    event_id: str


class Rerun(Part, frozen=True):
    """Another campaign that measures the same."""

    other: str
    same_plan: bool
    earlier: bool
    declared_at_ns: int
    trials: int
    last_decision: str | None
    decisions: int
    event_id: str


class Qualification(Part, frozen=True):
    """A decision on a campaign: every rule, every violation, and the figures behind them."""

    document: Literal["oakledger-qualification/1"]
    campaign: str
    decision: Literal["qualified", "diagnostic"]
    exit_status: Literal[0, 1]
    plan_sha256: Annotated[Sha256 | None, Meta(description="Null: never declared.")]
    checkpoint: Annotated[Head, Meta(description="Head of the ledger's own origin that was decided on.")]
    other_checkpoints: list[Head]
    views_sha256: Annotated[Sha256, Meta(description="Digest of the SQL that decided.")]
    package_version: str
    event_id: Annotated[str | None, Meta(description="The qualification_decided event; null: not recorded.")]
    facts: Facts
    rules: list[RuleFound]
    cells: list[Cell]
    conditions: list[ConditionFacts]
    holes: list[Hole]
    classes: list[ClassFound]
    paired_outcomes: list[Pairs]
    claims: list[ClaimFound]
    set_aside: list[SetAside]
    reruns: list[Rerun]
    limits: Annotated[list[str], Meta(description="What a qualification does not say.")]


def validate(document: dict[str, Any]) -> Qualification:
    """Return the document as a struct; raises msgspec.ValidationError when it has another shape."""
    return msgspec.convert(document, Qualification)


def schema() -> bytes:
    """Return the JSON Schema."""
    return msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Qualification)), indent=2) + b"\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_bytes(schema())
