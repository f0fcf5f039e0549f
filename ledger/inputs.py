"""Where events come from: files, run directories and pipes, plain or compressed, read in bounded pieces.

Nothing here trusts a file: links inside a run directory are not followed, only regular files are read, a
line is never held beyond its bound, a compressed file may not expand without end, and a file that changes
while it is read is refused as a whole.
"""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Literal, NamedTuple

from ledger.decode import one_line
from ledger.errors import OakledgerError
from ledger.events import MAX_EVENT_BYTES

#: What a file in a run directory must end with to be read.
SUFFIXES = tuple(base + packed for base in (".ndjson", ".jsonl") for packed in ("", ".gz", ".zst"))

#: Bytes of one block of lines.
BLOCK_BYTES = 4 << 20

#: How deep a run directory is searched.
MAX_FOLDER_DEPTH = 32

#: A compressed file may expand to FREE_EXPANSION bytes, and beyond that to so many times its own size.
FREE_EXPANSION = 256 << 20
MAX_EXPANSION = 200

_MAX_ZSTD_WINDOW = 128 << 20
# A zstd block of 4 bytes can mean 128 KiB, so a step of this size yields at most 32 MiB.
_ZSTD_STEP = 1 << 10

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGICS = (b"\x28\xb5\x2f\xfd", *(bytes([n]) + b"\x2a\x4d\x18" for n in range(0x50, 0x60)))


class UnreadableError(OakledgerError):
    """A file that cannot be read, or not as what it says it is."""


class Block(NamedTuple):
    """Whole lines, or one line that is bad before anybody looks at its text.

    `line` is the number of the first line, counted from 1; `data` ends with a newline unless `problem` says
    what is wrong with the line.
    """

    line: int
    data: bytes
    problem: str | None = None


def shown(path: str | bytes) -> str:
    """Return a path as one printable line; bytes that are no UTF-8 and control characters are escaped."""
    raw = os.fsencode(path)
    return one_line(raw.decode("utf-8", "backslashreplace"), 1000)


@dataclass(frozen=True)
class Input:
    """A `file` that was named, one found `inside` a named directory, or a `pipe` (`-` or a FIFO)."""

    path: str
    how: Literal["file", "inside", "pipe"]


@dataclass
class Found:
    """The files to read, in order, and the links and special files inside run directories left alone."""

    files: list[Input] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def find(paths: tuple[str, ...]) -> Found:
    """Resolve arguments to files; `-` stays. Files of a run directory come sorted by path.

    Raises UnreadableError for a path that is not there or a directory without event files.
    """
    found = Found()
    for path in paths:
        if path == "-":
            found.files.append(Input(path, "pipe"))
            continue
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError) as e:
            reason = e.strerror if isinstance(e, OSError) else str(e)
            raise UnreadableError(f"{shown(path)} cannot be read ({reason}): check the path") from e
        if not stat.S_ISDIR(mode):
            found.files.append(Input(path, "pipe" if stat.S_ISFIFO(mode) else "file"))
            continue
        inside = sorted(_walk(path, 0, found.skipped), key=os.fsencode)
        if not inside:
            raise UnreadableError(
                f"{shown(path)} is a directory without event files: "
                f"it needs some that end with {', '.join(SUFFIXES)}"
            )
        found.files.extend(Input(file, "inside") for file in inside)
    return found


def _walk(folder: str, depth: int, skipped: list[str]) -> Iterator[str]:
    if depth > MAX_FOLDER_DEPTH:
        raise UnreadableError(
            f"{shown(folder)} is more than {MAX_FOLDER_DEPTH} folders deep: name a folder inside"
        )
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError as e:
        raise UnreadableError(f"{shown(folder)} cannot be read ({e.strerror}): check its permissions") from e
    for entry in listed:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, depth + 1, skipped)
        elif entry.name.endswith(SUFFIXES) and not entry.name.startswith("."):
            if entry.is_file(follow_symlinks=False):
                yield entry.path
            else:
                skipped.append(entry.path)


class InputFile:
    """One file being read. Use as a context manager.

    Raises UnreadableError when it cannot be opened or is no regular file.
    """

    def __init__(self, source: Input) -> None:
        self.path = path = source.path
        # O_NONBLOCK: a FIFO put in the file's place must not hang the reader.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        if source.how == "inside":
            flags |= os.O_NOFOLLOW
        try:
            fd = os.open(path, flags)
        except OSError as e:
            raise UnreadableError(
                f"{shown(path)} cannot be read ({e.strerror}): check its permissions"
            ) from e
        self._before = os.fstat(fd)
        if not stat.S_ISREG(self._before.st_mode):
            os.close(fd)
            raise UnreadableError(f"{shown(path)} is no regular file: name a file, a directory or -")
        self._file: IO[bytes] = os.fdopen(fd, "rb", buffering=0)
        self.size = self._before.st_size

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._file.tell()

    def blocks(self) -> Iterator[Block]:
        """Read the lines in blocks. Raises UnreadableError when the file is not what its bytes promise."""
        yield from _blocks(self._chunks())

    def refuse_change(self) -> None:
        """Raise UnreadableError when the file is not what it was when it was opened."""
        after = os.fstat(self._file.fileno())
        try:
            named = os.stat(self.path)
        except OSError:
            named = None
        if (after.st_size, after.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns) or (
            named is None or (named.st_dev, named.st_ino) != (after.st_dev, after.st_ino)
        ):
            raise UnreadableError(
                f"{shown(self.path)} changed while it was read: ingest it again when its producer is done"
            )

    def _chunks(self) -> Iterator[bytes]:
        magic = self._file.read(4)
        self._file.seek(0)
        packed = self.path.rpartition(".")[2]
        try:
            if magic.startswith(_GZIP_MAGIC):
                yield from self._bounded(self._gzip())
            elif magic in _ZSTD_MAGICS:
                yield from self._bounded(self._zstd())
            elif packed in ("gz", "zst"):
                raise UnreadableError(
                    f"{shown(self.path)} ends with .{packed} and is not compressed so: "
                    "write it again, or rename it if it is plain text"
                )
            else:
                while chunk := self._file.read(BLOCK_BYTES):
                    yield chunk
        except (EOFError, zlib.error, gzip.BadGzipFile) as e:
            raise UnreadableError(
                f"{shown(self.path)} is no whole gzip file ({one_line(str(e))}): write it again"
            ) from e
        except OSError as e:
            raise UnreadableError(f"{shown(self.path)} cannot be read ({e.strerror}): try again") from e

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        limit = FREE_EXPANSION + MAX_EXPANSION * self.size
        total = 0
        for chunk in chunks:
            total += len(chunk)
            if total > limit:
                raise UnreadableError(
                    f"{shown(self.path)} expands to more than {limit >> 20} MiB: "
                    "unpack it yourself and look at it first"
                )
            yield chunk

    def _gzip(self) -> Iterator[bytes]:
        with gzip.GzipFile(fileobj=self._file, mode="rb") as stream:
            while chunk := stream.read(BLOCK_BYTES):
                yield chunk

    def _zstd(self) -> Iterator[bytes]:
        try:
            import zstandard
        except ImportError as e:
            raise UnreadableError(
                f"{shown(self.path)} is zstd-compressed and the package zstandard is not installed: "
                "pip install 'oakledger[zstd]', or unpack the file"
            ) from e
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
        frame = decompressor.decompressobj()
        begun = False  # whether the frame has got any bytes
        gathered: list[bytes] = []
        size = 0
        try:
            while raw := self._file.read(BLOCK_BYTES):
                offset = 0
                while offset < len(raw):
                    piece = raw[offset : offset + _ZSTD_STEP]
                    offset += len(piece)
                    out = frame.decompress(piece)
                    begun = True
                    if frame.eof:
                        offset -= len(frame.unused_data)
                        frame, begun = decompressor.decompressobj(), False
                    if out:
                        gathered.append(out)
                        size += len(out)
                    if size >= BLOCK_BYTES:
                        yield b"".join(gathered)
                        gathered, size = [], 0
        except zstandard.ZstdError as e:
            raise UnreadableError(
                f"{shown(self.path)} is no good zstd file ({one_line(str(e))}): write it again"
            ) from e
        if begun:
            raise UnreadableError(f"{shown(self.path)} is no whole zstd file (it ends early): write it again")
        if gathered:
            yield b"".join(gathered)


def _blocks(chunks: Iterator[bytes]) -> Iterator[Block]:
    line, rest, overlong = 1, b"", 0
    for chunk in chunks:
        if overlong:
            cut = chunk.find(b"\n")
            if cut < 0:
                overlong += len(chunk)
                continue
            yield Block(line, b"", _overlong(overlong + cut))
            line, overlong, chunk = line + 1, 0, chunk[cut + 1 :]
        data = rest + chunk
        cut = data.rfind(b"\n") + 1
        whole, rest = data[:cut], data[cut:]
        if whole:
            yield Block(line, whole)
            line += whole.count(b"\n")
        if len(rest) > MAX_EVENT_BYTES:
            overlong, rest = len(rest), b""
    if overlong:
        yield Block(line, b"", _overlong(overlong))
    elif rest.strip():
        yield Block(
            line, rest, "the last line has no newline, its write was cut short: let the producer finish it"
        )


def _overlong(length: int) -> str:
    return f"{length} bytes in one line: an event or row has at most {MAX_EVENT_BYTES}"


class PipeCopy:
    """A private copy of what comes by a pipe, so that it can be checked as a whole before any of it counts.

    Use as a context manager. The copy is removed at the end unless `keep` was called.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.folder = tempfile.mkdtemp(prefix="oakledger-pipe-")
        self.path = os.path.join(self.folder, "input.ndjson")
        self._kept = False
        try:
            with open(self.path, "xb") as copy:
                while chunk := stream.read(1 << 20):
                    copy.write(chunk)
        except OSError as e:
            self.__exit__()
            raise UnreadableError(
                f"the pipe could not be copied to {self.folder} ({e.strerror}): "
                "set TMPDIR to a folder with more space"
            ) from e
        except BaseException:
            self.__exit__()
            raise

    def keep(self) -> str:
        """Leave the copy in place, because not all of it was taken in, and return its path."""
        self._kept = True
        return self.path

    def __enter__(self) -> PipeCopy:
        return self

    def __exit__(self, *_: object) -> None:
        if self._kept:
            return
        if os.path.lexists(self.path):
            os.unlink(self.path)
        os.rmdir(self.folder)
