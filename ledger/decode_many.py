"""Decoding many events at once, as strictly as `ledger.decode` and several times faster.

Most of the time of a strict decode goes into matching the pattern of one text after another. Here a batch is
decoded into structs that lack the patterns and are equal in all else, and then each distinct text of a field
is matched once. Both steps use the types of `ledger.events`, which alone describes a field.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from ledger.events import MAX_EVENT_BYTES, AnyEvent
from ledger.fields import Plain, Sha256
from ledger.upcast import STEPS

#: Events decoded at a time: few enough that they stay in the processor's cache.
BATCH = 512

#: Takes the values of one field of a batch, and raises msgspec.ValidationError for one that does not match.
_Matcher = Callable[[Iterable[Any]], None]


#: The pattern of texts that are printable ASCII without quotation mark and backslash, and of digests.
_PLAIN, _SHA256 = (get_args(kind)[1].pattern for kind in (Plain, Sha256))


def _pattern(kind: Any) -> str | None:
    """Return the pattern of an annotated type."""
    patterns = [m.pattern for m in get_args(kind)[1:] if isinstance(m, Meta) and m.pattern is not None]
    if len(patterns) > 1:
        raise TypeError(f"no rule for several patterns: {kind}")
    return patterns[0] if patterns else None


def _without_pattern(meta: object) -> object:
    if not isinstance(meta, Meta) or meta.pattern is None:
        return meta
    bounds = {
        name: value for name in ("min_length", "max_length") if (value := getattr(meta, name)) is not None
    }
    return Meta(**bounds)


class _Loosened:
    """Struct types without patterns."""

    def __init__(self) -> None:
        self._structs: dict[type[Struct], type[Struct]] = {}

    def type_of(self, kind: Any) -> Any:
        """Return a type with every pattern in it left out."""
        origin, args = get_origin(kind), get_args(kind)
        if origin is Annotated:
            inner = self.type_of(args[0])
            for meta in args[1:]:
                inner = Annotated[inner, _without_pattern(meta)]
            return inner
        if origin in (Union, types.UnionType):
            return Union[tuple(self.type_of(a) for a in args)]  # noqa: UP007 - built at run time
        if origin in (tuple, dict):
            return origin[tuple(a if a is Ellipsis else self.type_of(a) for a in args)]
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._struct(kind)
        return kind

    def _struct(self, kind: type[Struct]) -> type[Struct]:
        if kind not in self._structs:
            config = kind.__struct_config__
            hints = get_type_hints(kind, include_extras=True)
            fields: list[Any] = []
            for field in msgspec.structs.fields(kind):
                loose = self.type_of(hints[field.name])
                if field.required:
                    fields.append((field.name, loose))
                elif field.default is not msgspec.NODEFAULT:
                    fields.append((field.name, loose, field.default))
                else:
                    fields.append((field.name, loose, msgspec.field(default_factory=field.default_factory)))
            checked = vars(kind).get("__post_init__")
            self._structs[kind] = msgspec.defstruct(
                kind.__name__,
                fields,
                namespace={"__post_init__": checked} if checked else None,
                frozen=config.frozen,
                forbid_unknown_fields=config.forbid_unknown_fields,
                omit_defaults=config.omit_defaults,
                tag=config.tag,
                tag_field=config.tag_field,
                gc=False,  # what is decoded here is looked at and dropped
            )
        return self._structs[kind]


class _Matchers:
    """What makes up for the patterns left out; those named in `known` are known to hold already."""

    def __init__(self, known: frozenset[str] = frozenset()) -> None:
        self._known = known
        self._structs: dict[type[Struct], _Matcher | None] = {}

    def matcher(self, kind: Any) -> _Matcher | None:
        """Return what matches values of a type against the patterns in it; None when there are none."""
        origin, args = get_origin(kind), get_args(kind)
        if origin is Annotated:
            pattern = _pattern(kind)
            if pattern is None:
                return self.matcher(args[0])
            return None if pattern in self._known else _match_texts(kind, pattern)
        if origin in (Union, types.UnionType):
            return self._one_of([a for a in args if a is not type(None)])
        if origin is tuple:
            return _nested(self.matcher(args[0]), chain.from_iterable)
        if origin is dict:
            keys = _nested(self.matcher(args[0]), chain.from_iterable)
            values = _nested(self.matcher(args[1]), _all_values)
            return _both(keys, values)
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._struct_matcher(kind)
        return None

    def _one_of(self, kinds: list[Any]) -> _Matcher | None:
        matchers = [m for kind in kinds if (m := self.matcher(kind)) is not None]
        if matchers and len(kinds) > 1:
            raise TypeError(f"no rule for a union of several types with patterns: {kinds}")
        return matchers[0] if matchers else None

    def _struct_matcher(self, kind: type[Struct]) -> _Matcher | None:
        if kind not in self._structs:
            hints = get_type_hints(kind, include_extras=True)
            steps = [
                (attrgetter(field.name), m)
                for field in msgspec.structs.fields(kind)
                if (m := self.matcher(hints[field.name])) is not None
            ]

            def match(values: Iterable[Any]) -> None:
                present = [value for value in values if value is not None]
                if present:
                    for get, step in steps:
                        step(map(get, present))

            self._structs[kind] = match if steps else None
        return self._structs[kind]


def _match_texts(kind: Any, pattern: str) -> _Matcher:
    texts = list[kind]
    all_hex = pattern == _SHA256

    def match(values: Iterable[Any]) -> None:
        distinct = set(values)
        distinct.discard(None)
        if all_hex and _are_sha256(distinct):
            return
        msgspec.convert(list(distinct), texts)

    return match


def _are_sha256(texts: set[str]) -> bool:
    """Return whether every text is 64 lower-case hex digits, without matching one by one."""
    joined = "".join(texts)
    return (
        joined.isascii()
        and not joined.encode().translate(None, b"0123456789abcdef")
        and set(map(len, texts)) <= {64}
    )


def _nested(inner: _Matcher | None, items: Callable[[Iterable[Any]], Iterable[Any]]) -> _Matcher | None:
    if inner is None:
        return None
    match = inner
    return lambda values: match(items(values))


def _all_values(mappings: Iterable[dict[Any, Any]]) -> Iterable[Any]:
    return chain.from_iterable(mapping.values() for mapping in mappings)


def _both(first: _Matcher | None, second: _Matcher | None) -> _Matcher | None:
    if first is None or second is None:
        return first or second
    one, two = first, second

    def match(values: Iterable[Any]) -> None:
        held = list(values)
        one(held)
        two(held)

    return match


_loosened = _Loosened()
_kinds: tuple[type[Struct], ...] = (*get_args(AnyEvent), *STEPS)
_decoder = msgspec.json.Decoder(Union[tuple(_loosened.type_of(kind) for kind in _kinds)])  # noqa: UP007
_encoder = msgspec.json.Encoder(order="deterministic")

#: The types that decoded events have.
TYPES: tuple[type[Any], ...] = tuple(_loosened.type_of(kind) for kind in _kinds)


def _by_type(matchers: _Matchers) -> dict[type[Any], _Matcher | None]:
    return {kind: matchers.matcher(original) for kind, original in zip(TYPES, _kinds, strict=True)}


_all_patterns = _by_type(_Matchers())
_but_plain = _by_type(_Matchers(frozenset({_PLAIN})))


def _is_plain(lines: bytes) -> bool:
    """Return whether every text in canonical lines matches the pattern of plain ones: ASCII without escapes.

    Canonical JSON escapes quotation marks, backslashes and control characters but DEL.
    """
    return lines.isascii() and b"\\" not in lines and b"\x7f" not in lines


def decode_canonical(lines: bytes) -> list[Any] | None:
    """Return the events of which every line is the canonical text, or None when one line is not.

    Every line ends with a newline. Exactly when events are returned would `ledger.decode.decode` take each
    line and give back the same bytes. The structs have the fields and tags of those in `ledger.events`, in
    the version that was written, and are of other types.
    """
    try:
        events: list[Any] = _decoder.decode_lines(lines)
        if _encoder.encode_lines(events) != lines:
            return None
        by_type: dict[type[Any], list[Any]] = {}
        for event in events:
            by_type.setdefault(type(event), []).append(event)
        matchers = _but_plain if _is_plain(lines) else _all_patterns
        for kind, batch in by_type.items():
            match = matchers[kind]
            if match is not None:
                match(batch)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return events


def decode_in_batches(lines: list[bytes]) -> Iterator[list[Any] | None]:
    """Yield the events of one batch of lines after another, None instead of those of a batch that has none.

    As `decode_canonical`, and a line that is too long for an event is none.
    """
    for start in range(0, len(lines), BATCH):
        batch = lines[start : start + BATCH]
        fits = max(map(len, batch)) <= MAX_EVENT_BYTES
        yield decode_canonical(b"\n".join(batch) + b"\n") if fits else None
