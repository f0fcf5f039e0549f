"""Git objects: kinds, names and the two hash functions a repository can use.

An object is a kind (``commit``, ``tree``, ``blob``, ``tag``) and its content. Its name is the hash of

    kind SP length-in-decimal NUL content

with SHA-1, or SHA-256 where the repository declares ``extensions.objectFormat = sha256``. Names are kept as
raw bytes (20 or 32) in memory, as they stand in trees and pack indexes, and as lower-case hex in text.
SHA-1 is checked as plain SHA-1: whoever can make collisions can have two contents under one name, and which
of them is read then depends on where they are kept. SHA-256 repositories know no such doubt.

A commit's content is text: ``tree HEX``, any number of ``parent HEX``, one ``author`` and one ``committer``
line, further headers (a line that begins with a space continues the header before it), an empty line, the
message.

Only the standard library is needed; nothing here knows where objects are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KINDS = (b"commit", b"tree", b"blob", b"tag")
"""The kinds of object that exist, spelt as in an object's header."""


class Malformed(ValueError):
    """Bytes of the subject's repository that are not what Git's formats allow; the message says what is
    wrong.
    """


class LimitExceeded(Exception):
    """An object is larger, or nested deeper, than the caller allows.

    ``reason`` is the reason code of the report (``bound_object_bytes``, ``bound_depth``).
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StoreChanged(Exception):
    """A file of the object store is not the one that was there before."""


@dataclass(frozen=True, slots=True)
class ObjectFormat:
    """One hash function with everything that depends on it.

    ``name`` is the value of ``extensions.objectFormat``; ``size`` the length of a raw name in bytes; ``new``
    makes a hashlib object from its first bytes.
    """

    name: str
    size: int
    new: Callable[[bytes], Any]

    @property
    def hex_size(self) -> int:
        """Length of a name in hexadecimal digits."""
        return 2 * self.size

    def name_of(self, kind: bytes, content: bytes) -> bytes:
        """Raw name of the object that ``kind`` and ``content`` make."""
        header = b"%s %d\0" % (kind, len(content))
        if len(content) < 65536:
            digest = self.new(header + content)
        else:
            digest = self.new(header)
            digest.update(content)
        name: bytes = digest.digest()
        return name

    def parse_hex(self, text: bytes) -> bytes | None:
        """Raw name for exactly one full name in hexadecimal (either case, as Git reads it), else None."""
        if len(text) != self.hex_size or not _HEX.issuperset(text):
            return None
        return bytes.fromhex(text.decode("ascii"))

    @property
    def empty_tree(self) -> bytes:
        """Name of the tree without entries, which Git knows without storing it."""
        return self.name_of(b"tree", b"")


_HEX = frozenset(b"0123456789abcdefABCDEF")


def _sha1(data: bytes) -> Any:
    return hashlib.sha1(data, usedforsecurity=False)


SHA1 = ObjectFormat("sha1", 20, _sha1)
SHA256 = ObjectFormat("sha256", 32, hashlib.sha256)
FORMATS = {SHA1.name: SHA1, SHA256.name: SHA256}
"""Object formats by the name that a repository's configuration gives them."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What a reader needs of a commit: the raw names of its tree and of its parents, in order."""

    tree: bytes
    parents: tuple[bytes, ...]


def parse_commit(content: bytes, object_format: ObjectFormat) -> Commit:
    """Read a commit's content.

    Raises Malformed where the fixed part (tree, parents, author, committer, in this order) is not there.
    Further headers and the message are not looked at: no answer of a reader depends on them.
    """
    position = 0

    def line() -> bytes:
        end = content.find(b"\n", position)
        if end < 0:
            raise Malformed("a commit header line has no end")
        return content[position:end]

    def name(text: bytes, what: str) -> bytes:
        raw = object_format.parse_hex(text)
        if raw is None or text != text.lower():
            raise Malformed(f"a commit's {what} line holds no full object name")
        return raw

    current = line()
    if not current.startswith(b"tree "):
        raise Malformed("a commit does not begin with its tree")
    tree = name(current[5:], "tree")
    parents: list[bytes] = []
    while True:
        position += len(current) + 1
        current = line()
        if not current.startswith(b"parent "):
            break
        parents.append(name(current[7:], "parent"))
    if not current.startswith(b"author "):
        raise Malformed("a commit has no author line after its parents")
    position += len(current) + 1
    if not line().startswith(b"committer "):
        raise Malformed("a commit has no committer line after its author")
    return Commit(tree, tuple(parents))
