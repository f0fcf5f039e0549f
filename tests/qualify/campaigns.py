"""Honest campaigns as lists of events, made of small functions, and the tools to change one of them.

Every list is complete and consistent: `honest()` qualifies. A test takes it, does one dishonest or careless
thing to it (`edit`, `drop`, `add`), calls `seal` so that event ids fit again, and shows the refusal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from ledger.campaign import Slot, planned_slots
from ledger.events import (
    AnyEvent,
    CampaignDeclared,
    Claim,
    Condition,
    Criterion,
    EnvironmentObserved,
    OracleJudged,
    Order,
    Plan,
    ReaderBounds,
    ReaderInvoked,
    ScenarioPlan,
    StudyCriteriaAttested,
    SubjectIdentified,
    SubjectPlan,
    TrialRecorded,
    TrialReplaced,
    canonical_sha256,
    event_id,
)

E = TypeVar("E")

#: 2026-01-05 08:00 UTC, when the declaration is recorded; the first trial starts a minute later.
DAY = 1_767_600_000_000_000_000
SECOND = 1_000_000_000


def sha(*parts: object) -> str:
    """A digest that depends on the parts alone."""
    return hashlib.sha256(" ".join(str(p) for p in parts).encode()).hexdigest()


FACTS = {"cpu": "test-cpu", "filesystem": "ext4", "kernel": "6.6"}
ENVIRONMENT = canonical_sha256(FACTS)
OTHER_FACTS = {"cpu": "other-cpu", "filesystem": "ext4", "kernel": "6.6"}
OTHER_ENVIRONMENT = canonical_sha256(OTHER_FACTS)

AGENT_CONDITIONS = tuple(
    Condition(
        agent="codebot",
        agent_version="2.1",
        model=model,
        instruction_level="minimal",
        instruction_sha256=sha("instruction"),
        track="agent-default",
        environment_id=ENVIRONMENT,
        limits={"wall_ns": 900 * SECOND},
    )
    for model in ("model-a-20260101", "model-b-20260101")
)
SCRIPT_CONDITIONS = (
    Condition(track="core-equivalent", environment_id=ENVIRONMENT, limits={"wall_ns": 60 * SECOND}),
    Condition(track="core-equivalent", environment_id=ENVIRONMENT, transport="ssh"),
)
SUBJECTS = (SubjectPlan("git"), SubjectPlan("oak_installed"), SubjectPlan("git_again", null_of="git"))
SCENARIOS = (
    ScenarioPlan("wide_config_refactor", 1, 2, 1, sha("contract", "wide"), evidence="committed_tree"),
    ScenarioPlan("bugfix_test_loop", 2, 1, 3, sha("contract", "bugfix"), tests=True),
    ScenarioPlan("history_archaeology", 1, 1, 1, evidence="none", diagnostic=True),
)
CRITERIA = (
    Criterion("tasks_sampled", sha("The tasks were drawn from the list before any run.")),
    Criterion("power", sha("A power analysis was made.")),
)
CLAIMS = (Claim("wall_ns", "oak_installed", "git", "lower", 100),)


@dataclass(frozen=True)
class Spec:
    """What an honest campaign is made of."""

    campaign: str = "honest"
    lane: str = "agent"
    subjects: tuple[SubjectPlan, ...] = SUBJECTS
    scenarios: tuple[ScenarioPlan, ...] = SCENARIOS
    conditions: tuple[Condition, ...] = AGENT_CONDITIONS
    trials_per_cell: int = 32
    claims: tuple[Claim, ...] = CLAIMS
    criteria: tuple[Criterion, ...] = CRITERIA
    order: Order | None = field(default_factory=lambda: Order("blocked-sha256/1", "dice 4 2 6 1", "campaign"))
    preregistered: bool = True
    start_ns: int = DAY

    @property
    def plan(self) -> Plan:
        """The plan of the spec."""
        return Plan(
            lane=self.lane,
            subjects=self.subjects,
            scenarios=self.scenarios,
            conditions=self.conditions,
            trials_per_cell=self.trials_per_cell,
            claims=self.claims,
            criteria=self.criteria,
        )


AGENT = Spec()
WORKFLOW = Spec(
    campaign="scripted",
    lane="workflow",
    conditions=SCRIPT_CONDITIONS,
    order=Order("blocked-sha256/1", "dice 3 3 5 2", "block"),
)
#: The smallest campaign that qualifies: one scenario, one condition, two subjects, no claim.
SMALL = Spec(
    campaign="small",
    lane="workflow",
    subjects=SUBJECTS[:2],
    scenarios=SCENARIOS[:1],
    conditions=SCRIPT_CONDITIONS[:1],
    claims=(),
    trials_per_cell=31,
)


def base_subject(spec: Spec, subject: str) -> str:
    """The subject that a null measures again, or the subject itself."""
    return next((s.null_of for s in spec.subjects if s.subject == subject and s.null_of), subject)


def identity(spec: Spec, subject: str) -> dict[str, Any]:
    """Binary, version and source of a subject."""
    name = base_subject(spec, subject)
    return {"binary": sha("binary", name), "version": f"{name} 2.47.0", "source": sha("source", name)}


def envelope(at_ns: int) -> dict[str, Any]:
    """Producer key and time; `seal` gives the final key."""
    return {"source": "unsealed", "ordinal": 0, "recorded_at_ns": at_ns}


def declaration(spec: Spec) -> CampaignDeclared:
    """The declaration, a minute before the first start."""
    return CampaignDeclared(
        **envelope(spec.start_ns),
        campaign=spec.campaign,
        preregistered=spec.preregistered,
        plan=spec.plan,
        order=spec.order,
    )


def preamble(spec: Spec) -> list[AnyEvent]:
    """Environment and subjects of a campaign."""
    events: list[AnyEvent] = [
        EnvironmentObserved(
            **envelope(spec.start_ns), environment_id=ENVIRONMENT, facts=FACTS, campaign=spec.campaign
        )
    ]
    for subject in spec.subjects:
        who = identity(spec, subject.subject)
        events.append(
            SubjectIdentified(
                **envelope(spec.start_ns),
                subject=subject.subject,
                binary_sha256=who["binary"],
                version=who["version"],
                source_sha256=who["source"],
                dirty=False,
                campaign=spec.campaign,
            )
        )
    return events


def trial_name(spec: Spec, slot: Slot, attempt: int = 0) -> str:
    """A name that no other execution has."""
    return f"{spec.campaign}/{sha('trial', slot, attempt)[:20]}"


def trial(spec: Spec, slot: Slot, start_ns: int, attempt: int = 0, **facts: Any) -> TrialRecorded:
    """One completed execution of a slot; `facts` overrides fields."""
    condition = next(c for c in spec.conditions if canonical_sha256(c) == slot.condition_key)
    scenario = next(
        s
        for s in spec.scenarios
        if (s.scenario, s.scenario_version) == (slot.scenario, slot.scenario_version)
    )
    who = identity(spec, slot.subject)
    name = trial_name(spec, slot, attempt)
    # Oak takes about 70 % of Git's time; a subject against itself differs by a few per cent either way.
    spread = int(sha("spread", name)[:4], 16) % 60
    wall = (40_000 if base_subject(spec, slot.subject) == "git" else 28_000) * (1000 + spread - 30) * 1000
    values: dict[str, Any] = {
        "campaign": spec.campaign,
        "lane": spec.lane,
        "scenario": slot.scenario,
        "scenario_version": slot.scenario_version,
        "subject": slot.subject,
        "trial": name,
        "condition": condition,
        "status": "completed",
        "repetition": slot.repetition,
        "exit_code": 0,
        "reached_head": True,
        "started_at_ns": start_ns,
        "ended_at_ns": start_ns + wall,
        "process_key": f"pid-{sha('process', name)[:12]}",
        "fixture_version": scenario.fixture_version,
        "subject_binary_sha256": who["binary"],
        "subject_version": who["version"],
        "subject_source_sha256": who["source"],
        "subject_dirty": False,
        "metrics": {"wall_ns": wall, "store_bytes": 100_000 + spread},
        "evidence_sha256": sha("evidence", name),
        "row_sha256": sha("row", name),
    }
    return TrialRecorded(**envelope(start_ns + wall + SECOND), **{**values, **facts})


def reading(run: TrialRecorded, **facts: Any) -> ReaderInvoked:
    """A good reading of a trial's repository by an independent reader."""
    vcs = "oak" if run.subject.startswith("oak") else "git"
    values: dict[str, Any] = {
        "vcs": vcs,
        "reader": "oak_sqlite_reader" if vcs == "oak" else "git_object_reader",
        "reader_version": "1.0",
        "code_sha256": sha("reader code", vcs),
        "backend": "pure",
        "outcome": "ok",
        "exit_status": 0,
        "relation": "independent",
        "bounds": ReaderBounds(max_blob_bytes=1 << 20),
        "campaign": run.campaign,
        "trial": run.trial,
        "subject": run.subject,
        "codec_sha256": sha("codec") if vcs == "oak" else None,
        "python_sha256": sha("python"),
        "instrument_name": "python3.11",
        "instrument_sha256": sha("python"),
        "subject_binary_sha256": run.subject_binary_sha256,
        "scope_sha256": sha("scope", run.scenario),
        "scope_count": 4,
        "head": sha("head", run.trial)[:40],
        "manifest_sha256": sha("manifest", run.scenario),
        "entries": 4,
    }
    return ReaderInvoked(**envelope(run.recorded_at_ns + 1), **{**values, **facts})


def judgement(spec: Spec, run: TrialRecorded, read: ReaderInvoked, **facts: Any) -> OracleJudged:
    """A verdict on a trial, by default a pass with all that its scenario demands."""
    s = next(
        x for x in spec.scenarios if (x.scenario, x.scenario_version) == (run.scenario, run.scenario_version)
    )
    values: dict[str, Any] = {
        "scenario": s.scenario,
        "scenario_version": s.scenario_version,
        "oracle_version": s.oracle_version,
        "fixture_version": s.fixture_version,
        "contract_sha256": s.contract_sha256 or sha("contract", s.scenario),
        "verdict": "pass",
        "campaign": run.campaign,
        "trial": run.trial,
        "subject": run.subject,
        "reader_event_id": event_id(read),
        "manifest_sha256": read.manifest_sha256,
        "depth": s.evidence if s.evidence.startswith("committed") else None,
        "tests": "pass" if s.tests else None,
        "worktree": "pass" if s.worktree else None,
    }
    return OracleJudged(**envelope(run.recorded_at_ns + 2), **{**values, **facts})


def passed(spec: Spec, slot: Slot, start_ns: int, attempt: int = 0, **facts: Any) -> list[AnyEvent]:
    """A trial that passed."""
    run = trial(spec, slot, start_ns, attempt, **facts)
    read = reading(run)
    return [run, read, judgement(spec, run, read)]


def failed(spec: Spec, slot: Slot, start_ns: int, attempt: int = 0, **facts: Any) -> list[AnyEvent]:
    """A trial whose committed result is wrong."""
    run = trial(spec, slot, start_ns, attempt, **facts)
    read = reading(run, manifest_sha256=sha("wrong", run.trial))
    wrong = judgement(spec, run, read, verdict="fail", reason="content_differs")
    if wrong.tests:
        wrong = msgspec.structs.replace(wrong, tests="fail")
    return [run, read, wrong]


def failed_before_head(spec: Spec, slot: Slot, start_ns: int, attempt: int = 0) -> list[AnyEvent]:
    """A trial that ended before anything was committed, as its reader confirms."""
    run = trial(spec, slot, start_ns, attempt, status="error", exit_code=1, reached_head=False)
    read = reading(
        run,
        outcome="failed",
        exit_status=1,
        reason="no_committed_head",
        head=None,
        manifest_sha256=None,
        entries=None,
    )
    verdict = judgement(
        spec,
        run,
        read,
        verdict="fail",
        reason="no_committed_head",
        depth=None,
        tests=None,
        worktree=None,
        manifest_sha256=None,
    )
    return [run, read, verdict]


def unmeasured(
    spec: Spec, slot: Slot, start_ns: int, attempt: int = 0, reason: str = "deadline"
) -> list[AnyEvent]:
    """A trial whose repository the reader could not read."""
    run = trial(spec, slot, start_ns, attempt)
    read = reading(
        run, outcome="unmeasured", exit_status=77, reason=reason, manifest_sha256=None, entries=None
    )
    verdict = judgement(
        spec,
        run,
        read,
        verdict="unmeasured",
        reason=reason,
        depth=None,
        tests=None,
        worktree=None,
        manifest_sha256=None,
    )
    return [run, read, verdict]


def no_answer(spec: Spec, slot: Slot, start_ns: int) -> list[AnyEvent]:
    """A trial of a scenario that is unmeasured by contract."""
    run = trial(spec, slot, start_ns)
    read = reading(run)
    verdict = judgement(
        spec, run, read, verdict="unmeasured", reason="unmeasured_by_contract", manifest_sha256=None
    )
    return [run, read, verdict]


def harness_failure(spec: Spec, slot: Slot, start_ns: int, attempt: int = 0) -> list[AnyEvent]:
    """A trial that the model service broke off."""
    return [
        trial(
            spec,
            slot,
            start_ns,
            attempt,
            status="harness_failure",
            status_code="http_529",
            exit_code=None,
            reached_head=None,
            metrics={},
        )
    ]


def unlaunched(spec: Spec, slot: Slot, start_ns: int, attempt: int = 0) -> list[AnyEvent]:
    """A trial that was never started."""
    run = trial(
        spec,
        slot,
        start_ns,
        attempt,
        status="unlaunched",
        exit_code=None,
        reached_head=None,
        started_at_ns=None,
        ended_at_ns=None,
        process_key=None,
        metrics={},
        evidence_sha256=None,
    )
    return [run]


def replaced(old: TrialRecorded, new: TrialRecorded) -> TrialReplaced:
    """The event that names an attempt and the trial in its place."""
    return TrialReplaced(
        **envelope(new.recorded_at_ns + 3),
        campaign=old.campaign,
        trial=old.trial,
        replacement=new.trial,
        who="operator",
        why="the model service failed",
    )


def attested(spec: Spec, at_ns: int) -> StudyCriteriaAttested:
    """Somebody's word on all criteria."""
    return StudyCriteriaAttested(
        **envelope(at_ns),
        campaign=spec.campaign,
        criteria=spec.criteria,
        who="principal investigator",
        statement="All criteria are met; the notes are with the study.",
    )


def runs(spec: Spec, outcome: Callable[[Spec, Slot, int, int], str] | None = None) -> Iterator[AnyEvent]:
    """The trials of a campaign in its order, with readings, verdicts and replacements."""
    outcome = outcome or usual_outcome
    slots = slots_of(spec)
    if spec.order is None:  # a harness that rolls its own dice
        slots.sort(key=lambda s: (sha("own", s.scenario, s.condition_key, s.repetition), sha("own", s)))
    diagnostic = {s.scenario for s in spec.scenarios if s.diagnostic}
    start = spec.start_ns + 60 * SECOND
    makers: dict[str, Callable[..., list[AnyEvent]]] = {
        "passed": passed,
        "failed": failed,
        "failed_before_head": failed_before_head,
        "unmeasured": unmeasured,
        "harness_failure": harness_failure,
        "unlaunched": unlaunched,
    }
    queue: list[tuple[Slot, int, TrialRecorded | None]] = [(s, 0, None) for s in slots]
    for slot, attempt, old in queue:
        start += 50 * SECOND
        if slot.scenario in diagnostic:
            yield from no_answer(spec, slot, start)
            continue
        word = outcome(spec, slot, attempt, slots.index(slot) if len(slots) < 500 else hash_of(slot))
        events = makers[word](spec, slot, start, attempt)
        yield from events
        run = events[0]
        assert isinstance(run, TrialRecorded)
        if old is not None:
            yield replaced(old, run)
        if word in ("harness_failure", "unlaunched", "unmeasured"):
            queue.append((slot, attempt + 1, run))  # at the end of the day


_slots: dict[str, tuple[Slot, ...]] = {}


def slots_of(spec: Spec) -> list[Slot]:
    """The planned trials of a spec in its order, which does not depend on the campaign's name."""
    key = repr((spec.plan, spec.order))
    if key not in _slots:
        _slots[key] = tuple(planned_slots(declaration(spec)))
    return list(_slots[key])


def hash_of(slot: Slot) -> int:
    """A number that depends on the slot alone."""
    return int(sha("number", slot.scenario, slot.condition_key, slot.repetition, slot.subject)[:8], 16)


def usual_outcome(spec: Spec, slot: Slot, attempt: int, number: int) -> str:
    """Mostly passes, some failures of both kinds, a few harness failures, one of them twice."""
    roll = hash_of(slot) % 100
    if attempt == 0 and roll < 2:
        return ("harness_failure", "unlaunched", "unmeasured")[hash_of(slot) % 3]
    if attempt == 1 and roll == 0:
        return "harness_failure"
    if roll < 8:
        return "failed"
    if roll < 11:
        return "failed_before_head"
    return "passed"


_made: dict[tuple[str, object], tuple[AnyEvent, ...]] = {}


def honest(
    spec: Spec = AGENT, outcome: Callable[[Spec, Slot, int, int], str] | None = None
) -> list[AnyEvent]:
    """A whole campaign that qualifies, sealed. Made once for a spec and an outcome function."""
    key = (repr(spec), outcome)
    if key not in _made:
        events = [declaration(spec), *preamble(spec), *runs(spec, outcome)]
        events.append(attested(spec, max(e.recorded_at_ns for e in events) + 3600 * SECOND))
        _made[key] = tuple(seal(events))
    return list(_made[key])


def seal(events: Iterable[AnyEvent], source: str | None = None) -> list[AnyEvent]:
    """Number the events, and let verdicts name their readings by the ids that these then have."""
    events = list(events)
    if source is None:
        named = next((e.campaign for e in events if getattr(e, "campaign", None)), "none")
        source = f"test/{named}/{sha(*(event_id(e) for e in events))[:12]}"
    renamed: dict[str, str] = {}
    out: list[AnyEvent] = []
    for ordinal, event in enumerate(events):
        old = event_id(event)
        changes: dict[str, Any] = {"source": source, "ordinal": ordinal}
        if isinstance(event, OracleJudged) and event.reader_event_id in renamed:
            changes["reader_event_id"] = renamed[event.reader_event_id]
        event = msgspec.structs.replace(event, **changes)
        renamed[old] = event_id(event)
        out.append(event)
    return out


def edit(
    events: Iterable[AnyEvent], where: Callable[[Any], bool], limit: int | None = None, **changes: Any
) -> list[AnyEvent]:
    """Change fields of the events that `where` picks (the first `limit`). A value may be a function."""
    done = 0
    renamed: dict[str, str] = {}
    out: list[AnyEvent] = []
    for event in events:
        if isinstance(event, OracleJudged) and event.reader_event_id in renamed:
            event = msgspec.structs.replace(event, reader_event_id=renamed[event.reader_event_id])
        if where(event) and (limit is None or done < limit):
            done += 1
            old = event_id(event)
            values = {k: v(event) if callable(v) else v for k, v in changes.items()}
            event = msgspec.structs.replace(event, **values)
            renamed[old] = event_id(event)
        out.append(event)
    assert done, "nothing was changed: the test would prove nothing"
    return out


def drop(
    events: Iterable[AnyEvent], where: Callable[[Any], bool], limit: int | None = None
) -> list[AnyEvent]:
    """Leave out the events that `where` picks (the first `limit` of them)."""
    done = 0
    out: list[AnyEvent] = []
    for event in events:
        if where(event) and (limit is None or done < limit):
            done += 1
        else:
            out.append(event)
    assert done, "nothing was dropped: the test would prove nothing"
    return out


def kind(name: type, **facts: Any) -> Callable[[Any], bool]:
    """Pick events of a kind whose fields have these values."""
    return lambda e: isinstance(e, name) and all(getattr(e, k) == v for k, v in facts.items())


def first(events: Iterable[AnyEvent], where: Callable[[Any], bool]) -> Any:
    """The first event that `where` picks."""
    return next(e for e in events if where(e))


def with_outcome(events: list[AnyEvent], verdict: str, **facts: Any) -> list[TrialRecorded]:
    """The trials that have a verdict of this value, with trial fields of these values."""
    named = {e.trial for e in events if isinstance(e, OracleJudged) and e.verdict == verdict}
    pick = kind(TrialRecorded, **facts)
    return [e for e in events if pick(e) and e.trial in named]


def of_trial(run: TrialRecorded) -> Callable[[Any], bool]:
    """Pick everything that is about one trial."""
    return lambda e: getattr(e, "trial", None) == run.trial


respec = replace
