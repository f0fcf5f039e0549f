"""Order tests, effects and noise floors, counted again in Python from the rows that they are made of."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import median

import batch
import pytest
import sqlmutants as q


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    """Everything built over the campaigns that mutants are tried on."""
    path = tmp_path_factory.mktemp("figures") / "f.duckdb"
    with batch.loaded(path, q.corpus()) as ledger, batch.workspace(ledger) as con:
        yield con


def tail(hits: int, n: int) -> float:
    """The chance of at least so many heads in n throws of a fair coin, exactly."""
    return sum(math.comb(n, i) for i in range(hits, n + 1)) / 2**n


def test_order_tests(con):
    """docs/order.md: coins of each pair of subjects, in each comparison and over the campaign, with lags."""
    undeclared = {r[0] for r in con.execute("SELECT campaign FROM order_basis WHERE NOT declared").fetchall()}
    starts = con.execute(
        "SELECT campaign, scenario, scenario_version, condition_key, repetition, subject, s.started_at_ns "
        "FROM order_starts s JOIN planned_slots p USING (campaign, slot)"
    ).fetchall()
    blocks = defaultdict(dict)
    for campaign, scenario, version, key, repetition, subject, at in starts:
        if campaign in undeclared:
            blocks[campaign, scenario, version, key, repetition][subject] = at
    sequences = defaultdict(list)
    for (campaign, scenario, version, key, repetition), at in blocks.items():
        names = sorted(at)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                if at[a] != at[b]:
                    coin = (min(at[a], at[b]), (scenario, version, key, repetition), at[a] < at[b])
                    sequences[campaign, scenario, version, key, a, b].append(coin)
                    sequences[campaign, None, None, None, a, b].append(coin)
    expected = {}
    for where, coins in sequences.items():
        heads = [first for _, _, first in sorted(coins)]
        n = len(heads)
        most = max(sum(heads), n - sum(heads))
        expected[*where, "first"] = (n, most, min(1.0, 2 * tail(most, n)), 2 / 2**n)
        for lag in range(1, 9):
            if n > lag:
                same = sum(x == y for x, y in zip(heads, heads[lag:], strict=False))
                expected[*where, f"lag_{lag}"] = (n - lag, same, tail(same, n - lag), 1 / 2 ** (n - lag))
    tests = defaultdict(int)
    for key in expected:
        tests[key[0]] += 1
    rows = con.execute(
        "SELECT campaign, scenario, scenario_version, condition_key, subject_a, subject_b, test, n, hits, p, "
        "tests, p_corrected, least_p FROM order_tests"
    ).fetchall()
    assert len(rows) == len(expected) > 300
    for *where, n, hits, p, count, corrected, least in rows:
        # Which of the two is called A may be turned round; the figures are the same.
        en, ehits, ep, eleast = expected[tuple(where)]
        assert (n, hits, count) == (en, ehits, tests[where[0]]), where
        assert p == pytest.approx(ep, rel=1e-9)
        assert corrected == pytest.approx(min(1.0, ep * count), rel=1e-9)
        assert least == pytest.approx(min(1.0, eleast * count), rel=1e-9)


def sign_rank(n: int) -> int:
    """How many of the smallest values lie outside of the exact 95 % interval of the median."""
    return sum(1 for i in range(n + 1) if tail(n - i, n) <= 0.025)


def test_effects_and_noise(con):
    """The median of the relative differences, block by block, with its exact interval; rates by counting."""
    values = {
        tuple(r[:-1]): r[-1]
        for r in con.execute(
            "SELECT campaign, scenario, scenario_version, condition_key, subject, operation, metric, "
            "repetition, value FROM metric_values"
        ).fetchall()
    }
    by_cell = defaultdict(dict)
    for (*cell, repetition), value in values.items():
        by_cell[tuple(cell)][repetition] = value
    slots = defaultdict(dict)
    for *cell, repetition, outcome, measured in con.execute(
        "SELECT campaign, scenario, scenario_version, condition_key, subject, repetition, outcome, measured "
        "FROM slot_outcomes"
    ).fetchall():
        slots[tuple(cell)][repetition] = (outcome == "passed", measured)
    comparisons = con.execute(
        "SELECT campaign, claim, metric, operation, scenario, scenario_version, condition_key, role, "
        "subject, baseline FROM claim_comparisons"
    ).fetchall()
    found = {
        tuple(r[:10]): r[10:]
        for r in con.execute(
            "SELECT campaign, claim, metric, operation, scenario, scenario_version, condition_key, role, "
            "subject, baseline, pairs, unmeasured, effect_permille, low_permille, high_permille "
            "FROM metric_effects"
        ).fetchall()
    }
    floors = defaultdict(list)
    seen = 0
    for key in comparisons:
        campaign, claim, metric, operation, scenario, version, condition, role, subject, baseline = key
        cell = (campaign, scenario, version, condition)
        if metric == "success_rate_permille":
            a, b = slots.get((*cell, subject), {}), slots.get((*cell, baseline), {})
            both = [(a[r], b[r]) for r in a.keys() & b.keys()]
            if not both:
                assert key not in found
                continue
            measured = [(x[0], y[0]) for x, y in both if x[1] and y[1]]
            wins, base = sum(x for x, _ in measured), sum(y for _, y in measured)
            expected = [len(measured), len(both) - len(measured)]
            expected += [1000 * (wins - base + d) / base if base else None for d in (0, -1, 1)]
        else:
            a = by_cell.get((*cell, subject, operation, metric), {})
            b = by_cell.get((*cell, baseline, operation, metric), {})
            both = [(a[r], b[r]) for r in a.keys() & b.keys()]
            if not both:
                assert key not in found
                continue
            d = sorted(1000 * (x - y) / abs(y) for x, y in both if x is not None and y)
            rank = sign_rank(len(d))
            expected = [len(both), len(both) - len(d), median(d) if d else None]
            expected += [d[rank - 1], d[len(d) - rank]] if rank else [None, None]
        seen += 1
        for name, x, y in zip(
            ("pairs", "unmeasured", "effect", "low", "high"), found[key], expected, strict=True
        ):
            assert x == (None if y is None else pytest.approx(y, rel=1e-9, abs=1e-9)), (key, name)
        if role == "null":
            floors[campaign, claim, scenario, version, condition].append(expected[3:])
    assert seen == len(found) > 60
    rows = con.execute(
        "SELECT campaign, claim, scenario, scenario_version, condition_key, null_comparisons, floor_permille "
        "FROM noise_floor"
    ).fetchall()
    assert {tuple(r[:5]) for r in rows} == set(floors)
    for *where, count, floor in rows:
        ends = floors[tuple(where)]
        assert count == len(ends)
        if any(low is None for low, _ in ends):
            assert floor is None
        else:
            assert floor == pytest.approx(max(max(abs(low), abs(high)) for low, high in ends), rel=1e-9)
