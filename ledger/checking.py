"""Checking lines: from a block of NDJSON to staged events and reasons for the rest.

Big files are checked by helper processes, one block at a time each, because decoding holds Python's lock.
A helper reads blocks from its standard input until that ends, so it never outlives the process it helps.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import msgspec

from ledger.decode import decode
from ledger.errors import BadEventError, OakledgerError
from ledger.events import (
    AnyEvent,
    EnvironmentObserved,
    SubjectIdentified,
    canonical_sha256,
)
from ledger.inputs import Block
from ledger.staging import staged_line

#: An event may be dated so far ahead of this machine's clock, in nanoseconds.
FUTURE_NS = 86_400 * 10**9

#: Bytes from which on a block is first tried as a whole.
_WORTH_BATCHES = 256 << 10

#: Numbers that one line may use in the staging order.
NUMBERS_PER_LINE = 4

_FRAME = struct.Struct("<QQq")
_PIPE_BYTES = 1 << 20


class Reject(NamedTuple):
    """A bad line: its number, the reason, and its bytes."""

    line: int
    reason: str
    text: bytes


class Fact(NamedTuple):
    """An event about an environment or subject that a row brought along, and what it says."""

    says: str
    staged: bytes
    payload_bytes: int


class Checked(msgspec.Struct):
    """What became of a block; `staged` is empty when it was written to a part file."""

    lines: int = 0
    events: int = 0
    payload_bytes: int = 0
    staged: bytes = b""
    rejects: list[Reject] = []
    facts: list[Fact] = []
    error: str | None = None


class _Line(msgspec.Struct):
    kind: object = None
    row: object = None


_peek = msgspec.json.Decoder(_Line)


def events_of_line(line: bytes) -> list[tuple[AnyEvent, bytes]]:
    """Return the events of one line, an event or a row, with their canonical bytes. Raises BadEventError."""
    if not line.startswith(b'{"kind":'):
        try:
            marks = _peek.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            marks = _Line()  # decode says what is wrong
        if marks.row is not None and marks.kind is None:
            from ledger.rows import events_of_row

            return events_of_row(line)
    return [decode(line)]


def check(block: Block, now_ns: int) -> Checked:
    """Check the lines of a block at the time `now_ns` (nanoseconds since 1970-01-01 UTC)."""
    if block.problem is not None:
        return Checked(lines=1, rejects=[Reject(block.line, block.problem, block.data)])
    latest = now_ns + FUTURE_NS
    if len(block.data) >= _WORTH_BATCHES and (canonical := _check_canonical(block, latest)) is not None:
        return canonical
    return _check_lines(block, now_ns, latest)


def _check_canonical(block: Block, latest: int) -> Checked | None:
    """Check a block that has nothing but good events in canonical form, as spools do; null: it has not."""
    from ledger.decode_many import decode_in_batches  # takes time to make, which a small file need not pay

    lines = block.data[:-1].split(b"\n")
    staged: list[bytes] = []
    for events in decode_in_batches(lines):
        if events is None or _latest_time(events) > latest:
            return None
        for event in events:
            number = (block.line + len(staged)) * NUMBERS_PER_LINE
            staged.append(staged_line(number, lines[len(staged)], event.source, event.ordinal))
        del events  # before the next batch comes into being: its memory is warm
    return Checked(
        lines=len(lines),
        events=len(lines),
        payload_bytes=len(block.data) - len(lines),
        staged=b"".join(staged),
    )


def _latest_time(events: list[Any]) -> int:
    """Return the latest time in events, nanoseconds since 1970-01-01 UTC."""
    times: list[int | None] = [event.recorded_at_ns for event in events]
    for event in events:
        if "ended_at_ns" in event.__struct_fields__:
            times += (event.started_at_ns, event.ended_at_ns)
    return max(time for time in times if time is not None)


def _check_lines(block: Block, now_ns: int, latest: int) -> Checked:
    """Check a block line by line, with the reason for each that is refused."""
    result = Checked()
    staged: list[bytes] = []
    seen: set[str] = set()
    lines = block.data[:-1].split(b"\n")
    for number, line in enumerate(lines, start=block.line):
        if not line or line.isspace():
            continue
        result.lines += 1
        try:
            events = events_of_line(line)
            if _latest_time([event for event, _ in events]) > latest:
                for event, _ in events:
                    _refuse_future(event, latest, now_ns)
        except BadEventError as e:
            result.rejects.append(Reject(number, str(e), line))
            continue
        for place, (event, payload) in enumerate(events):
            text = staged_line(number * NUMBERS_PER_LINE + place, payload, event.source, event.ordinal)
            if place == 0:
                staged.append(text)
                result.events += 1
                result.payload_bytes += len(payload)
            elif (says := _says(event)) not in seen:
                seen.add(says)
                result.facts.append(Fact(says, text, len(payload)))
    result.staged = b"".join(staged)
    return result


def _says(event: AnyEvent) -> str:
    """Digest of what a fact says, whoever says it and when."""
    assert isinstance(event, EnvironmentObserved | SubjectIdentified)
    fields = msgspec.to_builtins(event)
    for name in ("source", "ordinal", "recorded_at_ns"):
        fields.pop(name, None)
    return canonical_sha256(fields)


def _refuse_future(event: AnyEvent, latest: int, now_ns: int) -> None:
    for name in ("recorded_at_ns", "started_at_ns", "ended_at_ns"):
        at = getattr(event, name, None)
        if at is not None and at > latest:
            hours = (at - now_ns) // (3600 * 10**9)
            raise BadEventError(
                f"{name} is {hours} hours ahead of this machine's clock, at most a day is allowed"
            )


class Helpers:
    """Helper processes that check blocks. Use as a context manager.

    Each has one block at a time; results come back in the order in which blocks were given. Staged events go
    to one part file a helper (`parts`).
    """

    def __init__(self, parts: list[str], now_ns: int) -> None:
        self.parts = parts
        self._now_ns = now_ns
        self._waiting: list[int] = []
        self._idle = list(range(len(parts)))
        # Ctrl-C is for the process that is helped: when it ends, the helpers' input ends.
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
            f"sys.path[:] = {sys.path!r}; from ledger.checking import serve; serve(sys.argv[1])"
        )
        self._processes = [
            subprocess.Popen(
                [sys.executable, "-I", "-c", code, part],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pipesize=_PIPE_BYTES,
            )
            for part in parts
        ]

    def check(self, blocks: Iterator[Block]) -> Iterator[Checked]:
        """Check blocks, in order."""
        for block in blocks:
            if not self._idle:
                yield self._collect()
            self._give(block)
        while self._waiting:
            yield self._collect()

    def _give(self, block: Block) -> None:
        helper = self._idle.pop(0)
        stdin = self._processes[helper].stdin
        assert stdin is not None
        problem = b"" if block.problem is None else block.problem.encode()
        try:
            stdin.write(_FRAME.pack(block.line, len(block.data), self._now_ns))
            stdin.write(struct.pack("<I", len(problem)))
            stdin.write(problem)
            stdin.write(block.data)
            stdin.flush()
        except OSError as e:
            raise OakledgerError(f"a checking process died ({e.strerror}): ingest again") from e
        self._waiting.append(helper)

    def _collect(self) -> Checked:
        helper = self._waiting.pop(0)
        stdout = self._processes[helper].stdout
        assert stdout is not None
        head = stdout.read(8)
        body = stdout.read(struct.unpack("<Q", head)[0]) if len(head) == 8 else b""
        if len(head) < 8 or len(body) < struct.unpack("<Q", head)[0]:
            raise OakledgerError("a checking process died: ingest again, and look at free memory and space")
        self._idle.append(helper)
        checked = msgspec.msgpack.decode(body, type=Checked)
        if checked.error:
            raise OakledgerError(checked.error)
        return checked

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
        for process in self._processes:
            process.stdout.close()  # type: ignore[union-attr]
            process.wait()


def _read_block(stream: IO[bytes]) -> tuple[Block, int] | None:
    head = stream.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    line, size, now_ns = _FRAME.unpack(head)
    problem = stream.read(struct.unpack("<I", stream.read(4))[0]).decode()
    return Block(line, stream.read(size), problem or None), now_ns


def serve(part: str) -> None:
    """Check blocks from standard input until it ends: the life of a helper process."""
    while (got := _read_block(sys.stdin.buffer)) is not None:
        checked = check(*got)
        try:
            with open(part, "ab") as staged:
                staged.write(checked.staged)
        except OSError as e:
            checked.error = f"{part} cannot be written ({e.strerror}): make room there or set TMPDIR"
        checked.staged = b""
        body = msgspec.msgpack.encode(checked)
        try:
            _write_all(1, struct.pack("<Q", len(body)) + body)
        except BrokenPipeError:
            return


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def helper_count() -> int:
    """Return how many helper processes are of use on this machine."""
    return min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
