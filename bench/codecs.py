"""Speed of the own codecs, each beside the native package in the same run.

Times are processor time of this process, so that neighbours on the machine disturb little; every figure is
the median of several runs that alternate between the two sides.
"""

import argparse
import base64
import importlib
import importlib.metadata
import json
import random
import statistics
import sys
import sysconfig
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import blake3
import xxhash
import zstandard

from reader import pureblake3, purezstd

MIB = 1 << 20
RUNS = 5

PURE_PYTHON_ZSTD = "fzstd"
"""The pure-Python decoder of the package index that is measured where it is installed (it is often wrong)."""


def text(size: int) -> bytes:
    """English-like text: words of uneven frequency in sentences, the same every time."""
    rng = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    words = [
        "".join(rng.choices(letters, [1 / (2 + place) for place in range(26)], k=rng.randrange(2, 10)))
        for _ in range(6000)
    ]
    frequency = [1 / (1 + place) for place in range(len(words))]
    chosen = rng.choices(words, frequency, k=size // 4)
    pieces = [word + (". " if number % 11 == 10 else " ") for number, word in enumerate(chosen)]
    return "".join(pieces).encode()[:size]


def source_code(size: int) -> bytes:
    """Python source code: modules of the standard library, in the order of their names."""
    pieces = []
    total = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        pieces.append(path.read_bytes())
        total += len(pieces[-1])
        if total >= size:
            break
    return b"".join(pieces)[:size]


def json_lines(size: int) -> bytes:
    """Records of a log, one a line."""
    rng = random.Random(2)
    lines = [
        json.dumps(
            {"id": number, "user": f"user{rng.randrange(900)}", "ms": rng.random(), "ok": number % 7 > 0}
        )
        for number in range(size // 60)
    ]
    return "\n".join(lines).encode()[:size]


def streamed_frame(data: bytes, level: int, checksum: bool = False) -> bytes:
    """A frame as a streaming compressor writes it: no content size in the header."""
    compressor = zstandard.ZstdCompressor(
        level=level, write_checksum=checksum, write_content_size=False
    ).compressobj()
    return compressor.compress(data) + compressor.flush()


def seconds(work: Callable[[], object]) -> float:
    """Processor time of one run; quick work is repeated until it can be measured."""
    times = 1
    while True:
        began = time.process_time()
        for _ in range(times):
            work()
        taken = time.process_time() - began
        if taken > 0.02:
            return taken / times
        times *= 8


def compare(
    name: str,
    amount: float,
    unit: str,
    target: float | None,
    own: Callable[[], object],
    native: Callable[[], object],
    others: dict[str, Callable[[], object]] | None = None,
    runs: int = RUNS,
) -> dict[str, Any]:
    """One row: `amount` of `unit` a second, own and native, with ratios to native and to other packages."""
    sides = {"own": own, "native": native, **(others or {})}
    times: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(runs):
        for side, work in sides.items():
            times[side].append(seconds(work))
    speed = {side: amount / statistics.median(taken) for side, taken in times.items()}
    return {
        "name": name,
        "value": speed["own"],
        "unit": unit,
        "target": target,
        "native": speed["native"],
        "ratio_native": speed["own"] / speed["native"],
        "ratio_pypi": {side: speed["own"] / speed[side] for side in others or {}},
    }


def pure_python_zstd(frame: bytes, expected: bytes) -> dict[str, Callable[[], object]]:
    """The pure-Python decoder of the package index, where it is installed and gets this frame right."""
    try:
        module: Any = importlib.import_module(PURE_PYTHON_ZSTD)
        version = importlib.metadata.version(PURE_PYTHON_ZSTD)
    except ImportError:
        return {}
    decode = getattr(module, "decompress", None)
    if decode is None:
        return {}
    try:
        right = bytes(decode(frame)) == expected
    except Exception:
        right = False
    return {f"{PURE_PYTHON_ZSTD} {version}": lambda: decode(frame)} if right else {}


def native_digests(objects: list[bytes]) -> list[bytes]:
    """What `digest_many` does, with the native package."""
    return [blake3.blake3(data).digest() for data in objects]


def rows(runs: int = RUNS) -> list[dict[str, Any]]:
    """All measurements: dicts of name, value, unit, target, native, ratio_native, ratio_pypi.

    `value` and `native` are in `unit`; `target` is the least that the project promises, or None; a ratio is
    own speed by the other's; `ratio_pypi` has an entry for a pure-Python package that is installed and right.
    """
    rng = random.Random(3)
    result = []

    one = rng.randbytes(MIB)
    assert pureblake3.digest(one) == blake3.blake3(one).digest()
    result.append(
        compare(
            "BLAKE3, 1 MiB",
            MIB / 1e6,
            "MB/s",
            30,
            lambda: pureblake3.digest(one),
            lambda: blake3.blake3(one, max_threads=1).digest(),
            runs=runs,
        )
    )
    for size, target in ((1024, 10.0), (300, None)):
        objects = [rng.randbytes(size) for _ in range(10_000)]
        result.append(
            compare(
                f"BLAKE3, 10,000 objects of {size} bytes",
                10_000 * size / 1e6,
                "MB/s",
                target,
                partial(pureblake3.digest_many, objects),
                partial(native_digests, objects),
                runs=runs,
            )
        )

    decompressor = zstandard.ZstdDecompressor()
    cases = [
        ("text 1 MiB, level 3", text(MIB), 3, False, 10.0),
        ("text 1 MiB, level 19", text(MIB), 19, False, None),
        ("source code 2 MiB, level 3", source_code(2 * MIB), 3, False, None),
        ("source code 2 MiB, level 3, checksum", source_code(2 * MIB), 3, True, None),
        ("JSON lines 2 MiB, level 3", json_lines(2 * MIB), 3, False, None),
        ("base64 1 MiB, level 3", base64.b64encode(rng.randbytes(MIB * 3 // 4)), 3, False, None),
        ("incompressible 4 MiB, level 3", rng.randbytes(4 * MIB), 3, False, None),
    ]
    for name, data, level, checksum, goal in cases:
        frame = streamed_frame(data, level, checksum)
        size = len(data)
        assert purezstd.decompress(frame, max_output_size=size) == data
        own = partial(purezstd.decompress, frame, max_output_size=size)
        native = partial(decompressor.decompress, frame, max_output_size=size)
        result.append(
            compare(
                f"zstd, {name}",
                size / 1e6,
                "MB/s",
                goal,
                own,
                native,
                pure_python_zstd(frame, data),
                runs=runs,
            )
        )

    prose = text(1_000_000)
    compressor = zstandard.ZstdCompressor(level=3, write_content_size=False)
    small = [compressor.compress(prose[start : start + 500]) for start in range(0, 1_000_000, 500)]
    result.append(
        compare(
            f"zstd, {len(small)} frames of 500 bytes of text",
            len(small),
            "frames/s",
            6000,
            lambda: [purezstd.decompress(frame, max_output_size=500) for frame in small],
            lambda: [decompressor.decompress(frame, max_output_size=500) for frame in small],
            runs=runs,
        )
    )

    result.append(
        compare(
            "XXH64, 1 MiB",
            MIB / 1e6,
            "MB/s",
            None,
            lambda: purezstd.xxh64(one),
            lambda: xxhash.xxh64_intdigest(one),
            runs=runs,
        )
    )
    return result


def main(argv: list[str] | None = None) -> int:
    """Print the rows, one a line; 1 when one is below its target."""
    parser = argparse.ArgumentParser(prog="codecs", description="speed of the own BLAKE3 and zstd")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of which the median counts ({RUNS})")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(argv)
    below = 0
    for row in rows(options.runs):
        if options.json:
            print(json.dumps(row))
        else:
            goal = f"target {row['target']:,.0f}" if row["target"] else ""
            others = "".join(f", {ratio:.1f} x {package}" for package, ratio in row["ratio_pypi"].items())
            print(
                f"{row['name']:45} {row['value']:10,.1f} {row['unit']:9} {goal:13} "
                f"1/{1 / row['ratio_native']:,.0f} of native{others}"
            )
        below += bool(row["target"] and row["value"] < row["target"])
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
