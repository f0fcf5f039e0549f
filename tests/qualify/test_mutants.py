"""What dishonest and careless people do is refused for the right reason, and honest campaigns pass.

All campaigns lie in one ledger and are decided one by one by the shipped decision (`batch`).
"""

from __future__ import annotations

import re

import batch
import honesty as h
import msgspec
import mutations as m
import pytest
from campaigns import DAY, respec, seal
from click.testing import CliRunner

from ledger.checkpoints import keep
from ledger.cli.root import cli
from ledger.errors import NoSuchCampaignError, OakledgerError
from ledger.events import CampaignDeclared, TrialRecorded
from ledger.store import open_ledger
from qualify.decision import decide as decide_alone
from qualify.rules import rules


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """The decision on every campaign, by name."""
    path = tmp_path_factory.mktemp("mutants") / "all.duckdb"
    campaigns = list(h.everything())
    with batch.loaded(path, [events for _, events in campaigns]) as ledger, batch.workspace(ledger) as con:
        yield {name: batch.decide(ledger, con, name) for name, _ in campaigns}


def test_there_are_enough_acts_and_each_rule_has_its_own():
    assert len(m.ACTS) >= 200
    alone = {next(iter(a.expect)) for a in m.ACTS.values() if len(a.expect) == 1}
    # Environments cannot differ without their conditions being off the plan; unknown ones can.
    assert alone == {r.id for r in rules()} - {"failures", "ledger"} | {"failures"}
    assert {a.spec.lane for a in m.ACTS.values()} == {"workflow", "agent", "core"}


@pytest.mark.parametrize("name", m.ACTS)
def test_an_act_is_refused_by_exactly_its_rules(decided, name):
    act, decision = m.ACTS[name], decided[name]
    assert batch.violated(decision) == act.expect
    assert decision.exit_status == 1 and decision.word == "diagnostic" and not decision.qualified
    for rule, found in act.notes.items():
        assert found <= batch.noted(decision)[rule]
    # Every refusal names events that exist, and says something.
    for state in decision.rules:
        for violation in state.violations:
            assert violation.detail and violation.detail != "no detail"
            assert violation.event_ids and all(re.fullmatch("[0-9a-f]{64}", e) for e in violation.event_ids)


@pytest.mark.parametrize("name", h.HONEST)
def test_an_honest_campaign_passes(decided, name):
    decision = decided[name]
    assert batch.violated(decision) == {}
    assert decision.exit_status == 0 and decision.word == "qualified"


def test_honest_campaigns_are_not_clinically_clean(decided):
    """They have failures of both kinds, and broken attempts that others stand in for."""
    for name in ("honest_agent", "honest_scripted", "honest_whole_agent", "honest_whole_workflow"):
        cells = [c for c in decided[name].tables["cells"] if c["scenario"] != "history_archaeology"]
        assert sum(c["failed_committed"] for c in cells) > 0
        assert sum(c["failed_before_head"] for c in cells) > 0
        assert sum(c["replaced"] for c in cells) > 2
        assert all(c["measured"] == c["planned"] == 31 for c in cells)
    scenarios = {c["scenario"] for c in decided["honest_whole_agent"].tables["cells"]}
    assert "history_archaeology" in scenarios and len(scenarios) == 3
    assert len({c["condition_key"] for c in decided["honest_whole_workflow"].tables["cells"]}) == 2


def test_a_diagnostic_scenario_is_shown_and_loses_nothing(decided):
    decision = decided["honest_with_diagnostic"]
    assert batch.noted(decision)["planned_slots"] == {"slot_unmeasured"}
    assert decision.qualified


def test_the_core_lane_is_not_bound_by_three_rules(decided):
    """The same act blocks on a lane that the rule binds and is information on another."""
    decision = decided["honest_core"]
    states = {r.rule.id: r.state for r in decision.rules}
    assert [states[r] for r in ("sample_size", "environment", "order")] == ["information"] * 3
    assert decision.facts["bound"] is False


def test_the_figures_of_an_honest_campaign_are_what_was_run(decided):
    """Recounted from the outcomes that the generator was told to make."""
    for cell in decided["honest_two_models"].tables["cells"]:
        oak = cell["subject"] == "oak_installed"
        assert (cell["planned"], cell["measured"]) == (31, 31)
        assert cell["failed_committed"] == 2
        assert cell["failed_before_head"] == 1
        assert cell["passed"] == 28
        # Git: two attempts at repetition 3 and one at 9; Oak: one at 5.
        assert cell["replaced"] == (1 if oak else 3)
        assert cell["recorded"] == 31 + cell["replaced"]
        assert cell["success_permille"] == pytest.approx(1000 * 28 / 31, abs=0.05)
        assert cell["strict_success_permille"] == cell["success_permille"]  # the harness was to blame
    for pair in decided["honest_two_models"].tables["paired_outcomes"]:
        # Both fail 12; Git alone fails 14 and 17, Oak alone 15 and 20.
        figures = [pair[k] for k in ("pairs", "both", "only_a", "only_b", "neither", "not_comparable")]
        assert figures == [31, 26, 2, 2, 1, 0]
        assert (pair["before_head_a"], pair["before_head_b"]) == (1, 1)
        assert pair["classes_a"] == pair["classes_b"] == ["independent_committed_payload+tests"]


def test_being_unreadable_costs_the_subject_in_the_second_rate(decided):
    oak = next(c for c in decided["unreadable_left"].tables["cells"] if c["subject"] == "oak_installed")
    assert oak["unmeasured"] == oak["unmeasured_by_subject"] == 1 and oak["measured"] == 30
    assert oak["success_permille"] == pytest.approx(1000 * 27 / 30, abs=0.05)
    assert oak["strict_success_permille"] == pytest.approx(1000 * 27 / 31, abs=0.05)


def test_decided_conflicts_count_as_the_rule_says(decided):
    passed = {
        name: next(c for c in decided[name].tables["cells"] if c["subject"] == "oak_installed")["passed"]
        for name in ("honest_timeouts_fail", "honest_timeouts_pass", "honest_timeouts_fail_late")
    }
    assert passed == {"honest_timeouts_fail": 27, "honest_timeouts_pass": 28, "honest_timeouts_fail_late": 27}


def test_an_undeclared_order_says_so(decided):
    assert decided["honest_observed"].facts["order_basis"] == "by observation only"
    assert decided["honest_agent"].facts["order_basis"] == "declared"
    assert decided["plan_with_a_false_clock"].facts["order_basis"] == "by observation only"


def test_reruns_are_listed(decided):
    """Campaigns with the same plan name each other, and that refuses nothing."""
    notes = batch.noted(decided["honest_scripted"])["preregistration"]
    assert notes == {"same_plan", "same_comparison"}
    others = {r["other"] for r in decided["honest_scripted"].tables["reruns"] if r["same_plan"]}
    assert {"dropped_failure_workflow", "honest_all_passed"} <= others


def test_the_answer_class_says_that_an_answer_was_scored(decided):
    """Nothing committed stands behind it, so it equals no committed class and one of its own."""
    classes = {c["correctness_class"] for c in decided["honest_answers"].tables["classes"]}
    assert classes == {"independent_answer"}


def test_alone_and_together_the_answer_is_the_same(decided, tmp_path):
    """The shortcut that this suite takes hides nothing: some are decided as in a release check."""
    names = ["honest_agent", "tests_run_for_one_side", "alternating_order", "controls_run_afterwards"]
    campaigns = dict(h.everything())
    with batch.loaded(tmp_path / "some.duckdb", [campaigns[n] for n in names]) as ledger:
        for name in names:
            alone, together = decide_alone(ledger, name), decided[name]
            for a, b in zip(alone.rules, together.rules, strict=True):
                if a.rule.id != "preregistration":  # which other campaigns there are
                    assert a == b, name
            for table in alone.tables.keys() - {"reruns"}:
                assert alone.tables[table] == together.tables[table], (name, table)


def run(*args):
    result = CliRunner().invoke(cli, [str(a) for a in args])
    if isinstance(result.exception, OakledgerError):
        return result.exception.exit_status, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def test_the_command_gives_the_exit_status(tmp_path):
    path = tmp_path / "cli.duckdb"
    number = list(h.HONEST).index("honest_scripted")
    with batch.loaded(
        path, [h.honest_events("honest_scripted", number), m.story(m.ACTS["forgotten_trial"], 500)]
    ) as ledger:
        keep(path, ledger.checkpoint())
    assert run("--ledger", path, "qualify", "--campaign", "honest_scripted")[0] == 0
    status, out = run("--ledger", path, "qualify", "--campaign", "forgotten_trial")
    assert status == 1 and "slots_missing" in out and "DIAGNOSTIC" in out
    status, out = run("--ledger", path, "qualify", "--campaign", "no-such-campaign")
    assert status == 4 and "no-such-campaign" in out
    assert run("--ledger", path, "qualify")[0] == 2


def test_an_unknown_campaign_is_neither_yes_nor_no(tmp_path):
    with open_ledger(tmp_path / "e.duckdb") as ledger, pytest.raises(NoSuchCampaignError):
        decide_alone(ledger, "anything")


def test_a_trial_of_another_campaign_is_found(tmp_path):
    """Campaigns pooled: a second one takes over a run of the first, under its id or under a new one."""
    first = m.honest_campaign(m.SCRIPTED, "first", 0)
    second = m.honest_campaign(m.SCRIPTED, "second", 1)
    mine = next(e for e in first if isinstance(e, TrialRecorded) and e.repetition == 1 and e.subject == "git")
    other = next(
        e for e in second if isinstance(e, TrialRecorded) and e.repetition == 1 and e.subject == "git"
    )
    for changes, found in (
        ({"trial": mine.trial}, "identity_used_elsewhere"),
        ({"started_at_ns": mine.started_at_ns}, "trial_of_another_campaign"),
    ):
        taken = [
            msgspec.structs.replace(e, **changes)
            if e is other
            # What was read and judged goes with the identity.
            else msgspec.structs.replace(e, trial=mine.trial)
            if "trial" in changes and getattr(e, "trial", None) == other.trial
            else e
            for e in second
        ]
        path = tmp_path / f"{found}.duckdb"
        with batch.loaded(path, [first, seal(taken)]) as ledger:
            for name in ("first", "second"):
                assert found in batch.violated(decide_alone(ledger, name))["sample_size"]


def test_a_declaration_that_another_ledger_took_in_late_is_late(tmp_path):
    """Merging ledgers does not make a plan earlier than it was in the one that took it in first."""
    from ledger.merge import merge

    events = m.honest_campaign(m.SCRIPTED, "merged", 0)
    plan = [e for e in events if isinstance(e, CampaignDeclared)]
    rest = [e for e in events if not isinstance(e, CampaignDeclared)]
    with open_ledger(tmp_path / "lab.duckdb", origin="lab") as lab:
        lab.append(rest)
        lab.append(plan)
    with open_ledger(tmp_path / "a.duckdb", origin="a") as ledger:
        ledger.append(plan)
        merge(ledger, str(tmp_path / "lab.duckdb"))
        assert batch.violated(decide_alone(ledger, "merged")) == {"preregistration": {"declared_late"}}


def test_a_campaign_of_one_thing_only_is_refused(tmp_path):
    """A decision or an attestation alone makes no campaign that could pass."""
    attested = m.attested(respec(m.SCRIPTED, campaign="word"), DAY)
    with batch.loaded(tmp_path / "w.duckdb", [seal([attested])]) as ledger:
        decision = decide_alone(ledger, "word")
    assert decision.exit_status == 1
    assert {r.rule.id for r in decision.rules if r.violations} == {r.id for r in rules()} - {"ledger"}
