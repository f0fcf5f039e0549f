"""What every command gets through the click context: where the ledger is, how to record, how to print.

Commands of packages that may not import the ledger use the object by its methods alone.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import time_ns
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

    from ledger.events import AnyEvent
    from ledger.store import AppendResult, Ledger

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Context:
    """The state of one command run."""

    ledger_path: str | None = None
    lock_timeout_s: float = 30.0
    _source: str = field(default_factory=lambda: f"oakledger-cli/{uuid.uuid4().hex}")
    _ordinal: int = 0

    @property
    def path(self) -> str:
        """The ledger path in force."""
        return self.ledger_path or os.environ.get("OAKLEDGER") or "oakledger.duckdb"

    def open(self, *, read_only: bool = False, create: bool = False) -> Ledger:
        """Open the ledger; raises the errors of `ledger.store.open_ledger`."""
        from ledger.store import open_ledger

        return open_ledger(self.path, read_only=read_only, create=create, lock_timeout_s=self.lock_timeout_s)

    def record(
        self,
        drafts: Iterable[Mapping[str, Any] | Callable[[Sequence[str]], Mapping[str, Any]]],
        *,
        create: bool = True,
    ) -> tuple[AppendResult, list[str]]:
        """Validate and append events given as mappings without source, ordinal and recorded_at_ns.

        A draft may be a function of the ids of the drafts before it, for events that name one another.
        Returns the append result and the event ids. Raises BadEventError for an invalid event.
        """
        from ledger.checkpoints import keep
        from ledger.decode import event_from_mapping
        from ledger.events import event_id

        structs: list[AnyEvent] = []
        ids: list[str] = []
        for draft in drafts:
            mapping = draft(ids) if callable(draft) else draft
            envelope = {"source": self._source, "ordinal": self._ordinal, "recorded_at_ns": time_ns()}
            structs.append(event_from_mapping({**envelope, **mapping}))
            ids.append(event_id(structs[-1]))
            self._ordinal += 1
        with self.open(create=create) as ledger:
            result = ledger.append(structs)
        keep(self.path, result.checkpoint)
        return result, ids

    @cached_property
    def console(self) -> Console:
        """A console on standard output: colours only on a terminal, NO_COLOR respected."""
        from rich.console import Console

        return Console(highlight=False, soft_wrap=not sys.stdout.isatty())

    @staticmethod
    def print_json(value: object) -> None:
        """Print one JSON document on standard output."""
        click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def printable(text: str) -> str:
    """Return text with everything that could steer a terminal made visible."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def json_option(command: F) -> F:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


pass_context = click.make_pass_decorator(Context)
