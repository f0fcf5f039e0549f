"""Harbor (Terminal-Bench 2): the `result.json` of one trial.

A job's `result.json`, lock files and test reports hold no trial and are refused. Where the file says in its
own words that the agent was a fake, the agent never ran: the trial is `unlaunched`, whatever its reward.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ledger.importers.shared import (
    SCENARIO_VERSION,
    Draft,
    ForeignFile,
    Imported,
    Node,
    code,
    known,
    name,
    not_ours,
    plain,
    unique,
)

#: Exception -> status; every other exception is an `error`, and its name is kept as the status code.
_STATUS = {
    "AgentTimeoutError": "timeout",
    "VerifierTimeoutError": "completed",
    "AgentSetupTimeoutError": "harness_failure",
    "EnvironmentBuildTimeoutError": "harness_failure",
    "EnvironmentStartTimeoutError": "harness_failure",
    "CancelledError": "harness_failure",
}

_STAGES = ("environment_setup", "agent_setup", "agent_execution", "verifier")


def looks_like(document: object) -> bool:
    """Say whether a document is the result of one Harbor trial."""
    needed = {"task_name", "trial_name", "agent_info", "verifier_result", "config"}
    return isinstance(document, dict) and needed <= document.keys()


def read(file: ForeignFile, subject: str | None) -> Imported:
    """Turn a trial's `result.json` into the draft of a trial."""
    root = file.document()
    if not looks_like(root.value):
        raise not_ours(
            root, "harbor", "a trial's result.json: a job's, a lock and a test report hold no trial"
        )
    if subject is not None:
        raise file.fail("", "it names its agent: leave --subject out")
    fake = _fake(root)
    status, status_code = ("unlaunched", "fake_agent") if fake else _status(root)
    agent = root.get("agent_info", "name").needed_text()
    draft = Draft(
        root.place,
        known(
            {
                "kind": "trial_recorded/1",
                "lane": "agent",
                "scenario": name(f"harbor/{root.get('task_name').needed_text()}"),
                "scenario_version": SCENARIO_VERSION,
                "subject": name(agent),
                "trial": name(f"harbor/{root.get('id').needed_text()}"),
                "condition": known(
                    {
                        "agent": plain(agent),
                        "agent_version": plain(root.get("agent_info", "version").text()),
                        "model": _model(root),
                    }
                ),
                "status": status,
                "status_code": status_code,
                "started_at_ns": root.get("started_at").time_ns(),
                "ended_at_ns": root.get("finished_at").time_ns(),
                "claimed_success": _claim(root),
                "row_sha256": root.row_sha256(),
                "metrics": _metrics(root),
            }
        ),
    )
    notes = []
    if fake:
        notes.append(f"{fake}: no agent ran, the trial is unlaunched")
    if _claim(root) is None:
        notes.append("no reward of 0 or 1: success is not known")
    return Imported(root.get("finished_at").time_ns(), unique([draft], file), notes)


def _fake(root: Node) -> str | None:
    """Return the file's own words that the agent was a fake."""
    mode = root.get("config", "agent", "kwargs", "mode").value
    if mode == "fake":
        return "config.agent.kwargs.mode is fake"
    backend = root.get("agent_result", "metadata", "backend").value
    if isinstance(backend, str) and "fake" in backend.lower().replace("_", "-").split("-"):
        return "agent_result.metadata.backend is a fake"
    return None


def _status(root: Node) -> tuple[str, str | None]:
    exception = root.get("exception_info")
    if exception.value is None:
        return "completed", None
    kind = exception.get("exception_type").needed_text()
    return _STATUS.get(kind, "error"), code(kind)


def _model(root: Node) -> str | None:
    """Return the model that answered, where the responses named one alone; the requested one is no fact."""
    seen = root.get("agent_result", "metadata", "response_models").value
    if isinstance(seen, list) and len(seen) == 1 and isinstance(seen[0], str):
        return plain(seen[0])
    return None


def _claim(root: Node) -> bool | None:
    reward = root.get("verifier_result", "rewards", "reward").number()
    return {Decimal(0): False, Decimal(1): True}.get(reward) if reward is not None else None


def _metrics(root: Node) -> dict[str, Any]:
    tokens = {
        f"{kind}_tokens_count": root.get("agent_result", f"n_{kind}_tokens").integer()
        for kind in ("input", "cache", "output")
    }
    stages = {f"{stage}_ns": _duration(root.get(stage)) for stage in _STAGES}
    return {
        **tokens,
        **stages,
        "cost_microusd": root.get("agent_result", "cost_usd").scaled(6),
        "reward_ppm": root.get("verifier_result", "rewards", "reward").scaled(6),
    }


def _duration(stage: Node) -> int | None:
    start, end = stage.get("started_at").time_ns(), stage.get("finished_at").time_ns()
    return None if start is None or end is None else end - start
