"""Git references: from ``HEAD`` to the name of a commit.

* ``HEAD`` and every loose reference is a small file: either a full object name in hexadecimal, or ``ref:``
  and the name of another reference. White space may follow, nothing else.
* ``packed-refs`` holds the references that have no file of their own: a line ``HEX SP name`` each. A line
  ``^HEX`` after it gives what an annotated tag leads to, lines with ``#`` are comments; one at the top lists
  traits, such as ``sorted``.

A loose file hides the packed reference of the same name. A directory where the file would be, or a file where
a directory above it would be, hides nothing. ``HEAD`` is read once; nothing is looked up by abbreviation or
by the search rules that Git applies to what people type.
"""

from __future__ import annotations

import os
import re
import stat
from typing import NamedTuple

from reader.git_files import Irregular, TooLong, kind_of, look, open_directory, printable, read_file
from reader.git_objects import ObjectFormat

MAX_DEPTH = 5
"""References that are read on the way from HEAD, as in Git."""

MAX_REF_BYTES = 4096
MAX_PACKED_BYTES = 256 << 20

_BAD_IN_NAME = re.compile(rb"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.(?:/|$)|\.lock(?:/|$)|/$", re.DOTALL)


class RefFault(Exception):
    """HEAD does not lead to an object name; ``reason`` is the reason code of the report."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def is_ref_name(name: bytes) -> bool:
    """Whether a symbolic HEAD may lead there: below ``refs/``, and well formed as a reference."""
    return name.startswith(b"refs/") and len(name) > 5 and len(name) <= 1024 and not _BAD_IN_NAME.search(name)


def parse_ref(content: bytes, object_format: ObjectFormat) -> tuple[bytes | None, bytes | None]:
    """What a reference's file holds: a raw object name, or the name of another reference (the other is None).

    Raises RefFault ``malformed_head``.
    """
    if b"\0" in content:
        raise RefFault("malformed_head", "a reference holds a NUL byte")
    if content.startswith(b"ref:"):
        target = content[4:].strip(b" \t\n\r\v\f")
        if not is_ref_name(target):
            raise RefFault("malformed_head", "a symbolic reference leads to no valid reference name")
        return None, target
    text = content.rstrip(b" \t\n\r\v\f")
    name = object_format.parse_hex(text)
    if name is None:
        raise RefFault(
            "malformed_head", f"a reference holds no full {object_format.name} object name, or more than that"
        )
    if not any(name):
        raise RefFault("malformed_head", "a reference holds the null object name")
    return name, None


def find_packed(content: bytes, wanted: bytes, object_format: ObjectFormat) -> bytes | None:
    """Raw object name that a ``packed-refs`` file gives for a reference; None when it has none.

    The whole file is checked, for a line out of place can change what a lenient reader finds. Raises RefFault
    ``malformed_head``.
    """
    if content and not content.endswith(b"\n"):
        raise RefFault("malformed_head", "packed-refs ends within a line")
    found: bytes | None = None
    width = object_format.hex_size
    after_ref = False
    claims_order = False
    previous = b""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if line.startswith(b"#"):
            if number == 1 and line.startswith(b"# pack-refs with:"):
                claims_order = b"sorted" in line.split()
            after_ref = False
            continue
        if line.startswith(b"^"):
            if not after_ref or object_format.parse_hex(line[1:]) is None:
                raise RefFault(
                    "malformed_head", f"packed-refs has a peeled line out of place (line {number})"
                )
            after_ref = False
            continue
        name, ref = object_format.parse_hex(line[:width]), line[width + 1 :]
        if name is None or line[width : width + 1] != b" " or not ref or b"\0" in ref:
            raise RefFault("malformed_head", f"packed-refs has a line that is no reference (line {number})")
        if claims_order and ref <= previous:
            raise RefFault("malformed_head", f"packed-refs says that it is sorted and is not (line {number})")
        previous = ref
        after_ref = True
        if ref == wanted:
            if found is not None and found != name:
                raise RefFault("malformed_head", "packed-refs gives one reference twice")
            if not any(name):
                raise RefFault("malformed_head", "a reference holds the null object name")
            found = name
    return found


class Resolved(NamedTuple):
    """Raw name of the object that HEAD leads to, and the references passed on the way, HEAD first."""

    name: bytes
    passed: list[bytes]


def resolve_head(git_directory: int, object_format: ObjectFormat) -> Resolved:
    """Follow HEAD in an open ``.git`` directory.

    Raises RefFault with ``ref_not_regular``, ``malformed_head``, ``head_cycle`` or ``no_committed_head``.
    """
    current = b"HEAD"
    passed = [current]
    while True:
        name: bytes | None
        content = _read_loose(git_directory, current)
        if content is not None:
            name, target = parse_ref(content, object_format)
        elif current == b"HEAD":
            raise RefFault("malformed_head", "HEAD does not exist")
        else:
            name, target = _read_packed(git_directory, current, object_format), None
        if name is not None:
            return Resolved(name, passed)
        if target is None:
            raise RefFault(
                "no_committed_head", f"HEAD leads to {printable(current)}, which does not exist yet"
            )
        if target in passed or len(passed) >= MAX_DEPTH:
            raise RefFault("head_cycle", "HEAD leads in a circle or through too many symbolic references")
        passed.append(target)
        current = target


def check_shape(git_directory: int) -> None:
    """Demand that HEAD and packed-refs are regular files and refs a directory, where they exist.

    Raises RefFault ``ref_not_regular``; ``malformed_head`` where HEAD or refs do not exist.
    """
    for name in (b"HEAD", b"packed-refs"):
        status = look(git_directory, name)
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise _irregular(Irregular(name, kind_of(status.st_mode)))
    if look(git_directory, b"HEAD") is None:
        raise RefFault("malformed_head", "HEAD does not exist")
    try:
        descriptor = open_directory(git_directory, b"refs")
    except Irregular as error:
        raise _irregular(error) from None
    if descriptor is None:
        raise RefFault("malformed_head", "there is no directory for references")
    os.close(descriptor)


def _irregular(error: Irregular) -> RefFault:
    return RefFault("ref_not_regular", str(error))


def _read_loose(git_directory: int, ref: bytes) -> bytes | None:
    """Content of a loose reference; None where there is none, as when a directory has its name."""
    *directories, last = ref.split(b"/")
    opened: list[int] = []
    current = git_directory
    try:
        for component in directories:
            status = look(current, component)
            if status is not None and stat.S_ISREG(status.st_mode):
                return None
            descriptor = open_directory(current, component)
            if descriptor is None:
                return None
            opened.append(descriptor)
            current = descriptor
        status = look(current, last)
        if status is not None and stat.S_ISDIR(status.st_mode) and directories:
            return None
        return read_file(current, last, MAX_REF_BYTES)
    except Irregular as error:
        raise _irregular(error) from None
    except TooLong as error:
        raise RefFault("malformed_head", str(error)) from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _read_packed(git_directory: int, ref: bytes, object_format: ObjectFormat) -> bytes | None:
    try:
        content = read_file(git_directory, b"packed-refs", MAX_PACKED_BYTES)
    except Irregular as error:
        raise _irregular(error) from None
    except TooLong as error:
        raise RefFault("bound_store_bytes", str(error)) from None
    return None if content is None else find_packed(content, ref, object_format)
