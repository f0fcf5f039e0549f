"""Loose Git objects: one zlib-compressed file an object.

``objects/ab/cdef...`` holds the object whose name in hexadecimal is ``abcdef...``. Inflated, it is exactly
what is hashed to give that name: ``kind SP length-in-decimal NUL content``. Nothing may follow the content
within the stream, nor anything the stream within the file.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

from reader.git_files import Fingerprint, Irregular, fingerprint_of, open_directory, open_file
from reader.git_objects import KINDS, LimitExceeded, Malformed, StoreChanged
from reader.git_packs import Tick

_FIRST = 1 << 13
_CHUNK = 1 << 17
_MAX_HEADER = 32
_MAX_OPEN_DIRECTORIES = 64


def parse_header(begin: bytes) -> tuple[bytes, int, int]:
    """Kind, size and length of the header at the beginning of an inflated loose object. Raises Malformed."""
    end = begin.find(b"\0", 0, _MAX_HEADER)
    if end < 0:
        raise Malformed("a loose object has no header")
    kind, space, size = begin[:end].partition(b" ")
    if kind not in KINDS or not space:
        raise Malformed("a loose object is of no known kind")
    if not size.isdigit() or (size[:1] == b"0" and size != b"0"):
        raise Malformed("a loose object has no proper size")
    if int(size) >> 63:
        raise Malformed("a loose object has an impossible size")
    return kind, int(size), end + 1


class LooseObjects:
    """Reads loose objects below an open ``objects`` directory."""

    def __init__(self, objects: int, tick: Tick) -> None:
        self._objects = objects
        self._tick = tick
        self._directories: dict[bytes, int | None] = {}

    def close(self) -> None:
        """Close the directories that were opened."""
        for descriptor in self._directories.values():
            if descriptor is not None:
                os.close(descriptor)
        self._directories.clear()

    def info(self, name: bytes) -> tuple[bytes, int] | None:
        """Kind and size that a loose object is said to have; None when there is none of that name.

        Raises Malformed, Irregular.
        """
        opened = self._open(name)
        if opened is None:
            return None
        descriptor, before = opened
        try:
            stream = zlib.decompressobj()
            begin = b""
            # Empty blocks give no output: a few chunks are read before this counts as no header.
            for chunk in self._chunks(descriptor, 512):
                begin += stream.decompress(chunk, _MAX_HEADER - len(begin))
                if b"\0" in begin or len(begin) >= _MAX_HEADER or stream.eof:
                    break
            kind, size, _ = parse_header(begin)
            return kind, size
        except (zlib.error, Malformed) as error:
            raise self._fault(error, descriptor, before) from None
        finally:
            os.close(descriptor)

    def read(self, name: bytes, limit: int) -> tuple[bytes, bytes] | None:
        """Kind and content of a loose object; None when there is none of that name.

        ``limit`` bounds its size in bytes. Raises Malformed, LimitExceeded, Irregular.
        """
        opened = self._open(name)
        if opened is None:
            return None
        descriptor, before = opened
        try:
            return self._decode(self._chunks(descriptor, _FIRST), limit)
        except (zlib.error, Malformed) as error:
            raise self._fault(error, descriptor, before) from None
        finally:
            os.close(descriptor)

    def _decode(self, chunks: Iterator[bytes], limit: int) -> tuple[bytes, bytes]:
        stream = zlib.decompressobj()
        begin = b""
        while not stream.eof and len(begin) < _MAX_HEADER and (chunk := next(chunks, b"")):
            begin += stream.decompress(chunk, _FIRST * 4)
        kind, size, start = parse_header(begin)
        if size > limit:
            raise LimitExceeded(
                "bound_object_bytes", f"an object of {size} bytes is over the bound of {limit}"
            )
        produced = len(begin) - start
        parts = [begin[start:]]
        while not stream.eof and produced <= size:
            self._tick()
            chunk = stream.unconsumed_tail or next(chunks, b"")
            if not chunk:
                raise Malformed("a loose object ends early")
            part = stream.decompress(chunk, size + 1 - produced)
            produced += len(part)
            parts.append(part)
        if produced != size:
            raise Malformed("a loose object is not as long as its header says")
        if stream.unused_data or next(chunks, b""):
            raise Malformed("a loose object's file goes on after its content")
        return kind, parts[0] if len(parts) == 1 else b"".join(parts)

    def _chunks(self, descriptor: int, first: int) -> Iterator[bytes]:
        size = first
        while chunk := os.read(descriptor, size):
            yield chunk
            self._tick()
            size = _CHUNK

    def _open(self, name: bytes) -> tuple[int, os.stat_result] | None:
        text = name.hex().encode()
        first = text[:2]
        if first not in self._directories:
            if len(self._directories) >= _MAX_OPEN_DIRECTORIES:
                self.close()
            self._directories[first] = open_directory(self._objects, first)
        directory = self._directories[first]
        return None if directory is None else open_file(directory, text[2:])

    @staticmethod
    def _fault(error: Exception, descriptor: int, before: os.stat_result) -> Exception:
        """The error to raise: a file that changes under the reader says nothing about the object."""
        now: Fingerprint = fingerprint_of(os.fstat(descriptor))
        if now != fingerprint_of(before):
            return StoreChanged("a loose object changed while it was read")
        if isinstance(error, Malformed):
            return error
        return Malformed(f"a loose object is damaged ({error})")


__all__ = ["Irregular", "LooseObjects", "parse_header"]
