"""Git trees: one directory of a commit.

A tree's content is its entries one after the other, with nothing between or around them:

    mode SP name NUL raw-object-name

* ``mode`` is octal text without leading zeros. Git writes exactly five: ``40000`` (directory), ``100644`` and
  ``100755`` (files), ``120000`` (symbolic link, the blob is its target), ``160000`` (commit of a submodule).
* ``name`` is one path component: any bytes but NUL and ``/``, not empty, not ``.`` or ``..``.
* Entries are in strictly ascending byte order of their names, where a directory's name is compared as if it
  ended in ``/``. A name occurs once, be it a file or a directory.

Whatever breaks one of these rules is malformed here, old Git's ``100664`` and zero-padded modes included: two
readers that are lenient in different ways would see different files in one tree. Names such as ``.git`` are
well formed, and a matter for whoever writes files.
"""

from __future__ import annotations

import re
from operator import lt

from reader.git_objects import Malformed, ObjectFormat

TreeEntry = tuple[bytes, bytes, bytes]
"""One entry: mode as in the tree (``40000`` ...), name, raw object name."""

DIRECTORY, FILE, EXECUTABLE, LINK, SUBMODULE = b"40000", b"100644", b"100755", b"120000", b"160000"

_MODES = rb"(40000|100644|100755|120000|160000)"
_ENTRY = {size: re.compile(_MODES + rb" ([^/\0]+)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
_BAD_NAMES = frozenset((b".", b".."))


def parse_tree(content: bytes, object_format: ObjectFormat) -> list[TreeEntry]:
    """All entries of a tree in their order.

    Raises Malformed, which names the first entry that breaks a rule.
    """
    entries: list[TreeEntry] = _ENTRY[object_format.size].findall(content)
    # findall skips what does not match: when all lengths add up, nothing was skipped.
    overhead = 2 + object_format.size
    names = [name for _, name, _ in entries]
    if sum(map(len, names)) + sum(len(mode) for mode, _, _ in entries) + overhead * len(entries) != len(
        content
    ):
        raise Malformed(_first_fault(content, object_format))
    keys = [name + b"/" if mode == DIRECTORY else name for mode, name, _ in entries]
    if not all(map(lt, keys, keys[1:])):
        position = next(i for i in range(len(keys) - 1) if keys[i] >= keys[i + 1])
        problem = "occurs twice" if keys[position] == keys[position + 1] else "is out of order"
        raise Malformed(f"tree entry {position + 2} {problem}")
    distinct = set(names)
    if len(distinct) != len(names):
        raise Malformed("a tree holds a file and a directory of the same name")
    if not distinct.isdisjoint(_BAD_NAMES):
        raise Malformed("a tree holds an entry named '.' or '..'")
    return entries


def _first_fault(content: bytes, object_format: ObjectFormat) -> str:
    """What is wrong with the first entry that is not well formed."""
    pattern = _ENTRY[object_format.size]
    position, number = 0, 1
    while match := pattern.match(content, position):
        position, number = match.end(), number + 1
    mode, space, rest = content[position : position + 4096].partition(b" ")
    name, nul, rest = rest.partition(b"\0")
    if not space or re.fullmatch(_MODES, mode) is None:
        return f"tree entry {number} has no mode that Git writes"
    if not nul:
        return f"tree entry {number} has a name without an end (or a very long one)"
    if not name:
        return f"tree entry {number} has an empty name"
    if b"/" in name:
        return f"tree entry {number} has a slash in its name"
    return f"tree entry {number} ends before its object name does"
