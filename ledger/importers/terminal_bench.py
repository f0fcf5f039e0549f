"""Terminal-Bench (first generation, `tb`): a run's `results.json`, a trial's, or trials line by line.

What the harness calls a failure mode becomes the status of the run; whether the task was solved is only what
the file claims. A trial that the file calls neither solved nor unsolved claims nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.importers.shared import (
    SCENARIO_VERSION,
    Draft,
    ForeignFile,
    ForeignFileError,
    Imported,
    Node,
    agree,
    code,
    derived_trial,
    known,
    name,
    not_ours,
    text_sha256,
    unique,
)

#: Failure mode -> status. A failure of the tests' run or of their parser leaves the agent's run completed.
_STATUS = {
    "none": "completed",
    "unset": "completed",
    "agent_timeout": "timeout",
    "test_timeout": "completed",
    "parse_error": "completed",
    "unknown": "error",
    "unknown_agent_error": "error",
    "fatal_llm_parse_error": "error",
    "context_length_exceeded": "error",
    "output_length_exceeded": "error",
    "agent_installation_failed": "harness_failure",
}

_UNREMARKABLE = ("none", "unset")


def looks_like(document: object) -> bool:
    """Say whether a document is a trial or a run of Terminal-Bench."""
    if not isinstance(document, dict):
        return False
    if isinstance(results := document.get("results"), list) and "n_resolved" in document:
        return all(_is_trial(r) for r in results[:10])
    return _is_trial(document)


def _is_trial(value: object) -> bool:
    return (
        isinstance(value, dict) and {"task_id", "trial_name", "is_resolved", "failure_mode"} <= value.keys()
    )


def read(file: ForeignFile, subject: str | None) -> Imported:
    """Turn a run, a trial or lines of trials into drafts of trials."""
    trials = list(_trials_of(file))
    named = {t.get("submission").text() for t in trials}
    if subject is not None and None not in named:
        raise file.fail("", "every trial in it names its submission: leave --subject out")
    fallback = subject or f"terminal-bench/unnamed/{file.short}"
    drafts = unique((_draft(file, t, fallback) for t in trials), file)
    times = [t.get("trial_ended_at").time_ns() or t.get("trial_started_at").time_ns() for t in trials]
    notes = []
    if None in named and subject is None:
        notes.append(f"the file does not name what was measured: subject {fallback}, or give --subject NAME")
    _count(notes, sum("/derived/" in d.fields["trial"] for d in drafts), "have no id (names are derived)")
    _count(notes, sum("started_at_ns" not in d.fields for d in drafts), "have no start time")
    _count(notes, sum("claimed_success" not in d.fields for d in drafts), "are neither solved nor unsolved")
    both = sum(bool(d.fields.get("claimed_success")) and d.fields["status"] == "timeout" for d in drafts)
    _count(notes, both, "claim success and ran past the agent's limit")
    return Imported(max((t for t in times if t is not None), default=None), drafts, notes)


def _count(notes: list[str], number: int, what: str) -> None:
    if number:
        notes.append(f"trials that {what}: {number}")


def _trials_of(file: ForeignFile) -> Iterator[Node]:
    try:
        root = file.document()
    except ForeignFileError:
        if not _starts_with_trial(file):
            raise
        yield from _lines(file)
        return
    if not looks_like(root.value):
        raise not_ours(
            root, "terminal-bench", "results.json files: run_metadata.json and tb.lock hold no trial"
        )
    if _is_trial(root.value):
        yield root
        return
    results = list(root.get("results").items())
    solved = sum(r.get("is_resolved").boolean() is True for r in results)
    agree(root.get("n_resolved"), solved, "resolved trials")
    agree(root.get("n_unresolved"), len(results) - solved, "other trials")
    accuracy = root.get("accuracy").number()
    if accuracy is not None and results and abs(float(accuracy) - solved / len(results)) > 1e-9:
        raise root.get("accuracy").fail(
            f"says {accuracy}, and {solved} of {len(results)} trials are resolved: it contradicts itself"
        )
    yield from results


def _starts_with_trial(file: ForeignFile) -> bool:
    try:
        return _is_trial(next(file.lines()).value)
    except ForeignFileError:
        return False


def _lines(file: ForeignFile) -> Iterator[Node]:
    for line in file.lines():
        if not _is_trial(line.value):
            raise line.fail("no trial: it has task_id, trial_name, is_resolved and failure_mode")
        yield line


def _draft(file: ForeignFile, trial: Node, subject: str) -> Draft:
    task = trial.get("task_id").needed_text()
    mode = trial.get("failure_mode").needed_text()
    if mode not in _STATUS:
        raise trial.get("failure_mode").fail(f"not a failure mode that is known: {', '.join(_STATUS)}")
    submission = trial.get("submission").text()
    instruction = trial.get("instruction").text()
    return Draft(
        trial.place,
        known(
            {
                "kind": "trial_recorded/1",
                "lane": "agent",
                "scenario": name(f"terminal-bench/{task}"),
                "scenario_version": SCENARIO_VERSION,
                "subject": name(submission or subject),
                "trial": _identity(file, trial),
                "condition": known({"instruction_sha256": text_sha256(instruction)}),
                "status": _STATUS[mode],
                "status_code": None if mode in _UNREMARKABLE else code(mode),
                "started_at_ns": trial.get("trial_started_at").time_ns(),
                "ended_at_ns": trial.get("trial_ended_at").time_ns(),
                "claimed_success": trial.get("is_resolved").boolean(),
                "row_sha256": trial.row_sha256(),
                "metrics": {
                    "input_tokens_count": trial.get("total_input_tokens").integer(),
                    "output_tokens_count": trial.get("total_output_tokens").integer(),
                    "agent_ns": _between(trial, "agent"),
                    "test_ns": _between(trial, "test"),
                    **_tests(trial),
                },
            }
        ),
    )


def _identity(file: ForeignFile, trial: Node) -> str:
    own = trial.get("id").text() or trial.get("uuid").text()
    if own is not None:
        return name(f"terminal-bench/{own}")
    run = trial.get("source_file").text() or ""
    return derived_trial(
        "terminal-bench", file, *([run] if run else []), trial.get("trial_name").needed_text()
    )


def _between(trial: Node, what: str) -> int | None:
    start, end = (trial.get(f"{what}_{which}_at").time_ns() for which in ("started", "ended"))
    return None if start is None or end is None else end - start


def _tests(trial: Node) -> dict[str, Any]:
    results = trial.get("parser_results")
    if results.value is None:
        passed, total = trial.get("tests_passed").integer(), trial.get("tests_total").integer()
    else:
        passed = sum(result == "passed" for result in results.object().values())
        total = len(results.object())
    return {"tests_passed_count": passed, "tests_total_count": total}
