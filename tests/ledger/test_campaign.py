"""Campaign files and the order that follows from them."""

from __future__ import annotations

import hashlib
import itertools

import pytest

from ledger.campaign import CampaignFileError, from_mapping, planned_slots, read, slots_of_file
from ledger.events import (
    CampaignDeclared,
    Condition,
    Order,
    Plan,
    ScenarioPlan,
    SubjectPlan,
    canonical_sha256,
)

PLAN = """
campaign = "oak-or-git"
preregistered = true
lane = "agent"
trials_per_cell = 3

[order]
seed = "dice 4 2 6"
extent = "campaign"

[[subjects]]
subject = "git"
[[subjects]]
subject = "oak"
[[subjects]]
subject = "git_again"
null_of = "git"

[[scenarios]]
scenario = "wide_config_refactor"
scenario_version = 1
oracle_version = 2
fixture_version = 1
evidence = "committed_tree"

[[conditions]]
model = "model-a"
environment = { cpu = "x", kernel = "6.6" }
[[conditions]]
model = "model-b"
environment = { cpu = "x", kernel = "6.6" }
limits = { wall_ns = 5 }

[[claims]]
metric = "wall_ns"
subject = "oak"
baseline = "git"
direction = "lower"
size_permille = 50

[[criteria]]
criterion = "power"
text = "A power analysis was made."
"""


def reference(declared):
    """Algorithm blocked-sha256/1 as docs/order.md has it, written again."""
    plan, seed = declared.plan, declared.order.seed

    def digest(text):
        return hashlib.sha256(text.encode()).hexdigest()

    def text(block):
        return "\n".join(["blocked-sha256/1", seed, *map(str, block)])

    blocks = [
        (s.scenario, s.scenario_version, canonical_sha256(k), r)
        for s, k, r in itertools.product(plan.scenarios, plan.conditions, range(plan.trials_per_cell))
    ]
    for n, block in enumerate(sorted(blocks, key=lambda b: digest(text(b)))):
        subjects = sorted((s.subject for s in plan.subjects), key=lambda s: digest(text(block) + "\n" + s))
        for i, subject in enumerate(subjects):
            yield n, i, *block, subject


def declared(plan, order):
    return CampaignDeclared("test", 0, 1_767_600_000_000_000_000, "x", False, plan, order)


def big_plan():
    return Plan(
        lane="workflow",
        subjects=tuple(SubjectPlan(s) for s in ("git", "oak", "oak_main", "git_fsmonitor", "git:again")),
        scenarios=(ScenarioPlan("a", 1, 1, 1), ScenarioPlan("a", 2, 1, 1), ScenarioPlan("b", 1, 1, 1)),
        conditions=(Condition(), Condition(model="m m"), Condition(limits={"b_ns": 1, "a_ns": -2})),
        trials_per_cell=40,
    )


@pytest.mark.parametrize("seed", ["", "1", "two words ", "~!#$%&'()*+,-./:;<=>?@[]^_`{|}"])
@pytest.mark.parametrize("extent", ["campaign", "block"])
def test_the_order_is_the_documented_one(seed, extent):
    event = declared(big_plan(), Order("blocked-sha256/1", seed, extent))
    slots = list(planned_slots(event))
    assert [
        (
            s.block_position,
            s.in_block,
            s.scenario,
            s.scenario_version,
            s.condition_key,
            s.repetition,
            s.subject,
        )
        for s in slots
    ] == list(reference(event))
    assert [s.position for s in slots] == list(range(3 * 3 * 40 * 5))


def test_another_seed_gives_another_order_of_the_same_slots():
    one, two = (
        list(planned_slots(declared(big_plan(), Order("blocked-sha256/1", seed, "block"))))
        for seed in ("1", "2")
    )
    names = [
        [(s.scenario, s.scenario_version, s.condition_key, s.repetition, s.subject) for s in x]
        for x in (one, two)
    ]
    assert names[0] != names[1] and sorted(names[0]) == sorted(names[1])
    # Every place in a block is taken by every subject about equally often.
    firsts = {s.subject: 0 for s in one}
    for s in one:
        firsts[s.subject] += s.in_block == 0
    assert min(firsts.values()) > 40 and max(firsts.values()) < 110


def test_a_plan_without_an_order_has_slots_without_positions():
    slots = list(planned_slots(declared(big_plan(), None)))
    assert len(slots) == 1800 and {s.position for s in slots} == {None} == {s.in_block for s in slots}


def test_a_file_becomes_a_declaration_with_its_digests(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    file = read(path)
    facts = {"cpu": "x", "kernel": "6.6"}
    assert file.slot_count == 18 == len(list(slots_of_file(file)))
    assert file.plan.conditions[0].environment_id == canonical_sha256(facts)
    assert [e["facts"] for e in file.environments] == [facts]
    assert file.plan.criteria[0].text_sha256 == hashlib.sha256(b"A power analysis was made.").hexdigest()
    assert file.declaration["order"]["algorithm"] == "blocked-sha256/1"
    assert file.plan_sha256 == canonical_sha256(file.plan)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('campaign = "oak-or-git"', "", "key 'campaign'"),
        ('campaign = "oak-or-git"', 'campaign = "a b"', "campaign"),
        ("preregistered = true", "", "key 'preregistered'"),
        ("preregistered = true", "preregistered = 1", "key 'preregistered'"),
        ('lane = "agent"', 'lane = "agent"\ntypo = 1', "key 'typo' is not known"),
        ('lane = "agent"', 'lane = "agents"', "lane"),
        ("trials_per_cell = 3", "trials_per_cell = 0", "trials_per_cell"),
        ("trials_per_cell = 3", "trials_per_cell = 3.5", "trials_per_cell"),
        ('extent = "campaign"', 'extent = "scenario"', "order.extent"),
        ('seed = "dice 4 2 6"', "", "seed"),
        ('subject = "oak"\n[[', 'subject = "git"\n[[', "subject git is listed twice"),
        ('null_of = "git"', 'null_of = "nobody"', "null_of nobody"),
        ('null_of = "git"', "", "no null comparison"),
        ('subject = "oak"\nbaseline', 'subject = "jj"\nbaseline', "claims[0] is about jj"),
        ('baseline = "git"', 'baseline = "oak"', "compares oak with itself"),
        ("size_permille = 50", 'size_permille = 50\nscenario = "other"', "claims[0] is on other"),
        ("limits = { wall_ns = 5 }", "limits = { wall_ns = 5.5 }", "limits"),
        ('model = "model-b"', 'model = "model-b"\nenvironment_id = "x"', "give one of the two"),
        (
            'environment = { cpu = "x", kernel = "6.6" }\n[[',
            "environment = 5\n[[",
            "must be a table of facts",
        ),
        ('criterion = "power"', 'criterion = "power"\ntext_sha256 = "x"', "give one of the two"),
        ("trials_per_cell = 3", "trials_per_cell = 3\n[", "not TOML"),
        ("trials_per_cell = 3", "trials_per_cell = 9999999", "trials_per_cell"),
    ],
)
def test_a_wrong_file_is_told_in_one_line(tmp_path, old, new, message):
    assert old in PLAN
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace(old, new, 1))
    with pytest.raises(CampaignFileError) as error:
        read(path)
    text = str(error.value)
    assert message in text and "\n" not in text and str(path) in text


def test_hostile_files(tmp_path):
    path = tmp_path / "plan.toml"
    with pytest.raises(CampaignFileError, match="no file"):
        read(tmp_path)
    path.write_bytes(b"\xff")
    with pytest.raises(CampaignFileError, match="not UTF-8"):
        read(path)
    path.write_bytes(b"a = 1\n" * (1 << 20))
    with pytest.raises(CampaignFileError, match="larger than"):
        read(path)
    path.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(CampaignFileError, match="TOML"):
        read(path)
    base = {
        "campaign": "x",
        "preregistered": False,
        "lane": "core",
        "subjects": [{"subject": f"s{n}"} for n in range(64)],
        "scenarios": [
            {"scenario": f"s{n}", "scenario_version": 1, "oracle_version": 1, "fixture_version": 1}
            for n in range(256)
        ],
        "conditions": [{"model": f"m{n}"} for n in range(256)],
        "trials_per_cell": 1_000_000,
    }
    with pytest.raises(CampaignFileError, match="at most 20000000"):
        from_mapping(base, "here")
    base["conditions"] = [
        {"model": "m" * 400 + str(n), "agent": "a" * 490, "transport": "t" * 490} for n in range(256)
    ]
    base["scenarios"] = [
        {**s, "scenario": "s" * 190 + s["scenario"], "contract_sha256": "a" * 64} for s in base["scenarios"]
    ]
    base["trials_per_cell"] = 1
    from_mapping({**base, "subjects": base["subjects"][:2]}, "here")
    for key in ("subjects", "scenarios", "conditions"):
        with pytest.raises(CampaignFileError):
            from_mapping({**base, key: []}, "here")
        with pytest.raises(CampaignFileError):
            from_mapping({**base, key: 5}, "here")
