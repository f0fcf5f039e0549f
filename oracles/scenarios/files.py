"""Deterministic file trees: what scenarios start from.

Nothing here depends on the time, the machine or Python's hash seed, so a fixture version names exact bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple


class File(NamedTuple):
    """One file: its bytes and whether it is executable."""

    content: bytes
    executable: bool = False

    @property
    def mode(self) -> str:
        """The mode as manifests spell it."""
        return "100755" if self.executable else "100644"


Files = Mapping[str, File]


def text(content: str, *, executable: bool = False) -> File:
    """Return a UTF-8 file."""
    return File(content.encode(), executable)


def pseudo_random(seed: str, size: int) -> bytes:
    """Return `size` incompressible bytes that depend on the seed alone."""
    return hashlib.shake_256(seed.encode()).digest(size)


def write(folder: str, files: Files) -> None:
    """Write files below a folder, over what is there."""
    for path, file in files.items():
        name = os.path.join(folder, path)
        os.makedirs(os.path.dirname(name), exist_ok=True)
        with open(name, "wb") as stream:
            stream.write(file.content)
        os.chmod(name, 0o755 if file.executable else 0o644)


def remove(folder: str, *paths: str) -> None:
    """Remove files and the directories that they leave empty."""
    for path in paths:
        os.unlink(os.path.join(folder, path))
        parent = os.path.dirname(path)
        while parent and not os.listdir(os.path.join(folder, parent)):
            os.rmdir(os.path.join(folder, parent))
            parent = os.path.dirname(parent)


def edit(folder: str, path: str, old: str, new: str) -> None:
    """Replace a text that must be there."""
    name = os.path.join(folder, path)
    with open(name, "rb") as stream:
        content = stream.read()
    assert old.encode() in content, f"{path} does not hold {old!r}"
    with open(name, "wb") as stream:
        stream.write(content.replace(old.encode(), new.encode()))


def append(folder: str, path: str, line: str) -> None:
    """Add to the end of a file."""
    with open(os.path.join(folder, path), "ab") as stream:
        stream.write(line.encode())


def manifest(files: Files) -> list[tuple[str, str, str]]:
    """Return path, mode and SHA-256 of every file, sorted by path bytes."""
    return [
        (path, file.mode, hashlib.sha256(file.content).hexdigest())
        for path, file in sorted(files.items(), key=lambda item: item[0].encode())
    ]
