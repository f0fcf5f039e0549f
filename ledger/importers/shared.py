"""What all importers share: bounded reading, exact numbers, times, names, and drafts of events.

A foreign file is hostile until shown otherwise: its size is bounded, its JSON is read strictly (one meaning a
key, no NaN, no number that an event could not hold), and every complaint names the file and the place in it.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from ledger.decode import one_line, quoted
from ledger.errors import OakledgerError
from ledger.fields import MAX_INT64
from ledger.inputs import shown

#: Largest file, and largest JSON document in one, in bytes.
MAX_FILE_BYTES = 256 << 20
MAX_DOCUMENT_BYTES = 64 << 20

#: Most trials of one file.
MAX_TRIALS = 1_000_000

#: Longest number in characters, and largest decimal exponent: a double needs 25 and 324.
_MAX_NUMBER = 400
_MAX_EXPONENT = 400

#: Scenarios of other tools carry no version of ours; a mapping that changes their meaning would count it up.
SCENARIO_VERSION = 1

_EXACT = decimal.Context(prec=2000, rounding=decimal.ROUND_HALF_EVEN)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,199}")
_PLAIN = re.compile(r"[ !#-\[\]-~]{0,500}")
_NOT_PLAIN = re.compile(r"[^ !#-\[\]-~]+")
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:(Z)|([+-])(\d\d):?(\d\d))?", re.ASCII
)
_BOM = b"\xef\xbb\xbf"


class ForeignFileError(OakledgerError):
    """A file that cannot be imported: what was found, where in it, and what to do."""


class Draft(NamedTuple):
    """An event without its envelope and campaign, and the place in the file that it was made from."""

    place: str
    fields: dict[str, Any]


@dataclass
class Imported:
    """What one file said.

    `recorded_at_ns` is when the tool wrote it down, as far as the file says so. `notes` are for people: what
    the file leaves out or says against itself without being refused.
    """

    recorded_at_ns: int | None
    drafts: list[Draft]
    notes: list[str]

    @property
    def trials(self) -> int:
        """Number of trials among the drafts."""
        return sum(d.fields["kind"] == "trial_recorded/1" for d in self.drafts)


class ForeignFile:
    """A file of another tool, read once into memory, and its SHA-256.

    Raises ForeignFileError when it cannot be read, is no regular file, is empty or too large.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.data = _read(path)
        self.sha256 = hashlib.sha256(self.data).hexdigest()

    @property
    def short(self) -> str:
        """First 16 hex digits of the SHA-256: the file's part in derived names."""
        return self.sha256[:16]

    def fail(self, place: str, what: str) -> ForeignFileError:
        """Return the error that names this file and a place in it."""
        where = shown(self.path) + (f": {one_line(place, 200)}" if place else "")
        return ForeignFileError(f"{where}: {what}")

    def document(self) -> Node:
        """Return the file as one JSON document."""
        return self.decode(self.data, "")

    def decode(self, data: bytes, place: str) -> Node:
        """Return a JSON text of this file, found at `place`, as a node."""
        if len(data) > MAX_DOCUMENT_BYTES:
            raise self.fail(
                place, f"{len(data)} bytes of JSON: at most {MAX_DOCUMENT_BYTES} are read, split the file"
            )
        try:
            return Node(self, _decode(data), place)
        except ValueError as e:
            raise self.fail(place, f"{e}: write the file again") from None

    def lines(self) -> Iterator[Node]:
        """Return the lines of the file as JSON documents, one each; empty lines are passed over."""
        for number, line in enumerate(self.data.split(b"\n"), 1):
            if line.strip():
                yield self.decode(line, f"line {number}")


class Node:
    """A value in a foreign document and its place, for errors that say where."""

    __slots__ = ("_file", "place", "value")

    def __init__(self, file: ForeignFile, value: Any, place: str) -> None:
        self._file = file
        self.value = value
        self.place = place

    def fail(self, what: str) -> ForeignFileError:
        """Return the error that names this place."""
        return self._file.fail(self.place, what)

    def get(self, *keys: str) -> Node:
        """Return the node under a path of keys, a null where one is missing; what is no object is refused."""
        node = self
        for key in keys:
            place = f"{node.place}.{key}" if node.place else key
            node = Node(self._file, None if node.value is None else node.object().get(key), place)
        return node

    def object(self) -> dict[str, Any]:
        """Return the value, which must be an object."""
        if not isinstance(self.value, dict):
            raise self._other("an object")
        return self.value

    def items(self) -> Iterator[Node]:
        """Return the elements of the value, which must be an array."""
        if not isinstance(self.value, list):
            raise self._other("an array")
        for number, element in enumerate(self.value):
            yield Node(self._file, element, f"{self.place}[{number}]")

    def text(self) -> str | None:
        """Return a text or null."""
        if self.value is not None and not isinstance(self.value, str):
            raise self._other("a text or null")
        return self.value

    def needed_text(self) -> str:
        """Return a text that must be there and not be empty."""
        text = self.text()
        if not text:
            raise self.fail("no text: it identifies the trial, and nothing stands in for it")
        return text

    def boolean(self) -> bool | None:
        """Return a truth value or null."""
        if self.value is not None and not isinstance(self.value, bool):
            raise self._other("true, false or null")
        return self.value

    def integer(self) -> int | None:
        """Return an integer that an event can hold, or null."""
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self._other("an integer or null")
        return self._bounded(self.value)

    def scaled(self, power: int) -> int | None:
        """Return a number times ten to the `power` as an integer, or null.

        The decimal text of the file is scaled exactly and rounded once, half to even.
        """
        if self.value is None:
            return None
        if isinstance(self.value, bool) or not isinstance(self.value, int | Decimal):
            raise self._other("a number or null")
        exact = _EXACT.scaleb(Decimal(self.value), power)
        return self._bounded(int(exact.to_integral_value(context=_EXACT)))

    def number(self) -> Decimal | None:
        """Return a number exactly as written, or null."""
        self.scaled(0)
        return None if self.value is None else Decimal(self.value)

    def time_ns(self, *, zone_of_naive: datetime.timezone | None = None) -> int | None:
        """Return an RFC 3339 time in nanoseconds since 1970-01-01 UTC, or null.

        A time without a zone is null, unless the tool is known to write such times in one zone: it could be
        any of two dozen hours.
        """
        text = self.text()
        if text is None:
            return None
        found = _TIME.fullmatch(text)
        if found is None:
            raise self.fail(f"{quoted(text)} is no time of the form 2026-01-31T12:00:00.5Z")
        *parts, fraction, utc, sign, hours, minutes = found.groups()
        try:
            moment = datetime.datetime(*(int(p) for p in parts), tzinfo=datetime.UTC)  # type: ignore[misc, arg-type]
            offset = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        except ValueError as e:
            raise self.fail(f"{quoted(text)} is no time ({e})") from None
        if not utc and sign is None:
            if zone_of_naive is None:
                return None
            offset = zone_of_naive.utcoffset(None)
        since = moment - (-offset if sign == "-" else offset) - _EPOCH
        seconds = since.days * 86_400 + since.seconds
        return seconds * 10**9 + int((fraction or "").ljust(9, "0"))

    def row_sha256(self) -> str:
        """Return the SHA-256 of the value as JSON: keys sorted, no white space, ASCII, fractions as texts."""
        text = json.dumps(self.value, sort_keys=True, separators=(",", ":"), default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _bounded(self, value: int) -> int:
        if not -MAX_INT64 - 1 <= value <= MAX_INT64:
            raise self.fail("a number that no 64-bit integer holds")
        return value

    def _other(self, wanted: str) -> ForeignFileError:
        kinds = {
            dict: "an object",
            list: "an array",
            str: "a text",
            bool: "a truth value",
            type(None): "null",
        }
        return self.fail(f"{kinds.get(type(self.value), 'a number')}, where {wanted} is expected")


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def name(text: str) -> str:
    """Return foreign text as a name: itself where it can be one.

    Otherwise what a name cannot have becomes `-`, and the first 16 hex digits of the text's SHA-256 follow
    after a dot, so that different texts stay different.
    """
    if _NAME.fullmatch(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9._:@+/-]+", "-", text[:1000])[:170].strip("-./:@+_") or "unnamed"
    return f"{readable}.{_digest(text)}"


def derived_trial(tool: str, file: ForeignFile, *key: str) -> str:
    """Return the name of a trial to which its file gives no identity, from the file and the natural key."""
    prefix = f"{tool}/derived/{file.short}"
    joined = "/".join(key)
    whole = f"{prefix}/{joined}"
    if _NAME.fullmatch(whole) and not any("/" in part for part in key):
        return whole
    readable = re.sub(r"[^A-Za-z0-9._@+-]+", "-", joined[:1000])[: 170 - len(prefix)].strip("-.@+_")
    return f"{prefix}/{readable or 'unnamed'}.{_digest(json.dumps(key))}"


def plain(text: str | None) -> str | None:
    """Return foreign text as a condition or environment can hold it, null as null.

    Text that is not printable ASCII without quotation mark and backslash is treated as `name` does.
    """
    if text is None or _PLAIN.fullmatch(text):
        return text
    return f"{_NOT_PLAIN.sub('-', text[:1000])[:400]}.{_digest(text)}"


def code(text: str) -> str:
    """Return foreign text as a code: lower case, words joined by `_`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text[:400])
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")[:100] or "unnamed"


def unique(drafts: Iterable[Draft], file: ForeignFile) -> list[Draft]:
    """Return the drafts as a list; refuses a file that has none, too many, or two of one trial."""
    kept: list[Draft] = []
    seen: dict[str, str] = {}
    for draft in drafts:
        trial = draft.fields.get("trial")
        if trial is not None:
            if trial in seen:
                raise file.fail(draft.place, f"the same trial as at {seen[trial]}: a trial is recorded once")
            seen[trial] = draft.place
            if len(seen) > MAX_TRIALS:
                raise file.fail(draft.place, f"more than {MAX_TRIALS} trials: split the file")
        kept.append(draft)
    if not seen:
        raise file.fail("", "no trial in it: there is nothing to import")
    return kept


def not_ours(root: Node, tool: str, wanted: str) -> ForeignFileError:
    """Return the error for a document that is not of the tool's shape, naming the tool whose it may be."""
    from ledger.importers import guess

    other = guess(root.value)
    if other is not None:
        return root.fail(f"no {tool} file, it looks like one of {other}: oakledger import {other}")
    return root.fail(f"no {tool} file: name {wanted}")


def agree(at: Node, found: int, what: str) -> None:
    """Refuse a file whose own count differs from what it holds; a count that is not there is not checked."""
    said = at.integer()
    if said is not None and said != found:
        raise at.fail(
            f"says {said}, and the file holds {found} {what}: it contradicts itself, get a whole one"
        )


def text_sha256(text: str | None) -> str | None:
    """Return the SHA-256 of a text in UTF-8, null of null."""
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def known(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that are known: null is left out, as events leave it out."""
    return {key: value for key, value in facts.items() if value is not None}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _read(path: str) -> bytes:
    try:
        # O_NONBLOCK: a FIFO must not hang the reader.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as e:
        reason = e.strerror if isinstance(e, OSError) else str(e)
        raise ForeignFileError(f"{shown(path)} cannot be read ({reason}): check the path") from e
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ForeignFileError(f"{shown(path)} is no regular file: name a result file")
    with os.fdopen(fd, "rb") as f:
        try:
            data = f.read(MAX_FILE_BYTES + 1)
        except OSError as e:
            raise ForeignFileError(f"{shown(path)} cannot be read ({e.strerror}): try again") from e
    if len(data) > MAX_FILE_BYTES:
        raise ForeignFileError(f"{shown(path)} has more than {MAX_FILE_BYTES >> 20} MiB: split it")
    if not data.strip():
        raise ForeignFileError(f"{shown(path)} is empty: name a result file")
    return data


def _decode(data: bytes) -> Any:
    """Decode JSON strictly. Raises ValueError with a reason in one line."""
    if data.startswith(_BOM):
        raise ValueError("starts with a byte order mark, JSON has none")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        raise ValueError(f"not UTF-8 at byte {e.start}") from None
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_float=_fraction,
            parse_int=_whole,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as e:
        cut = ", it ends early" if e.pos >= len(text.rstrip()) else ""
        raise ValueError(f"not JSON at line {e.lineno} column {e.colno} ({e.msg}{cut})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {quoted(double)} twice in one object")
    return made


def _fraction(text: str) -> Decimal:
    if len(text) > _MAX_NUMBER:
        raise ValueError(f"a number of {len(text)} characters")
    try:
        value = Decimal(text)
    except decimal.DecimalException:
        raise ValueError(f"number {quoted(text)} is out of range") from None
    if value and abs(value.adjusted()) > _MAX_EXPONENT:
        raise ValueError(f"number {quoted(text)} is out of range")
    return value


def _whole(text: str) -> int:
    if len(text) > _MAX_NUMBER:
        raise ValueError(f"a number of {len(text)} characters")
    return int(text)


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON number: what was not measured is null")
