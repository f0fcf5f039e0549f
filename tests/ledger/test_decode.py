"""Strict decoding: every kind of bad line has its reason, in one line, and nothing else gets out."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger.decode import MAX_REASON, decode, event_from_mapping
from ledger.errors import BadEventError
from ledger.events import MAX_EVENT_BYTES, TrialInvalidated, canonical

SAMPLES = pathlib.Path(__file__).resolve().parents[1] / "data/events/v1"
GOOD: dict[str, Any] = {
    "kind": "trial_invalidated/1",
    "source": "a",
    "ordinal": 0,
    "recorded_at_ns": 1_760_000_000_000_000_000,
    "campaign": "c",
    "trial": "t",
    "who": "w",
    "why": "y",
}
LINE = json.dumps(GOOD, separators=(",", ":"))
TRIAL = (SAMPLES / "trial_recorded.full.json").read_text().strip()


def put(name: str, text: str, line: str = LINE) -> bytes:
    """Replace one field's value by a JSON text."""
    old = f'"{name}":{json.dumps(json.loads(line)[name], separators=(",", ":"))}'
    assert line.count(old) == 1
    return line.replace(old, f'"{name}":{text}').encode("utf-8", "surrogatepass")


BAD: list[tuple[str, bytes, str]] = [
    ("empty", b"", "not JSON"),
    ("not utf-8", put("why", '"@"').replace(b"@", b"\xff"), r"not UTF-8: byte 0xff at position 136"),
    ("encoded surrogate", put("why", '"\ud800"'), "not UTF-8: byte 0xed"),
    ("utf-16", LINE.encode("utf-16"), "not UTF-8"),
    ("byte order mark", b"\xef\xbb\xbf" + LINE.encode(), "byte order mark"),
    ("lone surrogate", put("why", r'"\ud800 and more"'), "surrogate"),
    ("lone low surrogate", put("why", r'"\udfff and more"'), "surrogate"),
    ("surrogate at the end", put("why", r'"\ud800"'), "surrogate"),
    ("trailing garbage", LINE.encode() + b" x", "trailing characters"),
    ("two events", LINE.encode() * 2, "trailing characters"),
    ("cut short", LINE.encode()[:-1], "not JSON"),
    ("an array", b"[1]", "Expected `object`, got `array`"),
    ("null", b"null", "Expected `object`, got `null`"),
    ("raw newline in a text", put("why", '"a\nb"'), "not JSON"),
    ("NaN", put("ordinal", "NaN"), "no NaN or Infinity"),
    ("minus infinity", put("ordinal", "-Infinity"), "no NaN or Infinity"),
    ("float", put("ordinal", "1.5"), "^ordinal: a float"),
    ("float without fraction", put("ordinal", "1.0"), "^ordinal: a float"),
    ("exponent", put("ordinal", "1e3"), "^ordinal: a float"),
    ("leading zero", put("ordinal", "01"), "not JSON"),
    ("past 2^63", put("ordinal", str(2**63)), "^ordinal: "),
    ("past 2^64", put("ordinal", str(2**64)), "^ordinal: "),
    ("5000 digits", put("ordinal", "9" * 5000), "^ordinal: a number that no 64-bit integer holds"),
    ("negative", put("ordinal", "-1"), "^ordinal: "),
    ("past 2^63 in a mapping", put("metrics", '{"a_ns":9223372036854775808}', TRIAL), r"^metrics\[...\]: "),
    ("float in a mapping", put("metrics", '{"a_ns":1.0}', TRIAL), r"^metrics\[...\]: a float"),
    ("NaN in a mapping", put("metrics", '{"a_ns":NaN}', TRIAL), "no NaN or Infinity"),
    ("text in a mapping", put("metrics", '{"a_ns":"1"}', TRIAL), r"^metrics\[...\]: Expected"),
    ("odd key in a mapping", put("metrics", '{"A":1}', TRIAL), r"^key: |does not have the form"),
    ("null limit", put("condition", '{"limits":{"a_ns":null}}', TRIAL), r"^condition.limits\[...\]: "),
    ("1970", put("recorded_at_ns", "0"), "^recorded_at_ns: a time before 2015"),
    ("seconds", put("recorded_at_ns", "1760000000"), "^recorded_at_ns: a time before 2015"),
    (
        "2100",
        put("recorded_at_ns", "4102444800000000000"),
        "^recorded_at_ns: a time before 2015 or after 2099",
    ),
    ("unknown kind", put("kind", '"lunch_eaten/1"'), "kind 'lunch_eaten/1' is not known"),
    ("future version", put("kind", '"trial_invalidated/2"'), "another version than this oakledger knows"),
    (
        "kind without version",
        put("kind", '"trial_invalidated"'),
        "lacks its version: write trial_invalidated/1",
    ),
    ("kind is a number", put("kind", "1"), "^kind: "),
    ("no kind", b'{"source":"s"}', "no field kind"),
    ("no source", put("source", '"a"').replace(b'"source":"a",', b""), "no field source"),
    ("unknown field", put("why", '"y","extra":1'), "unknown field 'extra'"),
    ("unknown field inside", put("condition", '{"mood":"good"}', TRIAL), "^condition: unknown field 'mood'"),
    ("control characters", put("why", '"y","a\\n\\u001b[31m":1'), r"unknown field 'a\\n\\x1b\[31m'"),
    ("newline at a name's end", put("trial", '"t\\n"'), "^trial: does not have the form"),
    ("same key twice", put("who", '"w","who":"w"'), "key 'who' twice"),
    ("same key twice, spelled apart", put("who", '"w","wh\\u006f":"v"'), "key 'who' twice"),
    ("same key twice inside", put("metrics", '{"a_ns":1,"a_ns":1}', TRIAL), "key 'a_ns' twice"),
    ("deep array as a field", put("why", "[" * 100_000), "^why: "),
    ("deep array", b"[" * 100_000, "."),
    ("deep unknown field", put("kind", '"trial_invalidated/1","z":' + "[" * 50_000 + "]" * 50_000), "."),
    ("deep and unknown kind", put("kind", '"x/1","z":' + '{"a":' * 50_000 + "1" + "}" * 50_000), "."),
    ("deep before the kind", b'{"z":' + b"[" * 100_000, "."),
    ("too long", put("why", '"' + "y" * MAX_EVENT_BYTES + '"'), "an event has at most 1048576"),
    ("why too long", put("why", '"' + "y" * 2001 + '"'), "^why: "),
    (
        "wrong digest",
        (SAMPLES / "environment_observed.full.json").read_bytes().replace(b"6.1", b"6.2"),
        "facts",
    ),
]


@pytest.mark.parametrize(("line", "reason"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_line_is_refused_with_its_reason(line: bytes, reason: str) -> None:
    with pytest.raises(BadEventError, match=reason) as refused:
        decode(line)
    message = str(refused.value)
    assert message.isprintable()
    assert len(message) <= MAX_REASON + 200


@pytest.mark.parametrize(
    "line",
    [
        f"  {LINE}\t\r".encode(),
        put("ordinal", "-0"),
        put("why", r'"\u0079"'),
        json.dumps(dict(reversed(GOOD.items())), indent=2).encode(),
    ],
    ids=["white space", "minus zero", "escape", "order"],
)
def test_another_spelling_is_the_same_event(line: bytes) -> None:
    assert decode(line) == decode(LINE.encode())


def test_texts_survive_every_character() -> None:
    text = "".join(map(chr, (*range(0x20), 0x22, 0x5C, 0x7F, 0x80, 0x2028, 0xFFFF, 0x1F600)))
    event = event_from_mapping({**GOOD, "why": text})
    assert isinstance(event, TrialInvalidated)
    assert event.why == text
    assert decode(canonical(event)) == (event, canonical(event))
    assert b"\n" not in canonical(event) and b"\x01" not in canonical(event)


@pytest.mark.parametrize(
    "mapping",
    [
        {**GOOD, "ordinal": 1.0},
        {**GOOD, "why": object()},
        {**GOOD, "why": "\ud800"},
        {},
        {**GOOD, "x": {1: 2}},
    ],
    ids=["float", "object", "surrogate", "empty", "unknown"],
)
def test_a_mapping_is_held_to_the_same_rules(mapping: dict[str, Any]) -> None:
    with pytest.raises(BadEventError):
        event_from_mapping(mapping)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
@example(b"\x00")
@example(b"{" * 10)
def test_any_bytes_are_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(BadEventError) as refused:
        decode(data)
    assert str(refused.value).isprintable()


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(SAMPLES.glob("*.*.json"))), st.data())
def test_a_damaged_event_is_refused_or_is_an_event(path: pathlib.Path, data: st.DataObject) -> None:
    line = bytearray(path.read_bytes().strip())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line) - 1))
        line[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        event, payload = decode(bytes(line))
    except BadEventError as e:
        assert str(e).isprintable()
    else:
        assert payload == canonical(event)
        assert decode(payload) == (event, payload)
