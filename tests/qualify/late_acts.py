"""Late acts: slots with two answers, copies among timed units, claims without a value."""

from __future__ import annotations

from typing import Any

from campaigns import (
    CRITERIA,
    SCRIPT_CONDITIONS,
    SECOND,
    Spec,
    harness_failure,
    kind,
    passed,
    replaced,
    respec,
    sha,
)
from more_acts import TWO_SCENARIOS
from mutations import (
    AGENT,
    ANSWER,
    ANSWERED,
    CORE,
    OBSERVED,
    OPERATIONS,
    SCRIPTED,
    SYNC,
    WIDE,
    Story,
    act,
    always,
    each_on_its_own_machine,
    every_rule,
    invalidated,
    replace,
)

from ledger.campaign import Slot
from ledger.events import (
    CampaignDeclared,
    Claim,
    OracleJudged,
    SubjectIdentified,
    TrialRecorded,
)

# Replacements and slots


@act(OBSERVED, planned_slots="slot_twice")
def replacement_overtaken_in_silence(s: Story) -> None:
    """The replacement failed; a run that nobody named had passed in the meantime, and speaks for the slot."""
    old, new = s.runs(subject="git", repetition=9)
    s.edit(s.verdicts(new), verdict="fail", reason="content_differs")
    assert new.started_at_ns is not None
    s.add(*passed(s.spec, s.slot(old), new.started_at_ns - 5 * SECOND, 7))
    s.late()


@act(SCRIPTED, planned_slots="replaced_twice replaces_two replacement_elsewhere slot_twice")
def replacements_in_a_tangle(s: Story) -> None:
    """A failed replacement is tied to another slot too, and the attempt gets a second chain."""
    old, new = s.runs(subject="oak_installed", repetition=5)
    other = s.runs(subject="git", repetition=3)[1]
    s.edit(s.verdicts(new), verdict="fail", reason="content_differs")
    second = harness_failure(s.spec, s.slot(old), s.end_ns, 7)[0]
    third = passed(s.spec, s.slot(old), s.end_ns + 100 * SECOND, 8)
    assert isinstance(second, TrialRecorded) and isinstance(third[0], TrialRecorded)
    s.add(second, *third, replaced(other, new), replaced(old, second), replaced(second, third[0]))
    s.late()


@act(SCRIPTED, planned_slots="slot_twice")
def run_beside_one_that_was_replaced(s: Story) -> None:
    """Beside an attempt that nobody could read another was run, which nobody names and which passed."""
    old = s.runs(subject="git", repetition=9)[0]
    assert old.started_at_ns is not None
    s.add(*passed(s.spec, s.slot(old), old.started_at_ns + SECOND, 7))
    s.late()


@act(SCRIPTED, planned_slots="off_plan_repetition slots_missing")
def run_without_a_repetition(s: Story) -> None:
    """One run does not say which planned trial it is, in a cell where the others do."""
    s.edit(s.trial(s.runs("pass", subject="git")[4]), repetition=None)


@act(TWO_SCENARIOS, planned_slots="off_plan_repetition")
def one_run_too_many_and_early(s: Story) -> None:
    """Before all others one run was made that would be the thirty-second of its cell."""
    run = s.runs("pass", subject="git", scenario=SYNC.scenario)[0]
    s.add(*passed(s.spec, s.slot(run, 31), s.spec.start_ns + SECOND))


@act(OBSERVED, planned_slots="slots_missing slot_twice")
def last_slot_answered_twice(s: Story) -> None:
    """Of five thousand planned trials a few were run, and the last of them twice."""
    run = s.runs("pass", subject="git")[4]
    s.replan(trials_per_cell=5000)
    for n in (7, 8):
        s.add(*passed(s.spec, s.slot(run, 4999), s.end_ns, n))
    s.late()


@act(
    SCRIPTED,
    failures="failure_invalidated",
    planned_slots="slot_invalidated",
    also="an invalidated trial leaves its planned slot without a measured outcome",
)
def failure_invalidated_by_two(s: Story) -> None:
    """Two people call one failed run invalid."""
    run = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.add(invalidated(s, run), invalidated(s, run, "another operator"))


# Copies


@act(
    OPERATIONS,
    sample_size="copied_trial iterations",
    order="start_equal order_differs",
    also="the start time is the copied one",
)
def copies_among_timed_units(s: Story) -> None:
    """Two runs share the record of the task, and two share those of every timed unit."""
    a, b, c, d = s.runs("pass", subject="oak_installed", operation=None, reached_head=True)[3:7]
    mark: dict[str, Any] = {
        "row_sha256": sha("one row"),
        "evidence_sha256": sha("one log"),
        "process_key": "pid-1",
    }
    s.edit(lambda e: isinstance(e, TrialRecorded) and (e is a or e is b), **mark)
    whole: dict[str, Any] = {
        "row_sha256": sha("one row for all"),
        "evidence_sha256": sha("one log for all"),
        "process_key": "pid-for-all",
        "started_at_ns": c.started_at_ns,
        "ended_at_ns": c.ended_at_ns,
    }
    s.edit(s.trial(c, d), **whole)


# Conditions


@act(
    OBSERVED,
    environment="environments_differ environment_unknown",
    condition_coverage="hole",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    order="order_not_shown",
    also="each planned cell of the other machine is empty, and no block has both subjects",
)
def one_side_on_an_unknown_machine(s: Story) -> None:
    """Git was measured on one machine and nobody knows where Oak was; the plan says so."""
    each_on_its_own_machine(s, None)


@act(
    CORE,
    planned_slots="other_lane",
    condition_coverage="condition_unknown",
    also="what an agent did needs a known agent, model and instruction",
)
def core_plan_for_agent_runs(s: Story) -> None:
    """The plan says core, so that fewer rules bind, and agents were run."""
    s.edit(s.trial(*s.runs(subject="oak_installed")[:4]), lane="agent")


@act(
    CORE,
    also="nothing to look at is a violation of every rule that binds the core lane",
    notes={rule: {"no_trials"} for rule in ("sample_size", "environment", "order")},
    **{
        **{
            k: v
            for k, v in every_rule("no_trials").items()
            if k not in ("sample_size", "environment", "order")
        },
        "planned_slots": "no_trials slots_missing",
        "condition_coverage": "no_trials hole",
        "study_criteria": "no_trials not_attested",
    },
)
def empty_core_campaign(s: Story) -> None:
    """A plan for the core lane and nothing else."""
    s.drop(lambda e: not isinstance(e, CampaignDeclared))


# Identity


@act(SCRIPTED, identity="binary_unknown version_unknown source_unknown dirty_unknown")
def known_in_part_in_many_ways(s: Story) -> None:
    """Four runs of Oak each lack another part of what ran, and nobody identified the subject."""
    s.drop(kind(SubjectIdentified))
    names = ("subject_binary_sha256", "subject_version", "subject_source_sha256", "subject_dirty")
    for run, known in zip(
        s.runs("pass", subject="oak_installed")[2:], ("0010", "0110", "1001", "0001"), strict=False
    ):
        lacking: dict[str, Any] = {n: None for n, word in zip(names, known, strict=True) if word == "0"}
        s.edit(s.trial(run), **lacking)


@act(SCRIPTED, identity="binary_unknown dirty_unknown")
def one_binary_and_one_state_unknown(s: Story) -> None:
    """One run, which timed out, does not say its binary, and one not whether its source was clean."""
    s.drop(kind(SubjectIdentified))
    run = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.edit(s.trial(run), status="timeout", exit_code=None, subject_binary_sha256=None)
    s.edit(s.trial(s.runs("pass", subject="git")[2]), subject_dirty=None)


# Order


@act(OBSERVED, order="start_equal")
def equal_starts_by_observation(s: Story) -> None:
    """Nobody declared an order, and the harness writes down one start time for both runs of a block."""
    a = s.runs("pass", subject="git", repetition=2)[0]
    b = s.runs("pass", subject="oak_installed", repetition=2)[0]
    s.edit(s.trial(b), started_at_ns=a.started_at_ns, ended_at_ns=(a.ended_at_ns or 0) + 7)


@act(SCRIPTED, preregistration="declared_late", notes={"order": {"order_declared_late"}})
def plan_with_a_false_clock_half_way(s: Story) -> None:
    """The declaration carries an early time, and the ledger took it in when half of the trials were there."""
    gone = s.drop(kind(CampaignDeclared))
    middle = len(s.events) // 2
    s.events[middle:middle] = gone


# Controls

TWO_ANSWERS = respec(
    ANSWERED, campaign="na", scenarios=(ANSWER, replace(ANSWER, scenario="blame_archaeology"))
)


@act(TWO_ANSWERS, exact_output="control_absent control_wrong")
def controls_of_another_scenario(s: Story) -> None:
    """Two scenarios share a contract; the negative controls were run for one of them."""
    s.drop(lambda e: isinstance(e, OracleJudged) and e.control is not None and e.scenario != ANSWER.scenario)


# Claims


@act(AGENT, noise_floor="metric_unmeasured")
def hardly_anything_claimed_on_a_missing_metric(s: Story) -> None:
    """A claim of next to nothing, on a metric that Oak's runs do not have."""
    s.replan(claims=(replace(s.spec.claims[0], size_permille=1),))
    s.edit(s.trial(*s.runs(subject="oak_installed")), metrics={"store_bytes": 7})


@act(AGENT, noise_floor="effect_smaller_than_claimed effect_within_noise")
def smaller_store_claimed(s: Story) -> None:
    """The time is claimed to be lower, which it is, and the store smaller, which it is not."""
    s.replan(claims=(*s.spec.claims, replace(s.spec.claims[0], metric="store_bytes", size_permille=50)))


RATES = Spec(
    "rr",
    "workflow",
    AGENT.subjects,
    (WIDE, SYNC),
    SCRIPT_CONDITIONS[:1],
    31,
    (Claim("success_rate_permille", "oak_installed", "git", "higher", 200),),
    CRITERIA,
    None,
    preregistered=False,
)


def git_hardly_ever(spec: Spec, slot: Slot, attempt: int, number: int) -> str:
    """Git passes once in one scenario, and never in the other; Oak always."""
    if not slot.subject.startswith("git") or (slot.scenario == SYNC.scenario and slot.repetition == 4):
        return "passed"
    return "failed"


@act(RATES, outcome=git_hardly_ever, noise_floor="metric_unmeasured noise_unmeasured effect_within_noise")
def rate_against_one_that_never_passes(s: Story) -> None:
    """A rate is claimed against one of zero, and against one of a single pass."""


@act(
    RATES,
    outcome=always,
    noise_floor="claim_without_subjects metric_unmeasured claim_without_null effect_smaller_than_claimed "
    "effect_within_noise",
)
def rates_of_unplanned_subjects(s: Story) -> None:
    """Rates are claimed against something that was not measured, and of something that was not."""
    claim = s.spec.claims[0]
    s.replan(
        claims=(
            claim,
            replace(claim, baseline="git_main"),
            replace(claim, subject="oak_main"),
        )
    )


TWINS = respec(
    RATES,
    campaign="twin",
    claims=(Claim("wall_ns", "oak_installed", "git", "lower", 100),),
)
