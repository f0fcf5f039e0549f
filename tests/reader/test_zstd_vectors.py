"""The own Zstandard decoder against the vectors beside the project: every entry as its manifest says."""

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reader import purezstd

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"

pytestmark = [
    pytest.mark.shared_vectors,
    pytest.mark.skipif(not VECTORS.is_dir(), reason=f"no vectors beside the project: {VECTORS}"),
]

LARGE_WINDOW = 128 << 20
"""The window that the judges of the vectors were given."""
DEFAULT_WINDOW = 8 << 20


def entries(name: str) -> list[dict[str, Any]]:
    text = (VECTORS / "zstd" / name).read_text()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    loaded: list[dict[str, Any]] = json.loads(text)
    return loaded


def frame_of(entry: dict[str, Any]) -> bytes:
    if "frame_b64" in entry:
        return base64.b64decode(entry["frame_b64"])
    path: Path = VECTORS / entry["file"]
    return path.read_bytes()


def answer(frame: bytes, room: int, window: int = LARGE_WINDOW) -> tuple[str, str, int]:
    """Class of the answer, SHA-256 and size of the content."""
    try:
        content = purezstd.decompress(frame, max_output_size=room, max_window_size=window)
    except (purezstd.ZstdError, purezstd.ZstdLimitError) as refusal:
        return type(refusal).__name__, "", 0
    return "ok", hashlib.sha256(content).hexdigest(), len(content)


def declared_window(frame: bytes) -> int:
    """Window_Size as the first frame header says it (3.1.1.1.2), 0 where another frame comes first."""
    if frame[:4] != b"\x28\xb5\x2f\xfd" or frame[4] & 0x20:
        return 0
    base = 1 << 10 + (frame[5] >> 3)
    return base + base // 8 * (frame[5] & 7)


@pytest.mark.parametrize(
    ("name", "count"),
    [("tiny.jsonl", 849), ("random.jsonl", 284), ("levels.json", 111), ("special.json", 30)],
)
def test_valid_frames(name: str, count: int) -> None:
    cases = entries(name)
    assert len(cases) == count
    for entry in cases:
        # The digest tells; the size of some entries in tiny.jsonl counts a byte that is not there.
        said = answer(frame_of(entry), entry["size"])
        assert said[:2] == ("ok", entry["sha256"]), entry["id"]
        assert said[2] == entry["size"] or (name == "tiny.jsonl" and said[2] < entry["size"]), entry["id"]


@pytest.mark.parametrize("name", ["tiny.jsonl", "random.jsonl", "levels.json", "special.json"])
def test_valid_frames_with_the_default_window(name: str) -> None:
    """A frame that declares more than 8 MiB is refused by that bound, whatever it contains."""
    for entry in entries(name):
        frame = frame_of(entry)
        if declared_window(frame) > DEFAULT_WINDOW:
            assert answer(frame, entry["size"], DEFAULT_WINDOW)[0] == "ZstdWindowLimitError", entry["id"]


def test_content_of_one_byte_more_than_the_bound() -> None:
    for entry in entries("tiny.jsonl"):
        frame = frame_of(entry)
        size = answer(frame, entry["size"])[2]
        assert answer(frame, size)[0] == "ok"
        if size:
            assert answer(frame, size - 1)[0] == "ZstdOutputLimitError", entry["id"]


def test_golden_files() -> None:
    cases = [entry for entry in entries("golden.json") if "expect" in entry]
    assert Counter(entry["expect"] for entry in cases) == {"ok": 4, "error": 3}
    for entry in cases:
        expected = ("ok", entry["sha256"], entry["size"]) if entry["expect"] == "ok" else ("ZstdError", "", 0)
        assert answer(frame_of(entry), 4 << 20) == expected, entry["file"]


def test_frames_that_need_a_dictionary() -> None:
    answers: Counter[str] = Counter()
    for entry in entries("dict.json"):
        assert entry["without_dict"] == "error"
        answers[answer(frame_of(entry), 1 << 20)[0]] += 1
    # 12 name their dictionary; the other 4 use one without saying so and are merely corrupt.
    assert answers == {"ZstdDictionaryError": 12, "ZstdError": 4}


def test_mutants() -> None:
    """Two refusals are bounds by their nature: a huge window and a dictionary."""
    cases = entries("invalid.jsonl")
    assert Counter(entry["expect"] for entry in cases) == {"error": 1661, "ok": 259, "unsettled": 40}
    answers: Counter[str] = Counter()
    for entry in cases:
        said = answer(frame_of(entry), 4 << 20)
        if entry["expect"] == "ok":
            assert said == ("ok", entry["sha256"], entry["size"]), entry["id"]
        elif entry["expect"] == "error":
            assert said[0] != "ok", entry["id"]
            answers[said[0]] += 1
        elif said[0] == "ok":
            assert said[1] == entry["sha256"], entry["id"]
    assert answers == {"ZstdError": 1653, "ZstdWindowLimitError": 5, "ZstdDictionaryError": 3}


def test_disputed_streams_are_refused() -> None:
    """RFC 8878 4.2.2 against libzstd: this decoder goes with the text."""
    disputed = [entry for entry in entries("invalid.jsonl") if "Huffman" in entry.get("note", "")]
    assert len(disputed) > 20
    for entry in disputed:
        assert answer(frame_of(entry), 4 << 20)[0] == "ZstdError", entry["id"]


@pytest.mark.parametrize("force", [0, 10**9], ids=["transducer", "one by one"])
def test_each_way_of_reading_huffman_streams(force: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purezstd, "_TRANSDUCER_PAYS", force)
    for entry in entries("random.jsonl")[::4]:
        assert answer(frame_of(entry), entry["size"])[1] == entry["sha256"], entry["id"]
    for entry in entries("invalid.jsonl")[::6]:
        said = answer(frame_of(entry), 4 << 20)
        assert (said[0] == "ok") == (entry["expect"] == "ok"), entry["id"]


def test_xxh64() -> None:
    cases = json.loads((VECTORS / "xxh64.json").read_text())["cases"]
    assert len(cases) == 308
    pattern = bytes(range(251)) * (max(case["len"] for case in cases) // 251 + 1)
    for case in cases:
        for seed, value in case["xxh64"].items():
            assert f"{purezstd.xxh64(pattern[: case['len']], int(seed)):016x}" == value, (case["len"], seed)
