"""Contracts: the shipped ones are right, and a wrong one is refused with file and key."""

import hashlib
import os

import pytest

from oracles import ContractError, load_contract
from oracles.contract import load, load_file, parse
from oracles.scenarios import SCENARIOS, freeze, undo_bad_commit
from oracles.trial import run_controls

SHIPPED = os.path.join(os.path.dirname(freeze.__file__), "..", "contracts")

GOOD = """
schema = "oakledger-contract/1"
scenario = "a_task"
scenario_version = 1
oracle_version = 1
fixture_version = 1
title = "A task"
evidence = "committed_payload"

[[payload]]
path = "a.txt"
contains = ["done"]

[[controls.wrong]]
path = "a.txt"
content = "not yet"
"""


def test_a_good_contract():
    loaded = parse(GOOD.encode(), "a_task.toml")
    assert loaded.scope == (b"a.txt",)
    assert loaded.sha256 == hashlib.sha256(GOOD.encode()).hexdigest()


def suite(command, ran, minimum):
    return f'[tests]\ncommand = {command}\nran = "{ran}"\nminimum = {minimum}\n\n[[controls'


WRONG = {
    "unknown key": ("title =", "titel = 'x'\ntitle =", "titel"),
    "unknown marker key": ("contains =", "containz = ['x']\ncontains =", "containz"),
    "missing control": ("[[controls.wrong]]\npath = \"a.txt\"\ncontent = \"not yet\"", "", "controls"),
    "control elsewhere": ('path = "a.txt"\ncontent', 'path = "b.txt"\ncontent', "controls.wrong.path"),
    "absolute marker": ('path = "a.txt"\ncontains', 'path = "/a.txt"\ncontains', "payload.path"),
    "parent marker": ('path = "a.txt"\ncontains', 'path = "../a.txt"\ncontains', "payload.path"),
    "marker in .git": ('path = "a.txt"\ncontains', 'path = ".git/config"\ncontains', "payload.path"),
    "marker in .Oak": ('path = "a.txt"\ncontains', 'path = ".Oak/oak.db"\ncontains', "payload.path"),
    "empty marker": ('contains = ["done"]', "", "payload"),
    "bad regular expression": ('contains = ["done"]', 'matches = ["("]', "payload.matches"),
    "absent and present": ('contains = ["done"]', 'contains = ["x"]\nabsent = true', "payload.absent"),
    "version 0": ("scenario_version = 1", "scenario_version = 0", "scenario_version"),
    "text version": ("oracle_version = 1", 'oracle_version = "1"', "oracle_version"),
    "no evidence": ('"committed_payload"', '"none"', "unmeasured_because"),
    "tree without files": ('"committed_payload"', '"committed_tree"', "tree"),
    "answer with markers": ('"committed_payload"', '"answer"', "payload"),
    "other schema": ("oakledger-contract/1", "oakledger-contract/9", "schema"),
    "not TOML": ("title =", "title", "line"),
    "doubled path": ("[[controls", '[[payload]]\npath = "a.txt"\nmode = "100644"\n\n[[controls', "path"),
    "tests without a group": ("[[controls", suite('["x"]', "Ran", 1), "tests.ran"),
    "tests without a command": ("[[controls", suite("[]", "(.)", 1), "tests.command"),
    "tests that may run none": ("[[controls", suite('["x"]', "(.)", 0), "tests.minimum"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_contract_names_file_and_key(name):
    old, new, key = WRONG[name]
    assert old in GOOD
    with pytest.raises(ContractError) as caught:
        parse(GOOD.replace(old, new).encode(), "mine.toml")
    text = str(caught.value)
    assert text.startswith("mine.toml: ") and key in text and "\n" not in text


def test_bytes_that_are_no_contract():
    for data in (b"\xff", b"[" * 100_000, b"a = " + b"[" * 50_000):
        with pytest.raises(ContractError, match=r"^x\.toml: "):
            parse(data, "x.toml")


def test_every_shipped_contract_loads_and_refuses_its_controls():
    names = sorted(os.listdir(SHIPPED))
    assert len(names) == len(SCENARIOS) + 1  # history_archaeology has two versions
    for name in names:
        loaded = load_file(os.path.join(SHIPPED, name))
        assert loaded.contract.scenario in SCENARIOS
        for control in run_controls(loaded):
            assert control.verdict == "fail", name
        assert loaded.contract.evidence == "none" or run_controls(loaded)


def test_a_control_that_is_right_shows(tmp_path):
    """A contract whose wrong state passes is worth nothing, and running its controls says so."""
    text = GOOD.replace("not yet", "done")
    assert [c.verdict for c in run_controls(parse(text.encode(), "x"))] == ["fail", "pass"]


def test_frozen_contracts_are_current():
    for name, text in freeze.contracts().items():
        with open(os.path.join(SHIPPED, name), encoding="utf-8") as stream:
            assert stream.read() == text, f"run python -m oracles.scenarios.freeze: {name}"
    marker = next(m for m in load("undo_bad_commit").contract.payload if m.path == "prices.csv")
    assert marker.sha256 == hashlib.sha256(undo_bad_commit.fixture()["prices.csv"].content).hexdigest()


def test_finding_contracts(tmp_path):
    assert load_contract("history_archaeology").contract.scenario_version == 2
    assert load_contract("history_archaeology", 1).contract.evidence == "none"
    with pytest.raises(ContractError, match=r"no contract for nothing: there are .*wide_config_refactor"):
        load_contract("nothing")
    with pytest.raises(ContractError, match="version 7"):
        load_contract("wide_config_refactor", 7)
    (tmp_path / "a_task.toml").write_text(GOOD)
    assert load_contract("a_task", directory=str(tmp_path)).contract.title == "A task"
    with pytest.raises(ContractError, match="no contract for wide_config_refactor"):
        load_contract("wide_config_refactor", directory=str(tmp_path))
    (tmp_path / "b_task.toml").write_text(GOOD)
    with pytest.raises(ContractError, match=r"b_task\.toml: scenario"):
        load_contract("b_task", directory=str(tmp_path))
    with pytest.raises(ContractError):
        load_contract("a_task", directory=str(tmp_path / "none"))
