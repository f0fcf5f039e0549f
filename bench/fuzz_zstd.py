"""Mutated Zstandard frames: the own decoder against libzstd.

For every input the own decoder must either give what libzstd gives, or raise ZstdError or ZstdLimitError, and
must do so quickly. What it refuses although libzstd accepts it must be of a kind that is listed here with its
reason. Each case depends on the seed and its number alone, so `--first N --count 1` repeats one.
"""

import argparse
import base64
import faulthandler
import random
import re
import sys
import time
from collections import Counter

import zstandard

from reader import purezstd

MAX_OUTPUT_SIZE = 1 << 20
MAX_WINDOW_SIZE = 8 << 20
HANG_SECONDS = 30
"""A case that takes so long ends the run with a traceback. The slowest should take well under a second."""

DISPUTED = {
    r"Huffman bitstream (ends inside a code|does not end with its last literal|is too short)": (
        "RFC 8878 4.2.2: a stream must end exactly on its first bit; libzstd lets the last symbol end early"
    ),
    r"Huffman codes of up to 12 bits": "RFC 8878 4.2.1: at most 11 bits; libzstd reads 12",
    r"Huffman bitstream has no end mark": (
        "RFC 8878 4.2.2: the last byte of a stream is never 0; libzstd reads such a stream"
    ),
    r"(content of the block|(Raw|RLE|Compressed)_Block of \d+ bytes) is over Block_Maximum_Size": (
        "RFC 8878 3.1.1.2.4: a block is and gives at most Block_Maximum_Size; libzstd not always counts"
    ),
    r"offset \d+ is over Window_Size": (
        "RFC 8878 3.1.1.4: no offset is over Window_Size; libzstd reaches as far as it still has the bytes"
    ),
    r"Literals_Section_Header is cut off": (
        "RFC 8878 3.1.1.3: a Compressed_Block has two sections; libzstd passes over one of size 0"
    ),
}
"""Kinds of input that RFC 8878 calls corrupt and libzstd accepts."""


def content(rng: random.Random) -> bytes:
    """Some bytes to compress, of a kind that makes the compressor use other parts of the format."""
    size = rng.choice((rng.randrange(16), rng.randrange(300), rng.randrange(2500), rng.randrange(9000)))
    kind = rng.randrange(6)
    if kind == 0:
        return rng.randbytes(size)
    if kind == 1:
        return bytes((rng.randrange(256),)) * size
    if kind == 2:
        return bytes(rng.choices(range(rng.randrange(2, 40)), k=size))
    if kind == 3:
        words = [rng.randbytes(rng.randrange(1, 9)).hex().encode() for _ in range(rng.randrange(2, 60))]
        return b" ".join(rng.choices(words, k=size // 8 + 1))[:size]
    if kind == 4:
        return b"".join(b'{"id":%d,"n":%d}\n' % (i, rng.randrange(1000)) for i in range(size // 16 + 1))[
            :size
        ]
    weights = [1 / (1 + i) ** rng.choice((0.6, 1.2, 2.5)) for i in range(256)]
    return bytes(rng.choices(range(256), weights, k=size))


def frame(rng: random.Random) -> bytes:
    """A valid frame, sometimes with neighbours."""
    data = content(rng)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        rng.choice((-5, -1, 1, 2, 3, 4, 6, 9, 13, 16, 19)),
        window_log=rng.randrange(10, 21),
        write_checksum=rng.random() < 0.4,
        write_content_size=rng.random() < 0.5,
        min_match=rng.randrange(3, 8),
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    if rng.random() < 0.5:
        compressed = compressor.compress(data)
    else:
        pieces = compressor.compressobj()
        compressed = b""
        while data:
            cut = rng.randrange(1, len(data) + 1)
            compressed += pieces.compress(data[:cut])
            if rng.random() < 0.5:
                compressed += pieces.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            data = data[cut:]
        compressed += pieces.flush()
    if rng.random() < 0.1:
        skipped = rng.randbytes(rng.randrange(20))
        header = bytes((0x50 + rng.randrange(16),)) + b"\x2a\x4d\x18" + len(skipped).to_bytes(4, "little")
        compressed = rng.choice((header + skipped + compressed, compressed + header + skipped))
    if rng.random() < 0.05:
        compressed += frame(rng)
    return compressed


def handmade(rng: random.Random) -> bytes:
    """A valid frame header and random blocks with sizes that fit: reaches deep with little sense."""
    header = b"\x28\xb5\x2f\xfd" + rng.choice((b"\x00\x58", b"\x20\x40", b"\x00\x00"))
    blocks = b""
    for number in range(rng.randrange(1, 4)):
        body = bytearray(rng.randbytes(rng.randrange(1, 60)))
        if rng.random() < 0.7:
            # Raw or RLE literals, so that the random bytes are read as sequences.
            literals = rng.randrange(min(31, len(body)))
            body[0] = literals << 3 | (rng.random() < 0.3)
            if rng.random() < 0.8 and literals + 3 < len(body):
                at = literals + 1 if not body[0] & 1 else 2
                body[at] = rng.choice((0, 1, 2, 5, 40))
                body[at + 1] = rng.choice((0, 0x54, 0xA8, 0x28, 0x14, 0x80, 0xFC, rng.randrange(64) << 2))
        blocks += (len(body) << 3 | 2 << 1 | (number == 0 and rng.random() < 0.5)).to_bytes(
            3, "little"
        ) + body
    return header + blocks + b"\x01\x00\x00"


def mutate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """One to four small changes."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        if not changed:
            return bytes(changed)
        # Changes near the front meet headers and tables; later ones mostly meet compressed bits.
        at = rng.randrange(min(len(changed), rng.choice((10, 16, 64, 1 << 20))))
        if at < 4 and rng.random() < 0.95:
            at = min(at + 4, len(changed) - 1)  # a wrong Magic_Number is soon tested enough
        kind = rng.randrange(9)
        if kind < 3:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))
        elif kind == 4:
            del changed[at : at + rng.randrange(1, 5)]
        elif kind == 5:
            changed[at:at] = rng.randbytes(rng.randrange(1, 5))
        elif kind == 6:
            del changed[-rng.randrange(1, min(len(changed), 20) + 1) :]
        elif kind == 7:
            cut = rng.randrange(len(other) + 1)
            changed[at:] = other[cut:]
        else:
            end = min(len(changed), at + rng.randrange(1, 30))
            changed[at:end] = changed[at:end] * 2
    return bytes(changed)


def libzstd(data: bytes) -> bytes | None:
    """What libzstd makes of all frames, or None where it refuses."""
    content = b""
    if not data:
        return None
    while data:
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        try:
            content += decompressor.decompress(data)
        except zstandard.ZstdError:
            return None
        if not decompressor.eof:
            return None
        data = decompressor.unused_data
    return content


def main(argv: list[str] | None = None) -> int:
    """Run the fuzzer; 0 when no case was answered wrongly."""
    parser = argparse.ArgumentParser(prog="fuzz_zstd", description="mutated Zstandard frames against libzstd")
    parser.add_argument("--count", type=int, default=1_000_000, help="number of cases (default 1000000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--corpus", type=int, default=3000, help="number of valid frames to start from")
    options = parser.parse_args(argv)

    corpus_rng = random.Random(f"corpus {options.seed}")
    corpus = [frame(corpus_rng) for _ in range(options.corpus)]
    for number, valid in enumerate(corpus):
        if purezstd.decompress(valid, max_output_size=MAX_OUTPUT_SIZE) != libzstd(valid):
            print(f"zstd fuzz: valid frame {number} decoded wrongly: {base64.b64encode(valid).decode()}")
            return 1

    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failures = 0
    slowest, slowest_case = 0.0, -1
    start = time.monotonic()
    for case in range(options.first, options.first + options.count):
        rng = random.Random(f"{options.seed} {case}")
        if rng.random() < 0.15:
            data = handmade(rng)
        else:
            data = mutate(rng, rng.choice(corpus), rng.choice(corpus))
        if case % 1000 == 0 and sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(HANG_SECONDS + 60, exit=True, file=sys.__stderr__)
        problem = ""
        ours: bytes | None = None
        message = ""
        began = time.perf_counter()
        try:
            ours = purezstd.decompress(data, max_output_size=MAX_OUTPUT_SIZE, max_window_size=MAX_WINDOW_SIZE)
        except purezstd.ZstdLimitError as refusal:
            counts[type(refusal).__name__] += 1
            message = "limit"
        except purezstd.ZstdError as refusal:
            message = str(refusal)
        except Exception as wrong:
            problem = f"raised {wrong!r}"
        taken = time.perf_counter() - began
        if taken > slowest:
            slowest, slowest_case = taken, case
        if taken > HANG_SECONDS:
            problem = problem or f"took {taken:.1f} s"
        if message != "limit" and not problem:
            theirs = libzstd(data)
            if ours is not None:
                counts["accepted"] += 1
                if theirs is None:
                    problem = "accepted, libzstd refuses"
                elif theirs != ours:
                    problem = "output differs from libzstd"
            elif theirs is None:
                counts["refused by both"] += 1
                kind = re.sub(r"frame starts with \w*", "frame starts here", message.split(": ", 1)[-1])
                kinds[re.sub(r"\d+", "N", kind)] += 1
            else:
                known = next((why for pattern, why in DISPUTED.items() if re.search(pattern, message)), None)
                if known is None:
                    problem = f"refused, libzstd accepts: {message}"
                else:
                    counts["disputed: " + known] += 1
        if problem:
            failures += 1
            shown = base64.b64encode(data).decode()
            print(f"zstd fuzz: case {case}: {problem}: {shown[:400]}", flush=True)
            if failures == 20:
                break
    faulthandler.cancel_dump_traceback_later()
    seconds = time.monotonic() - start
    done = case + 1 - options.first
    print(f"zstd fuzz: seed {options.seed}, {done} frames in {seconds:.0f} s, {failures} answered wrongly")
    print(f"zstd fuzz: slowest case {slowest_case} took {slowest * 1000:.0f} ms")
    for what, count in counts.most_common():
        print(f"zstd fuzz: {count:9} {what}")
    print(f"zstd fuzz: {len(kinds)} kinds of refusal, the most frequent:")
    for what, count in kinds.most_common(25):
        print(f"zstd fuzz: {count:9}   {what}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
