"""A sample of what one damaged byte can do when git fetches the objects."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from git_hostile import quick_folder

from reader.git_instrument_reader import Invocation

ROOT = Path(__file__).resolve().parent.parent.parent
STEP = int(os.environ.get("OAKLEDGER_DAMAGE_STEP", "331"))
"""Every how many damages one is tried: each costs two processes."""


def load_bench(name: str) -> ModuleType:
    """A module of the measurements, which are no part of the distribution."""
    if "bench" not in sys.modules:
        package = ModuleType("bench")
        package.__path__ = [str(ROOT / "bench")]
        sys.modules["bench"] = package
    return importlib.import_module(f"bench.{name}")


fuzz = load_bench("fuzz_git")


@pytest.mark.parametrize("name", fuzz.REPOSITORIES)
def test_damaged_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """True content, or 1, 3 or 77 with a reason that speaks of the store: never of the instrument."""
    monkeypatch.setattr(fuzz, "READER", Invocation({"PATH": os.environ["PATH"]}).reader)
    for folder in quick_folder():
        outcomes, findings = fuzz.sweep(fuzz.REPOSITORIES[name](folder / name), STEP)
    print(name, dict(outcomes))
    assert not findings
    assert outcomes["ok"] < outcomes.total() * 0.7, "damage must mostly be noticed"
    assert outcomes.total() >= 20
