"""Certificates: what they show with and without the ledger, and that no altered one is taken."""

from __future__ import annotations

import copy
import json
import os
import shutil

import batch
import mutations as m
import pytest
from click.testing import CliRunner

from ledger import checkpoints as notes
from ledger.checkpoints import keep
from ledger.cli.root import cli
from ledger.errors import OakledgerError
from ledger.merge import merge
from ledger.store import open_ledger
from qualify import certificate as certificates


def run(*args):
    """Exit status, and what was said on standard output or in the one line of an error."""
    result = CliRunner().invoke(cli, [str(a) for a in args])
    if isinstance(result.exception, OakledgerError):
        return result.exception.exit_status, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout + result.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A ledger with an honest and a dishonest campaign, certificates of both, and a key pair."""
    folder = tmp_path_factory.mktemp("certificates")
    path = folder / "ledger.duckdb"
    campaigns = [m.honest_campaign(m.SCRIPTED, "good", 0), m.story(m.ACTS["forgotten_trial"], 1)]
    with open_ledger(path, origin="lab/1") as ledger:
        ledger.append(e for events in campaigns for e in events)
        keep(path, ledger.checkpoint())
    assert run("--ledger", path, "keygen", "--name", "lab", "-o", folder / "key")[0] == 0
    good = ("--campaign", "good", "--certificate", folder / "good.json", "--key", folder / "key")
    assert run("--ledger", path, "qualify", *good)[0] == 0
    bad = ("--campaign", "forgotten_trial", "--certificate", folder / "bad.json")
    assert run("--ledger", path, "qualify", *bad)[0] == 1
    return folder


def check(folder, name="good.json", *args, ledger=None):
    return run("--ledger", ledger or folder / "ledger.duckdb", "verify-certificate", folder / name, *args)


def test_a_certificate_is_valid_with_the_ledger_and_without(made):
    status, out = check(made)
    assert status == 0 and "good was decided as qualified" in out and "compared with nothing" not in out
    status, out = check(made, "good.json", "--proofs-only", ledger="/nowhere")
    assert status == 0 and "compared with nothing" in out
    status, out = check(made, "good.json", "--proofs-only", "--public-key", made / "key.pub")
    assert status == 0 and "compared with nothing" not in out
    status, out = check(made, "good.json", "--again")
    assert status == 0 and "the same answer" in out


def test_the_json_answer(made):
    status, out = check(made, "good.json", "--proofs-only", "--json")
    data = json.loads(out)
    assert status == 0 and data["valid"] is True and data["decision"] == "qualified"
    assert data["ledger_compared"] is data["checkpoint_compared"] is data["evaluated_again"] is False
    assert data["decided_on"]["origin"] == "lab/1" and data["checkpoint"]["size"] > data["decided_on"]["size"]


def test_a_diagnostic_certificate_says_so(made):
    data = json.loads((made / "bad.json").read_text())
    assert (data["decision"], data["exit_status"]) == ("diagnostic", 1)
    assert [r["rule"] for r in data["rules"] if r["state"] == "violated"] == ["planned_slots"]
    status, out = check(made, "bad.json", "--again")
    assert status == 0 and "decided as diagnostic" in out and "violated: planned_slots" in out
    status, out = check(made, "bad.json", "--require", "qualified")
    assert status == 1 and "qualified was required" in out
    assert check(made, "good.json", "--require", "qualified")[0] == 0


def test_the_decision_in_it_is_the_recorded_one(made):
    data = json.loads((made / "good.json").read_text())
    event = json.loads(data["proofs"]["decision"]["event"])
    for name in ("campaign", "decision", "exit_status", "plan_sha256", "views_sha256", "package_version"):
        assert data[name] == event[name]
    assert json.loads(data["proofs"]["declaration"]["event"])["kind"] == "campaign_declared/1"
    with open_ledger(made / "ledger.duckdb", read_only=True) as ledger:
        row = ledger.con.execute(
            "SELECT payload FROM events WHERE event_id = ?", [data["event_id"]]
        ).fetchone()
    assert row == (data["proofs"]["decision"]["event"],)


def _paths(value, path=()):
    """The way to every scalar of a JSON document."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _paths(part, (*path, key))
    elif isinstance(value, list):
        for n, part in enumerate(value):
            yield from _paths(part, (*path, n))
    else:
        yield path


def _altered(value):
    if isinstance(value, bool) or value is None:
        return "x"
    if isinstance(value, int):
        return value + 1
    swaps = {
        "qualified": "diagnostic",
        "holds": "violated",
        "information": "holds",
        "not_applicable": "holds",
    }
    if value in swaps:
        return swaps[value]
    if not value:
        return "x"
    middle = len(value) // 2
    return value[:middle] + ("0" if value[middle] != "0" else "1") + value[middle + 1 :]


def test_no_part_of_it_can_be_changed(made):
    """Every scalar of the document is changed once; only the prose of `limits` is nobody's evidence."""
    good = json.loads((made / "good.json").read_text())
    paths = [p for p in _paths(good) if p[0] != "limits"]
    assert len(paths) > 60
    for path in paths:
        data = copy.deepcopy(good)
        at = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = _altered(at[path[-1]])
        with pytest.raises(certificates.CertificateError):
            certificates.verify(certificates.parse(json.dumps(data).encode()))


def test_no_part_of_it_can_be_left_out(made):
    good = json.loads((made / "good.json").read_text())
    for key in good:
        data = {k: v for k, v in good.items() if k != key}
        with pytest.raises(certificates.CertificateError):
            certificates.verify(certificates.parse(json.dumps(data).encode()))
    for key in good["proofs"]:
        data = {**good, "proofs": {**good["proofs"], key: None}}
        with pytest.raises(certificates.CertificateError):
            certificates.verify(certificates.parse(json.dumps(data).encode()))
    for n in range(len(good["rules"])):
        data = {**good, "rules": good["rules"][:n] + good["rules"][n + 1 :]}
        with pytest.raises(certificates.CertificateError):
            certificates.verify(certificates.parse(json.dumps(data).encode()))


def test_parts_of_two_certificates_do_not_make_a_third(made):
    """A refused campaign cannot borrow the proofs, the plan or the decision of another."""
    good = json.loads((made / "good.json").read_text())
    bad = json.loads((made / "bad.json").read_text())
    for key in good["proofs"]:
        data = {**bad, "proofs": {**bad["proofs"], key: good["proofs"][key]}}
        with pytest.raises(certificates.CertificateError):
            certificates.verify(certificates.parse(json.dumps(data).encode()))
    with pytest.raises(certificates.CertificateError):
        certificates.verify(certificates.parse(json.dumps({**bad, "proofs": good["proofs"]}).encode()))


def test_a_self_made_ledger_does_not_pass_for_the_laboratorys(made, tmp_path):
    """Whoever makes up a whole ledger makes valid proofs in it; key, checkpoint and ledger tell."""
    forged = tmp_path / "forged.duckdb"
    with open_ledger(forged, origin="lab/1") as ledger:
        ledger.append(m.honest_campaign(m.SCRIPTED, "good", 3, m.always))
        keep(forged, ledger.checkpoint())
    own = tmp_path / "own.json"
    assert run("--ledger", forged, "qualify", "--campaign", "good", "--certificate", own)[0] == 0
    assert run("verify-certificate", own, "--proofs-only")[0] == 0  # and says: compared with nothing
    status, out = run("verify-certificate", own, "--proofs-only", "--public-key", made / "key.pub")
    assert status == 1 and "no signature of lab" in out
    status, out = run("--ledger", made / "ledger.duckdb", "verify-certificate", own)
    assert status == 1 and "another root" in out
    kept = sorted(p for p, _ in notes.kept(made / "ledger.duckdb"))
    status, out = run("verify-certificate", own, "--proofs-only", "--checkpoint", kept[0])
    assert status == 1 and "lab/1" in out


def test_a_checkpoint_kept_elsewhere_is_enough(made):
    with open_ledger(made / "ledger.duckdb", read_only=True) as ledger:
        sizes = [r[0] for r in ledger.con.execute("SELECT size FROM checkpoints ORDER BY size").fetchall()]
    decided_on = [p for p, n in notes.kept(made / "ledger.duckdb") if n.checkpoint.size == sizes[0]]
    status, out = check(made, "good.json", "--proofs-only", "--checkpoint", decided_on[0])
    assert status == 0 and "compared with nothing" not in out
    other = [p for p, n in notes.kept(made / "ledger.duckdb") if n.checkpoint.size == sizes[-1]]
    status, out = check(made, "good.json", "--proofs-only", "--checkpoint", other[0])
    assert status == 1 and "consistency proof" in out


def test_a_recorded_lie_is_found_by_evaluating_again(made, tmp_path):
    """Somebody records a decision by hand: the proofs hold, and the rules say otherwise."""
    path = tmp_path / "lie.duckdb"
    with open_ledger(path, origin="lab/2") as ledger:
        ledger.append(m.story(m.ACTS["forgotten_trial"], 1))
        from qualify.decision import decide

        honest = decide(ledger, "forgotten_trial").event()
    lie = {**honest, "decision": "qualified", "exit_status": 0}
    lie["rules"] = [{**r, "state": "holds", "violations": 0} for r in lie["rules"]]
    from ledger.cli.context import Context

    _, ids = Context(ledger_path=str(path)).record([lie])
    with open_ledger(path, read_only=True) as ledger:
        made_up = certificates.make(ledger, ids[0])
    file = tmp_path / "lie.json"
    file.write_bytes(certificates.encode(made_up))
    assert run("--ledger", path, "verify-certificate", file)[0] == 0
    status, out = run("--ledger", path, "verify-certificate", file, "--again")
    assert status == 1 and "it is diagnostic" in out and "planned_slots" in out


def test_events_after_the_decision_change_no_answer(made, tmp_path):
    """A later event, here one that would refuse the campaign, plays no part in what was decided before."""
    path = tmp_path / "later.duckdb"
    shutil.copy(made / "ledger.duckdb", path)
    with open_ledger(path) as ledger:
        run_ = next(
            e for e in m.honest_campaign(m.SCRIPTED, "good", 0) if type(e).__name__ == "TrialRecorded"
        )
        late = m.invalidated(m.Story(m.respec(m.SCRIPTED, campaign="good"), [run_]), run_)
        ledger.append([m.replace(late, source="later")])
    assert run("--ledger", path, "qualify", "--campaign", "good")[0] == 1
    status, out = run("--ledger", path, "verify-certificate", made / "good.json", "--again")
    assert status == 0 and "the same answer" in out
    assert "decided on 1 time(s) more after this, last as diagnostic" in out


def test_a_declaration_of_another_origin_and_copies(tmp_path):
    """The campaign came by merging, part of it twice: the certificate rests on two trees."""
    events = m.honest_campaign(m.SCRIPTED, "merged", 0)
    with open_ledger(tmp_path / "machine.duckdb", origin="a-machine") as ledger:
        ledger.append(events)
    path = tmp_path / "lab.duckdb"
    with open_ledger(path, origin="lab") as ledger:
        ledger.append(events[200:])
        merge(ledger, str(tmp_path / "machine.duckdb"))
        assert ledger.con.execute("SELECT count(*) FROM duplicates").fetchone()[0] > 0
    file = tmp_path / "c.json"
    assert run("--ledger", path, "qualify", "--campaign", "merged", "--certificate", file)[0] == 0
    data = json.loads(file.read_text())
    assert [h["origin"] for h in data["other_checkpoints"]] == ["a-machine"]
    assert data["proofs"]["declaration"]["checkpoint"].startswith("a-machine\n")
    status, out = run("--ledger", path, "verify-certificate", file, "--again")
    assert status == 0, out
    assert run("verify-certificate", file, "--proofs-only")[0] == 0


def test_a_campaign_without_a_plan_gets_one_that_says_so(tmp_path):
    path = tmp_path / "l.duckdb"
    with batch.loaded(path, [m.story(m.ACTS["undeclared_campaign"], 0)]):
        pass
    file = tmp_path / "c.json"
    args = ("--campaign", "undeclared_campaign", "--certificate", file)
    assert run("--ledger", path, "qualify", *args)[0] == 1
    data = json.loads(file.read_text())
    assert data["plan_sha256"] is data["declaration_event_id"] is data["proofs"]["declaration"] is None
    assert run("--ledger", path, "verify-certificate", file, "--again")[0] == 0


def test_a_ledger_that_does_not_verify_gives_no_answer(made, tmp_path):
    path = tmp_path / "damaged.duckdb"
    shutil.copy(made / "ledger.duckdb", path)
    # A kept checkpoint that knows more events than there are: the tail was lost.
    with open_ledger(path, read_only=True) as ledger:
        head = ledger.checkpoint()
    keep(path, notes.Checkpoint(head.origin, head.size + 5, bytes(32)))
    assert run("--ledger", path, "verify-certificate", made / "good.json")[0] == 3
    new = tmp_path / "none.json"
    assert run("--ledger", path, "qualify", "--campaign", "good", "--certificate", new)[0] == 3
    assert not new.exists()


def test_usage(made, tmp_path):
    assert check(made, "good.json", "--again", "--proofs-only")[0] == 2
    assert check(made, "good.json", ledger=tmp_path / "none.duckdb")[0] == 2
    assert check(made, "missing.json")[0] == 2
    (tmp_path / "x.json").write_text("{}")
    status, out = run("verify-certificate", tmp_path / "x.json", "--proofs-only")
    assert status == 1 and "no certificate" in out
    (tmp_path / "deep.json").write_text("[" * 100_000)
    assert run("verify-certificate", tmp_path / "deep.json", "--proofs-only")[0] == 1
    (tmp_path / "big.json").write_bytes(b" " * (certificates.MAX_CERTIFICATE_BYTES + 1))
    assert run("verify-certificate", tmp_path / "big.json", "--proofs-only")[0] == 2
    os.mkfifo(tmp_path / "pipe")
    assert run("verify-certificate", tmp_path / "pipe", "--proofs-only")[0] in (1, 2)
    ledger = ("--ledger", made / "ledger.duckdb")
    before = (made / "good.json").read_bytes()
    status, out = run(*ledger, "qualify", "--campaign", "good", "--certificate", made / "good.json")
    assert status == 2 and "exists" in out and (made / "good.json").read_bytes() == before
    for extra in (("--no-record",), ("--explain", "1")):
        new = ("--certificate", tmp_path / "new.json", *extra)
        assert run(*ledger, "qualify", "--campaign", "good", *new)[0] == 2
    assert run(*ledger, "qualify", "--campaign", "good", "--key", made / "key")[0] == 2
    assert not (tmp_path / "new.json").exists()


def test_the_schema_in_the_package_is_the_one_of_the_code():
    from importlib.resources import files

    shipped = json.loads((files("qualify") / "certificate.schema.json").read_text())
    assert shipped == certificates.schema()
