"""Oak's object format v1: hashes, commit preimages, timestamps, canonical trees, zstd frame headers.

Standard library only; used by the isolated script `oak_sqlite_reader.py`. Pure functions on bytes:
nothing here opens a file. The facts are those of Oak's own sources; where Oak is lenient in daily use and
strict in its inspector, this is as strict as the inspector.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

EMPTY_HASH = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
"""BLAKE3 of nothing: the empty blob and the empty tree, both of which exist without a row."""

ZSTD_MAX_WINDOW = 8 * 1024 * 1024
"""Largest window that is decoded, in bytes: the limit of Oak's inspector (window log 23)."""

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

_HASH = re.compile(rb"[0-9a-f]{64}", re.ASCII)
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]")
_TREE_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")
_TREE_LINE = re.compile(
    rb"(?:(tree)\t([^\t\n/]+)\t([0-9a-f]{64})\ttree|blob\t([^\t\n/]+)\t([0-9a-f]{64})\t(regular|executable|symlink))"
)
_TIMESTAMP = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    rb"(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))"
)
_MODES = {b"regular": 0o100644, b"executable": 0o100755, b"symlink": 0o120000}

MODE_TREE = 0o040000


class Malformed(ValueError):
    """Bytes that are not what Oak's format says. The message says what is wrong with them."""


def parse_hash(text: bytes) -> str:
    """An object id: exactly 64 lower-case hexadecimal digits. Raises `Malformed`."""
    if not _HASH.fullmatch(text):
        raise Malformed("not 64 lower-case hexadecimal digits")
    return text.decode("ascii")


# --- Timestamps -----------------------------------------------------------------------------------


class Timestamp(NamedTuple):
    """An instant: seconds since 1970-01-01T00:00:00 UTC, and nanoseconds of the second."""

    seconds: int
    nanoseconds: int


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the proleptic Gregorian calendar; the year begins in March to put leap days
    last.
    """
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def _civil_from_days(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def parse_timestamp(text: bytes) -> Timestamp:
    """Read an RFC 3339 time in any offset and precision, as Oak does before it hashes. Raises `Malformed`.

    Digits beyond nanoseconds are dropped. Leap seconds and years outside 0000..9999 are refused.
    """
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise Malformed("not an RFC 3339 time")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    leap_year = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap_year else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if not (
        1 <= month <= 12 and 1 <= day <= lengths[month - 1] and hour < 24 and minute < 60 and second < 60
    ):
        raise Malformed("no such time")
    offset = 0
    if match[9]:
        offset_hour, offset_minute = int(match[10]), int(match[11])
        if offset_hour > 23 or offset_minute > 59:
            raise Malformed("no such offset")
        offset = (offset_hour * 3600 + offset_minute * 60) * (-1 if match[9] == b"-" else 1)
    seconds = _days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    if not 0 <= _civil_from_days(seconds // 86_400)[0] <= 9999:
        raise Malformed("year outside 0000..9999")
    return Timestamp(seconds, int((match[7] or b"").ljust(9, b"0")[:9]))


def render_timestamp(time: Timestamp) -> bytes:
    """The text that Oak hashes: UTC as `+00:00`, and 0, 3, 6 or 9 digits of fraction."""
    days, rest = divmod(time.seconds, 86_400)
    year, month, day = _civil_from_days(days)
    text = f"{year:04d}-{month:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    if time.nanoseconds:
        digits = f"{time.nanoseconds:09d}"
        if time.nanoseconds % 1_000_000 == 0:
            digits = digits[:3]
        elif time.nanoseconds % 1_000 == 0:
            digits = digits[:6]
        text += "." + digits
    return f"{text}+00:00".encode("ascii")


# --- Commits --------------------------------------------------------------------------------------


class Commit(NamedTuple):
    """A checked row of `commits`. Hashes are hex text; author, branch name and message are UTF-8 bytes."""

    branch_name: bytes
    parent: str | None
    merge_parent: str | None
    manifest: str
    author: bytes
    message: bytes
    time: Timestamp


def check_commit(
    branch_name: bytes,
    parent: bytes | None,
    merge_parent: bytes | None,
    manifest: bytes,
    author: bytes,
    message: bytes | None,
    timestamp: bytes,
) -> Commit:
    """The row as a commit that could reproduce its hash. Raises `Malformed` where Oak's verification
    refuses it.

    An empty parent is malformed, a NULL one absent; NULL and empty messages hash alike.
    """
    for what, text in (("branch_name", branch_name), ("author", author), ("message", message or b"")):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            raise Malformed(f"{what} is not UTF-8") from None
        if what != "message" and _CONTROL.search(text):
            raise Malformed(f"{what} holds a control character")
    return Commit(
        branch_name,
        None if parent is None else parse_hash(parent),
        None if merge_parent is None else parse_hash(merge_parent),
        parse_hash(manifest),
        author,
        message or b"",
        parse_timestamp(timestamp),
    )


def preimage(commit: Commit, time: Timestamp) -> bytes:
    """The seven fields that a v1 commit hash covers, joined by newlines, with `time` as the timestamp."""
    fields = (
        commit.branch_name,
        (commit.parent or "").encode("ascii"),
        (commit.merge_parent or "").encode("ascii"),
        commit.manifest.encode("ascii"),
        commit.author,
        commit.message,
        render_timestamp(time),
    )
    return b"\n".join(fields)


def legacy_preimage(commit: Commit) -> bytes | None:
    """The six fields of commits made before about April 2026; None for a commit with two parents, which
    never had it.
    """
    if commit.merge_parent is not None:
        return None
    fields = (
        commit.branch_name,
        (commit.parent or "").encode("ascii"),
        commit.manifest.encode("ascii"),
        commit.author,
        commit.message,
        render_timestamp(commit.time),
    )
    return b"\n".join(fields)


def truncated_preimages(commit: Commit) -> list[bytes]:
    """Preimages with the 1..999 ns that a server's microsecond column may have cut off; none if it has
    nanoseconds.
    """
    if commit.time.nanoseconds % 1000:
        return []
    seconds, nanoseconds = commit.time
    return [preimage(commit, Timestamp(seconds, nanoseconds + tail)) for tail in range(1, 1000)]


def commit_form(
    commit: Commit, wanted: bytes, digest_many: Callable[[Sequence[bytes]], Sequence[bytes]]
) -> str | None:
    """How the commit reproduces the hash `wanted`, in Oak's order: `v1`, `v1_recovered`, `v1_legacy`, or
    None.
    """
    if digest_many([preimage(commit, commit.time)])[0] == wanted:
        return "v1"
    candidates = truncated_preimages(commit)
    if candidates and wanted in digest_many(candidates):
        return "v1_recovered"
    legacy = legacy_preimage(commit)
    if legacy is not None and digest_many([legacy])[0] == wanted:
        return "v1_legacy"
    return None


# --- Trees ----------------------------------------------------------------------------------------


def parse_tree(data: bytes, make: Callable[[bytes, int, str], Any] = lambda *entry: entry) -> list[Any]:
    """What `make` makes of name, Git-style mode and hash of each entry of a canonical tree.

    Raises `Malformed` for any other bytes.

    Canonical: lines of kind, name, hash, mode separated by tabs, no newline at the end; names strictly
    ascending by bytes, UTF-8, without control characters or slashes, neither `.` nor `..`; only the four
    kind and mode pairs.
    """
    if not data:
        return []
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("a tree is not UTF-8") from None
    if _TREE_CONTROL.search(data):
        raise Malformed("a tree name holds a control character")
    entries: list[Any] = []
    last = b""
    for line in data.split(b"\n"):
        match = _TREE_LINE.fullmatch(line)
        if not match:
            raise Malformed("a tree line is malformed")
        if match[1]:
            name, mode, object_id = match[2], MODE_TREE, match[3]
        else:
            name, mode, object_id = match[4], _MODES[match[6]], match[5]
        if name <= last:
            raise Malformed("tree entries are not in strict order")
        if name in (b".", b".."):
            raise Malformed("a tree entry is named . or ..")
        last = name
        entries.append(make(name, mode, object_id.decode("ascii")))
    return entries


def join_tree(rows: Iterable[tuple[bytes, bytes, bytes, bytes]]) -> bytes:
    """The bytes that the legacy rows (name, kind, hash, mode) of one tree hash to; a directory's mode is
    ignored.
    """
    return b"\n".join(
        b"\t".join((kind, name, object_id, b"tree" if kind == b"tree" else mode))
        for name, kind, object_id, mode in sorted(rows)
    )


# --- zstd frames, from the outside ----------------------------------------------------------------


class Unsupported(ValueError):
    """A zstd frame that needs a dictionary or a window over `ZSTD_MAX_WINDOW`."""


class OutputLimit(ValueError):
    """Decoded output is longer than the caller allows."""


def check_frames(data: bytes) -> None:
    """Walk the frame and block headers of zstd data (RFC 8878, sections 3.1.1 and 3.1.2) without decoding
    anything.

    Raises `Unsupported` for a dictionary or a window that is too large, `Malformed` when a header is
    wrong or the data ends before its last frame does. Data without any frame is malformed.
    """
    position, end = 0, len(data)
    if not end:
        raise Malformed("no zstd frame")
    while position < end:
        magic = int.from_bytes(data[position : position + 4], "little")
        if position + 4 > end:
            raise Malformed("bytes after the last zstd frame")
        position += 4
        if 0x184D2A50 <= magic <= 0x184D2A5F:
            if position + 4 > end:
                raise Malformed("a skippable frame is cut off")
            position += 4 + int.from_bytes(data[position : position + 4], "little")
        elif magic == 0xFD2FB528:
            position = _check_frame(data, position)
        else:
            raise Malformed("not a zstd frame")
        if position > end:
            raise Malformed("a zstd frame is cut off")


def _check_frame(data: bytes, position: int) -> int:
    """Position after the frame whose header begins at `position`; may lie beyond the end."""

    def number(length: int) -> int:
        nonlocal position
        if position + length > len(data):
            raise Malformed("a zstd frame is cut off")
        position += length
        return int.from_bytes(data[position - length : position], "little")

    descriptor = number(1)
    if descriptor & 0x08:
        raise Malformed("a reserved bit is set in a zstd frame")
    single_segment = bool(descriptor & 0x20)
    window = 0
    if not single_segment:
        exponent, mantissa = divmod(number(1), 8)
        base = 1 << (10 + exponent)
        window = base + base // 8 * mantissa
    dictionary = number((0, 1, 2, 4)[descriptor & 3])
    size_length = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    content_size = number(size_length) + (256 if size_length == 2 else 0)
    if dictionary:
        raise Unsupported("a zstd frame needs a dictionary")
    if (content_size if single_segment else window) > ZSTD_MAX_WINDOW:
        raise Unsupported(f"a zstd frame needs a window of more than {ZSTD_MAX_WINDOW} bytes")
    last = False
    while not last:
        block = number(3)
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        if kind == 3:
            raise Malformed("a zstd block has the reserved type")
        position += 1 if kind == 1 else size
    return position + (4 if descriptor & 4 else 0)
