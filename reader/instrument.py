"""Finding the program that a reader runs, and saying which one it is.

The instrument is `git` on PATH, or the absolute path in OAK_BENCH_GIT_INSTRUMENT. It is identified by the
bytes of the file behind every link, so that a link, a hard link and a copy all have the identity of what they
are. What the identity is worth is a question for `reader/relation.py`: it certifies nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import signal
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reader.git_files import Fingerprint, fingerprint_of
from reader.scoped_read import Budget, Stop, why

VARIABLE = "OAK_BENCH_GIT_INSTRUMENT"
"""Environment variable with the absolute path of a git that the operator chose."""

OLDEST = (2, 36)
"""Oldest git that has `cat-file --batch-command`."""

_MAX_PROGRAM_BYTES = 1 << 30
_MAX_VERSION_BYTES = 4096
_VERSION_SECONDS = 10.0
_VERSION = re.compile(rb"git version (([0-9]{1,4})\.([0-9]{1,4})[!-~]{0,80}(?: \([ -~]{1,60}\))?)\s*\Z")


@dataclass(frozen=True)
class Instrument:
    """One identified program.

    `name` is the last component of the path that was configured or found, `path` the file behind every link
    (never part of a report), `version` the program's own word, `sha256` over the file's bytes in hex, `size`
    in bytes, `owner` the uid that owns the file. `is_script`: the file is text for an interpreter, so that
    its hash does not cover the program that finally runs.
    """

    name: str
    path: str
    version: str
    sha256: str
    size: int
    owner: int
    is_script: bool
    fingerprint: Fingerprint

    def as_json(self) -> dict[str, str | bool]:
        """What a report says about it."""
        return {
            "name": self.name,
            "version": self.version,
            "sha256": self.sha256,
            "is_script": self.is_script,
        }


def missing(text: str) -> Stop:
    """The `Stop` of an instrument that cannot be used, with what to do about it."""
    return Stop("instrument_missing", f"{text}; set {VARIABLE} to a git, or use the backend pure")


def find_git(environ: Mapping[str, str], repo: str) -> str:
    """Path of the git to use, links not yet resolved.

    Only absolute directories of PATH count: an empty or relative one leads wherever the reader was started,
    which may be the subject's repository. A program inside `repo` is refused for the same reason. Raises
    `Stop("instrument_missing")`.
    """
    chosen = environ.get(VARIABLE)
    if chosen is not None:
        if not os.path.isabs(chosen):
            raise missing(f"{VARIABLE} is {'not an absolute path' if chosen else 'set but empty'}")
        if not _is_program(chosen):
            raise missing(f"{VARIABLE} names no executable file")
    else:
        folders = [name for name in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(name)]
        chosen = next((path for name in folders if _is_program(path := os.path.join(name, "git"))), None)
        if chosen is None:
            raise missing("there is no git on PATH")
    inside = os.path.realpath(repo)
    for path in (os.path.abspath(chosen), os.path.realpath(chosen)):
        if os.path.commonpath([inside, path]) == inside:
            raise missing("the git to use lies in the repository that is to be read")
    return chosen


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def clean_environment(scratch: str) -> dict[str, str]:
    """An environment made from nothing for a git that may touch nothing but `scratch`.

    No configuration but the repository's own is read, no replacement of objects, no fetch, no terminal, no
    tracing, and no helper program is found: the exec path is an empty directory.
    """
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": scratch,
        "XDG_CONFIG_HOME": scratch,
        "TMPDIR": scratch,
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_EXEC_PATH": os.path.join(scratch, "none"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "/bin/false",
        "GIT_PAGER": "cat",
        "GIT_ADVICE": "0",
        "GIT_TRACE2": "0",
    }


def identify(path: str, scratch: str, budget: Budget) -> Instrument:
    """Hash the program and ask it for its version, which must be one that the reader can use.

    Raises `Stop`: ``instrument_missing``, ``deadline``.
    """
    resolved = os.path.realpath(path)
    digest, is_script, status = _hash_program(resolved, budget)
    output = run_bounded([resolved, "version"], scratch, budget)
    match = _VERSION.match(output)
    if match is None:
        raise missing("the program does not say that it is a git")
    version = match[1].decode("ascii")
    if (int(match[2]), int(match[3])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise missing(f"git {version} is older than {wanted}, which brought cat-file --batch-command")
    return Instrument(
        os.path.basename(path),
        resolved,
        version,
        digest,
        status.st_size,
        status.st_uid,
        is_script,
        fingerprint_of(status),
    )


def _hash_program(path: str, budget: Budget) -> tuple[str, bool, os.stat_result]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise missing(f"the program cannot be read ({why(error)})") from None
    with open(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_PROGRAM_BYTES:
            raise missing("the program is no regular file of reasonable size")
        digest = hashlib.sha256()
        start = b""
        total = 0
        while chunk := stream.read(1 << 20):
            budget.check()
            start = start or chunk[:2]
            digest.update(chunk)
            total += len(chunk)
            if total > _MAX_PROGRAM_BYTES:
                raise missing("the program is too long")
    return digest.hexdigest(), start == b"#!", status


def unchanged(instrument: Instrument) -> bool:
    """Whether the file is still the one that was identified."""
    try:
        return fingerprint_of(os.stat(instrument.path)) == instrument.fingerprint
    except OSError:
        return False


def run_bounded(command: Sequence[str], scratch: str, budget: Budget) -> bytes:
    """Standard output of a short command in a clean environment; empty when it fails or says too much.

    Raises `Stop`: ``instrument_missing`` when the program cannot be started or does not end, ``deadline``.
    """
    deadline = time.monotonic() + min(_VERSION_SECONDS, budget.remaining_ns() / 1e9)
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=scratch,
            env=clean_environment(scratch),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise missing(f"the program cannot be started ({why(error)})") from None
    assert child.stdout is not None
    output = b""
    try:
        descriptor = child.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                budget.check()
                raise missing("the program does not answer")
            chunk = os.read(descriptor, _MAX_VERSION_BYTES)
            if not chunk:
                break
            output += chunk
            if len(output) > _MAX_VERSION_BYTES:
                return b""
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            budget.check()
            if time.monotonic() > deadline:
                raise missing("the program does not end")
            time.sleep(0.001)
    finally:
        end_group(child)
    return output if child.returncode == 0 else b""


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads its own session, with everything that it started there, and close its pipes.

    The group is signalled even when the child has ended: it may have left others behind.
    """
    # Until the child has been waited for, no other process can get its number.
    if child.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    child.wait()
