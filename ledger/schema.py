"""The schema of events and rows, for machines (JSON Schema) and for people (docs/events.md)."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec

from ledger.decode import quoted
from ledger.errors import OakledgerError
from ledger.events import AnyEvent, Event
from ledger.rows import REQUIRED, ROW, row_schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def kinds() -> dict[str, type[Event]]:
    """Return every kind of the newest version by its tag, in the order of `ledger.events`."""
    return {str(struct.__struct_config__.tag): struct for struct in get_args(AnyEvent)}


def event_schema(kind: str | None = None) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of all kinds or of one, named with or without its version.

    Raises OakledgerError for a kind that does not exist.
    """
    if kind is None:
        return {"$schema": DRAFT, **msgspec.json.schema(AnyEvent)}
    for tag, struct in kinds().items():
        if kind in (tag, tag.partition("/")[0]):
            return {"$schema": DRAFT, **msgspec.json.schema(struct)}
    raise OakledgerError(f"kind {quoted(kind)} is not known: there are {', '.join(kinds())}")


def reference() -> str:
    """Return docs/events.md: every kind and the row with all fields, from the texts in the code."""
    events, row = event_schema(), row_schema()
    parts = [_HEAD]
    tags = {struct.__name__: tag for tag, struct in kinds().items()}
    shared = [name for name in events["$defs"] if name not in tags]
    for name, tag in tags.items():
        parts.append(f"## {tag}\n\n{_table(events['$defs'][name])}")
    parts.append("# Parts of events\n")
    parts.extend(f"## {name}\n\n{_table(events['$defs'][name])}" for name in sorted(shared))
    body = row["$defs"]["Row"]
    parts.append(f"# Harness rows\n\n{_ROWS}\n\n## {ROW}\n\n{_table(body)}")
    parts.append(
        "### Open fields\n\n| field | type | meaning |\n|---|---|---|\n"
        + "\n".join(
            f"| `{name[1:].partition('[')[0]}NAME` | {_type(entry)} | {_cell(entry['description'])} |"
            for name, entry in body["patternProperties"].items()
        )
        + "\n"
    )
    parts.append(
        "### Required in each lane\n\nThey must be there; null says unmeasured where the type allows it.\n\n"
        "| lane | fields |\n|---|---|\n"
        + "\n".join(
            f"| {lane} | {', '.join(f'`{n}`' for n in ('row', *names))} |" for lane, names in REQUIRED.items()
        )
        + "\n"
    )
    return "\n".join(parts)


def _table(definition: dict[str, Any]) -> str:
    rows = [
        f"| `{name}` | {_type(entry)} | {'yes' if name in definition.get('required', ()) else ''} "
        f"| {_cell(entry.get('description', 'Which contract this is, with its version.'))} |"
        for name, entry in definition["properties"].items()
    ]
    return (
        f"{definition.get('description', '')}\n\n| field | type | required | meaning |\n|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _type(entry: dict[str, Any]) -> str:
    """Say a JSON Schema type in a few words."""
    if "anyOf" in entry:
        return " or ".join(_type(option) for option in entry["anyOf"])
    if "$ref" in entry:
        name = entry["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in entry:
        return ", ".join(f"`{value}`" for value in entry["enum"])
    kind = entry.get("type", "any")
    if kind == "array":
        return f"list of {_type(entry['items'])}{_most(entry, 'maxItems', ' entries')}"
    if kind == "object":
        return f"object of {_type(entry['additionalProperties'])}{_most(entry, 'maxProperties', ' entries')}"
    if kind == "string":
        return _FORMS.get(entry.get("pattern", ""), "text") + _most(entry, "maxLength", " characters")
    if kind == "integer" and entry.get("minimum") == 0:
        return "integer from 0"
    return str(kind)


def _most(entry: dict[str, Any], name: str, unit: str = "") -> str:
    return f", at most {entry[name]}{unit}" if name in entry else ""


def _pattern(annotated: Any) -> str:
    found = next(m.pattern for m in annotated.__metadata__ if getattr(m, "pattern", None))
    return str(found)


def _forms() -> dict[str, str]:
    from ledger import fields

    return {
        _pattern(fields.Name): "name",
        _pattern(fields.Plain): "plain text",
        _pattern(fields.PlainKey): "key",
        _pattern(fields.Sha256): "SHA-256 in hex",
        _pattern(fields.ObjectId): "object id in hex",
        _pattern(fields.Code): "code",
    }


_FORMS = _forms()


def forms_text() -> str:
    """Return the forms of texts as Markdown rows."""
    return "\n".join(
        f"| {name} | `{_cell(re.sub(r'[(][?]!.*', '', form))}` |" for form, name in _FORMS.items()
    )


_HEAD = f"""<!-- Made from the code by `python -m ledger.schema`; a test fails when it is stale. -->

# Events

One NDJSON line is one event. `oakledger schema` prints the same as JSON Schema.

* `kind` names the kind with its version. A published version never changes.
* Unknown fields are refused, and so is a key that comes twice in one object.
* Null means unmeasured or unknown, never zero and never false. A field that is left out has its default.
* There are no floats: quantities are integers with the unit in the name (`_ns`, `_bytes`, `_count`).
  Integers are at most 64 bits wide, signed. Times are nanoseconds since 1970-01-01 UTC, from 2015 to 2099,
  and at most a day ahead of the clock of the machine that ingests.
* An event has at most 1048576 bytes.
* `(source, ordinal)` is the producer key: the same key with other content is an error.
* The canonical bytes of an event are UTF-8 without white space, fields in the order below, keys of open
  objects sorted by their bytes, fields with their default value left out. Producers need not write them: any
  JSON spelling of the same event is the same event. `event_id` is the hex SHA-256 of a zero byte and those
  bytes, the leaf hash of RFC 6962 section 2.1. Open objects and texts are spelled as RFC 8785 spells them;
  the order of an event's own fields and integers past 2^53 are where the two differ.

Forms of texts, as regular expressions over the whole text:

| form | expression |
|---|---|
{forms_text()}
"""

_ROWS = """A harness that does not write events writes one flat JSON object per measured operation. Each
becomes a `trial_recorded` event, and an `environment_observed` and a `subject_identified` where it carries
such facts (once a file for the same facts). Its producer key is derived from what the row is about
(campaign, trial, operation), so the same row twice is one event and another row about the same operation is
an error. What a row says about success or class is kept as a claim and never believed."""

if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 - the output is the point
