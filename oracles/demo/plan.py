"""What the demo plans: three scenarios, two subjects, thirty trials a cell, and which trials go wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from oracles.contract import load

#: Scenario -> recipes; the first is right, the others go wrong on purpose.
RECIPES: dict[str, tuple[str, ...]] = {
    "wide_config_refactor": ("commit_all", "forgot_commit", "crlf"),
    "bugfix_test_loop": ("commit_all", "deleted_tests", "wrong_branch"),
    "undo_bad_commit": ("revert", "half", "reset_too_far"),
}

CAMPAIGN = "demo"
LANE = "workflow"
SEED = "demo seed, chosen before the runs"

#: The time limit of one trial, in nanoseconds: part of the condition.
LIMIT_NS = 60_000_000_000


def recipe_for(scenario: str, repetition: int) -> str:
    """Return the recipe of a repetition, the same for both subjects: two in ten go wrong."""
    right, *wrong = RECIPES[scenario]
    return {3: wrong[0], 7: wrong[1]}.get(repetition % 10, right)


def condition(environment: Mapping[str, str]) -> dict[str, object]:
    """Return the one condition of the demo, with the environment as facts."""
    return {
        "track": "core-equivalent",
        "transport": "none",
        "limits": {"trial_ns": LIMIT_NS},
        "environment": dict(environment),
    }


def campaign_file(subjects: Sequence[str], trials: int, environment: Mapping[str, str]) -> str:
    """Return the campaign file as TOML."""
    lines = [
        "# What will be measured, declared before the first trial; see oakledger campaign plan.",
        f'campaign = "{CAMPAIGN}"',
        "preregistered = true",
        f'lane = "{LANE}"',
        f"trials_per_cell = {trials}",
    ]
    for subject in subjects:
        lines += ["", "[[subjects]]", f'subject = "{subject}"']
    for scenario in RECIPES:
        contract = load(scenario)
        task = contract.contract
        lines += [
            "",
            "[[scenarios]]",
            f'scenario = "{scenario}"',
            f"scenario_version = {task.scenario_version}",
            f"oracle_version = {task.oracle_version}",
            f"fixture_version = {task.fixture_version}",
            f'contract_sha256 = "{contract.sha256}"',
            f'evidence = "{task.evidence}"',
        ]
    facts = condition(environment)
    lines += [
        "",
        "[[conditions]]",
        f'track = "{facts["track"]}"',
        f'transport = "{facts["transport"]}"',
        f"limits = {{ trial_ns = {LIMIT_NS} }}",
        "",
        "[conditions.environment]",
        *(f"{name} = {json.dumps(value)}" for name, value in environment.items()),
        "",
        "[order]",
        f'seed = "{SEED}"',
        'extent = "campaign"',
        "",
        "# A demo is no study: nobody attests this, so the campaign stays diagnostic.",
        "[[criteria]]",
        'criterion = "a-person-reviewed-the-tasks"',
        'text = "A person other than the author has reviewed tasks, fixtures and contracts."',
    ]
    return "\n".join(lines) + "\n"
