"""`oakledger show`: the chain of evidence of an event, a trial, a campaign; names that are not there."""

import json
import os
import subprocess
import sys

import pytest

from ledger import events as ev
from ledger.store import open_ledger

NOW = 1_750_000_000_000_000_000
HOSTILE = "bad\x1b[31m\nname\u202e"


def oakledger(path, *args):
    return subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", str(path), *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
    )


def story():
    """A campaign of three trials: a pass, a failure, and a harness failure that the pass stands in for."""
    numbers = iter(range(100))

    def common():
        n = next(numbers)
        return {"source": "story", "ordinal": n, "recorded_at_ns": NOW + n}

    condition = ev.Condition(track="core-equivalent")
    scenario = ev.ScenarioPlan("undo_bad_commit", 1, 1, 1, "c" * 64, evidence="committed_tree")
    yield ev.CampaignDeclared(
        **common(),
        campaign="story",
        preregistered=True,
        plan=ev.Plan(
            lane="workflow",
            subjects=(ev.SubjectPlan("git"), ev.SubjectPlan("oak_installed")),
            scenarios=(scenario,),
            conditions=(condition,),
            trials_per_cell=2,
        ),
    )
    for trial, status, verdict in (
        ("story/one", "harness_failure", None),
        ("story/two", "completed", "pass"),
        ("story/three", "completed", "fail"),
    ):
        yield ev.TrialRecorded(
            **common(),
            campaign="story",
            lane="workflow",
            scenario="undo_bad_commit",
            scenario_version=1,
            subject="git",
            trial=trial,
            condition=condition,
            status=status,
            repetition=1 if trial == "story/three" else 0,
            exit_code=0,
            reached_head=True,
            started_at_ns=NOW,
            ended_at_ns=NOW + 1,
            subject_binary_sha256="b" * 64,
        )
        if verdict is None:
            continue
        read = ev.ReaderInvoked(
            **common(),
            vcs="git",
            reader="git_object_reader",
            reader_version="1",
            code_sha256="a" * 64,
            backend="pure",
            outcome="ok",
            exit_status=0,
            relation="independent",
            bounds=ev.ReaderBounds(),
            campaign="story",
            trial=trial,
            subject="git",
            head="4" * 40,
            manifest_sha256="5" * 64,
        )
        yield read
        yield ev.OracleJudged(
            **common(),
            scenario="undo_bad_commit",
            scenario_version=1,
            oracle_version=1,
            fixture_version=1,
            contract_sha256="c" * 64,
            verdict=verdict,
            reason=None if verdict == "pass" else "content_mismatch",
            campaign="story",
            trial=trial,
            subject="git",
            reader_event_id=ev.event_id(read),
            manifest_sha256="5" * 64,
            depth="committed_tree",
            checks=(ev.Check("exact_tree", verdict, path=f"dir/{HOSTILE}", excerpt=HOSTILE),),
        )
    yield ev.TrialReplaced(
        **common(),
        campaign="story",
        trial="story/one",
        replacement="story/two",
        who="operator",
        why=f"the disk was full {HOSTILE}",
    )
    yield ev.QualificationDecided(
        **common(),
        campaign="story",
        decision="diagnostic",
        exit_status=1,
        plan_sha256=None,
        checkpoint_origin="o",
        checkpoint_size=5,
        checkpoint_root="0" * 64,
        views_sha256="1" * 64,
        package_version="0.1.0",
        rules=(ev.RuleResult("planned_slots", "violated", 3), ev.RuleResult("order", "holds", 0)),
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "l.duckdb"
    with open_ledger(path) as ledger:
        ledger.append(story())
    return path


def shown(path, *args):
    run = oakledger(path, "show", *args, "--json")
    assert (run.returncode, run.stderr) == (0, "")
    return json.loads(run.stdout)


def test_a_trial_has_its_chain(path):
    found = shown(path, "story/two")
    kinds = [e["kind"] for e in found["events"]]
    assert kinds == ["trial_recorded", "reader_invoked", "oracle_judged", "trial_replaced"]
    (evidence,) = found["evidence"]
    assert evidence["verdict_event_id"] == found["events"][2]["event_id"]
    assert evidence["reader_event_id"] == found["events"][1]["event_id"]
    assert evidence["correctness_class"] == "independent_committed_tree"
    assert found["decision"]["rules"][0] == {"rule": "planned_slots", "state": "violated", "violations": 3}
    assert [e["kind"] for e in shown(path, "story/one")["events"]] == ["trial_recorded", "trial_replaced"]
    text = oakledger(path, "show", "story/two").stdout
    assert "=> correctness class independent_committed_tree" in text
    assert "rules: diagnostic on" in text and "violated: planned_slots" in text
    failed = oakledger(path, "show", "story/three").stdout
    assert (
        "fail (content_mismatch)" in failed and "=> a failure, seen by a reader that is independent" in failed
    )
    assert "check exact_tree: fail, path dir/bad\\x1b[31m\\nname\\u202e" in failed


def test_the_class_is_the_one_of_the_views(path):
    with open_ledger(path, read_only=True) as ledger:
        rows = ledger.con.execute(
            "SELECT trial, event_id, reader_event_id, verdict, refused, independence, correctness_class "
            "FROM correctness_classes ORDER BY trial"
        ).fetchall()
    assert len(rows) == 2
    for trial, *facts in rows:
        (e,) = shown(path, trial)["evidence"]
        assert facts == [
            e[n]
            for n in (
                "verdict_event_id",
                "reader_event_id",
                "verdict",
                "refused",
                "independence",
                "correctness_class",
            )
        ]


def test_an_event_by_the_start_of_its_id(path):
    trial = shown(path, "story/two")
    whole = trial["events"][2]
    found = shown(path, whole["event_id"][:12])
    assert found["event"] == whole["event"] and found["event_id"] == whole["event_id"]
    assert found["chain"] == trial
    assert found["places"] == whole["places"] and len(found["places"]) == 1
    assert shown(path, whole["event_id"])["event_id"] == whole["event_id"]
    text = oakledger(path, "show", whole["event_id"][:12]).stdout
    assert f"> {whole['event_id'][:16]}  oracle_judged" in text
    assert f"oakledger prove {whole['event_id'][:16]}" in text
    declared = shown(path, "story")["declarations"][0]["event_id"]
    assert shown(path, declared[:12])["chain"] is None


def test_a_campaign(path):
    found = shown(path, "story")
    assert (found["trials"], found["planned"], found["replaced"]) == (3, 4, 1)
    (cell,) = found["cells"]
    assert (cell["trials"], cell["completed"], cell["verdicts_pass"], cell["verdicts_fail"]) == (3, 2, 1, 1)
    assert found["decision"]["decision"] == "diagnostic"
    text = oakledger(path, "show", "story").stdout
    assert "planned_slots          VIOLATED, 3 violations" in text and "order                  holds" in text


def test_rules_evaluated_now(path):
    found = shown(path, "story/three", "--rules")["violations"]
    assert any(v["rule_id"] == "order" and v["binding"] for v in found)  # three starts at the same nanosecond
    assert all({"rule", "rule_id", "what", "binding", "detail"} <= set(v) for v in found)
    whole = shown(path, "story", "--rules")["violations"]
    assert {v["rule_id"] for v in whole} > {v["rule_id"] for v in found}
    assert "rules, evaluated now:" in oakledger(path, "show", "story/three", "--rules").stdout


def test_nothing_steers_the_terminal(path):
    for ref in ("story/one", "story/three", "story"):
        run = oakledger(path, "show", ref)
        assert "\x1b" not in run.stdout and "\u202e" not in run.stdout
    assert "bad\\x1b[31m\\nname\\u202e" in oakledger(path, "show", "story/one").stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["stroy"], "did you mean story?"),
        (["tree", "--as", "trial"], "no trial 'tree' in the ledger"),
        (["/thr"], "did you mean trial story/three?"),
        (["zz", "--as", "event"], "starts with at least 4 of the characters 0 to 9 and a to f"),
        (["story", "--as", "trial"], "no trial 'story'"),
        (["x" * 5000], "..."),
        ([HOSTILE], "bad"),
    ],
)
def test_what_is_not_there(path, args, said):
    run = oakledger(path, "show", *args)
    assert run.returncode == 1 and run.stdout == ""
    assert said in run.stderr and run.stderr.count("\n") == 1 and len(run.stderr) < 600
    assert "\x1b" not in run.stderr


def test_an_unclear_start(tmp_path):
    """Events until two ids start alike in four characters: then more is asked for, with both named."""
    path = tmp_path / "l.duckdb"
    seen, pair = {}, None
    for n in range(5000):
        one = ev.TrialInvalidated(
            source="s", ordinal=n, recorded_at_ns=NOW, campaign="c", trial=f"t{n}", who="me", why="x"
        )
        start = ev.event_id(one)[:4]
        if start in seen:
            pair = (seen[start], one)
            break
        seen[start] = one
    with open_ledger(path) as ledger:
        ledger.append(pair)
    ids = sorted(ev.event_id(e) for e in pair)
    run = oakledger(path, "show", ids[0][:4])
    assert run.returncode == 1 and f"2 events start with {ids[0][:4]}" in run.stderr
    assert all(i[:16] in run.stderr for i in ids)
    assert shown(path, ids[0][:16])["event_id"] == ids[0]
