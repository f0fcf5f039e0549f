"""A sample of what one damaged byte can do to a small repository; ``bench/fuzz_git.py`` tries all."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
STEP = 41
"""Every 41st damage: with nine damages a byte, each file is hit all along and by each kind of damage."""


def load_bench(name: str) -> ModuleType:
    """A module of the measurements, which are no part of the distribution."""
    if "bench" not in sys.modules:
        package = ModuleType("bench")
        package.__path__ = [str(ROOT / "bench")]
        sys.modules["bench"] = package
    return importlib.import_module(f"bench.{name}")


fuzz = load_bench("fuzz_git")


@pytest.mark.parametrize("name", fuzz.REPOSITORIES)
def test_damaged_bytes(tmp_path: Path, name: str) -> None:
    outcomes, findings = fuzz.sweep(fuzz.REPOSITORIES[name](tmp_path / name), STEP)
    assert not findings
    assert outcomes["ok"] < outcomes.total() * 0.6, "damage must mostly be noticed"
    assert outcomes["3 blob_mismatch"] and outcomes["3 tree_mismatch"] and outcomes["3 commit_mismatch"]
    assert outcomes["1 malformed_head"]


def test_other_content_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = fuzz.REPOSITORIES["loose"](tmp_path / "loose")
    real = fuzz.run
    calls: list[int] = []

    def lying(reader: object, arguments: list[str]) -> object:
        report, stop = real(reader, arguments)
        calls.append(1)
        if len(calls) > 1:
            report.manifest_sha256 = "0" * 64
        return report, stop

    monkeypatch.setattr(fuzz, "run", lying)
    _, findings = fuzz.sweep(repository, 97)
    assert findings and all("other content" in finding for finding in findings)
