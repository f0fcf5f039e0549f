"""The own BLAKE3 against the published test vectors and the blake3 package."""

import importlib.util
import json
import subprocess
import sys
import tracemalloc
from array import array
from pathlib import Path

import blake3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader import pureblake3

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "blake3"
needs_vectors = pytest.mark.skipif(not VECTORS.is_dir(), reason=f"no vectors beside the project: {VECTORS}")

CHUNKS = (1, 2, 3, 4, 5, 6, 8, 16, 31, 64, 1024)
# Lengths on both sides of every border: block, chunk, few and many lanes, complete and ragged trees.
BORDERS = sorted(
    {
        max(0, border + step)
        for border in (0, 64, 128, 960, *(1024 * chunks for chunks in CHUNKS))
        for step in (-1, 0, 1)
    }
    | {1025 * 1024, 1024 * 1024 + 63, (1 << 20) + (1 << 19) + 17}
)


def pattern(length: int) -> bytes:
    """The input of the published vectors: byte i is i mod 251."""
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def test_known_values() -> None:
    assert pureblake3.digest(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    assert (
        pureblake3.digest(b"abc").hex() == "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"
    )


@pytest.mark.shared_vectors
@needs_vectors
def test_published_vectors() -> None:
    cases = json.loads((VECTORS / "test_vectors.json").read_text())["cases"]
    assert len(cases) == 35
    inputs = [pattern(case["input_len"]) for case in cases]
    expected = [case["hash"][:64] for case in cases]
    assert [pureblake3.digest(data).hex() for data in inputs] == expected
    assert [digest.hex() for digest in pureblake3.digest_many(inputs)] == expected


@pytest.mark.shared_vectors
@needs_vectors
def test_further_lengths() -> None:
    cases = json.loads((VECTORS / "extra_lengths.json").read_text())["cases"]
    assert len(cases) == 362
    digests = pureblake3.digest_many(pattern(case["len"]) for case in cases)
    assert [digest.hex() for digest in digests] == [case["hash"] for case in cases]


@pytest.mark.parametrize("length", BORDERS)
def test_borders(length: int) -> None:
    data = pattern(length)
    assert pureblake3.digest(data) == blake3.blake3(data).digest()


def test_every_small_length_in_one_batch() -> None:
    inputs = [pattern(length) for length in range(2200)]
    assert pureblake3.digest_many(inputs) == [blake3.blake3(data).digest() for data in inputs]


@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 6, 1023, 1024, 1025])
def test_every_number_of_lanes(count: int) -> None:
    inputs = [b"%d" % number * 20 for number in range(count)]
    assert pureblake3.digest_many(inputs) == [blake3.blake3(data).digest() for data in inputs]


def test_words_of_all_ones_and_carries_between_lanes() -> None:
    """Every word at its largest is where an addition could leak into the next lane."""
    inputs = [b"\xff" * length for length in (64, 1024, 1024 * 40, 7)] * 5
    assert pureblake3.digest_many(inputs) == [blake3.blake3(data).digest() for data in inputs]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=200), st.integers(0, 6000).map(pattern)), max_size=12))
def test_any_mixture(inputs: list[bytes]) -> None:
    expected = [blake3.blake3(data).digest() for data in inputs]
    assert pureblake3.digest_many(inputs) == expected
    assert [pureblake3.digest(data) for data in inputs] == expected


def test_large_objects_between_small_ones() -> None:
    inputs = [b"a", pattern(3 << 20), b"", pattern((1 << 20) + 1), b"b" * 5000]
    assert pureblake3.digest_many(iter(inputs)) == [blake3.blake3(data).digest() for data in inputs]


@pytest.mark.parametrize(
    "wrap",
    [
        bytearray,
        memoryview,
        lambda data: memoryview(data).cast("I"),
        lambda data: array("H", data),
        lambda data: memoryview(_doubled(data))[::2],
    ],
    ids=["bytearray", "memoryview", "words", "array", "strided"],
)
def test_bytes_likes(wrap: object) -> None:
    data = pattern(4000)
    assert callable(wrap)
    assert pureblake3.digest(wrap(data)) == blake3.blake3(data).digest()


def _doubled(data: bytes) -> bytes:
    """Each byte twice, so that every other byte is the data."""
    return bytes(byte for byte in data for _ in range(2))


def test_an_empty_view() -> None:
    assert pureblake3.digest(memoryview(b"")) == blake3.blake3(b"").digest()


@pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2]])
def test_other_objects_are_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        pureblake3.digest(wrong)
    with pytest.raises(TypeError):
        pureblake3.digest_many([b"fine", wrong])


def test_memory_does_not_grow_with_the_object() -> None:
    peaks = []
    for size in (2 << 20, 8 << 20):
        data = bytes(size)
        tracemalloc.start()
        try:
            pureblake3.digest(data)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] - peaks[0] < 1 << 20  # 32 bytes a chunk remain, a few times
    assert peaks[1] < 6 << 20


def test_loads_by_path_in_an_isolated_interpreter_with_the_standard_library_alone() -> None:
    script = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('codec', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.digest(b'abc').hex())\n"
        "known = {*sys.stdlib_module_names, '__main__'}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} - known))\n"
    )
    spec = importlib.util.find_spec("reader.pureblake3")
    assert spec is not None and spec.origin is not None
    # -S: without site, so that nothing that is installed can be imported on the way.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, spec.origin], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == [
        "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
        "[]",
    ]
