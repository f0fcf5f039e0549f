"""Flipped bits and cut-off files: the true content, or exit 1, 3 or 77 with a reason that speaks of the
store.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from oak_store import outcome, read

from bench.fuzz_oak import Judge, damages
from bench.oak_stores import small

SAMPLES = 700


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    repo = small(tmp_path_factory.mktemp("damage") / "repo")
    return (repo / ".oak" / "oak.db").read_bytes()


def test_the_store_holds_every_kind_of_row(tmp_path: Path) -> None:
    report = read(small(tmp_path / "repo"), "--deep")
    assert outcome(report) == (0, None)
    assert report["format"]["tree_storage"] == "mixed"
    assert set(report["verified"]) == {"commits", "trees", "blobs", "chunked_blobs", "chunks", "ancestors"}


@pytest.mark.parametrize("part", range(4))
def test_damage(tmp_path: Path, data: bytes, part: int) -> None:
    """A different sample of all damages for each part; `python -m bench.fuzz_oak` tries them all."""
    rng = random.Random(part)
    judge = Judge(small(tmp_path / "repo"), "--deep")
    wrong = []
    for _ in range(SAMPLES // 4):
        position, bit = rng.randrange(len(data)), rng.randrange(8)
        changed = bytearray(data)
        changed[position] ^= 1 << bit
        problem = judge.problem(bytes(changed))
        if problem:
            wrong.append(f"bit {bit} of byte {position}: {problem}")
        length = rng.randrange(len(data))
        problem = judge.problem(data[:length])
        if problem:
            wrong.append(f"cut to {length}: {problem}")
    assert wrong == []
    assert len(judge.answers) >= 3


def test_damages_are_all_there() -> None:
    made = dict(damages(b"ab", 1))
    assert len(made) == 16 + 2
    assert made["bit 0 of byte 1 flipped"] == b"ac" and made["cut to 1 bytes"] == b"a"


@pytest.mark.parametrize("start", [0, 100])
def test_every_byte_of_the_header_and_first_page(tmp_path: Path, data: bytes, start: int) -> None:
    judge = Judge(small(tmp_path / "repo"))
    wrong = []
    for position in range(start, 100 if start == 0 else 512, 1 if start == 0 else 7):
        for value in (0, 255, data[position] ^ 1):
            problem = judge.problem(data[:position] + bytes([value]) + data[position + 1 :])
            if problem:
                wrong.append(f"byte {position} set to {value}: {problem}")
    assert wrong == []
