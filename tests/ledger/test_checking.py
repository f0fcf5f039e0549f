"""A block checked as a whole gives what its lines give one by one, and a block with anything odd is not."""

from __future__ import annotations

import json

import pytest

from ledger import checking
from ledger.checking import FUTURE_NS, NUMBERS_PER_LINE, check
from ledger.decode_many import BATCH
from ledger.events import MAX_EVENT_BYTES, canonical
from ledger.inputs import Block

NOW = 1_800_000_000_000_000_000
LATEST = NOW + FUTURE_NS


def block(lines, first=1):
    return Block(first, b"".join(line + b"\n" for line in lines), None)


def by_lines(one):
    return checking._check_lines(one, NOW, LATEST)


@pytest.fixture
def lines(one_of_each):
    """Canonical events of every kind, more than one batch of them."""
    kinds = len(one_of_each())
    many = [canonical(e) for n in range(BATCH // kinds + 2) for e in one_of_each("many", n * kinds)]
    assert len(many) > BATCH
    return many


@pytest.mark.parametrize("first", [1, 1_000_001])
def test_canonical_events_give_what_their_lines_give(lines, first):
    one = block(lines, first)
    whole = checking._check_canonical(one, LATEST)
    assert whole is not None and whole.events == whole.lines == len(lines)
    assert whole == by_lines(one)
    assert whole.payload_bytes == sum(map(len, lines))
    numbers = [int(text.partition(b"\x01")[0]) for text in whole.staged.splitlines()]
    assert numbers == [(first + n) * NUMBERS_PER_LINE for n in range(len(lines))]


def changed(line, **fields):
    return json.dumps(json.loads(line) | fields, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(lambda line: b"", id="empty line"),
        pytest.param(lambda line: b" \t", id="blank line"),
        pytest.param(lambda line: b"{", id="no JSON"),
        pytest.param(lambda line: b" " + line, id="not canonical"),
        pytest.param(lambda line: changed(line, ordinal=1.5), id="a float"),
        pytest.param(lambda line: changed(line, recorded_at_ns=LATEST + 1), id="recorded tomorrow"),
        pytest.param(lambda line: changed(line, started_at_ns=LATEST + 1), id="started tomorrow"),
        pytest.param(lambda line: changed(line, ended_at_ns=LATEST + 1), id="ended tomorrow"),
        pytest.param(lambda line: changed(line, process_key="x" * MAX_EVENT_BYTES), id="too long"),
        pytest.param(lambda line: b'{"row":"oakledger/1"}', id="a row"),
    ],
)
@pytest.mark.parametrize("place", [0, 300, -1])
def test_a_block_with_anything_odd_is_checked_line_by_line(lines, odd, place):
    trials = [i for i, line in enumerate(lines) if line.startswith(b'{"kind":"trial_recorded')]
    place = trials[len(trials) // 2] if place == 300 else trials[place]
    lines[place] = odd(lines[place])
    one = block(lines)
    assert checking._check_canonical(one, LATEST) is None
    assert len(one.data) >= 1000 and check(one, NOW) == by_lines(one)


def test_a_time_at_the_limit_is_taken(lines):
    trial = next(i for i, line in enumerate(lines) if line.startswith(b'{"kind":"trial_recorded'))
    event = checking.decode(changed(lines[trial], recorded_at_ns=LATEST, started_at_ns=LATEST))[1]
    one = block([event, *lines])
    whole = checking._check_canonical(one, LATEST)
    assert whole is not None and whole == by_lines(one)


def test_large_blocks_are_tried_as_a_whole(lines, monkeypatch):
    def refused(*_):
        raise AssertionError("checked line by line")

    monkeypatch.setattr(checking, "_check_lines", refused)
    large = block(lines * (checking._WORTH_BATCHES // sum(map(len, lines)) + 1))
    assert check(large, NOW).events == len(large.data.splitlines())
    with pytest.raises(AssertionError):
        check(block(lines[:3]), NOW)
