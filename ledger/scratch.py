"""Temporary folders that do not outlive their process for long.

A process that is killed cannot remove what it wrote aside. So each folder is held by a lock as long as its
process lives, and whoever makes a new folder beside it removes those of the same user that nobody holds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: Names of folders in a folder for temporary files, and beside a ledger, where they are hidden.
_PREFIX = "oakledger-scratch-"

#: A folder without a lock may be one that is just being made, unless it is so many seconds old.
_SETTLED_S = 600

_LOCK = "lock"


@contextlib.contextmanager
def scratch(directory: str | None = None) -> Iterator[str]:
    """Yield a new private folder, removed afterwards: in `directory`, hidden, or where temporary files go.

    Raises OSError when none can be made.
    """
    parent = directory or tempfile.gettempdir()
    prefix = _PREFIX if directory is None else f".{_PREFIX}"
    _sweep(parent, prefix)
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            with contextlib.suppress(OSError):  # a file system without locks: nothing there is swept either
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield folder
        finally:
            os.close(lock)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: str, prefix: str) -> None:
    """Remove the folders that dead processes of this user left."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and _is_settled(entry) and _is_left(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_settled(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return own and time.time() - found.st_mtime > _SETTLED_S


def _is_left(folder: str) -> bool:
    """Return whether the process that made a folder is gone: its lock can be had."""
    try:
        lock = os.open(Path(folder, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
