"""Honest campaigns, and what dishonest or careless people do to them: one act a function.

Each act takes an honest campaign (`Story`), does one thing to its events, and says which rules must refuse it
and with which findings. Where one act must break a second rule too, `also` says why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from campaigns import (
    AGENT_CONDITIONS,
    CLAIMS,
    CRITERIA,
    DAY,
    OTHER_ENVIRONMENT,
    SCENARIOS,
    SCRIPT_CONDITIONS,
    SECOND,
    SUBJECTS,
    Spec,
    attested,
    envelope,
    failed,
    failed_before_head,
    harness_failure,
    honest,
    judgement,
    kind,
    passed,
    reading,
    replaced,
    respec,
    seal,
    sha,
    unmeasured,
)

from ledger.campaign import Slot
from ledger.events import (
    AnyEvent,
    CampaignDeclared,
    Claim,
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
    canonical_sha256,
    event_id,
)

WIDE = SCENARIOS[0]
BUGFIX = SCENARIOS[1]
ARCHAEOLOGY = SCENARIOS[2]
SYNC = ScenarioPlan("sync_pull_dirty", 1, 1, 1, sha("contract", "sync"), worktree=True)
ANSWER = ScenarioPlan("history_archaeology", 2, 1, 1, sha("contract", "answer"), evidence="answer")

PAIR = SUBJECTS[:2]
BLOCK = Order("blocked-sha256/1", "dice 3 3 5 2", "block")
WHOLE = Order("blocked-sha256/1", "dice 6 1 4 4", "campaign")


def usual(spec: Spec, slot: Slot, attempt: int, number: int) -> str:
    """What each trial comes to: every outcome that an honest campaign has, mostly passes."""
    oak = slot.subject == "oak_installed"
    if attempt == 0:
        trouble = {(3, False): "harness_failure", (5, True): "unlaunched", (9, False): "unmeasured"}
        word = trouble.get((slot.repetition, oak))
        if word is not None and not (word == "unmeasured" and slot.subject == "git_again"):
            return word
    if attempt == 1 and (slot.repetition, slot.subject) == (3, "git"):
        return "harness_failure"
    words = {
        (12, False): "failed",
        (12, True): "failed",
        (14, False): "failed",
        (15, True): "failed_before_head",
        (17, False): "failed_before_head",
        (20, True): "failed",
    }
    return words.get((slot.repetition, oak), "passed")


def always(spec: Spec, slot: Slot, attempt: int, number: int) -> str:
    """Every trial passes at once."""
    return "passed"


#: One scenario, scripted, two subjects.
SCRIPTED = Spec(
    "w", "workflow", PAIR, (WIDE,), SCRIPT_CONDITIONS[:1], 31, (), CRITERIA, BLOCK, preregistered=True
)
#: One scenario with tests, an agent, a claim and the null comparison behind it.
AGENT = Spec(
    "a", "agent", SUBJECTS, (BUGFIX,), AGENT_CONDITIONS[:1], 31, CLAIMS, CRITERIA, WHOLE, preregistered=True
)
#: Two conditions.
TWO_MODELS = respec(AGENT, campaign="m", subjects=PAIR, conditions=AGENT_CONDITIONS, claims=(), order=BLOCK)
#: A scenario that is diagnostic beside one that is compared.
WITH_DIAGNOSTIC = respec(SCRIPTED, campaign="d", scenarios=(WIDE, ARCHAEOLOGY), order=WHOLE)
#: Nobody declared an order.
OBSERVED = respec(SCRIPTED, campaign="o", order=None, preregistered=False)
#: The worktree counts too.
WORKTREE = respec(SCRIPTED, campaign="t", scenarios=(SYNC,))
#: The answer counts, and controls were refused.
ANSWERED = respec(SCRIPTED, campaign="n", scenarios=(ANSWER,))
#: A lane that rules 2, 4 and 5 do not bind.
CORE = respec(SCRIPTED, campaign="c", lane="core")
#: Both lanes as a team runs them: several scenarios, conditions, a null, a claim, a diagnostic scenario.
WHOLE_AGENT = Spec(trials_per_cell=31, campaign="wa")
WHOLE_WORKFLOW = Spec("ww", "workflow", conditions=SCRIPT_CONDITIONS, order=BLOCK, trials_per_cell=31)


@functools.cache
def base(spec: Spec, outcome: Any = usual) -> tuple[AnyEvent, ...]:
    """The events of an honest campaign, made once."""
    return tuple(_answered(spec, honest(spec, outcome)))


def _answered(spec: Spec, events: list[AnyEvent]) -> list[AnyEvent]:
    """Put answers and negative controls into a campaign whose scenario asks for an answer."""
    asked = {(s.scenario, s.scenario_version): s for s in spec.scenarios if s.evidence == "answer"}
    if not asked:
        return events
    out: list[AnyEvent] = []
    for event in events:
        if isinstance(event, OracleJudged) and (event.scenario, event.scenario_version) in asked:
            word = {"pass": "pass", "fail": "fail"}.get(event.verdict)
            if event.reason == "no_committed_head":
                word = None
            event = msgspec.structs.replace(event, answer=word)
        out.append(event)
    for s in asked.values():
        out[1:1] = [control(spec, s, "absent"), control(spec, s, "wrong")]
    return out


def control(spec: Spec, s: ScenarioPlan, word: str, **facts: Any) -> OracleJudged:
    """A negative control that the oracle refused before the runs."""
    values: dict[str, Any] = {
        "scenario": s.scenario,
        "scenario_version": s.scenario_version,
        "oracle_version": s.oracle_version,
        "fixture_version": s.fixture_version,
        "contract_sha256": s.contract_sha256,
        "verdict": "fail",
        "reason": f"answer_{word}",
        "campaign": spec.campaign,
        "answer": "fail",
        "control": word,
    }
    return OracleJudged(**envelope(spec.start_ns + SECOND), **{**values, **facts})


@dataclass
class Story:
    """A campaign that something is done to."""

    spec: Spec
    events: list[AnyEvent]

    def edit(self, where: Callable[[Any], bool], limit: int | None = None, **changes: Any) -> None:
        """Change fields of the events that `where` picks. A value may be a function of the event."""
        renamed: dict[str, str] = {}
        done = 0
        for n, event in enumerate(self.events):
            if isinstance(event, OracleJudged) and event.reader_event_id in renamed:
                event = msgspec.structs.replace(event, reader_event_id=renamed[event.reader_event_id])
            if where(event) and (limit is None or done < limit):
                done += 1
                old = event_id(event)
                event = msgspec.structs.replace(
                    event, **{k: v(event) if callable(v) else v for k, v in changes.items()}
                )
                renamed[old] = event_id(event)
            self.events[n] = event
        assert done, "nothing was changed: the act would prove nothing"

    def drop(self, where: Callable[[Any], bool]) -> list[AnyEvent]:
        """Take events out and return them."""
        gone = [e for e in self.events if where(e)]
        assert gone, "nothing was dropped: the act would prove nothing"
        self.events = [e for e in self.events if not where(e)]
        return gone

    def add(self, *events: AnyEvent) -> None:
        """Put events at the end."""
        self.events += events

    def runs(self, verdict: str | None = None, **facts: Any) -> list[TrialRecorded]:
        """Trials with these fields, in their order; `verdict` picks those with such a verdict."""
        pick = kind(TrialRecorded, **facts)
        found = [e for e in self.events if pick(e)]
        if verdict is not None:
            named = {e.trial for e in self.events if isinstance(e, OracleJudged) and e.verdict == verdict}
            found = [e for e in found if e.trial in named]
        assert found, "no such trial"
        return found

    def of(self, *runs: TrialRecorded) -> Callable[[Any], bool]:
        """Pick everything that is about these trials, their setting aside included."""
        names = {r.trial for r in runs}
        return lambda e: getattr(e, "trial", None) in names or getattr(e, "replacement", None) in names

    def trial(self, *runs: TrialRecorded) -> Callable[[Any], bool]:
        """Pick the records of these trials."""
        names = {r.trial for r in runs}
        return lambda e: isinstance(e, TrialRecorded) and e.trial in names

    def reads(self, *runs: TrialRecorded) -> Callable[[Any], bool]:
        """Pick the reader invocations of these trials."""
        names = {r.trial for r in runs}
        return lambda e: isinstance(e, ReaderInvoked) and e.trial in names

    def verdicts(self, *runs: TrialRecorded) -> Callable[[Any], bool]:
        """Pick the verdicts on these trials."""
        names = {r.trial for r in runs}
        return lambda e: isinstance(e, OracleJudged) and e.trial in names

    def replan(self, **changes: Any) -> None:
        """Change the plan in the declaration, as if it had been so from the start."""
        self.edit(kind(CampaignDeclared), plan=lambda e: msgspec.structs.replace(e.plan, **changes))

    def slot(self, run: TrialRecorded, repetition: int | None = None) -> Slot:
        """The slot of a trial, or the same cell's of another repetition."""
        number = run.repetition if repetition is None else repetition
        assert number is not None
        key = canonical_sha256(run.condition)
        return Slot(None, None, None, run.scenario, run.scenario_version, key, number, run.subject)

    @property
    def end_ns(self) -> int:
        """A time at which nothing else happens, after all trials and before the attestation."""
        at = max(e.ended_at_ns or 0 for e in self.events if isinstance(e, TrialRecorded))
        return at + 100 * SECOND

    def late(self) -> None:
        """Attest again, after whatever was added."""
        self.drop(kind(StudyCriteriaAttested))
        self.add(attested(self.spec, self.end_ns + 3600 * SECOND))


@dataclass(frozen=True)
class Act:
    """One thing that somebody did, and what must come of it."""

    name: str
    why: str
    spec: Spec
    do: Callable[[Story], object]
    expect: dict[str, set[str]]
    also: str | None
    outcome: Any
    notes: dict[str, set[str]] = field(default_factory=dict)
    partners: tuple[str, ...] = ()


ACTS: dict[str, Act] = {}


def act(
    spec: Spec,
    *,
    also: str | None = None,
    outcome: Any = usual,
    notes: dict[str, set[str]] | None = None,
    name: str | None = None,
    **expect: str,
) -> Callable[[Callable[[Story], object]], Callable[[Story], object]]:
    """Register an act on a base campaign. `expect` is rule id -> the findings, parted by spaces."""

    def register(do: Callable[[Story], object]) -> Callable[[Story], object]:
        key = name or do.__name__
        assert key not in ACTS, key
        wanted = {rule: set(words.split()) for rule, words in expect.items()}
        assert len(wanted) <= 1 or also, f"{key}: say why a second rule fires"
        ACTS[key] = Act(key, do.__doc__ or "", spec, do, wanted, also, outcome, notes or {})
        return do

    return register


def both(
    **expect: str,
) -> Callable[[Callable[[Story], object]], Callable[[Story], object]]:
    """Register an act on a scripted campaign and on one of agents."""

    def register(do: Callable[[Story], object]) -> Callable[[Story], object]:
        for spec in (SCRIPTED, AGENT):
            act(spec, name=f"{do.__name__}_{spec.lane}", **expect)(do)  # type: ignore[arg-type]
        return do

    return register


def story(one: Act, number: int) -> list[AnyEvent]:
    """The events of an act, in a campaign and on days of its own."""
    told = Story(one.spec, rebased(base(one.spec, one.outcome), one.spec, one.spec, None, 0))
    one.do(told)
    return seal(rebased(told.events, one.spec, one.spec, one.name, number))


def honest_campaign(spec: Spec, name: str, number: int, outcome: Any = usual) -> list[AnyEvent]:
    """An honest campaign under a name of its own, on days of its own."""
    return seal(rebased(base(spec, outcome), spec, spec, name, number))


def rebased(
    events: Iterable[AnyEvent], spec: Spec, _: Spec, name: str | None, number: int
) -> list[AnyEvent]:
    """Give every event another campaign, other trial names and other days; readings stay named."""
    if name is None:
        return list(events)
    shift = number * 3 * 86_400 * SECOND
    renamed: dict[str, str] = {}
    out: list[AnyEvent] = []
    for event in events:
        changes: dict[str, Any] = {"recorded_at_ns": event.recorded_at_ns + shift}
        if getattr(event, "campaign", None) == spec.campaign:
            changes["campaign"] = name
        for key in ("trial", "replacement"):
            if (text := getattr(event, key, None)) is not None:
                changes[key] = text.replace(f"{spec.campaign}/", f"{name}/", 1)
        for key in ("started_at_ns", "ended_at_ns"):
            if (at := getattr(event, key, None)) is not None:
                changes[key] = at + shift
        if isinstance(event, OracleJudged) and event.reader_event_id in renamed:
            changes["reader_event_id"] = renamed[event.reader_event_id]
        old = event_id(event)
        event = msgspec.structs.replace(event, **changes)
        renamed[old] = event_id(event)
        out.append(event)
    return out


def replace(value: Any, **changes: Any) -> Any:
    """Shorter for msgspec.structs.replace."""
    return msgspec.structs.replace(value, **changes)


# Rule 1: declared, and every planned trial measured


@both(planned_slots="slots_missing")
def dropped_failure(s: Story) -> None:
    """A failed run of Oak is left out of the upload."""
    s.drop(s.of(s.runs("fail", subject="oak_installed", reached_head=True)[0]))


@both(planned_slots="slots_missing")
def dropped_failure_before_head(s: Story) -> None:
    """A run that never committed anything is left out: there was nothing to read."""
    s.drop(s.of(s.runs(subject="oak_installed", reached_head=False)[0]))


@act(SCRIPTED, planned_slots="slots_missing")
def forgotten_trial(s: Story) -> None:
    """A passed run was never uploaded."""
    s.drop(s.of(s.runs("pass", subject="git")[4]))


@act(
    SCRIPTED,
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    condition_coverage="hole",
    also="a cell without trials has neither thirty of them nor the other subject's condition",
)
def cell_without_trials(s: Story) -> None:
    """Git was never run under the condition."""
    s.drop(s.of(*s.runs(subject="git")))


@act(SCRIPTED, planned_slots="slot_harness_failure")
def harness_failure_left(s: Story) -> None:
    """Nobody ran the trial again after the service had failed."""
    first = s.runs(subject="oak_installed", repetition=5)[0]
    s.edit(
        s.trial(first),
        status="harness_failure",
        status_code="http_529",
        started_at_ns=first.recorded_at_ns - 2 * SECOND,
    )
    s.drop(s.of(s.runs(subject="oak_installed", repetition=5)[1]))


@act(SCRIPTED, planned_slots="slot_unlaunched")
def unlaunched_left(s: Story) -> None:
    """Nobody launched the trial again."""
    s.drop(s.of(s.runs(subject="oak_installed", repetition=5)[1]))


@act(SCRIPTED, planned_slots="slot_unmeasured")
def unmeasured_left(s: Story) -> None:
    """Nobody ran the trial again after the reader's time was up."""
    s.drop(s.of(s.runs(subject="git", repetition=9)[1]))


@act(SCRIPTED, planned_slots="slot_unmeasured")
def unreadable_left(s: Story) -> None:
    """The store was in use each time it was read; nobody counts that."""
    run = s.runs("pass", subject="oak_installed")[3]
    s.edit(
        s.reads(run),
        outcome="unmeasured",
        exit_status=77,
        reason="not_quiescent",
        manifest_sha256=None,
        entries=None,
    )
    s.edit(
        s.verdicts(run),
        verdict="unmeasured",
        reason="not_quiescent",
        depth=None,
        manifest_sha256=None,
    )


@act(SCRIPTED, planned_slots="slot_unmeasured")
def never_judged(s: Story) -> None:
    """The repository was read and no oracle asked."""
    s.drop(s.verdicts(s.runs("pass", subject="oak_installed")[3]))


@both(planned_slots="measured_attempt_replaced")
def measured_failure_replaced(s: Story) -> None:
    """A failed run is run again, and the second result is to count."""
    old = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    new = passed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


@act(SCRIPTED, planned_slots="measured_attempt_replaced")
def failure_before_head_replaced(s: Story) -> None:
    """A run without a commit is called a hiccup and run again."""
    old = s.runs(subject="oak_installed", reached_head=False)[0]
    new = passed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


@act(SCRIPTED, planned_slots="measured_attempt_replaced")
def pass_replaced(s: Story) -> None:
    """A passed run of Git is replaced by one that fails."""
    old = s.runs("pass", subject="git")[2]
    new = failed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


@act(SCRIPTED, planned_slots="replaced_trial_unknown")
def replaced_trial_hidden(s: Story) -> None:
    """The attempt that is replaced was never shown to anybody."""
    old = s.runs(subject="oak_installed", repetition=5)[0]
    s.drop(s.trial(old))


@act(
    SCRIPTED,
    planned_slots="replacement_unknown slot_unlaunched",
)
def replacement_promised(s: Story) -> None:
    """A replacement is named that nobody ever ran."""
    new = s.runs(subject="oak_installed", repetition=5)[1]
    s.drop(lambda e: s.of(new)(e) and not isinstance(e, TrialReplaced))


@act(SCRIPTED, planned_slots="replacement_circle slot_twice")
def replacements_in_a_circle(s: Story) -> None:
    """Each of two attempts stands in for the other, so that either may be shown."""
    old, new = s.runs(subject="oak_installed", repetition=5)
    s.add(replaced(new, old))


@act(SCRIPTED, planned_slots="replaced_twice slot_twice")
def replaced_until_it_passed(s: Story) -> None:
    """An attempt gets two replacements; one of them has the wanted result."""
    old = s.runs(subject="oak_installed", repetition=5)[0]
    new = failed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


@act(SCRIPTED, planned_slots="replaces_two replacement_elsewhere slot_unmeasured")
def one_replacement_for_two(s: Story) -> None:
    """One good run is to stand in for two attempts."""
    old = s.runs(subject="git", repetition=9)
    other = s.runs(subject="git", repetition=3)
    s.drop(s.of(old[1]))
    s.add(replaced(old[0], other[2]))


@act(SCRIPTED, planned_slots="replacement_elsewhere")
def replacement_of_another_slot(s: Story) -> None:
    """A spare run of another repetition is put in the place of a broken one."""
    new = s.runs(subject="oak_installed", repetition=5)[1]
    s.edit(s.trial(new), repetition=6)


@act(SCRIPTED, planned_slots="replacement_elsewhere slot_unlaunched slot_twice")
def replacement_of_another_subject(s: Story) -> None:
    """A run of Git stands in for one of Oak."""
    old, new = s.runs(subject="oak_installed", repetition=5)
    s.drop(s.of(new))
    other = passed(s.spec, replace_slot(s.slot(old), subject="git"), s.end_ns, 7)
    s.add(*other, replaced(old, other[0]))  # type: ignore[arg-type]
    s.late()


def replace_slot(slot: Slot, **changes: Any) -> Slot:
    """A slot with other fields."""
    values = {k: getattr(slot, k) for k in slot.__dataclass_fields__}
    return Slot(**{**values, **changes})


@act(SCRIPTED, planned_slots="replacement_earlier")
def replacement_from_before(s: Story) -> None:
    """The replacement had been run before the attempt that it replaces."""
    old, new = s.runs(subject="git", repetition=9)
    start = old.started_at_ns
    assert start is not None
    s.edit(s.trial(new), started_at_ns=start - 10 * SECOND, ended_at_ns=start - 9 * SECOND)


@act(SCRIPTED, planned_slots="slot_twice")
def failure_run_again_in_silence(s: Story) -> None:
    """A failed slot is run again, and no replacement is named."""
    old = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.add(*passed(s.spec, s.slot(old), s.end_ns, 7))
    s.late()


@act(SCRIPTED, planned_slots="slot_invalidated")
def passes_of_the_other_invalidated(s: Story) -> None:
    """A passed run of Git is called invalid."""
    run = s.runs("pass", subject="git")[5]
    s.add(invalidated(s, run))


def invalidated(s: Story, run: TrialRecorded, who: str = "operator") -> TrialInvalidated:
    """The event that takes a trial out of the count."""
    return TrialInvalidated(
        **envelope(s.end_ns), campaign=run.campaign, trial=run.trial, who=who, why="Something was odd."
    )


@act(SCRIPTED, planned_slots="invalidated_trial_unknown")
def invalidated_and_hidden(s: Story) -> None:
    """A trial is called invalid that nobody was shown."""
    run = s.runs("pass", subject="git")[5]
    s.add(replace(invalidated(s, run), trial=f"{s.spec.campaign}/never-shown"))


@act(SCRIPTED, planned_slots="off_plan_repetition")
def more_trials_than_planned(s: Story) -> None:
    """Oak is run a few times more, to see whether the rate gets better."""
    run = s.runs("pass", subject="oak_installed")[0]
    for n in (31, 32, 33):
        s.add(*passed(s.spec, s.slot(run, n), s.end_ns))
    s.late()


@act(SCRIPTED, planned_slots="off_plan_subject")
def subject_off_the_plan(s: Story) -> None:
    """A third build is run beside the planned ones."""
    run = s.runs("pass", subject="oak_installed")[0]
    s.add(*passed(s.spec, replace_slot(s.slot(run), subject="oak_main"), s.end_ns))
    s.late()


@act(SCRIPTED, planned_slots="off_plan_scenario")
def scenario_off_the_plan(s: Story) -> None:
    """A scenario that the plan does not have is slipped in."""
    run = s.runs("pass", subject="oak_installed")[0]
    wider = respec(s.spec, scenarios=(WIDE, BUGFIX))
    made = replace_slot(s.slot(run), scenario=BUGFIX.scenario, scenario_version=BUGFIX.scenario_version)
    s.add(*passed(wider, made, s.end_ns))
    s.late()


@act(SCRIPTED, planned_slots="off_plan_scenario_version slots_missing")
def scenario_versions_pooled(s: Story) -> None:
    """A trial of version 2 of the scenario is counted with those of version 1."""
    run = s.runs("pass", subject="oak_installed")[1]
    s.edit(s.trial(run), scenario_version=2)
    s.edit(s.verdicts(run), scenario_version=2)


@act(SCRIPTED, planned_slots="evidence_without_trial slots_missing")
def record_of_a_failure_dropped(s: Story) -> None:
    """The record of a failed run goes, and what was read of it stays."""
    s.drop(s.trial(s.runs("fail", subject="oak_installed", reached_head=True)[0]))


@act(SCRIPTED, planned_slots="declared_differently")
def declared_twice(s: Story) -> None:
    """Two plans are declared before the runs, to choose one afterwards."""
    first = next(e for e in s.events if isinstance(e, CampaignDeclared))
    second = replace(
        first,
        recorded_at_ns=first.recorded_at_ns + SECOND,
        plan=replace(first.plan, claims=(Claim("wall_ns", "git", "oak_installed", "lower", 50),)),
    )
    s.events.insert(1, second)


@act(SCRIPTED, planned_slots="no_comparison")
def compared_with_itself(s: Story) -> None:
    """The only other subject is the first one again."""
    s.replan(subjects=(SubjectPlan("git"), SubjectPlan("oak_installed", null_of="git")))
    both_names = {"subject_binary_sha256": sha("binary", "git"), "subject_version": "1", "subject_source_sha256": None}
    s.edit(kind(TrialRecorded), subject_dirty=None, **both_names)
    s.drop(kind(SubjectIdentified))


@act(
    WITH_DIAGNOSTIC,
    planned_slots="all_diagnostic",
)
def everything_diagnostic(s: Story) -> None:
    """Every scenario is listed as diagnostic, so that no rule binds."""
    s.replan(scenarios=(replace(WIDE, diagnostic=True), ARCHAEOLOGY))


@act(
    SCRIPTED,
    planned_slots="plan_ambiguous",
)
def scenario_planned_twice(s: Story) -> None:
    """A scenario stands in the plan with two evidence demands."""
    s.replan(scenarios=(WIDE, replace(WIDE, evidence="committed_payload")))


@act(SCRIPTED, planned_slots="other_lane")
def run_on_another_lane(s: Story) -> None:
    """The trials ran on the core lane, where fewer rules bind, and are shown as workflow."""
    s.edit(s.trial(*s.runs(subject="oak_installed")[:4]), lane="core")


@act(
    CORE,
    planned_slots="other_lane",
)
def core_plan_for_workflow_runs(s: Story) -> None:
    """The plan says core, so that fewer rules bind, and scripted workflows were run."""
    s.edit(s.trial(*s.runs(subject="oak_installed")[:4]), lane="workflow")


@act(
    SCRIPTED,
    planned_slots="plan_too_large off_plan_repetition",
    sample_size="too_few_measured",
    condition_coverage="hole",
    also="no slot is derived from a plan of that size, so none is measured",
)
def plan_without_end(s: Story) -> None:
    """A plan of so many trials that nobody could evaluate it."""


del plan_without_end
ACTS.pop("plan_without_end")
