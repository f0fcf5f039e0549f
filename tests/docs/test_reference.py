"""The generated pages are what the code says now."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from ledger import views
from ledger.cli.root import COMMANDS

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _module():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return {path.name: (path, text) for path, text in _module().pages().items()}


@pytest.mark.parametrize("name", ["cli.md", "views.md"])
def test_the_page_is_not_stale(pages, name):
    path, text = pages[name]
    assert path.read_text(encoding="utf-8") == text, f"{name} is stale: run python docs/generate.py"


def test_every_command_is_there(pages):
    text = pages["cli.md"][1]
    for name in COMMANDS:
        assert f"## oakledger {name}\n\n```text\nUsage: oakledger {name} " in text
    assert "## oakledger read git\n" in text and "## oakledger campaign declare\n" in text


def test_every_view_says_what_it_is(pages):
    """A header comment names the view first, and says what one row of it is."""
    text = pages["views.md"][1]
    for one in views.shipped():
        assert f"\n## {one.name}\n" in text
        assert one.comment.startswith(f"{one.name}: "), f"sql/{one.file}: the comment above {one.name}"
        assert "Grain" in one.comment, f"sql/{one.file}: the grain of {one.name}"
    for table in ("ledger_meta", "events", "checkpoints", "duplicates"):
        assert f"CREATE TABLE {table} (" in text


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = str(page.relative_to(ROOT / "docs"))
        assert name == "README.md" or f"]({name})" in index, f"docs/README.md does not link {name}"
