"""The verdict: path facts first, unmeasured in and out, no fallback, bounded evidence."""

import json
import os

import pytest

from oracles.checks.worktree import NotReadable, read_file
from oracles.contract import parse
from oracles.judge import judge
from oracles.trial import run_controls
from reader.driver import Reading, Request, _synthetic

HEAD = """
schema = "oakledger-contract/1"
scenario = "a_task"
scenario_version = 1
oracle_version = 1
fixture_version = 1
title = "A task"
"""
PAYLOAD = HEAD + """
evidence = "committed_payload"
[[payload]]
path = "a.txt"
contains = ["done"]
[[payload]]
path = "old.txt"
absent = true
[[worktree]]
path = "todo.txt"
contains = ["left"]
max_bytes = 1000
[[controls.wrong]]
path = "a.txt"
content = "no"
"""  # fmt: skip
ANSWER = HEAD + """
evidence = "answer"
[answer]
path = "answer.json"
max_bytes = 100
[answer.key]
n = 3
who = "Ada"
[[controls.wrong]]
answer = { n = 4, who = "Ada" }
"""  # fmt: skip


def contract(text):
    return parse(text.encode(), "a_task.toml")


def reading(loaded, tmp_path, *, outcome="ok", status=0, reason=None, files=None, **report):
    """A reader result of the documented shape, with files materialised as a reader would."""
    import hashlib

    base = _synthetic(
        Request("git", str(tmp_path), "pure", scope=loaded.scope), "git_object_reader.py", "deadline", "x"
    )
    dest = tmp_path / "dest"
    entries = []
    for path, content in (files or {}).items():
        target = dest / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        entries.append({"path": path, "mode": "100644", "size": len(content), "sha256": digest})
    found = {**base.report, "outcome": outcome, "exit_status": status, "reason": reason, **report}
    if outcome == "ok":
        found["entries"] = sorted(entries, key=lambda e: e["path"].encode())
        missing = [p.decode() for p in loaded.scope or () if p.decode() not in (files or {})]
        found.setdefault("missing_paths", missing)
        found["missing_paths"] = missing if not report.get("missing_paths") else report["missing_paths"]
    return Reading(
        report=found,
        text=json.dumps(found).encode(),
        exit_status=status,
        message="",
        backend="pure",
        dest=str(dest),
    )


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "todo.txt").write_text("left\n")
    return folder


def verdict(loaded, read, work):
    judged = judge(loaded, read, worktree=None if work is None else str(work), controls=run_controls(loaded))
    return judged.verdict, judged.reason


def test_pass(tmp_path, work):
    loaded = contract(PAYLOAD)
    judged = judge(loaded, reading(loaded, tmp_path, files={"a.txt": b"done"}), worktree=str(work))
    assert (judged.verdict, judged.depth, judged.worktree, judged.tests) == (
        "pass",
        "committed_payload",
        "pass",
        None,
    )


@pytest.mark.parametrize("reason", ["deadline", "not_quiescent", "newer_format", "instrument_missing"])
def test_an_unmeasured_read_is_never_a_verdict(tmp_path, work, reason):
    (work / "a.txt").write_text("done")  # a worktree that looks right is no evidence
    loaded = contract(PAYLOAD)
    read = reading(loaded, tmp_path, outcome="unmeasured", status=77, reason=reason)
    assert verdict(loaded, read, work) == ("unmeasured", reason)


@pytest.mark.parametrize(
    ("outcome", "status", "reason"), [("failed", 1, "no_committed_head"), ("invalid", 3, "blob_mismatch")]
)
def test_subject_state_is_a_failure_with_the_readers_reason(tmp_path, work, outcome, status, reason):
    loaded = contract(PAYLOAD)
    assert verdict(
        loaded, reading(loaded, tmp_path, outcome=outcome, status=status, reason=reason), work
    ) == ("fail", reason)


@pytest.mark.parametrize(
    ("fact", "value", "reason"),
    [
        ("oversize_paths", ["a.txt"], "oversize_path"),
        ("nonregular_paths", ["a.txt"], "nonregular_path"),
        ("colliding_paths", [["a.txt", "A.txt"]], "colliding_path"),
        ("missing_paths", ["a.txt", "old.txt"], "missing_path"),
    ],
)
@pytest.mark.parametrize("status", [0, 77, 3])
def test_path_facts_fail_whatever_became_of_the_read(tmp_path, work, fact, value, reason, status):
    loaded = contract(PAYLOAD)
    outcome = {0: "ok", 77: "unmeasured", 3: "invalid"}[status]
    code = None if not status else "deadline"
    files = {"a.txt": b"done"}
    read = reading(
        loaded, tmp_path, outcome=outcome, status=status, reason=code, files=files, **{fact: value}
    )
    assert verdict(loaded, read, work) == ("fail", reason)


def test_a_path_that_must_be_absent(tmp_path, work):
    loaded = contract(PAYLOAD)
    read = reading(loaded, tmp_path, files={"a.txt": b"done", "old.txt": b""})
    assert verdict(loaded, read, work) == ("fail", "must_be_absent")


def test_another_scope_is_unmeasured(tmp_path, work):
    loaded = contract(PAYLOAD)
    read = reading(loaded, tmp_path, files={"a.txt": b"done"}, scope={"count": 1, "sha256": "0" * 64})
    assert verdict(loaded, read, work) == ("unmeasured", "scope_differs")


def test_materialised_bytes_are_checked_against_the_manifest(tmp_path, work):
    loaded = contract(PAYLOAD)
    read = reading(loaded, tmp_path, files={"a.txt": b"nope"})
    (tmp_path / "dest" / "a.txt").write_bytes(b"done")
    assert verdict(loaded, read, work) == ("unmeasured", "content_not_materialised")


def test_without_a_worktree_its_rule_is_unmeasured(tmp_path):
    loaded = contract(PAYLOAD)
    assert verdict(loaded, reading(loaded, tmp_path, files={"a.txt": b"done"}), None) == (
        "unmeasured",
        "no_worktree",
    )


def plant_fifo(path):
    os.mkfifo(path)


def plant_link(path):
    secret = path.parent.parent / "secret"
    secret.write_text("left")
    os.symlink(secret, path)


def plant_directory(path):
    path.mkdir()


def plant_big(path):
    path.write_bytes(b"left" * 1000)


def plant_device_link(path):
    os.symlink("/dev/zero", path)


@pytest.mark.parametrize(
    ("plant", "reason"),
    [
        (plant_fifo, "worktree_not_regular"),
        (plant_link, "worktree_not_regular"),
        (plant_device_link, "worktree_not_regular"),
        (plant_directory, "worktree_not_regular"),
        (plant_big, "worktree_oversize"),
        (lambda path: None, "worktree_absent"),
    ],
)
def test_odd_worktree_files(tmp_path, work, plant, reason):
    (work / "todo.txt").unlink()
    plant(work / "todo.txt")
    loaded = contract(PAYLOAD)
    assert verdict(loaded, reading(loaded, tmp_path, files={"a.txt": b"done"}), work) == ("fail", reason)


def test_no_component_of_a_worktree_path_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("x")
    os.symlink("real", tmp_path / "linked")
    assert read_file(str(tmp_path), "real/f", 10) == b"x"
    with pytest.raises(NotReadable):
        read_file(str(tmp_path), "linked/f", 10)


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ('{"n": 3, "who": "Ada"}', ("pass", None)),
        ('{"n": 4, "who": "Ada"}', ("fail", "answer_wrong")),
        ('{"n": "3", "who": "Ada"}', ("fail", "answer_wrong")),
        ('{"n": true, "who": "Ada"}', ("fail", "answer_wrong")),
        ('{"n": 3.0, "who": "Ada"}', ("fail", "answer_wrong")),
        ('{"n": 3, "who": "Ada", "why": 1}', ("fail", "answer_extra_key")),
        ('{"n": 4, "n": 3, "who": "Ada"}', ("fail", "answer_malformed")),
        ('{"n": 3}', ("fail", "answer_incomplete")),
        ("[3]", ("fail", "answer_malformed")),
        ("not json", ("fail", "answer_malformed")),
        ("[" * 99, ("fail", "answer_malformed")),
        (" " * 101, ("fail", "answer_oversize")),
        (None, ("fail", "answer_absent")),
    ],
)
def test_answers(tmp_path, work, content, result):
    if content is not None:
        (work / "answer.json").write_text(content)
    loaded = contract(ANSWER)
    assert verdict(loaded, reading(loaded, tmp_path), work) == result


def test_an_answer_without_its_controls_is_unmeasured(tmp_path, work):
    (work / "answer.json").write_text('{"n": 3, "who": "Ada"}')
    loaded = contract(ANSWER)
    read = reading(loaded, tmp_path)
    absent, wrong = run_controls(loaded)
    for controls in ((), (absent,), (wrong,)):
        judged = judge(loaded, read, worktree=str(work), controls=controls)
        assert (judged.verdict, judged.reason) == ("unmeasured", "controls_missing")
    assert judge(loaded, read, worktree=str(work), controls=(absent, wrong)).verdict == "pass"


def test_the_right_answer_is_in_no_output(tmp_path, work):
    (work / "answer.json").write_text('{"n": 3, "who": "Bo"}')
    loaded = contract(ANSWER)
    judged = judge(loaded, reading(loaded, tmp_path), worktree=str(work), controls=run_controls(loaded))
    assert judged.reason == "answer_wrong" and "Ada" not in repr(judged)


def test_evidence_is_bounded(tmp_path, work):
    loaded = contract(PAYLOAD)
    judged = judge(
        loaded, reading(loaded, tmp_path, files={"a.txt": b"\x1b[31m" * 100_000}), worktree=str(work)
    )
    assert judged.verdict == "fail"
    assert all(
        len((c.excerpt or "").encode()) <= 800 and "\x1b" not in (c.excerpt or "") for c in judged.checks
    )
