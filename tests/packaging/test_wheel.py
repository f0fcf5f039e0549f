"""The built wheel, installed alone into an empty environment, is a working oakledger."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("ledger", "reader", "oracles", "qualify", "sql")

pytestmark = pytest.mark.slow


def pip(python: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pip; a package index that cannot be reached skips, every other failure fails."""
    command = [python, "-m", "pip", "--disable-pip-version-check", *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and re.search(
        r"NewConnectionError|Max retries|Name or service|timed out", done.stderr
    ):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The bin folder of an environment that holds the wheel and what it requires, no extras."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv/bin"
    pip(str(binaries / "python"), "install", "--quiet", str(wheel))
    return binaries


def run(binaries, cwd, *args, status=0):
    env = {"PATH": f"{binaries}:/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        args,
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == status, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def test_every_file_of_the_packages_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    source = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert source - names == set()
    for kind in (
        "sql/000_schema.sql",
        "sql/audit/roots.sql",
        "oracles/contracts/undo_bad_commit.toml",
        "oracles/demo/stores/facts.json",
        "qualify/rules.toml",
        *(f"{package}/py.typed" for package in PACKAGES if package != "sql"),
    ):
        assert kind in names
    assert any(n.startswith("qualify/report/templates/") for n in names)
    assert any(n.endswith(".db.xz") for n in names)
    # Nothing else comes along: no tests, no machine's leftovers.
    strangers = {n.split("/")[0] for n in names} - set(PACKAGES)
    assert len(strangers) == 1 and strangers.pop().endswith(".dist-info")


def test_the_metadata(wheel):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {n.split("/")[0] for n in archive.namelist() if ".dist-info/" in n}
        metadata = archive.read(f"{info}/METADATA").decode()
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        assert "Apache License" in archive.read(f"{info}/licenses/LICENSE").decode()
    assert f"Version: {project['version']}\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "oakledger = ledger.cli.root:main" in scripts
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## {project['version']}" in changelog


def test_a_working_oakledger(installed, tmp_path):
    version = run(installed, tmp_path, "oakledger", "--version").stdout
    assert re.fullmatch(r"oakledger, version [0-9.]+ \(ledger schema [0-9]+\)\n", version)
    schema = json.loads(run(installed, tmp_path, "oakledger", "schema").stdout)
    assert "TrialRecorded" in schema["$defs"]
    sample = ROOT / "tests/data/events/v1/trial_recorded.full.json"
    event = sample.read_bytes().rstrip(b"\n") + b"\n"
    (tmp_path / "run.ndjson").write_bytes(event)
    assert "1 new" in run(installed, tmp_path, "oakledger", "ingest", "run.ndjson").stdout
    assert run(installed, tmp_path, "oakledger", "audit").stdout.endswith("verifies\n")
    answer = run(
        installed, tmp_path, "oakledger", "sql", "--json", "SELECT count(*) AS n FROM trial_outcomes"
    )
    assert json.loads(answer.stdout) == [{"n": 1}]
    campaign = json.loads(event)["campaign"]
    decided = run(installed, tmp_path, "oakledger", "qualify", "--campaign", campaign, status=1)
    assert "not qualified" in decided.stdout
    run(installed, tmp_path, "oakledger", "export", "--parquet", "parquet")


def test_readers_and_oracles(installed, tmp_path):
    """The pure readers need nothing but the package: an Oak store that is shipped is read and judged."""
    code = (
        "import lzma, os; from importlib.resources import files\n"
        "packed = (files('oracles') / 'demo/stores/undo_bad_commit-revert.db.xz').read_bytes()\n"
        "os.makedirs('work/.oak'); open('work/.oak/oak.db', 'wb').write(lzma.decompress(packed))\n"
    )
    run(installed, tmp_path, "python", "-c", code)
    verify = ("oakledger", "verify", "--scenario", "undo_bad_commit", "--vcs", "oak", "--repo", "work")
    assert run(installed, tmp_path, *verify).stdout.startswith("pass")
    report = json.loads(run(installed, tmp_path, "oakledger", "read", "oak", "work").stdout)
    assert report["outcome"] == "ok" and report["backend"] == "pure"


def test_an_extra_that_is_missing_is_named(installed, tmp_path):
    (tmp_path / "run.ndjson").write_bytes(
        (ROOT / "tests/data/events/v1/trial_recorded.full.json").read_bytes()
    )
    run(installed, tmp_path, "oakledger", "ingest", "run.ndjson")
    campaign = json.loads((tmp_path / "run.ndjson").read_text())["campaign"]
    done = run(installed, tmp_path, "oakledger", "report", "--campaign", campaign, "-o", "r.html", status=2)
    assert "oakledger[report]" in done.stderr and done.stderr.count("\n") == 1


def test_types_are_shipped(installed, tmp_path):
    """A strict type checker sees the types of the installed package."""
    pytest.importorskip("mypy", reason="needs mypy")
    (tmp_path / "user.py").write_text(
        "import ledger\nfrom ledger.spool import Spool\n\n"
        "reveal_type(ledger.open('x'))\nreveal_type(Spool('x').add)\nSpool(3.5)\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        installed / "python",
        "user.py",
    ]
    env = {**os.environ, "MYPYPATH": "", "MYPY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert 'Revealed type is "ledger.store.Ledger"' in done.stdout, done.stdout + done.stderr
    assert 'Revealed type is "def (**fields: Any) -> int"' in done.stdout.replace("builtins.int", "int")
    assert 'Argument 1 to "Spool" has incompatible type "float"' in done.stdout
    assert "Found 1 error" in done.stdout
