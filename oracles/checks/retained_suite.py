"""The retained test suite: the committed tree with the task's own pristine tests put over it.

Narrower than it looks: the code under test runs in the test's own process, so a commit made to deceive can
forge a green run. It is behavioural evidence about honest work, never about hostile work, and it comes on top
of the committed content, never instead of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat

from ledger.events import Check
from oracles import sandbox
from oracles.checks.found import failed, passed, unmeasured
from oracles.contract import PristineFile, Suite

CHECK = "tests"


def run_suite(tree: str, tests: Suite) -> list[Check]:
    """Run a suite in `tree`, a private directory that holds the materialised committed tree and nothing else.

    The directory is changed. A suite that runs too few tests is unmeasured, not pass.
    """
    try:
        for path in tests.remove:
            _remove(tree, path)
        for pristine in tests.files:
            _write(tree, pristine)
    except OSError:
        return [unmeasured(CHECK, "tests_not_prepared")]
    try:
        run = sandbox.run(
            tests.command,
            tree,
            time_limit_s=tests.time_limit_s,
            output_limit_bytes=tests.output_limit_bytes,
            memory_limit_bytes=tests.memory_limit_bytes,
        )
    except OSError:
        return [unmeasured(CHECK, "tests_instrument_missing")]
    tail = run.output[-200:]
    if run.ended == "time":
        return [failed(CHECK, "tests_timeout", found=f"{tests.time_limit_s} s", content=tail)]
    if run.ended == "output":
        return [failed(CHECK, "tests_output_limit", found=f"{tests.output_limit_bytes} bytes")]
    if run.status == sandbox.NOT_STARTED:
        return [unmeasured(CHECK, "tests_instrument_missing")]
    if run.status is None:
        return [unmeasured(CHECK, "tests_instrument_failed")]
    if run.status != 0:
        return [failed(CHECK, "tests_failed", expected="0", found=str(run.status), content=tail)]
    counts = [int(n) for n in re.findall(tests.ran.encode(), run.output) if n.isdigit() and len(n) < 10]
    if not counts or max(counts) < tests.minimum:
        return [unmeasured(CHECK, "tests_none_ran")]
    return [passed(CHECK)]


def _parent(tree: str, path: str, *, make: bool) -> tuple[int, str]:
    """Open the directory of a path inside the tree, following no link; what is in its way is removed."""
    folder = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    *above, name = path.split("/")
    for part in above:
        try:
            found = os.lstat(part, dir_fd=folder)
            if make and not stat.S_ISDIR(found.st_mode):
                os.unlink(part, dir_fd=folder)
                raise FileNotFoundError
        except FileNotFoundError:
            if not make:
                os.close(folder)
                raise
            os.mkdir(part, 0o755, dir_fd=folder)
        inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        os.close(folder)
        folder = inner
    return folder, name


def _remove(tree: str, path: str) -> None:
    try:
        folder, name = _parent(tree, path, make=False)
    except OSError:
        return
    try:
        _clear(folder, name)
    finally:
        os.close(folder)


def _clear(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def _write(tree: str, pristine: PristineFile) -> None:
    folder, name = _parent(tree, pristine.path, make=True)
    try:
        _clear(folder, name)
        mode = 0o755 if pristine.executable else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, mode, dir_fd=folder), "wb") as stream:
            stream.write(pristine.content.encode())
    finally:
        os.close(folder)
