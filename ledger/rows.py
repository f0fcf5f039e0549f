"""Harness rows: the flat way into the ledger for harnesses that do not write events themselves.

A row is one JSON object per measured operation, marked `"row": "oakledger-row/1"`. Its fields are flat:

* the fields of a trial and of its condition by their own names (`oakledger schema --row`);
* `metric_NAME`: a measured quantity, an integer with the unit in the name, null when unmeasured;
* `limit_NAME`: a limit in force, an integer;
* `env_NAME`: a fact about the environment, a text. Together they make the environment's identity. A null
  fact is unmeasured, and an environment with an unmeasured fact has no identity.

Null means unmeasured. A lane requires fields (`REQUIRED`): they must be there, so that nothing is left out by
mistake, and may be null where the type allows it, which is a statement.

A row becomes one `trial_recorded` event, and one `environment_observed` and one `subject_identified` where it
carries such facts. The producer key is derived from what the row is about (campaign, trial, operation): the
same row twice is one event, and another row about the same operation is an error, not a second measurement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from ledger.decode import decode, explain, not_json, one_line, quoted, refuse_duplicate_keys
from ledger.errors import BadEventError
from ledger.events import (
    MAX_EVENT_BYTES,
    AnyEvent,
    Condition,
    EnvironmentObserved,
    SubjectIdentified,
    TrialRecorded,
    canonical,
    canonical_sha256,
)
from ledger.fields import Plain, PlainKey, Quantity

#: The marker of a row, and the version of this contract.
ROW = "oakledger-row/1"

_ALWAYS = ("lane", "campaign", "scenario", "scenario_version", "subject", "trial", "status", "recorded_at_ns")
_COMPARED = ("started_at_ns", "fixture_version", "subject_binary_sha256", "subject_version", "track")

#: Lane -> fields that must be there; null is allowed where the type allows it.
REQUIRED: dict[str, tuple[str, ...]] = {
    "core": (*_ALWAYS, *_COMPARED, "operation", "profile", "process_key"),
    "workflow": (*_ALWAYS, *_COMPARED, "repetition", "reached_head", "transport"),
    "agent": (
        *_ALWAYS,
        *_COMPARED,
        "repetition",
        "reached_head",
        "transport",
        "agent",
        "agent_version",
        "model",
        "instruction_level",
        "instruction_sha256",
    ),
    "contention": (*_ALWAYS, *_COMPARED, "operation", "process_key"),
    "mount": (*_ALWAYS, *_COMPARED, "operation", "process_key"),
}

#: Prefix of open fields -> type of the whole mapping, text for the schema, whether null may stand there.
_OPEN: dict[str, tuple[Any, str, bool]] = {
    "metric_": (Quantity, "Measured quantity, unit at the end of the name; null: unmeasured.", True),
    "limit_": (Quantity, "Limit in force, unit at the end of the name.", False),
    "env_": (Plain, "Fact that identifies the environment; null: unmeasured, no identity.", True),
}

# Made by the conversion from other fields of the row, so a row does not have them.
_MADE = frozenset({"source", "ordinal", "condition", "metrics", "row_sha256", "limits"})


def _row_fields() -> Iterator[tuple[str, Any] | tuple[str, Any, Any]]:
    for struct in (TrialRecorded, Condition):
        hints = get_type_hints(struct, include_extras=True)
        for field in msgspec.structs.fields(struct):
            if field.name in _MADE:
                continue
            if field.required:
                yield field.name, hints[field.name]
            else:
                yield field.name, hints[field.name], field.default


#: The named fields of a row. Texts, types and bounds are those of trial_recorded and its condition.
Row: type[Struct] = msgspec.defstruct(
    "Row",
    list(_row_fields()),
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="row",
    tag=ROW,
    namespace={
        "__doc__": "One measured operation. Null means unmeasured. Open fields: metric_*, limit_*, env_*."
    },
)

_flat = msgspec.json.Decoder(dict[str, str | int | bool | None])
_TRIAL = tuple(f.name for f in msgspec.structs.fields(TrialRecorded) if f.name not in _MADE)
_CONDITION = tuple(f.name for f in msgspec.structs.fields(Condition) if f.name not in _MADE)


def events_of_row(line: bytes) -> list[tuple[AnyEvent, bytes]]:
    """Convert one row into its events with their canonical bytes, the trial first.

    Raises BadEventError with a reason in one line.
    """
    if len(line) > MAX_EVENT_BYTES:
        raise BadEventError(f"{len(line)} bytes: a row has at most {MAX_EVENT_BYTES}")
    try:
        flat = _flat.decode(line)
    except msgspec.ValidationError as e:
        raise BadEventError(_not_flat(line, e)) from None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as e:
        raise BadEventError(not_json(line, e)) from None
    refuse_duplicate_keys(line)
    if flat.get("row") != ROW:
        raise BadEventError(f"row {quoted(str(flat.get('row')))} is not known: this oakledger reads {ROW}")
    opened = {prefix: _take(flat, prefix) for prefix in _OPEN}
    try:
        row = msgspec.to_builtins(msgspec.convert(flat, Row))
    except msgspec.ValidationError as e:
        raise BadEventError(explain(str(e))) from None
    lacking = [name for name in REQUIRED[row["lane"]] if name not in flat]
    if lacking:
        raise BadEventError(
            f"a row of lane {row['lane']} lacks {', '.join(lacking)}: write them, null where unmeasured"
        )
    # Decoding them again holds a row to every bound that an event has.
    return [decode(canonical(event)) for event in _events(line, row, opened)]


def _events(line: bytes, row: dict[str, Any], opened: dict[str, dict[str, Any]]) -> list[AnyEvent]:
    facts = opened["env_"]
    environment_id = row["environment_id"]
    if facts and None not in facts.values():
        derived = canonical_sha256(facts)
        if environment_id not in (None, derived):
            raise BadEventError("environment_id is not the SHA-256 of the env_ facts: leave it out")
        environment_id = derived
    elif facts and environment_id is not None:
        raise BadEventError("environment_id beside an unmeasured env_ fact: it has no identity, leave it out")
    condition = Condition(
        **{name: row[name] for name in _CONDITION if name != "environment_id"},
        environment_id=environment_id,
        limits=opened["limit_"],
    )
    about = canonical_sha256([row["campaign"], row["trial"], row["operation"]])
    envelope = {"source": f"row/{about}", "recorded_at_ns": row["recorded_at_ns"]}
    trial = {name: row[name] for name in _TRIAL} | envelope
    events: list[AnyEvent] = [
        TrialRecorded(
            **trial,
            ordinal=0,
            condition=condition,
            metrics=opened["metric_"],
            row_sha256=hashlib.sha256(canonical(msgspec.json.decode(line))).hexdigest(),
        )
    ]
    if facts and environment_id is not None:
        events.append(
            EnvironmentObserved(
                **envelope,
                ordinal=1,
                environment_id=environment_id,
                facts=facts,
                campaign=row["campaign"],
            )
        )
    provenance = {
        "binary_sha256": row["subject_binary_sha256"],
        "version": row["subject_version"],
        "source_sha256": row["subject_source_sha256"],
        "dirty": row["subject_dirty"],
    }
    if any(value is not None for value in provenance.values()):
        events.append(
            SubjectIdentified(
                **envelope, ordinal=2, subject=row["subject"], campaign=row["campaign"], **provenance
            )
        )
    return events


def _take(flat: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take the open fields of one prefix out of the row, checked, without their prefix."""
    kind, _, nullable = _OPEN[prefix]
    taken: dict[str, Any] = {}
    for name in [n for n in flat if n.startswith(prefix)]:
        value = flat.pop(name)
        try:
            key = msgspec.convert(name.removeprefix(prefix), PlainKey)
            taken[key] = msgspec.convert(value, kind | None if nullable else kind)
        except msgspec.ValidationError as e:
            raise BadEventError(f"{one_line(name, 100)}: {explain(str(e))}") from None
    return taken


def _not_flat(line: bytes, error: msgspec.ValidationError) -> str:
    """Name the field that is no text, integer, truth value or null."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError) as e:
        return not_json(line, e)
    if not isinstance(value, dict):
        return "not a JSON object"
    for name, held in value.items():
        if isinstance(held, float):
            return f"{one_line(name, 100)}: a float: quantities are integers with the unit in the name"
        if isinstance(held, (dict, list)):
            return f"{one_line(name, 100)}: a row is flat: metric_NAME, limit_NAME and env_NAME are open"
    return explain(str(error))


def row_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a row."""
    schema = msgspec.json.schema(Row)
    body = schema["$defs"]["Row"]
    body["required"] = ["row", *_ALWAYS]
    body["patternProperties"] = {
        f"^{prefix}[a-z][a-z0-9_]*$": {
            **msgspec.json.schema(kind | None if nullable else kind),
            "description": text,
        }
        for prefix, (kind, text, nullable) in _OPEN.items()
    }
    body["allOf"] = [
        {
            "if": {"properties": {"lane": {"const": lane}}},
            "then": {"required": [n for n in names if n not in _ALWAYS]},
        }
        for lane, names in REQUIRED.items()
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
