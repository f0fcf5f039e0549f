"""The CI examples do what docs/release-checks.md says: their commands are run as they stand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import mutations as m
import pytest
from campaigns import respec

from ledger.events import CampaignDeclared, canonical

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("examples/ci/github-actions.yml", "examples/ci/gitlab-ci.yml")


def commands(example: str) -> list[str]:
    """The commands of an example, in their order."""
    text = (ROOT / example).read_text()
    return re.findall(r"^\s*(?:-|run:)\s+(oakledger .+)$", text, re.MULTILINE)


def variables(example: str) -> dict[str, str]:
    """What the example sets for all jobs."""
    text = (ROOT / example).read_text()
    return dict(re.findall(r"^  (CAMPAIGN|OAKLEDGER): (\S+)$", text, re.MULTILINE))


def job(example: str, folder: Path) -> tuple[int, str]:
    """Run the commands as a CI system does: the first that fails ends the job. Exit status and output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(commands(example))],
        cwd=folder,
        env={**variables(example), "PATH": path, "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def laboratory(folder: Path, campaign: str, act: str | None) -> None:
    """A repository as the examples find it: runs of a harness, a ledger with the plan, its checkpoint."""
    spec = respec(m.SCRIPTED, campaign=campaign)
    if act is None:
        events = m.honest_campaign(m.SCRIPTED, campaign, 0)
    else:
        told = m.Story(spec, m.honest_campaign(m.SCRIPTED, campaign, 0))
        m.ACTS[act].do(told)
        events = m.seal(told.events)
    (folder / "runs").mkdir()
    plan = [e for e in events if isinstance(e, CampaignDeclared)]
    (folder / "plan.ndjson").write_bytes(b"".join(canonical(e) + b"\n" for e in plan))
    (folder / "runs" / "all.ndjson").write_bytes(b"".join(canonical(e) + b"\n" for e in events))
    oakledger = [str(Path(sys.executable).parent / "oakledger"), "--ledger", str(folder / "oakledger.duckdb")]
    for args in (["ingest", "plan.ndjson"], ["checkpoint", "-o", "published.checkpoint"]):
        subprocess.run([*oakledger, *args], cwd=folder, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_qualified_campaign_lets_the_release_through(example, tmp_path):
    assert len(commands(example)) == 4
    campaign = variables(example)["CAMPAIGN"]
    laboratory(tmp_path, campaign, None)
    status, out = job(example, tmp_path)
    assert status == 0, out
    assert json.loads((tmp_path / "certificate.json").read_text())["decision"] == "qualified"
    if "github" in example:
        assert "::notice title=oakledger::campaign oak-against-git-2026 is qualified" in out
        assert "::error" not in out


def test_a_refused_campaign_stops_the_release_with_annotations(tmp_path):
    example = EXAMPLES[0]
    laboratory(tmp_path, variables(example)["CAMPAIGN"], "dropped_failure_workflow")
    status, out = job(example, tmp_path)
    assert status == 1, out
    errors = [line for line in out.splitlines() if line.startswith("::error")]
    assert len(errors) == 2 and "slots_missing" in errors[0] and "diagnostic" in errors[1]
    assert re.match(r"::error title=oakledger rule 1%3A [^:]+::slots_missing", errors[0])
    assert json.loads((tmp_path / "certificate.json").read_text())["decision"] == "diagnostic"


def test_a_ledger_made_anew_for_the_occasion_stops_the_release(tmp_path):
    example = EXAMPLES[1]
    laboratory(tmp_path, variables(example)["CAMPAIGN"], None)
    for path in [*tmp_path.glob("oakledger.duckdb*/*"), tmp_path / "oakledger.duckdb"]:
        path.unlink()
    status, out = job(example, tmp_path)
    assert status == 3, out
    assert not (tmp_path / "certificate.json").exists()


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_documentation_shows_the_example_as_it_is(example):
    docs = (ROOT / "docs/release-checks.md").read_text()
    shown = re.search(rf"<!-- file: {re.escape(example)} -->\n```yaml\n(.*?)```\n", docs, re.DOTALL)
    assert shown is not None and shown[1] == (ROOT / example).read_text()


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_is_yaml(example):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    data = yaml.safe_load((ROOT / example).read_text())
    if "github" in example:
        steps = data["jobs"]["qualify"]["steps"]
        found = [s["run"] for s in steps if s.get("run", "").startswith("oakledger ")]
        assert data["jobs"]["publish"]["needs"] == "qualify"
    else:
        found = data["qualify"]["script"]
        assert data["publish"]["needs"] == ["qualify"]
    assert found == commands(example)


def test_the_schema_and_the_table_of_the_certificate_name_the_same_fields():
    schema = json.loads((ROOT / "qualify/certificate.schema.json").read_text())
    docs = (ROOT / "docs/certificate.md").read_text()
    for name in (*schema["$defs"]["Certificate"]["properties"], *schema["$defs"]["Proofs"]["properties"]):
        assert re.search(rf"^\| `(proofs\.)?{name}`", docs, re.MULTILINE) or name == "proofs", name
