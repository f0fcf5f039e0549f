"""The demo's harness: runs the planned trials in their order and spools what happened.

It does what a careful harness does: fresh directories, one record a trial, the facts and not a verdict,
harness failures as harness failures, and a replacement that names the attempt it stands in for.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ledger.spool import Spool
from oracles.contract import Loaded, load
from oracles.demo.plan import CAMPAIGN, LANE, recipe_for
from oracles.demo.subjects import Ran, Subject
from oracles.scenarios.vcs import VcsError
from oracles.trial import Instrument, TrialIdentity, events, verify

#: The slot whose first attempt meets a machine that fails: its scratch folder is taken away.
BROKEN_SLOT = 5


class Harness:
    """Runs trials below `folder` and writes their events to a spool."""

    def __init__(
        self, folder: str, subjects: Sequence[Subject], condition: Mapping[str, Any], spool: Spool, keep: int
    ) -> None:
        self._folder = folder
        self._subjects = {s.name: s for s in subjects}
        self._condition = dict(condition)
        self._spool = spool
        self._keep = keep
        self._contracts: dict[str, Loaded] = {}
        self.verdicts: dict[tuple[str, str, str], int] = {}

    def run(self, slots: Sequence[Mapping[str, Any]], done: Callable[[], None]) -> None:
        """Run every slot in the given order; `done` is called after each."""
        for subject in self._subjects.values():
            self._spool.add(
                kind="subject_identified/1",
                campaign=CAMPAIGN,
                subject=subject.name,
                binary_sha256=subject.binary_sha256,
                version=subject.version,
            )
        broken = []
        for slot in slots:
            if slot["position"] == BROKEN_SLOT:
                self._break(slot)
                broken.append(slot)
            else:
                self._trial(slot, self._name(slot))
            done()
        for slot in broken:
            # After the others, so that the order of the first attempts stays the declared one.
            self._trial(slot, f"{self._name(slot)}-again")
            self._spool.add(
                kind="trial_replaced/1",
                campaign=CAMPAIGN,
                trial=self._name(slot),
                replacement=f"{self._name(slot)}-again",
                who="demo harness",
                why="the scratch folder of the first attempt was gone: a failure of the harness",
            )

    @staticmethod
    def _name(slot: Mapping[str, Any]) -> str:
        return f"demo-{slot['position']:04}-{slot['scenario']}-{slot['subject']}"

    def _trial(self, slot: Mapping[str, Any], name: str) -> None:
        subject = self._subjects[slot["subject"]]
        scenario = slot["scenario"]
        folder = os.path.join(self._folder, name)
        os.mkdir(folder)
        recipe = recipe_for(scenario, slot["repetition"])
        try:
            ran = subject.run(scenario, recipe, folder)
        except VcsError as e:
            self._record(slot, name, None, status="harness_failure", status_code="recipe_failed")
            raise VcsError(f"{name}: {e}") from e
        self._record(slot, name, ran, status="completed")
        contract = self._contracts.setdefault(scenario, load(scenario))
        instrument = Instrument(subject_binary=subject.program)
        outcome = verify(contract, subject.vcs, ran.repo, backend="pure", lane=LANE, instrument=instrument)
        ids: list[str] = []
        for draft in events(outcome, TrialIdentity(CAMPAIGN, name, subject.name), instrument):
            self._spool.add(**(draft(ids) if callable(draft) else draft))
            ids.append(str(self._spool.last_event_id))
        key = (scenario, subject.name, outcome.judgement.verdict)
        self.verdicts[key] = self.verdicts.get(key, 0) + 1
        if slot["repetition"] >= self._keep:
            shutil.rmtree(folder)

    def _break(self, slot: Mapping[str, Any]) -> None:
        """Start a trial whose folder is gone: the program of the subject cannot even begin."""
        subject = self._subjects[slot["subject"]]
        gone = os.path.join(self._folder, "gone")
        try:
            subject.run(slot["scenario"], recipe_for(slot["scenario"], slot["repetition"]), gone)
        except OSError:
            self._record(
                slot, self._name(slot), None, status="harness_failure", status_code="no_scratch_folder"
            )
            return
        raise AssertionError("a trial without a folder was meant to fail")

    def _record(
        self,
        slot: Mapping[str, Any],
        name: str,
        ran: Ran | None,
        *,
        status: str,
        status_code: str | None = None,
    ) -> None:
        subject = self._subjects[slot["subject"]]
        now = time.time_ns()
        contract = self._contracts.setdefault(slot["scenario"], load(slot["scenario"]))
        self._spool.add(
            kind="trial_recorded/1",
            campaign=CAMPAIGN,
            lane=LANE,
            scenario=slot["scenario"],
            scenario_version=slot["scenario_version"],
            subject=subject.name,
            trial=name,
            condition=self._condition,
            status=status,
            status_code=status_code,
            repetition=slot["repetition"],
            exit_code=0 if ran is not None else None,
            reached_head=True if ran is not None else None,
            started_at_ns=now if ran is None else ran.started_ns,
            ended_at_ns=now if ran is None else ran.ended_ns,
            process_key=name,
            fixture_version=contract.contract.fixture_version,
            subject_binary_sha256=subject.binary_sha256,
            subject_version=subject.version,
            metrics={} if ran is None else {"wall_ns": ran.wall_ns},
        )
