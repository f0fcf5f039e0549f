"""More acts: replacements from elsewhere, facts hidden in the record of a timed unit, and small print."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from campaigns import (
    AGENT_CONDITIONS,
    OTHER_ENVIRONMENT,
    SCRIPT_CONDITIONS,
    SECOND,
    Spec,
    failed,
    judgement,
    kind,
    passed,
    reading,
    replaced,
    respec,
    sha,
)
from mutations import (
    AGENT,
    ANSWERED,
    ARCHAEOLOGY,
    OBSERVED,
    OPERATIONS,
    SCRIPTED,
    SYNC,
    UNCOUNTED,
    WIDE,
    WITH_DIAGNOSTIC,
    Story,
    act,
    always,
    claim,
    conflict_rule,
    contradict,
    every_rule,
    replace,
    replace_slot,
)

from ledger.campaign import Slot
from ledger.events import (
    Claim,
    OracleJudged,
    StudyCriteriaAttested,
    SubjectIdentified,
    SubjectPlan,
    TrialRecorded,
    canonical_sha256,
    event_id,
)

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


@act(TWO_SCENARIOS, planned_slots="replacement_elsewhere slots_missing slot_twice")
def replacement_of_another_scenario(s: Story) -> None:
    """A run of an easier scenario stands in for one that was never launched."""
    _from_elsewhere(s, scenario=SYNC.scenario)


@act(TWO_VERSIONS, planned_slots="replacement_elsewhere slots_missing slot_twice")
def replacement_of_another_version(s: Story) -> None:
    """A run of version 2 of the scenario stands in for one of version 1."""
    _from_elsewhere(s, scenario_version=2)


@act(TWO_TRANSPORTS, planned_slots="replacement_elsewhere slots_missing slot_twice")
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


# The plan


@act(OBSERVED, planned_slots="plan_ambiguous")
def condition_planned_twice(s: Story) -> None:
    """A condition stands in the plan twice."""
    s.replan(conditions=(*s.spec.conditions, *s.spec.conditions))


@act(OBSERVED, planned_slots="plan_ambiguous")
def subject_planned_twice(s: Story) -> None:
    """A subject stands in the plan twice."""
    s.replan(subjects=(*s.spec.subjects, SubjectPlan("oak_installed")))


@act(
    respec(OBSERVED, campaign="o1", trials_per_cell=1),
    outcome=always,
    sample_size="too_few_recorded",
    order="order_untestable",
    also="one block has no order",
)
def one_trial_each(s: Story) -> None:
    """One run of each."""


@act(
    SCRIPTED,
    outcome=always,
    planned_slots="slots_missing slot_unmeasured",
    sample_size="too_few_recorded",
    condition_coverage="hole",
    correctness_class="nothing_measured",
    also="one run, not judged, is nothing at all",
)
def one_run_alone(s: Story) -> None:
    """A plan for sixty-two trials, one run, and no oracle."""
    first = s.runs()[0]
    s.drop(lambda e: hasattr(e, "trial") and getattr(e, "trial", None) != first.trial)
    s.drop(kind(OracleJudged))


@act(
    SCRIPTED,
    planned_slots="other_lane",
    condition_coverage="condition_unknown",
    also="what an agent did needs a known agent, model and instruction",
)
def agents_under_a_scripted_plan(s: Story) -> None:
    """Some of the runs of a scripted plan were an agent's."""
    s.edit(s.trial(*s.runs(subject="oak_installed")[:4]), lane="agent")


@act(
    AGENT,
    also="nothing to look at is a violation of every rule, and the model of the plan is unknown besides",
    **{
        **every_rule("no_trials"),
        "planned_slots": "no_trials slots_missing",
        "condition_coverage": "no_trials hole condition_unknown",
        "sample_size": "no_trials too_few_recorded",
        "order": "no_trials order_not_followed",
        "noise_floor": "no_trials metric_unmeasured claim_without_null",
    },
)
def empty_plan_without_a_model(s: Story) -> None:
    """A plan for agents that names no model, and nothing else."""
    s.drop(lambda e: hasattr(e, "trial"))
    s.replan(conditions=(replace(s.spec.conditions[0], model=None),))


# A scenario of two versions, of which one is compared, beside one that is diagnostic

MIXED = respec(
    SCRIPTED,
    campaign="mx",
    scenarios=(WIDE, replace(WIDE, scenario_version=2), ARCHAEOLOGY),
    order=None,
    preregistered=False,
)


def mixed(do: Callable[[Story], object]) -> Callable[[Story], object]:
    """List version 2 as diagnostic, and then do something."""

    @functools.wraps(do)
    def both(s: Story) -> None:
        s.replan(scenarios=(WIDE, replace(WIDE, scenario_version=2, diagnostic=True), ARCHAEOLOGY))
        do(s)

    return both


COMPARED = {"scenario": WIDE.scenario, "scenario_version": 1}


@act(respec(MIXED, campaign="mx29", trials_per_cell=29), outcome=always, sample_size="too_few_recorded")
@mixed
def mixed_twenty_nine(s: Story) -> None:
    """Twenty-nine trials of a scenario that is compared beside others."""


@act(MIXED, order="start_missing")
@mixed
def mixed_start_missing(s: Story) -> None:
    """A run of a scenario that is compared beside others has no start."""
    s.edit(s.trial(s.runs("pass", **COMPARED)[3]), started_at_ns=None)


@act(MIXED, identity="fixture_differs")
@mixed
def mixed_other_fixture(s: Story) -> None:
    """A run of a scenario that is compared beside others started from an older fixture."""
    s.edit(s.trial(s.runs("pass", **COMPARED)[3]), fixture_version=9)


@act(MIXED, correctness_class="scope_differs")
@mixed
def mixed_scope(s: Story) -> None:
    """One side of a scenario that is compared beside others is read with another scope."""
    s.edit(s.reads(*s.runs(subject="oak_installed", **COMPARED)), scope_sha256=sha("smaller"))


@act(
    MIXED,
    failures="fail_without_reader",
    planned_slots="slot_unmeasured",
    also="what is no agent failure leaves its planned slot without a measured outcome",
)
@mixed
def mixed_fail_without_reader(s: Story) -> None:
    """Git failed in a scenario that is compared beside others, and nobody looked."""
    run = s.runs("fail", subject="git", reached_head=True, **COMPARED)[0]
    s.edit(s.verdicts(run), reader_event_id=None)


@act(MIXED, exact_output="lacks_exact_tree")
@mixed
def mixed_markers(s: Story) -> None:
    """Markers where a scenario that is compared beside others asks for the tree."""
    s.edit(kind(OracleJudged, depth="committed_tree"), depth="committed_payload")


@act(MIXED, conflicts="pass_with_timeout")
@mixed
def mixed_timeout(s: Story) -> None:
    """A run over its time limit in a scenario that is compared beside others."""
    s.edit(s.trial(s.runs("pass", **COMPARED)[3]), status="timeout", exit_code=None)


@act(
    MIXED,
    environment="environments_differ",
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
    also="the environment is part of the condition, and the planned slot is empty",
)
@mixed
def mixed_one_run_elsewhere(s: Story) -> None:
    """A run of a scenario that is compared beside others was made on another machine."""
    run = s.runs("pass", subject="oak_installed", **COMPARED)[3]
    s.edit(s.trial(run), condition=replace(run.condition, environment_id=OTHER_ENVIRONMENT))


# Evidence


@act(SCRIPTED, planned_slots="evidence_without_trial slots_missing")
def record_of_a_pass_dropped(s: Story) -> None:
    """The record of a passed run goes, and what was read and judged of it stays."""
    s.drop(s.trial(s.runs("pass", subject="git")[4]))


for _name, _doc, _facts, _found in (
    ("failed_by_a_newer_oracle", "A check was tightened.", {"oracle_version": 3}, "oracle_version"),
    ("failed_on_another_fixture", "Judged on another fixture.", {"fixture_version": 9}, "fixture_version"),
    ("failed_by_an_edited_contract", "The contract was edited.", {"contract_sha256": sha("e")}, "contract"),
    (
        "failed_as_another_scenario",
        "Judged as the other version.",
        {"scenario_version": lambda e: 3 - e.scenario_version},
        "other_scenario",
    ),
):

    def _failed_otherwise(s: Story, facts: dict[str, Any] = _facts) -> None:
        s.edit(s.verdicts(s.runs("fail", subject="git", reached_head=True)[0]), **facts)

    _failed_otherwise.__doc__ = _doc
    act(
        TWO_VERSIONS if _found == "other_scenario" else SCRIPTED,
        name=_name,
        identity=f"verdict_{_found}",
        planned_slots="slot_unmeasured",
        also="a verdict that does not count leaves its trial without one",
    )(_failed_otherwise)


@act(
    SCRIPTED,
    planned_slots="off_plan_scenario",
    condition_coverage="hole",
    also="what one subject has off the plan, the other has not",
)
def failure_off_the_plan(s: Story) -> None:
    """A scenario that the plan does not have is slipped in, and Git fails it."""
    wider = respec(s.spec, scenarios=(WIDE, SYNC))
    run = s.runs("fail", subject="git", reached_head=True)[0]
    s.add(*failed(wider, replace_slot(s.slot(run), scenario=SYNC.scenario), s.end_ns))
    s.late()


@act(
    SCRIPTED,
    correctness_class="pass_without_reader",
    planned_slots="slot_unmeasured",
    also="a pass that does not count leaves its trial unmeasured",
)
def weak_pass_without_reader(s: Story) -> None:
    """A pass of some markers that no reader stands behind."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    s.edit(s.verdicts(run), reader_event_id=None, depth="committed_payload")


EVERYTHING_ASKED = respec(SCRIPTED, campaign="ea", scenarios=(replace(WIDE, tests=True, worktree=True),))
for _part in ("tests", "worktree"):

    def _one_part_lacks(s: Story, part: str = _part) -> None:
        s.edit(kind(OracleJudged), **{part: None})

    _one_part_lacks.__doc__ = f"Tree, tests and worktree are asked for, and the {_part} left out."
    act(EVERYTHING_ASKED, name=f"{_part}_alone_left_out", exact_output=f"lacks_{_part}")(_one_part_lacks)


# Failures of the harness that nobody booked as the agent's


@act(SCRIPTED, planned_slots="slot_harness_failure")
def service_failure_booked_as_nothing(s: Story) -> None:
    """The service failed, nobody judged, and nobody ran it again."""
    run = s.runs("fail", subject="git", reached_head=True)[0]
    s.drop(s.verdicts(run))
    s.edit(s.trial(run), status="error", status_code="http_529", reached_head=None)


@act(SCRIPTED, planned_slots="slot_harness_failure")
def harness_failure_without_head_left(s: Story) -> None:
    """The harness failed before anything was committed, and nobody ran it again."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(run))
    s.drop(s.reads(run))
    s.edit(s.trial(run), status="harness_failure")


@act(SCRIPTED, planned_slots="slot_unlaunched")
def unlaunched_without_head_left(s: Story) -> None:
    """A trial was not launched, reached no HEAD of course, and nobody launched it again."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(run))
    s.drop(s.reads(run))
    s.edit(s.trial(run), status="unlaunched")


# Claims


@act(AGENT, noise_floor="claim_without_subjects claim_without_null")
def claim_with_the_null_as_baseline(s: Story) -> None:
    """Oak is claimed to be faster than the null of Git."""
    claim(s, Claim("wall_ns", "oak_installed", "git_again", "lower", 100))


@act(AGENT, noise_floor="claim_without_subjects metric_unmeasured claim_without_null")
def claim_against_an_unplanned_baseline(s: Story) -> None:
    """Oak is claimed to be faster than something that was not measured."""
    claim(s, Claim("wall_ns", "oak_installed", "git_main", "lower", 100))


@act(AGENT, noise_floor="claim_without_subjects effect_smaller_than_claimed effect_within_noise")
def claim_against_itself(s: Story) -> None:
    """Git is claimed to be faster than Git."""
    claim(s, Claim("wall_ns", "git", "git", "lower", 100))


@act(AGENT, noise_floor="claim_without_scenario")
def one_of_two_claims_on_another_scenario(s: Story) -> None:
    """One claim is on the scenario of the plan, the other on none."""
    good = s.spec.claims[0]
    claim(s, good, replace(good, scenario="wide_config_refactor"))


@act(
    AGENT,
    noise_floor="null_is_not_itself",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    condition_coverage="hole",
    also="nobody ran it either",
)
def null_of_a_null(s: Story) -> None:
    """A null measures a null again."""
    third = SubjectPlan("git_third", null_of="git_again")
    s.replan(subjects=(*s.spec.subjects, third))


@act(
    respec(AGENT, campaign="a2", conditions=AGENT_CONDITIONS, order=None, preregistered=False),
    noise_floor="null_is_not_itself",
    identity="identity_contradicted",
    also="the campaign says that the subject is another binary",
)
def null_of_another_build_once(s: Story) -> None:
    """Under one of two models, what is measured as Git again is another build."""
    runs = s.runs(subject="git_again", condition=AGENT_CONDITIONS[1])
    s.edit(s.trial(*runs), subject_binary_sha256=sha("another build"))
    s.edit(s.reads(*runs), subject_binary_sha256=sha("another build"))


# Attestations


@act(SCRIPTED, study_criteria="attested_early")
def attested_early_and_weakly(s: Story) -> None:
    """The right text was attested too early, a weaker one in time."""
    last = max(e.started_at_ns for e in s.runs() if e.started_at_ns)
    s.edit(kind(StudyCriteriaAttested), recorded_at_ns=last)
    word = next(e for e in s.events if isinstance(e, StudyCriteriaAttested))
    weaker = tuple(replace(c, text_sha256=sha("weaker", c.criterion)) for c in word.criteria)
    s.add(replace(word, criteria=weaker, recorded_at_ns=s.end_ns))


# What was read and what was judged do not fit


@act(
    TWO_SCENARIOS,
    identity="verdict_other_scenario",
    planned_slots="slot_unmeasured",
    also=UNCOUNTED,
)
def judged_as_an_easier_scenario(s: Story) -> None:
    """A run of one scenario is judged as the other."""
    run = s.runs("pass", subject="oak_installed", scenario=WIDE.scenario)[2]
    other = {"scenario": SYNC.scenario, "contract_sha256": SYNC.contract_sha256, "oracle_version": 1}
    s.edit(s.verdicts(run), worktree="pass", **other)


for _name, _doc, _read, _judged, _found in (
    ("pass_of_nobody", "The verdict does not say on whom.", {}, {"subject": None}, "other_subject"),
    (
        "pass_on_a_tree_that_nobody_read",
        "A tree is judged that the reading does not have.",
        {"manifest_sha256": None},
        {},
        "other_manifest",
    ),
    (
        "pass_on_a_reading_of_no_trial",
        "The reading names no trial.",
        {"trial": None},
        {},
        "reader_of_another_trial",
    ),
    (
        "pass_on_a_reading_of_no_subject",
        "The reading names no subject.",
        {"subject": None},
        {},
        "reader_of_another_subject",
    ),
):

    def _does_not_fit(s: Story, read: dict[str, Any] = _read, judged: dict[str, Any] = _judged) -> None:
        run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
        if read:
            s.edit(s.reads(run), **read)
        if judged:
            s.edit(s.verdicts(run), **judged)

    _does_not_fit.__doc__ = _doc
    act(
        SCRIPTED,
        name=_name,
        correctness_class=f"pass_{_found}",
        planned_slots="slot_unmeasured",
        also=UNCOUNTED,
    )(_does_not_fit)


@act(SCRIPTED, conflicts="pass_against_its_evidence")
def two_passes_one_against_its_evidence(s: Story) -> None:
    """A trial passed twice and in every part; one of the readings saw a file that is too large."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    read = reading(run, oversize_count=1)
    s.add(read, judgement(s.spec, run, read))
    s.edit(s.verdicts(run), tests="pass", worktree="pass", answer="pass")


@act(
    SCRIPTED,
    conflicts="verdicts_disagree",
    correctness_class="class_unknown",
    exact_output="lacks_exact_tree",
    also="the second pass does not say what it looked at",
)
def two_passes_one_of_nothing(s: Story) -> None:
    """A trial passed twice; one of the verdicts does not say how deep it looked."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    read = reading(run, objects_verified=3)
    s.add(read, judgement(s.spec, run, read, depth=None))


@act(AGENT, planned_slots="slot_unmeasured")
def read_at_last_and_not_tested(s: Story) -> None:
    """The store was in use at first; read at last, its tests could not be run for want of an instrument."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    s.edit(
        s.verdicts(run),
        verdict="unmeasured",
        reason="tests_instrument_missing",
        tests="unmeasured",
        depth=None,
    )
    s.add(reading(run, outcome="unmeasured", exit_status=77, reason="not_quiescent", manifest_sha256=None))


@act(MIXED, correctness_class="classes_differ")
@mixed
def mixed_export(s: Story) -> None:
    """Export on one side of a scenario that is compared beside others."""
    runs = s.runs(subject="oak_installed", **COMPARED)
    s.edit(s.reads(*runs), reader="oak_export_reader", backend="export", relation="subject_export")
    s.edit(s.reads(*s.runs(subject="oak_installed")), reader="oak_export_reader", backend="export")


@act(
    respec(TWO_TRANSPORTS, campaign="te"),
    correctness_class="classes_differ reader_changes pass_without_reader",
    planned_slots="slot_unmeasured",
    also=UNCOUNTED,
)
def export_under_one_condition(s: Story) -> None:
    """Export under one transport, and under it one pass that no reader stands behind."""
    runs = s.runs(subject="oak_installed", condition=SCRIPT_CONDITIONS[1])
    s.edit(s.reads(*runs), reader="oak_export_reader", backend="export", relation="subject_export")
    run = s.runs("pass", subject="oak_installed", condition=SCRIPT_CONDITIONS[1], reached_head=True)[4]
    s.edit(s.verdicts(run), reader_event_id=None)


# Copies, controls, claims


@act(
    SCRIPTED,
    sample_size="copied_trial",
    order="start_equal order_differs",
    also="the start time is the copied one",
)
def copied_log_and_start(s: Story) -> None:
    """A copy with metrics, row and end of its own still has the log and the start of the first."""
    bad = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    good = s.runs("pass", subject="oak_installed", reached_head=True)[4]
    assert good.ended_at_ns is not None
    s.edit(
        s.trial(bad),
        evidence_sha256=good.evidence_sha256,
        started_at_ns=good.started_at_ns,
        ended_at_ns=good.ended_at_ns + 5,
    )


@act(ANSWERED, exact_output="control_absent control_wrong")
def controls_run_between_the_answers(s: Story) -> None:
    """The negative controls were run when half of the answers were in."""
    passes = sorted(e.recorded_at_ns for e in s.events if isinstance(e, OracleJudged) and e.verdict == "pass")
    middle = passes[len(passes) // 2]
    s.edit(lambda e: isinstance(e, OracleJudged) and e.control is not None, recorded_at_ns=middle)


def git_fails_often(spec: Spec, slot: Slot, attempt: int, number: int) -> str:
    """Git fails every other time, Oak never."""
    return "failed" if slot.subject.startswith("git") and slot.repetition % 2 else "passed"


RATE = respec(
    AGENT,
    campaign="ra",
    claims=(Claim("success_rate_permille", "oak_installed", "git", "higher", 200),),
)


@act(RATE, outcome=git_fails_often, planned_slots="slots_missing")
def rate_with_a_trial_missing(s: Story) -> None:
    """A difference of rates is claimed and shown, and one of the trials is not there."""
    s.drop(s.of(s.runs("fail", subject="git")[0]))


def exactly(s: Story, oak: int, again: int) -> None:
    """Give every run the wall time of its subject, in thousandths of Git's."""
    for subject, wall in (("git", 1000), ("oak_installed", oak), ("git_again", again)):
        s.edit(s.trial(*s.runs(subject=subject)), metrics={"wall_ns": wall, "store_bytes": 5})


@act(AGENT, noise_floor="effect_within_noise")
def claim_equal_to_the_noise(s: Story) -> None:
    """What is claimed is exactly what Git differs from itself."""
    exactly(s, 900, 1100)


@act(SCRIPTED, conflicts="claim_with_timeout")
def record_claims_success_beside_a_timeout(s: Story) -> None:
    """The harness's row says success and timeout; the oracle's word is fail."""
    run = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.edit(s.trial(run), status="timeout", exit_code=None, claimed_success=True)


@act(SCRIPTED, conflicts="claim_with_error")
def record_claims_success_beside_an_error(s: Story) -> None:
    """The harness's row says success and error; the oracle says fail, and a rule is on timeouts alone."""
    run = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.edit(s.trial(run), status="error", exit_code=1, claimed_success=True)
    s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "fail", "pass_with_timeout"))


@act(
    SCRIPTED,
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
    also="what is no agent failure leaves its planned slot without a measured outcome",
)
def failure_after_a_look_at_nothing(s: Story) -> None:
    """A failure before HEAD is booked, and the reader ended without an answer and without a reason."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(run))
    s.edit(s.reads(run), outcome="unmeasured", exit_status=77, reason=None)


@act(
    SCRIPTED,
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
    also="what is no agent failure leaves its planned slot without a measured outcome",
)
def judged_failure_that_never_ended(s: Story) -> None:
    """The machine was rebooted during the run; its reader and its oracle saw no HEAD, of course."""
    s.edit(s.trial(s.runs(subject="oak_installed", reached_head=False)[0]), ended_at_ns=None, exit_code=None)


@act(SCRIPTED, planned_slots="slot_unmeasured")
def seen_failure_that_never_ended(s: Story) -> None:
    """The machine was rebooted during the run, and its reader saw no HEAD; nobody says what to make of it."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(run))
    s.edit(s.trial(run), ended_at_ns=None, exit_code=None, reached_head=None)


@act(SCRIPTED, planned_slots="slot_twice")
def both_failures_run_again_in_silence(s: Story) -> None:
    """A block in which both failed is run again, and no replacement is named."""
    for subject in ("git", "oak_installed"):
        old = s.runs("fail", subject=subject, repetition=12)[0]
        s.add(*passed(s.spec, s.slot(old), s.end_ns, 7))
    s.late()


@act(
    AGENT,
    sample_size="copied_trial",
    planned_slots="other_lane",
    also="a run of another lane is off the plan",
)
def one_transcript_on_two_lanes(s: Story) -> None:
    """Two trials keep one transcript, and one of them is said to be of another lane."""
    a, b = s.runs("pass", subject="oak_installed", reached_head=True)[6:8]
    s.edit(s.trial(b), evidence_sha256=a.evidence_sha256, lane="workflow")


@act(ANSWERED, exact_output="control_absent control_wrong")
def controls_run_on_a_trial(s: Story) -> None:
    """Two verdicts on real trials are called negative controls."""
    runs = s.runs("fail", subject="git")
    for word, run in zip(("absent", "wrong"), runs, strict=False):
        s.edit(kind(OracleJudged, control=word), trial=run.trial, subject="git")


@act(TWO_SCENARIOS, correctness_class="classes_differ reader_changes")
def export_in_one_scenario(s: Story) -> None:
    """Export on one side of one of two scenarios."""
    runs = s.runs(subject="oak_installed", scenario=WIDE.scenario)
    s.edit(s.reads(*runs), reader="oak_export_reader", backend="export", relation="subject_export")


@act(WITH_DIAGNOSTIC, order="order_differs")
def subjects_of_a_block_swapped(s: Story) -> None:
    """The declared order is one of the whole campaign; two runs of a block changed places."""
    a, b = (s.runs(subject=n, scenario=WIDE.scenario, repetition=2)[0] for n in ("git", "oak_installed"))
    s.edit(s.trial(a), started_at_ns=b.started_at_ns, ended_at_ns=b.ended_at_ns)
    s.edit(s.trial(b), started_at_ns=a.started_at_ns, ended_at_ns=a.ended_at_ns)


for _side in ("git", "git_again"):
    for _n in range(3):

        def _rebuilt(s: Story, side: str = _side, n: int = _n) -> None:
            s.drop(kind(SubjectIdentified))
            s.edit(s.trial(*s.runs(subject=side)[15:]), subject_binary_sha256=sha("rebuilt", n))

        _rebuilt.__doc__ = f"{_side} was rebuilt half way, so that it is itself again in part."
        act(
            AGENT,
            name=f"{_side}_rebuilt_{_n}",
            noise_floor="null_is_not_itself",
            identity="binary_changes",
            also="a binary changed under its name",
        )(_rebuilt)


# Everything said twice, and otherwise


@act(
    EVERYTHING_ASKED,
    planned_slots="plan_ambiguous",
    exact_output="lacks_tests lacks_worktree",
    study_criteria="attested_early",
    also="the plan lists everything twice, and what it asks for is neither shown nor attested in time",
)
def everything_planned_twice(s: Story) -> None:
    """The plan lists its scenario a second time and asks for less, and its criteria a second time."""
    asked = s.spec.scenarios[0]
    less = replace(
        asked,
        oracle_version=9,
        fixture_version=9,
        contract_sha256="f" * 64,
        evidence="committed_payload",
        tests=False,
        worktree=False,
        diagnostic=True,
    )
    s.replan(scenarios=(asked, less), criteria=s.spec.criteria * 2)
    s.edit(kind(OracleJudged, depth="committed_tree"), depth="committed_payload")
    s.edit(kind(OracleJudged), tests=None, worktree=None)
    last = max(e.started_at_ns for e in s.runs() if e.started_at_ns)
    s.edit(kind(StudyCriteriaAttested), recorded_at_ns=last)


@act(
    SCRIPTED,
    outcome=always,
    planned_slots="other_lane off_plan_scenario slots_missing",
    sample_size="identity_in_two_cells too_few_recorded",
    identity="verdict_other_scenario",
    condition_coverage="hole",
    also="whichever record of a run counts, half of the runs are in one cell and half in the other",
)
def every_run_recorded_in_two_cells(s: Story) -> None:
    """Each run has a second record, of a timed unit, that names another cell in every respect."""
    who = s.runs(subject="oak_installed")[0]
    for run in s.runs():
        s.add(
            replace(
                run,
                operation="commit",
                lane="core",
                scenario=SYNC.scenario,
                scenario_version=2,
                subject="oak_main",
                condition=SCRIPT_CONDITIONS[1],
                repetition=(run.repetition or 0) + 100,
                subject_binary_sha256=who.subject_binary_sha256,
                subject_version=who.subject_version,
                subject_source_sha256=who.subject_source_sha256,
            )
        )


@act(
    OPERATIONS,
    conflicts="pass_with_timeout pass_with_unlaunched pass_with_harness_failure",
    failures="harness_failure_as_agent_failure",
    planned_slots="slot_harness_failure slot_unlaunched",
    sample_size="too_few_measured",
    also="each of these slots is left without a measured outcome",
)
def worst_of_the_units(s: Story) -> None:
    """The timed units of some runs ended in different ways, and the worst of them is that of the run."""

    def units(run: TrialRecorded, *units: dict[str, Any]) -> None:
        for unit, facts in zip((None, "commit", "status"), units, strict=False):
            s.edit(kind(TrialRecorded, trial=run.trial, operation=unit), **facts)

    for subject, run in zip(
        ("oak_installed", "git"),
        (s.runs("fail", subject=n, operation=None, reached_head=True)[0] for n in ("oak_installed", "git")),
        strict=True,
    ):
        code = {"exit_code": 127} if subject == "git" else {"status_code": "http_529"}
        lesser = {"exit_code": 1} if subject == "git" else {"status_code": "agent_error"}
        units(run, {"status_code": "gave_up"}, {"status": "error", **code}, {"status": "error", **lesser})
    passes = iter(s.runs("pass", subject="oak_installed", operation=None, reached_head=True))
    for worse, worst in (
        ("error", "timeout"),
        ("timeout", "unlaunched"),
        ("unlaunched", "harness_failure"),
    ):
        units(next(passes), {"status": worse}, {"status": worst})
        units(next(passes), {"status": worst}, {"status": worse})


@act(
    SCRIPTED,
    correctness_class="pass_reader_not_recorded class_unknown",
    exact_output="lacks_exact_tree",
    planned_slots="slot_unmeasured",
    also="what no reading stands behind does not count, and an answer is no tree",
)
def passes_on_other_things(s: Story) -> None:
    """One pass names the record of its run as the reading, another rests on an answer instead of a tree."""
    a, b = s.runs("pass", subject="oak_installed", reached_head=True)[2:4]
    s.edit(s.verdicts(a), reader_event_id=event_id(a))
    s.edit(s.verdicts(b), depth=None, answer="pass")


@act(
    SCRIPTED,
    planned_slots="slot_unmeasured",
    sample_size="too_few_measured",
    correctness_class="pass_other_subject",
    also="what is not measured leaves its slot open, and a verdict on another subject does not count",
)
def unmeasured_for_reasons_of_both_sides(s: Story) -> None:
    """Runs were not measured for reasons of the harness and of the subject's, at one look or at two."""

    def not_judged(run: TrialRecorded, *reasons: str | None, **facts: Any) -> None:
        read = next(e for e in s.events if s.reads(run)(e))
        s.drop(s.verdicts(run))
        words = {"verdict": "unmeasured", "depth": None, "manifest_sha256": None, **facts}
        s.add(*(judgement(s.spec, run, read, reason=r, **words) for r in reasons))  # type: ignore[arg-type]

    def not_read(run: TrialRecorded, *reasons: str) -> None:
        s.drop(s.verdicts(run))
        s.drop(s.reads(run))
        s.add(
            *(
                reading(run, outcome="unmeasured", exit_status=77, reason=r, manifest_sha256=None)
                for r in reasons
            )
        )

    passes = iter(s.runs("pass", subject="oak_installed", reached_head=True))
    # A reason that nobody knows is the subject's.
    not_judged(next(passes), "cosmic_rays")
    not_judged(next(passes), "not_quiescent")
    not_judged(next(passes), "deadline", "not_quiescent")
    not_read(next(passes), "deadline", "not_quiescent")
    not_read(next(passes), "cosmic_rays", "not_quiescent")
    not_judged(next(passes))
    # A verdict without a reason has that of its reading.
    run = next(passes)
    s.edit(s.reads(run), outcome="unmeasured", exit_status=77, reason="deadline", manifest_sha256=None)
    not_judged(run, None)
    # What is said of another subject is said of nobody.
    not_judged(next(passes), "deadline", subject="git")
    s.edit(s.verdicts(next(passes)), subject="git")
