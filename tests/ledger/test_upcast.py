"""Old versions stay readable for ever: stored samples with pinned ids, and the steps between versions."""

from __future__ import annotations

import json
import pathlib
from typing import Annotated, Any

import pytest
from msgspec import Meta

from ledger.decode import EventDecoder, decode
from ledger.errors import BadEventError
from ledger.events import AnyEvent, Event, canonical, event_id, leaf_hash
from ledger.schema import kinds
from ledger.upcast import STEPS, upcast

SAMPLES = pathlib.Path(__file__).resolve().parents[1] / "data/events"
STORED = sorted(SAMPLES.glob("v*/*.*.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_stored_sample_reads_and_keeps_its_identity(path: pathlib.Path) -> None:
    pinned = json.loads((path.parent / "event_ids.json").read_text())
    line = path.read_bytes().removesuffix(b"\n")
    event, payload = decode(line)
    assert payload == line
    assert leaf_hash(payload).hex() == pinned[path.stem]
    assert str(type(event).__struct_config__.tag) in kinds()


def test_every_kind_has_a_stored_sample_of_each_version() -> None:
    stored = {json.loads(path.read_bytes())["kind"] for path in STORED}
    old = {str(struct.__struct_config__.tag) for struct in STEPS}
    assert stored == set(kinds()) | old


# A kind of three versions that exists in this test only.


class SpeedMeasured1(Event, frozen=True, tag="speed_measured/1"):
    seconds: int


class SpeedMeasured2(Event, frozen=True, tag="speed_measured/2"):
    milliseconds: int


class SpeedMeasured3(Event, frozen=True, tag="speed_measured/3"):
    duration_ns: Annotated[int, Meta(ge=0)]
    clock: str = "unknown"


def _second(old: SpeedMeasured1) -> SpeedMeasured2:
    return SpeedMeasured2(old.source, old.ordinal, old.recorded_at_ns, milliseconds=old.seconds * 1000)


def _third(old: SpeedMeasured2) -> SpeedMeasured3:
    return SpeedMeasured3(old.source, old.ordinal, old.recorded_at_ns, duration_ns=old.milliseconds * 10**6)


TEST_STEPS: dict[type[Event], Any] = {SpeedMeasured1: _second, SpeedMeasured2: _third}
ENVELOPE: dict[str, Any] = {"source": "s", "ordinal": 0, "recorded_at_ns": 1_760_000_000_000_000_000}


@pytest.fixture
def decoder() -> EventDecoder:
    return EventDecoder(SpeedMeasured3, TEST_STEPS)


@pytest.mark.parametrize(
    "written",
    [
        SpeedMeasured1(**ENVELOPE, seconds=3),
        SpeedMeasured2(**ENVELOPE, milliseconds=3000),
        SpeedMeasured3(**ENVELOPE, duration_ns=3_000_000_000),
    ],
    ids=["1", "2", "3"],
)
def test_each_version_reads_as_the_newest_under_the_id_it_was_written_with(
    decoder: EventDecoder, written: Any
) -> None:
    event, payload = decoder.decode(canonical(written))
    assert event == SpeedMeasured3(**ENVELOPE, duration_ns=3_000_000_000)
    assert payload == canonical(written)
    assert leaf_hash(payload).hex() == event_id(written)


def test_a_version_from_the_future_is_told_apart_from_an_unknown_kind(decoder: EventDecoder) -> None:
    with pytest.raises(BadEventError, match=r"'speed_measured/10' is of another version.*speed_measured/3"):
        decoder.decode(b'{"kind":"speed_measured/10"}')
    with pytest.raises(BadEventError, match=r"'speed/1' is not known"):
        decoder.decode(b'{"kind":"speed/1"}')


def test_the_newest_version_needs_no_step() -> None:
    newest = SpeedMeasured3(**ENVELOPE, duration_ns=1)
    assert upcast(newest, TEST_STEPS) is newest


def test_no_step_starts_at_a_newest_version() -> None:
    assert not set(STEPS) & set(AnyEvent.__args__)
