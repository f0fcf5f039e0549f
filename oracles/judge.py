"""The verdict on one trial: a contract, what a reader saw, and what the task left behind.

An oracle never looks at an agent's final message, never falls back to the worktree for a question about a
commit, and says `unmeasured` when its reader could not answer (seed; design section 8).

* A reader that stopped at state which the subject controls (exit 1), or at a store that does not verify
  (exit 3), is a failure with the reader's reason: the committed work is not there, and nobody gains by a
  store that cannot be read.
* Facts about the paths in scope fail the task whatever became of the rest of the read.
* Any other reader outcome but `ok` is unmeasured with the reader's reason.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from ledger.events import Check
from ledger.fields import Depth, Verdict
from oracles.checks.answer import answer_file, judge_answer
from oracles.checks.exact_tree import exact_tree
from oracles.checks.found import failed, passed, raw_path, unmeasured
from oracles.checks.markers import judge_markers
from oracles.checks.path_facts import path_facts
from oracles.checks.worktree import NotReadable, read_file
from oracles.checks.worktree import worktree as judge_worktree
from oracles.contract import Contract, Loaded, WrongState
from reader.driver import Reading

#: Checks that a verdict lists; the first failures always fit.
LISTED_CHECKS = 200


class Judgement(Struct, frozen=True):
    """A verdict with everything behind it; the fields are those of the `oracle_judged` event."""

    verdict: Verdict
    reason: str | None
    depth: Depth | None
    tests: Verdict | None
    worktree: Verdict | None
    answer: Verdict | None
    checks: tuple[Check, ...]
    manifest_sha256: str | None = None
    control: Literal["absent", "wrong"] | None = None
    duration_ns: int = 0


def worst(checks: Sequence[Check]) -> Verdict:
    """Return fail if a check failed, else unmeasured if one could not be made or there is none, else pass."""
    results = {c.result for c in checks}
    if "fail" in results:
        return "fail"
    return "pass" if results == {"pass"} else "unmeasured"


def judge(
    contract: Loaded,
    reading: Reading,
    *,
    worktree: str | None = None,
    test_checks: Sequence[Check] | None = None,
    lane: str | None = None,
    controls: Sequence[Judgement] = (),
) -> Judgement:
    """Judge one trial.

    `reading` must have been made with the contract's scope, with the manifest and, for a payload contract,
    with a destination. `worktree` is the trial's working directory, for worktree rules and answers.
    `test_checks` are the results of `oracles.checks.retained_suite`, where the contract has tests here.
    `controls` are the judged negative controls (`oracles.trial.run_controls`); an answer counts only after an
    absent and a wrong one have failed.
    """
    started = time.monotonic_ns()
    task = contract.contract
    parts: dict[str, list[Check]] = {"committed": [], "tests": [], "worktree": [], "answer": []}
    depth: Depth | None = None
    if task.evidence == "none":
        parts["committed"] = [unmeasured("contract", "unmeasured_by_contract")]
    else:
        if task.evidence != "answer":
            parts["committed"] = committed(task, reading)
            if not any(c.result == "unmeasured" for c in parts["committed"]):
                depth = task.evidence
        if task.worktree:
            parts["worktree"] = (
                [unmeasured("worktree", "no_worktree")]
                if worktree is None
                else judge_worktree(worktree, task.worktree)
            )
        if tests_apply(task, lane):
            parts["tests"] = list(test_checks) if test_checks else [unmeasured("tests", "tests_not_run")]
        if task.answer is not None:
            if not {c.control for c in controls if c.verdict == "fail"} >= {"absent", "wrong"}:
                parts["answer"] = [unmeasured("answer", "controls_missing")]
            elif any(c.verdict != "fail" for c in controls):
                parts["answer"] = [unmeasured("answer", "controls_not_refused")]
            elif worktree is None:
                parts["answer"] = [unmeasured("answer", "no_worktree")]
            else:
                parts["answer"] = answer_file(worktree, task.answer)
    return _conclude(parts, depth, reading.report["manifest_sha256"], started)


def tests_apply(task: Contract, lane: str | None) -> bool:
    """Say whether the retained test suite is part of the task in a lane."""
    return task.tests is not None and (not task.tests.lanes or lane in task.tests.lanes)


def _conclude(
    parts: dict[str, list[Check]], depth: Depth | None, manifest: str | None, started: int
) -> Judgement:
    checks = [c for part in parts.values() for c in part]
    verdict = worst(checks)
    decisive = next((c for c in checks if c.result == verdict and verdict != "pass"), None)
    # Failures first, so that a long list never hides one.
    order = {"fail": 0, "unmeasured": 1, "pass": 2}
    listed = sorted(checks, key=lambda c: order[c.result])[:LISTED_CHECKS]
    return Judgement(
        verdict=verdict,
        reason=None if decisive is None else decisive.reason,
        depth=depth,
        tests=worst(parts["tests"]) if parts["tests"] else None,
        worktree=worst(parts["worktree"]) if parts["worktree"] else None,
        answer=worst(parts["answer"]) if parts["answer"] else None,
        checks=tuple(listed),
        manifest_sha256=manifest,
        duration_ns=time.monotonic_ns() - started,
    )


def committed(task: Contract, reading: Reading) -> list[Check]:
    """Judge what HEAD holds."""
    report = reading.report
    absent = {m.path.encode() for m in task.payload if m.absent}
    exact = task.evidence == "committed_tree"
    facts = path_facts(report, absent=absent, links_allowed=exact)
    if facts:
        return facts
    if reading.outcome in ("failed", "invalid"):
        return [failed("reader", reading.reason or "failed")]
    if reading.outcome != "ok":
        return [unmeasured("reader", reading.reason or "unmeasured")]
    if report["scope"]["sha256"] != _scope_sha256(task):
        return [unmeasured("reader", "scope_differs")]
    entries: list[dict[str, Any]] | None = report.get("entries")
    if entries is None:
        return [unmeasured("reader", "no_manifest")]
    if exact:
        return exact_tree(task.tree, entries)
    return _payload(task, {raw_path(e.get("path", e)): e for e in entries}, reading.dest)


def _scope_sha256(task: Contract) -> str | None:
    if task.evidence == "committed_tree":
        return None
    digest = hashlib.sha256()
    for path in sorted({m.path.encode() for m in task.payload}):
        digest.update(path + b"\0")
    return digest.hexdigest()


def _payload(task: Contract, entries: dict[bytes, dict[str, Any]], dest: str | None) -> list[Check]:
    found: list[Check] = []
    for marker in task.payload:
        path = marker.path.encode()
        entry = entries.get(path)
        if marker.absent:
            found.append(
                passed("committed_payload", path)
                if entry is None
                else failed("committed_payload", "must_be_absent", path)
            )
            continue
        if entry is None:
            found.append(failed("committed_payload", "missing_path", path))
            continue
        content = None if dest is None else _materialised(dest, marker.path, entry)
        if content is None:
            found.append(unmeasured("committed_payload", "content_not_materialised", path))
        else:
            found += judge_markers("committed_payload", marker, content, entry["mode"])
    return found


def _materialised(dest: str, path: str, entry: dict[str, Any]) -> bytes | None:
    """The bytes of a file that the reader wrote, if they still are what the manifest says."""
    try:
        content = read_file(dest, path, int(entry["size"]))
    except (NotReadable, TypeError):
        return None
    return content if hashlib.sha256(content).hexdigest() == entry["sha256"] else None


def judge_control(contract: Loaded, wrong: WrongState | None) -> Judgement:
    """Judge a negative control: a wrong state of the contract, or None for the absent one.

    It goes through the same checks as a trial. A control that does not fail disqualifies the contract.
    """
    started = time.monotonic_ns()
    task = contract.contract
    parts: dict[str, list[Check]] = {"committed": [], "tests": [], "worktree": [], "answer": []}
    depth: Depth | None = None
    if task.answer is not None:
        content = None if wrong is None else _answer_bytes(wrong)
        parts["answer"] = judge_answer(task.answer, content)
    elif task.evidence == "committed_tree":
        depth = task.evidence
        parts["committed"] = exact_tree(task.tree, [] if wrong is None else _wrong_tree(task, wrong))
    elif task.evidence == "committed_payload":
        depth = task.evidence
        parts["committed"] = _control_payload(task, wrong)
    else:
        parts["committed"] = [unmeasured("contract", "unmeasured_by_contract")]
    judgement = _conclude(parts, depth, None, started)
    return Judgement(
        **{f: getattr(judgement, f) for f in judgement.__struct_fields__ if f != "control"},
        control="absent" if wrong is None else "wrong",
    )


def _answer_bytes(wrong: WrongState) -> bytes:
    return json.dumps(wrong.answer).encode()


def _wrong_tree(task: Contract, wrong: WrongState) -> list[dict[str, Any]]:
    digest = hashlib.sha256((wrong.content or "").encode()).hexdigest()
    return [
        {"path": f.path, "mode": f.mode, "sha256": digest if f.path == wrong.path else f.sha256}
        for f in task.tree
    ]


def _control_payload(task: Contract, wrong: WrongState | None) -> list[Check]:
    """Only the path of the wrong state is judged: the others are not known here, and need not be."""
    if wrong is None:
        return [failed("committed_payload", "missing_path", m.path.encode()) for m in task.payload]
    content = (wrong.content or "").encode()
    found: list[Check] = []
    for marker in task.payload:
        if marker.path == wrong.path:
            if marker.absent:
                found.append(failed("committed_payload", "must_be_absent", marker.path.encode()))
            else:
                found += judge_markers("committed_payload", marker, content)
    return found
