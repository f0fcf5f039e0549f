"""An answer artifact against a scoring key that is not in the repository."""

from __future__ import annotations

import json
from typing import Any

from ledger.events import Check
from oracles.checks.found import failed, passed
from oracles.checks.worktree import NotReadable, read_file
from oracles.contract import Answer

CHECK = "answer"


def answer_file(root: str, answer: Answer) -> list[Check]:
    """Judge the answer file in a worktree."""
    path = answer.path.encode()
    try:
        content = read_file(root, answer.path, answer.max_bytes)
    except NotReadable as e:
        return [failed(CHECK, f"answer_{e.reason}", path)]
    return judge_answer(answer, content)


def judge_answer(answer: Answer, content: bytes | None) -> list[Check]:
    """Judge an answer's bytes; None: there is none. Every key must be there, be right, and nothing else."""
    path = answer.path.encode()
    if content is None:
        return [failed(CHECK, "answer_absent", path)]
    try:
        given = json.loads(content, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError):
        return [failed(CHECK, "answer_malformed", path, content=content)]
    if not isinstance(given, dict):
        return [failed(CHECK, "answer_malformed", path, content=content)]
    if given.keys() - answer.key.keys():
        return [failed(CHECK, "answer_extra_key", path, content=content)]
    if answer.key.keys() - given.keys():
        return [failed(CHECK, "answer_incomplete", path, content=content)]
    wrong = [k for k, v in answer.key.items() if type(given[k]) is not type(v) or given[k] != v]
    if wrong:
        # The right value is part of the key and stays out of every output.
        return [failed(CHECK, "answer_wrong", path, found=wrong[0], content=content)]
    return [passed(CHECK, path)]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        raise ValueError("a key twice")
    return keys
