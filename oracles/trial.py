"""One trial's repository, read and judged: what `oakledger verify` does, for harnesses to call."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ledger.events import Check
from oracles.checks.found import unmeasured
from oracles.checks.retained_suite import run_suite
from oracles.contract import Loaded
from oracles.judge import Judgement, judge, judge_control, tests_apply
from reader.driver import Reading, Request, file_sha256
from reader.driver import read as run_reader
from reader.invocation import reader_invoked
from reader.relation import Relation, relation

#: An event, or a function that makes it from the ids of the events before it.
Draft = Mapping[str, Any] | Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True)
class TrialIdentity:
    """Which trial a repository belongs to."""

    campaign: str
    trial: str
    subject: str


@dataclass(frozen=True)
class Instrument:
    """What is known of subject and instrument: the subject's program, and an operator's assertion."""

    subject_binary: str | None = None
    qualified_by: str | None = None
    because: str | None = None


@dataclass(frozen=True)
class Outcome:
    """A trial read and judged."""

    contract: Loaded
    reading: Reading
    judgement: Judgement
    relation: Relation
    subject_binary_sha256: str | None
    controls: tuple[Judgement, ...]

    @property
    def evidence_class(self) -> str | None:
        """The correctness class of a pass (design section 6); None for any other verdict or no relation.

        Shown to people; the ledger's views derive it again from the events.
        """
        judged = self.judgement
        if judged.verdict != "pass" or judged.depth is None or self.relation.value == "unqualified":
            return None
        suffix = ("+tests" if judged.tests == "pass" else "") + (
            "+worktree" if judged.worktree == "pass" else ""
        )
        return f"{self.relation.value}_{judged.depth}{suffix}"


def verify(
    contract: Loaded,
    vcs: str,
    repo: str,
    *,
    backend: str,
    lane: str | None = None,
    instrument: Instrument | None = None,
    environ: Mapping[str, str] = os.environ,
    deadline_s: float | None = None,
) -> Outcome:
    """Read a repository with one reader and judge it by a contract. Bad repositories never raise.

    Raises ValueError for a reader that does not exist or half an assertion, OSError for a subject binary
    that cannot be read.
    """
    instrument = instrument or Instrument()
    subject_sha256 = None if instrument.subject_binary is None else file_sha256(instrument.subject_binary)
    task = contract.contract
    with tempfile.TemporaryDirectory(prefix="oakledger-verify-") as folder:
        request = Request(
            vcs=vcs,
            repo=repo,
            backend=backend,
            scope=contract.scope,
            max_blob_bytes=task.max_blob_bytes,
            deadline_s=deadline_s,
            subject_binary=instrument.subject_binary,
        )
        with_tests = tests_apply(task, lane)
        tree = os.path.join(folder, "tree")
        if task.evidence == "committed_payload":
            reading = run_reader(replace(request, dest=os.path.join(folder, "scope")), environ)
        else:
            reading = run_reader(replace(request, dest=tree if with_tests else None), environ)
        test_checks = None
        if with_tests:
            test_checks = _run_tests(contract, reading, request, tree, environ)
        controls = run_controls(contract) if task.evidence == "answer" else ()
        judgement = judge(
            contract, reading, worktree=repo, test_checks=test_checks, lane=lane, controls=controls
        )
    found = relation(
        reading.report["reader"],
        reading.backend,
        (reading.report.get("instrument") or {}).get("sha256"),
        subject_sha256,
        instrument.qualified_by,
        instrument.because,
        instrument_is_script=bool((reading.report.get("instrument") or {}).get("is_script")),
    )
    return Outcome(contract, reading, judgement, found, subject_sha256, controls)


def _run_tests(
    contract: Loaded, reading: Reading, request: Request, tree: str, environ: Mapping[str, str]
) -> Sequence[Check]:
    """Materialise the whole committed tree of the same HEAD and run the suite in it."""
    tests = contract.contract.tests
    assert tests is not None
    if reading.outcome != "ok":
        return [unmeasured("tests", "tests_not_run")]
    if not os.path.isdir(tree):
        whole = run_reader(replace(request, scope=None, dest=tree, max_blob_bytes=None), environ)
        if whole.outcome != "ok":
            return [unmeasured("tests", whole.reason or "tests_not_run")]
        if whole.report["head"] != reading.report["head"]:
            return [unmeasured("tests", "store_changed")]
    return run_suite(tree, tests)


def run_controls(contract: Loaded) -> tuple[Judgement, ...]:
    """Judge the negative controls of a contract: the absent state, then each wrong one."""
    controls = contract.contract.controls
    if controls is None:
        return ()
    return (judge_control(contract, None), *(judge_control(contract, wrong) for wrong in controls.wrong))


def events(outcome: Outcome, identity: TrialIdentity, instrument: Instrument) -> list[Draft]:
    """Return the events of a verified trial: controls, reader invocation, and the verdict on it."""
    drafts: list[Draft] = [
        _judged(outcome.contract, control, identity, trial=False) for control in outcome.controls
    ]
    drafts.append(
        reader_invoked(
            outcome.reading,
            relation=outcome.relation.value,
            campaign=identity.campaign,
            trial=identity.trial,
            subject=identity.subject,
            subject_binary_sha256=outcome.subject_binary_sha256,
            qualified_by=instrument.qualified_by,
            qualified_because=instrument.because,
        )
    )
    verdict = _judged(outcome.contract, outcome.judgement, identity, trial=True)
    drafts.append(lambda ids: {**verdict, "reader_event_id": ids[-1]})
    return drafts


def _judged(contract: Loaded, judged: Judgement, identity: TrialIdentity, *, trial: bool) -> dict[str, Any]:
    task = contract.contract
    event = {
        "kind": "oracle_judged/1",
        "scenario": task.scenario,
        "scenario_version": task.scenario_version,
        "oracle_version": task.oracle_version,
        "fixture_version": task.fixture_version,
        "contract_sha256": contract.sha256,
        "campaign": identity.campaign,
        **msgspec.to_builtins(judged),
    }
    return {**event, "trial": identity.trial, "subject": identity.subject} if trial else event
