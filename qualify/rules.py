"""The rules as data: `rules.toml`, one table a rule, and the SQL view that yields its violations."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ledger import views


@dataclass(frozen=True)
class Rule:
    """A rule. `lanes` says which lanes it binds, `severity` what a violation means (refusal, error)."""

    number: int
    id: str
    title: str
    why: str
    view: str
    lanes: str
    severity: str

    @property
    def sql(self) -> str:
        """The text of the view, as shipped."""
        return views.view(self.view).select

    @property
    def sql_file(self) -> str:
        """The name of the file that the view ships in."""
        return views.view(self.view).file


#: How many rules there are. A package that has lost one must not qualify anything.
RULE_COUNT = 14


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules in order of their number."""
    data = tomllib.loads((files("qualify") / "rules.toml").read_text(encoding="utf-8"))
    found = tuple(Rule(**{**row, "why": " ".join(row["why"].split())}) for row in data["rule"])
    if [r.number for r in found] != list(range(1, RULE_COUNT + 1)):
        raise ValueError(f"rules.toml must have the rules 1 to {RULE_COUNT} in order")
    return found


def find(name: str) -> Rule | None:
    """Return the rule of a number, an id or a view name, null if there is none."""
    text = name.strip().lower()
    for rule in rules():
        if text in (str(rule.number), f"{rule.number:02d}", f"rule_{rule.number:02d}", rule.id, rule.view):
            return rule
    return None
