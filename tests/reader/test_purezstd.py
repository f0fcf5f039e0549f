"""The own Zstandard decoder against frames of the zstandard package and frames made by hand."""

import base64
import importlib.util
import random
import subprocess
import sys
import time
import tracemalloc
import types
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from reader import purezstd
from reader.purezstd import (
    ZstdDeadlineError,
    ZstdDictionaryError,
    ZstdError,
    ZstdLimitError,
    ZstdOutputLimitError,
    ZstdWindowLimitError,
)

ROOM = 32 << 20
MAGIC = b"\x28\xb5\x2f\xfd"
SINGLE_SEGMENT = 0x20
CHECKSUM = 0x04


def decompress(data: bytes) -> bytes:
    return purezstd.decompress(data, max_output_size=ROOM, max_window_size=1 << 27)


def contents() -> dict[str, bytes]:
    """One content of each kind that makes a compressor use other parts of the format."""
    rng = random.Random(5)
    words = [rng.randbytes(rng.randrange(1, 6)).hex().encode() for _ in range(900)]
    prose = b" ".join(rng.choices(words, [1 / (1 + i) for i in range(900)], k=60_000))
    return {
        "empty": b"",
        "one": b"x",
        "zeros": bytes(300_000),
        "random": rng.randbytes(150_000),
        "prose": prose,
        "short prose": prose[:700],
        "base64": base64.b64encode(rng.randbytes(90_000)),
        "records": b"".join(b'{"id": %d, "value": %d}\n' % (i, rng.randrange(10**6)) for i in range(8000)),
        "two letters": bytes(rng.choices(b"ab", k=5000)),
        "skewed": bytes(rng.choices(range(256), [1 / (1 + i) ** 2 for i in range(256)], k=200_000)),
        "far": (far := rng.randbytes(3000)) + bytes(200_000) + far,
        "equal steps": b"".join(rng.randbytes(5) + b"the same twenty byte" for _ in range(2000)),
        "one literal": (base := rng.randbytes(20_000))
        + b"".join(base[start : start + 40] + b"z" for start in range(0, 19_000, 47)),
    }


CONTENTS = contents()


def compress(data: bytes, *, level: int = 3, streamed: bool = False, **parameters: int) -> bytes:
    compression_parameters = zstandard.ZstdCompressionParameters.from_level(level, **parameters)
    compressor = zstandard.ZstdCompressor(compression_params=compression_parameters)
    if not streamed:
        return compressor.compress(data)
    stream = compressor.compressobj()
    frame = b""
    for start in range(0, len(data), 4_000):
        frame += stream.compress(data[start : start + 4_000])
        if start % 5 == 0:
            frame += stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return frame + stream.flush()


def block(kind: int, body: bytes, *, last: bool = True, size: int | None = None) -> bytes:
    size = len(body) if size is None else size
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + body


RAW, RLE, COMPRESSED, RESERVED = range(4)
WINDOW_1_KIB = b"\x00"
WINDOW_1_MIB = bytes((10 << 3,))


# Whole frames


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("level", [-7, -1, 1, 2, 3, 5, 7, 9, 12, 15, 17, 19, 22])
def test_levels(kind: str, level: int) -> None:
    data = CONTENTS[kind][: 60_000 if level > 9 else None]
    frame = compress(data, level=level, write_checksum=level % 2 == 0)
    assert decompress(frame) == data


@pytest.mark.parametrize("kind", CONTENTS)
def test_streamed_without_content_size(kind: str) -> None:
    data = CONTENTS[kind]
    frame = compress(data, streamed=True, write_content_size=False, write_checksum=True)
    assert decompress(frame) == data


def test_every_level_in_short() -> None:
    data = CONTENTS["prose"][:3000]
    for level in range(-10, 23):
        assert decompress(zstandard.ZstdCompressor(level=level).compress(data)) == data


@pytest.mark.parametrize("window_log", range(10, 18))
def test_windows(window_log: int) -> None:
    data = CONTENTS["prose"][:100_000]
    frame = compress(data, streamed=True, window_log=window_log, write_content_size=False)
    assert purezstd.decompress(frame, max_output_size=ROOM, max_window_size=1 << window_log) == data


def test_all_parts_of_the_format_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contents above must reach each kind of block, literals and table, else the tests show little."""
    seen: Counter[str] = Counter()
    literals_section = purezstd._Frame._literals_section
    sequence_table = purezstd._sequence_table
    decode_one_by_one = purezstd._HuffmanTree._decode_one_by_one
    transducer = purezstd._Transducer.decode
    weights = purezstd._fse_compressed_weights
    take = purezstd._Frame._take

    def spy_literals(self: purezstd._Frame, data: bytes) -> tuple[bytes, int]:
        kind = ("raw", "rle", "compressed", "treeless")[data[0] & 3]
        streams = "" if data[0] & 2 == 0 else ", 4 streams" if data[0] & 12 else ", 1 stream"
        seen[f"literals {kind}{streams}"] += 1
        return literals_section(self, data)

    def spy_table(mode: int, *rest: object) -> object:
        seen[f"{rest[2].name} mode {mode}"] += 1  # type: ignore[attr-defined]
        return sequence_table(mode, *rest)  # type: ignore[arg-type]

    def spy_take(self: purezstd._Frame, size: int, what: str) -> bytes:
        seen[what] += 1
        return take(self, size, what)

    def count(name: str, function: Callable[..., object]) -> object:
        def spy(*arguments: object) -> object:
            seen[name] += 1
            return function(*arguments)

        return spy

    monkeypatch.setattr(purezstd._Frame, "_literals_section", spy_literals)
    monkeypatch.setattr(purezstd._Frame, "_take", spy_take)
    monkeypatch.setattr(purezstd, "_sequence_table", spy_table)
    monkeypatch.setattr(purezstd._HuffmanTree, "_decode_one_by_one", count("one by one", decode_one_by_one))
    monkeypatch.setattr(purezstd._Transducer, "decode", count("transducer", transducer))
    monkeypatch.setattr(purezstd, "_fse_compressed_weights", count("compressed weights", weights))
    for data in CONTENTS.values():
        for level in (-1, 1, 3, 13):
            for streamed in (False, True):
                frame = compress(data, level=level, streamed=streamed, write_checksum=True)
                assert decompress(frame) == data
    expected = {
        f"{kind} mode {mode}" for kind in ("literals length", "offset", "match length") for mode in range(4)
    }
    expected |= {"literals raw", "literals rle", "Raw_Block", "RLE_Block", "Compressed_Block"}
    expected |= {
        "literals compressed, 1 stream",
        "literals compressed, 4 streams",
        "literals treeless, 4 streams",
    }
    expected |= {"one by one", "transducer", "compressed weights", "Content_Checksum", "Window_Descriptor"}
    assert expected - set(seen) == set()


@settings(max_examples=150, deadline=None)
@given(
    pieces=st.lists(st.tuples(st.binary(max_size=40), st.integers(1, 60)), max_size=20),
    level=st.integers(-5, 19),
    checksum=st.booleans(),
    content_size=st.booleans(),
    streamed=st.booleans(),
)
def test_round_trip(
    pieces: list[tuple[bytes, int]], level: int, checksum: bool, content_size: bool, streamed: bool
) -> None:
    data = b"".join(piece * times for piece, times in pieces)
    frame = compress(
        data, level=level, streamed=streamed, write_checksum=checksum, write_content_size=content_size
    )
    assert decompress(frame) == data


@pytest.mark.parametrize("force", [0, 10**9], ids=["transducer", "one by one"])
def test_both_ways_of_reading_huffman_streams(force: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purezstd, "_TRANSDUCER_PAYS", force)
    for kind in ("prose", "short prose", "base64", "skewed", "two letters"):
        assert decompress(compress(CONTENTS[kind])) == CONTENTS[kind]


# Several frames


def skippable(number: int, content: bytes) -> bytes:
    return bytes((0x50 + number,)) + b"\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content


def test_concatenated_and_skippable_frames() -> None:
    first, second = compress(b"first " * 30), compress(b"second", write_checksum=True)
    data = b"".join(skippable(number, b"x" * number) for number in range(16))
    assert (
        decompress(first + data + second + skippable(3, b"") + first)
        == b"first " * 30 + b"second" + b"first " * 30
    )
    assert decompress(data) == b""


def test_offsets_and_tables_do_not_cross_frames() -> None:
    frame = compress(CONTENTS["short prose"])
    assert decompress(frame + frame) == CONTENTS["short prose"] * 2
    # A match in the first block of a second frame must not reach into the first frame.
    match_only = MAGIC + b"\x00" + WINDOW_1_KIB + block(COMPRESSED, b"\x08a\x01\x00\x80\x80")
    with pytest.raises(ZstdError):
        decompress(frame + match_only)


@pytest.mark.parametrize(
    "tail", [b"\0", b"\x28", MAGIC[:3], MAGIC, b"text", skippable(1, b"abc")[:-1], b"\x50\x2a\x4d\x18\0"]
)
def test_what_follows_must_be_a_frame(tail: bytes) -> None:
    with pytest.raises(ZstdError, match=r"(at|near) byte"):
        decompress(compress(b"content") + tail)


def test_empty_input_is_no_frame() -> None:
    with pytest.raises(ZstdError, match="empty"):
        decompress(b"")


# Frame headers (3.1.1.1)


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (bytes((SINGLE_SEGMENT, 72)), 72),
        (bytes((0x40 | SINGLE_SEGMENT,)) + (300 - 256).to_bytes(2, "little"), 300),
        (bytes((0x80 | SINGLE_SEGMENT,)) + (72).to_bytes(4, "little"), 72),
        (bytes((0xC0 | SINGLE_SEGMENT,)) + (72).to_bytes(8, "little"), 72),
        (b"\x00" + WINDOW_1_KIB, 72),
        (b"\x00\x07", 72),  # mantissa
        (bytes((0x40,)) + WINDOW_1_KIB + (0).to_bytes(2, "little"), 256),
        (b"\x01" + WINDOW_1_KIB + bytes(1), 72),  # Dictionary_ID 0 in 1, 2 and 4 bytes is none
        (b"\x02" + WINDOW_1_KIB + bytes(2), 72),
        (b"\x03" + WINDOW_1_KIB + bytes(4), 72),
        (b"\x10" + WINDOW_1_KIB, 72),  # Unused_Bit
    ],
)
def test_headers(header: bytes, size: int) -> None:
    body = bytes(number % 256 for number in range(size))
    frame = MAGIC + header + block(RAW, body)
    assert decompress(frame) == body
    assert zstandard.ZstdDecompressor().decompressobj().decompress(frame) == body


def test_reserved_bit_is_corrupt() -> None:
    with pytest.raises(ZstdError, match="Reserved_Bit"):
        decompress(MAGIC + b"\x08" + WINDOW_1_KIB + block(RAW, b"a"))


@pytest.mark.parametrize(("descriptor", "field"), [(1, b"\x05"), (2, b"\x00\x01"), (3, b"\0\0\0\x80")])
def test_dictionaries_are_a_limit(descriptor: int, field: bytes) -> None:
    with pytest.raises(ZstdDictionaryError, match=str(int.from_bytes(field, "little"))):
        decompress(MAGIC + bytes((descriptor,)) + WINDOW_1_KIB + field + block(RAW, b"a"))


def test_trained_and_raw_dictionaries() -> None:
    samples: list[bytes | bytearray | memoryview] = [
        b"one sample of many, number %d of all" % number for number in range(500)
    ]
    trained = zstandard.train_dictionary(2000, list[bytes | bytearray | memoryview](samples))
    frame = zstandard.ZstdCompressor(dict_data=trained).compress(samples[3])
    with pytest.raises(ZstdDictionaryError):
        decompress(frame)
    raw = zstandard.ZstdCompressionDict(b"".join(samples), dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    frame = zstandard.ZstdCompressor(dict_data=raw).compress(b"".join(samples[3:5]))
    with pytest.raises(ZstdError):
        decompress(frame)


@pytest.mark.parametrize("flag", [SINGLE_SEGMENT, 0x40, 0x80, 0xC0])
def test_content_size_must_be_right(flag: int) -> None:
    size = {SINGLE_SEGMENT: 1, 0x40: 2, 0x80: 4, 0xC0: 8}[flag]
    header = bytes((flag,)) + (b"" if flag & SINGLE_SEGMENT else WINDOW_1_KIB)
    for said in (299, 301) if size > 1 else (99, 101):
        field = (said - 256 if size == 2 else said).to_bytes(size, "little")
        with pytest.raises(ZstdError):
            decompress(MAGIC + header + field + block(RAW, bytes(300 if size > 1 else 100)))


# Bounds


def test_window_bound_is_inclusive() -> None:
    frame = MAGIC + b"\x00" + WINDOW_1_MIB + block(RAW, b"abc")
    assert purezstd.decompress(frame, max_output_size=3, max_window_size=1 << 20) == b"abc"
    with pytest.raises(ZstdWindowLimitError, match="1048576"):
        purezstd.decompress(frame, max_output_size=3, max_window_size=(1 << 20) - 1)


def test_default_window_bound_is_8_mib() -> None:
    for exponent, mantissa, fine in ((13, 0, True), (13, 1, False), (31, 7, False)):
        frame = MAGIC + b"\x00" + bytes((exponent << 3 | mantissa,)) + block(RAW, b"abc")
        if fine:
            assert purezstd.decompress(frame, max_output_size=3) == b"abc"
        else:
            with pytest.raises(ZstdWindowLimitError):
                purezstd.decompress(frame, max_output_size=3)


def test_content_size_of_a_single_segment_is_its_window() -> None:
    frame = compress(CONTENTS["zeros"])
    with pytest.raises(ZstdWindowLimitError):
        purezstd.decompress(frame, max_output_size=ROOM, max_window_size=len(CONTENTS["zeros"]) - 1)
    assert purezstd.decompress(frame, max_output_size=ROOM, max_window_size=len(CONTENTS["zeros"]))


@pytest.mark.parametrize("kind", [kind for kind, data in CONTENTS.items() if data])
@pytest.mark.parametrize("content_size", [True, False])
def test_output_bound_is_inclusive(kind: str, content_size: bool) -> None:
    data = CONTENTS[kind]
    frame = compress(data, streamed=not content_size, write_content_size=content_size)
    assert purezstd.decompress(frame, max_output_size=len(data)) == data
    for room in {0, len(data) // 2, len(data) - 1}:
        with pytest.raises(ZstdOutputLimitError):
            purezstd.decompress(frame, max_output_size=room)


def test_output_bound_counts_all_frames() -> None:
    frame = compress(b"content", write_content_size=False)
    assert purezstd.decompress(frame * 3, max_output_size=21) == b"content" * 3
    with pytest.raises(ZstdOutputLimitError):
        purezstd.decompress(frame * 3, max_output_size=20)


def test_a_bomb_ends_at_the_bound_and_soon() -> None:
    frame = MAGIC + b"\x00" + WINDOW_1_MIB + block(RLE, b"\0", size=1 << 17, last=False) * 100_000
    began = time.process_time()
    with pytest.raises(ZstdOutputLimitError):
        purezstd.decompress(frame, max_output_size=1 << 20)
    assert time.process_time() - began < 1


def test_deadline() -> None:
    frame = compress(CONTENTS["prose"])
    assert (
        purezstd.decompress(frame, max_output_size=ROOM, deadline=time.monotonic() + 600) == CONTENTS["prose"]
    )
    with pytest.raises(ZstdDeadlineError):
        purezstd.decompress(frame, max_output_size=ROOM, deadline=time.monotonic() - 1)
    with pytest.raises(ZstdDeadlineError):
        purezstd.decompress(skippable(0, b"") * 5, max_output_size=ROOM, deadline=time.monotonic() - 1)


def test_deadline_ends_endless_small_work() -> None:
    """Empty blocks make no output, so no bound on output would end this."""
    frame = MAGIC + b"\x00" + WINDOW_1_MIB + block(RAW, b"", last=False) * 3_000_000
    began = time.process_time()
    with pytest.raises(ZstdDeadlineError):
        purezstd.decompress(frame, max_output_size=ROOM, deadline=time.monotonic() + 0.05)
    assert time.process_time() - began < 1


def test_a_block_of_many_sequences_is_bounded() -> None:
    """98,047 sequences of no bits each in some 14 bytes: the longest work of one block."""
    # Raw literals "a"; 0x7F00 + 0xFFFF sequences, all tables RLE: no literals, repeat offset, match of 3.
    section = b"\x08a\xff\xff\xff\x54" + b"\x00\x00\x00" + b"\x01"
    frame = MAGIC + b"\x00" + WINDOW_1_MIB + block(RAW, b"abcdefgh", last=False) + block(COMPRESSED, section)
    began = time.process_time()
    with pytest.raises(ZstdError, match="Block_Maximum_Size"):
        decompress(frame)
    assert time.process_time() - began < 1


def test_the_two_kinds_of_error_do_not_catch_each_other() -> None:
    assert not issubclass(ZstdLimitError, ZstdError)
    assert not issubclass(ZstdError, ZstdLimitError)
    for limit in (ZstdOutputLimitError, ZstdWindowLimitError, ZstdDictionaryError, ZstdDeadlineError):
        assert issubclass(limit, ZstdLimitError)
        assert not issubclass(limit, ZstdError)


# Blocks and sections made by hand


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (block(RAW, b"abc"), b"abc"),
        (block(RLE, b"z", size=5), b"zzzzz"),
        (block(RLE, b"z", size=0), b""),
        (block(RAW, b"abc", last=False) + block(RAW, b""), b"abc"),
        (block(COMPRESSED, b"\x18abc\x00"), b"abc"),  # raw literals, no sequences
        (block(COMPRESSED, b"\x18abc\x80\x00"), b"abc"),  # 0 sequences in 2 bytes
        (block(COMPRESSED, b"\x34\x00abc\x00"), b"abc"),  # raw literals with a size of 12 bits
        (block(COMPRESSED, b"\x3c\x00\x00abc\x00"), b"abc"),  # and of 20 bits
        (block(COMPRESSED, b"\x29q\x00"), b"q" * 5),  # RLE literals
        (block(COMPRESSED, b"\x00\x00"), b""),  # no literals, no sequences
        # Literals "ab", one sequence: 2 literals, offset 1 by repeat code, match of 3
        (block(COMPRESSED, b"\x10ab\x01\x54\x02\x00\x00\x01"), b"abbbb"),
        # Literals "abcd": 4 literals, offset 4 by offset code 2 with bits 11, match of 5
        (block(COMPRESSED, b"\x20abcd\x01\x54\x04\x02\x02\x07"), b"abcdabcda"),
    ],
)
def test_blocks_by_hand(blocks: bytes, expected: bytes) -> None:
    frame = MAGIC + b"\x00" + WINDOW_1_KIB + blocks
    assert zstandard.ZstdDecompressor().decompressobj().decompress(frame) == expected
    assert decompress(frame) == expected


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (block(RESERVED, b"abc"), "Block_Type"),
        (block(RAW, bytes(1025)), "Block_Maximum_Size"),
        (block(RLE, b"a", size=1025), "Block_Maximum_Size"),
        (block(RAW, b"abc", last=False), "Block_Header is cut off"),
        (block(RAW, b"abc", size=4), "Raw_Block is cut off"),
        (block(RLE, b"", size=4), "RLE_Block is cut off"),
        (block(COMPRESSED, b"", size=0), "Literals_Section_Header"),
        (block(COMPRESSED, b"\x20abc\x00"), "Sequences_Section_Header is cut off"),
        (block(COMPRESSED, b"\x28abc\x00"), "longer than its block"),
        (block(COMPRESSED, b"\x18abc\x00\x00"), "bytes after"),
        (block(COMPRESSED, b"\x18abc\x01"), "Symbol_Compression_Modes is cut off"),
        (block(COMPRESSED, b"\x18abc\x01\x55\x00\x00\x00\x01"), "Reserved bits"),
        (block(COMPRESSED, b"\x18abc\x01\xfc\x01"), "Repeat_Mode without"),
        (block(COMPRESSED, b"\x18abc\x01\x54\x24\x00\x00\x01"), "literals length code 36"),
        (block(COMPRESSED, b"\x18abc\x01\x54\x00\x20\x00\x01"), "offset code 32"),
        (block(COMPRESSED, b"\x18abc\x01\x54\x00\x00\x35\x01"), "match length code 53"),
        (block(COMPRESSED, b"\x10ab\x01\x54\x02\x00\x00"), "no end mark"),
        (block(COMPRESSED, b"\x10ab\x01\x54\x02\x00\x00\x00"), "no end mark"),
        (block(COMPRESSED, b"\x10ab\x01\x54\x02\x00\x00\x03"), "does not end with its last sequence"),
        (block(COMPRESSED, b"\x10ab\x01\x54\x03\x00\x00\x01"), "more literals"),
        (block(COMPRESSED, b"\x10ab\x01\x54\x02\x02\x00\x07"), "before the start"),
        (block(COMPRESSED, b"\x10ab\x01\x54\x00\x01\x00\x03"), "offset 0"),  # repeat code 3 without literals
        (block(COMPRESSED, b"\x13\x00\x00\x00"), "Treeless_Literals_Block"),
        (block(COMPRESSED, b"\x12\x00\x00\x00"), "Huffman_Tree_Description is cut off"),
        (block(COMPRESSED, b"\x0d\xff\xffa\x00"), "Regenerated_Size"),
    ],
)
def test_corrupt_blocks(blocks: bytes, message: str) -> None:
    with pytest.raises(ZstdError, match=message):
        decompress(MAGIC + b"\x00" + WINDOW_1_KIB + blocks)


def huffman_frame(description: bytes, stream: bytes, regenerated_size: int) -> bytes:
    """A frame of one block of Huffman-coded literals in one stream, without sequences."""
    header = 2 | regenerated_size << 4 | len(description + stream) << 14
    body = header.to_bytes(3, "little") + description + stream + b"\x00"
    return MAGIC + b"\x00" + WINDOW_1_KIB + block(COMPRESSED, body)


TWO_CODES = b"\x80\x10"  # symbols 0 and 1: 0, 1
THREE_CODES = b"\x81\x21"  # symbols 0, 1, 2: 1, 00, 01


@pytest.mark.parametrize("force", [0, 10**9], ids=["transducer", "one by one"])
@pytest.mark.parametrize(
    ("description", "stream", "regenerated_size", "expected"),
    [
        (TWO_CODES, b"\x0a", 3, b"\0\1\0"),
        (TWO_CODES, b"\x0a\x01", 8, b"\0\0\0\0\1\0\1\0"),
        (TWO_CODES, b"\x01", 0, b""),
        (THREE_CODES, b"\x0c", 2, b"\0\1"),  # 1 00
        (THREE_CODES, b"\x35", 3, b"\0\2\2"),  # 1 01 01
        (TWO_CODES, b"\x0a", 2, None),
        (TWO_CODES, b"\x0a", 4, None),
        (THREE_CODES, b"\x06", 1, None),  # ends inside a code, with the right number of literals
        (THREE_CODES, b"\x06", 2, None),
        (TWO_CODES, b"\x0a\x00", 11, None),  # the last byte has no end mark
        (TWO_CODES, b"", 0, None),
    ],
)
def test_huffman_streams_by_hand(
    description: bytes,
    stream: bytes,
    regenerated_size: int,
    expected: bytes | None,
    force: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purezstd, "_TRANSDUCER_PAYS", force)
    frame = huffman_frame(description, stream, regenerated_size)
    if expected is None:
        with pytest.raises(ZstdError, match="Huffman bitstream"):
            decompress(frame)
    else:
        assert decompress(frame) == expected
        assert zstandard.ZstdDecompressor().decompressobj().decompress(frame) == expected


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (b"\x81\x31", "power of two"),  # 4 + 1, 3 to go
        (b"\x80\xc0", "12 bits"),
        (b"\x80\x00", "0 bits"),
        (b"\x80\x20", "no Huffman weight is 1"),
        (b"\xff" + b"\x11" * 62, "cut off"),
        (b"\x00", "Huffman"),
        (b"\x02\x12\x34", "Huffman"),
    ],
)
def test_huffman_trees_by_hand(description: bytes, message: str) -> None:
    with pytest.raises(ZstdError, match=message):
        decompress(huffman_frame(description, b"\x01", 0))


def test_matches_are_stopped_before_they_are_copied() -> None:
    """2000 matches of 131,074 bytes: 262 MB if the end of the block were the only test."""
    stream = b"\xff\xff" * 2000 + b"\x01"
    section = b"\x08a" + (0x80 | 2000 >> 8).to_bytes(1, "little") + bytes((2000 & 255,)) + b"\x54\x00\x00\x34"
    frame = MAGIC + b"\x00" + WINDOW_1_MIB + block(RAW, b"abcdefgh", last=False)
    tracemalloc.start()
    try:
        with pytest.raises(ZstdError, match="Block_Maximum_Size"):
            decompress(frame + block(COMPRESSED, section + stream))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_offset_over_the_window_is_corrupt() -> None:
    frame = bytearray(compress(CONTENTS["far"], streamed=True, window_log=18, write_content_size=False))
    assert decompress(bytes(frame)) == CONTENTS["far"]
    assert frame[4:6] == bytes((0, 8 << 3))
    frame[5] = 7 << 3  # declares 128 KiB instead of 256
    with pytest.raises(ZstdError, match="Window_Size"):
        decompress(bytes(frame))


# Damage


@pytest.mark.parametrize("kind", ["short prose", "two letters", "one", "empty"])
@pytest.mark.parametrize("checksum", [True, False])
def test_every_truncation(kind: str, checksum: bool) -> None:
    frame = compress(CONTENTS[kind], write_checksum=checksum, level=5)
    for length in range(len(frame)):
        with pytest.raises(ZstdError):
            decompress(frame[:length])


def test_every_flipped_bit() -> None:
    """Behind a checksum a damaged frame gives the content or an error, never something else."""
    data = CONTENTS["short prose"]
    frame = compress(data, write_checksum=True)
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            assert purezstd.decompress(damaged, max_output_size=1 << 20) == data
        except (ZstdError, ZstdLimitError):
            pass


def test_wrong_checksum() -> None:
    frame = bytearray(compress(b"content", write_checksum=True))
    frame[-1] ^= 1
    with pytest.raises(ZstdError, match="Content_Checksum"):
        decompress(bytes(frame))


@pytest.fixture(scope="module")
def fuzzer() -> types.ModuleType:
    path = Path(__file__).resolve().parents[2] / "bench" / "fuzz_zstd.py"
    if not path.is_file():
        pytest.skip("bench/ is not beside the tests")
    spec = importlib.util.spec_from_file_location("fuzz_zstd_for_tests", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutated_frames(fuzzer: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzzer.main(["--count", "6000", "--corpus", "150", "--seed", "11"]) == 0, capsys.readouterr().out


def test_the_fuzzer_notices_wrong_output(
    fuzzer: types.ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(data: bytes, **bounds: int) -> bytes:
        try:
            return purezstd.decompress(data, **bounds)
        except ZstdError:
            return b""

    stand_in = types.SimpleNamespace(decompress=forgetful, ZstdError=ZstdError, ZstdLimitError=ZstdLimitError)
    monkeypatch.setattr(fuzzer, "purezstd", stand_in)
    assert fuzzer.main(["--count", "500", "--corpus", "50", "--seed", "11"]) == 1
    assert "libzstd refuses" in capsys.readouterr().out


# Input types and isolation


def test_bytes_likes() -> None:
    frame = compress(b"content" * 50)
    assert decompress(bytearray(frame)) == b"content" * 50  # type: ignore[arg-type]
    assert decompress(memoryview(frame)) == b"content" * 50  # type: ignore[arg-type]
    assert type(decompress(frame)) is bytes


def test_loads_by_path_in_an_isolated_interpreter_with_the_standard_library_alone() -> None:
    script = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('codec', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "frame = bytes.fromhex(sys.argv[2])\n"
        "print(module.decompress(frame, max_output_size=1000))\n"
        "known = {*sys.stdlib_module_names, '__main__'}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} - known))\n"
    )
    frame = compress(b"content", write_checksum=True).hex()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, purezstd.__file__, frame],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "b'content'\n[]\n"


# XXH64


@settings(deadline=None)
@given(
    st.one_of(st.binary(max_size=200), st.binary(min_size=1, max_size=40).map(lambda b: b * 900)),
    st.integers(0, 2**64 - 1),
)
def test_xxh64(data: bytes, seed: int) -> None:
    assert purezstd.xxh64(data, seed) == xxhash.xxh64_intdigest(data, seed)


def test_xxh64_lengths() -> None:
    data = random.Random(3).randbytes(70_000)
    for length in [*range(140), 1023, 16_383, 16_384, 16_385, 32_768, 69_999]:
        assert purezstd.xxh64(data[:length]) == xxhash.xxh64_intdigest(data[:length])
    assert purezstd.xxh64(b"") == 0xEF46DB3751D8E999
    assert purezstd.xxh64(memoryview(data)[1:]) == xxhash.xxh64_intdigest(data[1:])
