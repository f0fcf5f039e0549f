"""Fixtures for the ledger's tests: events of every kind, and ledgers made of them."""

from __future__ import annotations

import hashlib
import shutil

import pytest

from ledger import audit_catalog, views
from ledger import events as ev
from ledger.checkpoints import folder, keep
from ledger.fields import PathBytes
from ledger.store import open_ledger

NOW = 1_750_000_000_000_000_000


def sha(text):
    return hashlib.sha256(str(text).encode()).hexdigest()


def _one_of_each(source, first, campaign):
    """Events of every kind with every typed column filled somewhere, ordinals from `first` on."""
    facts = {"cpu": "some cpu", "kernel": "6.1"}
    condition = ev.Condition(
        agent="codex",
        model="m-1",
        track="agent-default",
        environment_id=ev.canonical_sha256(facts),
        limits={"timeout_ns": 600},
    )
    plan = ev.Plan(
        lane="workflow",
        subjects=(ev.SubjectPlan(subject="git"), ev.SubjectPlan(subject="oak_installed")),
        scenarios=(
            ev.ScenarioPlan(
                scenario="wide_config_refactor", scenario_version=2, oracle_version=1, fixture_version=1
            ),
        ),
        conditions=(condition,),
        trials_per_cell=30,
    )
    n = iter(range(first, first + 100))

    def common():
        ordinal = next(n)
        return {"source": source, "ordinal": ordinal, "recorded_at_ns": NOW + ordinal}

    trial = f"{campaign}/{source}/t{first}"
    yield ev.CampaignDeclared(**common(), campaign=campaign, preregistered=True, plan=plan)
    yield ev.EnvironmentObserved(
        **common(), environment_id=ev.canonical_sha256(facts), facts=facts, campaign=campaign
    )
    yield ev.SubjectIdentified(**common(), subject="git", binary_sha256=sha("git"), dirty=False)
    yield ev.TrialRecorded(
        **common(),
        campaign=campaign,
        lane="workflow",
        scenario="wide_config_refactor",
        scenario_version=2,
        subject="git",
        trial=trial,
        condition=condition,
        status="completed",
        repetition=first,
        operation="commit",
        started_at_ns=NOW + 5,
        metrics={"wall_ns": 123_456, "written_bytes": None},
    )
    reader = ev.ReaderInvoked(
        **common(),
        vcs="git",
        reader="git-pure",
        reader_version="1",
        code_sha256=sha("code"),
        backend="pure",
        outcome="failed",
        exit_status=1,
        relation="independent",
        bounds=ev.ReaderBounds(max_blob_bytes=1 << 20),
        reason="oversize_blob",
        campaign=campaign,
        trial=trial,
        subject="git",
        oversize_paths=("a/größe.bin", PathBytes(path_b64="gA==")),
        oversize_count=2,
    )
    yield reader
    yield ev.OracleJudged(
        **common(),
        scenario="wide_config_refactor",
        scenario_version=2,
        oracle_version=1,
        fixture_version=1,
        contract_sha256=sha("contract"),
        verdict="fail",
        reason="missing_path",
        campaign=campaign,
        trial=trial,
        subject="git",
        reader_event_id=ev.event_id(reader),
        checks=(ev.Check(check="paths", result="fail", reason="missing_path", excerpt='say "hi"\n\\ ✓'),),
    )
    yield ev.TrialInvalidated(**common(), campaign=campaign, trial=trial, who="me", why="broken machine")
    yield ev.TrialReplaced(
        **common(), campaign=campaign, trial=trial, replacement=f"{trial}b", who="me", why="lost"
    )
    yield ev.ConflictRuleRecorded(
        **common(), campaign=campaign, conflict="pass_with_timeout", decision="fail", who="me", why="late"
    )
    yield ev.StudyCriteriaAttested(
        **common(),
        campaign=campaign,
        criteria=(ev.Criterion(criterion="blinding", text_sha256=sha("text")),),
        who="me",
        statement="they hold",
    )
    yield ev.QualificationDecided(
        **common(),
        campaign=campaign,
        decision="diagnostic",
        exit_status=1,
        plan_sha256=None,
        checkpoint_origin="o",
        checkpoint_size=1,
        checkpoint_root=sha("root"),
        views_sha256=sha("views"),
        package_version="0.1.0",
        rules=(ev.RuleResult(rule="sample_size", state="violated", violations=3),),
    )


@pytest.fixture(scope="session")
def one_of_each():
    """`one_of_each(source="run", first=0, campaign="c")`: a list with one event of every kind."""

    def make(source="run", first=0, campaign="c"):
        events = list(_one_of_each(source, first, campaign))
        assert {type(e) for e in events} == set(ev.AnyEvent.__args__)
        return events

    return make


@pytest.fixture(scope="session")
def _made(tmp_path_factory, one_of_each):
    """Ledgers made so far, by what was asked for: most tests ask for the same ones and change a copy."""
    made_in = tmp_path_factory.mktemp("made")
    made = {}

    def get(origin, batches, source):
        key = origin, batches, source, len(views.shipped())
        if key not in made:
            path = made[key] = made_in / f"{len(made)}.duckdb"
            with open_ledger(path, origin=origin) as ledger:
                for i in range(batches):
                    keep(path, ledger.append(one_of_each(source, 20 * i)).checkpoint)
        return made[key]

    return get


@pytest.fixture
def make_ledger(tmp_path, _made):
    """`make_ledger(name, origin, batches)`: a closed ledger with its kept checkpoints, and its path."""

    def make(name="l.duckdb", origin="origin/a", batches=3, source="run"):
        path = tmp_path / name
        original = _made(origin, batches, source)
        shutil.copyfile(original, path)
        shutil.copytree(folder(original), folder(path))
        return path

    return make


@pytest.fixture(scope="module")
def few_views():
    """Let ledgers have the first three views only: the others are long and take time to store and compare."""
    first = views.shipped()[:3]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(views, "shipped", lambda: first)
        _forget_views()
        yield
    _forget_views()


def _forget_views():
    audit_catalog._composed.cache_clear()
    audit_catalog._shipped.cache_clear()
