"""The isolated Oak reader on databases that the real client wrote, held to the recorded facts."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# Some interpreters are built without it; the corpus is packed with it.
lzma = pytest.importorskip("lzma")

TESTS = Path(__file__).resolve().parent.parent
DATA = TESTS / "data" / "oak"


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

ITEMS: dict[str, dict[str, Any]] = {
    path.parent.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(DATA.glob("*/facts.json"))
}
READS = [(name, number) for name, facts in ITEMS.items() for number in range(len(facts["reads"]))]
READABLE = [name for name, facts in ITEMS.items() if any(read["exit"] == 0 for read in facts["reads"])]
COMPLETE = [name for name in READABLE if ITEMS[name]["reads"][0]["exit"] == 0]


@pytest.fixture(params=["pure", "native"])
def backend(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "native":
        for package in ("blake3", "zstandard"):
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"the native backend needs the package {package}")
    return name


def test_corpus_is_whole() -> None:
    assert set(ITEMS) == set(recorder.RECIPES)
    for name, facts in ITEMS.items():
        assert facts["files"], name
        for file, known in facts["files"].items():
            data = lzma.decompress((DATA / name / f"{file}.xz").read_bytes())
            assert len(data) == known["size"]
            assert hashlib.sha256(data).hexdigest() == known["sha256"]


def test_corpus_is_private() -> None:
    """No credential, no home directory and no machine path is in a recorded file."""
    for name, facts in ITEMS.items():
        texts = [(DATA / name / "facts.json").read_bytes()]
        texts += [lzma.decompress((DATA / name / f"{file}.xz").read_bytes()) for file in facts["files"]]
        for text in texts:
            for word in (b"/root/", b"/home/", b"/Users/", b"/tmp/", b"api_key", b"Bearer "):
                assert word not in text, (name, word)


def test_client_agrees_with_the_facts() -> None:
    """Where the client could inspect its own HEAD, it saw that commit and a digest for every file."""
    seen = 0
    for name, facts in ITEMS.items():
        inspection = facts["inspection"]
        if inspection is None or not inspection["complete"]:
            continue
        seen += 1
        assert inspection["status"] == "verified", name
        assert inspection["commit"] == facts["head"], name
        assert inspection["files_with_sha256"] == len(facts["entries"]), name
    assert seen >= 15


@pytest.mark.parametrize(("name", "number"), READS, ids=[f"{name}-{number}" for name, number in READS])
def test_report(name: str, number: int, backend: str, tmp_path: Path) -> None:
    facts = ITEMS[name]
    read = facts["reads"][number]
    repo = check.unpack(DATA / name, tmp_path / "repo")
    before = {path.name: path.read_bytes() for path in (repo / ".oak").iterdir()}
    status, report = check.run_reader(repo, "--manifest", "-", *read["options"], backend=backend)
    check.check_report(facts, read, status, report)
    assert report["backend"] == backend
    # The reader leaves the store as it was: no sidecar, no changed byte.
    assert {path.name: path.read_bytes() for path in (repo / ".oak").iterdir()} == before


@pytest.mark.parametrize(
    ("name", "verified"),
    [
        ("three_commits", {"commits": 1, "ancestors": 2, "trees": 2, "blobs": 8}),
        ("git_import", {"commits": 1, "ancestors": 3}),
        # Two commits and their merge, one more with its merge, the second clone's own: all before the pull.
        ("pulled", {"commits": 1, "ancestors": 6, "blobs": 11}),
        ("cloned", {"commits": 1, "blobs": 9, "chunk_maps": 8}),
        # One file of nine chunks, seven of them alike; four files of one chunk; the empty file has none.
        ("chunks_only", {"chunked_blobs": 5, "chunks": 7, "blobs": 1}),
        ("legacy_trees", {"commits": 1, "ancestors": 2}),
    ],
)
def test_what_was_verified(name: str, verified: dict[str, int], tmp_path: Path) -> None:
    """A deep read counts every object that the recording made, by how it was verified."""
    repo = check.unpack(DATA / name, tmp_path / "repo")
    status, report = check.run_reader(repo, "--deep")
    assert status == 0
    assert {how: report["verified"].get(how) for how in verified} == verified
    assert report["verified"].get("ancestors", 0) == verified.get("ancestors", 0)


@pytest.mark.parametrize("name", COMPLETE)
def test_materialise(name: str, tmp_path: Path) -> None:
    facts = ITEMS[name]
    repo = check.unpack(DATA / name, tmp_path / "repo")
    target = tmp_path / "out"
    status, report = check.run_reader(repo, str(target))
    if "materialise" in facts["notes"]:
        assert (status, report["reason"]) == (1, facts["notes"]["materialise"])
        assert not target.exists() or not any(target.iterdir())
        return
    assert status == 0, report["detail"]
    check.check_directory(facts, target)


@pytest.mark.parametrize("name", [name for name in COMPLETE if ITEMS[name]["entries"]])
def test_scope_file(name: str, tmp_path: Path) -> None:
    """Every third committed path, through a scope file with NUL between the names."""
    facts = ITEMS[name]
    chosen = facts["entries"][::3]
    scope = tmp_path / "scope"
    scope.write_bytes(b"".join(entry["path"].encode() + b"\0" for entry in reversed(chosen)))
    repo = check.unpack(DATA / name, tmp_path / "repo")
    status, report = check.run_reader(repo, "--manifest", "-", "--scope", str(scope))
    assert status == 0, report["detail"]
    assert report["entries"] == chosen
    digest = hashlib.sha256(b"".join(entry["path"].encode() + b"\0" for entry in chosen)).hexdigest()
    assert report["scope"] == {"count": len(chosen), "sha256": digest}


def test_wal_decides_what_is_committed(tmp_path: Path) -> None:
    """Without its WAL the same file shows the commit before: reading past a WAL would be a wrong answer."""
    facts = ITEMS["held_open"]
    repo = check.unpack(DATA / "held_open", tmp_path / "repo")
    (repo / ".oak" / "oak.db-wal").write_bytes(b"")
    status, report = check.run_reader(repo)
    assert status == 0
    assert report["head"] == facts["notes"]["head_without_wal"] != facts["head"]


def test_out_of_scope_is_not_decoded(tmp_path: Path) -> None:
    """Reading one small file does not decode the megabytes beside it."""
    repo = check.unpack(DATA / "big_files", tmp_path / "repo")
    status, report = check.run_reader(repo, "--path", "page.bin", "--deadline", "20")
    assert status == 0
    assert report["counts"]["bytes_decoded"] < 10_000
