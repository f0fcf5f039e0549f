"""What the demo plans: three scenarios, two subjects, thirty trials a cell, and which trials go wrong."""

from __future__ import annotations

#: Scenario -> recipes; the first is right, the others go wrong on purpose.
RECIPES: dict[str, tuple[str, ...]] = {
    "wide_config_refactor": ("commit_all", "forgot_commit", "crlf"),
    "bugfix_test_loop": ("commit_all", "deleted_tests", "wrong_branch"),
    "undo_bad_commit": ("revert", "half", "reset_too_far"),
}

CAMPAIGN = "demo"
SEED = "a seed that was chosen before the runs"
CRITERION = "reviewed-by-a-person"


def recipe_for(scenario: str, repetition: int) -> str:
    """Return the recipe of a repetition, the same for both subjects: two in ten go wrong."""
    right, *wrong = RECIPES[scenario]
    return {3: wrong[0], 7: wrong[1]}.get(repetition % 10, right)
