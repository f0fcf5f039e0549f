"""What an audit has to say, and how much of it is kept."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

#: Findings that a report keeps with their details; beyond it they are only counted, by code.
MAX_FINDINGS = 100_000


@dataclass(frozen=True)
class Finding:
    """One thing that does not verify.

    `code` names the check; origin, seq and event_id say where, as far as the finding is about one place.
    """

    code: str
    detail: str
    origin: str | None = None
    seq: int | None = None
    event_id: str | None = None

    def place(self) -> str:
        """Return where it is, in words."""
        parts = [self.origin] if self.origin is not None else []
        if self.seq is not None:
            parts.append(f"seq {self.seq}")
        if self.event_id is not None:
            parts.append(f"event {self.event_id}")
        return " ".join(parts) or "the file"


@dataclass
class Findings:
    """A list of findings with a bound on memory: all are counted, the first `limit` are kept."""

    limit: int = MAX_FINDINGS
    kept: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, finding: Finding) -> None:
        """Take in one finding, from any thread."""
        with self._lock:
            self.counts[finding.code] += 1
            if len(self.kept) < self.limit:
                self.kept.append(finding)

    def extend(self, findings: Iterable[Finding]) -> None:
        """Take in several findings."""
        for finding in findings:
            self.add(finding)
