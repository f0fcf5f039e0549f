"""Holds reports of the Oak reader to the facts of a corpus item, for the recorded and the live tests."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import stat
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).resolve().parents[2] / "reader" / "oak_sqlite_reader.py"
OUTCOMES = {0: "ok", 1: "failed", 2: "usage", 3: "invalid", 77: "unmeasured"}
# Findings that come before HEAD is looked at: the report cannot name it.
BEFORE_HEAD = {
    "not_quiescent",
    "newer_format",
    "unrecognised_format",
    "store_missing",
    "clone_in_progress",
    "no_committed_head",
}


def unpack(item: Path, repo: Path) -> Path:
    """Lays a recorded item out as `repo/.oak/oak.db` (and WAL); returns `repo`."""
    (repo / ".oak").mkdir(parents=True)
    for packed in sorted(item.glob("*.xz")):
        (repo / ".oak" / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))
    return repo


def run_reader(repo: Path, *options: str, backend: str = "pure") -> tuple[int, dict[str, Any]]:
    """Exit status and report of one run of the isolated script, started as users start it."""
    done = subprocess.run(
        [sys.executable, "-I", str(SCRIPT), str(repo), *options, "--backend", backend],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        env={"PATH": os.defpath},
    )
    text = done.stderr.decode()
    assert "Traceback" not in text, text
    assert len(text.splitlines()) == (0 if done.returncode == 0 else 1), text
    return done.returncode, json.loads(done.stdout)


def expected_entries(facts: dict[str, Any], read: dict[str, Any]) -> list[dict[str, Any]]:
    """The manifest entries that a read must report."""
    known = {entry["path"]: entry for entry in facts["entries"]}
    oversize = set(read["fields"].get("oversize_paths", ()))
    directories = [path for path in read["fields"].get("nonregular_paths", ()) if path not in known]
    wanted = known if read["entries"] is None else {path: known[path] for path in read["entries"]}
    made = [{**entry, "sha256": None} if path in oversize else entry for path, entry in wanted.items()]
    made += [{"path": path, "mode": "040000", "size": None, "sha256": None} for path in directories]
    return sorted(made, key=lambda entry: str(entry["path"]).encode())


def manifest_sha256(entries: Iterable[dict[str, Any]]) -> str:
    """The manifest digest as docs/reader-report.md defines it."""
    digest = hashlib.sha256()
    for entry in entries:
        size = "-" if entry["size"] is None else entry["size"]
        digest.update(f"{entry['mode']} {size} {entry['sha256'] or '-'} {entry['path']}\0".encode())
    return digest.hexdigest()


def check_report(facts: dict[str, Any], read: dict[str, Any], status: int, report: dict[str, Any]) -> None:
    """Asserts that a report made with `--manifest -` says what the facts say."""
    said = (status, report["outcome"], report["reason"])
    assert said == (read["exit"], OUTCOMES[read["exit"]], read["reason"]), report["detail"]
    assert report["exit_status"] == status
    assert report["head"] == (None if read["reason"] in BEFORE_HEAD else facts["head"])
    for name, value in read["fields"].items():
        assert report[name] == value, name
    if status == 0:
        wanted = expected_entries(facts, read)
        assert report["entries"] == wanted
        assert report["manifest_sha256"] == manifest_sha256(wanted)
        assert report["counts"]["entries"] == len(wanted)
        assert report["format"]["newest_migration"] == "0014_change_captures"
        assert report["detail"] is None
    else:
        assert report["manifest_sha256"] is None
        assert report["detail"]


def check_directory(facts: dict[str, Any], directory: Path) -> None:
    """Asserts that a directory holds the committed files and nothing else, byte for byte."""
    found: dict[str, dict[str, Any]] = {}
    for root, folders, names in os.walk(os.fsencode(directory)):
        for name in [*names, *(folder for folder in folders if os.path.islink(os.path.join(root, folder)))]:
            path = os.path.join(root, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                mode, content = "120000", os.readlink(path)
            else:
                assert stat.S_ISREG(status.st_mode)
                mode = "100755" if status.st_mode & 0o100 else "100644"
                with open(path, "rb") as stream:
                    content = stream.read()
            relative = os.path.relpath(path, os.fsencode(directory)).decode()
            found[relative] = {
                "path": relative,
                "mode": mode,
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
    wanted = {
        entry["path"]: {name: entry[name] for name in ("path", "mode", "size", "sha256")}
        for entry in facts["entries"]
    }
    assert found == wanted
