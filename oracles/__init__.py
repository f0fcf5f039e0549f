"""Oracles: one contract a scenario, the same for every subject; pass, fail or unmeasured.

`oracles.judge(contract, reading, worktree=...)` is the Python API for harnesses; `oracles.load_contract`
finds a shipped contract or one of your own.
"""

from oracles.contract import ContractError, load_file
from oracles.contract import load as load_contract
from oracles.judge import Judgement, judge

__all__ = ["ContractError", "Judgement", "judge", "load_contract", "load_file"]
