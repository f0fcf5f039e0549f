"""The isolated Git reader with git itself as its instrument: what HEAD's commit holds, fetched by git.

Run as ``python -I reader/git_instrument_reader.py REPO ...``; options, report, reason codes and exit status
are those of ``docs/reader-report.md``. The instrument is `git` on PATH, or the absolute path in
OAK_BENCH_GIT_INSTRUMENT; the report names it, with version and SHA-256, as ``instrument``.

Git is asked for objects and for nothing else, and is believed in nothing. HEAD, references, configuration and
trees are read by the code that both Git backends share (``reader/git_repository.py``), and every object is
hashed there. Git sees a scratch directory of ours as its repository, with our own configuration, no
references and an object store that holds exactly the loose objects and packs that were checked: no
alternates, commit-graph, multi-pack-index, bitmap or other side file, no link, no FIFO.

How the store gets there: what it consists of is *pinned*, not copied. Each fan-out directory and each pack is
opened without following links, and the child gets the open descriptors; the scratch store holds links to them
(``/proc/self/fd/N``). That costs a few microseconds a pack, whatever its size; replacing a pack by another
file changes nothing for the child. A loose object that is replaced during the read reaches the child, which
is why it is still hashed, why there is a deadline, and why it cannot make the child do more than read one
file. Hard links would change the subject's inodes (link count and change time); copies of many small files
cost several times the read. Where descriptors have no such names, or there are more packs than a process may
hold open, files are copied, within a bound.

One child answers all requests (``git cat-file --batch-command``): first what each object is and how large
(``info``), then the contents that the bounds admit. Requests are sent ahead while answers are verified. An
answer must echo the object's name, be exactly as long as it says, and end with a newline; anything else ends
the child. When git says that an object is missing, ends, or breaks the protocol, the own object code of the
pure backend is asked what is wrong: absent, damaged, over a bound - or nothing, and then the instrument has
failed. Content never comes from anywhere but git.
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
    sys.exit(importlib.import_module("reader.git_instrument_reader").main())

import contextlib
import fcntl
import json
import re
import resource
import select
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from reader.git_files import (
    FilePool,
    Fingerprint,
    StableFile,
    fingerprint_of,
    look,
    open_directory,
    open_file,
)
from reader.git_object_reader import READER as PURE_READER
from reader.git_object_reader import PureSource
from reader.git_objects import LimitExceeded, Malformed, StoreChanged
from reader.git_packs import Pack, PackIndex, Windows
from reader.git_repository import Copy, Fault, Repository, open_repository
from reader.instrument import Instrument, clean_environment, end_group, find_git, identify, unchanged
from reader.scoped_read import Budget, Options, Reader, Report, Snapshot, Stop, run, temporary_directory, why

VERSION = "1"

MAX_COPIED_BYTES = 1 << 30
"""Bytes of the subject's store that are copied where they cannot be pinned."""

MAX_PINNED_PACKS = 128
"""Packs whose two files are held open; further ones are copied. A process may usually open 1,024 files."""

_BATCH = 256
_READ_BYTES = 1 << 20
_MAX_LINE = 256
_MEMORY_BASE = 1 << 30
_SILENCE = 0.5
_FAN_OUT = [b"%02x" % number for number in range(256)]

_CONFIG = """\
[core]
\trepositoryFormatVersion = {version}
\tbare = true
\tcommitGraph = false
\tmultiPackIndex = false
\tuseReplaceRefs = false
\tfsmonitor = false
\thooksPath = /dev/null
\talternateRefsCommand = false
\tpackedGitWindowSize = 32m
\tpackedGitLimit = 256m
[pack]
\treadReverseIndex = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[protocol]
\tallow = never
"""


# --- The store that git sees --------------------------------------------------------------------------------


class IsolatedStore:
    """A scratch repository whose object store holds what was checked of the subject's, and nothing else.

    ``descriptors`` must be inherited by the child. `pin` is for tests: without it everything is copied.
    """

    def __init__(self, repository: Repository, scratch: str, budget: Budget, *, pin: bool = True) -> None:
        self._repository = repository
        self._budget = budget
        self._pin = pin and os.path.isdir("/proc/self/fd")
        self._copied = 0
        self._seen = self._folders()
        self.descriptors: list[int] = []
        self.index_bytes = 0
        self.git_dir = os.path.join(scratch, "git")
        self.objects = os.path.join(scratch, "objects")
        for name in ("git/refs/heads", "objects/pack", "objects/info"):
            os.makedirs(os.path.join(scratch, name), 0o700)
        _write(os.path.join(self.git_dir, "HEAD"), b"ref: refs/heads/none\n")
        text = _CONFIG.format(version=0 if repository.object_format.name == "sha1" else 1)
        if repository.object_format.name != "sha1":
            text += f"[extensions]\n\tobjectFormat = {repository.object_format.name}\n"
        _write(os.path.join(self.git_dir, "config"), text.encode("ascii"))

    def fill(self) -> None:
        """Present every loose object and every usable pack. Raises `StoreChanged`, `Irregular`, `Stop`."""
        for name in _FAN_OUT:
            descriptor = open_directory(self._repository.objects, name)
            if descriptor is None:
                continue
            if self._pin:
                self._present(descriptor, os.path.join(self.objects, name.decode()))
            else:
                try:
                    self._copy_loose(descriptor, name)
                finally:
                    os.close(descriptor)
        if self._repository.pack_files:
            directory = open_directory(self._repository.objects, b"pack")
            if directory is None:
                raise StoreChanged("the pack directory disappeared")
            try:
                self._packs(directory)
            finally:
                os.close(directory)

    def changed(self) -> bool:
        """Whether a loose object or a fan-out directory came or went since the store was presented."""
        return self._folders() != self._seen

    def _folders(self) -> list[Fingerprint | None]:
        objects = self._repository.objects
        found = [look(objects, name) for name in _FAN_OUT]
        return [
            fingerprint_of(os.fstat(objects)),
            *(None if status is None else fingerprint_of(status) for status in found),
        ]

    def close(self) -> None:
        """Close the descriptors that are held for the child."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def _present(self, descriptor: int, target: str) -> None:
        self.descriptors.append(descriptor)
        os.symlink(f"/proc/self/fd/{descriptor}", target)

    def _packs(self, directory: int) -> None:
        """Packs whose index and beginning make sense: over some of the others git would give up."""
        files = self._repository.pack_files
        bases = [name[:-4] for name in files if name.endswith(b".idx") and name[:-4] + b".pack" in files]
        bases.sort(key=lambda base: (-files[base + b".pack"][3], base))
        pool = FilePool()
        windows = Windows(2)
        try:
            for number, base in enumerate(bases):
                self._budget.check()
                try:
                    self._check_pack(pool, windows, directory, base, number)
                except Malformed:
                    continue
                pinned = self._pin and number < MAX_PINNED_PACKS
                for suffix in (b".pack", b".idx"):
                    # The number keeps names of the subject's choosing away from the child.
                    target = os.path.join(self.objects, "pack", f"pack-{number:040x}{suffix.decode()}")
                    descriptor = self._open(directory, base + suffix)
                    if pinned:
                        self._present(descriptor, target)
                    else:
                        try:
                            self._copy(descriptor, target)
                        finally:
                            os.close(descriptor)
        finally:
            pool.close()

    def _check_pack(self, pool: FilePool, windows: Windows, directory: int, base: bytes, number: int) -> None:
        def file(name: bytes) -> StableFile:
            status = look(directory, name)
            if status is None:
                raise StoreChanged("a pack disappeared")
            return StableFile(pool, directory, name, status)

        index = file(base + b".idx")
        object_format = self._repository.object_format
        Pack(number, file(base + b".pack"), PackIndex(index, object_format), object_format, windows)
        self.index_bytes += index.size

    def _open(self, directory: int, name: bytes) -> int:
        opened = open_file(directory, name)
        if opened is None:
            raise StoreChanged("a pack disappeared")
        descriptor, status = opened
        if fingerprint_of(status) != self._repository.pack_files[name]:
            os.close(descriptor)
            raise StoreChanged("a pack changed")
        return descriptor

    def _copy_loose(self, directory: int, fan_out: bytes) -> None:
        folder = os.path.join(self.objects, fan_out.decode())
        os.mkdir(folder, 0o700)
        size = 2 * self._repository.object_format.size - 2
        for name in os.listdir(directory):
            self._budget.check()
            if not re.fullmatch(f"[0-9a-f]{{{size}}}", name):
                continue
            opened = open_file(directory, name.encode())
            if opened is not None:
                try:
                    self._copy(opened[0], os.path.join(folder, name))
                finally:
                    os.close(opened[0])

    def _copy(self, descriptor: int, target: str) -> None:
        """Copy one open file; a sparse giant is refused before it is read."""
        before = os.fstat(descriptor)
        self._copied += before.st_size
        if self._copied > MAX_COPIED_BYTES:
            raise Stop(
                "bound_store_bytes",
                f"more than {MAX_COPIED_BYTES} bytes of the store would have to be copied; repack it",
            )
        with open(target, "xb", buffering=0) as out:
            left = before.st_size
            while left:
                self._budget.check()
                chunk = os.read(descriptor, min(left, _READ_BYTES))
                if not chunk:
                    raise StoreChanged("a file of the store was shortened")
                out.write(chunk)
                left -= len(chunk)
        if fingerprint_of(os.fstat(descriptor)) != fingerprint_of(before):
            raise StoreChanged("a file of the store changed while it was copied")


def _write(path: str, content: bytes) -> None:
    with open(path, "xb") as stream:
        stream.write(content)


# --- The child ----------------------------------------------------------------------------------------------


_ANSWER = re.compile(
    rb"^([0-9a-f]{40}|[0-9a-f]{64}) (?:(commit|tree|blob|tag) (0|[1-9][0-9]{0,18})|missing)\n", re.MULTILINE
)


Claim = tuple[bytes, int]
"""Kind and size in bytes that git says an object has."""


class Broken(Exception):
    """The child ended or did not keep to its protocol; the message says which."""


class BatchChild:
    """One `git cat-file --batch-command` that answers in the order of the questions.

    When the child is silent for half a second, ``suspect`` is called, which may raise `Broken`: git is known
    to go round in circles over some damaged objects. Requests are sent whenever the child takes them, so that
    it works ahead of whoever reads the answers. Raises `Broken`, and `Stop` at the deadline.
    """

    def __init__(
        self, instrument: Instrument, store: IsolatedStore, scratch: str, memory: int, budget: Budget
    ) -> None:
        self._budget = budget
        self._silence = _SILENCE
        self.suspect: Callable[[], None] = lambda: None
        self._requests: Iterator[bytes] = iter(())
        self._unsent = b""
        self._buffer = b""
        self._position = 0
        environment = {
            **clean_environment(scratch),
            "GIT_DIR": store.git_dir,
            "GIT_OBJECT_DIRECTORY": store.objects,
        }
        self._child: subprocess.Popen[bytes] | None = None
        try:
            self._child = subprocess.Popen(
                [instrument.path, "cat-file", "--batch-command", "--buffer"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=scratch,
                env=environment,
                pass_fds=store.descriptors,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            raise Stop("instrument_failed", f"git cannot be started ({why(error)})") from None
        assert self._child.stdin is not None and self._child.stdout is not None
        _limit_memory(self._child.pid, memory)
        self._in = self._child.stdin.fileno()
        self._out = self._child.stdout.fileno()
        for descriptor in (self._in, self._out):
            os.set_blocking(descriptor, False)
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _READ_BYTES)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._writing = False

    def close(self) -> None:
        """Kill the child and everything in its session."""
        if self._child is not None:
            end_group(self._child)
            self._child = None

    def ask(self, command: bytes, names: Sequence[bytes]) -> None:
        """Queue one question for each object, named in hex; every answer to earlier ones must have been
        taken.
        """

        between = b"\n" + command + b" "

        def batches() -> Iterator[bytes]:
            for begin in range(0, len(names), _BATCH):
                yield command + b" " + between.join(names[begin : begin + _BATCH]) + b"\nflush\n"

        self._requests = batches()
        self._send()

    def answers(self, texts: Sequence[bytes]) -> list[Claim | None]:
        """Kinds and sizes from the next lines, as many as are here and at least one; None where one is
        missing.

        They must be about the objects ``texts``, in this order.
        """
        while (end := self._buffer.rfind(b"\n", self._position) + 1) == 0:
            if len(self._buffer) - self._position >= _MAX_LINE:
                raise Broken("git gave an answer that has no end")
            self._buffer = self._buffer[self._position :] + self._more()
            self._position = 0
        found = _ANSWER.findall(self._buffer, self._position, end)
        if len(found) != self._buffer.count(b"\n", self._position, end) or len(found) > len(texts):
            raise Broken("git gave an answer that is none")
        self._position = end
        if [name for name, _, _ in found] != list(texts[: len(found)]):
            raise Broken("git answered something else than was asked")
        return [(kind, int(size)) if kind else None for _, kind, size in found]

    def answer(self, text: bytes) -> Claim | None:
        """The same for the one line before an object's content."""
        while (end := self._buffer.find(b"\n", self._position, self._position + _MAX_LINE) + 1) == 0:
            if len(self._buffer) - self._position >= _MAX_LINE:
                raise Broken("git gave an answer that has no end")
            self._buffer = self._buffer[self._position :] + self._more()
            self._position = 0
        match = _ANSWER.match(self._buffer[self._position : end])
        if match is None:
            raise Broken("git gave an answer that is none")
        self._position = end
        name, kind, size = match.groups()
        if name != text:
            raise Broken("git answered something else than was asked")
        return (kind, int(size)) if kind else None

    def skip(self, line: bytes) -> bool:
        """Take ``line``, which includes its end, when that is what comes next and is already here."""
        if not self._buffer.startswith(line, self._position):
            return False
        self._position += len(line)
        return True

    def content(self, size: int) -> bytes:
        """The next ``size`` bytes, which a newline must follow."""
        begin = self._position
        end = begin + size
        if end < len(self._buffer):
            self._position = end + 1
            if self._buffer[end] != 0x0A:
                raise Broken("an object is not as long as git said")
            return self._buffer[begin:end]
        parts = [self._buffer[begin:]]
        wanted = size + 1 - len(parts[0])
        while wanted > 0:
            chunk = self._more()
            parts.append(chunk)
            wanted -= len(chunk)
        last = parts[-1]
        self._buffer, self._position = last, len(last) + wanted
        parts[-1] = last[: self._position]
        whole = b"".join(parts)
        if whole[size] != 0x0A:
            raise Broken("an object is not as long as git said")
        return whole[:size]

    def _more(self) -> bytes:
        while True:
            self._budget.check()
            if self._unsent:
                self._send()
            try:
                chunk = os.read(self._out, _READ_BYTES)
            except BlockingIOError:
                self._wait()
                continue
            except OSError as error:
                raise Broken(f"git cannot be heard ({why(error)})") from None
            if not chunk:
                raise Broken("git ended before it had answered")
            return chunk

    def _wait(self) -> None:
        if bool(self._unsent) != self._writing:
            self._writing = not self._writing
            if self._writing:
                self._poll.register(self._in, select.POLLOUT)
            else:
                self._poll.unregister(self._in)
        left = max(0.0, self._budget.remaining_ns() / 1e9) + 0.001
        if not self._poll.poll(min(left, self._silence) * 1000) and left > self._silence:
            # Twice as long next time: whoever is only slow is not asked about for ever.
            self._silence *= 2
            self.suspect()

    def _send(self) -> None:
        try:
            while self._unsent or self._next():
                self._unsent = self._unsent[os.write(self._in, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            # The child is gone or does not listen: what it has said is still to be read.
            self._unsent = b""
            self._requests = iter(())

    def _next(self) -> bool:
        self._unsent = next(self._requests, b"")
        return bool(self._unsent)


def _limit_memory(pid: int, limit: int) -> None:
    """Bound the child's address space where the system can do that from outside."""
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


# --- Objects ------------------------------------------------------------------------------------------------

_Answer = TypeVar("_Answer")


class GitSource:
    """Objects from a git child (`ObjectSource` of ``reader/git_repository.py``)."""

    def __init__(
        self,
        instrument: Instrument,
        store: IsolatedStore,
        scratch: str,
        repository: Repository,
        budget: Budget,
        cleanup: contextlib.ExitStack,
    ) -> None:
        self._cleanup = cleanup
        self._instrument = instrument
        self._store = store
        self._scratch = scratch
        self._repository = repository
        self._budget = budget
        self._child: BatchChild | None = None
        self._pure: PureSource | None = None
        self._known: dict[bytes, Claim] = {}
        self._asked = b""

    def close(self) -> None:
        """End the child and close what was held open for it."""
        self._end_child()
        self._store.close()

    def info(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, Claim | Fault | None]]:
        """See `ObjectSource`."""
        for name, answer in self._claims(names):
            yield name, self._judge_info(name) if isinstance(answer, Broken) or answer is None else answer

    def contents(self, names: Sequence[bytes], limit: int) -> Iterator[tuple[bytes, Copy | Fault | None]]:
        """See `ObjectSource`."""
        for name, answer in self._claims([name for name in names if name not in self._known]):
            if isinstance(answer, Broken) or answer is None:
                yield name, self._judge(name, limit, answer)
        admitted = []
        for name in names:
            if name in self._known:
                size = self._known[name][1]
                if size > limit:
                    yield name, _over(size, limit)
                else:
                    admitted.append(name)
        for name, found in self._copies(admitted, limit):
            if isinstance(found, Broken) or found is None:
                yield name, self._judge(name, limit, found)
            else:
                yield name, found

    def copies(self, name: bytes, limit: int) -> Iterator[Copy]:
        """See `ObjectSource`: git shows one copy of an object, and that one is what git reads."""
        return iter(())

    def doubt(self) -> Stop | None:
        """See `ObjectSource`."""
        return self._own_code().doubt()

    def _claims(self, names: Sequence[bytes]) -> Iterator[tuple[bytes, Claim | Broken | None]]:
        """What git says that each object is; the answers are remembered."""

        def take(child: BatchChild, texts: Sequence[bytes], begin: int) -> Iterator[Claim | None]:
            while begin < len(texts):
                self._asked = names[begin]
                claims = child.answers(texts[begin : begin + _READ_BYTES // 40])
                for claim in claims:
                    if claim is not None:
                        self._known[names[begin]] = claim
                    begin += 1
                    yield claim

        return self._conversation(b"info", names, take)

    def _copies(
        self, names: Sequence[bytes], limit: int
    ) -> Iterator[tuple[bytes, Copy | LimitExceeded | Broken | None]]:
        """What git says that each object holds; the objects are known and within the limit."""

        def take(
            child: BatchChild, texts: Sequence[bytes], begin: int
        ) -> Iterator[Copy | LimitExceeded | None]:
            for position in range(begin, len(names)):
                self._asked = name = names[position]
                kind, size = self._known[name]
                if not child.skip(b"%s %s %d\n" % (texts[position], kind, size)):
                    claim = child.answer(texts[position])
                    if claim is None:
                        yield None
                        continue
                    # What git says now is not always what it said before: the file may have changed.
                    kind, size = claim
                    if size > limit:
                        yield _over(size, limit)
                        return
                yield kind, child.content(size)

        return self._conversation(b"contents", names, take)

    def _conversation(
        self,
        command: bytes,
        names: Sequence[bytes],
        take: Callable[[BatchChild, Sequence[bytes], int], Iterator[_Answer]],
    ) -> Iterator[tuple[bytes, _Answer | Broken]]:
        """Ask about each object and `take` the answers. A child that fails is replaced, and asked what comes
        after. An iterator of answers that ends early leaves some that nobody wants.
        """
        done = 0
        texts = [name.hex().encode() for name in names]
        while done < len(names):
            begin = done
            try:
                child = self._child or self._start()
                child.ask(command, texts[begin:])
                try:
                    for answer in take(child, texts, begin):
                        done += 1
                        yield names[done - 1], answer
                except Broken as broken:
                    self._end_child()
                    done += 1
                    yield names[done - 1], broken
                else:
                    if done < len(names):
                        self._end_child()
            except BaseException:
                # Answers that nobody takes would be read as answers to the next questions.
                self._end_child()
                raise

    def _suspect(self) -> None:
        """Raise `Broken` when the object that git takes long over is damaged."""
        name = self._asked
        _, found = next(iter(self._own_code().contents([name], self._budget.bounds.max_object_bytes)))
        if not isinstance(found, tuple) or self._repository.object_format.name_of(*found) != name:
            raise Broken("git does not finish with an object")

    def _start(self) -> BatchChild:
        bounds = self._budget.bounds
        # A delta, its base, the result and the window of the pack may all be in memory at once.
        memory = _MEMORY_BASE + 4 * bounds.max_object_bytes + 2 * self._store.index_bytes
        self._child = BatchChild(
            self._instrument, self._store, self._scratch, min(memory, 1 << 46), self._budget
        )
        self._child.suspect = self._suspect
        return self._child

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _own_code(self) -> PureSource:
        if self._pure is None:
            self._pure = PureSource(self._repository, self._budget, self._cleanup)
        return self._pure

    def _judge_info(self, name: bytes) -> Claim | Fault | None:
        """What an object is of which git says nothing: a claim for path facts; its content is asked of git
        again.
        """
        return next(iter(self._own_code().info([name])))[1]

    def _judge(self, name: bytes, limit: int, broken: object) -> Fault | None:
        """Why git did not give an object: the object's fault, or (raised) the instrument's."""
        _, found = next(iter(self._own_code().contents([name], limit)))
        if found is None or isinstance(found, (Malformed, LimitExceeded)):
            return found
        name_of = self._repository.object_format.name_of
        if name_of(*found) != name:
            return Malformed("the content does not have this hash")
        if self._store.changed():
            raise StoreChanged("objects came or went")
        what = str(broken) if isinstance(broken, Broken) else "git does not find an object"
        raise Stop("instrument_failed", f"{what}, although {name.hex()} is sound")


def _over(size: int, limit: int) -> LimitExceeded:
    return LimitExceeded("bound_object_bytes", f"an object of {size} bytes is over the bound of {limit}")


# --- The command --------------------------------------------------------------------------------------------


class Invocation:
    """One read: finds and identifies the instrument, then lets it read.

    ``environ`` is the environment to find the instrument in; nothing else of it reaches a child.
    ``instrument`` is what was identified, None until then.
    """

    def __init__(self, environ: Mapping[str, str], *, pin: bool = True) -> None:
        self._environ = environ
        self._pin = pin
        self.instrument: Instrument | None = None

    @property
    def reader(self) -> Reader:
        """The reader as `run` needs it."""
        files = (*PURE_READER.code_files, os.path.join(_HERE, "git_instrument_reader.py"))
        return Reader(
            name="git_instrument_reader",
            version=VERSION,
            vcs="git",
            prog="git_instrument_reader.py",
            description="Read and verify what HEAD's commit of a Git repository holds, by means of git.",
            backends=("git",),
            default_backend="git",
            code_files=(*files, os.path.join(_HERE, "instrument.py")),
            open=self._open,
        )

    def _open(
        self, options: Options, report: Report, budget: Budget, cleanup: contextlib.ExitStack
    ) -> Snapshot:
        scratch = temporary_directory(cleanup)
        inside = os.path.realpath(options.repo)
        if os.path.commonpath([inside, os.path.realpath(scratch)]) == inside:
            raise Stop(
                "read_error", "the directory for temporary files lies in the repository; set TMPDIR elsewhere"
            )
        os.mkdir(os.path.join(scratch, "none"), 0o700)
        instrument = identify(find_git(self._environ, options.repo), scratch, budget)
        self.instrument = instrument

        def make_source(repository: Repository, budget: Budget, cleanup: contextlib.ExitStack) -> GitSource:
            store = IsolatedStore(repository, os.path.join(scratch, "store"), budget, pin=self._pin)
            source = GitSource(instrument, store, scratch, repository, budget, cleanup)
            cleanup.callback(source.close)
            store.fill()
            return source

        snapshot = open_repository(options, report, budget, cleanup, make_source)

        def check() -> None:
            snapshot.check()
            if not unchanged(instrument):
                raise Stop("instrument_failed", "the instrument was replaced during the read")

        return Snapshot(snapshot.store, snapshot.root, check)


def read(
    argv: Sequence[str], environ: Mapping[str, str], *, alarm: bool = False, pin: bool = True
) -> tuple[int, str, str]:
    """One read: exit status, the report as one line of JSON, and the line for standard error (or nothing)."""
    started_ns = time.monotonic_ns()
    invocation = Invocation(environ, pin=pin)
    report, stop = run(invocation.reader, argv, alarm=alarm, started_ns=started_ns)
    found = invocation.instrument
    addition = json.dumps({"instrument": None if found is None else found.as_json()}, separators=(",", ":"))
    text = f"{report.render(stop)[:-1]},{addition[1:]}"
    if stop is None:
        return 0, text, ""
    return stop.exit_status, text, f"{report.reader}: {stop.reason}: {stop.detail}\n"


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    in_main = threading.current_thread() is threading.main_thread()
    status, text, line = read(sys.argv[1:] if argv is None else argv, os.environ, alarm=in_main)
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    sys.stderr.write(line)
    return status
