"""The decision: states, documents, exit statuses, and errors that are never a yes."""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import replace

import campaigns as c
import duckdb
import pytest
from click.testing import CliRunner
from msgspec.structs import replace as change

import ledger
from ledger import views
from ledger.checkpoints import keep
from ledger.cli.root import cli
from ledger.errors import LedgerDamagedError, NoSuchCampaignError
from ledger.events import OracleJudged, StudyCriteriaAttested, TrialRecorded
from qualify import decision as decisions
from qualify import document, show
from qualify.decision import decide
from qualify.describe import mcnemar_exact
from qualify.rules import RULE_COUNT, find, rules

SPEC = c.SMALL


@pytest.fixture(scope="module")
def book_file(tmp_path_factory):
    """A ledger file with an honest campaign, one that is not, and one that nobody declared."""
    path = tmp_path_factory.mktemp("ledger") / "l.duckdb"
    other = replace(SPEC, campaign="other", start_ns=c.DAY + 10**15)
    stray = replace(SPEC, campaign="stray", start_ns=c.DAY + 2 * 10**15)
    bad = c.seal(c.drop(c.honest(other), c.kind(StudyCriteriaAttested)))
    with ledger.open(path) as book:
        result = book.append([*c.honest(SPEC), *bad, *c.seal(c.honest(stray)[3:9], "stray")])
    keep(path, result.checkpoint)
    return path


@pytest.fixture
def book_copy(book_file, tmp_path):
    """A copy to write into, with its kept checkpoints."""
    import shutil

    for name in os.listdir(book_file.parent):
        source = book_file.parent / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name)
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path / "l.duckdb"


def run(path, *args):
    return CliRunner().invoke(cli, ["--ledger", str(path), "qualify", *args])


def test_rules_are_data_and_each_has_its_view():
    assert len(rules()) == RULE_COUNT == 14
    for rule in rules():
        assert rule.view == f"rule_{rule.number:02d}_{rule.id}"
        assert rule.sql and rule.sql_file.startswith(f"2{rule.number:02d}_")
        assert len(rule.why) > 100
        for name in (str(rule.number), f"{rule.number:02d}", rule.id, rule.view, rule.id.upper()):
            assert find(name) is rule
    assert find("15") is None
    named = {v.name for v in views.shipped() if v.name.startswith("rule_")}
    assert named == {r.view for r in rules()}


def test_the_document_has_the_documented_shape(in_memory):
    book = in_memory()
    book.append(c.honest(c.AGENT))
    answer = decide(book, "honest")
    doc = json.loads(json.dumps(answer.as_json()))
    assert document.validate(doc).decision == "qualified"
    assert doc["checkpoint"]["size"] == len(c.honest(c.AGENT))
    assert sum(cell["planned"] for cell in doc["cells"]) == doc["facts"]["slots"]
    assert {r["state"] for r in doc["rules"]} <= {"holds", "information"}


def test_the_schema_beside_the_package_is_current():
    assert document.SCHEMA_FILE.read_bytes() == document.schema()


def test_exit_statuses_and_words(book_copy):
    good = run(book_copy, "--campaign", "small")
    assert good.exit_code == 0, good.output
    assert "is QUALIFIED" in good.output
    for text in ("no power analysis", "sampled independently", "no permission to claim a speed-up"):
        assert text in good.output
    bad = run(book_copy, "--campaign", "other")
    assert bad.exit_code == 1
    assert "rule 13 violated" in bad.output and "not_attested" in bad.output
    assert all(rule.title[:20] in bad.output for rule in rules())
    stray = run(book_copy, "--campaign", "stray", "--json")
    assert stray.exit_code == 1
    doc = json.loads(stray.output)
    assert document.validate(doc).plan_sha256 is None
    assert [v["what"] for v in doc["rules"][0]["violations"]].count("not_declared") == 1
    nobody = CliRunner().invoke(cli, ["--ledger", str(book_copy), "qualify", "--campaign", "nobody"])
    assert isinstance(nobody.exception, NoSuchCampaignError) and nobody.exception.exit_status == 4
    assert run(book_copy).exit_code == 2
    assert run(book_copy, "--campaign", "small", "--explain", "99").exception.exit_status == 2


def test_a_decision_is_recorded_with_its_checkpoint_and_changes_nothing(book_copy):
    first = json.loads(run(book_copy, "--campaign", "small", "--json").output)
    again = json.loads(run(book_copy, "--campaign", "small", "--json").output)
    assert again["checkpoint"]["size"] == first["checkpoint"]["size"] + 1
    for key in ("facts", "rules", "cells", "plan_sha256", "set_aside"):
        assert again[key] == first[key]
    with ledger.open(book_copy, read_only=True) as book:
        payload = json.loads(
            book.con.execute("SELECT payload FROM events WHERE event_id = ?", [first["event_id"]]).fetchone()[
                0
            ]
        )
    assert payload["decision"] == "qualified"
    assert payload["checkpoint_root"] == first["checkpoint"]["root"]
    assert [r["rule"] for r in payload["rules"]] == [r.id for r in rules()]


def test_nothing_is_recorded_when_asked_not_to(book_copy):
    before = book_copy.read_bytes()
    doc = json.loads(run(book_copy, "--campaign", "small", "--json", "--no-record").output)
    assert doc["event_id"] is None
    assert run(book_copy, "--campaign", "small", "--explain", "1").exit_code == 0
    assert book_copy.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_ledger_needs_no_record(book_copy):
    book_copy.chmod(stat.S_IRUSR)
    assert run(book_copy, "--campaign", "small", "--no-record").exit_code == 0
    assert run(book_copy, "--campaign", "small").exception.exit_status == 2


def test_explain_shows_text_sql_and_every_event(book_file):
    out = run(book_file, "--campaign", "other", "--explain", "study_criteria")
    assert out.exit_code == 1
    assert "CREATE" not in out.output and "FROM campaign_criteria" in out.output
    assert "remains diagnostic" in out.output.replace("\n", " ")
    assert re.search(r"not_attested: .*\[[0-9a-f]{64}", out.output)
    doc = json.loads(run(book_file, "--campaign", "other", "--explain", "13", "--json").output)
    assert doc["number"] == 13 and doc["sql"] == find("13").sql and len(doc["violations"]) == 2


def test_github_annotations_are_one_line_each_and_escaped(book_file):
    out = run(book_file, "--campaign", "other", "--format", "github", "--no-record")
    lines = out.output.splitlines()
    assert out.exit_code == 1 and len(lines) == 3
    assert all(line.startswith("::error title=oakledger") for line in lines)
    assert show._message("50 %\n::error::x\r") == "50 %25%0A::error::x%0D"
    assert show._property("a:b,c") == "a%3Ab%2Cc"


def test_a_damaged_ledger_gives_no_answer(book_copy):
    con = duckdb.connect(str(book_copy))
    con.execute("DROP TRIGGER events_no_delete ON events")
    con.execute("DELETE FROM events WHERE kind = 'oracle_judged' AND verdict = 'fail'")
    con.close()
    out = run(book_copy, "--campaign", "small")
    assert isinstance(out.exception, LedgerDamagedError) and out.exception.exit_status == 3
    doc = run(book_copy, "--campaign", "small", "--json")
    assert doc.exit_code == 3
    assert json.loads(doc.stdout)["decision"] is None


def of_another_version(path):
    """Make the views of a file those of another version, which the file says itself."""
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE OR REPLACE VIEW cells AS SELECT 1 AS one")
        con.execute("CREATE VIEW given_up AS SELECT 2 AS two")
        con.execute("UPDATE ledger_meta SET value = repeat('0', 64) WHERE key = 'views_sha256'")
        con.execute(
            "UPDATE ledger_meta SET value = value || chr(10) || 'given_up ' || repeat('0', 64) "
            "WHERE key = 'views'"
        )


def test_views_of_another_version_are_brought_up_to_date_by_who_records(book_copy):
    of_another_version(book_copy)
    unrecorded = run(book_copy, "--campaign", "small", "--no-record")
    assert unrecorded.exception.exit_status == 3
    audited = CliRunner().invoke(cli, ["--ledger", str(book_copy), "audit"])
    assert audited.exit_code == 3 and audited.output.count("of another version of oakledger") == 2
    assert run(book_copy, "--campaign", "small").exit_code == 0
    assert CliRunner().invoke(cli, ["--ledger", str(book_copy), "audit"]).exit_code == 0


def test_a_changed_view_that_no_version_accounts_for_stays_a_finding(book_copy):
    with duckdb.connect(str(book_copy)) as con:
        con.execute("CREATE OR REPLACE VIEW cells AS SELECT 1 AS one")
    assert run(book_copy, "--campaign", "small").exception.exit_status == 3
    audited = CliRunner().invoke(cli, ["--ledger", str(book_copy), "audit"])
    assert audited.exit_code == 3 and "changed_view" in audited.output
    assert "another version" not in audited.output


def test_events_hidden_as_copies_are_found_without_the_audit(in_memory):
    book = in_memory()
    book.append(c.honest(SPEC))
    book.con.execute(
        "INSERT INTO duplicates SELECT origin, seq FROM events "
        "WHERE kind = 'oracle_judged' AND verdict = 'fail' LIMIT 1"
    )
    with pytest.raises(LedgerDamagedError, match="marked as a copy"):
        decide(book, "small")


def test_a_view_that_fails_is_an_error_and_never_a_yes(in_memory, monkeypatch):
    book = in_memory()
    book.append(c.honest(SPEC))
    broken = [
        v
        if v.name != "rule_08_failures"
        else views.View(v.name, "SELECT error('broken') AS what", v.file, "")
        for v in views.shipped()
    ]
    monkeypatch.setattr(views, "shipped", lambda: tuple(broken))
    with pytest.raises(LedgerDamagedError):
        decide(book, "small")


def test_a_lost_rule_qualifies_nothing(in_memory, monkeypatch):
    book = in_memory()
    book.append(c.honest(SPEC))
    monkeypatch.setattr(decisions, "rules", lambda: rules()[:13])
    assert not decide(book, "small").qualified


def test_unknown_campaign_names_do_no_harm(in_memory):
    book = in_memory()
    book.append(c.honest(SPEC))
    for name in ("", "x' OR '1'='1", "small\n", "x" * 10_000, "%"):
        with pytest.raises(NoSuchCampaignError):
            decide(book, name)


def test_near_misses_of_a_campaign_are_named(book_copy):
    out = run(book_copy, "--campaign", "smal")
    assert out.exception.exit_status == 4 and "did you mean small?" in str(out.exception)


def test_a_campaign_beyond_the_names_that_are_looked_through_is_known(book_copy, monkeypatch):
    monkeypatch.setattr("ledger.cli.names._LOOKED_AT", 1)
    assert run(book_copy, "--campaign", "small", "--no-record").exit_code == 0
    assert CliRunner().invoke(cli, ["--ledger", str(book_copy), "show", "small"]).exit_code == 0


def test_hostile_text_is_shown_visibly(book_copy):
    weird = change(
        c.honest(SPEC)[-1], source="weird", ordinal=0, campaign="weird", statement="\x1b[31mred", who="x"
    )
    run_weird = change(
        c.first(c.honest(SPEC), c.kind(TrialRecorded)),
        source="weird",
        ordinal=1,
        campaign="weird",
        trial="weird/1",
    )
    with ledger.open(book_copy) as book:
        result = book.append([weird, run_weird])
    keep(book_copy, result.checkpoint)
    out = run(book_copy, "--campaign", "weird", "--no-record")
    assert out.exit_code == 1 and "\x1b" not in out.output


def test_mcnemar_is_a_description():
    pytest.importorskip("scipy")
    assert mcnemar_exact(0, 0) is None
    assert mcnemar_exact(5, 0) == pytest.approx(2 * 0.5**5)
    assert mcnemar_exact(3, 3) == 1.0


def test_two_rates_and_wilson_intervals(in_memory):
    book = in_memory()
    events = c.honest(
        SPEC,
        lambda s, t, a, n: "unmeasured" if a == 0 and t.repetition < 3 and t.subject == "git" else "passed",
    )
    events = [
        change(e, reason="newer_format") if getattr(e, "reason", None) == "deadline" else e for e in events
    ]
    book.append(c.seal(c.edit(events, c.kind(OracleJudged, verdict="unmeasured"), reason="newer_format")))
    cells = {row["subject"]: row for row in decide(book, "small").tables["cells"]}
    git, oak = cells["git"], cells["oak_installed"]
    assert (git["measured"], git["passed"], git["unmeasured_by_subject"], git["replaced"]) == (31, 31, 3, 3)
    assert git["success_permille"] == 1000 and git["strict_success_permille"] == pytest.approx(
        1000 * 31 / 34, abs=0.1
    )
    assert oak["strict_success_permille"] == 1000
    # Wilson's interval for 31 of 31 at 95 %: 1 / (1 + z * z / n).
    assert git["wilson_low_permille"] == pytest.approx(1000 / (1 + 1.959963984540054**2 / 31), abs=0.1)
    assert git["wilson_high_permille"] == 1000
