"""Running a task's test command: a new directory, a clean environment, bounds on time, output and memory.

The code that runs is the subject's. On Linux it runs in namespaces of its own, without a network and with
every file system read-only but its own directory, where the system allows that; `Run.isolated` and
`Run.read_only` say whether it did. Everything that it starts ends with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LAUNCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sandbox_launcher.py")

#: Largest file that a test command may write, in bytes.
FILE_LIMIT_BYTES = 256 << 20
#: Exit status of the launcher when the program does not exist.
NOT_STARTED = 127


@dataclass(frozen=True)
class Run:
    """How a command ended.

    `ended` is `exit`, `time` or `output`; `status` the exit status, 128 + signal number if a signal ended it;
    `output` standard output and error as they came, up to the limit.
    """

    ended: str
    status: int | None
    output: bytes
    isolated: bool
    read_only: bool
    duration_ns: int


def run(
    command: Sequence[str],
    cwd: str,
    *,
    time_limit_s: float,
    output_limit_bytes: int,
    memory_limit_bytes: int,
    extra_env: Mapping[str, str] | None = None,
) -> Run:
    """Run a command; the word `python` stands for this interpreter. Raises OSError if nothing starts."""
    argv = [sys.executable if command[0] == "python" else command[0], *command[1:]]
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": cwd,
        "TMPDIR": cwd,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **(extra_env or {}),
    }
    if not os.path.isabs(argv[0]):
        found = [os.path.join(folder, argv[0]) for folder in env["PATH"].split(":")]
        argv[0] = next((p for p in found if os.access(p, os.X_OK)), argv[0])
    limits = {
        "AS": memory_limit_bytes,
        "FSIZE": FILE_LIMIT_BYTES,
        "CORE": 0,
        "CPU": int(time_limit_s) + 2,
        "NOFILE": 1024,
    }
    report, writer = os.pipe()
    started = time.monotonic()
    config = {"argv": argv, "env": env, "cwd": cwd, "limits": limits, "report_fd": writer}
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", _LAUNCHER, json.dumps(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"LC_ALL": "C"},
            pass_fds=(writer,),
            start_new_session=True,
        )
    except BaseException:
        os.close(report)
        raise
    finally:
        os.close(writer)
    try:
        output, ended = _collect(child, started + time_limit_s, output_limit_bytes)
        taken = _taken(report)
    finally:
        os.close(report)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
        _await_end(child)
    return Run(
        ended=ended,
        status=status if ended == "exit" and status >= 0 else None,
        output=output,
        isolated=taken.get("isolated", False),
        read_only=taken.get("read_only", False),
        duration_ns=int((time.monotonic() - started) * 1e9),
    )


def _collect(child: subprocess.Popen[bytes], give_up: float, limit: int) -> tuple[bytes, str]:
    assert child.stdout is not None
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, give_up - time.monotonic())):
                return bytes(output), "time"
            block = os.read(child.stdout.fileno(), 1 << 16)
            if not block:
                break
            output += block
            if len(output) > limit:
                return bytes(output[:limit]), "output"
    # The launcher holds the pipe until everything below it has ended.
    try:
        child.wait(timeout=max(0.0, give_up - time.monotonic()) + 1.0)
    except subprocess.TimeoutExpired:
        return bytes(output), "time"
    return bytes(output), "exit"


def _await_end(child: subprocess.Popen[bytes]) -> None:
    """Wait until nobody holds the output any more: the system ends a namespace a moment after its parent."""
    assert child.stdout is not None
    give_up = time.monotonic() + 5.0
    with child.stdout, selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, give_up - time.monotonic())):
            if not os.read(child.stdout.fileno(), 1 << 16):
                return


def _taken(report: int) -> dict[str, bool]:
    os.set_blocking(report, False)
    try:
        return {str(k): v is True for k, v in json.loads(os.read(report, 1000) or b"{}").items()}
    except (BlockingIOError, ValueError):
        return {}
