"""More acts: replacements from elsewhere, facts hidden in the record of a timed unit, and small print."""

from __future__ import annotations

from typing import Any

from campaigns import SCRIPT_CONDITIONS, judgement, passed, replaced, respec, sha
from mutations import (
    ARCHAEOLOGY,
    OBSERVED,
    OPERATIONS,
    OTHER_ENVIRONMENT,
    SCRIPTED,
    SYNC,
    WIDE,
    WITH_DIAGNOSTIC,
    Story,
    act,
    contradict,
    replace,
    replace_slot,
)

from ledger.events import TrialRecorded, canonical_sha256

TWO_SCENARIOS = respec(OBSERVED, campaign="ts", scenarios=(WIDE, SYNC))
TWO_VERSIONS = respec(OBSERVED, campaign="tv", scenarios=(WIDE, replace(WIDE, scenario_version=2)))
TWO_TRANSPORTS = respec(OBSERVED, campaign="tc", conditions=SCRIPT_CONDITIONS)


def _from_elsewhere(s: Story, **where: Any) -> None:
    """Let a run of another cell stand in for the unlaunched attempt of Oak at repetition 5."""
    cell = {"scenario": WIDE.scenario, "scenario_version": 1, "condition": s.spec.conditions[0]}
    old, new = s.runs(subject="oak_installed", repetition=5, **cell)
    s.drop(s.of(new))
    other = passed(s.spec, replace_slot(s.slot(old), **where), s.end_ns, 7)
    s.add(*other, replaced(old, other[0]))  # type: ignore[arg-type]
    s.late()


@act(TWO_SCENARIOS, planned_slots="replacement_elsewhere slots_missing")
def replacement_of_another_scenario(s: Story) -> None:
    """A run of an easier scenario stands in for one that was never launched."""
    _from_elsewhere(s, scenario=SYNC.scenario)


@act(TWO_VERSIONS, planned_slots="replacement_elsewhere slots_missing")
def replacement_of_another_version(s: Story) -> None:
    """A run of version 2 of the scenario stands in for one of version 1."""
    _from_elsewhere(s, scenario_version=2)


@act(TWO_TRANSPORTS, planned_slots="replacement_elsewhere slots_missing")
def replacement_of_another_condition(s: Story) -> None:
    """A run over another transport stands in for one that was never launched."""
    _from_elsewhere(s, condition_key=canonical_sha256(SCRIPT_CONDITIONS[1]))


@act(
    SCRIPTED,
    planned_slots="replacement_earlier",
    order="start_equal",
    also="two starts in one block are equal",
)
def replacement_at_the_same_moment(s: Story) -> None:
    """The replacement started when the attempt did that it replaces."""
    old, new = s.runs(subject="git", repetition=9)
    assert old.started_at_ns is not None
    s.edit(s.trial(new), started_at_ns=old.started_at_ns, ended_at_ns=old.started_at_ns + 77)


@act(
    SCRIPTED,
    planned_slots="measured_attempt_replaced",
    conflicts="pass_with_timeout",
    also="the contradiction stands, replaced or not",
)
def undecided_attempt_replaced(s: Story) -> None:
    """A run that passed over its time limit is run again, so that nobody has to decide."""
    old = contradict(s, status="timeout", exit_code=None)
    new = passed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


@act(SCRIPTED, planned_slots="measured_attempt_replaced")
def failure_replaced_after_a_failed_launch(s: Story) -> None:
    """The replacement of an unlaunched attempt failed, and is replaced in its turn."""
    _, new = s.runs(subject="oak_installed", repetition=5)
    read = next(e for e in s.events if s.reads(new)(e))
    s.drop(s.verdicts(new))
    s.add(judgement(s.spec, new, read, verdict="fail", reason="content_differs"))  # type: ignore[arg-type]
    third = passed(s.spec, s.slot(new), s.end_ns, 8)
    s.add(*third, replaced(new, third[0]))  # type: ignore[arg-type]
    s.late()


@act(
    WITH_DIAGNOSTIC,
    condition_coverage="condition_not_planned",
    notes={"planned_slots": {"slots_missing", "slot_unmeasured"}, "environment": {"environments_differ"}},
)
def diagnostic_run_elsewhere(s: Story) -> None:
    """A run of the diagnostic scenario was made on another machine."""
    run = s.runs(subject="oak_installed", scenario=ARCHAEOLOGY.scenario)[3]
    s.edit(s.trial(run), condition=replace(run.condition, environment_id=OTHER_ENVIRONMENT))


@act(SCRIPTED, planned_slots="replaced_trial_unknown replacement_unknown")
def replacement_of_nothing_by_nothing(s: Story) -> None:
    """A replacement is recorded of which neither side was ever shown."""
    run = s.runs("pass", subject="git")[5]
    name = s.spec.campaign
    s.add(replace(replaced(run, run), trial=f"{name}/never-1", replacement=f"{name}/never-2"))


UNFILLED = "the slot is left without a measured outcome, or the claim without a value"

for _name, _doc, _facts, _expect in (
    (
        "timeout_hidden_in_an_operation",
        "The commit ran past its limit.",
        {"status": "timeout"},
        {"conflicts": "pass_with_timeout"},
    ),
    (
        "error_hidden_in_an_operation",
        "The commit ended with an error.",
        {"status": "error"},
        {"conflicts": "pass_with_error"},
    ),
    (
        "harness_failure_hidden_in_an_operation",
        "The harness failed during the commit.",
        {"status": "harness_failure"},
        {"conflicts": "pass_with_harness_failure", "planned_slots": "slot_harness_failure"},
    ),
    (
        "unlaunched_operation",
        "The commit was never launched.",
        {"status": "unlaunched"},
        {"conflicts": "pass_with_unlaunched", "planned_slots": "slot_unlaunched"},
    ),
    (
        "operation_without_head",
        "The commit reached no HEAD.",
        {"reached_head": False},
        {"conflicts": "pass_without_head"},
    ),
    (
        "operation_of_no_repetition",
        "The record of the commit does not say which repetition it belongs to.",
        {"repetition": None},
        {"sample_size": "identity_in_two_cells"},
    ),
    (
        "operation_on_another_fixture",
        "The commit ran on another fixture.",
        {"fixture_version": 9},
        {"identity": "fixture_differs"},
    ),
    (
        "operation_of_another_binary",
        "The commit ran another binary.",
        {"subject_binary_sha256": sha("another")},
        {"identity": "binary_changes identity_contradicted"},
    ),
    (
        "operation_recorded_twice",
        "One timed unit is recorded twice, and another not at all.",
        {"operation": "status"},
        {"sample_size": "identity_twice", "noise_floor": "metric_unmeasured"},
    ),
):

    def _operation(s: Story, facts: dict[str, Any] = _facts) -> None:
        run = s.runs("pass", subject="oak_installed", operation="commit", reached_head=True)[3]
        s.edit(lambda e: isinstance(e, TrialRecorded) and e is run, **facts)

    _operation.__doc__ = _doc
    act(OPERATIONS, name=_name, also=UNFILLED, **_expect)(_operation)  # type: ignore[arg-type]
