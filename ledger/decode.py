"""From bytes to events: strict decoding (design section 4).

The struct types refuse unknown kinds and fields, wrong types, floats, numbers and times out of range. This
module adds what a type cannot say, keeps hostile nesting away from recursive parsers, and puts every refusal
into one line that tells a producer what to change.

An object that repeats a key is refused: RFC 8259 section 4 leaves open which one counts. A line that equals
its own canonical bytes repeats none, so only other lines pay for that check.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Mapping
from typing import Any, cast, get_args

import msgspec

from ledger.errors import BadEventError
from ledger.events import MAX_EVENT_BYTES, AnyEvent, Event, canonical
from ledger.upcast import STEPS, Steps, upcast

#: Deepest nesting of objects and arrays; no event or row comes near it.
MAX_NESTING = 32

#: Longest reason in characters: a reason may quote hostile text.
MAX_REASON = 400

_BOM = b"\xef\xbb\xbf"


class EventDecoder:
    """Decodes the given kinds, and the older versions that `steps` lead up from."""

    def __init__(self, kinds: Any = AnyEvent, steps: Steps = STEPS) -> None:
        structs: tuple[type[Event], ...] = (*(get_args(kinds) or (kinds,)), *steps)
        self._decode = msgspec.json.Decoder(functools.reduce(operator.or_, structs)).decode
        self._steps = steps
        self._tags = [str(struct.__struct_config__.tag) for struct in structs]

    def decode(self, line: bytes) -> tuple[Event, bytes]:
        """Return the event in its newest version, and the canonical bytes of the version that was written.

        Raises BadEventError with the reason.
        """
        if len(line) > MAX_EVENT_BYTES:
            raise BadEventError(f"{len(line)} bytes: an event has at most {MAX_EVENT_BYTES}")
        try:
            event = self._decode(line)
            payload = canonical(event)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as e:
            raise BadEventError(self._explain(line, e)) from None
        if payload != line:
            refuse_duplicate_keys(line)
        return (upcast(event, self._steps) if self._steps else event), payload

    def _explain(self, line: bytes, error: Exception) -> str:
        message = str(error)
        if not isinstance(error, msgspec.ValidationError):
            return not_json(line, error)
        if "- at `$.kind`" in message:
            return self._explain_kind(line, message)
        if "missing required field `kind`" in message:
            return "no field kind (an event needs it) and no field row (a harness row needs it)"
        return explain(message)

    def _explain_kind(self, line: bytes, message: str) -> str:
        try:
            kind = msgspec.json.decode(line, type=_Tagged).kind
        except (msgspec.MsgspecError, RecursionError):
            return explain(message)
        name, _, version = kind.partition("/")
        same = [tag for tag in self._tags if tag.partition("/")[0] == name]
        newest = max(same, key=lambda tag: int(tag.partition("/")[2]), default=None)
        shown = quoted(kind)
        if newest is None:
            return f"kind {shown} is not known: oakledger schema lists the kinds"
        if version.isdecimal():
            return (
                f"kind {shown} is of another version than this oakledger knows: update it or write {newest}"
            )
        return f"kind {shown} lacks its version: write {newest}"


_events = EventDecoder()


def decode(line: bytes) -> tuple[AnyEvent, bytes]:
    """Decode one JSON text into an event of its newest version, and return it with its canonical bytes.

    The canonical bytes are those of the version that was written: an upcast never changes an identity.
    Raises BadEventError with a reason in one line.
    """
    return cast("tuple[AnyEvent, bytes]", _events.decode(line))


def event_from_mapping(mapping: Mapping[str, Any]) -> AnyEvent:
    """Make an event of a mapping as a JSON object would give it. Raises BadEventError."""
    try:
        line = msgspec.json.encode(mapping)
    except (TypeError, ValueError, RecursionError) as e:
        raise BadEventError(f"not an event: {one_line(str(e))}") from None
    return decode(line)[0]


def validated(event: AnyEvent) -> bytes:
    """Return the canonical bytes of an event struct made in Python, held to all that a line is held to.

    Raises BadEventError.
    """
    try:
        payload = canonical(event)
    except (TypeError, ValueError, RecursionError) as e:
        raise BadEventError(f"not an event: {one_line(str(e))}") from None
    return decode(payload)[1]


def one_line(text: str, limit: int = MAX_REASON) -> str:
    """Return text as one printable line of bounded length."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 3] + "..."


def quoted(text: str) -> str:
    """Return foreign text as it can be shown inside a reason."""
    return f"'{one_line(text, 100)}'"


def explain(message: str) -> str:
    """Say what a validation error of msgspec means for the person who writes the producer."""
    found = re.fullmatch(r"(.*?)(?: - at `\$\.?(.*)`)?", message, re.DOTALL)
    what, where = (found[1], found[2]) if found else (message, None)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what, re.DOTALL)
    missing = re.fullmatch(r"Object missing required field `(.*)`", what, re.DOTALL)
    limit = re.fullmatch(r"Expected `int` (?:>=|<|<=) -?\d+", what)
    if unknown:
        what = f"unknown field {quoted(unknown[1])}"
    elif missing:
        what = f"no field {missing[1]}"
    elif where and where.endswith("_at_ns") and limit:
        what = "a time before 2015 or after 2099: nanoseconds since 1970-01-01 UTC are wanted"
    elif what == "Integer value out of range":
        what = "a number that no 64-bit integer holds"
    elif "got `float`" in what:
        what = "a float: quantities are integers with the unit in the name"
    elif "matching regex" in what:
        what = f"does not have the form {what.partition('matching regex ')[2]}"
    return one_line(f"{where}: {what}" if where else what)


def not_json(line: bytes, error: Exception) -> str:
    """Say why a line is no JSON text at all."""
    if isinstance(error, RecursionError):
        return f"nested too deeply: at most {MAX_NESTING} levels"
    if line.startswith(_BOM):
        return "starts with a byte order mark: write UTF-8 without one"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as e:
        return f"not UTF-8: byte 0x{line[e.start]:02x} at position {e.start}"
    if re.search(r"\b(?:NaN|-?Infinity)\b", text[:MAX_EVENT_BYTES]):
        return f"not JSON: {one_line(str(error))} (JSON has no NaN or Infinity: null says unmeasured)"
    if re.search(r"\\ud[89a-f]", text, re.IGNORECASE):
        return f"not JSON: {one_line(str(error))} (half a surrogate pair is no character)"
    return f"not JSON: {one_line(str(error))}"


def refuse_duplicate_keys(line: bytes) -> None:
    """Raise BadEventError when an object in the JSON text repeats a key.

    The text must have been decoded against a type of bounded depth before.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(items)
        if len(keys) != len(items):
            names = [name for name, _ in items]
            double = next(name for name in names if names.count(name) > 1)
            raise BadEventError(f"key {quoted(double)} twice in one object")
        return keys

    try:
        json.loads(line.decode("utf-8"), object_pairs_hook=pairs)
    except RecursionError as e:
        raise BadEventError(not_json(line, e)) from None
    except ValueError as e:
        raise BadEventError(not_json(line, e)) from None


class _Tagged(msgspec.Struct):
    kind: str
