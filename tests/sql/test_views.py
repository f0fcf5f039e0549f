"""The views: the same answers in the file as in a decision's workspace, and tables held to the docs."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "qualify"))

import campaigns as c

import ledger
from ledger import views
from ledger.events import Order, TrialRecorded, canonical_sha256

DOCS = Path(__file__).parents[2] / "docs"
SPEC = replace(c.SMALL, subjects=c.SUBJECTS, scenarios=c.SCENARIOS, claims=c.CLAIMS)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    with ledger.open(tmp_path_factory.mktemp("views") / "l.duckdb") as book:
        book.append(c.seal(c.edit(c.honest(SPEC), c.kind(TrialRecorded, subject="git"), 2, status="timeout")))
        yield book


def fingerprint(con, name):
    """Row count and an order-free digest of a relation, lists and floats in one spelling."""
    columns = [(row[0], row[1]) for row in con.execute(f"DESCRIBE {name}").fetchall()]
    parts = [
        f"round({n}, 6)::VARCHAR"
        if t == "DOUBLE"
        else f"list_sort({n})::VARCHAR"
        if t.endswith("[]")
        else f"{n}::VARCHAR"
        for n, t in ((f'"{n}"', t) for n, t in columns)
    ]
    text = ", ".join(f"coalesce({p}, '-')" for p in parts)
    return con.execute(
        f"SELECT count(*), bit_xor(hash(concat_ws('|', {text}))), "
        f"[{','.join(repr(n) for n, _ in columns)}] FROM {name}"
    ).fetchone()


def test_a_file_answers_as_a_workspace_does(book):
    names = [v.name for v in views.shipped() if v.name != "violations"]
    with views.workspace(book.con, SPEC.campaign) as con:
        expected = {name: fingerprint(con, name) for name in names}
    assert expected["trial_outcomes"][0] > 280
    for name in names:
        assert fingerprint(book.con, name) == expected[name], name


def test_every_view_says_its_grain_and_columns():
    for view in views.shipped():
        if view.name.startswith("rule_"):
            assert "Grain" in view.comment and "Columns" in view.comment.replace(
                "Grain and columns", "Columns"
            ), view.name
        else:
            assert "Grain" in view.comment, view.name


def test_reasons_are_those_of_the_reader_report(book):
    rows = re.findall(
        r"^\| ((?:`\w+`(?:, )?)+) \| [^|]+ \| (subject|harness) \|",
        (DOCS / "reader-report.md").read_text(),
        re.M,
    )
    documented = {name: owner for names, owner in rows for name in re.findall(r"`(\w+)`", names)}
    assert len(documented) > 30
    shipped = dict(book.con.execute("SELECT reason, owner FROM reasons").fetchall())
    assert {name: shipped.get(name) for name in documented} == documented
    contracts = (DOCS / "contracts.md").read_text()
    for names in re.findall(r"unmeasured: ((?:`\w+`(?:, )?)+)", contracts):
        for name in re.findall(r"`(\w+)`", names):
            assert name in shipped, name


@pytest.mark.parametrize(
    ("code", "infrastructure"),
    [
        ("http_529", True),
        ("http_500", True),
        ("http_401", True),
        ("http_429", True),
        ("rate_limited", True),
        ("network_error", True),
        ("parse_error", True),
        ("docker_pull_failed", True),
        ("interrupted", True),
        ("http_404", False),
        ("http_5290", False),
        ("agent_timeout", False),
        ("tests_failed", False),
        ("xhttp_529", False),
        ("oom", False),
    ],
)
def test_infrastructure_codes(book, code, infrastructure):
    row = book.con.execute(
        "SELECT bool_or(regexp_full_match(?, pattern)) FROM infrastructure_codes", [code]
    ).fetchone()
    assert row == (infrastructure,)


def tail(n, hits):
    return Fraction(sum(math.comb(n, i) for i in range(hits, n + 1)), 2**n)


def test_order_tests_are_exact(evaluated_orders):
    rows = evaluated_orders.execute(
        "SELECT test, n, hits, p, tests, p_corrected, least_p FROM order_tests"
    ).fetchall()
    assert {r[0] for r in rows} == {"first", *(f"lag_{n}" for n in range(1, 9))}
    for test, n, hits, p, tests, corrected, least in rows:
        sides = 2 if test == "first" else 1
        exact = min(1, sides * tail(n, hits))
        assert p == pytest.approx(float(exact), rel=1e-9)
        assert corrected == pytest.approx(min(1.0, float(exact * tests)), rel=1e-9)
        assert least == pytest.approx(min(1.0, float(sides * Fraction(1, 2**n) * tests)), rel=1e-9)
    for pair, n, hits in evaluated_orders.execute(
        "SELECT (scenario IS NULL, condition_key, subject_a, subject_b), n, hits FROM order_tests "
        "WHERE test = 'first'"
    ).fetchall():
        assert 28 <= n <= 64 and n / 2 <= hits <= n, pair  # an unlaunched attempt has no start


@pytest.fixture(scope="module")
def evaluated_orders(tmp_path_factory):
    spec = replace(
        c.SMALL,
        campaign="observed",
        trials_per_cell=32,
        order=None,
        preregistered=False,
        subjects=c.SUBJECTS,
        scenarios=c.SCENARIOS[:2],
    )
    path = tmp_path_factory.mktemp("orders") / "l.duckdb"
    with ledger.open(path) as book:
        book.append(c.honest(spec))
        with views.workspace(book.con, "observed") as con:
            yield con


def test_random_orders_pass_and_the_counts_are_those_of_the_runs(evaluated_orders):
    assert evaluated_orders.execute(
        "SELECT count(*) FROM rule_05_order WHERE coalesce(binding, true)"
    ).fetchone() == (0,)
    runs = [
        e
        for e in c.honest(
            replace(
                c.SMALL,
                campaign="observed",
                trials_per_cell=32,
                order=None,
                preregistered=False,
                subjects=c.SUBJECTS,
                scenarios=c.SCENARIOS[:2],
            )
        )
        if isinstance(e, TrialRecorded)
    ]
    first = {}
    for run in runs:
        first.setdefault((run.scenario, run.repetition, run.subject), run.started_at_ns)
    ahead = sum(
        first[s, r, "git"] < first[s, r, "oak_installed"]
        for s, r, who in first
        if who == "git" and s == "bugfix_test_loop"
    )
    row = evaluated_orders.execute(
        "SELECT hits FROM order_tests WHERE test = 'first' AND scenario = 'bugfix_test_loop' "
        "AND subject_a = 'git' AND subject_b = 'oak_installed'"
    ).fetchone()
    assert row == (max(ahead, 32 - ahead),)


def test_conditions_keys_are_those_of_the_event_structs(book):
    keys = {
        row[0] for row in book.con.execute("SELECT condition_key FROM conditions WHERE planned").fetchall()
    }
    assert keys == {canonical_sha256(condition) for condition in SPEC.conditions}


def test_plan_digest_leaves_out_name_seed_and_promise(tmp_path):
    one = c.declaration(SPEC)
    two = c.declaration(
        replace(
            SPEC, campaign="again", order=Order("blocked-sha256/1", "other", "block"), preregistered=False
        )
    )
    three = c.declaration(replace(SPEC, campaign="more", trials_per_cell=40))
    with ledger.open(tmp_path / "l.duckdb") as book:
        book.append(c.seal([one, two, three]))
        rows = book.con.execute(
            "SELECT campaign, other, same_plan FROM reruns ORDER BY campaign, other"
        ).fetchall()
        digests = book.con.execute("SELECT campaign, plan_sha256 FROM campaigns ORDER BY 1").fetchall()
    assert dict(digests)["again"] == dict(digests)["small"] == canonical_sha256(SPEC.plan)
    assert rows == [
        ("again", "more", False),
        ("again", "small", True),
        ("more", "again", False),
        ("more", "small", False),
        ("small", "again", True),
        ("small", "more", False),
    ]


def test_paired_outcomes_keep_their_denominator(book):
    rows = book.con.execute(
        'SELECT pairs, "both" + only_a + only_b + neither + not_comparable, before_head_a + before_head_b, '
        "diagnostic, not_comparable FROM paired_outcomes"
    ).fetchall()
    assert all(pairs == parts == SPEC.trials_per_cell for pairs, parts, *_ in rows)
    assert all(not_comparable == pairs for pairs, _, _, diagnostic, not_comparable in rows if diagnostic)
    assert sum(before for _, _, before, _, _ in rows) > 0


def test_the_page_lists_every_code_of_every_rule():
    page = (DOCS / "qualification.md").read_text()
    for view in views.shipped():
        if not view.name.startswith("rule_"):
            continue
        for code in re.findall(r"'(\w+)' AS what", view.select):
            assert f"`{code}`" in page, (view.name, code)
