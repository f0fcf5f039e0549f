"""Decoding by batches takes exactly what strict decoding takes: every field is bent, verdicts compared."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.decode import decode
from ledger.decode_many import TYPES, decode_canonical
from ledger.errors import BadEventError
from ledger.events import AnyEvent, canonical

#: Texts that are wrong somewhere: empty, other case, other alphabets, line ends, quotes, too long.
TEXTS = [
    "", "x", "X", "a b", "é", "a\n", "a\x7f", 'a"b', "a\\b", "\u2028", "-", "9a", "None", "\x00",
    "A" * 64, "a" * 63, "a" * 65, "0" * 64, "0" * 63 + "G", "0" * 63 + "\n", "٣" * 64, "０" * 64,
    "a" * 201, "a" * 501, "a" * 2001,
]  # fmt: skip


def strict(line):
    try:
        _, payload = decode(line)
    except BadEventError:
        return False
    return payload == line


def many(*lines):
    return decode_canonical(b"".join(line + b"\n" for line in lines)) is not None


def bent(value, replacement):
    """Yield copies of a JSON value with one text, key or number in it replaced."""
    if isinstance(value, dict):
        for key, inner in value.items():
            for other in bent(inner, replacement):
                yield {**value, key: other}
            if key != "kind" and isinstance(replacement, str):
                yield {replacement if k == key else k: v for k, v in value.items()}
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            for other in bent(inner, replacement):
                yield [*value[:i], other, *value[i + 1 :]]
    else:
        yield replacement


def full(event):
    """Fill every optional text of an event's JSON, so that there is something to bend everywhere."""
    data = json.loads(canonical(event))
    if data["kind"] == "reader_invoked/1":
        digest, plain = "a" * 64, "plain"
        data |= dict.fromkeys(
            ["codec_sha256", "python_sha256", "instrument_sha256", "subject_binary_sha256", "scope_sha256"],
            digest,
        )
        data |= dict.fromkeys(["python_version", "instrument_name", "instrument_version"], plain)
        data |= {"dependencies": {"blake3": "1"}, "format": {"objects": "sha1"}, "head": "b" * 40}
        data |= {"shallow_boundary": ["c" * 40], "colliding_paths": [["a", "A"]]}
    return decode(json.dumps(data).encode())[1]


def test_the_samples_are_taken_together(one_of_each):
    lines = [full(e) for e in one_of_each()]
    assert all(strict(line) for line in lines)
    events = decode_canonical(b"".join(line + b"\n" for line in lines))
    assert [canonical(e) for e in events] == lines
    assert len({type(e) for e in events}) == len(TYPES) == len(AnyEvent.__args__)


@pytest.mark.parametrize("index", range(11))
def test_bent_fields_get_the_strict_verdict(one_of_each, index):
    good = full(one_of_each()[index])
    companions = [full(e) for e in one_of_each("other", 50)]
    verdicts = set()
    for replacement in [*TEXTS, 1, -1, 0, 2**63, 1.5, None, True, [], {}]:
        for other in bent(json.loads(good), replacement):
            line = msgspec.json.encode(other)
            expected = strict(line)
            verdicts.add(expected)
            assert many(line) == expected, line
            # and in company, where texts are matched together
            if replacement in ("a\x7f", "é", "X", "0" * 63 + "G"):
                assert many(*companions, line) == expected, line
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p[:-1],
        lambda p: p + b" ",
        lambda p: b" " + p,
        lambda p: p.replace(b",", b", ", 1),
        lambda p: p + p,
        lambda p: b"",
        lambda p: b"[" * 10_000,
        lambda p: b"\xff" + p,
        lambda p: p.replace(b"/1", b"/2", 1),
        lambda p: p.replace(b'"ordinal"', b'"ordinal":1,"ordinal"'),
    ],
)
def test_other_texts_get_the_strict_verdict(one_of_each, change):
    line = change(canonical(one_of_each()[3]))
    assert not strict(line) and not many(line)
    assert not many(canonical(one_of_each()[4]), line, canonical(one_of_each()[5]))


def test_an_environment_whose_identity_is_not_that_of_its_facts_is_refused(one_of_each):
    line = canonical(one_of_each()[1]).replace(b"6.1", b"6.2")
    assert not strict(line) and not many(line)


@settings(max_examples=200)
@given(st.data())
def test_any_texts_get_the_strict_verdict(one_of_each, data):
    event = json.loads(full(one_of_each()[data.draw(st.integers(0, 10))]))
    key = data.draw(st.sampled_from(sorted(event)))
    event[key] = data.draw(st.text(max_size=70) | st.integers(-(2**63), 2**63 - 1))
    line = msgspec.json.encode(event)
    assert many(line) == strict(line)
