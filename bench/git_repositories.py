"""Git repositories for measurements, the same ones every time."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

FILES_A_DIRECTORY = 100


def git(repository: Path, *arguments: str, data: bytes | None = None) -> bytes:
    """Run git on a repository, with nothing of the machine's or the user's configuration; its output."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }
    command = ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-C", str(repository), *arguments]
    return subprocess.run(command, input=data, env=environment, check=True, capture_output=True).stdout


def content(number: int, generation: int) -> bytes:
    """Text of one file: lines that files share and lines of its own, about 1,400 bytes; a few are larger."""
    source = random.Random(number)
    lines = [b"# module %d\n" % number]
    for _ in range(source.randrange(10, 60) * (40 if number % 997 == 0 else 1)):
        lines.append(
            b"value_%d = lookup(%d)  # shared words\n" % (source.randrange(5000), source.randrange(64))
        )
    if generation:
        lines[source.randrange(len(lines))] = b"changed = %d\n" % generation
    return b"".join(lines)


def path_of(number: int) -> str:
    """Path of one file: a hundred files in each directory, two levels of directories."""
    folder = number // FILES_A_DIRECTORY
    return f"pkg{folder % 25:02d}/mod{folder:04d}/file_{number:06d}.py"


def generate(repository: Path, files: int, packs: int = 4, object_format: str = "sha1") -> Path:
    """Make a repository of ``files`` files in ``packs`` packs, with deltas.

    Each pack adds a part of the files, and changes one in forty of those that are there.
    """
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "--template=", f"--object-format={object_format}", "-b", "main", ".")
    done = 0
    for generation in range(packs):
        stop = files * (generation + 1) // packs
        changes = [(number, 0) for number in range(done, stop)]
        changes += [(number, generation) for number in range(generation, done, 40)]
        stream = [
            b"commit refs/heads/main\ncommitter T <t@example.invalid> %d +0000\n" % (1700000000 + generation)
        ]
        stream.append(b"data 2\nm\n\n")
        if generation:
            stream.append(b"from refs/heads/main^0\n")
        for number, how in changes:
            data = content(number, how)
            stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path_of(number).encode(), len(data), data))
        git(repository, "fast-import", "--quiet", "--depth=50", data=b"".join(stream))
        git(repository, "repack", "-dq", "--depth=20", "--window=5")
        done = stop
    return repository
