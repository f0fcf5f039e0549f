"""Small mistakes in the views are noticed: a sample here, all of them in `python -m bench.fuzz_sql`.

Every mutant must be caught by what the suite's campaigns show, or be listed with the reason why it makes no
difference (sql_equivalents.toml).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import batch
import duckdb
import honesty as h
import pytest
import sqlmutants as q

from ledger import views

ROOT = Path(__file__).resolve().parents[2]

#: One mutant in so many is tried here.
SAMPLE = 20


def sampled(mutant: q.Mutant) -> bool:
    """Whether a mutant is in the sample: by its text alone, so that the sample stays the same."""
    return int(hashlib.sha256(mutant.key.encode()).hexdigest()[:8], 16) % SAMPLE == 0


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """The tables of all campaigns."""
    path = tmp_path_factory.mktemp("sql") / "all.duckdb"
    with (
        q.loaded(path) as ledger,
        batch.workspace(ledger) as con,
    ):
        con.execute("SET memory_limit = '1500MB'")
        yield q.Trial(con)


@pytest.fixture(scope="module")
def bounds(tmp_path_factory):
    """The tables of campaigns at the bounds of what is evaluated."""
    with q.at_the_bounds(tmp_path_factory.mktemp("bounds") / "b.duckdb") as bounds:
        yield bounds


def test_there_are_mutants_of_every_view_and_kind():
    found = list(q.mutants())
    assert len(found) > 2000 and len({m.key for m in found}) == len(found)
    assert {m.view for m in found} == {
        v.name
        for v in views.shipped()
        # Patterns are held to examples below.
        if v.file != views.SOURCE_FILE and v.name not in ("violations", "infrastructure_codes")
    }
    assert len({m.kind for m in found}) == 15
    assert sum(map(sampled, found)) > 80


def test_a_sample_of_mutants_is_caught(trial, bounds):
    survivors, listed = set(), set()
    for mutant in filter(sampled, q.mutants()):
        if mutant.view == q.LEDGER_VIEW:
            continue
        caught = trial.caught(mutant) or bounds.caught(mutant)
        explained = q.equivalent(mutant) is not None
        if caught and explained:
            listed.add(mutant.key)
        if not caught and not explained:
            survivors.add(mutant.key)
    assert not survivors, "nothing notices them"
    assert not listed, "listed as making no difference, and caught"


def test_every_explanation_is_of_a_mutant():
    """No entry is left over from a view that was changed, and each says something."""
    keys = [m.key for m in q.mutants()]
    for pattern, why in q.explanations():
        assert any(pattern.search(key) for key in keys), pattern.pattern
        assert len(why) > 20, pattern.pattern


def test_the_trial_itself_notices_and_forgets(trial):
    """What a mutant changes is put back; an unchanged view is not caught."""
    before = dict(trial.digests)
    same = q.Mutant("cells", "none", "", views.view("cells").select)
    assert trial.caught(same) is None
    twenty_nine = views.view("rule_02_sample_size").select.replace("30", "29")
    assert trial.caught(q.Mutant("rule_02_sample_size", "constant", "", twenty_nine)) == "rule_02_sample_size"
    broken = views.view("attempts").select.replace("status", "no_such_column")
    assert str(trial.caught(q.Mutant("attempts", "error", "", broken))).startswith("error")
    for name in trial.digests:
        assert trial.digest(name) == before[name]


def test_no_answer_depends_on_where_rows_lie(trial):
    """Each table in another order, and the same answers, with the same events behind them."""
    con = trial.con
    con.execute("ATTACH ':memory:' AS shuffled")
    try:
        con.execute("USE shuffled")
        for table in ("events", "duplicates", "checkpoints"):
            con.execute(f"CREATE TABLE {table} AS SELECT * FROM batch.{table} t ORDER BY hash(t::VARCHAR)")
        for one in trial.order:
            con.execute(
                f"CREATE TABLE {one.name} AS SELECT * FROM ({one.select}) t ORDER BY hash(t::VARCHAR)"
            )
            assert trial.digest(one.name) == trial.digests[one.name], one.name
    finally:
        con.execute("USE batch")
        con.execute("DETACH shuffled")


def test_what_is_too_large_is_said_to_be(bounds):
    """A plan of more than twenty million slots, and a chain of more than a thousand replacements."""
    shapes = bounds.con.execute("SELECT campaign FROM plan_shapes").fetchall()
    assert shapes == [("plan_at_the_bound",)]
    found = bounds.con.execute(
        "SELECT campaign, what, trial FROM rule_01_planned_slots "
        "WHERE what IN ('plan_too_large', 'replacement_circle')"
    ).fetchall()
    assert sorted(found, key=str) == [
        ("chain_over_the_bound", "replacement_circle", "chain_over_the_bound/1000"),
        ("plan_over_the_bound", "plan_too_large", None),
    ]
    steps = "SELECT campaign, max(step) FROM replacement_chains GROUP BY campaign ORDER BY campaign"
    assert bounds.con.execute(steps).fetchall() == [
        ("chain_at_the_bound", 1000),
        ("chain_into_a_circle", 1000),
        ("chain_over_the_bound", 1000),
    ]


@pytest.mark.parametrize("name", q.DAMAGE)
def test_rule_14_says_what_is_wrong_with_a_damaged_ledger(name):
    statements, expected = q.DAMAGE[name]
    with duckdb.connect() as con:
        q.damaged(con, statements)
        sql = views.view(q.LEDGER_VIEW).select
        rows = con.execute(f"SELECT what, binding, detail FROM ({sql})").fetchall()
    assert {r[0] for r in rows} == expected
    assert all(r[1] is True and r[2] for r in rows)


def test_every_mutant_of_rule_14_is_caught():
    trial = q.LedgerTrial()
    survivors = [m.key for m in q.mutants(q.LEDGER_VIEW) if trial.caught(m) is None and not q.equivalent(m)]
    assert survivors == []


def test_reasons_are_those_of_the_documents():
    """docs/reader-report.md and docs/contracts.md name the codes; the view says who owns them."""
    with duckdb.connect() as con:
        rows = con.execute(views.view("reasons").select).fetchall()
    have = {r[0]: (r[1], r[2]) for r in rows}
    assert len(have) == len(rows)
    report = (ROOT / "docs/reader-report.md").read_text().split("## Reason codes")[1]
    documented = set()
    for line in report.splitlines():
        match = re.match(r"\| ((?:`[a-z_]+`(?:, )?)+) \| (\d+)[^|]*\| (\w+) \|", line)
        if match is None:
            continue
        for code in re.findall(r"`([a-z_]+)`", match[1]):
            documented.add(code)
            before_head = match[2] == "1" and code != "unsafe_path"
            assert have[code] == (match[3], before_head), code
    assert len(documented) > 35
    contracts = (ROOT / "docs/contracts.md").read_text()
    unmeasured = {
        code
        for line in re.findall(r"unmeasured: ((?:`[a-z_]+`(?:, )?)+)", contracts)
        for code in re.findall(r"`([a-z_]+)`", line)
    }
    assert len(unmeasured) > 8
    # Whether no test ran is up to the subject's commit; all else is up to the harness.
    for code in unmeasured:
        assert have[code] == ("subject" if code == "tests_none_ran" else "harness", False), code
    own = {"unmeasured_by_contract", "content_not_materialised", "no_worktree"}
    own |= {"no_verdict", "verdict_refused", "run_facts_missing"}
    for code in have.keys() - documented - unmeasured:
        assert code in own and have[code] == ("harness", False), code


@pytest.mark.parametrize(
    ("code", "infrastructure"),
    [
        *(
            (f"http_{n}", True)
            for n in (401, 402, 403, 407, 408, 409, 421, 423, 425, 429, 500, 502, 529, 599)
        ),
        *((f"http_{n}", False) for n in (200, 400, 404, 422, 600)),
        *((c, True) for c in ("rate_limit", "rate_limited", "quota", "quota_exceeded", "overloaded")),
        *((c, True) for c in ("service_unavailable", "api_error", "api_error_7", "auth_error", "quota_day")),
        *((c, True) for c in ("network", "dns", "tls_handshake", "connection_reset", "socket", "proxy_down")),
        *((c, True) for c in ("docker_died", "container_oom", "image_pull", "sandbox_lost", "vm_gone")),
        *((c, True) for c in ("host_down", "machine_lost", "node_gone", "disk_full", "filesystem_ro")),
        *(
            (c, True)
            for c in ("out_of_disk", "no_space", "machine", "host", "preempted", "evicted", "rebooted")
        ),
        *((c, True) for c in ("harness", "setup_failed", "teardown", "environment", "fixture", "instrument")),
        *((c, True) for c in ("verifier_died", "parser", "parse_error")),
        *(
            (c, True)
            for c in ("interrupted", "cancelled", "canceled", "aborted_by_operator", "operator_abort")
        ),
        *(
            (c, False)
            for c in ("docker", "wrong_answer", "tests_failed", "gave_up", "networked", "agent_error")
        ),
        *((c, False) for c in ("merge_conflict", "max_turns", "x_http_529", "http_529_x", "disk")),
    ],
)
def test_infrastructure_codes(code, infrastructure):
    with duckdb.connect() as con:
        patterns = views.view("infrastructure_codes").select
        row = con.execute(
            f"SELECT coalesce(bool_or(regexp_full_match(?, pattern)), false) FROM ({patterns})", [code]
        ).fetchone()
    assert row == (infrastructure,)


def test_pooled_campaigns_are_found_and_parallel_ones_are_not(tmp_path):
    with (
        batch.loaded(tmp_path / "p.duckdb", [events for _, events in h.pooled()]) as ledger,
        batch.workspace(ledger) as con,
    ):
        found = {name: batch.violated(batch.decide(ledger, con, name)) for name, _ in h.pooled()}
    taken = {"trial_of_another_campaign", "identity_used_elsewhere"}
    for name in ("taken_first", "taken_second"):
        assert taken <= found.pop(name)["sample_size"]
    taken = {"identity_used_elsewhere"}
    assert found.pop("named_first") == {"sample_size": taken}
    assert found.pop("named_second") == {
        "sample_size": {*taken, "too_few_measured"},
        "planned_slots": {"slot_unmeasured"},
        "failures": {"failure_not_shown"},
        "correctness_class": {"pass_reader_not_recorded"},
    }
    taken |= {"trial_of_another_campaign"}
    assert found.pop("twin_second") == {"sample_size": taken}
    assert found.pop("twin_first") == {
        "sample_size": {*taken, "too_few_measured"},
        "planned_slots": {
            "slots_missing",
            "slot_invalidated",
            "evidence_without_trial",
            "invalidated_trial_unknown",
            "replaced_trial_unknown",
            "replacement_unknown",
            "replacement_circle",
            "replacement_earlier",
            "replacement_elsewhere",
            "measured_attempt_replaced",
        },
    }
    assert found.pop("told_in_time") == {}
    assert found.pop("told_late_twice") == {"preregistration": {"declared_late"}}
    assert found.pop("stray") == {"planned_slots": {"evidence_without_trial"}}
    assert found == {"alike_first": {}, "alike_second": {}, "alike_third": {}}
