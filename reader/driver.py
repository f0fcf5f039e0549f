"""Runs a reader the way a harness must: isolated, bounded from outside, and recorded in full.

The seed: the harness invokes its pinned reader with `python -I`, a new temporary destination and a scope
of exactly the committed paths that the task owns. The child gets an environment built from nothing, its own
process group, a memory limit, and an outer deadline beyond its own. Whatever happens there is always one
report of the shape of docs/reader-report.md; a missing instrument is unmeasured and never replaced by
another reader.

Environment variables (read here and nowhere else):

* `OAK_BENCH_GIT_INSTRUMENT` - absolute path of the Git instrument for backend `git`;
* `OAK_BENCH_OAK_READER_PYTHON` - absolute path of the interpreter that runs the isolated scripts;
* `OAK_BENCH_READER_BACKEND` - `native` for the Oak reader's native codecs;
* `OAK_BENCH_OAK_COMMITTED_READER` - `export` for the subject's own export, used only then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reader import scoped_read

#: Largest report that is taken from a child, in bytes.
MAX_REPORT_BYTES = 512 << 20
#: Largest standard error that is kept, in bytes.
MAX_STDERR_BYTES = 4096
#: Seconds beyond the reader's own deadline before the child is killed.
GRACE_SECONDS = 10.0
#: Seconds that an interpreter gets to say its version.
VERSION_SECONDS = 10.0
#: Address space of a child in bytes, unless the caller says otherwise.
MEMORY_LIMIT_BYTES = 4 << 30

_HERE = os.path.dirname(os.path.abspath(__file__))
_SCRIPTS = {
    ("git", "pure"): "git_object_reader.py",
    ("git", "git"): "git_instrument_reader.py",
    ("oak", "pure"): "oak_sqlite_reader.py",
    ("oak", "native"): "oak_sqlite_reader.py",
    ("oak", "export"): "oak_export_reader.py",
}
_NAMES = {
    "git_object_reader.py": "git_object_reader",
    "git_instrument_reader.py": "git_instrument_reader",
    "oak_sqlite_reader.py": "oak_sqlite_reader",
    "oak_export_reader.py": "oak_export_reader",
}


_FIELDS = scoped_read.Report("", "", "", []).as_json(None).keys()


@dataclass(frozen=True)
class Request:
    """One read to make. Bounds as in docs/reader-report.md; None leaves the reader's default."""

    vcs: str
    repo: str
    backend: str
    scope: tuple[bytes, ...] | None = None
    dest: str | None = None
    manifest: bool = True
    max_blob_bytes: int | None = None
    max_object_bytes: int | None = None
    max_total_bytes: int | None = None
    max_entries: int | None = None
    max_depth: int | None = None
    deadline_s: float | None = None
    deep: bool = False
    complete: bool = False
    subject_binary: str | None = None
    memory_bytes: int = MEMORY_LIMIT_BYTES


@dataclass(frozen=True)
class Reading:
    """What came of a read: the report, its exact text, and what ran it.

    `synthetic`: the report was made by the driver, because the reader could not make its own.
    """

    report: dict[str, Any]
    text: bytes
    exit_status: int
    message: str
    backend: str
    python_version: str | None = None
    python_sha256: str | None = None
    dest: str | None = None
    synthetic: bool = False

    @property
    def outcome(self) -> str:
        """`ok`, `failed`, `invalid`, `unmeasured` or `usage`."""
        return str(self.report["outcome"])

    @property
    def reason(self) -> str | None:
        """Reason code, None on ok."""
        reason = self.report["reason"]
        return None if reason is None else str(reason)


def default_backend(vcs: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the backend in force for a kind of repository (seed, "Configure the readers").

    Raises ValueError for a value of a variable that names no backend: a typing error must not silently
    become another reader.
    """
    if vcs == "git":
        return "git"
    committed = environ.get("OAK_BENCH_OAK_COMMITTED_READER", "")
    if committed not in ("", "sqlite", "export"):
        raise ValueError("OAK_BENCH_OAK_COMMITTED_READER must be export, sqlite or unset")
    if committed == "export":
        return "export"
    backend = environ.get("OAK_BENCH_READER_BACKEND", "")
    if backend not in ("", "pure", "native"):
        raise ValueError("OAK_BENCH_READER_BACKEND must be native, pure or unset")
    return backend or "pure"


def file_sha256(path: str) -> str:
    """Return the hex SHA-256 of a regular file, links resolved. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read(request: Request, environ: Mapping[str, str] = os.environ) -> Reading:
    """Make one read and return what came of it; bad repositories never raise.

    Raises ValueError for a request that names no reader (a fault of the caller).
    """
    try:
        script = _SCRIPTS[request.vcs, request.backend]
    except KeyError:
        raise ValueError(f"no reader for {request.vcs} with backend {request.backend}") from None
    python = environ.get("OAK_BENCH_OAK_READER_PYTHON") or sys.executable
    problem = _python_problem(python)
    if problem:
        return _synthetic(request, script, "instrument_missing", problem)
    with tempfile.TemporaryDirectory(prefix="oakledger-read-") as scratch:
        argv = [python, "-I", os.path.join(_HERE, script), *_arguments(request, scratch)]
        reading = _run(request, script, argv, _environment(request, environ, scratch), scratch)
    version, digest = _python_identity(python, version=not reading.synthetic)
    return replace(reading, python_version=version, python_sha256=digest)


def _python_problem(python: str) -> str | None:
    if not os.path.isabs(python):
        return "OAK_BENCH_OAK_READER_PYTHON is not an absolute path; give one, or unset it"
    if not os.path.isfile(python) or not os.access(python, os.X_OK):
        return "OAK_BENCH_OAK_READER_PYTHON is no program; give the path of a Python, or unset it"
    return None


_identities: dict[tuple[str, int, int, bool], tuple[str | None, str | None]] = {}


def _python_identity(python: str, *, version: bool) -> tuple[str | None, str | None]:
    """Version and SHA-256 of an interpreter's binary, once per file as it stands.

    The version is asked for only where the interpreter has just shown that it can run a reader.
    """
    try:
        found = os.stat(python)
        key = (python, found.st_mtime_ns, found.st_ino, version)
        if key not in _identities:
            _identities[key] = (
                _python_version(python) if version else None,
                file_sha256(os.path.realpath(python)),
            )
        return _identities[key]
    except OSError:
        return None, None


def _python_version(python: str) -> str | None:
    if python == sys.executable:
        return ".".join(str(n) for n in sys.version_info[:3])
    child = subprocess.Popen(
        [python, "-I", "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"LC_ALL": "C"},
        start_new_session=True,
    )
    out, _, stopped = _collect(child, time.monotonic() + VERSION_SECONDS)
    version = out[:100].decode("ascii", "replace").strip()
    well = child.wait() == 0 and not stopped and 0 < len(version) < 40 and version.isprintable()
    return version if well else None


def _environment(request: Request, environ: Mapping[str, str], scratch: str) -> dict[str, str]:
    env = {"LC_ALL": "C.UTF-8", "TMPDIR": scratch, "HOME": scratch}
    if request.backend == "git":
        env["PATH"] = environ.get("PATH", os.defpath)
        if "OAK_BENCH_GIT_INSTRUMENT" in environ:
            env["OAK_BENCH_GIT_INSTRUMENT"] = environ["OAK_BENCH_GIT_INSTRUMENT"]
    if request.backend == "export" and request.subject_binary is not None:
        env["OAK_BENCH_OAK_SUBJECT"] = os.path.abspath(request.subject_binary)
    return env


def _arguments(request: Request, scratch: str) -> list[str]:
    args: list[str] = []
    args += ["--backend", request.backend]
    if request.scope is not None:
        scope = os.path.join(scratch, "scope")
        with open(scope, "wb") as stream:
            stream.write(b"".join(path + b"\0" for path in request.scope))
        args += ["--scope", scope]
    if request.manifest:
        args += ["--manifest", "-"]
    for option, value in (
        ("--max-blob-bytes", request.max_blob_bytes),
        ("--max-object-bytes", request.max_object_bytes),
        ("--max-total-bytes", request.max_total_bytes),
        ("--max-entries", request.max_entries),
        ("--max-depth", request.max_depth),
    ):
        if value is not None:
            args += [option, str(value)]
    if request.deadline_s is not None:
        args += ["--deadline", f"{request.deadline_s:.9f}"]
    args += ["--deep"] * request.deep + ["--complete"] * request.complete
    # A name that starts with a dash must not become an option.
    args += ["--", os.path.abspath(request.repo)]
    if request.dest is not None:
        args.append(os.path.abspath(request.dest))
    return args


def _run(request: Request, script: str, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Reading:
    own = request.deadline_s if request.deadline_s is not None else scoped_read.Bounds().deadline_ns / 1e9
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        return _synthetic(request, script, "instrument_missing", f"cannot start the reader: {error.strerror}")
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(child.pid, resource.RLIMIT_AS, (request.memory_bytes, request.memory_bytes))
    out, err, stopped = _collect(child, time.monotonic() + own + GRACE_SECONDS)
    status = child.wait()
    if stopped:
        return _synthetic(request, script, stopped, f"the reader was ended from outside: {stopped}")
    report = _parse(out)
    if report is None or report["exit_status"] != status:
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return _synthetic(request, script, "instrument_failed", f"the reader ended {how} without a report")
    lines = err.decode("utf-8", "replace").splitlines()
    return Reading(
        report=report,
        text=out,
        exit_status=status,
        message=lines[0] if lines else "",
        backend=request.backend,
        dest=request.dest if status == 0 else None,
    )


def _collect(child: subprocess.Popen[bytes], give_up: float) -> tuple[bytes, bytes, str | None]:
    """Take both streams, bounded in size and time; the whole process group dies with the child."""
    assert child.stdout is not None and child.stderr is not None
    out, err = bytearray(), bytearray()
    stopped = None
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ, out)
        selector.register(child.stderr, selectors.EVENT_READ, err)
        while selector.get_map() and stopped is None:
            for key, _ in selector.select(max(0.0, give_up - time.monotonic())):
                block = os.read(key.fd, 1 << 16)
                if not block:
                    selector.unregister(key.fileobj)
                elif key.data is out:
                    out += block
                elif len(err) < MAX_STDERR_BYTES:
                    err += block
            if len(out) > MAX_REPORT_BYTES:
                stopped = "bound_total_bytes"
            elif time.monotonic() >= give_up:
                stopped = "deadline"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL) if stopped else None
    if stopped is None:
        try:
            child.wait(timeout=max(1.0, give_up - time.monotonic()))
        except subprocess.TimeoutExpired:
            stopped = "deadline"
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
    child.stdout.close()
    child.stderr.close()
    return bytes(out), bytes(err), stopped


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("report") != scoped_read.REPORT_SCHEMA:
        return None
    if not report.keys() >= _FIELDS or scoped_read.OUTCOMES.get(report["exit_status"]) != report["outcome"]:
        return None
    return report


def _synthetic(request: Request, script: str, reason: str, detail: str) -> Reading:
    """A report for a reader that could not make its own."""
    stop = scoped_read.Stop(reason, detail)
    report = scoped_read.Report(_NAMES[script], "0", request.vcs, [])
    report.backend = request.backend
    path = os.path.join(_HERE, script)
    if os.path.exists(path):
        report.code_files = [path]
    if request.scope is not None:
        with contextlib.suppress(scoped_read.Stop):
            report.scope = scoped_read.Scope(request.scope)
    text = report.render(stop)
    name = _NAMES[script]
    return Reading(
        report=json.loads(text),
        text=text.encode(),
        exit_status=stop.exit_status,
        message=f"{name}: {stop.reason}: {stop.detail}",
        backend=request.backend,
        synthetic=True,
    )


def committed_scope(paths: Iterable[str | bytes]) -> tuple[bytes, ...]:
    """Return the scope of a task: the committed paths that its check reads, the same for every reader."""
    return tuple(sorted({p.encode() if isinstance(p, str) else p for p in paths}))
