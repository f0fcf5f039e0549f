"""Making check results with bounded evidence."""

from __future__ import annotations

import base64
from typing import Any

from ledger.events import Check
from ledger.fields import Path, PathBytes

#: Bytes of content that a result may quote.
EXCERPT_BYTES = 200


def path_of(raw: bytes) -> Path:
    """Return a path as events spell it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return PathBytes(path_b64=base64.b64encode(raw).decode())


def raw_path(value: Any) -> bytes:
    """Return the bytes of a path as a reader report spells it."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return base64.b64decode(value["path_b64"])


def excerpt(content: bytes) -> str:
    """Return at most `EXCERPT_BYTES` of content as printable text."""
    text = content[:EXCERPT_BYTES].decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    return shown[: 2 * EXCERPT_BYTES]


def passed(check: str, path: bytes | None = None) -> Check:
    """Return a passed check."""
    return Check(check=check, result="pass", path=None if path is None else path_of(path))


def failed(
    check: str,
    reason: str,
    path: bytes | None = None,
    *,
    expected: str | None = None,
    found: str | None = None,
    content: bytes | None = None,
) -> Check:
    """Return a failed check with its evidence."""
    return Check(
        check=check,
        result="fail",
        reason=reason,
        path=None if path is None else path_of(path),
        expected=expected,
        found=found,
        excerpt=None if content is None else excerpt(content),
    )


def unmeasured(check: str, reason: str, path: bytes | None = None) -> Check:
    """Return a check that could not be made."""
    return Check(
        check=check, result="unmeasured", reason=reason, path=None if path is None else path_of(path)
    )
