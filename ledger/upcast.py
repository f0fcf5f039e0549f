"""Reading events of older versions (design section 4).

A published version of a kind never changes. When its meaning must, a new version is a new struct with a new
tag, the old struct stays in `ledger.events`, and its step to the next version is entered here. An upcast is
for reading only: what was written keeps its bytes and therefore its event id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ledger.events import Event

#: Struct of an older version -> function from it to the struct of the next version.
Steps: TypeAlias = Mapping[type[Event], Callable[[Any], Event]]

#: Every kind is at version 1 today.
STEPS: Steps = {}


def upcast(event: Event, steps: Steps = STEPS) -> Event:
    """Return the event as its kind's newest version, going from version to version."""
    while (step := steps.get(type(event))) is not None:
        event = step(event)
    return event
