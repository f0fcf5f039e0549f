"""The questions that the page asks the ledger: the SQL of `queries.sql`, which the page also prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_QUERY = re.compile(r"^-- query (\w+): ([^\n]+)\n(.*?);\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Query:
    """A question: its name (an anchor in the page), what it answers, its SQL."""

    name: str
    title: str
    sql: str

    def text(self, campaign: str, limit: int) -> str:
        """Return the SQL for one campaign, listing at most `limit` events of a kind."""
        quoted = "'" + campaign.replace("'", "''") + "'"
        return self.sql.replace("$campaign", quoted).replace("$limit", str(limit))


@cache
def queries() -> tuple[Query, ...]:
    """Return every question, in the order of the file."""
    text = (files("qualify.report") / "queries.sql").read_text(encoding="utf-8")
    return tuple(Query(m[1], m[2], m[3]) for m in _QUERY.finditer(text))
