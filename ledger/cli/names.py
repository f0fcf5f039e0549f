"""Names that people type: near misses, and completion in a shell."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

from ledger.cli.context import Context
from ledger.errors import NoSuchCampaignError, OakledgerError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ledger.store import Ledger

#: Names that are looked through for a near miss, and offered by a shell.
_LOOKED_AT = 20_000
_OFFERED = 200


def campaigns(ledger: Ledger) -> list[str]:
    """Return the campaigns that any event but a decision mentions, sorted."""
    rows = ledger.con.execute(
        "SELECT DISTINCT campaign FROM events WHERE campaign IS NOT NULL AND kind <> 'qualification_decided' "
        "ORDER BY campaign LIMIT ?",
        [_LOOKED_AT],
    ).fetchall()
    return [str(r[0]) for r in rows]


def near(name: str, known: list[str]) -> str:
    """Return `: did you mean X?`, or what there is, or nothing."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    close = close or [k for k in known if name.lower() in k.lower()][:3]
    if close:
        return f": did you mean {' or '.join(close)}?"
    if known and len(known) <= 5:
        return f": there is {', '.join(known)}"
    return ": oakledger status lists them"


def require_campaign(ledger: Ledger, name: str) -> None:
    """Raise NoSuchCampaignError, with near misses, unless some event mentions the campaign."""
    if not ledger.has_campaign(name):
        shown = repr(name if len(name) <= 200 else name[:200] + "...")
        hint = near(name, campaigns(ledger))
        raise NoSuchCampaignError(f"no event in {ledger.path} mentions campaign {shown}{hint}")


def complete_campaign(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer the campaigns of the ledger in force; nothing where it cannot be opened at once."""
    from click.shell_completion import CompletionItem

    root = ctx.find_root()
    context = Context(ledger_path=root.params.get("ledger_path"), lock_timeout_s=0)
    try:
        with context.open(read_only=True) as ledger:
            names = campaigns(ledger)
    except OakledgerError:
        return []
    return [CompletionItem(n) for n in names if n.startswith(incomplete)][:_OFFERED]
