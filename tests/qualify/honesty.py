"""Honest campaigns: what careful teams really run, each with something that is no reproach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import late_acts
import more_acts
from campaigns import (
    AGENT_CONDITIONS,
    SECOND,
    Spec,
    declaration,
    envelope,
    judgement,
    kind,
    passed,
    reading,
    replaced,
    respec,
    seal,
    sha,
)
from mutations import (
    ACTS,
    AGENT,
    ANSWER,
    ANSWERED,
    BUGFIX,
    CORE,
    CORE_OBSERVED,
    INSTRUMENT,
    OBSERVED,
    OBSERVED_NULL,
    OPERATIONS,
    QUALIFIED,
    SCRIPTED,
    SYNC,
    THIRTY,
    TWO_MODELS,
    WHOLE_AGENT,
    WHOLE_WORKFLOW,
    WIDE,
    WITH_DIAGNOSTIC,
    WORKTREE,
    Story,
    always,
    base,
    conflict_rule,
    contradict,
    git_reads,
    honest_campaign,
    invalidated,
    oak_reads,
    rebased,
    replace,
    starts,
    story,
    usual,
)

from ledger.events import (
    AnyEvent,
    CampaignDeclared,
    Claim,
    OracleJudged,
    QualificationDecided,
    ReaderInvoked,
    RuleResult,
    StudyCriteriaAttested,
    SubjectIdentified,
    SubjectPlan,
    TrialRecorded,
    TrialReplaced,
    event_id,
)

#: Another contract than that of the other campaigns: what was run for nobody is there for everybody.
SHARED_CONTROLS = respec(
    ANSWERED, campaign="sc", scenarios=(replace(ANSWER, contract_sha256=sha("contract", "shared")),)
)
LAST_CONTROLS = respec(
    ANSWERED, campaign="lc", scenarios=(replace(ANSWER, contract_sha256=sha("contract", "last")),)
)
TWO_BUILDS = respec(AGENT, campaign="tb", conditions=AGENT_CONDITIONS, order=None, preregistered=False)
#: Two scenarios of which one has two versions, two conditions, and three claims.
MANY_CLAIMS = respec(
    AGENT,
    campaign="mc",
    scenarios=(BUGFIX, replace(BUGFIX, scenario_version=3), replace(WIDE, scenario_version=2)),
    conditions=AGENT_CONDITIONS,
    claims=(
        Claim("wall_ns", "oak_installed", "git", "lower", 100),
        Claim("success_rate_permille", "oak_installed", "git", "higher", 200),
        Claim("wall_ns", "oak_installed", "git", "lower", 150, scenario="bugfix_test_loop"),
    ),
)
#: Both sides of the claim are measured against themselves.
TWO_NULLS = respec(
    AGENT, campaign="tn", subjects=(*AGENT.subjects, SubjectPlan("oak_again", null_of="oak_installed"))
)
#: Timed units on the workflow lane.
SCRIPTED_OPERATIONS = respec(OPERATIONS, lane="workflow")


def told(spec: Spec, do: Callable[[Story], object], outcome: Any = usual) -> tuple[AnyEvent, ...]:
    """An honest campaign with something honest done to it."""
    s = Story(spec, list(base(spec, outcome)))
    do(s)
    return tuple(s.events)


def _decided(decision: str) -> Callable[[Story], None]:
    def do(s: Story) -> None:
        contradict(s, status="timeout", exit_code=None)
        s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, decision))

    return do


def _decided_late(s: Story) -> None:
    contradict(s, status="timeout", exit_code=None)
    s.add(conflict_rule(s, s.end_ns, "fail"))


def _vouched(s: Story) -> None:
    """Instruments that somebody answers for; half of the records leave the binary to the campaign."""
    s.edit(s.trial(*s.runs()[::2]), subject_binary_sha256=None)
    git_reads(s, **{**INSTRUMENT, **QUALIFIED})
    oak_reads(s, backend="native", **QUALIFIED)


def _all_subject_binary(s: Story) -> None:
    git_reads(s, **{**INSTRUMENT, "instrument_sha256": sha("binary", "git"), "relation": "subject_binary"})


def _said_once(s: Story) -> None:
    s.edit(
        kind(TrialRecorded),
        subject_binary_sha256=None,
        subject_version=None,
        subject_source_sha256=None,
        subject_dirty=None,
    )


def _released(s: Story) -> None:
    s.edit(kind(TrialRecorded), subject_source_sha256=None, subject_dirty=None)
    s.edit(kind(SubjectIdentified), source_sha256=None, dirty=None)


def _unnumbered(s: Story) -> None:
    s.edit(kind(TrialRecorded), repetition=None)


def _two_verdicts(s: Story) -> None:
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    read = reading(run, objects_verified=3)
    s.add(read, judgement(s.spec, run, read))


def _second_look(s: Story) -> None:
    """The reader's time was up, and a second reading with a longer one passed."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    read = reading(run, outcome="unmeasured", exit_status=77, reason="deadline", manifest_sha256=None)
    word = judgement(
        s.spec, run, read, verdict="unmeasured", reason="deadline", depth=None, manifest_sha256=None
    )
    s.add(read, word)


def _invalid_and_run_again(s: Story) -> None:
    """An unlaunched attempt is replaced, and called invalid besides."""
    s.add(invalidated(s, s.runs(subject="oak_installed", repetition=5)[0]))


def _bare(s: Story) -> None:
    """A harness that keeps neither rows nor logs, names no processes, and writes down no end."""
    s.edit(kind(TrialRecorded), row_sha256=None, evidence_sha256=None, process_key=None, ended_at_ns=None)


def _instant(s: Story) -> None:
    """A run that was over within the clock's resolution."""
    s.edit(s.trial(s.runs("pass", subject="git")[3]), ended_at_ns=lambda e: e.started_at_ns)


def _told_twice(s: Story) -> None:
    """Two people record one and the same replacement."""
    one = next(e for e in s.events if isinstance(e, TrialReplaced))
    s.add(replace(one, who="another operator", recorded_at_ns=one.recorded_at_ns + SECOND))


def _identified_twice(s: Story) -> None:
    """A subject is identified again, and is the same."""
    one = next(e for e in s.events if isinstance(e, SubjectIdentified))
    s.add(replace(one, recorded_at_ns=one.recorded_at_ns + SECOND))


def _identified_in_part(s: Story) -> None:
    """Half of Git's records leave to two identifications what ran; Oak's say it, and its own the version."""
    one = next(e for e in s.events if isinstance(e, SubjectIdentified) and e.subject == "git")
    s.add(replace(one, recorded_at_ns=one.recorded_at_ns + SECOND))
    s.edit(
        s.trial(*s.runs(subject="git")[:15]),
        subject_binary_sha256=None,
        subject_version=None,
        subject_source_sha256=None,
        subject_dirty=None,
    )
    s.edit(
        kind(SubjectIdentified, subject="oak_installed"),
        binary_sha256=None,
        source_sha256=None,
        dirty=None,
    )


def _fixture_in_verdicts(s: Story) -> None:
    """The records do not say the fixture version; the verdicts do."""
    s.edit(kind(TrialRecorded), fixture_version=None)


def _declared_again(s: Story) -> None:
    """The same declaration comes a second time, before the runs."""
    first = next(e for e in s.events if isinstance(e, CampaignDeclared))
    s.events.insert(1, replace(first, recorded_at_ns=first.recorded_at_ns + SECOND))


def _core_of_unknowns(s: Story) -> None:
    """On the core lane neither track nor environment must be known."""
    condition = replace(s.spec.conditions[0], track=None, environment_id=None)
    s.replan(conditions=(condition,))
    s.edit(kind(TrialRecorded), condition=condition)


def _nearly_fixed(s: Story) -> None:
    """Chance put Git first in 27 of 31 blocks: p is between one and two in a thousand."""
    odd = (4, 11, 17, 26)

    def order(r: int) -> tuple[str, ...]:
        pair = ["oak_installed", "git"] if r in odd else ["git", "oak_installed"]
        pair.insert(int(sha("third", r, 5)[:4], 16) % 3, "git_again")
        return tuple(pair)

    starts(s, order)


def _failed_by_its_reader(s: Story) -> None:
    """A store that does not verify, and one with a file too large to read, fail the task."""
    a, b = s.runs("fail", subject="oak_installed", reached_head=True)[:2]
    s.edit(s.reads(a), outcome="invalid", exit_status=3, reason="blob_mismatch", manifest_sha256=None)
    s.edit(
        s.reads(b),
        outcome="unmeasured",
        exit_status=77,
        reason="bound_total_bytes",
        oversize_count=1,
        manifest_sha256=None,
    )
    s.edit(s.verdicts(a, b), manifest_sha256=None)


def _missing_path(s: Story) -> None:
    """A committed path of the scope is missing, and the reader gave up for another reason."""
    run = s.runs("fail", subject="git", reached_head=True)[0]
    s.edit(
        s.reads(run),
        outcome="unmeasured",
        exit_status=77,
        reason="deadline",
        missing_count=1,
        manifest_sha256=None,
    )
    s.edit(s.verdicts(run), manifest_sha256=None)


def _failed_with_trouble(s: Story) -> None:
    """What failed with committed evidence may also have timed out or ended with an error."""
    a, b = s.runs("fail", subject="git", reached_head=True)[:2]
    s.edit(s.trial(a), status="timeout", exit_code=None)
    s.edit(s.trial(b), status="error", exit_code=2)


def _timeout_before_head(s: Story) -> None:
    """A run that ran past its limit before it committed anything, without a reader or an oracle."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.reads(run))
    s.drop(s.verdicts(run))
    s.edit(s.trial(run), status="timeout", exit_code=None, ended_at_ns=None)


def _found_by_the_reader(s: Story) -> None:
    """A run without a commit as its reader found it; the harness does not know, and no oracle was asked."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(run))
    s.edit(s.trial(run), reached_head=None)


def _looked_closer(s: Story) -> None:
    """The exact tree was checked where markers are asked for, on both sides."""
    s.edit(kind(OracleJudged, depth="committed_payload"), depth="committed_tree")


def _readings_of_no_trial(s: Story) -> None:
    """The repositories of the fixtures were read and judged too, here and for no campaign at all."""
    run = s.runs("pass", subject="git")[0]
    read = replace(reading(run), trial=None, subject=None)
    s.add(read, replace(judgement(s.spec, run, read), trial=None))
    other = replace(run, trial="fixtures/1")
    read = replace(reading(other), campaign=None)
    s.add(read, replace(judgement(s.spec, other, read), campaign=None))
    one = next(e for e in s.events if isinstance(e, SubjectIdentified))
    s.add(replace(one, campaign=None, binary_sha256=sha("binary of no campaign")))


def _same_logs(s: Story) -> None:
    """Scripts that print nothing keep equal logs; starts and metrics tell the runs apart."""
    order = {e.trial: n for n, e in enumerate(s.runs())}

    def metrics(e: TrialRecorded) -> dict[str, int | None]:
        return {k: None if v is None else v * 1000 + order[e.trial] for k, v in e.metrics.items()}

    s.edit(kind(TrialRecorded), evidence_sha256=sha("an empty log"), metrics=metrics)


def _units_of_one_clock(s: Story) -> None:
    """Each timed unit's record has the clock and figures of the whole run, and all logs are empty."""
    whole = {e.trial: (e, n) for n, e in enumerate(s.runs(operation=None))}
    s.edit(
        kind(TrialRecorded),
        evidence_sha256=sha("an empty log"),
        started_at_ns=lambda e: whole[e.trial][0].started_at_ns,
        ended_at_ns=lambda e: whole[e.trial][0].ended_at_ns,
        metrics=lambda e: {
            k: None if v is None else v * 1000 + whole[e.trial][1]
            for k, v in whole[e.trial][0].metrics.items()
        },
    )


def _parallel(s: Story) -> None:
    """Two machines work side by side: starts meet, and a breakdown that both saw has an end and no start."""
    here, there = (s.runs("pass", subject="git", repetition=7, condition=c)[0] for c in s.spec.conditions)
    s.edit(s.trial(here, there), started_at_ns=here.started_at_ns, ended_at_ns=None)
    broken = s.runs(status="harness_failure", subject="git")
    s.edit(s.trial(*broken), started_at_ns=None, ended_at_ns=broken[0].ended_at_ns)


def _unnumbered_and_launched(s: Story) -> None:
    """Nobody numbered anything, and what broke off was run again at the end of the day."""
    old = s.runs(status="unlaunched")[0]
    s.edit(
        s.trial(old),
        status="harness_failure",
        status_code="http_529",
        started_at_ns=old.recorded_at_ns - 2 * SECOND,
    )
    s.edit(kind(TrialRecorded), repetition=None)


def _broken_off(s: Story) -> None:
    """The model service failed before the first word: empty transcripts are alike."""
    s.edit(s.trial(*s.runs(status="harness_failure")), evidence_sha256=sha("an empty transcript"))


def _harness_failure_without_start(s: Story) -> None:
    """The harness failed before it could look at the clock."""
    run = s.runs(status="harness_failure")[0]
    s.edit(s.trial(run), started_at_ns=None, ended_at_ns=None)


def _declared_late_without_order(s: Story) -> None:
    """A plan that promises nothing about time or order was written down afterwards."""
    s.edit(kind(CampaignDeclared), recorded_at_ns=s.end_ns)


def _booked_and_replaced(s: Story) -> None:
    """What was booked as the agent's failure and is the service's was run again, and the new run named."""
    old = s.runs(subject="oak_installed", reached_head=False)[0]
    s.edit(s.trial(old), status_code="http_529")
    _again(s, old)


def _not_shown_and_replaced(s: Story) -> None:
    """A failure before HEAD that nothing shows was run again, and the new run named."""
    old = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(old))
    s.edit(s.reads(old), outcome="unmeasured", exit_status=77, reason="instrument_missing")
    _again(s, old)


def _again(s: Story, old: TrialRecorded) -> None:
    new = passed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


def _scored_and_read(s: Story) -> None:
    """The answers were scored, and markers in the committed files besides."""
    s.edit(kind(OracleJudged, verdict="pass"), depth="committed_payload")


def _controls_of_no_campaign(s: Story) -> None:
    """The negative controls were run once, for every campaign that uses the oracle."""
    s.edit(lambda e: isinstance(e, OracleJudged) and e.control is not None, campaign=None)


def _errors_decided(s: Story) -> None:
    """A rule says that a pass with an error is a failure."""
    contradict(s, status="error", exit_code=1)
    s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "fail", "pass_with_error"))


def _decided_twice(s: Story) -> None:
    """The same rule was recorded by two people."""
    contradict(s, status="timeout", exit_code=None)
    s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "pass"))
    s.events.insert(2, conflict_rule(s, s.spec.start_ns + 2 * SECOND, "pass"))


def _decided_as_passes(s: Story) -> None:
    """Rules say that passes beside timeouts and errors are passes; a failure beside them stays one."""
    for conflict in ("pass_with_timeout", "pass_with_error"):
        s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "pass", conflict))
    for verdict in ("pass", "fail"):
        a, b = s.runs(verdict, subject="git", reached_head=True)[:2]
        s.edit(s.trial(a), status="timeout", exit_code=None)
        s.edit(s.trial(b), status="error", exit_code=1)


def _attested_twice(s: Story) -> None:
    """A slip of the pen: another text was attested first, and then the right one."""
    word = next(e for e in s.events if isinstance(e, StudyCriteriaAttested))
    weaker = tuple(replace(c, text_sha256=sha("slip", c.criterion)) for c in word.criteria)
    s.add(replace(word, criteria=weaker, recorded_at_ns=word.recorded_at_ns - SECOND))


def _two_levels(s: Story) -> None:
    """The time of the task is claimed, and that of one of its timed units."""
    of_unit = s.spec.claims[0]
    s.replan(claims=(of_unit, replace(of_unit, operation=None)))


def _two_claims(s: Story) -> None:
    """The time is claimed to be lower, and that the store is not much larger is no claim at all."""
    first = s.spec.claims[0]
    s.replan(claims=(first, replace(first, size_permille=200, scenario="bugfix_test_loop")))


def _claimed_and_decided(s: Story) -> None:
    """Rows claim success beside timeouts and errors, and a rule says that both are failures."""
    a, b = s.runs("fail", subject="oak_installed", reached_head=True)[:2]
    s.edit(s.trial(a), status="timeout", exit_code=None, claimed_success=True)
    s.edit(s.trial(b), status="error", exit_code=1, claimed_success=True)
    s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "fail", "pass_with_timeout"))
    s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "fail", "pass_with_error"))


def _rows_claim(s: Story) -> None:
    """Rows say what they think of their success, also where they are wrong; nobody believes them."""
    s.edit(kind(TrialRecorded), claimed_success=lambda e: e.status == "completed", claimed_class="exact")


def _manifest_not_repeated(s: Story) -> None:
    """The verdicts do not repeat the digest of the tree that they judged."""
    s.edit(kind(OracleJudged), manifest_sha256=None)


def _binary_per_condition(s: Story) -> None:
    """Each model comes in an image of its own, with a build of its own, the same for Git and its null."""
    s.drop(kind(SubjectIdentified))
    for condition in s.spec.conditions:
        for name in ("git", "git_again"):
            runs = s.runs(subject=name, condition=condition)
            build = sha("build", condition.model)
            s.edit(s.trial(*runs), subject_binary_sha256=build)
            s.edit(s.reads(*runs), subject_binary_sha256=build)


def _controls_in_time(s: Story) -> None:
    """The controls have the time of the first pass."""
    first = min(e.recorded_at_ns for e in s.events if isinstance(e, OracleJudged) and e.verdict == "pass")
    s.edit(lambda e: isinstance(e, OracleJudged) and e.control is not None, recorded_at_ns=first)


def _failed_twice(s: Story) -> None:
    """A run without a HEAD at the first look had a wrong one at the second."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.edit(s.trial(run), reached_head=None)
    read = reading(run, objects_verified=3)
    s.add(read, judgement(s.spec, run, read, verdict="fail", reason="content_differs"))


def _looked_twice(s: Story) -> None:
    """The reader's time was up at the first look, and at the second there was no HEAD.

    A newer reader gives a reason of its own why a third one fails.
    """
    late = {"outcome": "unmeasured", "exit_status": 77, "reason": "deadline", "manifest_sha256": None}
    judged, read_only = (s.runs(subject=n, reached_head=False)[0] for n in ("oak_installed", "git"))
    first = reading(judged, **late)
    words = {"verdict": "unmeasured", "reason": "deadline", "depth": None, "manifest_sha256": None}
    s.add(first, judgement(s.spec, judged, first, **words), reading(read_only, **late))
    s.drop(s.verdicts(read_only))
    s.edit(s.trial(read_only), reached_head=None)
    odd = s.runs("fail", subject="git", reached_head=True)[0]
    s.edit(s.reads(odd), outcome="failed", exit_status=1, reason="odd_head", manifest_sha256=None)
    s.edit(s.verdicts(odd), manifest_sha256=None)


HONEST: dict[str, tuple[Spec, Callable[[], tuple[AnyEvent, ...]]]] = {
    "honest_agent": (AGENT, lambda: base(AGENT)),
    "honest_scripted": (SCRIPTED, lambda: base(SCRIPTED)),
    "honest_all_passed": (SCRIPTED, lambda: base(SCRIPTED, always)),
    "honest_two_models": (TWO_MODELS, lambda: base(TWO_MODELS)),
    "honest_with_diagnostic": (WITH_DIAGNOSTIC, lambda: base(WITH_DIAGNOSTIC)),
    "honest_observed": (OBSERVED, lambda: base(OBSERVED)),
    "honest_worktree": (WORKTREE, lambda: base(WORKTREE)),
    "honest_answers": (ANSWERED, lambda: base(ANSWERED)),
    "honest_core": (CORE, lambda: base(CORE)),
    "honest_operations": (OPERATIONS, lambda: base(OPERATIONS)),
    "honest_readings_of_no_trial": (SCRIPTED, lambda: told(SCRIPTED, _readings_of_no_trial)),
    "honest_same_logs": (SCRIPTED_OPERATIONS, lambda: told(SCRIPTED_OPERATIONS, _same_logs)),
    "honest_no_start": (SCRIPTED, lambda: told(SCRIPTED, _harness_failure_without_start)),
    "honest_late_without_order": (OBSERVED, lambda: told(OBSERVED, _declared_late_without_order)),
    "honest_booked_and_replaced": (SCRIPTED, lambda: told(SCRIPTED, _booked_and_replaced)),
    "honest_not_shown_and_replaced": (SCRIPTED, lambda: told(SCRIPTED, _not_shown_and_replaced)),
    "honest_controls_of_no_campaign": (
        SHARED_CONTROLS,
        lambda: told(SHARED_CONTROLS, _controls_of_no_campaign),
    ),
    "honest_errors_decided": (SCRIPTED, lambda: told(SCRIPTED, _errors_decided)),
    "honest_decided_twice": (SCRIPTED, lambda: told(SCRIPTED, _decided_twice)),
    "honest_decided_as_passes": (SCRIPTED, lambda: told(SCRIPTED, _decided_as_passes)),
    "honest_looked_twice": (SCRIPTED, lambda: told(SCRIPTED, _looked_twice)),
    "honest_attested_twice": (SCRIPTED, lambda: told(SCRIPTED, _attested_twice)),
    "honest_two_claims": (AGENT, lambda: told(AGENT, _two_claims)),
    "honest_mixed": (more_acts.MIXED, lambda: told(more_acts.MIXED, more_acts.mixed(lambda s: None))),
    "honest_everything_asked": (more_acts.EVERYTHING_ASKED, lambda: base(more_acts.EVERYTHING_ASKED)),
    "honest_same_logs_of_tasks": (SCRIPTED, lambda: told(SCRIPTED, _same_logs)),
    "honest_claimed_and_decided": (SCRIPTED, lambda: told(SCRIPTED, _claimed_and_decided)),
    "honest_rows_claim": (SCRIPTED, lambda: told(SCRIPTED, _rows_claim)),
    "honest_manifest_not_repeated": (SCRIPTED, lambda: told(SCRIPTED, _manifest_not_repeated)),
    "honest_binary_per_condition": (TWO_BUILDS, lambda: told(TWO_BUILDS, _binary_per_condition)),
    "honest_controls_in_time": (
        LAST_CONTROLS,
        lambda: told(LAST_CONTROLS, _controls_in_time),
    ),
    "honest_failed_twice": (SCRIPTED, lambda: told(SCRIPTED, _failed_twice)),
    "honest_rate_claimed": (more_acts.RATE, lambda: base(more_acts.RATE, more_acts.git_fails_often)),
    "honest_exact_claim": (AGENT, lambda: told(AGENT, lambda s: more_acts.exactly(s, 900, 1000))),
    "honest_identified_in_part": (SCRIPTED, lambda: told(SCRIPTED, _identified_in_part)),
    "honest_fixture_in_verdicts": (SCRIPTED, lambda: told(SCRIPTED, _fixture_in_verdicts)),
    "honest_scored_and_read": (ANSWERED, lambda: told(ANSWERED, _scored_and_read)),
    "honest_units_of_one_clock": (
        SCRIPTED_OPERATIONS,
        lambda: told(SCRIPTED_OPERATIONS, _units_of_one_clock),
    ),
    "honest_parallel": (
        more_acts.TWO_TRANSPORTS,
        lambda: told(more_acts.TWO_TRANSPORTS, _parallel),
    ),
    "honest_unnumbered_with_troubles": (OBSERVED, lambda: told(OBSERVED, _unnumbered_and_launched)),
    "honest_broken_off": (AGENT, lambda: told(AGENT, _broken_off)),
    "honest_many_claims": (
        MANY_CLAIMS,
        lambda: base(MANY_CLAIMS, more_acts.git_fails_often),
    ),
    "honest_two_levels": (OPERATIONS, lambda: told(OPERATIONS, _two_levels)),
    "honest_two_nulls": (TWO_NULLS, lambda: base(TWO_NULLS)),
    "honest_thirty": (THIRTY, lambda: base(THIRTY, always)),
    "honest_bare": (OBSERVED, lambda: told(OBSERVED, _bare, always)),
    "honest_instant": (SCRIPTED, lambda: told(SCRIPTED, _instant)),
    "honest_replacement_told_twice": (SCRIPTED, lambda: told(SCRIPTED, _told_twice)),
    "honest_identified_twice": (SCRIPTED, lambda: told(SCRIPTED, _identified_twice)),
    "honest_declared_again": (SCRIPTED, lambda: told(SCRIPTED, _declared_again)),
    "honest_core_of_unknowns": (CORE_OBSERVED, lambda: told(CORE_OBSERVED, _core_of_unknowns)),
    "honest_nearly_fixed": (OBSERVED_NULL, lambda: told(OBSERVED_NULL, _nearly_fixed, always)),
    "honest_failed_by_its_reader": (SCRIPTED, lambda: told(SCRIPTED, _failed_by_its_reader)),
    "honest_missing_path": (SCRIPTED, lambda: told(SCRIPTED, _missing_path)),
    "honest_failed_with_trouble": (SCRIPTED, lambda: told(SCRIPTED, _failed_with_trouble)),
    "honest_timeout_before_head": (SCRIPTED, lambda: told(SCRIPTED, _timeout_before_head)),
    "honest_found_by_the_reader": (SCRIPTED, lambda: told(SCRIPTED, _found_by_the_reader)),
    "honest_looked_closer": (AGENT, lambda: told(AGENT, _looked_closer)),
    "honest_replaced_and_invalid": (SCRIPTED, lambda: told(SCRIPTED, _invalid_and_run_again)),
    "honest_whole_agent": (WHOLE_AGENT, lambda: base(WHOLE_AGENT)),
    "honest_whole_workflow": (WHOLE_WORKFLOW, lambda: base(WHOLE_WORKFLOW)),
    "honest_timeouts_fail": (SCRIPTED, lambda: told(SCRIPTED, _decided("fail"))),
    "honest_timeouts_pass": (SCRIPTED, lambda: told(SCRIPTED, _decided("pass"))),
    "honest_timeouts_fail_late": (SCRIPTED, lambda: told(SCRIPTED, _decided_late)),
    "honest_vouched_for": (SCRIPTED, lambda: told(SCRIPTED, _vouched)),
    "honest_identified_once": (SCRIPTED, lambda: told(SCRIPTED, _said_once)),
    "honest_releases": (SCRIPTED, lambda: told(SCRIPTED, _released)),
    "honest_unnumbered": (OBSERVED, lambda: told(OBSERVED, _unnumbered, always)),
    "honest_judged_twice": (SCRIPTED, lambda: told(SCRIPTED, _two_verdicts)),
    "honest_second_look": (SCRIPTED, lambda: told(SCRIPTED, _second_look)),
}


def honest_events(name: str, number: int) -> list[AnyEvent]:
    """An honest campaign under its own name and days."""
    spec, make = HONEST[name]
    return seal(rebased(make(), spec, spec, name, number))


def pooled() -> Iterator[tuple[str, list[AnyEvent]]]:
    """Pairs of campaigns: the second of `taken` took a run of the first, those of `alike` only look so."""
    first = honest_campaign(SCRIPTED, "taken_first", 900)
    second = honest_campaign(SCRIPTED, "taken_second", 901)
    runs = [e for e in first if isinstance(e, TrialRecorded) and e.subject == "git" and e.repetition == 1]
    yield "taken_first", first
    mine, theirs = (
        next(e.trial for e in events if isinstance(e, TrialRecorded) and _slot(e) == ("git", 2))
        for events in (first, second)
    )
    named_start = next(e.started_at_ns for e in first if isinstance(e, TrialRecorded) and e.trial == mine)
    taken: list[AnyEvent] = []
    for event in second:
        if isinstance(event, TrialRecorded) and (event.subject, event.repetition) == ("git", 1):
            event = replace(event, started_at_ns=runs[0].started_at_ns)
        if getattr(event, "trial", None) == theirs:
            event = replace(event, trial=mine)
            if isinstance(event, TrialRecorded):
                event = replace(event, started_at_ns=named_start)
        taken.append(event)
    yield "taken_second", seal(rejoined(second, taken))
    # Campaigns of another scenario, and of other subjects, start runs at the same nanosecond.
    yield "alike_first", honest_campaign(SCRIPTED, "alike_first", 902)
    yield "alike_second", honest_campaign(respec(SCRIPTED, scenarios=(SYNC,)), "alike_second", 902)
    others = (SubjectPlan("git_main"), SubjectPlan("oak_main"))
    third = honest_campaign(respec(SCRIPTED, subjects=others), "alike_third", 902)
    yield "alike_third", third
    # A verdict of another campaign names a trial of the first.
    stray = next(e for e in third if isinstance(e, OracleJudged) and e.verdict == "pass")
    named = next(
        e.trial for e in honest_campaign(SCRIPTED, "alike_first", 902) if isinstance(e, TrialRecorded)
    )
    yield from twins()
    yield from merged()
    yield from named_alike()
    yield (
        "stray",
        seal([*honest_campaign(SCRIPTED, "stray", 904), replace(stray, campaign="stray", trial=named)]),
    )


def twins() -> Iterator[tuple[str, list[AnyEvent]]]:
    """Two campaigns on the same days whose trials have the same names, each name in another place.

    In one of their scenarios nobody numbered anything. The first has invalidated trials, names that only the
    second recorded, and replacements in a circle.
    """
    spec = late_acts.TWINS
    first = Story(spec, rebased(base(spec), spec, spec, "twin_first", 905))
    names = list(dict.fromkeys(e.trial for e in first.events if isinstance(e, TrialRecorded)))
    turned = dict(zip(names, names[7:] + names[:7], strict=True))
    second = Story(
        spec,
        [
            replace(e, **{k: turned[getattr(e, k)] for k in ("trial", "replacement") if hasattr(e, k)})
            if isinstance(e, TrialRecorded | TrialReplaced | ReaderInvoked | OracleJudged)
            else e
            for e in first.events
        ],
    )
    second.events = rejoined(first.events, second.events)
    second.edit(lambda e: getattr(e, "campaign", None) == "twin_first", campaign="twin_second")
    for one in (first, second):
        one.edit(lambda e: isinstance(e, TrialRecorded) and e.scenario == SYNC.scenario, repetition=None)
    passes = first.runs("pass", scenario=WIDE.scenario)
    first.add(*(invalidated(first, run) for run in passes[:9]))
    links = [e for e in first.events if isinstance(e, TrialReplaced)]
    unknown = {links[0].trial, links[1].replacement, passes[0].trial}
    first.drop(lambda e: isinstance(e, TrialRecorded) and e.trial in unknown)
    there = {e.replacement for e in second.events if isinstance(e, TrialReplaced)}
    linked = {n for e in links for n in (e.trial, e.replacement)}
    a = next(e for e in reversed(passes) if e.trial not in linked)
    b = next(e for e in first.runs() if e.trial in there - linked - unknown)
    first.add(replaced(a, b), replaced(b, a))
    yield "twin_first", seal(first.events)
    yield "twin_second", seal(second.events)


def named_alike() -> Iterator[tuple[str, list[AnyEvent]]]:
    """Two campaigns with the same trial names, in which the same runs ended before HEAD.

    In the first nobody looked; in the second one run was read well, and the reader of the other failed. One
    pass of the second names the reading of the first.
    """
    first = Story(SCRIPTED, rebased(base(SCRIPTED), SCRIPTED, SCRIPTED, "named_first", 906))
    second = Story(SCRIPTED, list(first.events))
    a, b = (first.runs(subject=n, reached_head=False)[0] for n in ("oak_installed", "git"))
    for one in (first, second):
        one.drop(one.verdicts(a, b))
        one.drop(one.reads(a, b))
    second.add(reading(a), reading(b, outcome="unmeasured", exit_status=77, reason="instrument_missing"))
    second.edit(lambda e: getattr(e, "campaign", None) == "named_first", campaign="named_second")
    sealed = seal(first.events)
    c = first.runs("pass", subject="git", reached_head=True)[3]
    read = next(e for e in sealed if first.reads(c)(e))
    second.edit(second.verdicts(c), reader_event_id=event_id(read))
    yield "named_first", sealed
    yield "named_second", seal(second.events)


def merged() -> Iterator[tuple[str, list[AnyEvent]]]:
    """Campaigns that two ledgers took in: one plan before its trials, and one after them in both."""
    for number, name in enumerate(("told_in_time", "told_late_twice")):
        events = honest_campaign(SCRIPTED, name, 910 + number)
        plan, rest = events[0], events[1:]
        yield name, [*rest, plan] if number else events


def at_the_bounds() -> Iterator[tuple[str, list[AnyEvent]]]:
    """Plans and chains of replacements that are just evaluated, and those that are a little too large."""
    for name, subjects, scenarios, trials in (
        ("plan_at_the_bound", 2, 10, 1_000_000),
        ("plan_over_the_bound", 21, 1, 952_381),
    ):
        spec = respec(
            SCRIPTED,
            campaign=name,
            subjects=tuple(SubjectPlan(f"subject_{n}") for n in range(subjects)),
            scenarios=tuple(replace(WIDE, scenario=f"scenario_{n}") for n in range(scenarios)),
            trials_per_cell=trials,
        )
        yield name, seal([declaration(spec)])
    for name, steps in (("chain_at_the_bound", 1000), ("chain_over_the_bound", 1001)):
        yield name, seal(links(name, *range(steps + 1)))
    yield "chain_into_a_circle", seal(links("chain_into_a_circle", 0, 1, 2, 3, 1))


def links(campaign: str, *names: int) -> list[AnyEvent]:
    """Replacements of each of these trials by the next."""
    return [
        TrialReplaced(
            **envelope(SCRIPTED.start_ns + n),
            campaign=campaign,
            trial=f"{campaign}/{old}",
            replacement=f"{campaign}/{new}",
            who="operator",
            why="again",
        )
        for n, (old, new) in enumerate(pairwise(names))
    ]


def _slot(run: TrialRecorded) -> tuple[str, int | None]:
    return run.subject, run.repetition


def decisions() -> list[AnyEvent]:
    """Decisions on campaigns of the suite, and on one of which nobody knows anything else."""
    made = []
    for n, (campaign, word) in enumerate(
        (
            ("honest_scripted", "diagnostic"),
            ("honest_scripted", "qualified"),
            ("honest_agent", "qualified"),
            ("decided_alone", "qualified"),
        )
    ):
        made.append(
            QualificationDecided(
                source="decisions",
                ordinal=n,
                recorded_at_ns=SCRIPTED.start_ns + (n * 7 + 1) * 86_400 * SECOND,
                campaign=campaign,
                decision=word,  # type: ignore[arg-type]
                exit_status=0 if word == "qualified" else 1,
                plan_sha256=None,
                checkpoint_origin="elsewhere",
                checkpoint_size=n + 1,
                checkpoint_root=sha("root", n),
                views_sha256=sha("views"),
                package_version="0",
                rules=(RuleResult("planned_slots", "holds", 0),),
            )
        )
    return list(made)


def rejoined(before: list[AnyEvent], after: list[AnyEvent]) -> list[AnyEvent]:
    """Let the verdicts of changed events name their readings again."""
    renamed = {event_id(a): event_id(b) for a, b in zip(before, after, strict=True)}
    return [
        replace(e, reader_event_id=renamed[e.reader_event_id])
        if isinstance(e, OracleJudged) and e.reader_event_id in renamed
        else e
        for e in after
    ]


def everything() -> Iterator[tuple[str, list[AnyEvent]]]:
    """Every campaign of the suite, honest ones first, each on days of its own."""
    for number, name in enumerate(HONEST):
        yield name, honest_events(name, number)
    for number, one in enumerate(ACTS.values(), len(HONEST)):
        yield one.name, story(one, number)
