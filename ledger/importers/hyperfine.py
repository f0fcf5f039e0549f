"""hyperfine `--export-json`: each timed run of each command is one execution.

A command is the subject, the workload has no name. `user` and `system` are averages over the runs and belong
to none of them, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ledger.importers.shared import (
    SCENARIO_VERSION,
    Draft,
    ForeignFile,
    Imported,
    Node,
    derived_trial,
    known,
    name,
    not_ours,
    unique,
)

_SCENARIO = "hyperfine/unnamed"

#: How far a mean of doubles may be from the exact mean, relative to the largest run.
_TOLERANCE = Decimal("1e-9")


def looks_like(document: object) -> bool:
    """Say whether a document is a hyperfine export."""
    if not isinstance(document, dict) or not isinstance(document.get("results"), list):
        return False
    results = document["results"]
    return bool(results) and all(
        isinstance(r, dict) and {"command", "mean"} <= r.keys() for r in results[:10]
    )


def read(file: ForeignFile, subject: str | None) -> Imported:
    """Turn an export into drafts of trials."""
    root = file.document()
    if not looks_like(root.value):
        raise not_ours(root, "hyperfine", "a file that --export-json wrote")
    if subject is not None:
        raise file.fail("", "its commands are its subjects: leave --subject out")
    notes = ["no date, machine or order of the runs in the file; the commands stand for the subjects"]
    for result in root.get("results").items():
        if result.get("exit_codes").value is None:
            notes.append(f"{result.place} has no exit codes: whether the command worked is unknown")
        if "[ERROR]" in result.get("command").needed_text():
            notes.append(f"{result.place}: the command text holds [ERROR]")
    return Imported(None, unique(_drafts(file, root), file), notes)


def _drafts(file: ForeignFile, root: Node) -> Iterator[Draft]:
    for number, result in enumerate(root.get("results").items()):
        command = result.get("command").needed_text()
        times = list(result.get("times").items())
        _check_statistics(result, times)
        codes = _exit_codes(result, len(times))
        for run, time in enumerate(times):
            status, status_code, exit_code = codes[run]
            yield Draft(
                time.place,
                known(
                    {
                        "kind": "trial_recorded/1",
                        "lane": "core",
                        "scenario": _SCENARIO,
                        "scenario_version": SCENARIO_VERSION,
                        "subject": name(command),
                        "trial": derived_trial("hyperfine", file, str(number), str(run)),
                        "condition": {},
                        "status": status,
                        "status_code": status_code,
                        "exit_code": exit_code,
                        "repetition": run,
                        "metrics": {"wall_ns": time.scaled(9)},
                    }
                ),
            )


def _exit_codes(result: Node, runs: int) -> list[tuple[str, str | None, int | None]]:
    """Return status, status code and exit code of each run; a null exit code is a run that a signal ended."""
    if result.get("exit_codes").value is None:
        return [("completed", "exit_code_unknown", None)] * runs
    codes = [c.integer() for c in result.get("exit_codes").items()]
    if len(codes) != runs:
        raise result.get("exit_codes").fail(f"{len(codes)} exit codes of {runs} runs: it contradicts itself")
    return [
        ("completed", None, 0) if c == 0 else ("error", None if c is not None else "no_exit_code", c)
        for c in codes
    ]


def _check_statistics(result: Node, times: list[Node]) -> None:
    exact = [t for time in times if (t := time.number()) is not None]
    if not exact or len(exact) != len(times):
        raise result.get("times").fail("no times, or a null among them: a run has its time")
    said = {"mean": sum(exact, Decimal(0)) / len(exact), "min": min(exact), "max": max(exact)}
    for key, value in said.items():
        at = result.get(key)
        number = at.number()
        if number is not None and abs(number - value) > _TOLERANCE * max(abs(t) for t in exact):
            raise at.fail(f"says {number}, and its runs make {value:.12g}: it contradicts itself")
