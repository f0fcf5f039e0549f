"""Order tests, effects and noise floors, counted again in Python from the rows that they are made of.

Views that are the events of a kind are told again from the events, and planned slots from the plans.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from itertools import product
from statistics import median

import batch
import msgspec
import pytest
import retold
import sqlmutants as q

from ledger import events as ev


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    """Everything built over the campaigns that mutants are tried on."""
    path = tmp_path_factory.mktemp("figures") / "f.duckdb"
    with q.loaded(path) as ledger, batch.workspace(ledger) as con:
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
    blocks = defaultdict(lambda: defaultdict(list))
    for campaign, scenario, version, key, repetition, subject, at in starts:
        if campaign in undeclared:
            blocks[campaign, scenario, version, key, repetition][subject].append(at)
    sequences = defaultdict(list)
    for (campaign, scenario, version, key, repetition), at in blocks.items():
        names = sorted(at)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                for x, y in product(at[a], at[b]):
                    if x != y:
                        coin = (min(x, y), (scenario, version, key, repetition), x < y)
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


#: Views that are the events of a kind, column by column.
EVENT_VIEWS = {
    "campaign_declarations": ev.CampaignDeclared,
    "trials": ev.TrialRecorded,
    "reader_invocations": ev.ReaderInvoked,
    "verdicts": ev.OracleJudged,
    "invalidations": ev.TrialInvalidated,
    "replacements": ev.TrialReplaced,
    "conflict_rules": ev.ConflictRuleRecorded,
    "attestations": ev.StudyCriteriaAttested,
    "subject_identities": ev.SubjectIdentified,
}


@pytest.fixture(scope="module")
def events(con):
    """Every event that counts, by its id, as its own text says."""
    decode = msgspec.json.Decoder(ev.AnyEvent).decode
    return {
        i: decode(text) for i, text in con.execute("SELECT event_id, payload FROM ledger_events").fetchall()
    }


def column(name, event_id, event, part):
    """What a column of an event view says of an event."""
    match name:
        case "event_id":
            return event_id
        case "condition_key":
            return ev.canonical_sha256(event.condition)
        case "metrics":
            return ev.canonical(event.metrics).decode() if event.metrics else None
        case "plan":
            return ev.canonical(event.plan).decode()
        case "plan_sha256":
            return ev.canonical_sha256(event.plan)
        case "order_algorithm" | "order_seed" | "order_extent":
            return event.order and getattr(event.order, name.removeprefix("order_"))
        case "criterion" | "text_sha256":
            return getattr(part, name)
    return getattr(event, name)


@pytest.mark.parametrize("name", EVENT_VIEWS)
def test_views_of_events_say_what_the_events_say(con, events, name):
    """One row an event, of an attestation one row a criterion; null where the event says nothing."""
    found = con.execute(f"SELECT * FROM {name}")
    names = [d[0] for d in found.description]
    expected = Counter(
        tuple(column(n, event_id, event, part) for n in names)
        for event_id, event in events.items()
        if isinstance(event, EVENT_VIEWS[name])
        for part in (event.criteria if name == "attestations" else (None,))
    )
    assert len(names) > 5 and len(expected) > 5
    assert Counter(found.fetchall()) == expected


def numbered(names):
    """A number from 0 for each name, in the order of the names."""
    return {name: n for n, name in enumerate(sorted(set(names)))}


def planned(event):
    """The rows of planned_slots for a declaration: docs/order.md, and the numbers of plan_shapes."""

    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()

    plan, order = event.plan, event.order
    subjects = numbered(s.subject for s in plan.subjects)
    scenarios = numbered((s.scenario, s.scenario_version) for s in plan.scenarios)
    conditions = numbered(map(ev.canonical_sha256, plan.conditions))
    diagnostic = {
        s: all(x.diagnostic for x in plan.scenarios if (x.scenario, x.scenario_version) == s)
        for s in scenarios
    }
    blocks = {}
    for (scenario, i), (key, k), r in product(
        scenarios.items(), conditions.items(), range(plan.trials_per_cell)
    ):
        lines = "\n".join(map(str, ("blocked-sha256/1", order and order.seed, *scenario, key, r)))
        blocks[lines] = (
            (i * len(conditions) + k) * plan.trials_per_cell + r,
            (*scenario, diagnostic[scenario], key, r),
        )
    for n, lines in enumerate(sorted(blocks, key=digest)):
        block, where = blocks[lines]
        for place, subject in enumerate(sorted(subjects, key=lambda s: digest(f"{lines}\n{s}"))):
            yield (
                event.campaign,
                block * len(subjects) + subjects[subject],
                block,
                *where,
                *((n, place, n * len(subjects) + place) if order else (None, None, None)),
                subject,
            )


def declared(events):
    """The declaration of each campaign that counts, with its time and id: the first of several."""
    counts = {}
    for event_id, event in events.items():
        if isinstance(event, ev.CampaignDeclared):
            word = (event.recorded_at_ns, event_id, event)
            counts[event.campaign] = min(word, counts.get(event.campaign, word), key=lambda w: w[:2])
    return counts


def test_planned_slots_and_their_order(con, events):
    """Every slot of every plan, its number and its place; of several declarations the first counts."""
    counts = declared(events)
    found = con.execute(
        "SELECT campaign, slot, block, scenario, scenario_version, diagnostic, condition_key, repetition, "
        "block_position, in_block, position, subject FROM planned_slots"
    ).fetchall()
    expected = Counter(row for _, _, event in counts.values() for row in planned(event))
    assert Counter(found) == expected
    assert len(counts) > 300 and len(found) > 20_000
    shapes = con.execute("SELECT campaign, subjects, conditions, trials_per_cell FROM plan_shapes").fetchall()
    assert Counter(shapes) == Counter(
        (
            campaign,
            len({s.subject for s in event.plan.subjects}),
            len({*map(ev.canonical_sha256, event.plan.conditions)}),
            event.plan.trials_per_cell,
        )
        for campaign, (_, _, event) in counts.items()
    )


def test_early_words(con, events):
    """Late is what gives a time at or after the first start, or what some ledger took in after a trial."""
    starts, trials, words = {}, {}, defaultdict(list)
    for event in events.values():
        if isinstance(event, ev.TrialRecorded) and event.started_at_ns is not None:
            starts[event.campaign] = min(event.started_at_ns, starts.get(event.campaign, event.started_at_ns))
    for origin, seq, event_id, kind, campaign in con.execute(
        "SELECT origin, seq, event_id, kind, campaign FROM events ORDER BY origin, seq"
    ).fetchall():
        if kind == "trial_recorded":
            trials.setdefault((campaign, origin), seq)
        elif kind in ("campaign_declared", "conflict_rule_recorded"):
            words[event_id, kind, campaign].append((campaign, origin) in trials)
    expected = {}
    for (event_id, kind, campaign), overtaken in words.items():
        at, first = events[event_id].recorded_at_ns, starts.get(campaign)
        after = first is not None and at >= first
        because = "a ledger took it in after trials of the campaign" if any(overtaken) else None
        if after:
            because = "it was recorded after the first trial had started"
        expected[event_id] = (campaign, kind, at, first, after or any(overtaken), because)
    found = con.execute(
        "SELECT event_id, campaign, kind, recorded_at_ns, first_started_at_ns, late, because FROM early_words"
    ).fetchall()
    assert Counter(found) == Counter((i, *rest) for i, rest in expected.items())
    assert max(map(len, words.values())) == 2 and {True, False} == {late for *_, late, _ in found}


def test_claim_comparisons_and_the_values_behind_them(con, events):
    """Each claim in each scenario and condition that is compared, and every null of its subjects there."""
    expected = set()
    for campaign, (_, _, event) in declared(events).items():
        plan = event.plan
        nulls = {s.subject: s.null_of for s in plan.subjects if s.null_of}
        compared = {(s.scenario, s.scenario_version) for s in plan.scenarios if not s.diagnostic}
        conditions = {ev.canonical_sha256(c) for c in plan.conditions}
        for (n, c), (scenario, version), key in product(enumerate(plan.claims), compared, conditions):
            if c.scenario in (None, scenario):
                where = (campaign, n, c.metric, c.operation, scenario, version, key)
                expected.add((*where, "claim", c.subject, c.baseline))
                expected |= {
                    (*where, "null", subject, base)
                    for subject, base in nulls.items()
                    if base in (c.subject, c.baseline)
                }
    found = con.execute(
        "SELECT campaign, claim, metric, operation, scenario, scenario_version, condition_key, role, "
        "subject, baseline FROM claim_comparisons"
    ).fetchall()
    assert Counter(found) == Counter(expected)
    assert len({r[0] for r in found}) > 60
    wanted = defaultdict(set)
    for campaign, _, metric, operation, *_, subject, baseline in expected:
        if metric != "success_rate_permille":
            wanted[campaign, subject].add((operation, metric))
            wanted[campaign, baseline].add((operation, metric))
    records = defaultdict(list)
    for event_id, event in events.items():
        if isinstance(event, ev.TrialRecorded):
            records[event.campaign, event.trial, event.operation].append((event_id, event.metrics))
    values = Counter()
    for *cell, trial in con.execute(
        "SELECT campaign, scenario, scenario_version, condition_key, subject, repetition, trial "
        "FROM slot_outcomes WHERE outcome = 'passed'"
    ).fetchall():
        for operation, metric in wanted[cell[0], cell[4]]:
            for event_id, metrics in records[cell[0], trial, operation] or [(None, {})]:
                values[*cell, operation, metric, event_id, metrics.get(metric)] += 1
    rows = con.execute(
        "SELECT campaign, scenario, scenario_version, condition_key, subject, repetition, operation, metric, "
        "event_id, value FROM metric_values"
    ).fetchall()
    assert Counter(rows) == values
    assert None in {r[-1] for r in rows} and None in {r[-2] for r in rows}


def test_plan_history(con, events):
    """What was declared first, how often trials were recorded, and what was decided last."""
    trials = Counter(e.campaign for e in events.values() if isinstance(e, ev.TrialRecorded))
    decided = defaultdict(list)
    for event_id, event in events.items():
        if isinstance(event, ev.QualificationDecided):
            decided[event.campaign].append((event.recorded_at_ns, event_id, event.decision))
    expected = Counter()
    for campaign, (at, event_id, event) in declared(events).items():
        subjects = " ".join(sorted(s.subject for s in event.plan.subjects))
        scenarios = " ".join(sorted(s.scenario for s in event.plan.scenarios))
        text = f"{event.plan.lane}\n{subjects}\n{scenarios}"
        last_at, _, last = max(decided[campaign], default=(None, None, None))
        row = (campaign, ev.canonical_sha256(event.plan), hashlib.sha256(text.encode()).hexdigest(), at)
        expected[*row, trials[campaign], last, last_at, len(decided[campaign]), event_id] += 1
    found = con.execute(
        "SELECT campaign, plan_sha256, comparison_sha256, declared_at_ns, trials, last_decision, "
        "last_decided_at_ns, decisions, event_id FROM plan_history"
    ).fetchall()
    assert Counter(found) == expected
    assert max(r[-2] for r in found) == 2


def test_replacement_chains(con, events):
    """From every attempt that stands in for no other, along its replacements, a thousand steps at most."""
    links = defaultdict(set)
    for event in events.values():
        if isinstance(event, ev.TrialReplaced):
            links[event.campaign, event.trial].add(event.replacement)
    later = {(campaign, new) for (campaign, _), news in links.items() for new in news}
    expected = set()
    for campaign, root in links.keys() - later:
        here = {root}
        for step in range(1001):
            expected |= {(campaign, root, trial, step) for trial in here}
            here = {new for trial in here for new in links[campaign, trial]}
    found = con.execute("SELECT campaign, root, trial, step FROM replacement_chains").fetchall()
    assert Counter(found) == Counter(expected)
    assert max(r[-1] for r in found) > 1


@pytest.fixture(scope="module")
def told(con, events):
    """Attempts, classes and facts as retold.py makes them of the events."""
    known = {}

    def hashed(*parts):
        if parts not in known:
            texts = ", ".join("?::VARCHAR" for _ in parts)
            known[parts] = con.execute(f"SELECT hash({texts})", list(parts)).fetchone()[0]
        return known[parts]

    owners = {
        r: rest for r, *rest in con.execute("SELECT reason, owner, before_head FROM reasons").fetchall()
    }
    codes = [r[0] for r in con.execute("SELECT pattern FROM infrastructure_codes").fetchall()]
    runs = retold.attempts(events, hashed)
    words = retold.classes(events, runs, owners, hashed)
    return {
        "attempts": list(runs.values()),
        "correctness_classes": words,
        "attempt_facts": retold.facts(events, runs, words, owners, codes),
    }


@pytest.mark.parametrize("name", ["attempts", "correctness_classes", "attempt_facts"])
def test_attempts_and_classes_are_those_of_the_events(con, told, name):
    """Each row in every column, over all campaigns."""
    found = con.execute(f"SELECT * FROM {name}")
    names = [d[0] for d in found.description]
    expected = Counter(tuple(row[n] for n in names) for row in told[name])
    have = Counter(found.fetchall())
    assert len(have) > 20_000
    assert [dict(zip(names, row, strict=True)) for row in list(have - expected)[:3]] == []
    assert expected == have


def plan_rows(name, event):
    """What a view of plans says of the declaration that counts."""
    plan = event.plan
    match name:
        case "campaign_subjects":
            entries = Counter(s.subject for s in plan.subjects)
            nulls = {s.subject: s.null_of for s in plan.subjects}
            rows = ((s, nulls[s], entries[s], n) for s, n in numbered(entries).items())
        case "campaign_scenarios":
            listed = retold.scenarios(event)
            rows = ((*s, *listed[s].values(), n) for s, n in numbered(listed).items())
        case "campaign_conditions":
            texts = Counter(ev.canonical(c).decode() for c in plan.conditions)
            keys = {hashlib.sha256(text.encode()).hexdigest(): text for text in texts}
            rows = ((k, keys[k], texts[keys[k]], n) for k, n in numbered(keys).items())
        case "campaign_claims":
            names = ("metric", "operation", "subject", "baseline", "direction", "size_permille", "scenario")
            rows = ((n, *(getattr(c, x) for x in names)) for n, c in enumerate(plan.claims))
        case "campaign_criteria":
            rows = {(c.criterion, c.text_sha256) for c in plan.criteria}
    return [(event.campaign, *row) for row in rows]


@pytest.mark.parametrize(
    "name",
    [
        "campaign_subjects",
        "campaign_scenarios",
        "campaign_conditions",
        "campaign_claims",
        "campaign_criteria",
    ],
)
def test_views_of_plans_say_what_the_plans_say(con, events, name):
    """Each entry of a plan once, numbered in the order of names."""
    expected = Counter(
        row for event in retold.declarations(events).values() for row in plan_rows(name, event)
    )
    assert Counter(con.execute(f"SELECT * FROM {name}").fetchall()) == expected
    assert len(expected) > 50


def test_campaigns_and_what_was_declared_of_them(con, events):
    """Every campaign that an event but a decision mentions, and the declaration that counts."""
    mentioned, declared = defaultdict(list), defaultdict(list)
    for event_id, event in events.items():
        campaign = getattr(event, "campaign", None)
        if campaign is not None and not isinstance(event, ev.QualificationDecided):
            mentioned[campaign].append(event_id)
        if isinstance(event, ev.CampaignDeclared):
            declared[campaign].append((event.recorded_at_ns, event_id, event))
    expected = []
    for campaign, ids in mentioned.items():
        words = sorted(declared[campaign], key=lambda w: w[:2])
        at_ns, event_id, event = words[0] if words else (None, None, None)
        plan, order = event and event.plan, event and event.order
        size = event and len(plan.subjects) * len(plan.scenarios) * len(plan.conditions)
        expected.append(
            (
                campaign,
                len(words),
                len({(ev.canonical(e.plan), e.preregistered, repr(e.order)) for _, _, e in words}),
                [i for _, i, _ in words],
                event_id,
                at_ns,
                event and event.preregistered,
                event and ev.canonical(plan).decode(),
                event and ev.canonical_sha256(plan),
                event and plan.lane,
                event and plan.trials_per_cell,
                order and order.algorithm,
                order and order.seed,
                order and order.extent,
                event and size * plan.trials_per_cell,
                min(ids),
            )
        )
    found = con.execute("SELECT * FROM campaigns").fetchall()
    assert sorted(found) == sorted(expected)
    assert {row[1] for row in found} >= {0, 1, 2}


def test_conditions_are_those_that_were_planned_or_met(con, events):
    """Each condition of a campaign once, with its facts, and the same without its environment."""
    planned = {
        (name, ev.canonical_sha256(c)): (True, c)
        for name, event in retold.declarations(events).items()
        for c in event.plan.conditions
    }
    met = {
        (event.campaign, ev.canonical_sha256(event.condition)): (False, event.condition)
        for event in events.values()
        if isinstance(event, ev.TrialRecorded)
    }
    found = con.execute("SELECT * FROM conditions")
    names = [d[0] for d in found.description][4:-1]
    expected = Counter(
        (
            *key,
            word,
            ev.canonical(c).decode(),
            *(
                ev.canonical(c.limits).decode() if n == "limits" and c.limits else getattr(c, n) or None
                for n in names
            ),
            ev.canonical_sha256(msgspec.structs.replace(c, environment_id=None)),
        )
        for key, (word, c) in {**met, **planned}.items()
    )
    assert len(names) == 10 and sum(not row[2] for row in expected) > 10
    assert Counter(found.fetchall()) == expected
