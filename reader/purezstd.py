"""A Zstandard decoder with nothing but the standard library, in the order and words of RFC 8878.

`decompress` decodes one or more frames and checks everything that the format lets a decoder check, the XXH64
content checksum included. Section numbers in comments are those of RFC 8878.

Two kinds of refusal are kept apart, and neither class is a subclass of the other, so that `except ZstdError`
never swallows a bound:

* `ZstdError`: the data is not valid Zstandard data.
* `ZstdLimitError`: the data may be valid, but a bound of the caller or of this decoder ends the work. Its
  subclasses say which: `ZstdOutputLimitError`, `ZstdWindowLimitError`, `ZstdDictionaryError`,
  `ZstdDeadlineError`.

Choices where the text leaves room or where decoders differ:

* Empty input is refused: section 3 says "one or more frames".
* A dictionary is not supported; Dictionary_ID 0 means none (3.1.1.1.3). A frame that needs a dictionary
  without naming one cannot be told from a corrupt one and ends as `ZstdError`.
* `max_window_size` bounds Window_Size as 3.1.1.1.2 defines it, so also the content size of a frame with
  Single_Segment_Flag.
* Where libzstd is more lenient than the text, the text wins: a Huffman-coded stream must end exactly on its
  first bit and its last byte is not 0 (4.2.2), Huffman codes have at most 11 bits (4.2.1), a block is and
  gives at most Block_Maximum_Size (3.1.1.2.4), an offset is at most Window_Size (3.1.1.4; "smaller than" in
  the text, but encoders use the whole window), a Compressed_Block of size 0 lacks its sections (3.1.1.3).

Work is bounded: it grows with the length of the input and with `max_output_size` and with nothing else that
the input says. But the price of a byte of input is uneven. A block of some 16 bytes may describe three large
FSE tables and hardly use them, which costs half a millisecond; a megabyte of such blocks takes most of a
minute. A caller with hostile input therefore passes a `deadline`. The clock is looked at before every block,
and one block takes at most about a tenth of a second (98,047 sequences, the most that a block can have).

The module is loaded by file path into an isolated interpreter; it must import nothing outside the standard
library.
"""

import time
from binascii import b2a_base64
from collections import defaultdict
from functools import cache, lru_cache
from io import BytesIO
from itertools import repeat
from struct import iter_unpack

__all__ = [
    "ZstdDeadlineError",
    "ZstdDictionaryError",
    "ZstdError",
    "ZstdLimitError",
    "ZstdOutputLimitError",
    "ZstdWindowLimitError",
    "decompress",
    "xxh64",
]


class ZstdError(Exception):
    """The data is not valid Zstandard data."""


class ZstdLimitError(Exception):
    """A bound or an unsupported feature ends the work; the data may well be valid."""


class ZstdOutputLimitError(ZstdLimitError):
    """The content is longer than `max_output_size`."""


class ZstdWindowLimitError(ZstdLimitError):
    """Window_Size is over `max_window_size`."""


class ZstdDictionaryError(ZstdLimitError):
    """The frame names a dictionary."""


class ZstdDeadlineError(ZstdLimitError):
    """The deadline has passed."""


# 3.1: frames


_MAGIC_NUMBER = b"\x28\xb5\x2f\xfd"
_BLOCK_MAXIMUM_SIZE = 128 * 1024


def decompress(
    data: bytes | bytearray | memoryview,
    *,
    max_output_size: int,
    max_window_size: int = 8 * 2**20,
    deadline: float | None = None,
) -> bytes:
    """Decode all frames in `data` and return their content, one after the other.

    Args:
        data: one or more Zstandard or skippable frames, nothing before, between or after them.
        max_output_size: most bytes of content of all frames together (inclusive).
        max_window_size: most bytes of Window_Size of a frame (inclusive).
        deadline: value of `time.monotonic()` after which no further block is begun; None for no deadline.

    Raises:
        ZstdError: the data is corrupt, cut off, empty, or not Zstandard data.
        ZstdLimitError: a bound or the deadline was met, or a frame names a dictionary; see the subclasses.
    """
    source = data if type(data) is bytes else bytes(data)
    contents: list[bytes | bytearray] = []
    room = max_output_size
    position = 0
    if not source:
        raise ZstdError("corrupt zstd data: the input is empty, at least one frame is needed")
    while position < len(source):
        magic = source[position : position + 4]
        if magic == _MAGIC_NUMBER:
            frame = _Frame(source, position, room, max_window_size, deadline)
            position = frame.decode()
            room -= len(frame.content)
            contents.append(frame.content)
        elif len(magic) == 4 and magic[0] & 0xF0 == 0x50 and magic[1:] == b"\x2a\x4d\x18":
            # 3.1.2: Skippable Frames
            if deadline is not None and time.monotonic() > deadline:
                raise ZstdDeadlineError(f"zstd deadline passed before byte {position} of the input")
            size_field = source[position + 4 : position + 8]
            after = position + 8 + int.from_bytes(size_field, "little")
            if len(size_field) < 4 or after > len(source):
                raise ZstdError(f"corrupt zstd data at byte {position}: the skippable frame is cut off")
            position = after
        else:
            raise ZstdError(f"corrupt zstd data at byte {position}: no frame starts with {magic.hex()}")
    return bytes(contents[0]) if len(contents) == 1 else b"".join(contents)


class _Frame:
    """One Zstandard frame (3.1.1) and what its blocks hand on to each other."""

    def __init__(
        self, source: bytes, start: int, room: int, max_window_size: int, deadline: float | None
    ) -> None:
        self.source = source
        self.position = start
        self.room = room
        self.max_window_size = max_window_size
        self.deadline = deadline
        self.content = bytearray()
        self.window_size = 0
        self.block_maximum_size = 0
        # 3.1.1.3: what a Compressed_Block may need from an earlier one
        self.huffman_tree: _HuffmanTree | None = None
        self.literals_length_table: _SequenceTable | None = None
        self.offset_table: _SequenceTable | None = None
        self.match_length_table: _SequenceTable | None = None
        self.repeated_offsets = (-1, -4, -8)  # 3.1.1.5; kept negative, see _execute_sequences

    def decode(self) -> int:
        """Decode the frame into `content`; returns the position after it."""
        try:
            frame_content_size, has_checksum = self._frame_header()
            last_block = False
            while not last_block:
                if self.deadline is not None and time.monotonic() > self.deadline:
                    raise ZstdDeadlineError(f"zstd deadline passed before byte {self.position} of the input")
                last_block = self._block()
            if frame_content_size is not None and frame_content_size != len(self.content):
                raise _Corrupt(
                    f"Frame_Content_Size is {frame_content_size}, content is {len(self.content)} bytes"
                )
            if has_checksum:
                checksum = self._take(4, "Content_Checksum")
                if int.from_bytes(checksum, "little") != xxh64(self.content) & 0xFFFFFFFF:
                    raise _Corrupt("Content_Checksum does not match the content")
        except _Corrupt as found:
            raise ZstdError(f"corrupt zstd data near byte {self.position}: {found}") from None
        return self.position

    def _take(self, size: int, what: str) -> bytes:
        """The next `size` bytes of the input."""
        taken = self.source[self.position : self.position + size]
        if len(taken) < size:
            raise _Corrupt(f"{what} is cut off")
        self.position += size
        return taken

    def _frame_header(self) -> tuple[int | None, bool]:
        """3.1.1.1: Frame_Header. Returns Frame_Content_Size, if present, and Content_Checksum_Flag."""
        self.position += len(_MAGIC_NUMBER)
        # 3.1.1.1.1: Frame_Header_Descriptor. Bit 4 is the Unused_Bit, which a decoder must ignore.
        descriptor = self._take(1, "Frame_Header_Descriptor")[0]
        frame_content_size_flag = descriptor >> 6
        single_segment = bool(descriptor & 0x20)
        if descriptor & 0x08:
            raise _Corrupt("Reserved_Bit of the Frame_Header is set")
        has_checksum = bool(descriptor & 0x04)
        dictionary_id_size = (0, 1, 2, 4)[descriptor & 3]

        # 3.1.1.1.2: Window_Descriptor
        if not single_segment:
            window_descriptor = self._take(1, "Window_Descriptor")[0]
            window_base = 1 << (10 + (window_descriptor >> 3))
            self.window_size = window_base + (window_base >> 3) * (window_descriptor & 7)

        # 3.1.1.1.3: Dictionary_ID
        dictionary_id = int.from_bytes(self._take(dictionary_id_size, "Dictionary_ID"), "little")

        # 3.1.1.1.4: Frame_Content_Size
        frame_content_size: int | None = None
        size = (1 if single_segment else 0, 2, 4, 8)[frame_content_size_flag]
        if size:
            frame_content_size = int.from_bytes(self._take(size, "Frame_Content_Size"), "little")
            if size == 2:
                frame_content_size += 256
        if single_segment:
            assert frame_content_size is not None
            self.window_size = frame_content_size

        if dictionary_id:
            raise ZstdDictionaryError(
                f"zstd frame needs dictionary {dictionary_id}, dictionaries are not supported"
            )
        if self.window_size > self.max_window_size:
            raise ZstdWindowLimitError(
                f"zstd Window_Size {self.window_size} is over the bound of {self.max_window_size}"
            )
        if frame_content_size is not None and frame_content_size > self.room:
            raise ZstdOutputLimitError(
                f"zstd Frame_Content_Size {frame_content_size} is over the bound of {self.room}"
            )
        # 3.1.1.2.4
        self.block_maximum_size = min(self.window_size, _BLOCK_MAXIMUM_SIZE)
        return frame_content_size, has_checksum

    # 3.1.1.2: Blocks

    def _block(self) -> bool:
        """Decode one block; returns Last_Block."""
        block_header = int.from_bytes(self._take(3, "Block_Header"), "little")
        last_block = bool(block_header & 1)
        block_type = block_header >> 1 & 3
        block_size = block_header >> 3
        if block_type == 3:
            raise _Corrupt("Block_Type is Reserved")
        if block_size > self.block_maximum_size:
            name = ("Raw_Block", "RLE_Block", "Compressed_Block")[block_type]
            raise _Corrupt(
                f"{name} of {block_size} bytes is over Block_Maximum_Size {self.block_maximum_size}"
            )
        if block_type == 0:  # Raw_Block
            self._check_room(block_size)
            self.content += self._take(block_size, "Raw_Block")
        elif block_type == 1:  # RLE_Block
            self._check_room(block_size)
            self.content += self._take(1, "RLE_Block") * block_size
        else:  # Compressed_Block
            self._compressed_block(self._take(block_size, "Compressed_Block"))
        return last_block

    def _check_room(self, size: int) -> None:
        if len(self.content) + size > self.room:
            raise ZstdOutputLimitError(f"zstd content is over the bound of {self.room} bytes")

    # 3.1.1.3: Compressed Blocks

    def _compressed_block(self, block: bytes) -> None:
        literals, position = self._literals_section(block)
        self._sequences_section(block, position, literals)

    # 3.1.1.3.1: Literals_Section

    def _literals_section(self, block: bytes) -> tuple[bytes, int]:
        """Returns the literals and the position of the Sequences_Section in the block."""
        # 3.1.1.3.1.1: Literals_Section_Header
        if not block:
            raise _Corrupt("Literals_Section_Header is cut off")
        literals_block_type = block[0] & 3
        size_format = block[0] >> 2 & 3
        if literals_block_type < 2:  # Raw_Literals_Block, RLE_Literals_Block
            header_size = (1, 2, 1, 3)[size_format]
            header = int.from_bytes(block[:header_size], "little")
            regenerated_size = header >> (3 if header_size == 1 else 4)
            compressed_size = regenerated_size if literals_block_type == 0 else 1
        else:  # Compressed_Literals_Block, Treeless_Literals_Block
            header_size = (3, 3, 4, 5)[size_format]
            header = int.from_bytes(block[:header_size], "little") >> 4
            size_bits = (10, 10, 14, 18)[size_format]
            regenerated_size = header & (1 << size_bits) - 1
            compressed_size = header >> size_bits
        end = header_size + compressed_size
        if end > len(block):
            raise _Corrupt("Literals_Section is longer than its block")
        if regenerated_size > self.block_maximum_size:
            raise _Corrupt(f"Regenerated_Size {regenerated_size} of the literals is over Block_Maximum_Size")
        if literals_block_type == 0:
            return block[header_size:end], end
        if literals_block_type == 1:
            return block[header_size:end] * regenerated_size, end

        # 3.1.1.3.1.2 to 3.1.1.3.1.5: Huffman_Tree_Description, Jump_Table, streams
        streams = block[header_size:end]
        if literals_block_type == 2:
            weights, description_size = _huffman_tree_description(streams)
            self.huffman_tree = _HuffmanTree(weights)
            streams = streams[description_size:]
        tree = self.huffman_tree
        if tree is None:
            raise _Corrupt("Treeless_Literals_Block without an earlier Huffman tree")
        tree.prepare(len(streams))
        if size_format == 0:
            return tree.decode_stream(streams, regenerated_size), end
        # 3.1.1.3.1.6: Jump_Table
        if len(streams) < 6:
            raise _Corrupt("Jump_Table is cut off")
        if regenerated_size < 6:
            raise _Corrupt(f"four streams for {regenerated_size} literals")
        stream_size = (regenerated_size + 3) // 4
        parts = []
        start = 6
        for number in (0, 2, 4):
            stop = start + int.from_bytes(streams[number : number + 2], "little")
            parts.append(tree.decode_stream(streams[start:stop], stream_size))
            start = stop
        if start > len(streams):
            raise _Corrupt("Jump_Table points behind the streams")
        parts.append(tree.decode_stream(streams[start:], regenerated_size - 3 * stream_size))
        return b"".join(parts), end

    # 3.1.1.3.2: Sequences_Section

    def _sequences_section(self, block: bytes, position: int, literals: bytes) -> None:
        # 3.1.1.3.2.1: Sequences_Section_Header. Zero bytes stand in for what is cut off; the size is
        # checked afterwards.
        byte0, byte1, byte2 = (block[position : position + 3] + b"\0\0\0")[:3]
        if byte0 < 128:
            number_of_sequences = byte0
            position += 1
        elif byte0 < 255:
            number_of_sequences = (byte0 - 128 << 8) + byte1
            position += 2
        else:
            number_of_sequences = byte1 + (byte2 << 8) + 0x7F00
            position += 3
        if position > len(block):
            raise _Corrupt("Sequences_Section_Header is cut off")
        if number_of_sequences == 0:
            if position != len(block):
                raise _Corrupt("bytes after a Sequences_Section without sequences")
            self._check_room(len(literals))
            self.content += literals
            return
        if position == len(block):
            raise _Corrupt("Symbol_Compression_Modes is cut off")
        modes = block[position]
        position += 1
        if modes & 3:
            raise _Corrupt("Reserved bits of Symbol_Compression_Modes are set")
        self.literals_length_table, position = _sequence_table(
            modes >> 6, block, position, _LITERALS_LENGTH, self.literals_length_table
        )
        self.offset_table, position = _sequence_table(
            modes >> 4 & 3, block, position, _OFFSET, self.offset_table
        )
        self.match_length_table, position = _sequence_table(
            modes >> 2 & 3, block, position, _MATCH_LENGTH, self.match_length_table
        )
        before = len(self.content)
        limit = min(self.block_maximum_size, self.room - before)
        try:
            self.repeated_offsets = _execute_sequences(
                self.content,
                self.window_size,
                before + limit,
                literals,
                block[position:],
                number_of_sequences,
                (self.literals_length_table, self.offset_table, self.match_length_table),
                self.repeated_offsets,
            )
        except _OverLimit:
            if limit < self.block_maximum_size:
                raise ZstdOutputLimitError(f"zstd content is over the bound of {self.room} bytes") from None
            raise _Corrupt("content of the block is over Block_Maximum_Size") from None


class _Corrupt(Exception):
    """What is wrong with the frame; `_Frame.decode` adds where and turns it into a ZstdError."""


class _OverLimit(Exception):
    """A block produces more than it may."""


# 3.1.1.3.2.1.1: sequence codes for lengths and offsets


class _SymbolType:
    """What is fixed for one of the three symbol types of sequences."""

    def __init__(
        self,
        name: str,
        max_accuracy_log: int,
        codes: list[tuple[int, int]],
        default_log: int,
        default: list[int],
    ) -> None:
        self.name = name
        self.max_accuracy_log = max_accuracy_log
        # For each code: Baseline, Number_of_Bits as a mask (False where no bits follow), Number_of_Bits.
        self.codes = [(baseline, (1 << bits) - 1 if bits else False, bits) for baseline, bits in codes]
        self.default_log = default_log
        self.default = default


def _length_codes(first: int, count: int, bits: list[int]) -> list[tuple[int, int]]:
    """`count` codes without further bits from `first` on, then one code for each of `bits`, without gaps."""
    codes = [(first + code, 0) for code in range(count)]
    baseline = first + count
    for number_of_bits in bits:
        codes.append((baseline, number_of_bits))
        baseline += 1 << number_of_bits
    return codes


_LITERALS_LENGTH = _SymbolType(
    "literals length",
    9,
    _length_codes(0, 16, [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    6,
    [4, 3, *[2] * 11, 1, 1, 1, *[2] * 9, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1],
)
_MATCH_LENGTH = _SymbolType(
    "match length",
    9,
    _length_codes(3, 32, [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    6,
    [1, 4, 3, *[2] * 6, *[1] * 37, *[-1] * 7],
)
# Offset_Value is 2^code plus as many bits as the code says. Here the Baseline is what the bits are subtracted
# from: for codes from 2 on the result is the negative offset, 3 - Offset_Value; for the repeat codes it is a
# positive number, 3 for Offset_Value 1, 2 for 2, 1 for 3.
_OFFSET = _SymbolType(
    "offset",
    8,
    [(3, 0), (2, 1), *[(3 - (1 << code), code) for code in range(2, 32)]],
    5,
    [*[1] * 6, *[2] * 3, *[1] * 15, *[-1] * 5],
)

# Baseline, mask of the further bits, number of these, mask of the state bits, number of these, number of
# both, and the entries that the state bits choose from.
_Entry = tuple[int, int, int, int, int, int, "list[_Entry]"]


class _SequenceTable:
    """An FSE decoding table (4.1) whose entries lead directly to their possible successors."""

    def __init__(self, accuracy_log: int, entries: list["_Entry"]) -> None:
        self.accuracy_log = accuracy_log
        self.entries = entries

    def __del__(self) -> None:
        # The entries form cycles, which would otherwise wait for the garbage collector.
        for entry in self.entries:
            entry[6].clear()


def _sequence_table(
    mode: int, block: bytes, position: int, kind: _SymbolType, previous: _SequenceTable | None
) -> tuple[_SequenceTable, int]:
    """The table for one symbol type (3.1.1.3.2.1.2), and the position after its description."""
    if mode == 0:  # Predefined_Mode
        return _default_table(kind), position
    if mode == 1:  # RLE_Mode
        if position >= len(block):
            raise _Corrupt(f"{kind.name} symbol of RLE_Mode is cut off")
        code = block[position]
        if code >= len(kind.codes):
            raise _Corrupt(f"{kind.name} code {code} of RLE_Mode does not exist")
        baseline, mask, bits = kind.codes[code]
        successors: list[_Entry] = []
        entry = (baseline, mask, bits, 0, 0, bits, successors)
        successors.append(entry)
        return _SequenceTable(0, [entry]), position + 1
    if mode == 2:  # FSE_Compressed_Mode
        accuracy_log, probabilities, size = _fse_table_description(
            block[position:], kind.max_accuracy_log, len(kind.codes), kind.name
        )
        return _build_sequence_table(accuracy_log, probabilities, kind), position + size
    # Repeat_Mode
    if previous is None:
        raise _Corrupt(f"Repeat_Mode without an earlier {kind.name} table")
    return previous, position


@cache
def _default_table(kind: _SymbolType) -> _SequenceTable:
    """3.1.1.3.2.2: Default Distributions."""
    return _build_sequence_table(kind.default_log, kind.default, kind)


def _build_sequence_table(accuracy_log: int, probabilities: list[int], kind: _SymbolType) -> _SequenceTable:
    codes = kind.codes
    next_states = _next_states(accuracy_log)
    counts = list(map(abs, probabilities))
    entries: list[_Entry] = []
    # States with the same count have the same successors and share the list of these.
    successors: defaultdict[int, list[_Entry]] = defaultdict(list)
    for symbol in _spread(accuracy_log, probabilities):
        count = counts[symbol]
        counts[symbol] = count + 1
        state_bits, state_mask, _ = next_states[count]
        baseline, mask, bits = codes[symbol]
        entries.append((baseline, mask, bits, state_mask, state_bits, bits + state_bits, successors[count]))
    for count, choice in successors.items():
        _, state_mask, first = next_states[count]
        choice += entries[first : first + state_mask + 1]
    return _SequenceTable(accuracy_log, entries)


_MASKS = [(1 << bits) - 1 for bits in range(96)]
_WINDOW_BYTES = 64


def _backward_stream(stream: bytes, what: str) -> int:
    """Number of useful bits of a bitstream that is read from its end (3.1.1.3.2.1.2, 4.2.2)."""
    if not stream or not stream[-1]:
        raise _Corrupt(f"{what} bitstream has no end mark")
    return 8 * len(stream) - 9 + stream[-1].bit_length()


def _execute_sequences(
    content: bytearray,
    window_size: int,
    stop: int,
    literals: bytes,
    stream: bytes,
    number_of_sequences: int,
    tables: tuple[_SequenceTable, _SequenceTable, _SequenceTable],
    repeated_offsets: tuple[int, int, int],
) -> tuple[int, int, int]:
    """Decode the sequences of a block (3.1.1.3.2.1.2) and execute them (3.1.1.4) on `content`.

    The loop is long and calls nothing that it can do itself, because it is where the time goes. Three
    devices: the stream is looked at through a window of some bytes as one integer, all six fields of a
    sequence are cut out of it in one piece; offsets are negative, so that they are slice positions; the four
    bytes under the stream give the last sequence the state bits that it does not have.

    Args:
        content: what the frame has produced so far; grows.
        window_size: Window_Size.
        stop: length of `content` that the block must not go over.
        literals: decoded literals of the block.
        stream: the bitstream.
        number_of_sequences: at least 1.
        tables: for literals length, offset, match length.
        repeated_offsets: the three repeated offsets, negative.

    Returns:
        The repeated offsets after the block.
    """
    below = 4
    total = _backward_stream(stream, "sequences") + 8 * below
    stream = bytes(below) + stream
    masks = _MASKS
    literals_reader = BytesIO(literals + b"\0")  # the further byte shows reading too far
    read_literals = literals_reader.read
    ll_table, of_table, ml_table = tables

    def window_at(position: int) -> tuple[int, int, int]:
        """The bits below a position: as an integer, their number, and the position of the lowest."""
        high = (position + 7) >> 3
        low = max(0, high - _WINDOW_BYTES)
        return int.from_bytes(stream[low:high], "little"), position - 8 * low, 8 * low

    window, available, lowest = window_at(total)
    bits = ll_table.accuracy_log + of_table.accuracy_log + ml_table.accuracy_log
    if bits > total - 8 * below:
        raise _Corrupt("sequences bitstream is too short for its states")
    available -= bits
    field = window >> available & masks[bits]
    ml = ml_table.entries[field & masks[ml_table.accuracy_log]]
    field >>= ml_table.accuracy_log
    of = of_table.entries[field & masks[of_table.accuracy_log]]
    ll = ll_table.entries[field >> of_table.accuracy_log]

    offset1, offset2, offset3 = repeated_offsets
    reach = -min(len(content), window_size)  # the farthest offset that is certainly inside; grows lazily
    of_state_bits = ml_state_bits = ll_state_bits = 0
    for _ in repeat(None, number_of_sequences):
        literals_length, ll_mask, ll_bits, ll_state_mask, ll_state_bits, ll_all, ll_next = ll
        match_length, ml_mask, ml_bits, ml_state_mask, ml_state_bits, ml_all, ml_next = ml
        offset, _of_mask, _of_bits, of_state_mask, of_state_bits, of_all, of_next = of
        bits = ll_all + ml_all + of_all
        available -= bits
        if available < 0:
            window, available, lowest = window_at(lowest + available + bits)
            available -= bits
            if available < 0:
                raise _Corrupt("sequences bitstream is too short")
        field = window >> available & masks[bits]
        # The fields from the lowest up, which is the opposite of the order in which they are read.
        of = of_next[field & of_state_mask]
        field >>= of_state_bits
        ml = ml_next[field & ml_state_mask]
        field >>= ml_state_bits
        ll = ll_next[field & ll_state_mask]
        field >>= ll_state_bits
        if ll_mask:
            literals_length += field & ll_mask
            field >>= ll_bits
        if literals_length:
            content += read_literals(literals_length)
        if ml_mask:
            match_length += field & ml_mask
            field >>= ml_bits
            # Matches without further bits are so short that a test after the loop is early enough.
            if len(content) + match_length > stop:
                raise _OverLimit
        offset -= field
        if offset < 0:
            offset3 = offset2
            offset2 = offset1
            offset1 = offset
        else:
            # 3.1.1.5: Repeat Offsets
            if not literals_length:
                offset -= 1
            if offset == 3:
                offset = offset1
            elif offset == 2:
                offset = offset2
                offset2 = offset1
                offset1 = offset
            else:
                if offset:
                    offset = offset3
                else:
                    offset = offset1 + 1
                    if not offset:
                        raise _Corrupt("offset 0")
                offset3 = offset2
                offset2 = offset1
                offset1 = offset
        if offset < reach:
            reach = -min(len(content), window_size)
            if -offset > len(content):
                raise _Corrupt(f"offset {-offset} reaches before the start of the frame")
            if offset < reach:
                raise _Corrupt(f"offset {-offset} is over Window_Size {window_size}")
        end = offset + match_length
        if end < 0:
            content += content[offset:end]
        else:
            source = content[offset:]
            content += (source * (match_length // len(source) + 1))[:match_length]
    if lowest + available + ll_state_bits + ml_state_bits + of_state_bits != 8 * below:
        raise _Corrupt("sequences bitstream does not end with its last sequence")
    used = literals_reader.tell()
    if used > len(literals):
        raise _Corrupt("sequences need more literals than there are")
    content += literals[used:]
    if len(content) > stop:
        raise _OverLimit
    return offset1, offset2, offset3


# 4.1: FSE


def _fse_table_description(
    data: bytes, max_accuracy_log: int, max_symbols: int, what: str
) -> tuple[int, list[int], int]:
    """4.1.1: FSE Table Description at the start of `data`.

    Returns:
        Accuracy_Log, the probabilities of the symbols from 0 on (-1 is "less than 1"), the size in bytes.
    """
    # No description is longer: symbols of at most 10 bits and their repeat flags.
    bits = int.from_bytes(data[:512], "little")
    accuracy_log = (bits & 15) + 5
    if accuracy_log > max_accuracy_log:
        raise _Corrupt(f"Accuracy_Log {accuracy_log} of the {what} table is over {max_accuracy_log}")
    position = 4
    remaining = 1 << accuracy_log
    probabilities: list[int] = []
    while remaining > 0:
        # Values from 0 to remaining + 1 are possible; the smaller ones take one bit less.
        width = (remaining + 1).bit_length()
        value = bits >> position & (1 << width) - 1
        threshold = (1 << width) - 2 - remaining
        low_value = value & (1 << width - 1) - 1
        if low_value < threshold:
            value = low_value
            position += width - 1
        else:
            if value >= 1 << width - 1:
                value -= threshold
            position += width
        probability = value - 1
        probabilities.append(probability)
        if probability:
            remaining -= abs(probability)
        else:
            flag = 3
            while flag == 3:
                flag = bits >> position & 3
                position += 2
                probabilities += [0] * flag
                if len(probabilities) > max_symbols:
                    break
        if len(probabilities) > max_symbols:
            raise _Corrupt(f"{what} table has more than {max_symbols} symbols")
    size = (position + 7) >> 3
    if size > len(data):
        raise _Corrupt(f"description of the {what} table is cut off")
    return accuracy_log, probabilities, size


@cache
def _walk(accuracy_log: int) -> list[int]:
    """4.1.1: the order in which the states of a table are given to symbols."""
    size = 1 << accuracy_log
    step = (size >> 1) + (size >> 3) + 3
    return [number * step & size - 1 for number in range(size)]


def _spread(accuracy_log: int, probabilities: list[int]) -> list[int]:
    """4.1.1: the symbol of every state."""
    symbols = [0] * (1 << accuracy_log)
    free = len(symbols)
    in_order: list[int] = []
    for symbol, probability in enumerate(probabilities):
        if probability > 0:
            in_order += [symbol] * probability
        elif probability:
            free -= 1
            symbols[free] = symbol
    states = _walk(accuracy_log)
    if free < len(symbols):
        states = [state for state in states if state < free]
    for state, symbol in zip(states, in_order, strict=True):
        symbols[state] = symbol
    return symbols


@cache
def _next_states(accuracy_log: int) -> list[tuple[int, int, int]]:
    """4.1.1: Number_of_Bits, the same as a mask, and Baseline of a state.

    The states of one symbol, in ascending order, count up from its probability, and this count fixes all
    three: the fewer states a symbol has, the more bits choose the next one.
    """
    rows = [(0, 0, 0)]
    for count in range(1, 2 << accuracy_log):
        bits = accuracy_log + 1 - count.bit_length()
        rows.append((bits, (1 << bits) - 1, (count << bits) - (1 << accuracy_log)))
    return rows


# 4.2: Huffman Coding


_MAX_NUMBER_OF_BITS = 11
_SHARES = [1 << weight >> 1 for weight in range(16)]
"""What a symbol of each weight takes of the code space."""


def _huffman_tree_description(data: bytes) -> tuple[list[int], int]:
    """4.2.1: the weights of all symbols from 0 on, and the size of the description in bytes."""
    if not data:
        raise _Corrupt("Huffman_Tree_Description is cut off")
    header = data[0]
    if header < 128:
        size = 1 + header
        weights = _fse_compressed_weights(data[1:size])
    else:
        number_of_weights = header - 127
        size = 1 + (number_of_weights + 1) // 2
        weights = [weight for pair in data[1:size] for weight in (pair >> 4, pair & 15)][:number_of_weights]
    if size > len(data):
        raise _Corrupt("Huffman_Tree_Description is cut off")
    # The last weight is what completes the sum to a power of two.
    total = sum(map(_SHARES.__getitem__, weights))
    max_number_of_bits = total.bit_length()
    if not 0 < max_number_of_bits <= _MAX_NUMBER_OF_BITS:
        raise _Corrupt(f"Huffman codes of up to {max_number_of_bits} bits")
    rest = (1 << max_number_of_bits) - total
    if rest & rest - 1:
        raise _Corrupt("Huffman weights do not add up to a power of two")
    weights.append(rest.bit_length())
    if 1 not in weights:
        raise _Corrupt("no Huffman weight is 1")
    return weights, size


def _fse_compressed_weights(data: bytes) -> list[int]:
    """4.2.1.2: FSE Compression of Huffman Weights."""
    accuracy_log, probabilities, size = _fse_table_description(data, 6, 16, "Huffman weight")
    next_states = _next_states(accuracy_log)
    counts = list(map(abs, probabilities))
    table: list[tuple[int, int, int, int]] = []  # weight, Number_of_Bits, the same as a mask, Baseline
    for weight in _spread(accuracy_log, probabilities):
        count = counts[weight]
        counts[weight] = count + 1
        table.append((weight, *next_states[count]))
    stream = data[size:]
    position = _backward_stream(stream, "Huffman weight") - 2 * accuracy_log
    if position < 0:
        raise _Corrupt("Huffman weight bitstream is too short for its states")
    bits = int.from_bytes(stream, "little")
    states = len(table) - 1
    state1 = bits >> position + accuracy_log & states
    state2 = bits >> position & states
    weights: list[int] = []
    for _ in repeat(None, 128):
        weight, number_of_bits, mask, baseline = table[state1]
        weights.append(weight)
        position -= number_of_bits
        if position < 0:
            weights.append(table[state2][0])
            break
        state1 = baseline + (bits >> position & mask)
        weight, number_of_bits, mask, baseline = table[state2]
        weights.append(weight)
        position -= number_of_bits
        if position < 0:
            weights.append(table[state1][0])
            break
        state2 = baseline + (bits >> position & mask)
    if len(weights) > 255:
        raise _Corrupt("more than 255 Huffman weights")
    return weights


_STEP_BITS = 6
_BASE64_VALUES = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", bytes(range(64))
)
_TRANSDUCER_PAYS = 150
"""Compressed bytes per symbol of the tree from which on building the transducer takes less than it saves."""


class _HuffmanTree:
    """A Huffman tree and the tables that decode with it."""

    def __init__(self, weights: list[int]) -> None:
        # 4.2.1.3: codes are given in ascending order to symbols sorted by weight, then by value.
        symbols = sorted([symbol for symbol, weight in enumerate(weights) if weight], key=weights.__getitem__)
        self.max_number_of_bits = sum(map(_SHARES.__getitem__, weights)).bit_length() - 1
        longest = self.max_number_of_bits + 1
        self.codes = [(symbol, longest - weights[symbol]) for symbol in symbols]
        self.table: list[tuple[int, int]] = []
        self.used = 0
        self.transducer: _Transducer | None = None

    def prepare(self, compressed_size: int) -> None:
        """Choose and build the tables for so many bytes of streams."""
        self.used += compressed_size
        if self.transducer is None and self.used >= _TRANSDUCER_PAYS * len(self.codes):
            self.transducer = _Transducer(self.codes)
        if self.transducer is None and not self.table:
            for code in self.codes:
                self.table += [code] * (1 << self.max_number_of_bits - code[1])

    def decode_stream(self, stream: bytes, regenerated_size: int) -> bytes:
        """4.2.2: one Huffman-Coded Stream."""
        size = _backward_stream(stream, "Huffman")
        if self.transducer is not None:
            literals = self.transducer.decode(stream, size)
            if len(literals) != regenerated_size:
                raise _Corrupt("Huffman bitstream does not end with its last literal")
            return literals
        return self._decode_one_by_one(stream, size, regenerated_size)

    def _decode_one_by_one(self, stream: bytes, size: int, regenerated_size: int) -> bytes:
        table = self.table
        width = self.max_number_of_bits
        mask = (1 << width) - 1
        # Zero bytes under the stream, so that the last codes can be looked up like all others.
        stream = b"\0\0" + stream
        position = size + 16 - width
        literals: list[int] = []
        append = literals.append
        todo = regenerated_size
        while todo:
            # A window of the stream that certainly holds so many codes.
            high = (position + width + 7) >> 3
            low = max(0, high - _WINDOW_BYTES)
            window = int.from_bytes(stream[low:high], "little")
            shift = position - 8 * low
            some = min(todo, shift // width + 1) if low else todo
            todo -= some
            try:
                for _ in repeat(None, some):
                    symbol, bits = table[window >> shift & mask]
                    append(symbol)
                    shift -= bits
            except ValueError:  # a negative shift
                raise _Corrupt("Huffman bitstream is too short") from None
            position = 8 * low + shift
        if position + width != 16:
            raise _Corrupt("Huffman bitstream does not end with its last literal")
        return bytes(literals)


_Row = list[tuple[bytes, "_Row"]]


class _Transducer:
    """Reads a Huffman-coded stream in steps of 6 bits.

    For each inner node of the tree and each 6 bits there is an entry: the literals that these bits complete,
    and the node where they end.
    """

    def __init__(self, codes: list[tuple[int, int]]) -> None:
        # Inner nodes, from the longest codes up. A child is a symbol or, negative, ~number of an inner node.
        nodes: list[tuple[int, int]] = []
        level: list[int] = []
        depth = codes[0][1]
        at = 0
        while depth:
            while at < len(codes) and codes[at][1] == depth:
                level.append(codes[at][0])
                at += 1
            pairs = list(zip(level[::2], level[1::2], strict=True))
            level = [~number for number in range(len(nodes), len(nodes) + len(pairs))]
            nodes += pairs
            depth -= 1
        self.root = len(nodes) - 1
        # Tables for steps of 0, 1, ... bits: a longer step is one bit and then a shorter step.
        outputs = [[b""] for _ in nodes]
        targets = [[number] for number in range(len(nodes))]
        self.steps = [(outputs, targets)]
        for _ in range(_STEP_BITS):
            from_root, root_targets = outputs[self.root], targets[self.root]
            next_outputs: list[list[bytes]] = []
            next_targets: list[list[int]] = []
            for children in nodes:
                output: list[bytes] = []
                target: list[int] = []
                for child in children:
                    if child < 0:
                        output += outputs[~child]
                        target += targets[~child]
                    else:
                        literal = bytes((child,))
                        output += [literal + more for more in from_root]
                        target += root_targets
                next_outputs.append(output)
                next_targets.append(target)
            outputs, targets = next_outputs, next_targets
            self.steps.append((outputs, targets))
        # For the full step, each entry leads directly to the row of the node where it ends.
        self.rows: list[_Row] = [[] for _ in nodes]
        for row, output, target in zip(self.rows, outputs, targets, strict=True):
            row += zip(output, map(self.rows.__getitem__, target), strict=True)

    def __del__(self) -> None:
        # The rows form cycles, which would otherwise wait for the garbage collector.
        for row in self.rows:
            row.clear()

    def decode(self, stream: bytes, size: int) -> bytes:
        """All literals of a stream of `size` bits."""
        # First bit read = highest bit. Base64 cuts bytes into pieces of 6 bits.
        bits = int.from_bytes(stream, "little") ^ 1 << size
        whole, left = divmod(size, _STEP_BITS)
        quads = (whole + 3) // 4
        padded = (bits >> left) << (24 * quads - _STEP_BITS * whole)
        pieces = b2a_base64(padded.to_bytes(3 * quads, "big"), newline=False).translate(_BASE64_VALUES)
        literals: list[bytes] = []
        append = literals.append
        row = self.rows[self.root]
        for piece in pieces[:whole]:
            output, row = row[piece]
            append(output)
        node = next(number for number, candidate in enumerate(self.rows) if candidate is row)
        last_outputs, last_targets = self.steps[left]
        last = bits & (1 << left) - 1
        append(last_outputs[node][last])
        if last_targets[node][last] != self.root:
            raise _Corrupt("Huffman bitstream ends inside a code")
        return b"".join(literals)


# XXH64, for Content_Checksum (3.1.1)


_PRIME64_1 = 0x9E3779B185EBCA87
_PRIME64_2 = 0xC2B2AE3D27D4EB4F
_PRIME64_3 = 0x165667B19E3779F9
_PRIME64_4 = 0x85EBCA77C2B2AE63
_PRIME64_5 = 0x27D4EB2F165667C5
_MASK64 = 2**64 - 1
_STRIPE = 32
_PIECE_STRIPES = 512


def xxh64(data: bytes | bytearray | memoryview, seed: int = 0) -> int:
    """The 64-bit xxHash of a bytes-like object (xxHash specification 0.1.1, XXH64 algorithm).

    Args:
        data: any length.
        seed: 0 to 2^64 - 1.
    """
    view = memoryview(data)
    view = view.cast("B") if view.nbytes else memoryview(b"")
    length = len(view)
    # Step 1 and 2: four accumulators, here in one integer, 128 bits apart, so that products have room.
    stripes = length // _STRIPE
    if stripes:
        accumulator = _accumulate(view[: stripes * _STRIPE], seed)
        lanes = [accumulator >> shift & _MASK64 for shift in (0, 128, 256, 384)]
        # Step 3: accumulator convergence
        result = (
            sum(_rotate_left(lane, count) for lane, count in zip(lanes, (1, 7, 12, 18), strict=True))
            & _MASK64
        )
        for lane in lanes:
            result ^= _rotate_left(lane * _PRIME64_2 & _MASK64, 31) * _PRIME64_1 & _MASK64
            result = (result * _PRIME64_1 + _PRIME64_4) & _MASK64
    else:
        result = (seed + _PRIME64_5) & _MASK64
    # Step 4: add the length
    result = (result + length) & _MASK64
    # Step 5: the rest of the input
    rest = bytes(view[stripes * _STRIPE :])
    at = 0
    while at + 8 <= len(rest):
        lane = int.from_bytes(rest[at : at + 8], "little")
        result ^= _rotate_left(lane * _PRIME64_2 & _MASK64, 31) * _PRIME64_1 & _MASK64
        result = (_rotate_left(result, 27) * _PRIME64_1 + _PRIME64_4) & _MASK64
        at += 8
    if at + 4 <= len(rest):
        result ^= int.from_bytes(rest[at : at + 4], "little") * _PRIME64_1 & _MASK64
        result = (_rotate_left(result, 23) * _PRIME64_2 + _PRIME64_3) & _MASK64
        at += 4
    for byte in rest[at:]:
        result ^= byte * _PRIME64_5 & _MASK64
        result = _rotate_left(result, 11) * _PRIME64_1 & _MASK64
    # Step 6: final mix
    result = (result ^ result >> 33) * _PRIME64_2 & _MASK64
    result = (result ^ result >> 29) * _PRIME64_3 & _MASK64
    return result ^ result >> 32


def _rotate_left(value: int, count: int) -> int:
    return (value << count | value >> 64 - count) & _MASK64


def _lanes(values: list[int]) -> int:
    return sum(value << 128 * number for number, value in enumerate(values))


@lru_cache(maxsize=4)
def _lane_mask(lanes: int) -> int:
    return int.from_bytes((b"\xff" * 8 + b"\0" * 8) * lanes, "little")


def _accumulate(stripes: memoryview, seed: int) -> int:
    """Steps 1 and 2: the four accumulators after all whole stripes, 128 bits apart."""
    mask = _lane_mask(4)
    prime = _PRIME64_1
    from_bytes = int.from_bytes
    accumulator = _lanes(
        [
            (seed + _PRIME64_1 + _PRIME64_2) & _MASK64,
            (seed + _PRIME64_2) & _MASK64,
            seed,
            (seed - _PRIME64_1) & _MASK64,
        ]
    )
    for start in range(0, len(stripes), _STRIPE * _PIECE_STRIPES):
        piece = stripes[start : start + _STRIPE * _PIECE_STRIPES]
        # Spread the 8-byte words to 16 bytes each and multiply all of them at once.
        spread = bytearray(2 * len(piece))
        memoryview(spread).cast("Q")[::2] = piece.cast("Q")
        words = int.from_bytes(spread, "little")
        products = (words * _PRIME64_2 & _lane_mask(len(spread) // 16)).to_bytes(len(spread), "little")
        for (stripe,) in iter_unpack("64s", products):
            accumulator = accumulator + from_bytes(stripe, "little") & mask
            # Doubled into the free upper half, a word can be rotated by one shift.
            accumulator = ((accumulator | accumulator << 64) >> 33 & mask) * prime & mask
    return accumulator
