"""Events: identity, canonical bytes, no floats. Strategies are made from the struct types themselves."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta, Struct

from ledger.decode import decode
from ledger.events import (
    AnyEvent,
    Condition,
    EnvironmentObserved,
    TrialRecorded,
    canonical,
    canonical_sha256,
    event_id,
    leaf_hash,
)
from ledger.schema import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What the patterns in ledger.fields mean, said a second time.
_FORMS = {
    r"^[A-Za-z0-9][A-Za-z0-9._:@+/-]*$(?!\n)": r"[A-Za-z0-9][A-Za-z0-9._:@+/\-]{0,30}",
    r"^[ !#-\[\]-~]*$(?!\n)": r"[ !#-\[\]-~]{0,40}",
    r"^[a-z][a-z0-9_]*$(?!\n)": r"[a-z][a-z0-9_]{0,20}",
    r"^[0-9a-f]{64}$(?!\n)": r"[0-9a-f]{64}",
    r"^[0-9a-f]{40}([0-9a-f]{24})?$(?!\n)": r"[0-9a-f]{40}([0-9a-f]{24})?",
    r"^[a-z0-9][a-z0-9_]*$(?!\n)": r"[a-z0-9][a-z0-9_]{0,30}",
}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def of_type(kind: Any, metas: tuple[Meta, ...] = ()) -> st.SearchStrategy[Any]:
    """Return a strategy for a field type with the bounds that were met on the way to it."""
    origin = get_origin(kind)
    if origin is Annotated:
        base, *more = get_args(kind)
        return of_type(base, (*metas, *more))
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(option) for option in get_args(kind)])
    if origin is Literal:
        return st.sampled_from(get_args(kind))
    if origin is tuple:
        low = _bound(metas, "min_length") or 0
        return st.lists(of_type(get_args(kind)[0]), min_size=low, max_size=low + 2).map(tuple)
    if origin is dict:
        key, value = get_args(kind)
        return st.dictionaries(of_type(key), of_type(value), max_size=3)
    if kind is type(None):
        return st.none()
    if kind is bool:
        return st.booleans()
    if kind is int:
        low, high, over = _bound(metas, "ge"), _bound(metas, "le"), _bound(metas, "lt")
        return st.integers(low, high if over is None else over - 1)
    if kind is str:
        pattern = _bound(metas, "pattern")
        if pattern is not None:
            least = _bound(metas, "min_length") or 0
            return st.from_regex(_FORMS[pattern], fullmatch=True).filter(lambda t: len(t) >= least)
        return _TEXT.filter(lambda t: len(t) >= (_bound(metas, "min_length") or 0))
    assert issubclass(kind, Struct), kind
    return of_struct(kind)


def _bound(metas: tuple[Meta, ...], name: str) -> Any:
    return next((got for m in metas if (got := getattr(m, name)) is not None), None)


def of_struct(struct: type[Struct]) -> st.SearchStrategy[Any]:
    """Return a strategy for a struct: required fields always, the others now and then."""
    hints = get_type_hints(struct, include_extras=True)
    required, optional = {}, {}
    for field in msgspec.structs.fields(struct):
        (required if field.required else optional)[field.name] = of_type(hints[field.name])
    if struct is EnvironmentObserved:
        required.pop("environment_id")
        return st.fixed_dictionaries(required, optional=optional).map(
            lambda f: EnvironmentObserved(environment_id=canonical_sha256(f["facts"]), **f)
        )
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: struct(**fields))


def events() -> st.SearchStrategy[Any]:
    """Return a strategy for events of every kind."""
    return st.one_of([of_struct(kind) for kind in get_args(AnyEvent)])


@settings(max_examples=150, deadline=None)
@given(events())
def test_decoding_canonical_bytes_gives_the_event_back(event: Any) -> None:
    payload = canonical(event)
    assert decode(payload) == (event, payload)


@settings(max_examples=80, deadline=None)
@given(events(), st.randoms(use_true_random=False))
def test_every_spelling_of_an_event_has_the_same_canonical_bytes(event: Any, rng: random.Random) -> None:
    """Other key order, white space, escapes and explicit defaults are the same event."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(k, shuffled(v)) for k, v in value.items()]
            rng.shuffle(items)
            return dict(items)
        return [shuffled(v) for v in value] if isinstance(value, list) else value

    explicit = json.loads(canonical(event))
    defaults = {
        f.name: msgspec.to_builtins(f.default)
        for f in msgspec.structs.fields(event)
        if f.default is not msgspec.NODEFAULT
    }
    spelled = json.dumps(shuffled(defaults | explicit), indent=1, ensure_ascii=True).encode()
    assert decode(spelled) == (event, canonical(event))


@settings(max_examples=80, deadline=None)
@given(events())
def test_equal_events_have_equal_bytes_however_their_parts_were_made(event: Any) -> None:
    again = msgspec.convert(msgspec.to_builtins(event), type(event))
    assert again == event
    assert canonical(again) == canonical(event)
    reordered = {
        f.name: dict(reversed(list(v.items())))
        for f in msgspec.structs.fields(event)
        if isinstance(v := getattr(event, f.name), dict)
    }
    assert canonical(msgspec.structs.replace(event, **reordered)) == canonical(event)


def test_explicit_defaults_do_not_change_bytes() -> None:
    fields: dict[str, Any] = {
        "source": "s",
        "ordinal": 0,
        "recorded_at_ns": 1_760_000_000_000_000_000,
        "campaign": "c",
        "lane": "core",
        "scenario": "s",
        "scenario_version": 1,
        "subject": "git",
        "trial": "t",
        "status": "completed",
    }
    bare = TrialRecorded(**fields, condition=Condition())
    full = TrialRecorded(**fields, condition=Condition(limits={}), metrics={}, exit_code=None)
    assert bare == full
    assert canonical(bare) == canonical(full)


def test_bytes_do_not_depend_on_the_python_run() -> None:
    program = """
import pathlib, sys, msgspec
from ledger.decode import decode
from ledger.events import canonical
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.*.json")):
    event = decode(path.read_bytes().strip())[0]
    again = msgspec.convert(msgspec.to_builtins(event), type(event))
    sys.stdout.buffer.write(canonical(again) + b"\\n")
"""
    samples = ROOT / "tests/data/events/v1"
    expected = b"".join(path.read_bytes() for path in sorted(samples.glob("*.*.json")))
    assert expected.count(b"\n") >= 15
    for seed in ("0", "1", "4242"):
        run = subprocess.run(
            [sys.executable, "-c", program, str(samples)],
            env={"PYTHONHASHSEED": seed, "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        )
        assert run.stdout == expected


def types_in(kind: Any, seen: set[Any]) -> set[Any]:
    if kind in seen:
        return seen
    seen.add(kind)
    if isinstance(kind, type) and issubclass(kind, Struct):
        for hint in get_type_hints(kind, include_extras=True).values():
            types_in(hint, seen)
    for argument in get_args(kind):
        if not isinstance(argument, (str, Meta)):
            types_in(argument, seen)
    return seen


def test_no_float_and_nothing_open_anywhere_in_an_event() -> None:
    met = types_in(AnyEvent, set())
    plain = {get_origin(kind) or kind for kind in met} - {types.UnionType, Union, Annotated, Literal}
    plain = {kind for kind in plain if isinstance(kind, type) and not issubclass(kind, Struct)}
    assert plain == {str, int, bool, type(None), tuple, dict}
    assert Any not in met


def test_every_text_and_number_in_an_event_is_bounded_and_every_field_explained() -> None:
    schema = msgspec.json.schema(AnyEvent)

    def walk(node: Any, where: str) -> None:
        if isinstance(node, list):
            for entry in node:
                walk(entry, where)
        if not isinstance(node, dict):
            return
        if node.get("type") == "string":
            fixed = "{64}$" in node.get("pattern", "") or "{40}" in node.get("pattern", "")
            assert "maxLength" in node or fixed, where
        if node.get("type") == "integer":
            assert "minimum" in node and ("maximum" in node or "exclusiveMaximum" in node), where
        if node.get("type") == "array":
            assert "maxItems" in node or where.endswith("colliding_paths.items"), where
        for name, field in node.get("properties", {}).items():
            assert name == "kind" or len(field.get("description", "")) > 3, f"{where}.{name}"
        if node.get("type") == "object" and "properties" in node:
            assert node["additionalProperties"] is False, where
        for name, child in node.items():
            if name not in ("description", "default", "enum", "required"):
                walk(child, f"{where}.{name}")

    walk(schema["$defs"], "")


def test_event_id_is_the_rfc6962_leaf_hash() -> None:
    # RFC 6962 section 2.1: MTH({d0}) = SHA-256(0x00 || d0); the empty entry's is well known.
    assert leaf_hash(b"").hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    event = decode((ROOT / "tests/data/events/v1/trial_recorded.full.json").read_bytes().strip())[0]
    assert event_id(event) == hashlib.sha256(b"\0" + canonical(event)).hexdigest()


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(of_type(str), of_type(str), max_size=5))
def test_open_objects_and_texts_are_spelled_as_in_rfc8785(value: dict[str, str]) -> None:
    """Keys past U+FFFF sort otherwise (UTF-16 there, bytes here); no key of an event has any."""
    bmp = {k: v for k, v in value.items() if all(ord(c) < 0xD800 for c in k)}
    assert canonical(bmp) == rfc8785.dumps(bmp)


def test_where_canonical_bytes_differ_from_rfc8785() -> None:
    """Order of an event's own fields, and integers that a double cannot hold: as docs/events.md says."""
    condition = Condition(track="agent-default", agent="a")
    assert canonical(condition) == b'{"agent":"a","track":"agent-default"}'
    assert rfc8785.dumps(json.loads(canonical(condition))) == canonical(condition)
    with pytest.raises(rfc8785.IntegerDomainError):
        rfc8785.dumps({"recorded_at_ns": 1_760_000_000_000_000_000})
    trial = json.loads((ROOT / "tests/data/events/v1/trial_recorded.full.json").read_bytes())
    assert list(trial) != sorted(trial)


def test_an_environment_is_the_digest_of_its_facts() -> None:
    good = EnvironmentObserved(
        source="s",
        ordinal=0,
        recorded_at_ns=1_760_000_000_000_000_000,
        environment_id=canonical_sha256({"b": "2", "a": "1"}),
        facts={"a": "1", "b": "2"},
    )
    assert good.environment_id == hashlib.sha256(b'{"a":"1","b":"2"}').hexdigest()
    with pytest.raises(ValueError, match="canonical facts"):
        msgspec.structs.replace(good, facts={"a": "2"})


def test_the_reference_page_is_fresh() -> None:
    page = (ROOT / "docs/events.md").read_text(encoding="utf-8")
    assert page == reference(), "run: python -m ledger.schema > docs/events.md"
