"""Honest campaigns, and what dishonest or careless people do to them: one act a function.

Each act takes an honest campaign (`Story`), does one thing to its events, and says which rules must refuse it
and with which findings. Where one act must break a second rule too, `also` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from campaigns import (
    AGENT_CONDITIONS,
    CLAIMS,
    CRITERIA,
    OTHER_ENVIRONMENT,
    SCENARIOS,
    SCRIPT_CONDITIONS,
    SECOND,
    SUBJECTS,
    Spec,
    attested,
    envelope,
    failed,
    honest,
    judgement,
    kind,
    passed,
    reading,
    replaced,
    respec,
    seal,
    sha,
)

from ledger.campaign import Slot
from ledger.events import (
    AnyEvent,
    CampaignDeclared,
    Claim,
    ConflictRuleRecorded,
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
#: The same, where each timed unit of a run has a record of its own, and the claim is on one of them.
OPERATIONS = respec(
    AGENT,
    campaign="ops",
    claims=(Claim("wall_ns", "oak_installed", "git", "lower", 100, operation="commit"),),
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
CORE_OBSERVED = respec(CORE, campaign="co", order=None, preregistered=False)
#: Exactly thirty trials a cell.
THIRTY = respec(SCRIPTED, campaign="w30", trials_per_cell=30)
#: Nobody declared an order, and a subject is measured twice.
OBSERVED_NULL = respec(OBSERVED, campaign="on", subjects=SUBJECTS)
#: Both lanes as a team runs them: several scenarios, conditions, a null, a claim, a diagnostic scenario.
WHOLE_AGENT = Spec(trials_per_cell=31, campaign="wa")
WHOLE_WORKFLOW = Spec("ww", "workflow", conditions=SCRIPT_CONDITIONS, order=BLOCK, trials_per_cell=31)


_BASES: dict[tuple[str, Any], tuple[AnyEvent, ...]] = {}


def base(spec: Spec, outcome: Any = usual) -> tuple[AnyEvent, ...]:
    """The events of an honest campaign, made once."""
    key = (repr(spec), outcome)
    if key not in _BASES:
        events = _answered(spec, honest(spec, outcome))
        _BASES[key] = tuple(_with_operations(events) if spec.campaign == "ops" else events)
    return _BASES[key]


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


def _with_operations(events: list[AnyEvent]) -> Iterator[AnyEvent]:
    """Record each completed run once for the task and once for each timed unit."""
    for event in events:
        yield event
        if not isinstance(event, TrialRecorded) or event.status != "completed":
            continue
        wall = event.metrics["wall_ns"]
        assert wall is not None and event.started_at_ns is not None and event.ended_at_ns is not None
        for unit, share in (("commit", 4), ("status", 9)):
            yield msgspec.structs.replace(
                event,
                operation=unit,
                metrics={"wall_ns": wall // share},
                row_sha256=sha("row", unit, event.trial),
                started_at_ns=event.started_at_ns + share,
                ended_at_ns=event.ended_at_ns - share,
            )


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
        done = changed = 0
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
                changed += renamed[old] != old
            self.events[n] = event
        assert done and changed, "nothing was changed: the act would prove nothing"

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


def rebased(events: Iterable[AnyEvent], spec: Spec, _: Spec, name: str | None, number: int) -> list[AnyEvent]:
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
    planned_slots="replacement_unknown slots_missing",
)
def replacement_promised(s: Story) -> None:
    """A replacement is named that nobody ever ran."""
    new = s.runs(subject="oak_installed", repetition=5)[1]
    s.drop(lambda e: s.of(new)(e) and not isinstance(e, TrialReplaced))


@act(SCRIPTED, planned_slots="replacement_circle measured_attempt_replaced slot_unlaunched slot_twice")
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


@act(SCRIPTED, planned_slots="replaces_two replacement_elsewhere slot_harness_failure")
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


@act(SCRIPTED, planned_slots="replacement_elsewhere slots_missing slot_twice")
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


@act(
    SCRIPTED,
    planned_slots="off_plan_subject",
    condition_coverage="hole",
    also="what one subject has off the plan, the other has not",
)
def subject_off_the_plan(s: Story) -> None:
    """A third build is run beside the planned ones."""
    run = s.runs("pass", subject="oak_installed")[0]
    s.add(*passed(s.spec, replace_slot(s.slot(run), subject="oak_main"), s.end_ns))
    s.late()


@act(
    SCRIPTED,
    planned_slots="off_plan_scenario",
    condition_coverage="hole",
    also="what one subject has off the plan, the other has not",
)
def scenario_off_the_plan(s: Story) -> None:
    """A scenario that the plan does not have is slipped in."""
    run = s.runs("pass", subject="oak_installed")[0]
    wider = respec(s.spec, scenarios=(WIDE, BUGFIX))
    made = replace_slot(s.slot(run), scenario=BUGFIX.scenario, scenario_version=BUGFIX.scenario_version)
    s.add(*passed(wider, made, s.end_ns))
    s.late()


@act(
    SCRIPTED,
    planned_slots="off_plan_scenario_version slots_missing",
    condition_coverage="hole",
    also="what one subject has off the plan, the other has not",
)
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
    both_names = {
        "subject_binary_sha256": sha("binary", "git"),
        "subject_version": "1",
        "subject_source_sha256": None,
    }
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


FILLERS = tuple(ScenarioPlan(f"filler_{n}", 1, 1, 1, sha("contract", n), diagnostic=True) for n in range(10))


@act(
    SCRIPTED,
    planned_slots="plan_too_large",
    condition_coverage="hole",
    correctness_class="nothing_measured",
    order="order_not_followed",
    also="no slot is derived from a plan of that size, so none is measured",
    name="plan_without_end",
)
def plan_without_end(s: Story) -> None:
    """A plan of so many trials that nobody could evaluate it."""
    s.replan(trials_per_cell=1_000_000, scenarios=(WIDE, *FILLERS))


def every_rule(finding: str) -> dict[str, str]:
    """The same finding from every rule but the one about the file."""
    return {rule: finding for rule in RULES if rule != "ledger"}


RULES = (
    "planned_slots",
    "sample_size",
    "condition_coverage",
    "environment",
    "order",
    "identity",
    "correctness_class",
    "failures",
    "exact_output",
    "conflicts",
    "noise_floor",
    "preregistration",
    "study_criteria",
    "ledger",
)


@act(
    SCRIPTED,
    also="nothing to look at is a violation of every rule: none fails open",
    **{
        **every_rule("no_trials"),
        "planned_slots": "no_trials slots_missing",
        "condition_coverage": "no_trials hole",
        "sample_size": "no_trials too_few_recorded",
        "order": "no_trials order_not_followed",
        "study_criteria": "no_trials not_attested",
    },
)
def empty_campaign(s: Story) -> None:
    """A plan and nothing else."""
    s.drop(lambda e: not isinstance(e, CampaignDeclared))


@act(
    SCRIPTED,
    also="without a plan there is nothing to hold anything against: every rule says so",
    **{
        **every_rule("not_declared"),
        "failures": "not_declared failure_not_shown",
        "sample_size": "not_declared too_few_measured",
    },
)
def undeclared_campaign(s: Story) -> None:
    """Trials without a plan."""
    s.drop(kind(CampaignDeclared))


# Rule 2: thirty distinct trials a cell

SHORT = respec(SCRIPTED, campaign="s", trials_per_cell=29)


@act(respec(SHORT, campaign="s1"), outcome=always, sample_size="too_few_recorded")
def twenty_nine_trials(s: Story) -> None:
    """The budget ended at 29 trials a cell."""


@act(SHORT, sample_size="too_few_measured")
def thirty_with_those_replaced(s: Story) -> None:
    """Thirty records, of which one is the attempt that another replaced."""


@act(
    SCRIPTED,
    sample_size="copied_trial iterations",
    order="start_equal order_differs",
    also="a whole copy has the start time too",
)
def copied_under_a_new_id(s: Story) -> None:
    """A failed run is left out and a passed one copied into its place under a new id."""
    _copy(s, evidence=True)


def _copy(s: Story, evidence: bool, **facts: Any) -> None:
    bad = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    good = s.runs("pass", subject="oak_installed", reached_head=True)[4]
    read = next(e for e in s.events if s.reads(good)(e))
    assert isinstance(read, ReaderInvoked)
    values: dict[str, Any] = {"trial": bad.trial, "repetition": bad.repetition, **facts}
    if not evidence:
        values |= {"evidence_sha256": sha("other"), "row_sha256": sha("other")}
    copy = replace(good, **values)
    n = next(i for i, e in enumerate(s.events) if e is bad)
    s.drop(s.of(bad))
    new_read = reading(copy, head=read.head)
    s.events[n:n] = [copy, new_read, judgement(s.spec, copy, new_read)]


@act(
    SCRIPTED,
    sample_size="copied_trial iterations",
    order="start_equal order_differs",
    also="the start time is the copied one",
)
def copied_with_the_times_alone(s: Story) -> None:
    """A passed run is copied with another transcript and row, and its times."""
    _copy(s, evidence=False)


@act(SCRIPTED, sample_size="copied_trial")
def copied_row_at_another_time(s: Story) -> None:
    """A copy gets the times of the failed run that it hides; it was made from the same harness row."""
    bad = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    _copy(
        s,
        evidence=True,
        started_at_ns=bad.started_at_ns,
        ended_at_ns=bad.ended_at_ns,
        process_key="pid-other",
        evidence_sha256=sha("other evidence"),
    )


@act(SCRIPTED, sample_size="copied_trial")
def copied_metrics_and_log(s: Story) -> None:
    """A copy with other times and another row still has the log and the metrics of the first."""
    bad = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    _copy(
        s,
        evidence=True,
        started_at_ns=bad.started_at_ns,
        ended_at_ns=bad.ended_at_ns,
        process_key="pid-other",
        row_sha256=sha("other row"),
    )


@act(AGENT, sample_size="copied_trial")
def one_transcript_for_two_runs(s: Story) -> None:
    """Two trials keep the transcript of one conversation."""
    a, b = s.runs("pass", subject="oak_installed", reached_head=True)[6:8]
    s.edit(s.trial(b), evidence_sha256=a.evidence_sha256)


@act(SCRIPTED, sample_size="iterations")
def iterations_as_trials(s: Story) -> None:
    """Five loops inside one process are booked as five trials."""
    s.edit(s.trial(*s.runs(subject="git")[:5]), process_key="pid-one")


@act(
    SCRIPTED,
    sample_size="identity_twice identity_in_two_cells",
    planned_slots="slots_missing",
    also="one execution cannot fill two slots",
)
def one_identity_for_two(s: Story) -> None:
    """Two runs are recorded under one trial id."""
    # Of two blocks in which Git came first: whichever of the records counts, its start fits the order.
    a, b = [
        r
        for r in s.runs("pass", subject="git", reached_head=True)
        if (o := s.runs(subject="oak_installed", repetition=r.repetition)[0]).started_at_ns
        and (r.started_at_ns or 0) < (o.started_at_ns or 0)
        and len(s.runs(subject="git", repetition=r.repetition)) == 1
    ][:2]
    s.drop(lambda e: s.of(b)(e) and not isinstance(e, TrialRecorded))
    s.edit(s.trial(b), trial=a.trial)


@act(SCRIPTED, sample_size="identity_twice")
def recorded_again_otherwise(s: Story) -> None:
    """The record of a trial comes a second time with other figures."""
    run = s.runs("pass", subject="git", reached_head=True)[6]
    s.add(replace(run, metrics={"wall_ns": 1}, recorded_at_ns=run.recorded_at_ns + SECOND))


# Rule 3: the same conditions for every subject


def _other_condition(**facts: Any) -> Callable[[Story], None]:
    def do(s: Story) -> None:
        run = s.runs("pass", subject="oak_installed", reached_head=True)[3]
        s.edit(s.trial(run), condition=replace(run.condition, **facts))

    return do


for _name, _doc, _facts in (
    ("renamed_model", "One run used another model.", {"model": "model-b-20260101"}),
    ("other_agent", "One run used another agent program.", {"agent": "otherbot"}),
    ("other_agent_version", "The agent program updated itself for a run.", {"agent_version": "2.2"}),
    ("other_instructions", "One prompt had another text.", {"instruction_sha256": sha("longer")}),
    ("other_instruction_level", "One prompt explained more.", {"instruction_level": "full"}),
    ("other_track", "One run had other command semantics.", {"track": "core-equivalent"}),
    ("other_transport", "One run went over another transport.", {"transport": "https"}),
    ("other_limits", "One run had twice the time.", {"limits": {"wall_ns": 1800 * SECOND}}),
    ("unknown_model", "One record does not say which model ran.", {"model": None}),
):
    _do = _other_condition(**_facts)
    _do.__doc__ = _doc
    _unknown = " condition_unknown" if None in _facts.values() else ""
    act(
        AGENT,
        name=_name,
        condition_coverage="condition_not_planned" + _unknown,
        planned_slots="slots_missing",
        also="the planned slot of that run is empty",
    )(_do)


@act(
    AGENT,
    condition_coverage="condition_not_planned hole",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    noise_floor="metric_unmeasured",
    also="the planned cell of that subject is empty, and a claim on it has no value",
)
def one_subject_under_another_model(s: Story) -> None:
    """All of Oak's runs used a newer model: a group of its own."""
    runs = s.runs(subject="oak_installed")
    s.edit(s.trial(*runs), condition=replace(runs[0].condition, model="model-c-20260201"))


@act(AGENT, condition_coverage="condition_not_planned")
def extra_condition_for_one(s: Story) -> None:
    """Oak also ran under a model that nobody planned."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[0]
    extra = replace(run.condition, model="model-c-20260201")
    wider = respec(s.spec, conditions=(*s.spec.conditions, extra))
    for n in range(3):
        slot = replace_slot(s.slot(run, n), condition_key=canonical_sha256(extra))
        s.add(*passed(wider, slot, s.end_ns))
    s.late()


@act(
    TWO_MODELS,
    condition_coverage="hole",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    also="a planned cell is empty",
)
def condition_of_one_subject_left_out(s: Story) -> None:
    """Oak was not run with the second model."""
    second = AGENT_CONDITIONS[1]
    s.drop(s.of(*s.runs(subject="oak_installed", condition=second)))


for _field in ("agent", "agent_version", "model", "instruction_level", "instruction_sha256", "track"):

    def _unknown_everywhere(s: Story, field: str = _field) -> None:
        condition = replace(s.spec.conditions[0], **{field: None})
        s.replan(conditions=(condition,))
        s.edit(kind(TrialRecorded), condition=condition)

    _unknown_everywhere.__doc__ = f"Neither plan nor records say the {_field}."
    act(
        respec(AGENT, order=None, preregistered=False, claims=(), campaign="u"),
        name=f"{_field}_never_known",
        condition_coverage="condition_unknown",
    )(_unknown_everywhere)


@act(respec(OBSERVED, campaign="u2"), condition_coverage="condition_unknown")
def track_of_scripts_never_known(s: Story) -> None:
    """Nobody says which command semantics were measured."""
    condition = replace(s.spec.conditions[0], track=None)
    s.replan(conditions=(condition,))
    s.edit(kind(TrialRecorded), condition=condition)


# Rule 4: one environment


@act(
    SCRIPTED,
    environment="environments_differ",
    condition_coverage="condition_not_planned",
    planned_slots="slots_missing",
    also="the environment is part of the condition, and the planned slot is empty",
)
def one_run_elsewhere(s: Story) -> None:
    """One run was made on another machine."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[3]
    s.edit(s.trial(run), condition=replace(run.condition, environment_id=OTHER_ENVIRONMENT))


@act(
    OBSERVED,
    environment="environments_differ",
    condition_coverage="hole",
    planned_slots="slots_missing",
    sample_size="too_few_recorded",
    order="order_not_shown",
    also="each planned cell of the other machine is empty, and no block has both subjects",
)
def each_on_its_own_machine(s: Story, other: str | None = OTHER_ENVIRONMENT) -> None:
    """Git was measured on one machine and Oak on another; the plan names both."""
    here = s.spec.conditions[0]
    there = replace(here, environment_id=other)
    s.replan(conditions=(here, there))
    s.edit(s.trial(*s.runs(subject="oak_installed")), condition=there)


@act(OBSERVED, environment="environment_unknown")
def environment_never_known(s: Story) -> None:
    """Nobody wrote down where the runs were made."""
    condition = replace(s.spec.conditions[0], environment_id=None)
    s.replan(conditions=(condition,))
    s.edit(kind(TrialRecorded), condition=condition)


# Rule 5: observed random order


def starts(s: Story, order: Callable[[int], tuple[str, str]]) -> None:
    """Give every trial a start by its repetition, the subjects of a block in the order that `order` says."""

    def start(e: TrialRecorded) -> int:
        assert e.repetition is not None
        place = order(e.repetition).index(e.subject)
        later = int(sha("attempt", e.trial)[:6], 16) if e.trial in again else 0
        return s.spec.start_ns + (100 + e.repetition * 200 + place * 90) * SECOND + later * 1000

    again = {e.replacement for e in s.events if isinstance(e, TrialReplaced)}
    for e in [e for e in s.events if isinstance(e, TrialRecorded) and e.started_at_ns is not None]:
        wall = (e.ended_at_ns or 0) - (e.started_at_ns or 0)
        at = start(e) + (2 * SECOND if e.trial in again else 0)
        s.edit(s.trial(e), started_at_ns=at, ended_at_ns=at + wall)


GIT_FIRST = ("git", "oak_installed")
OAK_FIRST = ("oak_installed", "git")


@act(OBSERVED, outcome=always, order="order_not_random")
def fixed_order(s: Story) -> None:
    """Git always first."""
    starts(s, lambda r: GIT_FIRST)


@act(OBSERVED, outcome=always, order="order_not_random", name="fixed_order_other_way")
def fixed_order_other_way(s: Story) -> None:
    """Oak always first."""
    starts(s, lambda r: OAK_FIRST)


@act(OBSERVED, outcome=always, order="order_not_random")
def alternating_order(s: Story) -> None:
    """Git first, Oak first, Git first, and so on."""
    starts(s, lambda r: GIT_FIRST if r % 2 else OAK_FIRST)


for _lag in (2, 3, 4, 5, 6, 7, 8):

    def _rotating(s: Story, lag: int = _lag) -> None:
        # A pattern of that period that no shorter test finds.
        pattern = {2: "01", 3: "001", 4: "0011", 5: "00101", 6: "001011", 7: "0010111", 8: "00010111"}[lag]
        starts(s, lambda r: GIT_FIRST if pattern[r % lag] == "0" else OAK_FIRST)

    _rotating.__doc__ = f"The same pattern of {_lag} blocks over and over."
    act(OBSERVED, name=f"pattern_of_{_lag}_blocks", outcome=always, order="order_not_random")(_rotating)


@act(
    respec(OBSERVED, campaign="os", trials_per_cell=15),
    outcome=always,
    order="order_untestable",
    sample_size="too_few_recorded",
    also="too few blocks for a test are too few trials",
)
def too_few_to_tell(s: Story) -> None:
    """Fifteen blocks, of which chance makes any order often enough."""


@act(SCRIPTED, order="order_differs")
def another_order_than_declared(s: Story) -> None:
    """Two runs of a block changed places."""
    for a in s.runs("pass", subject="git", reached_head=True):
        b = next((r for r in s.runs(subject="oak_installed", repetition=a.repetition)), None)
        if (
            b
            and b.started_at_ns
            and b.ended_at_ns
            and a.started_at_ns
            and a.ended_at_ns
            and a.repetition == 2
        ):
            break
    s.edit(s.trial(a), started_at_ns=b.started_at_ns, ended_at_ns=b.ended_at_ns)  # type: ignore[union-attr]
    s.edit(s.trial(b), started_at_ns=a.started_at_ns, ended_at_ns=a.ended_at_ns)  # type: ignore[arg-type]


@act(WITH_DIAGNOSTIC, order="order_differs")
def blocks_in_another_order(s: Story) -> None:
    """The declared order is one of the whole campaign; a block was moved to the end of the day."""
    runs = s.runs(scenario=WIDE.scenario, repetition=1)
    for n, run in enumerate(sorted(runs, key=lambda r: r.started_at_ns or 0)):
        at = s.end_ns + n * 100 * SECOND
        s.edit(s.trial(run), started_at_ns=at, ended_at_ns=at + SECOND)
    s.late()


@act(SCRIPTED, order="start_equal")
def equalstarts(s: Story) -> None:
    """A harness writes down one start time for both runs of a block."""
    a = s.runs("pass", subject="git", repetition=2)[0]
    b = s.runs("pass", subject="oak_installed", repetition=2)[0]
    s.edit(s.trial(b), started_at_ns=a.started_at_ns)
    first, second = sorted((a, b), key=lambda r: r.started_at_ns or 0)
    s.edit(s.trial(a), started_at_ns=first.started_at_ns, ended_at_ns=second.ended_at_ns)
    s.edit(s.trial(b), started_at_ns=first.started_at_ns)


@act(SCRIPTED, order="start_missing")
def start_missing(s: Story) -> None:
    """One run has no start time."""
    s.edit(s.trial(s.runs("pass", subject="git")[3]), started_at_ns=None)


@act(
    SCRIPTED,
    outcome=always,
    order="start_missing order_not_followed",
)
def no_start_times(s: Story) -> None:
    """The harness writes down no start times at all."""
    s.edit(kind(TrialRecorded), started_at_ns=None)


@act(OBSERVED, outcome=always, order="start_missing order_not_shown")
def no_start_times_and_no_plan(s: Story) -> None:
    """Nobody declared an order, and there are no start times."""
    s.edit(kind(TrialRecorded), started_at_ns=None)


@act(SCRIPTED, order="ended_before_start")
def ended_before_start(s: Story) -> None:
    """A clock was set back during a run."""
    run = s.runs("pass", subject="git")[3]
    assert run.started_at_ns
    s.edit(s.trial(run), ended_at_ns=run.started_at_ns - SECOND)


@act(
    respec(SCRIPTED, campaign="wn", preregistered=False),
    outcome=always,
    order="order_not_random order_differs",
    notes={"order": {"order_declared_late"}},
)
def order_declared_afterwards(s: Story) -> None:
    """A fixed order, and a seed found afterwards that gives one like it."""
    starts(s, lambda r: GIT_FIRST)
    s.edit(kind(CampaignDeclared), recorded_at_ns=s.end_ns)


# Rule 6: one known binary, one version of everything


def _later(s: Story, **facts: Any) -> None:
    s.edit(s.trial(*s.runs(subject="oak_installed")[15:]), **facts)
    if "subject_binary_sha256" in facts:
        s.drop(kind(SubjectIdentified))


@both(identity="binary_changes")
def binary_rebuilt_midway(s: Story) -> None:
    """Oak was rebuilt half way."""
    _later(s, subject_binary_sha256=sha("rebuilt"))


@act(SCRIPTED, identity="version_changes")
def versions_pooled(s: Story) -> None:
    """Trials of two versions are counted together."""
    _later(s, subject_version="oak 0.9.1")


@act(SCRIPTED, identity="source_changes")
def source_changed_midway(s: Story) -> None:
    """The source moved on half way."""
    _later(s, subject_source_sha256=sha("moved on"))


@act(SCRIPTED, identity="binary_unknown")
def binary_unknown(s: Story) -> None:
    """Nobody hashed the binary."""
    s.edit(s.trial(*s.runs(subject="oak_installed")), subject_binary_sha256=None)
    s.edit(kind(SubjectIdentified, subject="oak_installed"), binary_sha256=None)


@act(SCRIPTED, identity="version_unknown")
def version_unknown(s: Story) -> None:
    """The version is null in one record and nowhere else said."""
    s.edit(s.trial(s.runs("pass", subject="oak_installed")[2]), subject_version=None)
    s.edit(kind(SubjectIdentified, subject="oak_installed"), version=None)


@act(SCRIPTED, identity="source_unknown")
def source_unknown_in_part(s: Story) -> None:
    """Some trials name a source and one does not."""
    run = s.runs("pass", subject="oak_installed")[2]
    s.edit(s.trial(run), subject_source_sha256=None)
    s.edit(kind(SubjectIdentified, subject="oak_installed"), source_sha256=None)


@act(SCRIPTED, identity="dirty_source")
def dirty_source(s: Story) -> None:
    """One trial ran a build with uncommitted changes."""
    s.edit(s.trial(s.runs("pass", subject="oak_installed")[2]), subject_dirty=True)


@act(SCRIPTED, identity="dirty_unknown")
def dirty_unknown(s: Story) -> None:
    """A source is named and nobody says whether it was clean."""
    s.edit(s.trial(*s.runs(subject="oak_installed")), subject_dirty=None)
    s.edit(kind(SubjectIdentified, subject="oak_installed"), dirty=None)


@act(SCRIPTED, identity="dirty_source")
def dirty_said_of_the_subject(s: Story) -> None:
    """The records are silent, and the subject was identified as dirty."""
    s.edit(s.trial(*s.runs(subject="oak_installed")), subject_dirty=None)
    s.edit(kind(SubjectIdentified, subject="oak_installed"), dirty=True)


@act(SCRIPTED, identity="identity_contradicted")
def another_binary_than_identified(s: Story) -> None:
    """The campaign identifies one binary, and all trials ran another."""
    s.edit(s.trial(*s.runs(subject="oak_installed")), subject_binary_sha256=sha("another"))
    s.edit(s.reads(*s.runs(subject="oak_installed")), subject_binary_sha256=sha("another"))


@act(SCRIPTED, identity="fixture_differs")
def other_fixture(s: Story) -> None:
    """One run started from an older fixture."""
    s.edit(s.trial(s.runs("pass", subject="oak_installed")[2]), fixture_version=7)


@act(SCRIPTED, identity="fixture_unknown")
def fixture_unknown(s: Story) -> None:
    """A run without a commit does not say which fixture it started from, and nothing was judged."""
    run = s.runs(subject="oak_installed", reached_head=False)[0]
    s.drop(s.verdicts(run))
    s.edit(s.trial(run), fixture_version=None)


def _verdict_of_another(**facts: Any) -> Callable[[Story], None]:
    def do(s: Story) -> None:
        s.edit(s.verdicts(s.runs("pass", subject="oak_installed")[2]), **facts)

    return do


for _name, _doc, _facts, _found in (
    (
        "newer_oracle",
        "A failed check was loosened for a run.",
        {"oracle_version": 3},
        "verdict_oracle_version",
    ),
    (
        "judged_on_another_fixture",
        "Judged against another fixture.",
        {"fixture_version": 9},
        "verdict_fixture_version",
    ),
    (
        "edited_contract",
        "The task contract was edited for a run.",
        {"contract_sha256": sha("edited")},
        "verdict_contract",
    ),
    ("judged_as_another_version", "Judged as version 2.", {"scenario_version": 2}, "verdict_other_scenario"),
):
    _do = _verdict_of_another(**_facts)
    _do.__doc__ = _doc
    act(
        SCRIPTED,
        name=_name,
        identity=_found,
        planned_slots="slot_unmeasured",
        also="a verdict that does not count leaves its trial without one",
    )(_do)


@act(
    respec(OBSERVED, campaign="oc", scenarios=(replace(WIDE, contract_sha256=None),)),
    identity="contract_differs",
)
def contracts_pooled(s: Story) -> None:
    """The plan fixes no contract, and the contract was edited half way."""
    s.edit(s.verdicts(*s.runs(subject="oak_installed")[15:]), contract_sha256=sha("edited"))


# Rule 7: the same evidence behind every success


def oak_reads(s: Story, **facts: Any) -> None:
    s.edit(s.reads(*s.runs(subject="oak_installed")), **facts)


def git_reads(s: Story, **facts: Any) -> None:
    s.edit(s.reads(*s.runs(subject="git")), **facts)


INSTRUMENT = {
    "reader": "git_instrument_reader",
    "backend": "git",
    "instrument_name": "git",
    "instrument_sha256": sha("instrument"),
    "relation": "unqualified",
}
QUALIFIED = {
    "qualified_by": "R. Reader",
    "qualified_because": "built from other sources",
    "relation": "independent",
}


@both(correctness_class="classes_differ")
def export_against_independent(s: Story) -> None:
    """Oak's own export against an independent reading of Git."""
    oak_reads(s, reader="oak_export_reader", backend="export", relation="subject_export")


@act(SCRIPTED, correctness_class="classes_differ relation_overclaimed")
def export_called_independent(s: Story) -> None:
    """Oak's own export, recorded as independent."""
    oak_reads(s, reader="oak_export_reader", backend="export", relation="independent")


@act(SCRIPTED, correctness_class="classes_differ")
def git_judged_by_itself(s: Story) -> None:
    """The git under measurement reads its own repository; Oak is read independently."""
    git_reads(s, **{**INSTRUMENT, "instrument_sha256": sha("binary", "git"), "relation": "subject_binary"})


@act(SCRIPTED, correctness_class="classes_differ relation_overclaimed")
def git_judged_by_itself_and_vouched_for(s: Story) -> None:
    """Somebody vouches for the independence of the very same bytes."""
    git_reads(s, **{**INSTRUMENT, **QUALIFIED, "instrument_sha256": sha("binary", "git")})


@act(SCRIPTED, correctness_class="class_unknown")
def instrument_vouched_for_by_nobody(s: Story) -> None:
    """Another build of git reads, and nobody says that it is independent."""
    git_reads(s, **INSTRUMENT)


@act(SCRIPTED, correctness_class="class_unknown relation_overclaimed")
def independence_asserted_by_nobody(s: Story) -> None:
    """Another build of git reads and is recorded as independent; no name stands behind that."""
    git_reads(s, **{**INSTRUMENT, "relation": "independent"})


@act(SCRIPTED, correctness_class="class_unknown relation_overclaimed")
def vouched_for_without_a_reason(s: Story) -> None:
    """A name and no reason."""
    git_reads(s, **{**INSTRUMENT, **QUALIFIED, "qualified_because": " "})


@act(SCRIPTED, correctness_class="class_unknown relation_overclaimed")
def vouched_for_without_a_name(s: Story) -> None:
    """A reason and no name."""
    git_reads(s, **{**INSTRUMENT, **QUALIFIED, "qualified_by": ""})


@act(SCRIPTED, correctness_class="class_unknown relation_overclaimed")
def vouched_for_bytes_unknown(s: Story) -> None:
    """Somebody vouches for an instrument that nobody hashed."""
    git_reads(s, **{**INSTRUMENT, **QUALIFIED, "instrument_sha256": None})


@act(SCRIPTED, correctness_class="class_unknown relation_overclaimed")
def native_codecs_called_independent(s: Story) -> None:
    """The codecs are the libraries that Oak links, and nobody answers for that."""
    oak_reads(s, backend="native", relation="independent")


@act(SCRIPTED, correctness_class="class_unknown")
def native_codecs_unqualified(s: Story) -> None:
    """The reader itself says that its codecs are not qualified."""
    oak_reads(s, backend="native", relation="unqualified")


@act(SCRIPTED, correctness_class="class_unknown")
def reader_recorded_as_unqualified(s: Story) -> None:
    """A reader that says less of itself than the facts would allow is taken at its word."""
    git_reads(s, **{**INSTRUMENT, **QUALIFIED, "relation": "unqualified"})


@act(SCRIPTED, correctness_class="class_unknown relation_overclaimed")
def unknown_reader(s: Story) -> None:
    """A reader that nobody knows says that it is independent."""
    git_reads(s, reader="my_reader")


def _pass_on(**facts: Any) -> Callable[[Story], None]:
    def do(s: Story) -> None:
        s.edit(s.verdicts(s.runs("pass", subject="oak_installed", reached_head=True)[2]), **facts)

    return do


for _name, _doc, _facts, _found in (
    (
        "pass_without_reader",
        "A pass that no reader stands behind.",
        {"reader_event_id": None},
        "pass_without_reader",
    ),
    (
        "pass_on_an_unrecorded_reading",
        "A pass names a reading that is nowhere.",
        {"reader_event_id": sha("nowhere")},
        "pass_reader_not_recorded",
    ),
    (
        "pass_on_another_tree",
        "The judged tree is not the one that was read.",
        {"manifest_sha256": sha("m")},
        "pass_other_manifest",
    ),
    ("pass_of_another_subject", "The verdict is on Git's run.", {"subject": "git"}, "pass_other_subject"),
):
    _do = _pass_on(**_facts)
    _do.__doc__ = _doc
    act(
        SCRIPTED,
        name=_name,
        correctness_class=_found,
        planned_slots="slot_unmeasured",
        also="a pass that does not count leaves its trial unmeasured",
    )(_do)


UNCOUNTED = "a pass that does not count leaves its trial unmeasured"


@act(
    SCRIPTED,
    correctness_class="pass_reader_of_another_trial",
    planned_slots="slot_unmeasured",
    also=UNCOUNTED,
)
def pass_on_the_reading_of_another_trial(s: Story) -> None:
    """One good reading stands behind two passes."""
    a, b = s.runs("pass", subject="oak_installed", reached_head=True)[2:4]
    read = next(e for e in s.events if s.reads(a)(e))
    s.edit(s.verdicts(b), reader_event_id=event_id(read), manifest_sha256=read.manifest_sha256)  # type: ignore[attr-defined]


@act(
    SCRIPTED,
    correctness_class="pass_reader_of_another_subject",
    planned_slots="slot_unmeasured",
    also=UNCOUNTED,
)
def reading_of_another_subject(s: Story) -> None:
    """The reading says that it looked at Git's repository."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    s.edit(s.reads(run), subject="git")


for _name, _doc, _facts in (
    (
        "unmeasured_booked_as_pass",
        "The reader's time was up, and the oracle's word is pass all the same.",
        {"outcome": "unmeasured", "exit_status": 77, "reason": "deadline"},
    ),
    (
        "damaged_store_booked_as_pass",
        "The store does not verify.",
        {"outcome": "invalid", "exit_status": 3, "reason": "blob_mismatch"},
    ),
    ("reader_exit_77", "The outcome says ok, and the reader ended with status 77.", {"exit_status": 77}),
    (
        "reader_ok_with_a_reason",
        "The outcome says ok, and there is a reason why not.",
        {"reason": "deadline"},
    ),
):

    def _reader_saw_nothing(s: Story, facts: dict[str, Any] = _facts) -> None:
        s.edit(s.reads(s.runs("pass", subject="oak_installed", reached_head=True)[2]), **facts)

    _reader_saw_nothing.__doc__ = _doc
    act(
        SCRIPTED,
        name=_name,
        correctness_class="pass_reader_saw_nothing",
        planned_slots="slot_unmeasured",
        also=UNCOUNTED,
    )(_reader_saw_nothing)


@act(
    SCRIPTED,
    correctness_class="class_unknown",
    exact_output="lacks_exact_tree",
    also="what was not checked is not the exact tree either",
)
def depth_not_said(s: Story) -> None:
    """A pass does not say what it looked at."""
    s.edit(s.verdicts(s.runs("pass", subject="oak_installed")[2]), depth=None)


@both(correctness_class="scope_differs")
def edited_scope(s: Story) -> None:
    """Oak is read with a scope that leaves out what it gets wrong."""
    oak_reads(s, scope_sha256=sha("smaller scope"))


@act(SCRIPTED, correctness_class="scope_differs")
def whole_tree_for_one(s: Story) -> None:
    """Git is read in full and Oak in its scope."""
    git_reads(s, scope_sha256=None, scope_count=None)


@act(SCRIPTED, correctness_class="reader_changes")
def reader_code_changes(s: Story) -> None:
    """The reader was repaired half way."""
    s.edit(s.reads(*s.runs(subject="oak_installed")[15:]), code_sha256=sha("repaired"))


@act(SCRIPTED, correctness_class="reader_changes")
def reader_version_changes(s: Story) -> None:
    """The reader was updated half way."""
    s.edit(s.reads(*s.runs(subject="git")[15:]), reader_version="1.1")


@act(SCRIPTED, correctness_class="reader_changes")
def backend_changes(s: Story) -> None:
    """The backend was changed half way, vouched for."""
    s.edit(s.reads(*s.runs(subject="oak_installed")[15:]), backend="native", **QUALIFIED)


@act(SCRIPTED, correctness_class="instrument_changes")
def interpreter_changes(s: Story) -> None:
    """The Python that runs the reader was updated half way."""
    s.edit(s.reads(*s.runs(subject="oak_installed")[15:]), instrument_sha256=sha("python 3.12"))


@act(SCRIPTED, correctness_class="instrument_changes")
def codec_changes(s: Story) -> None:
    """The codec was replaced half way."""
    s.edit(s.reads(*s.runs(subject="oak_installed")[15:]), codec_sha256=sha("another codec"))


@act(
    SCRIPTED,
    outcome=always,
    correctness_class="nothing_measured",
    planned_slots="slot_unmeasured",
    sample_size="too_few_measured",
    condition_coverage="hole",
    also="nothing was judged at all",
)
def nothing_judged(s: Story) -> None:
    """All runs are there and no oracle was asked."""
    s.drop(kind(OracleJudged))


# Rule 8: agent failures are that, and all of them count

UNFILLED = "what is no agent failure leaves its planned slot without a measured outcome"


def _failure(s: Story) -> TrialRecorded:
    return s.runs(subject="oak_installed", reached_head=False)[0]


@both(
    failures="harness_failure_as_agent_failure",
    planned_slots="slot_harness_failure",
    also=UNFILLED,
)
def service_failure_as_agent_failure(s: Story) -> None:
    """The model service was overloaded, and the agent is said to have failed."""
    s.edit(s.trial(_failure(s)), status_code="http_529")


for _code in (
    "rate_limited",
    "out_of_disk",
    "container_died",
    "parse_error",
    "network_unreachable",
    "cancelled",
):

    def _infrastructure(s: Story, code: str = _code) -> None:
        s.edit(s.trial(s.runs("fail", subject="git", reached_head=True)[0]), status_code=code)

    _infrastructure.__doc__ = f"A run that ended with {_code} is booked as a failure of the agent."
    act(
        SCRIPTED,
        name=f"{_code}_as_agent_failure",
        failures="harness_failure_as_agent_failure",
        planned_slots="slot_harness_failure",
        also=UNFILLED,
    )(_infrastructure)


for _exit in (126, 127):

    def _not_run(s: Story, code: int = _exit) -> None:
        s.edit(s.trial(_failure(s)), exit_code=code)

    _not_run.__doc__ = f"Exit code {_exit}: the shell did not find the program, and the agent is blamed."
    act(
        SCRIPTED,
        name=f"exit_{_exit}_as_agent_failure",
        failures="harness_failure_as_agent_failure",
        planned_slots="slot_harness_failure",
        also=UNFILLED,
    )(_not_run)


@act(SCRIPTED, failures="failure_not_shown", planned_slots="slot_unmeasured", also=UNFILLED)
def failure_that_never_ended(s: Story) -> None:
    """The machine was rebooted during the run; a failure before HEAD is booked."""
    run = _failure(s)
    s.drop(s.verdicts(run))
    s.drop(s.reads(run))
    s.edit(s.trial(run), ended_at_ns=None, exit_code=None)


@act(SCRIPTED, failures="failure_not_shown", planned_slots="slot_unmeasured", also=UNFILLED)
def failure_without_a_look(s: Story) -> None:
    """The instrument was missing, and a failure before HEAD is booked."""
    run = _failure(s)
    s.drop(s.verdicts(run))
    s.edit(s.reads(run), outcome="unmeasured", exit_status=77, reason="instrument_missing")


@act(SCRIPTED, failures="failure_not_shown", planned_slots="slot_unmeasured", also=UNFILLED)
def failure_although_head_was_read(s: Story) -> None:
    """A reader did read a HEAD, and a failure before HEAD is booked."""
    run = s.runs("pass", subject="oak_installed")[2]
    s.drop(s.verdicts(run))
    s.edit(s.trial(run), reached_head=False, status="error", exit_code=1)


@act(
    SCRIPTED,
    failures="failure_not_shown",
    planned_slots="slot_unmeasured",
    order="start_missing",
    also="a run without a start shows neither that it ran nor when",
)
def failure_that_never_started(s: Story) -> None:
    """A failure before HEAD of a run that has no start."""
    run = _failure(s)
    s.drop(s.verdicts(run))
    s.drop(s.reads(run))
    s.edit(s.trial(run), started_at_ns=None)


@both(failures="agent_failure_as_harness_failure")
def failure_blamed_on_the_harness(s: Story) -> None:
    """A run whose result is wrong is called a failure of the harness and run again."""
    old = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.edit(s.trial(old), status="harness_failure")
    new = passed(s.spec, s.slot(old), s.end_ns, 7)
    s.add(*new, replaced(old, new[0]))  # type: ignore[arg-type]
    s.late()


@act(
    SCRIPTED,
    failures="agent_failure_as_harness_failure",
    planned_slots="slot_unlaunched",
    also="an unlaunched attempt that nothing replaces leaves its slot unmeasured",
)
def failure_called_unlaunched(s: Story) -> None:
    """A run whose result is wrong is said never to have been launched."""
    run = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    s.edit(s.trial(run), status="unlaunched")


for _name, _doc, _facts, _found in (
    (
        "fail_without_reader",
        "Git failed, and nobody looked.",
        {"reader_event_id": None},
        "fail_without_reader",
    ),
    (
        "fail_on_an_unrecorded_reading",
        "Git failed by a reading that is nowhere.",
        {"reader_event_id": sha("nowhere")},
        "fail_reader_not_recorded",
    ),
    (
        "fail_of_another_subject",
        "The failed verdict is on Oak.",
        {"subject": "oak_installed"},
        "fail_other_subject",
    ),
):

    def _fail_on(s: Story, facts: dict[str, Any] = _facts) -> None:
        s.edit(s.verdicts(s.runs("fail", subject="git", reached_head=True)[0]), **facts)

    _fail_on.__doc__ = _doc
    act(SCRIPTED, name=_name, failures=_found, planned_slots="slot_unmeasured", also=UNFILLED)(_fail_on)


@act(SCRIPTED, failures="fail_reader_saw_nothing", planned_slots="slot_unmeasured", also=UNFILLED)
def unmeasured_booked_as_fail(s: Story) -> None:
    """The reader's time was up on Git's repository, and Git is said to have failed."""
    run = s.runs("fail", subject="git", reached_head=True)[0]
    s.edit(s.reads(run), outcome="unmeasured", exit_status=77, reason="deadline", manifest_sha256=None)
    s.edit(s.verdicts(run), manifest_sha256=None)


@act(
    SCRIPTED,
    failures="failure_invalidated",
    planned_slots="slot_invalidated",
    also="an invalidated trial leaves its slot without a measured outcome",
)
def one_failure_invalidated(s: Story) -> None:
    """A failed run is called invalid."""
    s.add(invalidated(s, s.runs("fail", subject="oak_installed", reached_head=True)[0]))


@act(
    SCRIPTED,
    failures="failure_invalidated",
    planned_slots="slot_invalidated",
    sample_size="too_few_measured",
    also="an invalidated trial leaves its slot without a measured outcome, three of them fewer than thirty",
)
def failures_alone_invalidated(s: Story) -> None:
    """Whatever failed is called invalid."""
    for run in s.runs("fail", subject="oak_installed"):
        s.add(invalidated(s, run))


# Rule 9: the evidence that the scenario demands


@act(SCRIPTED, exact_output="lacks_exact_tree")
def markers_for_an_exact_tree(s: Story) -> None:
    """The exact tree is asked for, and some markers were looked at, on both sides."""
    s.edit(kind(OracleJudged, depth="committed_tree"), depth="committed_payload")


@act(CORE, exact_output="lacks_exact_tree")
def markers_for_an_exact_tree_on_core(s: Story) -> None:
    """The same on another lane."""
    s.edit(kind(OracleJudged, depth="committed_tree"), depth="committed_payload")


@act(AGENT, exact_output="lacks_tests")
def tests_never_run(s: Story) -> None:
    """The retained tests are part of the task, and nobody ran them."""
    s.edit(kind(OracleJudged), tests=None)


@act(
    AGENT,
    exact_output="lacks_tests",
    correctness_class="classes_differ",
    also="the tests are part of the class",
)
def tests_run_for_one_side(s: Story) -> None:
    """Oak's tests were not run."""
    s.edit(s.verdicts(*s.runs("pass", subject="oak_installed")), tests=None)


@act(WORKTREE, exact_output="lacks_worktree")
def worktree_not_looked_at(s: Story) -> None:
    """The uncommitted edit is part of the task, and nobody looked for it."""
    s.edit(kind(OracleJudged), worktree=None)


@act(
    AGENT,
    exact_output="lacks_committed_payload",
    correctness_class="class_unknown",
    also="what was not looked at has no class",
)
def payload_not_looked_at(s: Story) -> None:
    """A green test run is taken for the committed payload."""
    s.edit(kind(OracleJudged), depth=None)


@act(respec(OBSERVED, campaign="oe"), exact_output="no_evidence_asked")
def no_evidence_asked(s: Story) -> None:
    """The plan asks for no evidence."""
    s.replan(scenarios=(replace(WIDE, evidence="none"),))


@act(
    ANSWERED,
    exact_output="lacks_answer",
    correctness_class="class_unknown",
    also="neither an answer nor anything committed stands behind the pass",
)
def answer_not_scored(s: Story) -> None:
    """An untouched tree is taken for an answer."""
    s.edit(kind(OracleJudged, verdict="pass"), answer=None)


@act(
    ANSWERED,
    exact_output="lacks_answer",
    correctness_class="classes_differ",
    also="a tree is another class than an answer",
)
def tree_for_an_answer(s: Story) -> None:
    """Oak's untouched tree is taken for an answer."""
    s.edit(s.verdicts(*s.runs("pass", subject="oak_installed")), answer=None, depth="committed_tree")


for _word in ("absent", "wrong"):

    def _no_control(s: Story, word: str = _word) -> None:
        s.drop(kind(OracleJudged, control=word))

    _no_control.__doc__ = f"Nobody showed that the oracle refuses an {_word} answer."
    act(ANSWERED, name=f"no_{_word}_control", exact_output=f"control_{_word}")(_no_control)

    def _control_passed(s: Story, word: str = _word) -> None:
        s.edit(kind(OracleJudged, control=word), verdict="pass", answer="pass", reason=None)

    _control_passed.__doc__ = f"The oracle passes an {_word} answer."
    act(ANSWERED, name=f"{_word}_control_passes", exact_output=f"control_{_word}")(_control_passed)


@act(ANSWERED, exact_output="control_absent control_wrong")
def controls_run_afterwards(s: Story) -> None:
    """The negative controls were run when the answers were in."""
    s.edit(lambda e: isinstance(e, OracleJudged) and e.control is not None, recorded_at_ns=s.end_ns)


for _name, _doc, _facts in (
    (
        "controls_of_another_contract",
        "The key was edited after the controls.",
        {"contract_sha256": sha("older")},
    ),
    ("controls_of_another_oracle", "The oracle was changed after the controls.", {"oracle_version": 7}),
    ("controls_of_another_scenario_version", "The controls are of version 3.", {"scenario_version": 3}),
    (
        "controls_of_another_campaign",
        "The controls were run for another campaign.",
        {"campaign": "elsewhere"},
    ),
):

    def _other_controls(s: Story, facts: dict[str, Any] = _facts) -> None:
        s.edit(lambda e: isinstance(e, OracleJudged) and e.control is not None, **facts)

    _other_controls.__doc__ = _doc
    act(ANSWERED, name=_name, exact_output="control_absent control_wrong")(_other_controls)


# Rule 10: no undecided contradiction

BLOCKED = "an undecided slot has no measured outcome, which here leaves thirty"


def contradict(s: Story, **facts: Any) -> TrialRecorded:
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    s.edit(s.trial(run), **facts)
    return run


@both(conflicts="pass_with_timeout")
def timeout_counted_as_success(s: Story) -> None:
    """A run over its time limit is a success because its result is right."""
    contradict(s, status="timeout", exit_code=None)


@act(SCRIPTED, conflicts="pass_with_error")
def error_counted_as_success(s: Story) -> None:
    """A run that ended with an error is a success because its result is right."""
    contradict(s, status="error", exit_code=1)


@act(SCRIPTED, conflicts="pass_without_head")
def pass_without_head(s: Story) -> None:
    """The harness saw no commit and the oracle a pass."""
    contradict(s, reached_head=False)


@act(
    SCRIPTED,
    conflicts="pass_with_harness_failure",
    planned_slots="slot_harness_failure",
    also="a harness failure that nothing replaces leaves its slot unmeasured",
)
def harness_failure_that_passed(s: Story) -> None:
    """A failure of the harness is a success because its result is right."""
    contradict(s, status="harness_failure")


@act(
    SCRIPTED,
    conflicts="pass_with_unlaunched",
    planned_slots="slot_unlaunched",
    also="an unlaunched trial that nothing replaces leaves its slot unmeasured",
)
def unlaunched_that_passed(s: Story) -> None:
    """A trial passed that was never launched."""
    contradict(s, status="unlaunched")


@act(SCRIPTED, conflicts="verdicts_disagree")
def judged_until_it_passed(s: Story) -> None:
    """A failed trial was judged again until the oracle passed it."""
    run = s.runs("fail", subject="oak_installed", reached_head=True)[0]
    read = reading(run)
    s.add(read, judgement(s.spec, run, read))


@act(SCRIPTED, conflicts="verdicts_disagree")
def unreadable_then_passed(s: Story) -> None:
    """The store was in use when it was read, and at a second look it passed."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    read = reading(run, outcome="unmeasured", exit_status=77, reason="not_quiescent", manifest_sha256=None)
    word = judgement(
        s.spec, run, read, verdict="unmeasured", reason="not_quiescent", depth=None, manifest_sha256=None
    )
    s.add(read, word)


@act(
    SCRIPTED,
    conflicts="verdicts_disagree",
    exact_output="lacks_exact_tree",
    also="one of the two passes is not of the exact tree",
)
def two_passes_of_two_classes(s: Story) -> None:
    """A trial passed twice, once by its tree and once by its markers."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    read = reading(run, objects_verified=3)
    s.add(read, judgement(s.spec, run, read, depth="committed_payload"))


for _name, _doc, _facts in (
    (
        "pass_with_too_large_file",
        "A file over the size limit is in scope, and it passed.",
        {"oversize_count": 1},
    ),
    (
        "pass_with_a_link_in_scope",
        "A link is in scope where a file belongs, and it passed.",
        {"nonregular_count": 1},
    ),
    ("pass_with_colliding_paths", "Two paths in scope collide, and it passed.", {"colliding_count": 1}),
):

    def _against_evidence(s: Story, facts: dict[str, Any] = _facts) -> None:
        s.edit(s.reads(s.runs("pass", subject="oak_installed", reached_head=True)[2]), **facts)

    _against_evidence.__doc__ = _doc
    act(SCRIPTED, name=_name, conflicts="pass_against_its_evidence")(_against_evidence)


for _part, _spec in (("tests", AGENT), ("worktree", WORKTREE), ("answer", ANSWERED)):

    def _part_failed(s: Story, part: str = _part) -> None:
        run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
        s.edit(s.verdicts(run), **{part: "fail"})

    _part_failed.__doc__ = f"The {_part} failed, and the oracle's word is pass."
    _more = {"correctness_class": "class_unknown"} if _part == "answer" else {}
    act(
        _spec,
        name=f"pass_although_{_part}_failed",
        conflicts="pass_against_its_evidence",
        exact_output=f"lacks_{_part}",
        also="what failed is not the evidence that the scenario demands",
        **_more,
    )(_part_failed)


def conflict_rule(
    s: Story, at_ns: int, decision: str, conflict: str = "pass_with_timeout"
) -> ConflictRuleRecorded:
    """A recorded rule on a conflict."""
    return ConflictRuleRecorded(
        **envelope(at_ns),
        campaign=s.spec.campaign,
        conflict=conflict,  # type: ignore[arg-type]
        decision=decision,  # type: ignore[arg-type]
        who="operator",
        why="It is written in the study plan.",
    )


@act(SCRIPTED, conflicts="rule_too_late")
def conflicts_decided_afterwards(s: Story) -> None:
    """When the timeouts were seen, a rule was recorded that they are passes."""
    contradict(s, status="timeout", exit_code=None)
    s.add(conflict_rule(s, s.end_ns, "pass"))


@act(SCRIPTED, conflicts="rule_too_late")
def conflicts_decided_by_a_false_clock(s: Story) -> None:
    """The rule carries an early time, and the ledger took it in after the trials."""
    contradict(s, status="timeout", exit_code=None)
    s.add(conflict_rule(s, s.spec.start_ns + SECOND, "pass"))


@act(SCRIPTED, conflicts="rules_disagree pass_with_timeout")
def conflicts_decided_both_ways(s: Story) -> None:
    """Two rules decide both ways."""
    contradict(s, status="timeout", exit_code=None)
    s.events[1:1] = [
        conflict_rule(s, s.spec.start_ns + SECOND, "pass"),
        conflict_rule(s, s.spec.start_ns + 2 * SECOND, "fail"),
    ]


@act(SCRIPTED, conflicts="pass_with_timeout")
def another_conflict_decided(s: Story) -> None:
    """There is a rule on errors and none on timeouts."""
    contradict(s, status="timeout", exit_code=None)
    s.events.insert(1, conflict_rule(s, s.spec.start_ns + SECOND, "fail", "pass_with_error"))


# Rule 11: claims above the noise floor


def claim(s: Story, *claims: Claim) -> None:
    """Put claims in the place of those of the plan."""
    s.replan(claims=claims)


@act(AGENT, noise_floor="effect_smaller_than_claimed")
def claim_too_large(s: Story) -> None:
    """Thirty per cent were measured and sixty are claimed."""
    claim(s, Claim("wall_ns", "oak_installed", "git", "lower", 600))


@act(AGENT, noise_floor="effect_within_noise")
def claim_within_noise(s: Story) -> None:
    """Half a per cent is claimed, less than Git differs from itself."""
    claim(s, Claim("wall_ns", "oak_installed", "git", "lower", 5))


@act(AGENT, noise_floor="effect_smaller_than_claimed effect_within_noise")
def claim_in_the_wrong_direction(s: Story) -> None:
    """Git is claimed to be the faster one."""
    claim(s, Claim("wall_ns", "git", "oak_installed", "lower", 100))


@act(AGENT, noise_floor="effect_smaller_than_claimed effect_within_noise")
def claim_of_more_that_is_less(s: Story) -> None:
    """More is claimed where less was measured."""
    claim(s, Claim("wall_ns", "oak_installed", "git", "higher", 100))


@act(
    respec(SCRIPTED, campaign="nn", order=None, preregistered=False),
    noise_floor="claim_without_null",
)
def claim_without_null(s: Story) -> None:
    """Nobody measured Git against itself."""
    claim(s, Claim("wall_ns", "oak_installed", "git", "lower", 100))


@act(AGENT, noise_floor="metric_unmeasured")
def claim_on_a_null_metric(s: Story) -> None:
    """One success has no value, and the rest is claimed."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    s.edit(s.trial(run), metrics={"wall_ns": None, "store_bytes": 5})


@act(AGENT, noise_floor="metric_unmeasured")
def claim_on_a_missing_metric(s: Story) -> None:
    """One success does not mention the metric."""
    run = s.runs("pass", subject="oak_installed", reached_head=True)[2]
    s.edit(s.trial(run), metrics={"store_bytes": 5})


@act(AGENT, noise_floor="metric_unmeasured noise_unmeasured")
def claim_on_an_unknown_metric(s: Story) -> None:
    """Energy is claimed and nobody measured it."""
    claim(s, Claim("energy_uj", "oak_installed", "git", "lower", 100))


@act(AGENT, noise_floor="metric_unmeasured noise_unmeasured")
def claim_on_an_unknown_operation(s: Story) -> None:
    """A timed unit is claimed that no record has."""
    claim(s, Claim("wall_ns", "oak_installed", "git", "lower", 100, operation="commit"))


@act(AGENT, noise_floor="metric_unmeasured")
def baseline_of_zero(s: Story) -> None:
    """A baseline of zero makes every difference infinite."""
    run = s.runs("pass", subject="git", reached_head=True)[2]
    s.edit(s.trial(run), metrics={"wall_ns": 0, "store_bytes": 5})


@act(AGENT, noise_floor="noise_unmeasured")
def null_hardly_measured(s: Story) -> None:
    """The null comparison has values in a handful of blocks."""
    s.edit(s.trial(*s.runs(subject="git_again")[5:]), metrics={"store_bytes": 5})


@act(AGENT, noise_floor="null_is_not_itself")
def null_of_another_build(s: Story) -> None:
    """What is measured as Git again is another build."""
    runs = s.runs(subject="git_again")
    s.edit(s.trial(*runs), subject_binary_sha256=sha("another build"))
    s.edit(s.reads(*runs), subject_binary_sha256=sha("another build"))
    s.edit(kind(SubjectIdentified, subject="git_again"), binary_sha256=sha("another build"))


@act(AGENT, noise_floor="null_is_not_itself claim_without_null")
def null_of_nothing(s: Story) -> None:
    """A null of a subject that the plan does not have."""
    s.replan(subjects=(*PAIR, SubjectPlan("git_again", null_of="git_main")))


@act(AGENT, noise_floor="claim_without_subjects metric_unmeasured")
def claim_on_an_unplanned_subject(s: Story) -> None:
    """A subject is claimed to be faster that the plan does not have."""
    claim(s, Claim("wall_ns", "oak_main", "git", "lower", 100))


@act(AGENT, noise_floor="claim_without_subjects effect_smaller_than_claimed effect_within_noise")
def claim_against_the_null(s: Story) -> None:
    """The null is claimed to be faster than what it measures again."""
    claim(s, Claim("wall_ns", "git_again", "git", "lower", 100))


@act(AGENT, noise_floor="claim_without_scenario")
def claim_on_another_scenario(s: Story) -> None:
    """The claim is on a scenario that the plan does not compare."""
    claim(s, Claim("wall_ns", "oak_installed", "git", "lower", 100, scenario="wide_config_refactor"))


@act(AGENT, noise_floor="effect_smaller_than_claimed effect_within_noise")
def better_success_rate_claimed(s: Story) -> None:
    """The rates are hardly apart and a difference is claimed."""
    claim(s, Claim("success_rate_permille", "oak_installed", "git", "higher", 50))


# Rule 12: declared in time


@both(preregistration="declared_late")
def plan_called_preregistered(s: Story) -> None:
    """The plan was declared when the first runs were in."""
    runs = sorted(e.started_at_ns for e in s.runs() if e.started_at_ns)
    s.edit(kind(CampaignDeclared), recorded_at_ns=runs[4] + 1)


@act(SCRIPTED, preregistration="declared_late", notes={"order": {"order_declared_late"}})
def plan_with_a_false_clock(s: Story) -> None:
    """The declaration carries an early time, and the ledger took it in after the trials."""
    gone = s.drop(kind(CampaignDeclared))
    s.add(*gone)


@act(SCRIPTED, preregistration="declared_late", notes={"order": {"order_declared_late"}})
def plan_at_the_moment_of_the_first_start(s: Story) -> None:
    """The declaration has the very time of the first start."""
    first = min(e.started_at_ns for e in s.runs() if e.started_at_ns)
    s.edit(kind(CampaignDeclared), recorded_at_ns=first)


# Rule 13: the study's own criteria


@both(study_criteria="not_attested")
def criteria_not_attested(s: Story) -> None:
    """Nobody says that the criteria are met."""
    s.drop(kind(StudyCriteriaAttested))


@act(SCRIPTED, study_criteria="not_attested")
def one_criterion_forgotten(s: Story) -> None:
    """One of two criteria is attested."""
    s.edit(kind(StudyCriteriaAttested), criteria=s.spec.criteria[:1])


@act(SCRIPTED, study_criteria="other_text_attested")
def another_text_attested(s: Story) -> None:
    """What is attested under the name is a weaker text."""
    weaker = (replace(s.spec.criteria[0], text_sha256=sha("weaker")), s.spec.criteria[1])
    s.edit(kind(StudyCriteriaAttested), criteria=weaker)


@act(SCRIPTED, study_criteria="attested_early")
def attested_before_the_end(s: Story) -> None:
    """The attestation was signed before the last trial had started."""
    last = max(e.started_at_ns for e in s.runs() if e.started_at_ns)
    s.edit(kind(StudyCriteriaAttested), recorded_at_ns=last)


@act(SCRIPTED, study_criteria="no_criteria")
def study_without_criteria(s: Story) -> None:
    """The study has no criteria of its own."""
    s.replan(criteria=())
