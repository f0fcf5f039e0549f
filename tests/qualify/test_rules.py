"""Each rule refuses its violations, for its own reason, and honest campaigns pass.

Every variant is one dishonest or careless act on an honest campaign. All variants are put into one ledger
under their own campaign names and evaluated at once. A variant names the rules that must be among the
reasons, each with the codes it must give; other rules must stay silent, because a rule that fires for
another's violation hides what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import campaigns as c
import pytest
from msgspec.structs import replace as change

from ledger.events import (
    CampaignDeclared,
    Condition,
    ConflictRuleRecorded,
    Criterion,
    OracleJudged,
    Order,
    ReaderInvoked,
    ScenarioPlan,
    StudyCriteriaAttested,
    SubjectIdentified,
    SubjectPlan,
    TrialInvalidated,
    TrialRecorded,
    TrialReplaced,
    event_id,
)

#: Two subjects, one scenario, 32 trials: dropping one leaves more than thirty.
PAIR = replace(c.SMALL, trials_per_cell=32)
#: The same on the agent lane.
AGENTS = replace(PAIR, lane="agent", conditions=c.AGENT_CONDITIONS[:1])
#: With a null subject and a claim.
CLAIMING = replace(PAIR, subjects=c.SUBJECTS, claims=c.CLAIMS)
#: With an exact scenario, one with tests, and a diagnostic one.
SEVERAL = replace(PAIR, scenarios=c.SCENARIOS)
OBSERVED = replace(PAIR, order=None, preregistered=False)

Make = Callable[[c.Spec], list]
VARIANTS: dict[str, tuple[c.Spec, Make, dict[str, set[str]]]] = {}


def add(name: str, spec: c.Spec, make: Make, **expected: str) -> None:
    """Register a variant: rule id -> the codes that it must give, joined by spaces."""
    assert name not in VARIANTS
    VARIANTS[name] = (spec, make, {k: set(v.split()) for k, v in expected.items()})


def passing(spec, slot, attempt, number):
    """Every trial passes: for variants in which nothing else may happen."""
    return "passed"


def ok(spec):
    return c.honest(spec, passing)


@cache
def once(outcome):
    """Every trial passes, but the fifth one's first attempt comes to something else."""
    return lambda spec, slot, attempt, number: outcome if number == 5 and attempt == 0 else "passed"


def edited(where, limit=None, base=ok, **changes):
    return lambda spec: c.seal(c.edit(base(spec), where, limit, **changes))


def dropped(where, limit=None, base=ok):
    return lambda spec: c.seal(c.drop(base(spec), where, limit))


def also(*makers, base=ok):
    """Add the events that `makers` make of the honest ones."""

    def make(spec):
        events = base(spec)
        return c.seal([*events, *(e for maker in makers for e in maker(spec, events))])

    return make


def a_trial(events, number=7, **facts):
    pick = c.kind(TrialRecorded, **facts)
    return [e for e in events if pick(e)][number]


def evidence_of(events, run):
    return (
        next(e for e in events if c.kind(ReaderInvoked, trial=run.trial)(e)),
        next(e for e in events if c.kind(OracleJudged, trial=run.trial)(e)),
    )


def one_trial_edited(outcome="passed", **changes):
    """Change the fifth slot's first attempt, whatever it came to."""

    def make(spec):
        events = c.honest(spec, once(outcome))
        run = a_trial(events, 5)
        return c.seal(c.edit(events, lambda e: e == run, **changes))

    return make


TRIAL, READER, VERDICT = c.kind(TrialRecorded), c.kind(ReaderInvoked), c.kind(OracleJudged)
OAK = c.kind(TrialRecorded, subject="oak_installed")

# ---- honest

add("honest agent", c.AGENT, c.honest)
add("honest workflow", c.WORKFLOW, c.honest)
add("honest small", c.SMALL, c.honest)
add("honest without failures", PAIR, ok)
add("honest campaign extent", replace(PAIR, order=Order("blocked-sha256/1", "7", "campaign")), c.honest)
add("honest observed order", OBSERVED, c.honest)
add(
    "honest observed order of four",
    replace(OBSERVED, subjects=(*c.SUBJECTS, SubjectPlan("oak_main"))),
    c.honest,
)
add(
    "honest replacement of a replacement",
    PAIR,
    lambda s: c.honest(s, lambda p, t, a, n: "harness_failure" if n == 5 and a < 3 else "passed"),
)
add("honest unlaunched", PAIR, lambda s: c.honest(s, once("unlaunched")))
add("honest unmeasured by the subject, replaced", PAIR, lambda s: c.honest(s, once("unmeasured")))
add(
    "honest failures before HEAD",
    PAIR,
    lambda s: c.honest(s, lambda p, t, a, n: "failed_before_head" if n % 3 else "passed"),
)
add(
    "honest without a verdict on what has no HEAD",
    PAIR,
    lambda s: c.seal(
        c.drop(c.honest(s, once("failed_before_head")), c.kind(OracleJudged, reason="no_committed_head"))
    ),
)
add(
    "honest without a reader on what has no HEAD",
    PAIR,
    lambda s: c.seal(
        c.drop(
            c.honest(s, once("failed_before_head")),
            lambda e: getattr(e, "reason", None) == "no_committed_head",
        )
    ),
)
add("honest without repetitions", PAIR, edited(TRIAL, repetition=None))
add(
    "honest without repetitions, replaced",
    PAIR,
    edited(TRIAL, repetition=None, base=lambda s: c.honest(s, once("harness_failure"))),
)
add(
    "honest installed release without source",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.edit(ok(s), TRIAL, subject_source_sha256=None, subject_dirty=None),
            c.kind(SubjectIdentified),
            source_sha256=None,
            dirty=None,
        )
    ),
)
add(
    "honest identity said once",
    PAIR,
    edited(
        TRIAL,
        subject_binary_sha256=None,
        subject_version=None,
        subject_source_sha256=None,
        subject_dirty=None,
    ),
)
add(
    "honest retry of a busy machine",
    PAIR,
    also(
        lambda s, e: [
            change(
                r,
                outcome="unmeasured",
                exit_status=77,
                reason="deadline",
                manifest_sha256=None,
                entries=None,
                relation="independent",
            )
            for r in evidence_of(e, a_trial(e))[:1]
        ]
    ),
)
add(
    "honest conflict decided before",
    PAIR,
    lambda s: c.seal([rule(s, "fail"), *c.edit(ok(s), TRIAL, 1, status="timeout")]),
)
add(
    "honest pass with timeout decided before",
    PAIR,
    lambda s: c.seal([rule(s, "pass"), *c.edit(ok(s), TRIAL, 1, status="timeout")]),
)
add(
    "honest conflict decided against it after",
    PAIR,
    lambda s: c.seal([*c.edit(ok(s), TRIAL, 1, status="timeout"), rule(s, "fail", late=True)]),
)
add(
    "honest core lane needs no order, number or environment",
    replace(
        PAIR,
        lane="core",
        trials_per_cell=2,
        order=None,
        preregistered=False,
        conditions=(Condition(profile="smoke"),),
    ),
    edited(TRIAL, started_at_ns=None),
)
add(
    "honest export on both sides",
    PAIR,
    lambda s: c.seal(
        c.edit(
            ok(s),
            READER,
            backend="export",
            reader="oak_export_reader",
            relation="subject_export",
            reader_version="1",
            code_sha256=c.sha("e"),
            vcs="oak",
            codec_sha256=None,
        )
    ),
)
add("honest operations of one trial", PAIR, lambda s: c.seal(two_operations(s)))
add(
    "honest two declarations of the same content",
    PAIR,
    lambda s: c.seal([change(ok(s)[0], recorded_at_ns=s.start_ns + 1), *ok(s)]),
)
add(
    "honest answers after their controls",
    replace(
        PAIR,
        scenarios=(
            ScenarioPlan("history_archaeology", 2, 2, 1, c.sha("contract", "history"), evidence="answer"),
        ),
    ),
    lambda s: c.seal(answers(s, ("absent", "wrong"))),
)


def rule(spec, decision, conflict="pass_with_timeout", late=False):
    return ConflictRuleRecorded(
        **c.envelope(spec.start_ns + (10**15 if late else 1)),
        campaign=spec.campaign,
        conflict=conflict,
        decision=decision,
        who="operator",
        why="limits are soft",
    )


def two_operations(spec):
    for e in ok(spec):
        yield e
        if TRIAL(e):
            yield change(e, operation="commit", ended_at_ns=e.ended_at_ns - 5)


def answers(spec, controls, answer="pass", when=0, scenario_version=2, verdict="fail"):
    events = c.edit(ok(spec), VERDICT, answer=answer, depth=None, tests=None, worktree=None)
    judged = c.first(events, VERDICT)
    for name in controls:
        yield change(
            judged,
            control=name,
            trial=None,
            subject=None,
            verdict=verdict,
            reason="answer_wrong",
            reader_event_id=None,
            manifest_sha256=None,
            answer="fail",
            recorded_at_ns=spec.start_ns + 1 + when,
            scenario_version=scenario_version,
        )
    yield from events


# ---- rule 1

add(
    "one trial dropped",
    PAIR,
    lambda s: c.seal(c.drop(ok(s), c.of_trial(a_trial(ok(s))))),
    planned_slots="slots_missing",
)
add(
    "failures dropped",
    PAIR,
    lambda s: c.seal(
        c.drop(c.honest(s, once("failed")), c.of_trial(a_trial(c.honest(s, once("failed")), 5)))
    ),
    planned_slots="slots_missing",
)
add(
    "verdicts of dropped trials forgotten",
    PAIR,
    lambda s: c.seal(c.drop(ok(s), lambda e: e == a_trial(ok(s)))),
    planned_slots="slots_missing evidence_without_trial",
)
add(
    "harness failure not replaced",
    PAIR,
    lambda s: c.seal(
        c.drop(
            c.drop(c.honest(s, once("harness_failure")), c.kind(TrialReplaced)),
            c.of_trial(replacement_of(s, "harness_failure")),
        )
    ),
    planned_slots="slot_harness_failure",
)
add(
    "replacement not named",
    PAIR,
    dropped(c.kind(TrialReplaced), base=lambda s: c.honest(s, once("harness_failure"))),
    planned_slots="slot_twice slot_harness_failure",
)
add(
    "unmeasured left standing",
    PAIR,
    lambda s: c.seal(
        c.drop(
            c.drop(c.honest(s, once("unmeasured")), c.kind(TrialReplaced)),
            c.of_trial(replacement_of(s, "unmeasured")),
        )
    ),
    planned_slots="slot_unmeasured",
)
add(
    "unlaunched left standing",
    PAIR,
    lambda s: c.seal(
        c.drop(
            c.drop(c.honest(s, once("unlaunched")), c.kind(TrialReplaced)),
            c.of_trial(replacement_of(s, "unlaunched")),
        )
    ),
    planned_slots="slot_unlaunched",
)


def replacement_of(spec, outcome):
    events = c.honest(spec, once(outcome))
    name = c.first(events, c.kind(TrialReplaced)).replacement
    return c.first(events, c.kind(TrialRecorded, trial=name))


def again(spec, events, number=5, who="operator", name="again", start=10**13, **facts):
    """A later attempt at the slot of a trial, with its evidence, and the event that names it."""
    old = a_trial(events, number)
    read, verdict = evidence_of(events, old)
    at = events[-1].recorded_at_ns - 10**12
    new = change(
        old,
        trial=f"{old.trial}/{name}",
        started_at_ns=at,
        ended_at_ns=at + 10**10,
        recorded_at_ns=at + 10**10,
        process_key=f"{old.process_key}-{name}",
        evidence_sha256=c.sha(name, old.trial),
        row_sha256=c.sha("row", name, old.trial),
        **facts,
    )
    read = change(
        read, trial=new.trial, outcome="ok", exit_status=0, reason=None, manifest_sha256=c.sha("m"), ordinal=1
    )
    verdict = c.judgement(spec, new, read)
    return [new, read, verdict, c.replaced(old, new)]


add(
    "failure replaced until it passes",
    PAIR,
    also(again, base=lambda s: c.honest(s, once("failed"))),
    planned_slots="measured_attempt_replaced",
)
add(
    "failure before HEAD replaced",
    PAIR,
    also(
        lambda s, e: again(s, e, reached_head=True, status="completed"),
        base=lambda s: c.honest(s, once("failed_before_head")),
    ),
    planned_slots="measured_attempt_replaced",
)
add("pass replaced", PAIR, also(again), planned_slots="measured_attempt_replaced")
add(
    "failure run again without a word",
    PAIR,
    also(lambda s, e: again(s, e)[:3], base=lambda s: c.honest(s, once("failed"))),
    planned_slots="slot_twice",
)
add("pass invalidated", PAIR, also(lambda s, e: [invalid(s, a_trial(e))]), planned_slots="slot_invalidated")
add(
    "never declared",
    PAIR,
    lambda s: c.seal(c.drop(ok(s), c.kind(CampaignDeclared))),
    planned_slots="not_declared",
    sample_size="not_declared too_few_measured",
    condition_coverage="not_declared",
    environment="not_declared",
    order="not_declared",
    identity="not_declared",
    correctness_class="not_declared",
    failures="not_declared",
    exact_output="not_declared",
    conflicts="not_declared",
    noise_floor="not_declared",
    preregistration="not_declared",
    study_criteria="not_declared",
)
add(
    "no trials",
    PAIR,
    lambda s: c.seal(ok(s)[:3]),
    planned_slots="no_trials slots_missing",
    sample_size="no_trials too_few_recorded",
    condition_coverage="no_trials hole",
    environment="no_trials",
    order="no_trials order_not_followed",
    identity="no_trials",
    correctness_class="no_trials",
    failures="no_trials",
    exact_output="no_trials",
    conflicts="no_trials",
    noise_floor="no_trials",
    preregistration="no_trials",
    study_criteria="no_trials not_attested",
)
add(
    "declared twice with other content",
    PAIR,
    lambda s: c.seal([ok(s)[0], change(ok(s)[0], order=None, recorded_at_ns=s.start_ns + 1), *ok(s)[1:]]),
    planned_slots="declared_differently",
)
add("one subject", replace(PAIR, subjects=c.SUBJECTS[:1]), ok, planned_slots="no_comparison")
add(
    "one subject and its null",
    replace(PAIR, subjects=(c.SUBJECTS[0], c.SUBJECTS[2])),
    ok,
    planned_slots="no_comparison",
)
add(
    "all scenarios diagnostic",
    replace(PAIR, scenarios=(change(c.SCENARIOS[0], diagnostic=True),)),
    ok,
    planned_slots="all_diagnostic",
    correctness_class="nothing_measured",
)
add(
    "subject listed twice",
    replace(PAIR, subjects=(*c.SUBJECTS[:2], c.SUBJECTS[0])),
    ok,
    planned_slots="plan_ambiguous",
)
add("other lane than planned", PAIR, edited(TRIAL, 1, lane="core"), planned_slots="other_lane")
add(
    "scenario off the plan",
    PAIR,
    also(
        lambda s, e: [
            change(
                a_trial(e),
                scenario="undo_bad_commit",
                trial=f"{s.campaign}/extra",
                started_at_ns=s.start_ns + 5 * 10**12,
                ended_at_ns=s.start_ns + 5 * 10**12 + 1,
                process_key="x",
                evidence_sha256=None,
                row_sha256=None,
            )
        ]
    ),
    planned_slots="off_plan_scenario",
    condition_coverage="hole",
)
add(
    "more repetitions than planned",
    PAIR,
    also(lambda s, e: again(s, e, repetition=32)[:3]),
    planned_slots="off_plan_repetition",
)
add(
    "subject off the plan",
    PAIR,
    also(
        lambda s, e: [
            change(
                a_trial(e),
                subject="jj",
                trial=f"{s.campaign}/extra",
                started_at_ns=s.start_ns + 5 * 10**12,
                ended_at_ns=s.start_ns + 5 * 10**12 + 1,
                process_key="x",
                evidence_sha256=None,
                row_sha256=None,
            )
        ]
    ),
    planned_slots="off_plan_subject",
    condition_coverage="hole",
)
add(
    "replacement never recorded",
    PAIR,
    lambda s: c.seal(
        c.drop(c.honest(s, once("harness_failure")), c.of_trial(replacement_of(s, "harness_failure")))
    ),
    planned_slots="replacement_unknown slots_missing",
)
add(
    "replaced attempt never recorded",
    PAIR,
    lambda s: c.seal(
        c.drop(c.honest(s, once("harness_failure")), c.kind(TrialRecorded, status="harness_failure"))
    ),
    planned_slots="replaced_trial_unknown",
)
add(
    "replacement in another cell",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.honest(s, once("harness_failure")),
            c.kind(TrialReplaced),
            replacement=lambda e: a_trial(ok(s), 9).trial,
        )
    ),
    planned_slots="replacement_elsewhere slots_missing slot_twice",
    order="ANY",
)
add(
    "replacement ran before",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.honest(s, once("harness_failure")),
            lambda e: e == replacement_of(s, "harness_failure"),
            started_at_ns=s.start_ns + 70 * c.SECOND,
            ended_at_ns=s.start_ns + 71 * c.SECOND,
        )
    ),
    planned_slots="replacement_earlier",
)
add(
    "two replacements, the better one counts",
    PAIR,
    also(lambda s, e: second_replacement(s, e), base=lambda s: c.honest(s, once("harness_failure"))),
    planned_slots="replaced_twice slot_twice",
)
add(
    "replacements in a circle",
    PAIR,
    also(lambda s, e: [circle(e)], base=lambda s: c.honest(s, once("harness_failure"))),
    planned_slots="replacement_circle measured_attempt_replaced replacement_earlier slot_twice "
    "slot_harness_failure",
)
add(
    "replaced by itself",
    PAIR,
    also(lambda s, e: [change(c.replaced(a_trial(e), a_trial(e)))]),
    planned_slots="replacement_circle measured_attempt_replaced replacement_earlier",
)
add(
    "unknown trial invalidated",
    PAIR,
    also(lambda s, e: [change(invalid(s, a_trial(e)), trial="nobody")]),
    planned_slots="invalidated_trial_unknown",
)


def invalid(spec, run):
    return TrialInvalidated(
        **c.envelope(run.recorded_at_ns + 10**12),
        campaign=spec.campaign,
        trial=run.trial,
        who="operator",
        why="outlier",
    )


def second_replacement(spec, events):
    old = c.first(events, c.kind(TrialRecorded, status="harness_failure"))
    run = replacement_of(spec, "harness_failure")
    at = run.started_at_ns + 100 * c.SECOND
    run = change(
        run,
        trial=f"{run.trial}/second",
        started_at_ns=at,
        ended_at_ns=at + c.SECOND,
        process_key="second",
        evidence_sha256=c.sha("second"),
        row_sha256=c.sha("second row"),
    )
    read = c.reading(run)
    return [run, read, c.judgement(spec, run, read), c.replaced(old, run)]


def circle(events):
    named = c.first(events, c.kind(TrialReplaced))
    return change(named, trial=named.replacement, replacement=named.trial)


# ---- rule 2

add("twenty-nine trials", replace(PAIR, trials_per_cell=29), ok, sample_size="too_few_recorded")
add(
    "thirty planned, one dropped",
    replace(PAIR, trials_per_cell=30),
    lambda s: c.seal(c.drop(ok(s), c.of_trial(a_trial(ok(s))))),
    sample_size="too_few_recorded",
    planned_slots="slots_missing",
)
add(
    "thirty recorded, one unmeasured",
    replace(PAIR, trials_per_cell=30),
    lambda s: c.seal(
        c.drop(
            c.drop(c.honest(s, once("unmeasured")), c.kind(TrialReplaced)),
            c.of_trial(replacement_of(s, "unmeasured")),
        )
    ),
    sample_size="too_few_measured",
    planned_slots="slot_unmeasured",
)
add(
    "a trial recorded twice under its name",
    PAIR,
    also(lambda s, e: [change(a_trial(e), row_sha256=c.sha("other"))]),
    sample_size="identity_twice",
)
add(
    "one name for two cells",
    PAIR,
    lambda s: c.seal(two_cells(s)),
    sample_size="identity_in_two_cells identity_twice",
    planned_slots="ANY",
    order="ANY",
    correctness_class="ANY",
)
add(
    "a copy under a new name",
    PAIR,
    lambda s: c.seal(copies(s)),
    sample_size="copied_trial",
    order="start_equal",
)
add("a copy with other times", PAIR, lambda s: c.seal(copies(s, shift=7)), sample_size="copied_trial")
add("a copied row", PAIR, edited(OAK, 2, row_sha256=c.sha("one row")), sample_size="copied_trial")
add(
    "one transcript for two agent runs",
    AGENTS,
    edited(OAK, 2, evidence_sha256=c.sha("one transcript")),
    sample_size="copied_trial",
)
add("iterations of one process", PAIR, edited(OAK, process_key="pid 1"), sample_size="iterations")


def two_cells(spec):
    events = ok(spec)
    one, two = a_trial(events, 3, subject="git"), a_trial(events, 4, subject="oak_installed")
    events = c.drop(events, lambda e: getattr(e, "trial", None) == two.trial and not TRIAL(e))
    return c.edit(events, lambda e: e == two, trial=one.trial)


def copies(spec, shift=0):
    """One trial's run, reading and verdict in the place of another of its subject."""
    events = ok(spec)
    one, two = a_trial(events, 3, subject="git"), a_trial(events, 4, subject="git")
    start = one.started_at_ns if not shift else two.started_at_ns
    return c.edit(
        events,
        lambda e: e == two,
        evidence_sha256=one.evidence_sha256,
        row_sha256=None,
        metrics=one.metrics,
        started_at_ns=start,
        ended_at_ns=start + one.ended_at_ns - one.started_at_ns,
    )


# ---- rules 3 and 4


def condition_of(**changes):
    return lambda e: change(e.condition, **changes)


add(
    "model renamed for one subject",
    AGENTS,
    edited(OAK, condition=condition_of(model="model-a")),
    condition_coverage="condition_not_planned hole",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    order="ANY",
    correctness_class="ANY",
)
add(
    "one trial with another model",
    AGENTS,
    edited(OAK, 1, condition=condition_of(model="model-b")),
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
)
add(
    "one trial with other instructions",
    AGENTS,
    edited(OAK, 1, condition=condition_of(instruction_sha256=c.sha("b"))),
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
)
add(
    "one trial on another track",
    PAIR,
    edited(OAK, 1, condition=condition_of(track="agent-default")),
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
)
add(
    "one trial over another transport",
    PAIR,
    edited(OAK, 1, condition=condition_of(transport="https")),
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
)
add(
    "one trial with higher limits",
    PAIR,
    edited(OAK, 1, condition=condition_of(limits={"wall_ns": 1})),
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
)
add(
    "one trial in another environment",
    PAIR,
    edited(OAK, 1, condition=condition_of(environment_id=c.OTHER_ENVIRONMENT)),
    environment="environments_differ",
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
)
add(
    "models unknown",
    replace(AGENTS, conditions=(change(c.AGENT_CONDITIONS[0], model=None),)),
    ok,
    condition_coverage="condition_unknown",
)
add(
    "instructions unknown",
    replace(AGENTS, conditions=(change(c.AGENT_CONDITIONS[0], instruction_sha256=None),)),
    ok,
    condition_coverage="condition_unknown",
)
add(
    "track unknown",
    replace(PAIR, conditions=(Condition(environment_id=c.ENVIRONMENT),)),
    ok,
    condition_coverage="condition_unknown",
)
add(
    "environment unknown",
    replace(PAIR, conditions=(Condition(track="core-equivalent"),)),
    ok,
    environment="environment_unknown",
)
add(
    "one cell without trials",
    SEVERAL,
    lambda s: c.seal(
        c.drop(
            ok(s),
            lambda e: (
                getattr(e, "trial", None)
                in {t.trial for t in ok(s) if OAK(t) and t.scenario == "bugfix_test_loop"}
            ),
        )
    ),
    condition_coverage="hole",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
)

# ---- rule 5

add("order not followed", PAIR, lambda s: c.seal(swapped(ok(s))), order="order_differs")
add(
    "order of the campaign not followed",
    replace(PAIR, order=Order("blocked-sha256/1", "7", "campaign")),
    lambda s: c.seal(swapped(ok(s), 3, 9)),
    order="order_differs",
)
add("start times missing", PAIR, edited(OAK, started_at_ns=None), order="start_missing")
add("one start time missing", PAIR, edited(OAK, 1, started_at_ns=None), order="start_missing")
add(
    "equal start times",
    PAIR,
    lambda s: c.seal(
        c.edit(ok(s), lambda e: e == a_trial(ok(s), 1), started_at_ns=a_trial(ok(s), 0).started_at_ns)
    ),
    order="ANY",
)
add("ended before it started", PAIR, edited(OAK, 1, ended_at_ns=c.DAY), order="ended_before_start")
add(
    "observed order fixed",
    OBSERVED,
    lambda s: c.seal(rescheduled(s, lambda n: ("git", "oak_installed"))),
    order="order_not_random",
)
add(
    "observed order alternating",
    OBSERVED,
    lambda s: c.seal(rescheduled(s, lambda n: ("git", "oak_installed")[:: 1 if n % 2 else -1])),
    order="order_not_random",
)
add(
    "observed order in pairs",
    OBSERVED,
    lambda s: c.seal(rescheduled(s, lambda n: ("git", "oak_installed")[:: 1 if n // 2 % 2 else -1])),
    order="order_not_random",
)
add(
    "observed order rotating over three",
    replace(OBSERVED, subjects=(*c.SUBJECTS[:2], SubjectPlan("oak_main"))),
    lambda s: c.seal(
        rescheduled(s, lambda n: tuple(("git", "oak_installed", "oak_main")[(i + n) % 3] for i in range(3)))
    ),
    order="order_not_random",
)
add(
    "one subject after the other",
    OBSERVED,
    lambda s: c.seal(one_after_the_other(s)),
    order="order_not_random",
)
add(
    "too few blocks to tell",
    replace(OBSERVED, trials_per_cell=8),
    ok,
    order="order_untestable",
    sample_size="too_few_recorded",
)
add("order declared after the runs", replace(PAIR, preregistered=False), lambda s: c.seal(late(ok(s))))
add(
    "order declared after the runs and fixed",
    replace(PAIR, preregistered=False),
    lambda s: c.seal(late(rescheduled(s, lambda n: ("git", "oak_installed")))),
    order="order_differs order_not_random",
)


def swapped(events, one=None, two=None):
    """Exchange the start times of two trials, by default of one block."""
    runs = [e for e in events if TRIAL(e)]
    a = runs[one or 0]
    b = runs[two] if two else next(r for r in runs[1:] if r.repetition == a.repetition)
    times = {a.trial: b, b.trial: a}
    return c.edit(
        events,
        lambda e: TRIAL(e) and e.trial in times,
        started_at_ns=lambda e: times[e.trial].started_at_ns,
        ended_at_ns=lambda e: times[e.trial].ended_at_ns,
    )


def rescheduled(spec, order):
    """Give the blocks start times so that block n runs its subjects in order(n)."""
    runs = {(e.repetition, e.subject): e for e in ok(spec) if TRIAL(e)}
    at = {}
    for n, repetition in enumerate(sorted({r for r, _ in runs})):
        for i, subject in enumerate(order(n)):
            at[runs[repetition, subject].trial] = spec.start_ns + (60 + 1000 * n + 50 * i) * c.SECOND
    events = c.edit(
        ok(spec), c.kind(StudyCriteriaAttested), recorded_at_ns=lambda e: e.recorded_at_ns + 10**14
    )
    return c.edit(
        events,
        TRIAL,
        started_at_ns=lambda e: at[e.trial],
        ended_at_ns=lambda e: at[e.trial] + e.ended_at_ns - e.started_at_ns,
    )


def one_after_the_other(spec):
    events = c.edit(
        ok(spec), c.kind(StudyCriteriaAttested), recorded_at_ns=lambda e: e.recorded_at_ns + 10**14
    )
    return c.edit(
        events,
        OAK,
        started_at_ns=lambda e: e.started_at_ns + 10**13,
        ended_at_ns=lambda e: e.ended_at_ns + 10**13,
    )


def late(events):
    last = max(e.recorded_at_ns for e in events)
    first, *rest = events
    return [*rest[:-1], change(first, recorded_at_ns=last), rest[-1]]


# ---- rule 6

add(
    "binary exchanged in the middle",
    PAIR,
    edited(OAK, 9, subject_binary_sha256=c.sha("newer")),
    identity="binary_changes identity_contradicted",
)
add("two versions pooled", PAIR, edited(OAK, 9, subject_version="oak 0.2"), identity="version_changes")
add("source changes", PAIR, edited(OAK, 9, subject_source_sha256=c.sha("other")), identity="source_changes")
add(
    "binary unknown",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.edit(ok(s), OAK, subject_binary_sha256=None),
            c.kind(SubjectIdentified, subject="oak_installed"),
            binary_sha256=None,
        )
    ),
    identity="binary_unknown",
)
add(
    "version unknown in one trial",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.edit(ok(s), OAK, 1, subject_version=None),
            c.kind(SubjectIdentified, subject="oak_installed"),
            version=None,
        )
    ),
    identity="version_unknown",
)
add(
    "source known in part",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.edit(ok(s), OAK, 5, subject_source_sha256=None),
            c.kind(SubjectIdentified, subject="oak_installed"),
            source_sha256=None,
        )
    ),
    identity="source_unknown",
)
add("dirty source", PAIR, edited(OAK, 1, subject_dirty=True), identity="dirty_source")
add(
    "cleanness unknown",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.edit(ok(s), OAK, subject_dirty=None),
            c.kind(SubjectIdentified, subject="oak_installed"),
            dirty=None,
        )
    ),
    identity="dirty_unknown",
)
add(
    "other binary than the campaign says",
    PAIR,
    edited(c.kind(SubjectIdentified, subject="git"), binary_sha256=c.sha("announced")),
    identity="identity_contradicted",
)
add("other fixture version", PAIR, edited(OAK, 1, fixture_version=2), identity="fixture_differs")
add(
    "verdicts of another oracle version",
    PAIR,
    edited(c.kind(OracleJudged, subject="git"), 1, oracle_version=9),
    identity="verdict_oracle_version",
    planned_slots="slot_unmeasured",
)
add(
    "verdict on another fixture",
    PAIR,
    edited(VERDICT, 1, fixture_version=9),
    identity="verdict_fixture_version",
    planned_slots="slot_unmeasured",
)
add(
    "verdict by another contract",
    PAIR,
    edited(VERDICT, 1, contract_sha256=c.sha("softer")),
    identity="verdict_contract",
    planned_slots="slot_unmeasured",
)
add(
    "contracts differ where the plan fixes none",
    replace(PAIR, scenarios=(change(c.SCENARIOS[0], contract_sha256=None),)),
    edited(VERDICT, 1, contract_sha256=c.sha("softer")),
    identity="contract_differs",
)
add(
    "verdict of another scenario version",
    PAIR,
    edited(VERDICT, 1, scenario_version=9),
    identity="verdict_other_scenario",
    planned_slots="slot_unmeasured",
)

# ---- rule 7

OAK_READ = c.kind(ReaderInvoked, vcs="oak")
GIT_READ = c.kind(ReaderInvoked, vcs="git")
GIT_TOOL = {
    "backend": "git",
    "reader": "git_instrument_reader",
    "instrument_sha256": c.sha("git tool"),
    "instrument_name": "git",
}
EXPORT = {"backend": "export", "reader": "oak_export_reader", "relation": "subject_export"}

add(
    "export evidence against independent",
    PAIR,
    edited(OAK_READ, **EXPORT),
    correctness_class="classes_differ",
)
add(
    "export evidence called independent",
    PAIR,
    edited(OAK_READ, **{**EXPORT, "relation": "independent"}),
    correctness_class="classes_differ relation_overclaimed",
)
add(
    "export backend under the name of the reader",
    PAIR,
    edited(OAK_READ, backend="export"),
    correctness_class="classes_differ relation_overclaimed",
)
add(
    "the subject reads itself",
    PAIR,
    edited(
        GIT_READ, **{**GIT_TOOL, "instrument_sha256": c.sha("binary", "git"), "relation": "subject_binary"}
    ),
    correctness_class="classes_differ",
)
add(
    "the subject reads itself and is called independent",
    PAIR,
    edited(
        GIT_READ,
        **{
            **GIT_TOOL,
            "instrument_sha256": c.sha("binary", "git"),
            "qualified_by": "me",
            "qualified_because": "trust",
        },
    ),
    correctness_class="classes_differ relation_overclaimed",
)
add(
    "another git that nobody qualified",
    PAIR,
    edited(GIT_READ, **{**GIT_TOOL, "relation": "unqualified"}),
    correctness_class="class_unknown",
)
add(
    "another git called independent by nobody",
    PAIR,
    edited(GIT_READ, **GIT_TOOL),
    correctness_class="class_unknown relation_overclaimed",
)
add(
    "another git, asserted without a reason",
    PAIR,
    edited(GIT_READ, **{**GIT_TOOL, "qualified_by": "me", "qualified_because": " "}),
    correctness_class="class_unknown relation_overclaimed",
)
add(
    "honest other git, asserted",
    PAIR,
    edited(GIT_READ, **{**GIT_TOOL, "qualified_by": "me", "qualified_because": "built from reviewed source"}),
)
add(
    "instrument without a digest, asserted",
    PAIR,
    edited(
        GIT_READ,
        **{**GIT_TOOL, "instrument_sha256": None, "qualified_by": "me", "qualified_because": "trust"},
    ),
    correctness_class="class_unknown relation_overclaimed",
)
add(
    "native libraries that nobody qualified",
    PAIR,
    edited(OAK_READ, backend="native"),
    correctness_class="class_unknown relation_overclaimed",
)
add(
    "a reader nobody knows",
    PAIR,
    edited(GIT_READ, reader="my_reader"),
    correctness_class="class_unknown relation_overclaimed",
)
add(
    "shallower on one side",
    replace(PAIR, scenarios=(change(c.SCENARIOS[0], evidence="committed_payload"),)),
    edited(c.kind(OracleJudged, subject="git"), depth="committed_tree"),
    correctness_class="classes_differ",
)
add(
    "tests on one side only",
    PAIR,
    edited(c.kind(OracleJudged, subject="git"), tests="pass"),
    correctness_class="classes_differ",
)
add(
    "depth not said",
    PAIR,
    edited(VERDICT, 1, depth=None),
    correctness_class="class_unknown",
    exact_output="lacks_exact_tree",
)
add(
    "pass without a reader",
    PAIR,
    edited(VERDICT, 1, reader_event_id=None),
    correctness_class="pass_without_reader",
    planned_slots="slot_unmeasured",
)
add(
    "pass on a reading that is not in the ledger",
    PAIR,
    edited(VERDICT, 1, reader_event_id=c.sha("nowhere")),
    correctness_class="pass_reader_not_recorded",
    planned_slots="slot_unmeasured",
)


def borrowed_reading(spec):
    """The last verdict on a subject rests on the first reading of it."""
    events = ok(spec)
    verdict = [e for e in events if c.kind(OracleJudged, subject="git")(e)][-1]
    read = c.first(events, c.kind(ReaderInvoked, subject="git"))
    return c.edit(events, lambda e: e == verdict, reader_event_id=event_id(read))


add(
    "pass on another trial's reading",
    PAIR,
    lambda s: c.seal(borrowed_reading(s)),
    correctness_class="pass_reader_of_another_trial",
    planned_slots="slot_unmeasured",
)
add(
    "reading of another subject",
    PAIR,
    edited(OAK_READ, 1, subject="git"),
    correctness_class="pass_reader_of_another_subject",
    planned_slots="slot_unmeasured",
)
add(
    "verdict on another subject",
    PAIR,
    edited(c.kind(OracleJudged, subject="oak_installed"), 1, subject="git"),
    correctness_class="pass_other_subject",
    planned_slots="slot_unmeasured",
)
add(
    "unmeasured booked as pass",
    PAIR,
    edited(READER, 1, outcome="unmeasured", exit_status=77, reason="deadline"),
    correctness_class="pass_reader_saw_nothing",
    planned_slots="slot_unmeasured",
)
add(
    "corrupt store booked as pass",
    PAIR,
    edited(READER, 1, outcome="invalid", exit_status=3, reason="blob_mismatch"),
    correctness_class="pass_reader_saw_nothing",
    planned_slots="slot_unmeasured",
)
add(
    "ok with another exit status",
    PAIR,
    edited(READER, 1, exit_status=1),
    correctness_class="pass_reader_saw_nothing",
    planned_slots="slot_unmeasured",
)
add(
    "another manifest was judged",
    PAIR,
    edited(READER, 1, manifest_sha256=c.sha("another")),
    correctness_class="pass_other_manifest",
    planned_slots="slot_unmeasured",
)
add(
    "reader code changes",
    PAIR,
    edited(OAK_READ, 5, code_sha256=c.sha("patched")),
    correctness_class="reader_changes",
)
add(
    "reader version changes",
    PAIR,
    edited(OAK_READ, 5, reader_version="1.1"),
    correctness_class="reader_changes",
)
add(
    "backend changes, asserted",
    PAIR,
    edited(OAK_READ, 5, backend="native", qualified_by="me", qualified_because="trust"),
    correctness_class="reader_changes",
)
add(
    "codec changes",
    PAIR,
    edited(OAK_READ, 5, codec_sha256=c.sha("other codec")),
    correctness_class="instrument_changes",
)
add(
    "scope narrowed on one side",
    PAIR,
    edited(OAK_READ, scope_sha256=c.sha("fewer paths")),
    correctness_class="scope_differs",
)
add(
    "whole tree against a scope",
    PAIR,
    edited(OAK_READ, scope_sha256=None, scope_count=None),
    correctness_class="scope_differs",
)
add(
    "nothing measured at all",
    PAIR,
    lambda s: c.seal(c.drop(ok(s), lambda e: READER(e) or VERDICT(e))),
    correctness_class="nothing_measured",
    planned_slots="slot_unmeasured",
    sample_size="too_few_measured",
    condition_coverage="hole",
)

# ---- rule 8

add(
    "service failure booked as a failure before HEAD",
    PAIR,
    one_trial_edited("failed_before_head", status_code="http_529"),
    failures="harness_failure_as_agent_failure",
    planned_slots="slot_harness_failure",
)
add(
    "rate limit booked as a wrong result",
    PAIR,
    one_trial_edited("failed", status="error", status_code="http_429"),
    failures="harness_failure_as_agent_failure",
    planned_slots="slot_harness_failure",
)
add(
    "missing program booked as a failure",
    PAIR,
    one_trial_edited("failed_before_head", exit_code=127),
    failures="harness_failure_as_agent_failure",
    planned_slots="slot_harness_failure",
)
add(
    "verifier failure booked as a failure",
    PAIR,
    one_trial_edited("failed", status_code="parse_error"),
    failures="harness_failure_as_agent_failure",
    planned_slots="slot_harness_failure",
)
add(
    "failure before HEAD that never started",
    PAIR,
    one_trial_edited("failed_before_head", started_at_ns=None),
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
    order="start_missing",
)
add(
    "failure before HEAD that never ended",
    PAIR,
    one_trial_edited("failed_before_head", ended_at_ns=None, exit_code=None),
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
)
add(
    "reader bound booked as a failure before HEAD",
    PAIR,
    lambda s: c.seal(bound_as_failure(s)),
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
)
add(
    "HEAD was read, and no oracle asked",
    PAIR,
    lambda s: c.seal(
        c.drop(
            c.edit(ok(s), OAK, 1, reached_head=False),
            lambda e: VERDICT(e) and e.trial == c.first(ok(s), OAK).trial,
        )
    ),
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
)
add(
    "wrong result booked as a harness failure",
    PAIR,
    also(
        lambda s, e: again(s, e, status="completed"),
        base=one_trial_edited("failed", status="harness_failure"),
    ),
    failures="agent_failure_as_harness_failure",
)
add(
    "wrong result booked as unlaunched",
    PAIR,
    also(lambda s, e: again(s, e, status="completed"), base=one_trial_edited("failed", status="unlaunched")),
    failures="agent_failure_as_harness_failure",
)
add(
    "unmeasured booked as fail",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.honest(s, once("failed")),
            c.kind(ReaderInvoked, trial=a_trial(c.honest(s, once("failed")), 5).trial),
            outcome="unmeasured",
            exit_status=77,
            reason="deadline",
        )
    ),
    failures="fail_reader_saw_nothing",
    planned_slots="slot_unmeasured",
)
add(
    "fail without a reader",
    PAIR,
    lambda s: c.seal(
        c.edit(c.honest(s, once("failed")), c.kind(OracleJudged, verdict="fail"), reader_event_id=None)
    ),
    failures="fail_without_reader",
    planned_slots="slot_unmeasured",
)
add(
    "failure invalidated",
    PAIR,
    also(lambda s, e: [invalid(s, a_trial(e, 5))], base=lambda s: c.honest(s, once("failed"))),
    failures="failure_invalidated",
    planned_slots="slot_invalidated",
)
add(
    "honest fail on an oversize path before a bound",
    PAIR,
    lambda s: c.seal(
        c.edit(
            c.honest(s, once("failed")),
            c.kind(ReaderInvoked, trial=a_trial(c.honest(s, once("failed")), 5).trial),
            outcome="unmeasured",
            exit_status=77,
            reason="bound_total_bytes",
            oversize_count=1,
        )
    ),
)


def bound_as_failure(spec):
    events = c.honest(spec, once("failed_before_head"))
    events = c.drop(events, c.kind(OracleJudged, reason="no_committed_head"))
    return c.edit(
        events,
        c.kind(ReaderInvoked, reason="no_committed_head"),
        outcome="unmeasured",
        exit_status=77,
        reason="bound_entries",
    )


# ---- rule 9

TESTED = replace(PAIR, scenarios=(c.SCENARIOS[1],))
DIRTY = replace(
    PAIR, scenarios=(ScenarioPlan("sync_pull_dirty", 1, 1, 1, c.sha("contract", "sync"), worktree=True),)
)
ANSWER = replace(
    PAIR,
    scenarios=(
        ScenarioPlan("history_archaeology", 2, 2, 1, c.sha("contract", "history"), evidence="answer"),
    ),
)
CORE = replace(PAIR, lane="core", conditions=(Condition(profile="large"),))
add(
    "markers where the exact tree is asked",
    PAIR,
    edited(VERDICT, depth="committed_payload"),
    exact_output="lacks_exact_tree",
)
add(
    "markers where the exact tree is asked, core lane",
    CORE,
    edited(VERDICT, depth="committed_payload"),
    exact_output="lacks_exact_tree",
)
add("test suite not run", TESTED, edited(VERDICT, tests=None), exact_output="lacks_tests")
add("worktree not looked at", DIRTY, edited(VERDICT, worktree=None), exact_output="lacks_worktree")
add(
    "answer not looked at",
    ANSWER,
    lambda s: c.seal(answers(s, ("absent", "wrong"), answer=None)),
    exact_output="lacks_answer",
    correctness_class="class_unknown",
)
add(
    "no negative controls",
    ANSWER,
    lambda s: c.seal(answers(s, ())),
    exact_output="control_absent control_wrong",
)
add(
    "no control of a wrong answer",
    ANSWER,
    lambda s: c.seal(answers(s, ("absent",))),
    exact_output="control_wrong",
)
add(
    "controls after the first pass",
    ANSWER,
    lambda s: c.seal(answers(s, ("absent", "wrong"), when=10**15)),
    exact_output="control_absent control_wrong",
)
add(
    "controls that passed",
    ANSWER,
    lambda s: c.seal(answers(s, ("absent", "wrong"), verdict="pass")),
    exact_output="control_absent control_wrong",
)
add(
    "no evidence asked",
    replace(PAIR, scenarios=(change(c.SCENARIOS[0], evidence="none"),)),
    edited(VERDICT, depth="committed_tree"),
    exact_output="no_evidence_asked",
)

# ---- rule 10

add("timeout counted as success", PAIR, edited(OAK, 1, status="timeout"), conflicts="pass_with_timeout")
add("error counted as success", PAIR, edited(OAK, 1, status="error"), conflicts="pass_with_error")
add(
    "timeouts become passes by a late rule",
    PAIR,
    lambda s: c.seal([*c.edit(ok(s), OAK, 1, status="timeout"), rule(s, "pass", late=True)]),
    conflicts="rule_too_late",
)
add(
    "a late rule with an early date",
    PAIR,
    lambda s: c.seal([*c.edit(ok(s), OAK, 1, status="timeout"), rule(s, "pass")]),
    conflicts="rule_too_late",
)
add(
    "a rule on something else",
    PAIR,
    lambda s: c.seal([rule(s, "pass", "pass_with_error"), *c.edit(ok(s), OAK, 1, status="timeout")]),
    conflicts="pass_with_timeout",
)
add(
    "rules that disagree",
    PAIR,
    lambda s: c.seal(
        [
            rule(s, "pass"),
            change(rule(s, "fail"), why="second thoughts"),
            *c.edit(ok(s), OAK, 1, status="timeout"),
        ]
    ),
    conflicts="pass_with_timeout rules_disagree",
)
add(
    "pass and fail on one trial",
    PAIR,
    also(lambda s, e: [change(evidence_of(e, a_trial(e))[1], verdict="fail", reason="content_mismatch")]),
    conflicts="verdicts_disagree",
)
add(
    "read again until it is readable",
    PAIR,
    also(lambda s, e: [change(evidence_of(e, a_trial(e))[1], verdict="unmeasured", reason="not_quiescent")]),
    conflicts="verdicts_disagree",
)
add(
    "two depths of one pass",
    PAIR,
    also(lambda s, e: [change(evidence_of(e, a_trial(e))[1], depth="committed_payload")]),
    conflicts="verdicts_disagree",
    exact_output="lacks_exact_tree",
)
add(
    "pass against a failed part",
    TESTED,
    edited(VERDICT, 1, worktree="fail"),
    conflicts="pass_against_its_evidence",
)
add(
    "pass although a path is no file",
    PAIR,
    edited(READER, 1, nonregular_count=1),
    conflicts="pass_against_its_evidence",
)
add("pass without HEAD", PAIR, edited(OAK, 1, reached_head=False), conflicts="pass_without_head")
add(
    "pass of an unlaunched trial",
    PAIR,
    edited(OAK, 1, status="unlaunched"),
    conflicts="pass_with_unlaunched",
    planned_slots="slot_unlaunched",
)
add(
    "pass of a harness failure",
    PAIR,
    edited(OAK, 1, status="harness_failure"),
    conflicts="pass_with_harness_failure",
    planned_slots="slot_harness_failure",
)

# ---- rule 11


def claim(**changes):
    return replace(CLAIMING, claims=(change(c.CLAIMS[0], **changes),))


add("honest claim", CLAIMING, c.honest)
add(
    "honest claim of more bytes",
    claim(metric="store_bytes", direction="higher", size_permille=500),
    lambda s: c.seal(
        c.edit(ok(s), OAK, metrics=lambda e: {**e.metrics, "store_bytes": 2 * e.metrics["store_bytes"]})
    ),
)
add("claim without a null", replace(PAIR, claims=c.CLAIMS), ok, noise_floor="claim_without_null")
add(
    "claim within the noise",
    claim(size_permille=1),
    lambda s: c.seal(
        c.edit(ok(s), OAK, metrics=lambda e: {"wall_ns": int(e.metrics["wall_ns"] * 40 / 28 * 0.997)})
    ),
    noise_floor="ANY",
)
add("claimed size within the noise", claim(size_permille=1), ok, noise_floor="effect_within_noise")
add("claim larger than measured", claim(size_permille=500), ok, noise_floor="effect_smaller_than_claimed")
add(
    "claim in the wrong direction",
    claim(direction="higher"),
    ok,
    noise_floor="effect_smaller_than_claimed effect_within_noise",
)
add(
    "claim on a metric nobody measured",
    claim(metric="energy_uj"),
    ok,
    noise_floor="metric_unmeasured noise_unmeasured",
)
add(
    "slow values left out as null",
    CLAIMING,
    edited(OAK, 3, metrics={"wall_ns": None}),
    noise_floor="metric_unmeasured",
)
add(
    "claim about a subject off the plan",
    claim(subject="jj"),
    ok,
    noise_floor="claim_without_subjects metric_unmeasured",
)
add("claim of a null subject", claim(subject="git_again"), ok, noise_floor="ANY")
add(
    "claim on a diagnostic scenario",
    replace(CLAIMING, scenarios=c.SCENARIOS, claims=(change(c.CLAIMS[0], scenario="history_archaeology"),)),
    ok,
    noise_floor="claim_without_scenario",
)
add(
    "the null is another binary",
    CLAIMING,
    lambda s: c.seal(
        c.edit(
            c.edit(ok(s), c.kind(TrialRecorded, subject="git_again"), subject_binary_sha256=c.sha("tuned")),
            c.kind(SubjectIdentified, subject="git_again"),
            binary_sha256=c.sha("tuned"),
        )
    ),
    noise_floor="null_is_not_itself",
)
add(
    "claim of success rate within the noise",
    claim(metric="success_rate_permille", direction="higher", size_permille=10),
    lambda s: c.honest(
        s, lambda p, t, a, n: "failed" if t.subject.startswith("git") and t.repetition == 3 else "passed"
    ),
    noise_floor="effect_within_noise",
)
add(
    "honest claim of success rate",
    claim(metric="success_rate_permille", direction="higher", size_permille=400),
    lambda s: c.honest(
        s, lambda p, t, a, n: "failed" if t.subject.startswith("git") and t.repetition % 2 else "passed"
    ),
)

# ---- rules 12 and 13

add(
    "declared after the first start",
    PAIR,
    edited(c.kind(CampaignDeclared), recorded_at_ns=lambda e: e.recorded_at_ns + 10**13),
    preregistration="declared_late",
)
add(
    "declared late with an early date",
    PAIR,
    lambda s: c.seal([*ok(s)[1:], ok(s)[0]]),
    preregistration="declared_late",
)
add("criteria not attested", PAIR, dropped(c.kind(StudyCriteriaAttested)), study_criteria="not_attested")
add(
    "one criterion not attested",
    PAIR,
    edited(c.kind(StudyCriteriaAttested), criteria=c.CRITERIA[:1]),
    study_criteria="not_attested",
)
add(
    "another text attested",
    PAIR,
    edited(c.kind(StudyCriteriaAttested), criteria=(c.CRITERIA[0], Criterion("power", c.sha("easier")))),
    study_criteria="other_text_attested",
)
add(
    "attested before the runs",
    PAIR,
    edited(c.kind(StudyCriteriaAttested), recorded_at_ns=lambda e: c.DAY + 1),
    study_criteria="attested_early",
)
add(
    "no criteria at all",
    replace(PAIR, criteria=()),
    lambda s: c.seal(c.drop([*ok(replace(s, criteria=c.CRITERIA))], c.kind(StudyCriteriaAttested))),
    study_criteria="ANY",
)


@pytest.fixture(scope="module")
def found(evaluated):
    """Campaign -> binding rows (rule id, code, detail, event ids) of all variants, evaluated at once."""
    batches = []
    for n, (spec, make, _) in enumerate(VARIANTS.values()):
        # Days apart, so that no variant's runs look like another's.
        batches.append(make(replace(spec, campaign=f"v{n}", start_ns=c.DAY + n * 10 * 86_400 * c.SECOND)))
    con = evaluated(batches)
    rows = con.execute(
        "SELECT campaign, rule_id, what, coalesce(binding, true), detail, event_ids FROM violations"
    ).fetchall()
    out: dict[str, list] = {f"v{n}": [] for n in range(len(VARIANTS))}
    for campaign, rule_id, what, binding, detail, ids in rows:
        if campaign is not None:
            out[campaign].append((rule_id, what, binding, detail, ids))
    return out


@pytest.mark.parametrize("name", list(VARIANTS))
def test_a_variant_is_refused_for_its_own_reasons(found, name):
    expected = VARIANTS[name][2]
    rows = found[f"v{list(VARIANTS).index(name)}"]
    got: dict[str, set[str]] = {}
    for rule_id, what, binding, _, _ in rows:
        if binding:
            got.setdefault(rule_id, set()).add(what)
    details = "\n".join(f"{r} {w}: {d}" for r, w, b, d, _ in rows if b)
    for rule_id, codes in expected.items():
        if codes == {"ANY"}:
            got.pop(rule_id, None)
        else:
            assert got.get(rule_id, set()) == codes, details
            got.pop(rule_id)
    assert got == {}, details


def test_every_violation_names_events_and_says_something(found):
    rows = [row for rows in found.values() for row in rows]
    assert len(rows) > 100
    for rule_id, what, _, detail, ids in rows:
        assert detail and all(ids) and ids, (rule_id, what)


def test_every_rule_but_the_ledger_is_violated_by_several_variants():
    by_rule: dict[str, int] = {}
    for _, _, expected in VARIANTS.values():
        for rule_id in expected:
            by_rule[rule_id] = by_rule.get(rule_id, 0) + 1
    assert len(by_rule) == 13
    assert min(by_rule.values()) >= 3, by_rule
