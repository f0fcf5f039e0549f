"""`oakledger import` on small files of the shapes that other tools write: what goes in, what is refused."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pathlib
import zipfile
from decimal import Decimal
from typing import Any

import pytest

from ledger.cli.root import main
from ledger.importers import MODULES, guess, importer, shared
from ledger.importers.shared import ForeignFile, ForeignFileError, code, derived_trial, name, plain
from ledger.store import open_ledger
from qualify.decision import decide

SHA = "5a" * 32


class Desk:
    """A ledger in a folder of its own, and `oakledger import` on it."""

    def __init__(self, folder: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.ledger = folder / "oakledger.duckdb"
        self.capfd = capfd
        self.out = self.err = ""

    def write(self, content: Any, file: str = "results.json") -> str:
        path = self.folder / file
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    def run(self, *arguments: str, ledger: pathlib.Path | None = None) -> int:
        self.capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["--ledger", str(ledger or self.ledger), *arguments])
        self.out, self.err = self.capfd.readouterr()
        assert "Traceback" not in self.err
        return int(ended.value.code or 0)

    def take(self, tool: str, content: Any, *options: str) -> list[dict[str, Any]]:
        """Return the events that one file becomes."""
        output = self.folder / "events.ndjson"
        output.unlink(missing_ok=True)
        arguments = ("import", tool, self.write(content), "-o", str(output), *options)
        assert self.run(*arguments) == 0, self.err
        return [json.loads(line) for line in output.read_bytes().splitlines()]

    def store(self, tool: str, content: Any, *options: str) -> list[dict[str, Any]]:
        """Import one file and return the events that the ledger then has."""
        assert self.run("import", tool, self.write(content), *options) == 0, self.err
        return self.events()

    def refuse(self, tool: str, content: Any, *options: str) -> str:
        """Have one file refused, check that nothing was appended, and return the one line that says why."""
        path = self.write(content)
        assert self.run("import", tool, path, *options) == 2
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert path in self.err
        assert not self.ledger.exists()
        return self.err.partition(path)[2].strip()

    def events(self) -> list[dict[str, Any]]:
        with open_ledger(str(self.ledger), read_only=True) as ledger:
            rows = ledger.con.execute("SELECT payload FROM events ORDER BY seq").fetchall()
        return [json.loads(row[0]) for row in rows]

    def whats(self, campaign: str) -> set[tuple[int, str]]:
        """Return what the rules find on a campaign."""
        with open_ledger(str(self.ledger), read_only=True) as ledger:
            decision = decide(ledger, campaign)
        assert not decision.qualified
        return {(state.rule.number, v.what) for state in decision.rules for v in state.found}


@pytest.fixture
def desk(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capfd)


def trials(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e for e in events if e["kind"] == "trial_recorded/1"]


# Files of each shape


def vcbench(k: int = 2) -> dict[str, Any]:
    rows = [
        {
            "scenario": "pick-hunks",
            "agent": agent,
            "arm": arm,
            "rep": rep,
            "passed": (arm, rep) != ("git", 1),
            "failure": "CONTENT_WRONG" if (arm, rep) == ("git", 1) else None,
            "wall_ms": 1000 + rep,
            "task_vc": 7,
            "cold_bytes": 10,
            "warm_bytes": None,
        }
        for agent in ("one", "two")
        for arm in ("git", "fast+skill")
        for rep in range(1, k + 1)
    ]
    return {
        "schema_version": 1,
        "generated_at": "2026-05-01T10:00:00.250Z",
        "meta": {
            "total_runs": len(rows),
            "total_passed": sum(r["passed"] for r in rows),
            "agents": [
                {"id": "one", "observed_model": "m-1", "agent_cli_version": "1.2"},
                {"id": "two", "observed_model": None},
            ],
            "arms": [{"id": "git", "is_baseline": True}, {"id": "fast+skill"}],
        },
        "source_snapshots": [
            {
                "arms": ["git", "fast+skill"],
                "runs": len(rows),
                "provenance": {"binary_hash": SHA, "jj_version": "fast 0.1"},
            }
        ],
        "cells_by_scenario": [
            {"scenario": "pick-hunks", "agent": "one", "arm": "git", "n": k, "pass": k - 1},
            {"scenario": "pick-hunks", "agent": "both", "arm": "git", "n": 2 * k, "pass": 0},
        ],
        "rows": rows,
    }


def tb_trial(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"id-{number}",
        "trial_name": f"fix-it.{number}-of-2.run",
        "task_id": "fix-it",
        "instruction": "Fix it.",
        "is_resolved": True,
        "failure_mode": "unset",
        "parser_results": {"test_a": "passed", "test_b": "failed"},
        "total_input_tokens": 5,
        "total_output_tokens": None,
        "trial_started_at": f"2026-05-01T10:00:0{number}.5+02:00",
        "trial_ended_at": f"2026-05-01T10:01:0{number}.25+02:00",
        "agent_started_at": f"2026-05-01T10:00:0{number}.750001+02:00",
        "agent_ended_at": f"2026-05-01T10:00:0{number}.750002+02:00",
    } | fields


def tb_run(*results: dict[str, Any]) -> dict[str, Any]:
    solved = sum(r["is_resolved"] is True for r in results)
    return {
        "id": "run-1",
        "results": list(results),
        "n_resolved": solved,
        "n_unresolved": len(results) - solved,
        "accuracy": solved / len(results),
    }


def harbor(**fields: Any) -> dict[str, Any]:
    return {
        "id": "0f-1",
        "task_name": "org/serve-it",
        "trial_name": "serve-it__x",
        "config": {"agent": {"kwargs": {"mode": "live"}}},
        "agent_info": {"name": "some-agent", "version": "2.0+b", "model_info": {"name": "asked-for"}},
        "agent_result": {
            "n_input_tokens": 3,
            "n_cache_tokens": None,
            "n_output_tokens": 4,
            "cost_usd": 0.0123455,
            "metadata": {"response_models": ["answered"], "backend": "vendor"},
        },
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": "2026-05-01T10:00:00Z",
        "finished_at": "2026-05-01T10:05:00Z",
        "agent_execution": {"started_at": "2026-05-01T10:01:00Z", "finished_at": "2026-05-01T10:01:00.5Z"},
    } | fields


def sample(number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": 1,
        "output": {"model": "answered-1"},
        "scores": {"match": {"value": "C"}},
        "events": [
            {"event": "span_begin", "timestamp": "2026-05-01T09:59:59Z"},
            {"event": "sample_init", "timestamp": f"2026-05-01T10:00:0{number}Z"},
        ],
        "model_usage": {"m": {"input_tokens": 6, "output_tokens": 2, "total_tokens": 8}},
        "total_time": 0.664,
        "working_time": None,
        "uuid": f"u-{number}",
    } | fields


def inspect_log(*samples: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "popular",
            "task_version": 0,
            "model": "vendor/asked-for",
            "created": "2026-05-01T10:00:00+00:00",
            "config": {"time_limit": 60, "message_limit": None},
        },
        "results": {"total_samples": len(samples), "completed_samples": len(samples)},
        "stats": {"completed_at": "2026-05-01T10:10:00+00:00"},
        "samples": list(samples),
    } | fields


def packed(log: dict[str, Any], drop: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        parts = {"header.json": {k: v for k, v in log.items() if k != "samples"}}
        parts |= {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in log["samples"]}
        for part, value in parts.items():
            if part != drop:
                z.writestr(part, json.dumps(value))
    return out.getvalue()


def hyperfine(*times: float, **fields: Any) -> dict[str, Any]:
    times = times or (0.5, 1.5)
    result = {
        "command": "./fast < input",
        "mean": sum(times) / len(times),
        "min": min(times),
        "max": max(times),
        "times": list(times),
        "exit_codes": [0] * len(times),
    }
    return {"results": [result | fields]}


def pytest_benchmark(**fields: Any) -> dict[str, Any]:
    stats = {"min": 2.2016643907464864e-07, "max": 1e-05, "median": 3e-07, "rounds": 9, "iterations": 4}
    return {
        "benchmarks": [
            {"fullname": "tests/test_a.py::test_one[x y]", "stats": stats},
            {"fullname": "tests/test_a.py::test_two", "stats": stats},
        ],
        "machine_info": {"node": "my-laptop", "system": "Linux", "cpu": {"count": 2, "brand_raw": "CPU(R)"}},
        "commit_info": {"id": "ab" * 20, "dirty": True, "project": "proj"},
        "datetime": "2026-05-01T10:00:00.123456",
        "version": "4.0.0",
    } | fields


EXAMPLES: dict[str, Any] = {
    "vcbench": vcbench(),
    "terminal-bench": tb_run(tb_trial(1), tb_trial(2)),
    "harbor": harbor(),
    "inspect": inspect_log(sample()),
    "hyperfine": hyperfine(),
    "pytest-benchmark": pytest_benchmark(),
}


# Every tool alike


@pytest.mark.parametrize("tool", MODULES)
def test_the_same_file_again_is_known(desk: Desk, tool: str) -> None:
    first = desk.store(tool, EXAMPLES[tool])
    assert desk.run("import", tool, desk.write(EXAMPLES[tool], "copy of it.json"), "--json") == 0
    summary = json.loads(desk.out)
    assert (summary["new"], summary["known"]) == (0, len(first))
    assert desk.events() == first


@pytest.mark.parametrize("tool", MODULES)
def test_nothing_is_judged_or_declared(desk: Desk, tool: str) -> None:
    events = desk.take(tool, EXAMPLES[tool])
    assert {e["kind"] for e in events} <= {
        "trial_recorded/1",
        "environment_observed/1",
        "subject_identified/1",
    }
    (campaign,) = {e["campaign"] for e in events}
    digest = hashlib.sha256(json.dumps(EXAMPLES[tool]).encode()).hexdigest()
    assert campaign == f"import/{tool}/{digest[:16]}"
    assert {e["source"] for e in events} == {f"import/{tool}/{digest}"}
    assert not [e for e in events if "reached_head" in e]


def test_an_import_alone_is_never_qualified(desk: Desk) -> None:
    campaign = desk.store("hyperfine", hyperfine())[0]["campaign"]
    assert (1, "not_declared") in desk.whats(campaign)


@pytest.mark.parametrize("tool", MODULES)
def test_written_events_are_those_that_would_be_appended(desk: Desk, tool: str) -> None:
    output = desk.folder / "events.ndjson"
    path = desk.write(EXAMPLES[tool])
    assert desk.run("import", tool, path, "--campaign", "c-1", "-o", str(output)) == 0
    assert not desk.ledger.exists()
    assert desk.run("ingest", str(output)) == 0
    assert desk.run("import", tool, path, "--campaign", "c-1", "--json") == 0
    assert json.loads(desk.out)["new"] == 0
    assert {e["campaign"] for e in desk.events()} == {"c-1"}
    assert desk.run("import", tool, path, "--campaign", "c-1", "-o", str(output)) == 2
    assert "exists" in desk.err
    assert [p.name for p in desk.folder.glob("*.tmp")] == []


@pytest.mark.parametrize("tool", MODULES)
@pytest.mark.parametrize("other", MODULES)
def test_a_file_of_another_tool_is_named(desk: Desk, tool: str, other: str) -> None:
    assert guess(EXAMPLES[other]) == other
    if tool != other:
        assert f"looks like one of {other}: oakledger import {other}" in desk.refuse(tool, EXAMPLES[other])


@pytest.mark.parametrize("tool", MODULES)
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"hello", "not JSON at line 1 column 1"),
        (b'{"a": 1', "it ends early"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1, "a": 2}', "key 'a' twice"),
        (b'{"a": 1e99999}', "out of range"),
        (b'{"a": 1e999999999999999999999999}', "out of range"),
        (b'{"a": ' + b"9" * 5000 + b"}", "5000 characters"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"[1, 2]", "no "),
        (b"null", "no "),
        (b'{"results": {"rows": []}}', "no "),
    ],
)
def test_what_is_no_result_file_is_refused(desk: Desk, tool: str, content: bytes, why: str) -> None:
    assert why in desk.refuse(tool, content)


@pytest.mark.parametrize("tool", MODULES)
def test_every_cut_of_a_file_is_refused(desk: Desk, tool: str) -> None:
    whole = json.dumps(EXAMPLES[tool]).encode()
    for end in range(1, len(whole), max(1, len(whole) // 12)):
        desk.refuse(tool, whole[:end])


@pytest.mark.parametrize("tool", MODULES)
def test_a_value_of_another_type_anywhere_never_ends_in_a_traceback(desk: Desk, tool: str) -> None:
    def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
        yield path
        if isinstance(value, dict):
            for key in value:
                yield from places(value[key], (*path, key))
        elif isinstance(value, list):
            for index in range(min(len(value), 2)):
                yield from places(value[index], (*path, index))

    file = desk.folder / "x.json"
    refused = 0
    for path in places(EXAMPLES[tool]):
        for bad in (None, [], {}, "\ud800", -1, 2**70, True, 1.5e300):
            changed = copy.deepcopy({"top": EXAMPLES[tool]})
            at: Any = changed
            for step in ("top", *path)[:-1]:
                at = at[step]
            at[("top", *path)[-1]] = bad
            file.write_text(json.dumps(changed["top"]))
            try:
                importer(tool).read(ForeignFile(str(file)), None)
            except ForeignFileError as e:
                refused += 1
                assert str(e).startswith(str(file))
                assert "\n" not in str(e)
    assert refused > 20


def test_one_bad_file_keeps_all_out(desk: Desk) -> None:
    good = desk.write(hyperfine(), "good.json")
    bad = desk.write(hyperfine(mean=3.0), "bad.json")
    assert desk.run("import", "hyperfine", good, bad) == 2
    assert f"{bad}: results[0].mean: says 3.0" in desk.err
    assert not desk.ledger.exists()


def test_a_fifo_a_folder_and_a_missing_file_are_refused_at_once(desk: Desk) -> None:
    fifo = desk.folder / "pipe"
    os.mkfifo(fifo)
    for path, why in ((fifo, "no regular file"), (desk.folder, ""), (desk.folder / "none", "cannot be read")):
        assert desk.run("import", "hyperfine", str(path)) == 2
        assert why in desk.err


def test_a_file_too_large_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MAX_DOCUMENT_BYTES", 100)
    assert "at most 100 are read" in desk.refuse("vcbench", vcbench())
    monkeypatch.setattr(shared, "MAX_FILE_BYTES", 50)
    assert "MiB: split it" in desk.refuse("vcbench", vcbench())
    monkeypatch.undo()
    monkeypatch.setattr(shared, "MAX_TRIALS", 3)
    assert "more than 3 trials" in desk.refuse("vcbench", vcbench())


@pytest.mark.parametrize("option", ["--campaign", "--subject"])
def test_a_name_that_is_none_is_refused(desk: Desk, option: str) -> None:
    assert desk.run("import", "terminal-bench", desk.write(tb_trial()), option, "a b") == 2
    assert option in desk.err


def test_a_file_dated_ahead_of_the_clock_is_refused(desk: Desk) -> None:
    content = vcbench() | {"generated_at": "2098-01-01T00:00:00Z"}
    assert "more than a day ahead" in desk.refuse("vcbench", content)


def test_another_subject_for_a_known_file_is_a_conflict(desk: Desk) -> None:
    path = desk.write(tb_trial())
    assert desk.run("import", "terminal-bench", path, "--subject", "a") == 0
    assert desk.run("import", "terminal-bench", path, "--subject", "b") == 2
    assert "imported into this campaign before, with other content" in desk.err
    assert len(desk.events()) == 1


def test_two_campaigns_of_one_file_are_found_out(desk: Desk) -> None:
    path = desk.write(vcbench())
    for campaign in ("a", "b"):
        assert desk.run("import", "vcbench", path, "--campaign", campaign) == 0
    assert (2, "identity_used_elsewhere") in desk.whats("b")


def test_the_same_file_on_two_machines_is_one_set_of_events(desk: Desk) -> None:
    path = desk.write(vcbench())
    assert desk.run("import", "vcbench", path) == 0
    other = desk.folder / "other.duckdb"
    assert desk.run("import", "vcbench", path, ledger=other) == 0
    assert desk.run("merge", str(other)) == 0, desk.err
    with open_ledger(str(desk.ledger), read_only=True) as ledger:
        counted = ledger.con.execute("SELECT count(*) FROM ledger_events").fetchone()
    assert counted == (9,)


# Names and numbers


def test_names_keep_different_texts_apart() -> None:
    assert name("jj+skill") == "jj+skill"
    assert name("a b") != name("a  b") != name("a-b")
    assert name("./run me").startswith("run-me.")
    assert name("…").startswith("unnamed.")
    assert name("\ud800") != name("\ud801")
    assert len(name("x" * 5000)) <= 200
    assert plain("gpt-5.5") == "gpt-5.5"
    assert plain('a"b') not in (plain("a-b"), plain("a\\b"))
    assert plain(None) is None
    assert code("AgentTimeoutError") == "agent_timeout_error"
    assert code("GRAPH_WRONG") == "graph_wrong"


def test_derived_trials_keep_different_keys_apart(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    file = ForeignFile(str(path))
    plainly = derived_trial("t", file, "a", "b")
    assert plainly == f"t/derived/{file.sha256[:16]}/a/b"
    keys = [("a", "b"), ("a/b",), ("a", "b", ""), ("a/", "b"), ("x" * 300, "1"), ("x" * 300, "2"), ("a b",)]
    names = {derived_trial("t", file, *key) for key in keys}
    assert len(names) == len(keys)
    assert all(len(n) <= 200 for n in names)


def node(tmp_path: pathlib.Path, text: str) -> shared.Node:
    path = tmp_path / "n.json"
    path.write_text(text)
    return ForeignFile(str(path)).document()


@pytest.mark.parametrize(
    ("text", "power", "expected"),
    [
        ("0.1", 9, 100_000_000),
        ("37.44412000412", 9, 37_444_120_004),
        ("10.609249121120001", 9, 10_609_249_121),
        ("9.066039999998821e-06", 9, 9066),
        ("0.0000000005", 9, 0),
        ("0.0000000015", 9, 2),
        ("0.00000000250000000000000000000001", 9, 3),
        ("4611686018427387905", 0, 4_611_686_018_427_387_905),
        ("-1.5", 0, -2),
        ("2.2016643907464864e-07", 12, 220_166),
        ("1e-300", 9, 0),
        ("null", 9, None),
    ],
)
def test_fractions_are_scaled_exactly(tmp_path: pathlib.Path, text: str, power: int, expected: int) -> None:
    assert node(tmp_path, text).scaled(power) == expected


@pytest.mark.parametrize("text", ["1e10", "9223372036854775807.6", "true", '"1"', "[1]"])
def test_what_no_integer_holds_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    with pytest.raises(ForeignFileError):
        node(tmp_path, text).scaled(9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2025-09-10T19:49:26.348351+08:00", 1_757_504_966_348_351_000),
        ("2025-09-10T11:49:26.348351Z", 1_757_504_966_348_351_000),
        ("2025-09-10 11:49:26.348351001-0000", 1_757_504_966_348_351_001),
        ("2025-05-12T20:28:13-04:00", 1_747_096_093_000_000_000),
        ("2025-05-12T20:28:13", None),
    ],
)
def test_times_are_exact_and_those_without_a_zone_unknown(
    tmp_path: pathlib.Path, text: str, expected: int | None
) -> None:
    assert node(tmp_path, json.dumps(text)).time_ns() == expected


@pytest.mark.parametrize("text", ["yesterday", "2025-13-01T00:00:00Z", "2025-01-01T25:00:00Z", "2025-01-01"])
def test_what_is_no_time_is_refused(tmp_path: pathlib.Path, text: str) -> None:
    with pytest.raises(ForeignFileError, match="no time"):
        node(tmp_path, json.dumps(text)).time_ns()


def test_fractions_are_kept_as_written(tmp_path: pathlib.Path) -> None:
    assert node(tmp_path, "0.10").number() == Decimal("0.10")


# vcbench


def test_vcbench_rows(desk: Desk) -> None:
    events = desk.take("vcbench", vcbench())
    first = events[1]
    short = first["trial"].split("/")[2]
    assert events[0] == {
        "kind": "subject_identified/1",
        "source": events[0]["source"],
        "ordinal": 0,
        "recorded_at_ns": 1_777_629_600_250_000_000,
        "campaign": events[0]["campaign"],
        "subject": "fast+skill",
        "binary_sha256": SHA,
        "version": "fast 0.1",
    }
    assert first | {"source": "", "row_sha256": ""} == {
        "kind": "trial_recorded/1",
        "source": "",
        "ordinal": 1,
        "recorded_at_ns": 1_777_629_600_250_000_000,
        "campaign": f"import/vcbench/{short}",
        "lane": "agent",
        "scenario": "vcbench/pick-hunks",
        "scenario_version": 1,
        "subject": "git",
        "trial": f"vcbench/derived/{short}/pick-hunks/one/git/1",
        "condition": {"agent": "one", "agent_version": "1.2", "model": "m-1"},
        "status": "completed",
        "status_code": "content_wrong",
        "repetition": 0,
        "claimed_success": False,
        "row_sha256": "",
        "metrics": {"wall_ns": 1_001_000_000, "task_vc_count": 7, "cold_bytes": 10, "warm_bytes": None},
    }
    other = trials(events)[-1]
    assert other["condition"] == {"agent": "two"}
    assert other["subject_binary_sha256"] == SHA
    assert "the model of agent two is unknown" in desk.out


def test_vcbench_timeouts_stay_beside_the_claim(desk: Desk) -> None:
    content = vcbench()
    content["rows"][1]["failure"] = "AGENT_TIMEOUT"
    second = trials(desk.take("vcbench", content))[1]
    assert (second["status"], second["claimed_success"]) == ("timeout", True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d["meta"].update(total_runs=9), "meta.total_runs: says 9, and the file holds 8 rows"),
        (lambda d: d["meta"].update(total_passed=8), "meta.total_passed: says 8"),
        (lambda d: d["source_snapshots"][0].update(runs=1), "source_snapshots[0].runs: says 1"),
        (lambda d: d["cells_by_scenario"][0].update({"pass": 2}), "cells_by_scenario[0].pass: says 2"),
        (lambda d: d["rows"].append(d["rows"][0]), "total_runs"),
        (lambda d: d["rows"].__setitem__(1, d["rows"][0]), ""),
        (lambda d: d["rows"][0].update(rep=0), "rows[0].rep: no number from 1"),
        (lambda d: d["rows"][0].update(wall_ms="3"), "rows[0].wall_ms: a text, where a number"),
        (lambda d: d["rows"][0].update(arm=None), "rows[0].arm: no text"),
        (lambda d: d.update(schema_version=2), "schema_version: not a version"),
        (lambda d: d.update(generated_at="soon"), "generated_at: 'soon' is no time"),
        (lambda d: d["source_snapshots"][0]["provenance"].update(binary_hash="0"), "no event holds it"),
    ],
)
def test_vcbench_refuses(desk: Desk, change: Any, why: str) -> None:
    content = vcbench()
    change(content)
    assert why in desk.refuse("vcbench", content)


def test_vcbench_a_row_twice_is_refused(desk: Desk) -> None:
    content = vcbench()
    content["rows"][1]["rep"] = 1
    for key in ("meta", "cells_by_scenario", "source_snapshots"):
        content[key] = {"agents": [], "arms": []} if key == "meta" else []
    assert "rows[1]: the same trial as at rows[0]" in desk.refuse("vcbench", content)


def test_vcbench_pooled_files_are_no_larger_sample(desk: Desk) -> None:
    second = vcbench()
    second["source_snapshots"][0]["provenance"]["binary_hash"] = "6b" * 32
    paths = [desk.write(vcbench(), "1.json"), desk.write(second, "2.json")]
    assert desk.run("import", "vcbench", *paths, "--campaign", "pooled") == 0
    assert (6, "binary_changes") in desk.whats("pooled")


# Terminal-Bench


def test_terminal_bench_run(desk: Desk) -> None:
    run = tb_run(tb_trial(1), tb_trial(2, is_resolved=None, failure_mode="parse_error", parser_results=None))
    one, two = desk.take("terminal-bench", run)
    assert one["trial"] == "terminal-bench/id-1"
    assert one["started_at_ns"] == 1_777_622_401_500_000_000
    assert one["ended_at_ns"] == 1_777_622_461_250_000_000
    assert one["condition"] == {"instruction_sha256": hashlib.sha256(b"Fix it.").hexdigest()}
    assert one["metrics"] == {
        "input_tokens_count": 5,
        "output_tokens_count": None,
        "agent_ns": 1000,
        "test_ns": None,
        "tests_passed_count": 1,
        "tests_total_count": 2,
    }
    assert one["claimed_success"] is True
    assert one["subject"] == f"terminal-bench/unnamed/{one['campaign'].rpartition('/')[2]}"
    assert one["recorded_at_ns"] == two["ended_at_ns"]
    assert "claimed_success" not in two
    assert (two["status"], two["status_code"]) == ("completed", "parse_error")
    assert two["metrics"]["tests_total_count"] is None


@pytest.mark.parametrize(
    ("mode", "status"),
    [("agent_timeout", "timeout"), ("unknown_agent_error", "error"), ("test_timeout", "completed")],
)
def test_terminal_bench_failure_modes(desk: Desk, mode: str, status: str) -> None:
    (trial,) = desk.take("terminal-bench", tb_trial(failure_mode=mode))
    assert (trial["status"], trial["status_code"]) == (status, mode)


def test_terminal_bench_lines_without_ids(desk: Desk) -> None:
    rows = [
        tb_trial(n, id=None, submission="team", source_file=f"v1/{run}", trial_started_at=None)
        for run in ("run-a", "run-b")
        for n in (1, 2)
    ]
    made = desk.store("terminal-bench", "\n".join(json.dumps(r) for r in rows).encode() + b"\n")
    assert len({t["trial"] for t in made}) == 4
    assert all("/derived/" in t["trial"] and "started_at_ns" not in t for t in made)
    assert {t["subject"] for t in made} == {"team"}
    assert "have no id (names are derived): 4" in desk.out
    assert (5, "start_missing") in desk.whats(made[0]["campaign"])


def test_terminal_bench_lines_need_no_subject(desk: Desk) -> None:
    assert "leave --subject out" in desk.refuse("terminal-bench", tb_trial(submission="t"), "--subject", "s")


def test_terminal_bench_older_trials_have_a_uuid(desk: Desk) -> None:
    trial = tb_trial(uuid="u-1")
    del trial["id"]
    (made,) = desk.take("terminal-bench", trial, "--subject", "team")
    assert (made["trial"], made["subject"]) == ("terminal-bench/u-1", "team")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (tb_run(tb_trial()) | {"n_resolved": 0}, "n_resolved: says 0"),
        (tb_run(tb_trial()) | {"n_unresolved": 1}, "n_unresolved: says 1"),
        (tb_run(tb_trial()) | {"accuracy": 0.5}, "accuracy: says 0.5, and 1 of 1"),
        (tb_run(tb_trial(), tb_trial()), "results[1]: the same trial as at results[0]"),
        (tb_trial(failure_mode="bored"), "failure_mode: not a failure mode that is known"),
        (tb_trial(is_resolved="yes"), "is_resolved: a text, where true, false or null"),
        (tb_trial(total_input_tokens=2**63), "no 64-bit integer holds"),
        (tb_trial(trial_started_at="1999-01-01T00:00:00Z"), "before 2015"),
        ({"results": [], "n_resolved": 0, "n_unresolved": 0}, "no trial in it"),
        ({"run_id": "r", "accuracy": 0.5}, "run_metadata.json and tb.lock hold no trial"),
        (
            (json.dumps(tb_trial()) + "\n{}\n").encode(),
            "line 2: no trial",
        ),
        ((json.dumps(tb_trial()) + '\n{"a"').encode(), "line 2: not JSON"),
        (json.dumps(tb_trial(), indent=4).encode()[:-9], ": not JSON at line 17"),
    ],
)
def test_terminal_bench_refuses(desk: Desk, content: Any, why: str) -> None:
    assert why in desk.refuse("terminal-bench", content)


# Harbor


def test_harbor_trial(desk: Desk) -> None:
    (trial,) = desk.take("harbor", harbor())
    assert trial["trial"] == "harbor/0f-1"
    assert trial["scenario"] == "harbor/org/serve-it"
    assert trial["condition"] == {"agent": "some-agent", "agent_version": "2.0+b", "model": "answered"}
    assert (trial["status"], trial["claimed_success"]) == ("completed", True)
    assert trial["metrics"] == {
        "input_tokens_count": 3,
        "cache_tokens_count": None,
        "output_tokens_count": 4,
        "environment_setup_ns": None,
        "agent_setup_ns": None,
        "agent_execution_ns": 500_000_000,
        "verifier_ns": None,
        "cost_microusd": 12_346,
        "reward_ppm": 1_000_000,
    }


@pytest.mark.parametrize(
    "words",
    [
        {"config": {"agent": {"kwargs": {"mode": "fake"}}}},
        {"agent_result": {"metadata": {"backend": "controlled-fake-proxy"}}},
    ],
)
def test_harbor_fake_agents_never_ran(desk: Desk, words: dict[str, Any]) -> None:
    (trial,) = desk.store("harbor", harbor(**words))
    assert (trial["status"], trial["status_code"]) == ("unlaunched", "fake_agent")
    assert trial["claimed_success"] is True
    assert "no agent ran" in desk.out
    with open_ledger(str(desk.ledger), read_only=True) as ledger:
        cells = decide(ledger, trial["campaign"]).tables["cells"]
    assert [c["measured"] for c in cells] == [0]


@pytest.mark.parametrize(
    ("exception", "status", "status_code"),
    [
        ("AgentTimeoutError", "timeout", "agent_timeout_error"),
        ("EnvironmentStartTimeoutError", "harness_failure", "environment_start_timeout_error"),
        ("OSError", "error", "oserror"),
    ],
)
def test_harbor_exceptions(desk: Desk, exception: str, status: str, status_code: str) -> None:
    (trial,) = desk.take("harbor", harbor(exception_info={"exception_type": exception}))
    assert (trial["status"], trial["status_code"]) == (status, status_code)


@pytest.mark.parametrize(
    ("reward", "claim"), [(0, False), (0.0, False), (1, True), (0.5, None), (None, None)]
)
def test_harbor_a_partial_reward_claims_nothing(desk: Desk, reward: Any, claim: bool | None) -> None:
    (trial,) = desk.take("harbor", harbor(verifier_result={"rewards": {"reward": reward}}))
    assert trial.get("claimed_success") is claim


def test_harbor_local_times_are_unknown(desk: Desk) -> None:
    (trial,) = desk.take("harbor", harbor(started_at="2026-05-01T10:00:00"))
    assert "started_at_ns" not in trial


def test_harbor_jobs_and_locks_are_refused(desk: Desk) -> None:
    job = {"id": "j", "n_total_trials": 1, "stats": {"n_completed_trials": 1}}
    assert "a job's, a lock and a test report hold no trial" in desk.refuse("harbor", job)


# Inspect


def test_inspect_samples(desk: Desk) -> None:
    (trial,) = desk.take("inspect", inspect_log(sample()))
    assert trial["scenario"] == "inspect/popular@0/1"
    assert trial["subject"] == "vendor/asked-for"
    assert trial["trial"] == "inspect/u-1"
    assert trial["condition"] == {"model": "answered-1", "limits": {"time_limit_ns": 60_000_000_000}}
    assert trial["started_at_ns"] == 1_777_629_601_000_000_000
    assert trial["metrics"] == {
        "total_ns": 664_000_000,
        "working_ns": None,
        "input_tokens_count": 6,
        "output_tokens_count": 2,
        "total_tokens_count": 8,
    }
    assert (trial["status"], trial["claimed_success"], trial["repetition"]) == ("completed", True, 0)


def test_inspect_the_zip_form_says_the_same(desk: Desk) -> None:
    log = inspect_log(sample(1), sample(2, uuid=None))
    unzipped = desk.take("inspect", log, "--campaign", "json")
    other = Desk(desk.folder / "zip", desk.capfd)
    other.folder.mkdir()
    zipped = other.take("inspect", packed(log), "--campaign", "json")
    vary = {"source": "", "trial": ""}
    assert [e | vary for e in zipped] == [e | vary for e in unzipped]


def test_inspect_a_cancelled_run_measures_nothing(desk: Desk) -> None:
    (trial,) = desk.store("inspect", inspect_log(sample(), status="cancelled"))
    assert (trial["status"], trial["status_code"], trial["claimed_success"]) == (
        "completed",
        "cancelled",
        True,
    )
    assert "cancelled and shows results" in desk.out
    with open_ledger(str(desk.ledger), read_only=True) as ledger:
        outcomes = ledger.con.execute("SELECT fact_outcome, measured FROM trial_outcomes").fetchall()
    assert outcomes == [("harness_failure", False)]


@pytest.mark.parametrize(
    ("scores", "claim"),
    [
        ({"a": {"value": "I"}}, False),
        ({"a": {"value": "P"}}, None),
        ({"a": {"value": 1.0}}, True),
        ({"a": {"value": 0}}, False),
        ({"a": {"value": 0.7}}, None),
        ({"a": {"value": True}}, True),
        ({"a": {"value": "C"}, "b": {"value": 1}}, True),
        ({"a": {"value": "C"}, "b": {"value": "I"}}, None),
        ({"a": {"value": [1]}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_inspect_claims(desk: Desk, scores: Any, claim: bool | None) -> None:
    (trial,) = desk.take("inspect", inspect_log(sample(scores=scores)))
    assert trial.get("claimed_success") is claim


@pytest.mark.parametrize(
    ("fields", "status", "status_code"),
    [
        ({"error": {"message": "boom"}}, "error", "sample_error"),
        ({"limit": {"type": "time", "limit": 60}}, "timeout", "limit_time"),
        ({"limit": {"type": "token", "limit": 60}}, "completed", "limit_token"),
    ],
)
def test_inspect_statuses(desk: Desk, fields: Any, status: str, status_code: str) -> None:
    log = inspect_log(sample(**fields), results=None)
    (trial,) = desk.take("inspect", log)
    assert (trial["status"], trial["status_code"]) == (status, status_code)


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("header.json", json.dumps(inspect_log()))
        z.writestr("samples/1_epoch_1.json", b" " * (shared.MAX_DOCUMENT_BYTES + 1))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            inspect_log(results={"completed_samples": 3}, status="cancelled"),
            "results.completed_samples: says 3 (status cancelled), and the log has no samples",
        ),
        (inspect_log(sample(), results={"completed_samples": 4}), "says 4, and the file holds 1"),
        (inspect_log(sample(uuid=None), sample(uuid=None)), "samples[1]: the same trial as at samples[0]"),
        (inspect_log(sample(epoch=0)), "samples[0]: no id, or no epoch from 1"),
        (inspect_log(sample(), status="bored"), "status: not a status that is known"),
        (inspect_log(sample(), version=3), "version: not a version"),
        (inspect_log(results=None), "no trial in it"),
        (packed(inspect_log(sample()), drop="header.json"), "no header.json in it"),
        (packed(inspect_log(sample()))[:-30], "no whole .eval file"),
        (bomb(), "samples/1_epoch_1.json: "),
    ],
)
def test_inspect_refuses(desk: Desk, content: Any, why: str) -> None:
    assert why in desk.refuse("inspect", content)


def test_inspect_a_damaged_part_is_refused(desk: Desk) -> None:
    data = bytearray(packed(inspect_log(sample())))
    data[data.index(b"samples/1_epoch_1.json") + 60] ^= 0xFF
    assert "samples/1_epoch_1.json" in desk.refuse("inspect", bytes(data))


# hyperfine


def test_hyperfine_runs(desk: Desk) -> None:
    one, two = desk.take("hyperfine", hyperfine(37.44412000412, 38.42872785612, exit_codes=[0, 3]))
    assert one["subject"].startswith("fast-input.")
    assert one["trial"].startswith("hyperfine/derived/")
    assert (one["lane"], one["scenario"], one["repetition"]) == ("core", "hyperfine/unnamed", 0)
    assert (one["status"], one["exit_code"]) == ("completed", 0)
    assert one["metrics"] == {"wall_ns": 37_444_120_004}
    assert (two["status"], two["exit_code"], two["metrics"]) == ("error", 3, {"wall_ns": 38_428_727_856})
    assert not {"started_at_ns", "claimed_success", "process_key"} & one.keys()


def test_hyperfine_without_exit_codes_does_not_know(desk: Desk) -> None:
    content = hyperfine(0.0, 0.0, command="x [ERROR]")
    del content["results"][0]["exit_codes"]
    one, _ = desk.take("hyperfine", content)
    assert one["status_code"] == "exit_code_unknown"
    assert "exit_code" not in one
    assert "whether the command worked is unknown" in desk.out
    assert "holds [ERROR]" in desk.out


def test_hyperfine_a_run_that_a_signal_ended(desk: Desk) -> None:
    one, _ = desk.take("hyperfine", hyperfine(1.0, 2.0, exit_codes=[None, 0]))
    assert (one["status"], one["status_code"]) == ("error", "no_exit_code")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (hyperfine(mean=1.1), "results[0].mean: says 1.1, and its runs make 1"),
        (hyperfine(min=0.4), "results[0].min"),
        (hyperfine(exit_codes=[0]), "1 exit codes of 2 runs"),
        (hyperfine(times=[]), "results[0].times: no times"),
        (hyperfine(times=[0.5, None]), "results[0].times: no times, or a null"),
        (hyperfine(times=None), "results[0].times: null, where an array"),
        (hyperfine(1e10, 2e10), "no 64-bit integer holds"),
        (hyperfine(command=""), "results[0].command: no text"),
        ({"results": []}, "no hyperfine file"),
    ],
)
def test_hyperfine_refuses(desk: Desk, content: Any, why: str) -> None:
    assert why in desk.refuse("hyperfine", content)


# pytest-benchmark


def test_pytest_benchmark(desk: Desk) -> None:
    environment, identity, one, two = desk.store("pytest-benchmark", pytest_benchmark())
    node_sha256 = hashlib.sha256(b"my-laptop").hexdigest()
    assert environment["facts"] == {
        "system": "Linux",
        "cpu_brand_raw": "CPU(R)",
        "cpu_count": "2",
        "node_sha256": node_sha256,
    }
    assert "my-laptop" not in json.dumps([environment, identity, one, two])
    assert (identity["version"], identity["dirty"]) == ("ab" * 20, True)
    assert one["condition"] == {"environment_id": environment["environment_id"]}
    assert one["process_key"] == two["process_key"]
    assert one["metrics"] == {
        "min_ps": 220_166,
        "max_ps": 10_000_000,
        "mean_ps": None,
        "median_ps": 300_000,
        "stddev_ps": None,
        "q1_ps": None,
        "q3_ps": None,
        "rounds_count": 9,
        "iterations_count": 4,
    }
    assert one["recorded_at_ns"] == 1_777_629_600_123_456_000
    assert "started_at_ns" not in one
    assert {(2, "iterations"), (6, "dirty_source")} <= desk.whats(one["campaign"])


def test_pytest_benchmark_without_project(desk: Desk) -> None:
    content = pytest_benchmark(commit_info=None, machine_info={})
    one, _ = trials(desk.take("pytest-benchmark", content))
    assert one["subject"].startswith("pytest-benchmark/unnamed/")
    assert one["condition"] == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d["benchmarks"][1].update(fullname=d["benchmarks"][0]["fullname"]), "same trial"),
        (lambda d: d["benchmarks"][0]["stats"].update(min=1.0), "not in this order"),
        (lambda d: d["benchmarks"][0]["stats"].update(data=[1.0]), "rounds: says 9, and the file holds 1"),
        (lambda d: d["benchmarks"][0].update(stats=None), "stats: null, where an object"),
        (lambda d: d.update(benchmarks=[]), "no trial in it"),
    ],
)
def test_pytest_benchmark_refuses(desk: Desk, change: Any, why: str) -> None:
    content = json.loads(json.dumps(pytest_benchmark()))
    change(content)
    assert why in desk.refuse("pytest-benchmark", content)
