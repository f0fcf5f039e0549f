"""Harness rows: the contract, and what they become."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from ledger.decode import decode
from ledger.errors import BadEventError
from ledger.events import EnvironmentObserved, SubjectIdentified, TrialRecorded, canonical_sha256
from ledger.rows import REQUIRED, ROW, events_of_row, row_schema

T = 1_760_000_000_000_000_000
AGENT: dict[str, Any] = {
    "row": ROW,
    "lane": "agent",
    "campaign": "c1",
    "scenario": "bugfix_test_loop",
    "scenario_version": 1,
    "subject": "oak_installed",
    "trial": "c1/0001",
    "status": "completed",
    "recorded_at_ns": T,
    "started_at_ns": T - 10**9,
    "fixture_version": 2,
    "subject_binary_sha256": "b" * 64,
    "subject_version": "0.9",
    "track": "agent-default",
    "repetition": 0,
    "reached_head": True,
    "transport": None,
    "agent": "claude-code",
    "agent_version": "2.1",
    "model": "model-1",
    "instruction_level": "none",
    "instruction_sha256": None,
    "metric_wall_ns": 5,
    "metric_rss_bytes": None,
    "limit_timeout_ns": 600_000_000_000,
    "env_cpu": "epyc",
    "env_kernel": "6.1",
}
#: A row of every lane with exactly what the lane requires.
MINIMAL = {
    lane: {"row": ROW, **{name: AGENT.get(name) for name in names}, "lane": lane}
    for lane, names in REQUIRED.items()
}


def events(row: dict[str, Any]) -> list[Any]:
    return [event for event, _ in events_of_row(json.dumps(row).encode())]


def test_a_row_becomes_a_trial_with_what_it_says_about_environment_and_subject() -> None:
    trial, environment, subject = events(AGENT)
    assert isinstance(trial, TrialRecorded)
    assert isinstance(environment, EnvironmentObserved)
    assert isinstance(subject, SubjectIdentified)
    assert trial.metrics == {"wall_ns": 5, "rss_bytes": None}
    assert trial.condition.limits == {"timeout_ns": 600_000_000_000}
    assert (trial.condition.model, trial.condition.transport) == ("model-1", None)
    facts = {"cpu": "epyc", "kernel": "6.1"}
    assert environment.facts == facts
    assert trial.condition.environment_id == environment.environment_id == canonical_sha256(facts)
    assert (subject.subject, subject.binary_sha256, subject.dirty) == ("oak_installed", "b" * 64, None)
    assert [e.ordinal for e in (trial, environment, subject)] == [0, 1, 2]
    assert len({e.source for e in (trial, environment, subject)}) == 1
    canonical_row = json.dumps(AGENT, sort_keys=True, separators=(",", ":")).encode()
    assert trial.row_sha256 == hashlib.sha256(canonical_row).hexdigest()


def test_the_events_are_valid_events_with_their_canonical_bytes() -> None:
    for event, payload in events_of_row(json.dumps(AGENT).encode()):
        assert decode(payload) == (event, payload)


def test_another_spelling_of_a_row_is_the_same_events() -> None:
    spelled = json.dumps(dict(reversed(AGENT.items())), indent=2).encode()
    assert events_of_row(spelled) == events_of_row(json.dumps(AGENT).encode())


def test_the_producer_key_is_what_the_row_is_about() -> None:
    source = events(AGENT)[0].source
    assert events({**AGENT, "metric_wall_ns": 6})[0].source == source
    for change in ({"trial": "c1/0002"}, {"campaign": "c2"}, {"operation": "commit"}):
        assert events({**AGENT, **change})[0].source != source
    # No two of these run together into one key.
    assert events({**AGENT, "campaign": "a/b", "trial": "c"})[0].source != (
        events({**AGENT, "campaign": "a", "trial": "b/c"})[0].source
    )


@pytest.mark.parametrize("lane", list(REQUIRED))
def test_the_lane_decides_what_is_required(lane: str) -> None:
    assert events(MINIMAL[lane])[0].lane == lane
    named = row_schema()["$defs"]["Row"]["required"]
    for name in REQUIRED[lane]:
        row = {k: v for k, v in MINIMAL[lane].items() if k != name}
        expected = f"no field {name}" if name in named else f"lane {lane} lacks {name}"
        with pytest.raises(BadEventError, match=expected):
            events(row)


def test_null_says_unmeasured_and_is_never_zero() -> None:
    row = {**AGENT, "reached_head": None, "started_at_ns": None, "subject_binary_sha256": None}
    trial = events({**row, "subject_version": None})[0]
    assert (trial.reached_head, trial.started_at_ns, trial.subject_binary_sha256) == (None, None, None)
    assert trial.metrics["rss_bytes"] is None
    assert "absent_ns" not in trial.metrics


def test_an_environment_with_an_unmeasured_fact_has_no_identity() -> None:
    got = events({**AGENT, "env_kernel": None})
    assert got[0].condition.environment_id is None
    assert not any(isinstance(e, EnvironmentObserved) for e in got)


def test_a_row_without_facts_brings_none() -> None:
    row = {k: v for k, v in AGENT.items() if not k.startswith("env_")}
    row |= {"subject_binary_sha256": None, "subject_version": None, "environment_id": "e" * 64}
    (trial,) = events(row)
    assert trial.condition.environment_id == "e" * 64


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"row": "oakledger-row/2"},
            "row 'oakledger-row/2' is not known: this oakledger reads oakledger-row/1",
        ),
        ({"row": 1}, "is not known"),
        ({"lane": "fast"}, "^lane: "),
        ({"subject": None}, "^subject: "),
        ({"status": "ok"}, "^status: "),
        ({"extra": 1}, "unknown field 'extra'"),
        ({"source": "x"}, "unknown field 'source'"),
        ({"metric_wall_s": 1.5}, "^metric_wall_s: a float"),
        ({"metric_wall_ns": 2**63}, "^metric_wall_ns: "),
        ({"metric_wall_ns": True}, "^metric_wall_ns: "),
        ({"metric_Wall": 1}, "^metric_Wall: does not have the form"),
        ({"metric_": 1}, "^metric_: "),
        ({"limit_timeout_ns": None}, "^limit_timeout_ns: "),
        ({"env_cpu": 8}, "^env_cpu: "),
        ({"env_cpu": "ü"}, "^env_cpu: does not have the form"),
        ({"metrics": {"wall_ns": 1}}, "^metrics: a row is flat"),
        ({"environment_id": "e" * 64}, "environment_id is not the SHA-256 of the env_ facts"),
        ({"environment_id": "e" * 64, "env_cpu": None}, "unmeasured env_ fact"),
        ({"recorded_at_ns": 0}, "^recorded_at_ns: a time before 2015"),
        ({"trial": "a b"}, "^trial: does not have the form"),
        ({f"metric_m{i}_ns": i for i in range(300)}, "^metrics: "),
    ],
)
def test_a_bad_row_is_refused_with_its_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadEventError, match=reason) as refused:
        events({**AGENT, **change})
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[]", "not a JSON object"),
        (b'{"row":"oakledger-row/1","row":"oakledger-row/1"}', "twice"),
        (b'{"row":"oakledger-row/1","x":' + b"[" * 100_000, "."),
        (b'{"row":NaN}', "NaN"),
        (b'{"row":"\xff"}', "not UTF-8"),
        (b'{"row":"oakledger-row/1","metric_a_ns":' + b"9" * 5000 + b"}", "."),
        (b'{"row":"' + b"x" * (1 << 20) + b'"}', "at most"),
    ],
)
def test_hostile_rows_are_refused_in_one_line(line: bytes, reason: str) -> None:
    with pytest.raises(BadEventError, match=reason) as refused:
        events_of_row(line)
    assert str(refused.value).isprintable()


def test_the_schema_names_the_open_fields_and_what_each_lane_requires() -> None:
    body = row_schema()["$defs"]["Row"]
    assert set(body["patternProperties"]) == {f"^{p}_[a-z][a-z0-9_]*$" for p in ("metric", "limit", "env")}
    assert {rule["if"]["properties"]["lane"]["const"] for rule in body["allOf"]} == set(REQUIRED)
    assert all(entry.get("description") for name, entry in body["properties"].items() if name != "row")
    assert "source" not in body["properties"] and "limits" not in body["properties"]
