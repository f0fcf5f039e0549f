"""Access to the SQL that ships with the package.

File names say what they are: `000_schema.sql` makes the tables, `1xx_*.sql` and `2xx_*.sql` the views, in
order; `audit/*.sql` are queries that an auditor runs with nothing but DuckDB.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files


@cache
def read(name: str) -> str:
    """Return the text of one shipped SQL file, for example `000_schema.sql` or `audit/root.sql`."""
    node = files("sql")
    for part in name.split("/"):
        node = node / part
    return node.read_text(encoding="utf-8")


@cache
def view_names() -> tuple[str, ...]:
    """Return the names of the view files, in the order in which they must be run."""
    names = (node.name for node in files("sql").iterdir())
    return tuple(sorted(n for n in names if n.endswith(".sql") and not n.startswith("0")))


@cache
def views_sha256() -> str:
    """Return the digest of the shipped views: SHA-256 over `name NUL length NUL text` of each, in order."""
    digest = hashlib.sha256()
    for name in view_names():
        text = read(name).encode()
        digest.update(b"%s\0%d\0%s" % (name.encode(), len(text), text))
    return digest.hexdigest()
