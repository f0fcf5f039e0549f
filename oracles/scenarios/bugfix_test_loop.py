"""Fix a bug that a test shows, and keep the tests."""

from __future__ import annotations

from oracles.scenarios.files import Files, edit, remove, text, write
from oracles.scenarios.recipe import (
    Scenario,
    Workspace,
    Wrong,
    committed,
    nothing,
    on_another_branch,
    simple_repository,
    staged,
    uncommitted,
)
from oracles.scenarios.vcs import Vcs

_STATS = '''"""Small statistics."""


def mean(values):
    """Arithmetic mean."""
    return sum(values) / len(values)


def median(values):
    """Middle value; of an even number of values the mean of the two in the middle."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]
'''

_BUG = "    return ordered[middle]\n"
_FIX = (
    "    if len(ordered) % 2:\n"
    "        return ordered[middle]\n"
    "    return (ordered[middle - 1] + ordered[middle]) / 2\n"
)

_TESTS = """import unittest

from stats import mean, median


class MeanTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 3]), 2)


class MedianTest(unittest.TestCase):
    def test_odd(self):
        self.assertEqual(median([3, 1, 2]), 2)

    def test_even(self):
        self.assertEqual(median([4, 1, 3, 2]), 2.5)


if __name__ == "__main__":
    unittest.main()
"""


def fixture() -> Files:
    """Return the starting tree: a module with a bug and its test suite."""
    return {
        "stats.py": text(_STATS),
        "test_stats.py": text(_TESTS),
        "README.md": text("# stats\n\nRun the tests with `python -m unittest`.\n"),
    }


def prepare(vcs: Vcs, root: str) -> Workspace:
    """Make the repository."""
    return simple_repository(vcs, root, fixture())


def task(work: Workspace) -> None:
    """Fix the bug in the worktree."""
    edit(work.repo, "stats.py", _BUG, _FIX)


def _in_steps(work: Workspace) -> None:
    edit(work.repo, "stats.py", _BUG, "    # even lengths need two values\n" + _BUG)
    work.vcs.commit(work.repo)
    edit(work.repo, "stats.py", _BUG, _FIX)
    work.vcs.commit(work.repo)


def _deleted_tests(work: Workspace) -> None:
    task(work)
    remove(work.repo, "test_stats.py")


def _weakened_tests(work: Workspace) -> None:
    task(work)
    edit(work.repo, "test_stats.py", "    def test_even(self)", "    def skip_even(self)")


def _conflict_markers(work: Workspace) -> None:
    marked = f"<<<<<<< ours\n{_BUG}=======\n{_FIX}>>>>>>> theirs\n"
    edit(work.repo, "stats.py", _BUG, marked)


def _plausible_but_wrong(work: Workspace) -> None:
    wrong = _FIX.replace("ordered[middle - 1] + ordered[middle]", "ordered[middle] + ordered[middle + 1]")
    edit(work.repo, "stats.py", _BUG, wrong)


def _special_cased(work: Workspace) -> None:
    """Make the visible test pass without fixing the bug; only pristine tests can tell."""
    write(work.repo, {"stats.py": text(_STATS.replace(_BUG, "    if len(ordered) == 4:\n        "
        "return (ordered[1] + ordered[2]) / 2\n" + _BUG))})  # fmt: skip


SCENARIO = Scenario(
    name="bugfix_test_loop",
    fixture=fixture,
    prepare=prepare,
    right={"commit_all": committed(task), "in_steps": _in_steps},
    wrong={
        "nothing": Wrong(nothing, "pattern_missing"),
        "forgot_commit": Wrong(uncommitted(task), "pattern_missing"),
        "index_only": Wrong(staged(task), "pattern_missing", needs_index=True),
        "wrong_branch": Wrong(on_another_branch(task), "pattern_missing"),
        "deleted_tests": Wrong(committed(_deleted_tests), "missing_path"),
        "weakened_tests": Wrong(committed(_weakened_tests), "marker_missing"),
        "conflict_markers": Wrong(committed(_conflict_markers), "marker_forbidden"),
        "plausible_but_wrong": Wrong(committed(_plausible_but_wrong), "tests_failed", lane="agent"),
        "special_cased": Wrong(committed(_special_cased), "tests_failed", lane="agent"),
    },
)
