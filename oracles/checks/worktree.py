"""Files of the worktree, read without following a link, waiting on a FIFO or taking in more than a bound."""

from __future__ import annotations

import os
import stat

from msgspec import structs

from ledger.events import Check
from oracles.checks.found import failed, passed
from oracles.checks.markers import judge_markers
from oracles.contract import Marker

CHECK = "worktree"


class NotReadable(Exception):
    """A worktree file is absent or not what may be read; `reason` is the code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_file(root: str, path: str, max_bytes: int) -> bytes:
    """Return a worktree file's bytes.

    Every component is opened relative to the one above it and none may be a link. Raises NotReadable with
    `absent`, `not_regular`, `oversize` or `unreadable`.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    parts = path.encode().split(b"/")
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise NotReadable("absent") from None
    try:
        for part in parts[:-1]:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        descriptor = os.open(parts[-1], flags, dir_fd=folder)
    except FileNotFoundError:
        raise NotReadable("absent") from None
    except NotADirectoryError:
        raise NotReadable("not_regular") from None
    except OSError as e:
        # ELOOP: the last component is a link. ENXIO: a socket.
        raise NotReadable("not_regular" if e.errno in _ODD else "unreadable") from None
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotReadable("not_regular")
    with os.fdopen(descriptor, "rb") as stream:
        try:
            content = stream.read(max_bytes + 1)
        except OSError:
            raise NotReadable("unreadable") from None
    if len(content) > max_bytes:
        raise NotReadable("oversize")
    return content


_ODD = frozenset({40, 6, 20})  # ELOOP, ENXIO, ENOTDIR


def worktree(root: str, markers: tuple[Marker, ...]) -> list[Check]:
    """Judge the worktree rule of a contract."""
    found: list[Check] = []
    for marker in markers:
        path = marker.path.encode()
        try:
            content = read_file(root, marker.path, marker.max_bytes)
        except NotReadable as e:
            if marker.absent and e.reason == "absent":
                found.append(passed(CHECK, path))
            else:
                found.append(failed(CHECK, f"worktree_{e.reason}", path))
            continue
        if marker.absent:
            found.append(failed(CHECK, "worktree_must_be_absent", path))
        else:
            # The same markers as for committed content, with reasons of their own.
            found += [
                c if c.reason is None else structs.replace(c, reason=f"worktree_{c.reason}")
                for c in judge_markers(CHECK, marker, content)
            ]
    return found
