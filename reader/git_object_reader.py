"""The isolated Git object reader: what HEAD's commit holds, without git.

Run as ``python -I reader/git_object_reader.py REPO ...``; options, report, reason codes and exit status are
those of ``docs/reader-report.md``. It reads loose objects and packs with its own code (a module a format,
beside this file), hashes every object, and needs the standard library only: it shares neither binary nor code
with any git.

REPO is a working directory with a ``.git`` directory. Nothing is written, started, fetched or followed
there: no link, no gitfile, no alternate object store, no replace reference, no graft, no configuration that
runs a program.
"""
# ruff: noqa: E402 - as a script, this file first makes its own directory importable as the package `reader`

from __future__ import annotations

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    # Under -I no directory is searched for modules. The modules beside this file, and no others, become
    # `reader`.
    import importlib.util

    _spec = importlib.util.spec_from_file_location(
        "reader", os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE]
    )
    assert _spec is not None and _spec.loader is not None
    sys.modules["reader"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["reader"])
    sys.exit(importlib.import_module("reader.git_object_reader").main())

import contextlib
from collections.abc import Iterator, Sequence

from reader.git_files import FilePool, StableFile, look, open_directory
from reader.git_loose import LooseObjects
from reader.git_objects import LimitExceeded, Malformed, StoreChanged
from reader.git_packs import Location, Pack, PackedObjects, PackIndex, UnsupportedVersion, Windows
from reader.git_repository import CODE_FILES, Copy, Fault, Repository, open_repository
from reader.scoped_read import Budget, Options, Reader, Report, Snapshot, Stop
from reader.scoped_read import main as _main

VERSION = "1"


class PureSource:
    """Objects from loose files and packs (`ObjectSource` of ``reader/git_repository.py``)."""

    def __init__(self, repository: Repository, budget: Budget, cleanup: contextlib.ExitStack) -> None:
        self._repository = repository
        self._budget = budget
        self._pool = FilePool()
        self._loose = LooseObjects(repository.objects, budget.check)
        self._faults: list[Malformed] = []
        self._doubt: Stop | None = None
        self._doubted = False
        self._directory = -1
        self._ordered: dict[bytes, Location | None] = {}
        cleanup.callback(self.close)
        self._packed = PackedObjects(self._open_packs(), budget.check, self._loose.read)

    def close(self) -> None:
        """Close every file."""
        self._pool.close()
        self._loose.close()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _open_packs(self) -> Iterator[Pack]:
        """Every pack that has an index, the youngest first, as its objects are the likeliest to be needed."""
        files = self._repository.pack_files
        if not files:
            return
        directory = open_directory(self._repository.objects, b"pack")
        if directory is None:
            raise StoreChanged("the pack directory disappeared")
        self._directory = directory
        windows = Windows()
        bases = [name[:-4] for name in files if name.endswith(b".idx") and name[:-4] + b".pack" in files]
        bases.sort(key=lambda base: (-files[base + b".pack"][3], base))
        for number, base in enumerate(bases):
            self._budget.check()
            try:
                index = PackIndex(self._file(base + b".idx"), self._repository.object_format)
                yield Pack(
                    number, self._file(base + b".pack"), index, self._repository.object_format, windows
                )
            except Malformed as error:
                self._faults.append(error)

    def _file(self, name: bytes) -> StableFile:
        status = look(self._directory, name)
        if status is None:
            raise StoreChanged("a pack disappeared")
        return StableFile(self._pool, self._directory, name, status)

    def info(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, tuple[bytes, int] | Fault | None]]:
        """See `ObjectSource`."""
        self._ordered = self._in_order(names)
        for name, location in self._ordered.items():
            self._budget.check()
            try:
                yield name, self._loose.info(name) if location is None else self._packed.info(location)
            except (Malformed, LimitExceeded) as fault:
                yield name, next(self._infos(name), None) or fault

    def _infos(self, name: bytes) -> Iterator[tuple[bytes, int]]:
        for location in self._packed.find(name):
            with contextlib.suppress(Malformed, LimitExceeded):
                yield self._packed.info(location)
        with contextlib.suppress(Malformed, LimitExceeded):
            loose = self._loose.info(name)
            if loose is not None:
                yield loose

    def contents(self, names: Sequence[bytes], limit: int) -> Iterator[tuple[bytes, Copy | Fault | None]]:
        """See `ObjectSource`."""
        for name, location in self._in_order(names).items():
            self._budget.check()
            try:
                yield (
                    name,
                    self._loose.read(name, limit) if location is None else self._packed.read(location, limit),
                )
            except (Malformed, LimitExceeded) as fault:
                yield name, fault

    def copies(self, name: bytes, limit: int) -> Iterator[Copy]:
        """See `ObjectSource`."""
        for location in self._packed.find(name):
            with contextlib.suppress(Malformed, LimitExceeded):
                yield self._packed.read(location, limit)
        with contextlib.suppress(Malformed, LimitExceeded):
            loose = self._loose.read(name, limit)
            if loose is not None:
                yield loose

    def doubt(self) -> Stop | None:
        """See `ObjectSource`: a pack that cannot be used, or an index that is not what it was written as."""
        if not self._doubted:
            self._doubted = True
            for pack in self._packed.packs:
                try:
                    pack.index.verify(self._budget.check)
                except Malformed as error:
                    self._faults.append(error)
            for fault in (*self._faults, *self._packed.faults):
                if isinstance(fault, UnsupportedVersion):
                    self._doubt = Stop(
                        "unsupported_format", f"{fault}; an object that is missing may be in it"
                    )
                    break
                self._doubt = Stop("store_damaged", f"{fault}; an object that is missing may be in it")
        return self._doubt

    def _in_order(self, names: Sequence[bytes]) -> dict[bytes, Location | None]:
        """Names with their places, so that packs are read from front to back; None is where a loose object
        may be. What sizes were asked for last is what contents are asked for next, mostly.
        """
        wanted = set(names)
        if wanted <= self._ordered.keys():
            return {name: place for name, place in self._ordered.items() if name in wanted}
        packed: list[tuple[int, int, bytes, Location]] = []
        loose: list[bytes] = []
        for name in wanted:
            self._budget.check()
            location = self._packed.locate(name)
            if location is None:
                loose.append(name)
            else:
                packed.append((location[0].number, location[1], name, location))
        packed.sort(key=lambda item: item[:2])
        ordered: dict[bytes, Location | None] = {name: place for _, _, name, place in packed}
        ordered.update(dict.fromkeys(sorted(loose)))
        return ordered


def pure_source(repository: Repository, budget: Budget, cleanup: contextlib.ExitStack) -> PureSource:
    """A `PureSource` that ``cleanup`` closes."""
    return PureSource(repository, budget, cleanup)


def open_pure(options: Options, report: Report, budget: Budget, cleanup: contextlib.ExitStack) -> Snapshot:
    """Open the repository of the options with the own object code."""
    return open_repository(options, report, budget, cleanup, pure_source)


READER = Reader(
    name="git_object_reader",
    version=VERSION,
    vcs="git",
    prog="git_object_reader.py",
    description="Read and verify what HEAD's commit of a Git repository holds, without git.",
    backends=("pure",),
    default_backend="pure",
    code_files=(
        *CODE_FILES,
        *(os.path.join(_HERE, name) for name in ("git_object_reader.py", "git_loose.py", "git_packs.py")),
    ),
    open=open_pure,
)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    return _main(READER, argv)
