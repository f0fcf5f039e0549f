"""Importers: other tools' result files as they are, turned into events (docs/import.md).

One module a tool. An importer says what the file says and nothing more: what a file leaves out stays null, a
success that a file claims is `claimed_success` and never a verdict, and no campaign is declared.
"""

from __future__ import annotations

import importlib
from typing import Protocol, cast

from ledger.importers.shared import ForeignFile, Imported


class Importer(Protocol):
    """What each module here offers."""

    def looks_like(self, document: object) -> bool:
        """Say whether a decoded JSON document has the shape of this tool's files."""

    def read(self, file: ForeignFile, subject: str | None) -> Imported:
        """Turn a file into drafts of events. `subject` names what was measured where the file does not.

        Raises ForeignFileError when the file cannot be taken as this tool's.
        """


#: Name of the tool on the command line -> module.
MODULES = {
    "vcbench": "vcbench",
    "terminal-bench": "terminal_bench",
    "harbor": "harbor",
    "inspect": "inspect_ai",
    "hyperfine": "hyperfine",
    "pytest-benchmark": "pytest_benchmark",
}


def importer(tool: str) -> Importer:
    """Return the importer of a tool."""
    return cast("Importer", importlib.import_module(f"ledger.importers.{MODULES[tool]}"))


def guess(document: object) -> str | None:
    """Return the tool whose files a document looks like, None when it looks like nobody's."""
    return next((tool for tool in MODULES if importer(tool).looks_like(document)), None)
