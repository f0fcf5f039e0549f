"""Random batches of objects: the own BLAKE3 against the blake3 package.

Each batch depends on the seed and its number alone, so `--first N --count 1` repeats one.
"""

import argparse
import random
import sys
import time

import blake3

from reader import pureblake3

BORDERS = (0, 1, 63, 64, 65, 128, 1023, 1024, 1025, 2048, 3072, 4096, 5120, 8192, 16384, 32768)


def length(rng: random.Random) -> int:
    """A length of an object; borders of blocks, chunks and trees are frequent."""
    kind = rng.randrange(5)
    if kind == 0:
        return max(0, rng.choice(BORDERS) + rng.randrange(-2, 3))
    if kind == 1:
        return rng.randrange(70_000)
    if kind == 2:
        return rng.randrange(4000)
    return rng.randrange(200)


def batch(rng: random.Random) -> list[bytes]:
    """Some objects of a batch; bytes at their largest provoke carries between lanes."""
    objects = []
    for _ in range(rng.choice((1, 2, 4, 5, 6, 30, 200))):
        size = length(rng)
        objects.append(
            rng.choice((b"\xff", b"\0", b"\x80\0\0\0")) * size if rng.random() < 0.2 else rng.randbytes(size)
        )
    return objects


def main(argv: list[str] | None = None) -> int:
    """Run the fuzzer; 0 when every digest was right."""
    parser = argparse.ArgumentParser(
        prog="fuzz_blake3", description="random objects against the blake3 package"
    )
    parser.add_argument("--count", type=int, default=1000, help="number of batches (default 1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first batch")
    options = parser.parse_args(argv)
    failures = 0
    objects = 0
    start = time.monotonic()
    for number in range(options.first, options.first + options.count):
        rng = random.Random(f"{options.seed} {number}")
        inputs = batch(rng)
        objects += len(inputs)
        digests = pureblake3.digest_many(inputs)
        some = rng.randrange(len(inputs))
        if pureblake3.digest(inputs[some]) != digests[some]:
            failures += 1
            print(f"blake3 fuzz: batch {number}: object {some}: alone and in the batch differ")
        for at, (data, digest) in enumerate(zip(inputs, digests, strict=True)):
            if blake3.blake3(data).digest() != digest:
                failures += 1
                print(f"blake3 fuzz: batch {number}: object {at} of {len(data)} bytes has a wrong digest")
    seconds = time.monotonic() - start
    print(
        f"blake3 fuzz: seed {options.seed}, {options.count} batches, {objects} objects in {seconds:.0f} s, "
        f"{failures} answered wrongly"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
