"""One scoped, verified read of a Git repository, whatever fetches the objects.

What both Git backends share, so that they cannot differ: the checks of the ``.git`` directory, the
configuration that matters, the way from HEAD to a commit, the hashing of every object, the trees. A backend
brings an `ObjectSource`: it finds objects and is believed in nothing. ``reader/git_object_reader.py`` (own
code for loose objects and packs) and ``reader/git_instrument_reader.py`` (a git child process) are such
backends.

Every object that is used is hashed here, under the name by which it was asked for. A hash that does not
match, or an object that is malformed, is always exit 3 in a Git repository, HEAD's commit and root tree
included: the configuration says which hash function the names are made with, so no other convention is in
question (an Oak store does not say).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from reader.git_config import MAX_CONFIG_BYTES, ConfigFault, object_format_of
from reader.git_files import (
    Fingerprint,
    Irregular,
    TooLong,
    fingerprint_of,
    kind_of,
    look,
    open_directory,
    read_file,
)
from reader.git_objects import LimitExceeded, Malformed, ObjectFormat, StoreChanged, parse_commit
from reader.git_refs import RefFault, check_shape, resolve_head
from reader.git_trees import parse_tree
from reader.scoped_read import (
    MODE_EXECUTABLE,
    MODE_GITLINK,
    MODE_LINK,
    MODE_REGULAR,
    MODE_TREE,
    Budget,
    Options,
    Report,
    Snapshot,
    Stop,
    TreeEntry,
)

MAX_PACK_FILES = 20_000
"""Names in the pack directory that are looked at."""

Copy = tuple[bytes, bytes]
"""An object as a source found it: kind and content, not verified."""

Fault = Malformed | LimitExceeded
"""What is wrong with the object (or its size) that was asked for, as a result and not raised."""


class ObjectSource(Protocol):
    """Finds objects by raw name. Nothing that it returns is believed before it is hashed.

    Every method checks the budget in its loops. Faults of one object are results; what concerns the whole
    store is raised: `StoreChanged`, `Irregular`, or a `Stop` of the source's own.
    """

    def info(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, tuple[bytes, int] | Fault | None]]:
        """Kind and size in bytes that each object is said to have, in any order; None when it is absent.

        No content is decoded.
        """
        ...

    def contents(self, names: Sequence[bytes], limit: int) -> Iterator[tuple[bytes, Copy | Fault | None]]:
        """Kind and content of each object, in any order, each name once; None when it is absent.

        An object of more than ``limit`` bytes is a `LimitExceeded`, found before it is decoded.
        """
        ...

    def copies(self, name: bytes, limit: int) -> Iterator[Copy]:
        """Every readable copy of an object: asked when that from `contents` does not verify. May be empty."""
        ...

    def doubt(self) -> Stop | None:
        """Why an object that was not found could be there all the same (a damaged or unknown container), or
        None.
        """
        ...


@dataclass
class Repository:
    """An open repository whose shape has been checked.

    ``directory`` and ``objects`` are descriptors of ``.git`` and of its object directory. ``pack_files`` maps
    every file name in ``objects/pack`` to its fingerprint. ``path`` is where ``.git`` was found, for messages
    and for a child process; what is below it may have been replaced since, the descriptors cannot.
    """

    path: str
    directory: int
    objects: int
    object_format: ObjectFormat
    pack_files: dict[bytes, Fingerprint]
    head: bytes = b""
    watched: dict[bytes, Fingerprint | None] = field(default_factory=dict)


MakeSource = Callable[[Repository, Budget, contextlib.ExitStack], ObjectSource]
"""How a backend opens its source. What must be closed goes on the exit stack."""


# --- Shape --------------------------------------------------------------------------------------------------


def _open_git_directory(repo: int) -> int:
    """Descriptor of ``.git`` below an open working directory.

    HEAD, objects and refs in REPO itself make no repository here, although git would take it for a bare one:
    they can be planted as ordinary files of a worktree whose ``.git`` was removed.
    """
    status = look(repo, b".git")
    if status is None:
        raise Stop("store_missing", "there is no .git; nothing was initialised here, or it was removed")
    if stat.S_ISLNK(status.st_mode):
        raise Stop("store_linked", ".git is a symbolic link; it must be a directory")
    if stat.S_ISREG(status.st_mode):
        try:
            content = read_file(repo, b".git", 65536) or b""
        except TooLong:
            content = b""
        if content.startswith(b"gitdir:"):
            raise Stop("store_redirected", ".git is a file that leads elsewhere; it must be a directory")
        raise Stop("store_not_regular", ".git is a file; it must be a directory")
    if not stat.S_ISDIR(status.st_mode):
        raise Stop("store_not_regular", f".git is {kind_of(status.st_mode)}; it must be a directory")
    descriptor = open_directory(repo, b".git")
    if descriptor is None:
        raise StoreChanged(".git disappeared")
    return descriptor


def _census(objects: int, budget: Budget) -> dict[bytes, Fingerprint]:
    """Demand that everything that can hold objects is a directory or regular file; the pack directory's
    files.

    Links could lead to objects that the subject did not commit here, and a FIFO could stall a reader.
    """
    for entry in _listing(objects, None, budget):
        if entry.name in ("pack", "info") or _FAN_OUT.fullmatch(entry.name):
            if not entry.is_dir(follow_symlinks=False):
                raise Irregular(b"objects/" + os.fsencode(entry.name), _kind(entry))
            if len(entry.name) == 2:
                for inner in _listing(objects, os.fsencode(entry.name), budget):
                    if _LOOSE.fullmatch(inner.name):
                        _demand_regular(inner)
    return _census_packs(objects, budget)


def _census_packs(objects: int, budget: Budget) -> dict[bytes, Fingerprint]:
    """Fingerprints of the packs and pack indexes, which must be regular files. What else lies beside them is
    never opened.
    """
    files: dict[bytes, Fingerprint] = {}
    for entry in _listing(objects, b"pack", budget):
        if entry.name.endswith((".pack", ".idx")):
            _demand_regular(entry)
            files[os.fsencode(entry.name)] = fingerprint_of(entry.stat(follow_symlinks=False))
            if len(files) > MAX_PACK_FILES:
                raise Stop(
                    "bound_store_bytes", f"there are more than {MAX_PACK_FILES} pack files; repack the store"
                )
    return files


def _has_other_names(directory: int, objects: int, files: Iterable[bytes]) -> bool:
    """Whether HEAD or a pack is hard-linked, as local clones and snapshots do; worth a note, no fault."""
    found = [look(directory, b"HEAD")]
    packs = open_directory(objects, b"pack")
    if packs is not None:
        found += [look(packs, name) for name in files]
        os.close(packs)
    return any(status is not None and status.st_nlink > 1 for status in found)


_FAN_OUT = re.compile(r"[0-9a-f]{2}")
_LOOSE = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")


def _listing(parent: int, name: bytes | None, budget: Budget) -> Iterator[os.DirEntry[str]]:
    descriptor = os.dup(parent) if name is None else open_directory(parent, name)
    if descriptor is None:
        return
    try:
        with os.scandir(descriptor) as entries:
            for number, entry in enumerate(entries):
                if not number & 255:
                    budget.check()
                yield entry
    except FileNotFoundError:
        raise StoreChanged("a file disappeared while the object directory was listed") from None
    finally:
        os.close(descriptor)


def _demand_regular(entry: os.DirEntry[str]) -> None:
    if not entry.is_file(follow_symlinks=False):
        raise Irregular(b"objects/.../" + os.fsencode(entry.name), _kind(entry))


def _kind(entry: os.DirEntry[str]) -> str:
    return kind_of(entry.stat(follow_symlinks=False).st_mode)


def _check_alternates(objects: int) -> None:
    """Refuse a store that borrows objects from another: they are not what was committed here."""
    for name in (b"alternates", b"http-alternates"):
        descriptor = open_directory(objects, b"info")
        if descriptor is None:
            return
        try:
            content = read_file(descriptor, name, 1 << 20)
        except TooLong:
            content = b"long"
        finally:
            os.close(descriptor)
        if content and any(line and not line.startswith(b"#") for line in content.split(b"\n")):
            raise Stop(
                "alternates", "objects/info names another object store; objects from there are not evidence"
            )


def _watch(directory: int, refs: Iterable[bytes]) -> dict[bytes, Fingerprint | None]:
    """State of HEAD, the references that it went through, packed-refs and the configuration."""
    return {name: _fingerprint(directory, name) for name in (*refs, b"HEAD", b"packed-refs", b"config")}


def _fingerprint(directory: int, path: bytes) -> Fingerprint | None:
    *above, last = path.split(b"/")
    current = os.dup(directory)
    try:
        for name in above:
            deeper = open_directory(current, name)
            if deeper is None:
                return None
            os.close(current)
            current = deeper
        status = look(current, last)
        return None if status is None else fingerprint_of(status)
    finally:
        os.close(current)


# --- Objects ------------------------------------------------------------------------------------------------

_MODE = {
    b"40000": MODE_TREE,
    b"100644": MODE_REGULAR,
    b"100755": MODE_EXECUTABLE,
    b"120000": MODE_LINK,
    b"160000": MODE_GITLINK,
}


class GitStore:
    """The verified objects of a repository (`Store` of ``reader/scoped_read.py``). Ids are lower-case hex."""

    def __init__(
        self, source: ObjectSource, object_format: ObjectFormat, budget: Budget, report: Report
    ) -> None:
        self._source = source
        self._format = object_format
        self._budget = budget
        self._report = report
        self._tree_verified = False
        self._parents: tuple[bytes, ...] = ()
        self._head = b""

    def read_head(self, name: bytes) -> str:
        """Verify HEAD's commit; the id of its root tree.

        Raises Stop: ``head_commit_missing``, ``malformed_head`` (a tag, tree or blob), ``commit_mismatch``.
        """
        for _, kind, result in self._verified([name], b"commit"):
            if isinstance(result, Stop):
                if result.reason in _ABSENT:
                    raise Stop("head_commit_missing", "HEAD names a commit that is not in the object store")
                raise result
            if kind != b"commit":
                raise Stop("malformed_head", f"HEAD names a {kind.decode()}; it must name a commit")
            commit = self._commit(result)
            if isinstance(commit, Stop):
                raise commit
            self._head, self._parents = name, commit[1]
            self._report.count("commits")
            return commit[0].hex()
        raise Stop("instrument_failed", "the object source gave no answer")

    def read_trees(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[TreeEntry] | Stop]]:
        """See `Store`."""
        object_format = self._format
        for name, kind, result in self._verified([bytes.fromhex(text) for text in ids], b"tree"):
            if isinstance(result, Stop):
                yield name.hex(), result
                continue
            if kind != b"tree":
                yield (
                    name.hex(),
                    Stop("tree_mismatch", f"{name.hex()} is a {kind.decode()} where a tree belongs"),
                )
                continue
            self._budget.charge(len(result))
            try:
                entries = parse_tree(result, object_format)
            except Malformed as error:
                yield name.hex(), Stop("tree_mismatch", f"tree {name.hex()}: {error}")
                continue
            self._report.count("trees")
            self._tree_verified = True
            yield name.hex(), [TreeEntry(entry, _MODE[mode], child.hex()) for mode, entry, child in entries]

    def blob_sizes(self, ids: Sequence[str]) -> Mapping[str, int | None]:
        """See `Store`."""
        sizes: dict[str, int | None] = {}
        for name, found in _translating(self._source.info([bytes.fromhex(text) for text in ids])):
            claimed = isinstance(found, tuple) and found[0] == b"blob"
            sizes[name.hex()] = found[1] if isinstance(found, tuple) and claimed else None
        return sizes

    def read_blobs(self, ids: Sequence[str]) -> Iterator[tuple[str, bytes | Stop]]:
        """See `Store`."""
        verified = 0
        try:
            for name, kind, result in self._verified([bytes.fromhex(text) for text in ids], b"blob"):
                if isinstance(result, Stop):
                    yield name.hex(), result
                elif kind != b"blob":
                    yield (
                        name.hex(),
                        Stop("blob_mismatch", f"{name.hex()} is a {kind.decode()} where a blob belongs"),
                    )
                else:
                    self._budget.charge(len(result))
                    verified += 1
                    yield name.hex(), result
        finally:
            if verified:
                self._report.count("blobs", verified)

    def judge(self, stop: Stop) -> Stop:
        """See `Store`: absent content in scope is invalid with ``--complete``; all else is what it is."""
        if self._budget.bounds.complete and stop.reason in _ABSENT and stop.exit_status != 3:
            return Stop(stop.reason, stop.detail, exit_status=3)
        return stop

    def verify_history(self) -> Iterator[Stop]:
        """Verify every ancestor of HEAD's commit. Absent ones are a boundary of the history, reported by
        name.

        Replace references, grafts and the ``shallow`` file play no part: the parents are those in the
        commits.
        """
        seen = {self._head, *self._parents}
        frontier = list(dict.fromkeys(self._parents))
        while frontier:
            self._budget.check()
            found: list[bytes] = []
            for name, kind, result in self._verified(frontier, b"commit"):
                if isinstance(result, Stop):
                    if result.reason in _ABSENT:
                        self._report.shallow_boundary.add(name.hex())
                    else:
                        yield result
                    continue
                if kind != b"commit":
                    yield Stop("commit_mismatch", f"{name.hex()} is a {kind.decode()} where a commit belongs")
                    continue
                commit = self._commit(result)
                if isinstance(commit, Stop):
                    yield commit
                    continue
                self._report.count("ancestors")
                for parent in commit[1]:
                    if parent not in seen:
                        seen.add(parent)
                        found.append(parent)
            frontier = found

    def _commit(self, content: bytes) -> tuple[bytes, tuple[bytes, ...]] | Stop:
        try:
            commit = parse_commit(content, self._format)
        except Malformed as error:
            return Stop("commit_mismatch", str(error))
        return commit.tree, commit.parents

    def _verified(self, names: Sequence[bytes], wanted: bytes) -> Iterator[tuple[bytes, bytes, bytes | Stop]]:
        """Name, kind and content of each object, hashed; ``wanted`` decides the reason where one does not
        verify.
        """
        limit = self._budget.bounds.max_object_bytes
        name_of = self._format.name_of
        for name, found in _translating(self._source.contents(names, limit)):
            if isinstance(found, tuple) and name_of(*found) == name:
                yield name, *found
            else:
                yield name, *self._second_try(name, found, wanted, limit)

    def _second_try(
        self, name: bytes, found: Copy | Fault | None, wanted: bytes, limit: int
    ) -> tuple[bytes, bytes | Stop]:
        """What becomes of an object whose first copy is no good."""
        if name == self._format.empty_tree and found is None:
            return b"tree", b""
        if found is None:
            return wanted, self._absent(name, wanted)
        for kind, content in _translating(self._source.copies(name, limit)):
            if self._format.name_of(kind, content) == name:
                return kind, content
        if isinstance(found, LimitExceeded):
            return wanted, Stop(found.reason, f"{wanted.decode()} {name.hex()}: {found}")
        problem = str(found) if isinstance(found, Malformed) else "the content does not have this hash"
        return wanted, Stop(f"{wanted.decode()}_mismatch", f"{wanted.decode()} {name.hex()}: {problem}")

    def _absent(self, name: bytes, wanted: bytes) -> Stop:
        with translated():
            doubt = self._source.doubt()
        if doubt is None:
            return Stop("content_absent", f"{wanted.decode()} {name.hex()} is not in the object store")
        if doubt.reason == "store_damaged" and not self._tree_verified:
            return Stop("unrecognised_format", doubt.detail)
        return doubt


_ABSENT = ("content_absent",)
_Result = TypeVar("_Result")


def _translating(results: Iterator[_Result]) -> Iterator[_Result]:
    with translated():
        yield from results


# --- The whole ----------------------------------------------------------------------------------------------


def open_repository(
    options: Options,
    report: Report,
    budget: Budget,
    cleanup: contextlib.ExitStack,
    make_source: MakeSource,
) -> Snapshot:
    """Open the repository of the options and verify HEAD's commit: what a `Reader` has as ``open``.

    The order: shape (exit 1), configuration and alternates (77), HEAD (1), its commit. After the read the
    references, the configuration and the pack directory must be as they were, or the outcome is
    ``store_changed``; only a bound that ended the read is reported in preference to it. Raises Stop.
    """
    with translated():
        repository = _open(options.repo, report, budget, cleanup)
        source = make_source(repository, budget, cleanup)
        store = GitStore(source, repository.object_format, budget, report)

        def check() -> None:
            with translated():
                _check_unchanged(repository, budget)

        try:
            root = store.read_head(repository.head)
        except Stop as stop:
            if not stop.is_bound:
                check()
            raise
        return Snapshot(store, root, check)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turns what the format modules raise about a whole repository into a Stop."""
    try:
        yield
    except Irregular as error:
        raise Stop("ref_not_regular", f"{error}; a repository that only Git has written has none") from None
    except StoreChanged as error:
        raise Stop("store_changed", f"{error}; read it when nothing works on it") from None
    except (RefFault, ConfigFault) as error:
        raise Stop(error.reason, str(error)) from None


def _open(repo: str, report: Report, budget: Budget, cleanup: contextlib.ExitStack) -> Repository:
    """Everything up to the name of HEAD's commit. Descriptors are closed by ``cleanup``."""

    def keep(descriptor: int) -> int:
        cleanup.callback(os.close, descriptor)
        return descriptor

    working = keep(os.open(repo, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    directory = keep(_open_git_directory(working))
    if look(directory, b"commondir") is not None:
        raise Stop("store_redirected", ".git/commondir leads elsewhere; read the main working directory")
    check_shape(directory)
    objects = open_directory(directory, b"objects")
    if objects is None:
        raise Stop("store_missing", "there is no object directory in .git")
    keep(objects)
    files = _census(objects, budget)
    report.hard_linked = _has_other_names(directory, objects, files)
    try:
        config = read_file(directory, b"config", MAX_CONFIG_BYTES)
    except TooLong as error:
        raise Stop("bound_store_bytes", str(error)) from None
    object_format = object_format_of(config)
    report.format = {"name": "git", "object_format": object_format.name, "ref_storage": "files"}
    _check_alternates(objects)
    repository = Repository(os.path.join(repo, ".git"), directory, objects, object_format, files)
    resolved = resolve_head(directory, object_format)
    repository.head = resolved.name
    repository.watched = _watch(directory, resolved.passed)
    report.head = resolved.name.hex()
    return repository


def _check_unchanged(repository: Repository, budget: Budget) -> None:
    """Raise StoreChanged unless references, configuration and packs are what they were at the beginning."""
    try:
        same = _watch(repository.directory, repository.watched) == repository.watched
        same = same and _census_packs(repository.objects, budget) == repository.pack_files
    except Irregular:
        same = False
    if not same:
        raise StoreChanged("references, configuration or packs changed during the read")


CODE_FILES = tuple(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    for name in (
        "git_config.py",
        "git_files.py",
        "git_objects.py",
        "git_refs.py",
        "git_repository.py",
        "git_trees.py",
        "scoped_read.py",
    )
)
"""The source files behind this module, for ``code_sha256``; a backend adds its own."""
