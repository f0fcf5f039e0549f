"""Every recipe of every scenario with the real programs: the oracle tells right from wrong, and why.

Both version control systems must get the same verdict with the same reason.
"""

import os
import shutil

import pytest

from oracles.contract import load
from oracles.scenarios import SCENARIOS
from oracles.scenarios.vcs import Git, Oak, find_git, find_oak
from oracles.trial import verify

OAK = os.environ.get("OAKLEDGER_TEST_OAK") or find_oak()


SYSTEMS = [
    pytest.param("git", id="git"),
    pytest.param(
        "oak",
        id="oak",
        marks=[pytest.mark.oak_binary, pytest.mark.skipif(OAK is None, reason="no oak on PATH")],
    ),
]


def make(name, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    if name == "git":
        return Git(find_git(), str(home))
    return Oak(OAK, str(home))


def judged(vcs, scenario, recipe, tmp_path, *, version=None, lane=None):
    root = tmp_path / "root"
    root.mkdir()
    work = scenario.prepare(vcs, str(root))
    recipe(work)
    return verify(load(scenario.name, version), vcs.name, work.repo, backend="pure", lane=lane)


RIGHT = [(s, r) for s in SCENARIOS for r in SCENARIOS[s].right]
WRONG = [(s, r) for s in SCENARIOS for r in SCENARIOS[s].wrong]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("name", "recipe"), RIGHT, ids=[f"{s}-{r}" for s, r in RIGHT])
def test_right(name, recipe, system, tmp_path):
    scenario = SCENARIOS[name]
    for lane in ("workflow", "agent") if name == "bugfix_test_loop" else ("workflow",):
        folder = tmp_path / lane
        folder.mkdir()
        outcome = judged(make(system, folder), scenario, scenario.right[recipe], folder, lane=lane)
        judgement = outcome.judgement
        assert (judgement.verdict, judgement.reason) == ("pass", None), judgement.checks
        if name == "history_archaeology":
            assert outcome.evidence_class is None and judgement.answer == "pass"
            continue
        depth = load(name).contract.evidence
        plus = ("+tests" if lane == "agent" and name == "bugfix_test_loop" else "") + (
            "+worktree" if load(name).contract.worktree else ""
        )
        assert outcome.evidence_class == f"independent_{depth}{plus}"


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("name", "recipe"), WRONG, ids=[f"{s}-{r}" for s, r in WRONG])
def test_wrong(name, recipe, system, tmp_path):
    wrong = SCENARIOS[name].wrong[recipe]
    vcs = make(system, tmp_path)
    if wrong.needs_index and system == "oak":
        pytest.skip("Oak has no index")
    outcome = judged(vcs, SCENARIOS[name], wrong.recipe, tmp_path, lane=wrong.lane or "workflow")
    judgement = outcome.judgement
    assert (judgement.verdict, judgement.reason) == (wrong.verdict, wrong.reason), judgement.checks
    assert outcome.evidence_class is None


@pytest.mark.parametrize("name", [s for s in SCENARIOS if s != "history_archaeology"])
def test_a_wrong_fix_that_only_tests_can_tell_passes_where_they_are_not_part(name, tmp_path):
    """The payload is narrower than behaviour, and says so by its class."""
    by_tests = {r: w for r, w in SCENARIOS[name].wrong.items() if w.lane == "agent"}
    assert bool(by_tests) == (name == "bugfix_test_loop")
    for recipe, wrong in by_tests.items():
        folder = tmp_path / recipe
        folder.mkdir()
        outcome = judged(make("git", folder), SCENARIOS[name], wrong.recipe, folder, lane="workflow")
        assert outcome.judgement.verdict == "pass"
        assert outcome.evidence_class == "independent_committed_payload"


@pytest.mark.parametrize("system", SYSTEMS)
def test_archaeology_version_1_is_always_unmeasured(system, tmp_path):
    scenario = SCENARIOS["history_archaeology"]
    for name, recipe in {**scenario.right, **{k: w.recipe for k, w in scenario.wrong.items()}}.items():
        folder = tmp_path / name
        folder.mkdir()
        outcome = judged(make(system, folder), scenario, recipe, folder, version=1)
        assert outcome.judgement.verdict == "unmeasured"
        assert outcome.judgement.reason == "unmeasured_by_contract"


def test_archaeology_answer_is_not_in_the_repository(tmp_path):
    """The key is the contract's: no committed file holds it, and an untouched tree fails."""
    from oracles.scenarios.history_archaeology import answer, prepare

    assert load("history_archaeology", 2).contract.answer.key == answer()
    work = prepare(make("git", tmp_path), str(tmp_path))
    for folder, _, files in os.walk(work.repo):
        if ".git" not in folder:
            for file in files:
                with open(os.path.join(folder, file)) as f:
                    assert "first_release" not in f.read()


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_fixtures_are_deterministic(name, tmp_path):
    assert SCENARIOS[name].fixture() == SCENARIOS[name].fixture()
    assert shutil.which("git")
    heads = set()
    for turn in ("a", "b"):
        root = tmp_path / turn
        root.mkdir()
        work = SCENARIOS[name].prepare(make("git", root), str(root))
        repo = work.repo if os.path.exists(work.repo) else os.path.join(work.root, "seed")
        heads.add(work.vcs.git(repo, "rev-parse", "HEAD"))
    assert len(heads) == 1
