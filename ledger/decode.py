"""From bytes to events: strict decoding (design section 4).

Beyond what the struct types refuse (unknown kinds and fields, wrong types, floats, numbers out of range,
bytes that are not UTF-8), a line must not repeat a key in an object: JSON leaves open which one counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from ledger.errors import BadEventError
from ledger.events import MAX_EVENT_BYTES, AnyEvent, canonical

_decoder = msgspec.json.Decoder(AnyEvent)

#: Deeper nesting than any event has; checked before a recursive parser sees the text.
MAX_NESTING = 32


def decode(line: bytes) -> tuple[AnyEvent, bytes]:
    """Decode one JSON text into an event of its newest version, and return it with its canonical bytes.

    The canonical bytes are those of the version that was written: an upcast never changes an identity.
    Raises BadEventError with the reason.
    """
    if len(line) > MAX_EVENT_BYTES:
        raise BadEventError(f"event of {len(line)} bytes: at most {MAX_EVENT_BYTES} are allowed")
    try:
        event = _decoder.decode(line)
        payload = canonical(event)
    except msgspec.ValidationError as e:
        raise BadEventError(explain(line, str(e))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        raise BadEventError(f"not JSON: {e}") from None
    except RecursionError:
        raise BadEventError(f"nested more than {MAX_NESTING} levels") from None
    if payload != line.strip():
        refuse_duplicate_keys(line)
    return event, payload


def event_from_mapping(mapping: Mapping[str, Any]) -> AnyEvent:
    """Make an event of a mapping as a JSON object would give it. Raises BadEventError."""
    return decode(msgspec.json.encode(mapping))[0]


def explain(line: bytes, message: str) -> str:
    """Say what is wrong with a line that does not fit, kindly for kinds of other versions."""
    if "Invalid value" in message and "$.kind" in message:
        try:
            kind = msgspec.json.decode(line, type=_KindOnly).kind
        except msgspec.MsgspecError:
            return message
        name, _, version = kind.partition("/")
        known = sorted(_KINDS)
        for other in known:
            if other.partition("/")[0] == name and version.isdigit():
                return f"kind {kind!r} is a version this oakledger does not know: update it, or write {other}"
        return f"kind {kind!r} is not known: see oakledger schema"
    if "Object missing required field `kind`" in message:
        return "no field `kind`: an event needs one, a harness row needs `row`: see oakledger schema"
    return message


def refuse_duplicate_keys(line: bytes) -> None:
    """Raise BadEventError when an object in the JSON text repeats a key, or nests too deeply."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(items)
        if len(keys) != len(items):
            seen: set[str] = set()
            double = next(k for k, _ in items if k in seen or seen.add(k))  # type: ignore[func-returns-value]
            raise BadEventError(f"key {double!r} twice in one object")
        return keys

    try:
        json.loads(line, object_pairs_hook=pairs)
    except RecursionError:
        raise BadEventError(f"nested more than {MAX_NESTING} levels") from None
    except ValueError as e:
        raise BadEventError(f"not JSON: {e}") from None


class _KindOnly(msgspec.Struct):
    kind: str


_KINDS = frozenset(t.__struct_config__.tag for t in AnyEvent.__args__)
