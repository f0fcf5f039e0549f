"""The recording of the Oak corpus, repeated with the client of this machine, and the reader held to it.

Needs a real `oak`: the absolute path in OAKLEDGER_TEST_OAK, else the one on PATH; `.ci/provide-oak`
builds it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.oak_binary
pytest.importorskip("lzma", reason="the corpus is packed with lzma")

TESTS = Path(__file__).resolve().parent.parent


def _load(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, TESTS / "corpus" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


check = _load("oak_check")
recorder = _load("record_oak")

# What an interrupted commit left behind depends on the moment; the rest must come out as it was recorded.
BY_CHANCE = {"killed", "recovered", "clone_killed", "clone_unfinished"}


def _find() -> Path | None:
    named = os.environ.get("OAKLEDGER_TEST_OAK")
    found = named or shutil.which("oak")
    return Path(found).resolve() if found else None


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client under test; skips when there is none or when it does not write the pinned format."""
    found = _find()
    if found is None:
        pytest.skip("no oak on PATH and OAKLEDGER_TEST_OAK is not set")
    if not os.access(found, os.X_OK):
        pytest.fail(f"OAKLEDGER_TEST_OAK names no program: {found}")
    root = tmp_path_factory.mktemp("probe")
    (root / "repo").mkdir()
    subprocess.run(
        [str(found), "init"],
        cwd=root / "repo",
        env=recorder.clean_environment(root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    with closing(sqlite3.connect(root / "repo/.oak/oak.db")) as database:
        newest = database.execute("SELECT max(version) FROM schema_migrations").fetchone()[0]
    if newest != recorder.PINNED_MIGRATION:
        pytest.skip(f"this oak writes {newest}, the reader is pinned to {recorder.PINNED_MIGRATION}")
    return found


def _clients(needed: tuple[str, ...], pinned: Path) -> dict[str, Path]:
    clients: dict[str, Path] = {**recorder.known_clients(), recorder.PINNED: pinned}
    for version in needed:
        if version not in clients:
            pytest.skip(f"needs the client {version} as well (oakledger cache directory)")
    return clients


@pytest.mark.parametrize("name", list(recorder.RECIPES))
def test_record_again(name: str, client: Path, tmp_path: Path) -> None:
    clients = _clients(recorder.RECIPES[name][1], client)
    root = tmp_path / "bench"
    root.mkdir()
    item = recorder.record(name, clients, root)
    facts = json.loads(json.dumps(recorder.facts(item)))

    recorded = json.loads((recorder.DATA / name / "facts.json").read_text(encoding="utf-8"))
    same = ["item", "about", "oak_versions"]
    if name not in BY_CHANCE:
        same += ["entries"]
    assert {key: facts[key] for key in same} == {key: recorded[key] for key in same}
    assert [_timeless(read) for read in facts["reads"]] == [_timeless(read) for read in recorded["reads"]]

    repo = tmp_path / "repo"
    (repo / ".oak").mkdir(parents=True)
    for file in recorder.STORE_FILES:
        if (item.store / file).exists():
            shutil.copy(item.store / file, repo / ".oak" / file)
    for read in facts["reads"]:
        status, report = check.run_reader(repo, "--manifest", "-", *read["options"])
        check.check_report(facts, read, status, report)
        if status == 0:
            _agree(item, report)


def _timeless(read: dict[str, Any]) -> dict[str, Any]:
    """A read without the hashes that depend on the time of the commits."""
    fields = dict(read["fields"])
    if "shallow_boundary" in fields:
        fields["shallow_boundary"] = len(fields["shallow_boundary"])
    return {**read, "fields": fields}


def _agree(item: Any, report: dict[str, Any]) -> None:
    """The client's `oak tree inspect --at HEAD --json` and the reader say the same of every file both saw."""
    if item.inspection is None or not item.inspection["complete"]:
        return
    assert item.inspection["commit"] == report["head"] == item.head
    client_says = {
        file["path"]: (file["size"], file["sha256"])
        for file in item.inspection["files"]
        if file["sha256"] is not None
    }
    for entry in report["entries"]:
        if entry["sha256"] is not None:
            assert client_says[entry["path"]] == (entry["size"], entry["sha256"])


def test_git_and_oak_hold_the_same_tree(client: Path, tmp_path: Path) -> None:
    """The same work tree committed to Git and to Oak: Git's own listing has the reader's entries."""
    bench = recorder.Bench(tmp_path, {recorder.PINNED: client})
    tree = bench.new("repo")
    files = recorder.shapes()
    recorder.write(tree, files)
    bench.commit(tree)
    bench.git(tree, "init", "-q")
    bench.git(tree, "-c", "core.autocrlf=false", "add", "-A", "--", ".", ":!.oak")
    listing = bench.run(["git", "ls-files", "-s", "-z"], tree, (0,))
    staged = {line.split("\t", 1)[1]: line.split(" ", 1)[0] for line in listing.split("\0") if line}
    status, report = check.run_reader(tree, "--manifest", "-")
    assert status == 0
    assert {entry["path"]: entry["mode"] for entry in report["entries"]} == staged
