"""What the two isolated readers share: one scoped, bounded, verified read of a committed tree.

Standard library only. `oak_sqlite_reader.py` and `git_object_reader.py` load this file by path when they
run as `python -I SCRIPT`, and import it as a module otherwise, so that options, scope, bounds, path
facts, manifest, materialisation and report are the same by construction. A reader brings an object store
(`Store`); this module asks it for trees and blobs and decides nothing about formats.

The order of the questions is fixed (design section 7, docs/reader-report.md): facts about the paths in
scope are established before any bound or content error can end the read, and they are reported with every
outcome. A finding of status 3 beats one of status 77 when both occur.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple, NoReturn, Protocol

REPORT_SCHEMA = "oakledger-reader-report/1"

MODE_TREE = 0o040000
MODE_REGULAR = 0o100644
MODE_EXECUTABLE = 0o100755
MODE_LINK = 0o120000
MODE_GITLINK = 0o160000

LINK_TARGET_BYTES = 64 * 1024
"""Longest link target that is read. No file system takes one of a sixteenth of it; more would only cost
memory.
"""

PATH_BYTES = 256 * 1024 * 1024
"""Most bytes of all paths of an unscoped read together; names have no length of their own in a tree."""

SCOPE_FILE_BYTES = 256 * 1024 * 1024
"""Largest scope file that is read; a larger one is a usage error."""

OUTCOMES = {0: "ok", 1: "failed", 2: "usage", 3: "invalid", 77: "unmeasured"}


class Reason(NamedTuple):
    """What a reason code means: the exit status of the reader and whose state caused it."""

    exit_status: int
    owner: str


def _reasons(exit_status: int, owner: str, *codes: str) -> dict[str, Reason]:
    return {code: Reason(exit_status, owner) for code in codes}


REASONS: Mapping[str, Reason] = {
    **_reasons(1, "subject", "store_missing", "store_linked", "store_not_regular", "store_redirected"),
    **_reasons(1, "subject", "ref_not_regular", "no_committed_head", "malformed_head", "head_cycle"),
    **_reasons(1, "subject", "head_commit_missing", "unsafe_path"),
    **_reasons(2, "harness", "usage"),
    **_reasons(3, "subject", "commit_mismatch", "tree_mismatch", "blob_mismatch", "chunk_mismatch"),
    **_reasons(3, "subject", "size_mismatch", "store_damaged"),
    **_reasons(77, "subject", "content_absent", "content_absent_sparse", "content_absent_restricted"),
    **_reasons(77, "subject", "content_absent_lost", "not_quiescent", "store_changed", "clone_in_progress"),
    **_reasons(77, "subject", "unrecognised_format", "newer_format", "unsupported_format", "alternates"),
    **_reasons(77, "subject", "commit_header_not_reproducible"),
    **_reasons(77, "harness", "bound_object_bytes", "bound_total_bytes", "bound_entries", "bound_depth"),
    **_reasons(77, "harness", "bound_store_bytes", "deadline", "memory", "instrument_missing"),
    **_reasons(77, "harness", "instrument_failed", "destination", "read_error"),
}
"""Every reason code of docs/reader-report.md."""

_BOUND_REASONS = frozenset(code for code in REASONS if code.startswith("bound_")) | {"deadline", "memory"}


class Stop(Exception):
    """The read ends here, or one object cannot be used.

    `reason` is a code of `REASONS`; `detail` one line for people. `exit_status` overrides that of the
    code: absent content is invalid with `--complete`.
    """

    def __init__(self, reason: str, detail: str, *, exit_status: int | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = one_line(detail)
        self.exit_status = REASONS[reason].exit_status if exit_status is None else exit_status
        self.paths: list[bytes] = []
        """The paths of the object that this is about; empty when it is about the read as a whole."""

    def at(self, paths: Sequence[bytes]) -> Stop:
        """The same finding, about the object at `paths`, the first of which goes into the message."""
        self.paths = sorted(paths)
        where = show_path(self.paths[0]) if self.paths[0] else "root tree"
        self.detail = one_line(f"{where}: {self.detail}")
        return self

    @property
    def is_bound(self) -> bool:
        """Whether a harness limit ended the read, as opposed to something that the store holds."""
        return self.reason in _BOUND_REASONS


def one_line(text: str, limit: int = 400) -> str:
    """`text` as one printable ASCII line of at most `limit` characters."""
    shown = "".join(
        c if " " <= c <= "~" else c.encode("unicode_escape", "replace").decode("ascii") for c in text
    )
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def show_path(path: bytes) -> str:
    """A path for a message: quoted, printable, not over-long."""
    return '"' + one_line(path.decode("utf-8", "backslashreplace"), 160) + '"'


# --- Bounds ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounds:
    """The limits of one read, all inclusive. Sizes in bytes, the deadline in nanoseconds."""

    max_blob_bytes: int | None = None
    max_object_bytes: int = 268_435_456
    max_total_bytes: int = 4_294_967_296
    max_entries: int = 1_000_000
    max_depth: int = 256
    deadline_ns: int = 120_000_000_000
    deep: bool = False
    complete: bool = False


class Budget:
    """What a read has used of its bounds. Every method may raise `Stop` with a bound's reason.

    While `soft` is true a total or entry bound is noted in `exceeded` and the work goes on: the trees on
    the way to the paths in scope are read to the end, because path facts come before bounds. The scope
    itself limits that work.
    """

    def __init__(self, bounds: Bounds, *, started_ns: int | None = None) -> None:
        self.bounds = bounds
        self.started_ns = time.monotonic_ns() if started_ns is None else started_ns
        self.tree_entries = 0
        self.bytes_decoded = 0
        self.soft = False
        self.exceeded: Stop | None = None

    def elapsed_ns(self) -> int:
        """Nanoseconds since the read began."""
        return time.monotonic_ns() - self.started_ns

    def remaining_ns(self) -> int:
        """Nanoseconds to the deadline; negative when it has passed."""
        return self.bounds.deadline_ns - self.elapsed_ns()

    def check(self) -> None:
        """Raise `Stop("deadline")` when time is up."""
        if self.remaining_ns() < 0:
            raise self.deadline_stop()

    def deadline_stop(self) -> Stop:
        """The `Stop` of a passed deadline."""
        seconds = self.bounds.deadline_ns / 1e9
        return Stop("deadline", f"not finished after {seconds:g} s; give --deadline more seconds")

    def admit(self, size: int, what: str) -> None:
        """Check one object's decoded `size` against `--max-object-bytes`. `what` names it in the message."""
        if size > self.bounds.max_object_bytes:
            raise self.object_stop(what)

    def object_stop(self, what: str) -> Stop:
        """The `Stop` of an object over `--max-object-bytes`."""
        limit = self.bounds.max_object_bytes
        return Stop(
            "bound_object_bytes", f"{what} decodes to more than {limit} bytes; raise --max-object-bytes"
        )

    def total_stop(self) -> Stop:
        """The `Stop` of a read over `--max-total-bytes`."""
        limit = self.bounds.max_total_bytes
        return Stop("bound_total_bytes", f"the read decodes more than {limit} bytes; raise --max-total-bytes")

    def remaining_bytes(self) -> int:
        """Bytes left of `--max-total-bytes` (all of `--max-object-bytes` while `soft`)."""
        if self.soft:
            return self.bounds.max_object_bytes
        return max(0, self.bounds.max_total_bytes - self.bytes_decoded)

    def charge(self, size: int) -> None:
        """Count `size` decoded bytes of a tree or blob against `--max-total-bytes`."""
        self.check()
        self.bytes_decoded += size
        if self.bytes_decoded > self.bounds.max_total_bytes:
            self._exceed(self.total_stop())

    def charge_entries(self, count: int) -> None:
        """Count `count` tree entries against `--max-entries`."""
        self.tree_entries += count
        if self.tree_entries > self.bounds.max_entries:
            limit = self.bounds.max_entries
            self._exceed(
                Stop("bound_entries", f"the trees read hold more than {limit} entries; raise --max-entries")
            )

    def check_depth(self, depth: int, path: bytes) -> None:
        """Check the number of components of `path` against `--max-depth`."""
        if depth > self.bounds.max_depth:
            limit = self.bounds.max_depth
            where = show_path(path)
            self._exceed(Stop("bound_depth", f"{where} is deeper than {limit} components; raise --max-depth"))

    def _exceed(self, stop: Stop) -> None:
        if not self.soft:
            raise stop
        self.exceeded = self.exceeded or stop


# --- Scope ----------------------------------------------------------------------------------------


class Scope:
    """The exact committed paths that a read is about; `None` where a scope is expected means the whole
    tree.
    """

    def __init__(self, paths: Iterable[bytes]) -> None:
        """Check and keep `paths`. Raises `Stop("usage")` for one that cannot name a committed file."""
        self.paths = sorted({check_scope_path(path) for path in paths})

    @property
    def count(self) -> int:
        """Number of distinct paths."""
        return len(self.paths)

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of each sorted distinct path followed by NUL."""
        digest = hashlib.sha256()
        for path in self.paths:
            digest.update(path + b"\0")
        return digest.hexdigest()


def check_scope_path(path: bytes) -> bytes:
    """`path` itself when it is relative, UTF-8, and has no empty, `.` or `..` component; else
    `Stop("usage")`.
    """
    problem = None
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        problem = "is not UTF-8"
    if path == b"":
        problem = "is empty"
    elif path.startswith(b"/"):
        problem = "is absolute"
    elif path.endswith(b"/"):
        problem = "ends in a slash"
    elif b"\0" in path:
        problem = "holds a NUL"
    else:
        parts = path.split(b"/")
        if b"" in parts:
            problem = problem or "has an empty component"
        elif b"." in parts or b".." in parts:
            problem = problem or "has a component . or .."
    if problem:
        raise Stop("usage", f"scope path {show_path(path)} {problem}; give exact committed paths")
    return path


def split_scope(data: bytes) -> list[bytes]:
    """The paths of a scope file: separated by NUL if it holds one, else by newline; a last separator ends
    a path.
    """
    separator = b"\0" if b"\0" in data else b"\n"
    paths = data.split(separator)
    if paths[-1] == b"":
        paths.pop()
    return paths


def read_scope_file(name: str) -> list[bytes]:
    """The paths listed in the file `name`. Raises `Stop("usage")` when it cannot be read as a plain file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Stop("usage", f"cannot read the scope file: {why(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Stop("usage", "the scope file is not a plain file")
    with os.fdopen(descriptor, "rb") as stream:
        try:
            data = stream.read(SCOPE_FILE_BYTES + 1)
        except OSError as error:
            raise Stop("usage", f"cannot read the scope file: {why(error)}") from None
    if len(data) > SCOPE_FILE_BYTES:
        raise Stop("usage", f"the scope file holds more than {SCOPE_FILE_BYTES} bytes")
    return split_scope(data)


def why(error: BaseException) -> str:
    """The system's words for an error, without the path in it."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return type(error).__name__


# --- Options --------------------------------------------------------------------------------------


@dataclass
class Options:
    """One parsed command line. `repo` is a directory; `dest` and `manifest` do not exist yet."""

    repo: str
    dest: str | None
    scope: Scope | None
    manifest: str | None
    bounds: Bounds
    backend: str


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Stop("usage", f"{message}; see --help")


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError("must be a whole number, 0 or more")
    return int(text)


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,9})(?:\.([0-9]{1,9}))?", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError("must be a decimal number of seconds, 0 or more")
    return int(match[1]) * 1_000_000_000 + int((match[2] or "").ljust(9, "0"))


def make_parser(
    prog: str, description: str, backends: Sequence[str], default_backend: str
) -> argparse.ArgumentParser:
    """The command line of docs/reader-report.md. Its `error` raises `Stop("usage")`."""
    parser = _Parser(prog=prog, description=description, allow_abbrev=False)
    default = Bounds()
    add = parser.add_argument
    add("repo", metavar="REPO", help="working directory of the repository")
    add("dest", metavar="DEST", nargs="?", help="new directory to write the committed files into")
    add("--scope", metavar="FILE", help="exact committed paths, separated by NUL or newline")
    add("--path", metavar="P", action="append", default=[], help="one exact committed path; repeatable")
    add("--manifest", metavar="-|FILE", help="entries in the report (-) or one a line in a new FILE")
    add(
        "--max-blob-bytes",
        metavar="N",
        type=_count,
        help="report larger blobs in scope instead of reading them",
    )
    add(
        "--max-object-bytes",
        metavar="N",
        type=_count,
        default=default.max_object_bytes,
        help="size of one object",
    )
    add(
        "--max-total-bytes",
        metavar="N",
        type=_count,
        default=default.max_total_bytes,
        help="size of all objects",
    )
    add(
        "--max-entries",
        metavar="N",
        type=_count,
        default=default.max_entries,
        help="entries of all trees read",
    )
    add("--max-depth", metavar="N", type=_count, default=default.max_depth, help="components of a path")
    add("--deadline", metavar="SECONDS", type=_seconds, default=default.deadline_ns, help="time limit (120)")
    add("--deep", action="store_true", help="also verify every ancestor commit")
    add("--complete", action="store_true", help="absent content in scope is invalid instead of unmeasured")
    add("--backend", choices=list(backends), default=default_backend, help="implementation to use")
    return parser


def parse_options(parser: argparse.ArgumentParser, argv: Sequence[str]) -> Options:
    """Parse and check a command line. Raises `Stop("usage")`; touches nothing but the scope file."""
    given = parser.parse_args(list(argv))
    bounds = Bounds(
        max_blob_bytes=given.max_blob_bytes,
        max_object_bytes=given.max_object_bytes,
        max_total_bytes=given.max_total_bytes,
        max_entries=given.max_entries,
        max_depth=given.max_depth,
        deadline_ns=given.deadline,
        deep=given.deep,
        complete=given.complete,
    )
    scope = None
    if given.scope is not None or given.path:
        paths = [os.fsencode(path) for path in given.path]
        if given.scope is not None:
            paths += read_scope_file(given.scope)
        scope = Scope(paths)
    if not _is_directory(given.repo):
        raise Stop("usage", "REPO is not a directory")
    if given.dest is not None and _exists(given.dest):
        raise Stop("usage", "DEST exists; give a new directory")
    if given.manifest is not None and given.manifest != "-" and _exists(given.manifest):
        raise Stop("usage", "the manifest file exists; give a new name")
    return Options(given.repo, given.dest, scope, given.manifest, bounds, given.backend)


def _is_directory(name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name).st_mode)
    except (OSError, ValueError):
        return False


def _exists(name: str) -> bool:
    """Whether the name is taken, by a dangling link too. An empty or impossible name is a usage error."""
    if name == "" or "\0" in name:
        raise Stop("usage", "DEST and the manifest file need a name")
    try:
        os.lstat(name)
    except FileNotFoundError:
        return False
    except OSError:
        return False  # Writing there will fail, and say so as `destination`.
    return True


# --- Trees and entries ----------------------------------------------------------------------------


class TreeEntry(NamedTuple):
    """One entry of a tree: raw name, mode (`MODE_*`), and the object's id as the store writes it."""

    name: bytes
    mode: int
    object_id: str


class Store(Protocol):
    """The verified objects of one repository. All results are re-hashed; ids are the store's own text.

    A result that is a `Stop` concerns that object alone (absent, does not verify, over the object bound)
    and lets the read go on; a raised `Stop` ends the read. Results may come in any order, one for each
    distinct id asked.
    """

    def read_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[TreeEntry] | Stop]]:
        """Read trees. Charges their decoded bytes to the budget; entries are charged by the caller."""
        ...

    def blob_sizes(self, ids: Sequence[str]) -> Mapping[str, int | None]:
        """The decoded size each blob claims, without decoding it; None when absent or not well-formed."""
        ...

    def read_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | Stop]]:
        """Read blobs, charging decoded bytes to the budget."""
        ...

    def judge(self, stop: Stop) -> Stop:
        """What a finding about one object amounts to, given what else verified in the store."""
        ...

    def verify_history(self) -> Iterator[Stop]:
        """With `--deep`: verify ancestors and whatever else the format allows; yields the findings."""
        ...


@dataclass(slots=True)
class Entry:
    """One path of the manifest. `sha256` is hex; None where the content was not read."""

    path: bytes
    mode: int
    object_id: str
    size: int | None = None
    sha256: str | None = None
    target: bytes | None = None

    @property
    def is_file(self) -> bool:
        """Regular or executable file."""
        return self.mode in (MODE_REGULAR, MODE_EXECUTABLE)

    @property
    def has_content(self) -> bool:
        """File or link: something with a blob behind it."""
        return self.mode in (MODE_REGULAR, MODE_EXECUTABLE, MODE_LINK)


def encode_path(path: bytes) -> str | dict[str, str]:
    """A path for a list of the report: text where it is UTF-8, else `{"path_b64": ...}`."""
    try:
        return path.decode("utf-8")
    except UnicodeDecodeError:
        return {"path_b64": base64.b64encode(path).decode("ascii")}


def entry_json(entry: Entry) -> dict[str, Any]:
    """An entry as the report and the manifest file hold it."""
    shown = encode_path(entry.path)
    result: dict[str, Any] = {"path": shown} if isinstance(shown, str) else dict(shown)
    result |= {"mode": f"{entry.mode:06o}", "size": entry.size, "sha256": entry.sha256}
    if entry.target is not None:
        try:
            result["target"] = entry.target.decode("utf-8")
        except UnicodeDecodeError:
            result["target_b64"] = base64.b64encode(entry.target).decode("ascii")
    return result


def manifest_sha256(entries: Iterable[Entry]) -> str:
    """SHA-256 (hex) over `mode SP size SP sha256 SP path NUL` of all entries, which must be sorted by
    path.
    """
    digest = hashlib.sha256()
    for entry in entries:
        size = "-" if entry.size is None else str(entry.size)
        head = f"{entry.mode:06o} {size} {entry.sha256 or '-'} ".encode("ascii")
        digest.update(head + entry.path + b"\0")
    return digest.hexdigest()


# --- Path facts -----------------------------------------------------------------------------------


@dataclass
class Findings:
    """What is true of the paths in scope, whatever becomes of the read. Paths are raw bytes, sorted in
    the report.
    """

    nonregular: set[bytes] = field(default_factory=set)
    oversize: set[bytes] = field(default_factory=set)
    missing: set[bytes] = field(default_factory=set)
    unsafe: set[bytes] = field(default_factory=set)
    colliding: list[list[bytes]] = field(default_factory=list)


# Code points that HFS+ ignores when it compares names (Apple technical note 1150; the same set that git
# guards).
_HFS_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF], None
)
_NTFS_TAIL = re.compile(r"[ .]*(?::.*)?\Z", re.DOTALL)
_CONTROL_NAME = re.compile(r"(?:\.(?:git|oak)|(?:git|oak)~[0-9]+)\Z")


def fold_name(name: bytes) -> str:
    """A name as a case-folding, normalising file system compares it: NFC and full case folding."""
    if name.isascii():
        return name.decode("ascii").lower()
    text = unicodedata.normalize("NFC", name.decode("utf-8", "surrogateescape"))
    return unicodedata.normalize("NFC", text.casefold())


def is_control_name(name: bytes) -> bool:
    """Whether some file system takes the name for `.git` or `.oak`, or for a way out of its directory.

    Covers letter case, the code points that HFS+ ignores, and on NTFS trailing dots and spaces, streams,
    short names, and the backslash as a separator.
    """
    if name.isascii():
        # Nearly every name: nothing in it is folded away, so what follows needs one of these to answer yes.
        lower = name.lower()
        if b"git" not in lower and b"oak" not in lower and b"\\" not in lower:
            return False
    text = name.decode("utf-8", "surrogateescape").translate(_HFS_IGNORED)
    folded = unicodedata.normalize("NFC", text).casefold()
    for index, part in enumerate(folded.split("\\")):
        if index and part.rstrip(" .") == "" and part.startswith(".."):
            return True
        if _CONTROL_NAME.match(_NTFS_TAIL.sub("", part)):
            return True
    return folded.startswith("..\\")


def is_unsafe_path(path: bytes) -> bool:
    """Whether writing the path could reach a repository's control directory or leave the destination.

    `.oak/attributes` and everything below `.oak/workflows` are tracked content and safe in exactly that
    spelling.
    """
    parts = path.split(b"/")
    if path == b".oak/attributes":
        return False
    if len(parts) > 2 and parts[:2] == [b".oak", b"workflows"]:
        parts = parts[2:]
    return any(part in (b"", b".", b"..") or is_control_name(part) for part in parts)


def find_collisions(paths: Sequence[bytes]) -> list[list[bytes]]:
    """Groups of paths that fall together, themselves or in a directory above them, when names are folded."""
    folded_of: dict[bytes, str] = {b"": ""}
    spelled: dict[str, bytes] = {}
    clashes: set[str] = set()

    def fold(path: bytes) -> None:
        # From the nearest known directory downwards, so that a path of any depth needs no recursion.
        todo = []
        while path not in folded_of:
            todo.append(path)
            path = path.rpartition(b"/")[0]
        for below in reversed(todo):
            parent, _, name = below.rpartition(b"/")
            folded = f"{folded_of[parent]}/{fold_name(name)}"
            folded_of[below] = folded
            if spelled.setdefault(folded, below) != below:
                clashes.add(folded)

    for path in paths:
        fold(path)
    if not clashes:
        return []
    leader: dict[bytes, bytes] = {}

    def find(path: bytes) -> bytes:
        while leader.setdefault(path, path) != path:
            leader[path] = leader[leader[path]]
            path = leader[path]
        return path

    first: dict[str, bytes] = {}
    for path in paths:
        above = path
        while above:
            folded = folded_of[above]
            if folded in clashes:
                leader[find(path)] = find(first.setdefault(folded, path))
            above = above.rpartition(b"/")[0]
    groups: dict[bytes, list[bytes]] = {}
    for path in leader:
        groups.setdefault(find(path), []).append(path)
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


# --- The walk -------------------------------------------------------------------------------------


class _Node:
    """A directory on the way to paths in scope, or a path in scope, or both."""

    __slots__ = ("below", "wanted")

    def __init__(self) -> None:
        self.below: dict[bytes, _Node] = {}
        self.wanted = False


def _scope_tree(scope: Scope) -> _Node:
    root = _Node()
    for path in scope.paths:
        node = root
        for part in path.split(b"/"):
            node = node.below.setdefault(part, _Node())
        node.wanted = True
    return root


def _join(prefix: bytes, name: bytes) -> bytes:
    return prefix + b"/" + name if prefix else name


class _Walk:
    """Reads trees level by level, without recursion, and keeps the entries in scope and the findings on
    the way.
    """

    def __init__(self, store: Store, budget: Budget, findings: Findings) -> None:
        self.store = store
        self.budget = budget
        self.findings = findings
        self.entries: list[Entry] = []
        self.pending: list[Stop] = []
        self.path_bytes = 0

    def keep(self, prefix: bytes, item: TreeEntry) -> None:
        """Take an entry into the manifest and note what its name and mode say."""
        entry = Entry(_join(prefix, item.name), item.mode, item.object_id)
        self.entries.append(entry)
        if not entry.is_file:
            self.findings.nonregular.add(entry.path)
        if is_unsafe_path(entry.path):
            self.findings.unsafe.add(entry.path)

    def whole(self, root: str) -> None:
        """Everything below the tree `root`. A bound ends the walk after the tree in hand.

        The root tree is read in any case, so that the facts that it shows come before bounds.
        """
        level: dict[str, list[bytes]] = {root: [b""]}
        depth = 0
        while level:
            depth += 1
            self.budget.soft = depth == 1
            below: dict[str, list[bytes]] = {}
            for tree, items in self.store.read_trees(list(level)):
                if isinstance(items, Stop):
                    self.pending.append(items.at(level[tree]))
                    continue
                for prefix in level[tree]:
                    self.budget.check()
                    for item in items:
                        self.path_bytes += len(prefix) + 1 + len(item.name)
                        if self.path_bytes > PATH_BYTES:
                            raise Stop(
                                "bound_entries", f"the paths are longer than {PATH_BYTES} bytes together"
                            )
                        if item.mode == MODE_TREE:
                            below.setdefault(item.object_id, []).append(_join(prefix, item.name))
                        else:
                            self.keep(prefix, item)
                    # Charged after the facts of the tree are noted: facts come before bounds.
                    self.budget.charge_entries(len(items))
                    if items:
                        self.budget.check_depth(depth, _join(prefix, items[0].name))
            if self.budget.exceeded is not None:
                return
            level = below

    def scoped(self, root: str, scope: Scope) -> None:
        """Only the trees on the way to the paths in scope."""
        level: dict[str, list[tuple[bytes, _Node]]] = {root: [(b"", _scope_tree(scope))]}
        depth = 0
        self.budget.soft = True
        while level:
            depth += 1
            below: dict[str, list[tuple[bytes, _Node]]] = {}
            for tree, items in self.store.read_trees(list(level)):
                if isinstance(items, Stop):
                    self.pending.append(items.at([prefix for prefix, _ in level[tree]]))
                    continue
                self.budget.charge_entries(len(items))
                named = {item.name: item for item in items}
                for prefix, node in level[tree]:
                    self.budget.check()
                    for name, child in node.below.items():
                        item = named.get(name)
                        path = _join(prefix, name)
                        if item is None:
                            self.lose(path, child)
                            continue
                        self.budget.check_depth(depth, path)
                        if child.wanted:
                            self.keep(prefix, item)
                        if not child.below:
                            continue
                        if item.mode == MODE_TREE:
                            below.setdefault(item.object_id, []).append((path, child))
                        else:
                            for deeper, grandchild in child.below.items():
                                self.lose(_join(path, deeper), grandchild)
            level = below

    def lose(self, path: bytes, node: _Node) -> None:
        """Everything in scope at or below `path` is missing."""
        todo = [(path, node)]
        while todo:
            path, node = todo.pop()
            if node.wanted:
                self.findings.missing.add(path)
            todo.extend((_join(path, name), child) for name, child in node.below.items())


def _worst(store: Store, pending: Sequence[Stop]) -> Stop | None:
    """The finding that decides: the first of status 3, else the first bound, else the first."""
    judged = [store.judge(stop) for stop in pending]
    for stop in judged:
        if stop.exit_status == 3:
            return stop
    for stop in judged:
        if stop.is_bound:
            return stop
    return judged[0] if judged else None


def read_snapshot(
    store: Store,
    root: str,
    options: Options,
    budget: Budget,
    report: Report,
    sink: Materialiser | None,
) -> list[Entry]:
    """Read the tree `root` as far as the scope goes and return the manifest, sorted by path bytes.

    Fills the report's findings as it goes, so that they stand in the report however the read ends. Raises
    `Stop` when it does not end well. `sink` receives files as they are verified and links at the end.
    """
    findings = report.findings
    walk = _Walk(store, budget, findings)
    ended: Stop | None = None
    try:
        if options.scope is None:
            walk.whole(root)
        else:
            walk.scoped(root, options.scope)
        ended = budget.exceeded
    except Stop as stop:
        if not stop.is_bound:
            raise
        ended = stop
    finally:
        budget.soft = False
    entries = sorted(walk.entries, key=lambda entry: entry.path)
    ended = _path_facts(store, entries, budget, findings) or ended
    if sink is not None and (findings.unsafe or findings.colliding):
        path = min([*findings.unsafe, *(group[0] for group in findings.colliding)])
        raise Stop("unsafe_path", f"{show_path(path)} cannot be written safely; nothing was written")

    pending = list(walk.pending)
    if ended is not None:
        raise _worst(store, [*pending, ended]) or ended
    decided = _worst(store, pending)
    if decided is not None and (decided.exit_status == 3 or any(stop.is_bound for stop in pending)):
        raise decided
    try:
        _contents(store, entries, options.bounds, budget, findings, sink, pending)
    finally:
        report.decompressed_chunks |= {e.path for e in entries if e.object_id in report.decompressed_ids}
    decided = _worst(store, pending)
    if decided is not None and decided.exit_status == 3:
        raise decided
    if options.bounds.deep and not any(stop.is_bound for stop in pending):
        pending.extend(store.verify_history())
        report.incomplete_chunk_maps |= {e.path for e in entries if e.object_id in report.incomplete_map_ids}
        report.decompressed_chunks |= {e.path for e in entries if e.object_id in report.decompressed_ids}
    decided = _worst(store, pending)
    if decided is not None:
        raise decided
    if sink is not None:
        sink.links(
            [entry for entry in entries if entry.mode == MODE_LINK and entry.path not in findings.oversize]
        )
    return entries


def _path_facts(store: Store, entries: Sequence[Entry], budget: Budget, findings: Findings) -> Stop | None:
    """Sizes, oversize and colliding paths. Returns the bound that kept the sizes from being known, if one
    did.
    """
    findings.colliding = find_collisions([entry.path for entry in entries])
    try:
        sizes = store.blob_sizes(sorted({entry.object_id for entry in entries if entry.has_content}))
    except Stop as stop:
        if not stop.is_bound:
            raise
        return stop
    limit = budget.bounds.max_blob_bytes
    for entry in entries:
        if entry.has_content:
            entry.size = sizes.get(entry.object_id)
            if limit is not None and entry.size is not None and entry.size > limit:
                findings.oversize.add(entry.path)
    return None


def _contents(
    store: Store,
    entries: Sequence[Entry],
    bounds: Bounds,
    budget: Budget,
    findings: Findings,
    sink: Materialiser | None,
    pending: list[Stop],
) -> None:
    """Read the blobs of the entries, each once; findings go to `pending`. Raises on a definite mismatch."""
    users: dict[str, list[Entry]] = {}
    planned = budget.bytes_decoded
    for entry in entries:
        if not entry.has_content or entry.path in findings.oversize:
            continue
        size = entry.size or 0
        if entry.mode == MODE_LINK and (
            size > min(bounds.max_object_bytes, LINK_TARGET_BYTES)
            or (entry.object_id not in users and planned + size > bounds.max_total_bytes)
        ):
            continue
        if size > bounds.max_object_bytes:
            pending.append(budget.object_stop(show_path(entry.path)))
            continue
        if entry.object_id in users:
            users[entry.object_id].append(entry)
            continue
        if planned + size > bounds.max_total_bytes:
            pending.append(budget.total_stop())
            break
        planned += size
        users[entry.object_id] = [entry]
    if not users:
        return
    try:
        for object_id, content in store.read_blobs(list(users)):
            budget.check()
            if isinstance(content, Stop):
                pending.append(content.at([entry.path for entry in users[object_id]]))
                if store.judge(content).exit_status == 3:
                    break
                continue
            sha256 = hashlib.sha256(content).hexdigest()
            for entry in users[object_id]:
                entry.size = len(content)
                if bounds.max_blob_bytes is not None and len(content) > bounds.max_blob_bytes:
                    findings.oversize.add(
                        entry.path
                    )  # The store could not say the true size before decoding.
                    continue
                if entry.mode == MODE_LINK and len(content) > LINK_TARGET_BYTES:
                    continue
                entry.sha256 = sha256
                if entry.mode == MODE_LINK:
                    entry.target = content
                elif sink is not None:
                    sink.file(entry, content)
    except Stop as stop:
        if not stop.is_bound:
            raise
        pending.append(stop)


# --- Writing --------------------------------------------------------------------------------------


class Materialiser:
    """Writes committed files into a new directory, never outside it, and removes it again unless `keep()`
    is called.

    Directories are opened one component at a time without following links; files are created exclusively.
    Whatever the file system refuses is `Stop("destination")`. `cleanup` is where the removal is registered.
    """

    def __init__(self, dest: str, cleanup: contextlib.ExitStack) -> None:
        self.dest = dest
        self._root = -1
        self._making = False
        self._kept = False
        self._made: set[bytes] = {b""}
        cleanup.callback(self._finish)

    def _finish(self) -> None:
        if self._root >= 0:
            os.close(self._root)
        if self._kept:
            return
        if self._root >= 0:
            shutil.rmtree(self.dest, ignore_errors=True)
        elif self._making:
            with contextlib.suppress(OSError):
                os.rmdir(self.dest)

    def create(self) -> None:
        """Make the destination. Also done by the first write; a read of nothing still leaves an empty
        directory.
        """
        if self._root >= 0:
            return
        try:
            self._making = True
            os.mkdir(self.dest, 0o755)
            self._root = os.open(self.dest, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileExistsError:
            self._making = False
            raise Stop("usage", "DEST exists; give a new directory") from None
        except (OSError, ValueError) as error:
            raise Stop("destination", f"cannot make DEST: {why(error)}") from None

    def keep(self) -> None:
        """The read ended well: leave the files in place."""
        self.create()
        self._kept = True

    @contextlib.contextmanager
    def _parent(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """A descriptor of the directory that `path` goes into, and the last component."""
        self.create()
        directory, _, name = path.rpartition(b"/")
        current = os.dup(self._root)
        try:
            done = b""
            for part in directory.split(b"/") if directory else []:
                done = _join(done, part)
                if done not in self._made:
                    os.mkdir(part, 0o755, dir_fd=current)
                    self._made.add(done)
                deeper = os.open(
                    part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=current
                )
                os.close(current)
                current = deeper
            yield current, name
        except (OSError, ValueError) as error:
            raise Stop("destination", f"cannot write {show_path(path)}: {why(error)}") from None
        finally:
            os.close(current)

    def file(self, entry: Entry, content: bytes) -> None:
        """Write one regular or executable file."""
        mode = 0o755 if entry.mode == MODE_EXECUTABLE else 0o644
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._parent(entry.path) as (directory, name):
            descriptor = os.open(name, flags, mode, dir_fd=directory)
            with os.fdopen(descriptor, "wb", buffering=0) as stream:
                view = memoryview(content)
                while view:
                    view = view[stream.write(view) :]

    def links(self, entries: Iterable[Entry]) -> None:
        """Write the symbolic links, after every file, so that nothing can be written through one."""
        for entry in entries:
            if entry.target is None:
                raise Stop("destination", f"the target of the link {show_path(entry.path)} is over a bound")
            with self._parent(entry.path) as (directory, name):
                os.symlink(entry.target, name, dir_fd=directory)


def write_manifest(name: str, entries: Iterable[Entry]) -> None:
    """Write one JSON entry a line into the new file `name`, by temporary file and rename."""
    directory, base = os.path.split(name)
    temporary = os.path.join(directory, f".{base[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "x", encoding="ascii", newline="\n") as stream:
            try:
                for entry in entries:
                    stream.write(_dump(entry_json(entry)) + "\n")
                stream.flush()
                os.fsync(stream.fileno())
                if _exists(name):
                    raise Stop("usage", "the manifest file exists; give a new name")
                os.rename(temporary, name)
            except BaseException:
                os.unlink(temporary)
                raise
    except OSError as error:
        raise Stop("destination", f"cannot write the manifest: {why(error)}") from None


def temporary_directory(cleanup: contextlib.ExitStack) -> str:
    """A new private directory, removed when `cleanup` unwinds."""
    name = os.path.join(tempfile.gettempdir(), f"oakledger-{secrets.token_hex(12)}")
    cleanup.callback(shutil.rmtree, name, ignore_errors=True)
    os.mkdir(name, 0o700)
    return name


# --- The report -----------------------------------------------------------------------------------


def source_sha256(files: Iterable[str]) -> str:
    """SHA-256 (hex) over source files sorted by name, each as `name NUL length NUL bytes`."""
    return files_sha256({os.path.basename(name): name for name in files})


def files_sha256(files: Mapping[str, str]) -> str:
    """The same over files by the names that count: `files` maps those to the paths to read."""
    digest = hashlib.sha256()
    for name in sorted(files, key=os.fsencode):
        with open(files[name], "rb") as stream:
            data = stream.read()
        digest.update(b"%s\0%d\0" % (os.fsencode(name), len(data)))
        digest.update(data)
    return digest.hexdigest()


@dataclass
class Report:
    """What the reader knows about this read so far; `as_json` is the report of docs/reader-report.md.

    A reader's `open` function fills `head`, `format`, `verified`, `shallow_boundary`, `hard_linked`,
    `codec_sha256` and `dependencies` as soon as it knows them.
    """

    reader: str
    reader_version: str
    vcs: str
    code_files: Sequence[str]
    backend: str | None = None
    codec_sha256: str | None = None
    dependencies: dict[str, str] = field(default_factory=dict)
    head: str | None = None
    format: dict[str, Any] = field(default_factory=dict)
    verified: dict[str, int] = field(default_factory=dict)
    decompressed_ids: set[str] = field(default_factory=set)
    decompressed_chunks: set[bytes] = field(default_factory=set)
    incomplete_map_ids: set[str] = field(default_factory=set)
    incomplete_chunk_maps: set[bytes] = field(default_factory=set)
    shallow_boundary: set[str] = field(default_factory=set)
    hard_linked: bool = False
    findings: Findings = field(default_factory=Findings)
    scope: Scope | None = None
    budget: Budget = field(default_factory=lambda: Budget(Bounds()))
    entry_count: int = 0
    manifest_sha256: str | None = None
    entries_text: str | None = None

    def count(self, how: str, number: int = 1) -> None:
        """Add to the objects verified in the way `how`."""
        self.verified[how] = self.verified.get(how, 0) + number

    def _code_sha256(self) -> str | None:
        try:
            return source_sha256(self.code_files)
        except OSError:
            return None  # The sources have gone; that must not cost the report.

    def render(self, stop: Stop | None) -> str:
        """The report as one line of JSON, with `entries` when they were asked for and the read ended well."""
        text = _dump(self.as_json(stop))
        if stop is not None or self.entries_text is None:
            return text
        return f'{text[:-1]},"entries":{self.entries_text}}}'

    def as_json(self, stop: Stop | None) -> dict[str, Any]:
        """The report without `entries`; `stop` is why the read ended, None when it ended well."""
        status = 0 if stop is None else stop.exit_status
        bounds = self.budget.bounds
        found = self.findings
        return {
            "report": REPORT_SCHEMA,
            "reader": self.reader,
            "reader_version": self.reader_version,
            "vcs": self.vcs,
            "backend": self.backend,
            "code_sha256": self._code_sha256(),
            "codec_sha256": self.codec_sha256,
            "dependencies": self.dependencies,
            "outcome": OUTCOMES[status],
            "exit_status": status,
            "reason": None if stop is None else stop.reason,
            "detail": None if stop is None else stop.detail,
            "head": self.head,
            "format": self.format,
            "scope": {
                "count": None if self.scope is None else self.scope.count,
                "sha256": None if self.scope is None else self.scope.sha256,
            },
            "bounds": {
                "max_blob_bytes": bounds.max_blob_bytes,
                "max_object_bytes": bounds.max_object_bytes,
                "max_total_bytes": bounds.max_total_bytes,
                "max_entries": bounds.max_entries,
                "max_depth": bounds.max_depth,
                "deadline_ns": bounds.deadline_ns,
                "deep": bounds.deep,
                "complete": bounds.complete,
            },
            "counts": {
                "entries": self.entry_count if stop is None else 0,
                "tree_entries": self.budget.tree_entries,
                "bytes_decoded": self.budget.bytes_decoded,
                "objects_verified": sum(self.verified.values()),
            },
            "verified": dict(sorted(self.verified.items())),
            "nonregular_paths": _paths(found.nonregular),
            "oversize_paths": _paths(found.oversize),
            "missing_paths": _paths(found.missing),
            "unsafe_paths": _paths(found.unsafe - {path for group in found.colliding for path in group}),
            "colliding_paths": [_paths(group) for group in found.colliding],
            "decompressed_chunks": _paths(self.decompressed_chunks),
            "incomplete_chunk_maps": _paths(self.incomplete_chunk_maps),
            "shallow_boundary": sorted(self.shallow_boundary),
            "hard_linked": self.hard_linked,
            "manifest_sha256": self.manifest_sha256 if stop is None else None,
            "duration_ns": self.budget.elapsed_ns(),
        }


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _paths(paths: Iterable[bytes]) -> list[str | dict[str, str]]:
    return [encode_path(path) for path in sorted(paths)]


# --- One invocation -------------------------------------------------------------------------------


class Snapshot(NamedTuple):
    """An opened repository: its objects, and the id of the root tree of the commit that HEAD names.

    `check` is for a reader that works on the subject's own files: asked after the read, unless a bound
    ended it, it raises `Stop("store_changed")` when they are not what they were.
    """

    store: Store
    root: str
    check: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Reader:
    """A reader as `run` and `main` need it.

    `open` opens the repository of the options, fills the report as it learns things, pushes what must be
    undone on the exit stack (before it does the thing: the alarm may strike at any line), and raises
    `Stop`. It and the snapshot's store must check the budget in every loop. `code_files` are the reader's
    own sources.
    """

    name: str
    version: str
    vcs: str
    prog: str
    description: str
    backends: tuple[str, ...]
    default_backend: str
    code_files: tuple[str, ...]
    open: Callable[[Options, Report, Budget, contextlib.ExitStack], Snapshot]


def _read(
    reader: Reader, options: Options, report: Report, budget: Budget, cleanup: contextlib.ExitStack
) -> Materialiser | None:
    sink = Materialiser(options.dest, cleanup) if options.dest is not None else None
    snapshot = reader.open(options, report, budget, cleanup)
    try:
        entries = read_snapshot(snapshot.store, snapshot.root, options, budget, report, sink)
    except Stop as stop:
        if not stop.is_bound:
            snapshot.check()
        raise
    snapshot.check()
    if sink is not None:
        sink.create()
    report.manifest_sha256 = manifest_sha256(entries)
    if options.manifest == "-":
        report.entries_text = f"[{','.join(_dump(entry_json(entry)) for entry in entries)}]"
    elif options.manifest is not None:
        write_manifest(options.manifest, entries)
    report.entry_count = len(entries)
    return sink


class _Alarm:
    """Raises `Stop` in the middle of long Python work when the deadline passes or the process is told to end.

    Only in a process of its own (`main`): the budget's own checks are enough elsewhere. One shot, and off
    before any clean-up runs, so that clean-up is never interrupted.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.armed = False

    def __enter__(self) -> _Alarm:
        self.armed = True
        signal.signal(signal.SIGALRM, self._expired)
        signal.signal(signal.SIGTERM, self._told)
        signal.signal(signal.SIGINT, self._told)
        signal.setitimer(signal.ITIMER_REAL, min(max(self.budget.remaining_ns() / 1e9, 1e-6), 1e8))
        return self

    def __exit__(self, *exc: object) -> None:
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _expired(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            self.armed = False
            raise self.budget.deadline_stop()

    def _told(self, number: int, frame: FrameType | None) -> None:
        if self.armed:
            self.armed = False
            raise Stop("instrument_failed", "the reader was told to stop")


def run(
    reader: Reader, argv: Sequence[str], *, alarm: bool = False, started_ns: int | None = None
) -> tuple[Report, Stop | None]:
    """Do one read and say how it ended; never raises for bad input. `alarm` needs a process of its own.

    Temporary things, and a destination that was not finished, are gone when this returns.
    """
    report = Report(reader.name, reader.version, reader.vcs, reader.code_files)
    report.budget = Budget(Bounds(), started_ns=started_ns)
    try:
        options = parse_options(
            make_parser(reader.prog, reader.description, reader.backends, reader.default_backend), argv
        )
        report.scope = options.scope
        report.backend = options.backend
        budget = report.budget = Budget(options.bounds, started_ns=started_ns)
        guard: AbstractContextManager[object] = _Alarm(budget) if alarm else contextlib.nullcontext()
        with contextlib.ExitStack() as cleanup:
            with guard:
                budget.check()
                sink = _read(reader, options, report, budget, cleanup)
                budget.check()
            if sink is not None:
                sink.keep()
    except Stop as stop:
        return report, stop
    except MemoryError:
        return report, Stop("memory", "out of memory; give the reader more, or a smaller scope")
    except RecursionError:
        return report, Stop("memory", "out of stack")
    except OSError as error:
        return report, Stop("read_error", f"the operating system refused: {why(error)}")
    except KeyboardInterrupt:
        return report, Stop("instrument_failed", "the reader was interrupted")
    except Exception as error:
        return report, Stop(
            "instrument_failed", f"the reader failed ({type(error).__name__}); please report it"
        )
    return report, None


def main(reader: Reader, argv: Sequence[str] | None = None) -> int:
    """The whole command: read, one JSON report on standard output, one line on standard error unless all
    is well.

    Returns the exit status.
    """
    started_ns = time.monotonic_ns()
    arguments = sys.argv[1:] if argv is None else argv
    in_main = threading.current_thread() is threading.main_thread()
    # A signal that arrives in a destructor cannot be raised from there, and must not be printed either.
    sys.unraisablehook = lambda _: None
    report, stop = run(reader, arguments, alarm=in_main, started_ns=started_ns)
    try:
        text = report.render(stop)
    except MemoryError:
        stop = Stop(
            "memory", "out of memory while the report was written; give the reader more, or a smaller scope"
        )
        text = report.render(stop)
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    if stop is None:
        return 0
    sys.stderr.write(f"{report.reader}: {stop.reason}: {stop.detail}\n")
    return stop.exit_status
