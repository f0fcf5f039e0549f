"""Opening the files of a ``.git`` directory that someone else controls.

Every name is opened relative to an open directory, one component at a time, without following a symbolic link
and without waiting for a FIFO; what is opened must be a regular file (or a directory where one is wanted),
and reads have bounds. No file is mapped into memory: a file that its owner shortens would kill a process that
has it mapped.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict

from reader.git_objects import StoreChanged

_COMMON = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)

Fingerprint = tuple[int, int, int, int, int]
"""What identifies a file's state: device, inode, size, modification and change time in nanoseconds."""


class Irregular(Exception):
    """A name that leads to something else than the plain file or directory it must be.

    ``what`` says what it is, e.g. ``a symbolic link``; ``linked`` is true for a symbolic link.
    """

    def __init__(self, name: bytes, what: str) -> None:
        super().__init__(f"{printable(name)} is {what}")
        self.what = what
        self.linked = what == "a symbolic link"


class TooLong(Exception):
    """A file is longer than it can reasonably be."""


def printable(name: bytes) -> str:
    """A file name for a message, on one line and without control characters."""
    return name.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")[:200]


def kind_of(mode: int) -> str:
    """Words for the file type in an ``st_mode``."""
    for test, words in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISREG, "a regular file"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISCHR, "a character device"),
    ):
        if test(mode):
            return words
    return "of an unknown file type"


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """The fingerprint of a stat result."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def look(directory: int, name: bytes) -> os.stat_result | None:
    """Status of a name without following a link; None where it, or a directory above it, does not exist."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def open_directory(directory: int, name: bytes) -> int | None:
    """Descriptor of a directory; None when nothing has that name.

    Raises Irregular when it is no directory.
    """
    status = look(directory, name)
    if status is None:
        return None
    if not stat.S_ISDIR(status.st_mode):
        raise Irregular(name, kind_of(status.st_mode))
    try:
        return os.open(name, _COMMON | os.O_DIRECTORY, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOENT, errno.ENOTDIR):
            raise StoreChanged(f"{printable(name)} changed while it was opened") from None
        raise


def open_file(directory: int, name: bytes) -> tuple[int, os.stat_result] | None:
    """Descriptor and status of a regular file; None when nothing has that name.

    Raises Irregular when it is anything but a regular file.
    """
    # A device must not even be opened (opening can act on it), so the name is looked at first.
    status = look(directory, name)
    if status is None:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise Irregular(name, kind_of(status.st_mode))
    return _open_regular(directory, name)


def _open_regular(directory: int, name: bytes) -> tuple[int, os.stat_result]:
    try:
        descriptor = os.open(name, _COMMON, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO):
            raise StoreChanged(f"{printable(name)} changed while it was opened") from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Irregular(name, kind_of(status.st_mode))
    return descriptor, status


def read_file(directory: int, name: bytes, limit: int) -> bytes | None:
    """Content of a regular file; None when nothing has that name.

    Raises Irregular, TooLong when there are more than ``limit`` bytes, StoreChanged when it changes
    meanwhile.
    """
    opened = open_file(directory, name)
    if opened is None:
        return None
    descriptor, status = opened
    try:
        if status.st_size > limit:
            raise TooLong(f"{printable(name)} is longer than {limit} bytes")
        parts = []
        wanted = status.st_size + 1
        while wanted and (part := os.read(descriptor, wanted)):
            parts.append(part)
            wanted -= len(part)
        content = b"".join(parts)
        if len(content) != status.st_size or fingerprint_of(os.fstat(descriptor)) != fingerprint_of(status):
            raise StoreChanged(f"{printable(name)} changed while it was read")
        return content
    finally:
        os.close(descriptor)


class FilePool:
    """Keeps a limited number of files open for positioned reads.

    A repository may have more packs than a process may have open files. A file that is opened again must be
    the one that was there before, or StoreChanged is raised.
    """

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._open: OrderedDict[StableFile, int] = OrderedDict()

    def descriptor(self, file: StableFile) -> int:
        """An open descriptor of ``file``, good until the next call."""
        descriptor = self._open.get(file)
        if descriptor is None:
            while len(self._open) >= self._limit:
                os.close(self._open.popitem(last=False)[1])
            opened = open_file(file.directory, file.name)
            if opened is None:
                raise StoreChanged(f"{printable(file.name)} disappeared")
            descriptor, status = opened
            if fingerprint_of(status) != file.fingerprint:
                os.close(descriptor)
                raise StoreChanged(f"{printable(file.name)} changed")
            self._open[file] = descriptor
        else:
            self._open.move_to_end(file)
        return descriptor

    def close(self) -> None:
        """Close everything."""
        while self._open:
            os.close(self._open.popitem()[1])


class StableFile:
    """A file of known size that is read at positions and must not change."""

    __slots__ = ("_pool", "directory", "fingerprint", "name", "size")

    def __init__(self, pool: FilePool, directory: int, name: bytes, status: os.stat_result) -> None:
        self._pool = pool
        self.directory = directory
        self.name = name
        self.size = status.st_size
        self.fingerprint = fingerprint_of(status)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly the bytes at ``offset``, fewer only at the end of the file.

        Raises StoreChanged when the file is not as long as it was.
        """
        length = max(0, min(length, self.size - offset))
        descriptor = self._pool.descriptor(self)
        content = os.pread(descriptor, length, offset)
        while len(content) < length:
            more = os.pread(descriptor, length - len(content), offset + len(content))
            if not more:
                raise StoreChanged(f"{printable(self.name)} was shortened")
            content += more
        return content
