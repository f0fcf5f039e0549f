"""The field types that events are made of, each with its bounds.

No type here is a float, and none ever will be: a float has several spellings of one value, so canonical
bytes over it would not be canonical (design section 4). Quantities are integers with the unit in the name.

Texts that take part in a digest computed by SQL (conditions, plans, environment facts) are limited to
printable ASCII without quotation mark and backslash, so that every JSON writer spells them alike.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_INT64 = 2**63 - 1

# `$` also matches before a final newline in Python; the lookahead takes that away.
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._:@+/-]*$(?!\n)"
_PLAIN = r"^[ !#-\[\]-~]*$(?!\n)"

#: 2015-01-01 and 2100-01-01 UTC: a time outside is a clock or a unit mistake, not a measurement.
EARLIEST_NS = 1_420_070_400_000_000_000
LATEST_NS = 4_102_444_800_000_000_000

Name = Annotated[str, Meta(pattern=_NAME, min_length=1, max_length=200)]
Plain = Annotated[str, Meta(pattern=_PLAIN, max_length=500)]
PlainKey = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$(?!\n)", min_length=1, max_length=64)]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
ObjectId = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$(?!\n)")]
TimestampNs = Annotated[int, Meta(ge=EARLIEST_NS, lt=LATEST_NS)]
Count = Annotated[int, Meta(ge=0, le=MAX_INT64)]
Version = Annotated[int, Meta(ge=1, le=1_000_000)]
Quantity = Annotated[int, Meta(ge=-(2**63), le=MAX_INT64)]
Excerpt = Annotated[str, Meta(max_length=400)]
Sentence = Annotated[str, Meta(min_length=1, max_length=2000)]
Code = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_]*$(?!\n)", max_length=100)]

Lane = Literal["core", "workflow", "agent", "contention", "mount"]
Depth = Literal["committed_tree", "committed_payload"]
Verdict = Literal["pass", "fail", "unmeasured"]
Relation = Literal["independent", "subject_binary", "subject_export", "unqualified"]


class PathBytes(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A path whose bytes are not UTF-8."""

    path_b64: Annotated[str, Meta(description="The path's bytes in standard base64.", max_length=8192)]


Path = Annotated[str, Meta(max_length=8192)] | PathBytes
