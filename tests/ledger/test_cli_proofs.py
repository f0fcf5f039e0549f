"""`checkpoint`, `prove`, `verify-proof`, `keygen`: what leaves the ledger verifies without it."""

from __future__ import annotations

import json
import os
import random
import stat

import duckdb
import pytest
from click.testing import CliRunner

from ledger import checkpoints as cp
from ledger import proofs
from ledger.audit import audit_ledger
from ledger.cli.root import cli
from ledger.errors import LedgerDamagedError, OakledgerError
from ledger.events import canonical, event_id
from ledger.merge import merge
from ledger.merkle import ProofError
from ledger.store import open_ledger

pytestmark = pytest.mark.usefixtures("few_views")


class Done:
    """What a command did: an OakledgerError counts with its exit status and message, as in `main`."""

    def __init__(self, result):
        error = result.exception if isinstance(result.exception, OakledgerError) else None
        if error is None and result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.status = error.exit_status if error else result.exit_code
        self.out = result.stdout
        self.error = str(error) if error else result.stderr


def run(*args):
    return Done(CliRunner().invoke(cli, [str(a) for a in args]))


@pytest.fixture
def chain(make_ledger, tmp_path):
    """A ledger of 33 events, its path options, and the ids of its events in order."""
    path = make_ledger()
    with open_ledger(path, read_only=True) as ledger:
        ids = [r[0] for r in ledger.con.execute("SELECT event_id FROM events ORDER BY seq").fetchall()]
    return path, ids


def test_checkpoint_prints_the_kept_text(chain):
    path, _ = chain
    done = run("--ledger", path, "checkpoint")
    kept = [note for _, note in cp.kept(path)]
    assert done.status == 0 and done.out == kept[-1].text
    assert cp.parse_note(done.out.encode()).checkpoint == audit_ledger(path).heads[0]


def test_checkpoint_signed_kept_and_never_written_over(chain, tmp_path):
    path, _ = chain
    assert run("--ledger", path, "keygen", "-o", tmp_path / "k").status == 0
    key = cp.read_public_key(tmp_path / "k.pub")
    assert key.name == "origin/a"
    out = tmp_path / "release.checkpoint"
    args = ("--ledger", path, "checkpoint", "--key", tmp_path / "k", "-o", out)
    assert run(*args).status == 0
    cp.verify_signature(cp.read_note(out), key)
    before = out.read_bytes()
    done = run(*args)
    assert done.status == 2 and "exists" in done.error and out.read_bytes() == before
    assert run("--ledger", path, "audit", "--checkpoint", out, "--public-key", tmp_path / "k.pub").status == 0
    for file, _ in list(cp.kept(path)):
        os.unlink(file)
    assert run("--ledger", path, "checkpoint", "--keep", "--key", tmp_path / "k").status == 0
    assert run("--ledger", path, "audit", "--public-key", tmp_path / "k.pub").status == 0


def test_no_checkpoint_is_made_of_a_tree_that_does_not_verify(chain, tmp_path):
    path, _ = chain
    cp.keep(path, cp.Checkpoint("origin/a", 40, bytes(32)))
    done = run("--ledger", path, "checkpoint")
    assert done.status == 3 and done.out == "" and "events were lost" in done.error


def test_checkpoint_of_an_empty_ledger_and_of_an_unknown_origin(tmp_path):
    with open_ledger(tmp_path / "e.duckdb", origin="o"):
        pass
    done = run("--ledger", tmp_path / "e.duckdb", "checkpoint")
    assert done.status == 0 and done.out == "o\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    assert run("--ledger", tmp_path / "e.duckdb", "checkpoint", "--origin", "x").status == 2


def test_every_event_at_every_size_proves_and_verifies_without_the_ledger(chain, one_of_each):
    path, ids = chain
    texts = [canonical(e).decode() for i in range(3) for e in one_of_each("run", 20 * i)]
    with open_ledger(path, read_only=True) as ledger:
        for size in range(1, 34):
            for index in random.Random(size).sample(range(size), min(size, 4)):
                proof, head = proofs.prove_inclusion(ledger, ids[index], size=size)
                verified = proofs.verify(proofs.parse(proofs.encode(proof)))
                assert verified.event_id == ids[index] and proof.event == texts[index]
                assert verified.note.checkpoint == head and head.size == size
        for first in range(34):
            older = cp.make_note(proofs.tree_head(ledger, "origin/a", first))
            for second in range(max(first, 30), 34):
                proof, head = proofs.prove_consistency(ledger, older, size=second)
                verified = proofs.verify(proofs.parse(proofs.encode(proof)))
                assert verified.older == older and verified.note.checkpoint == head


def test_prove_and_verify_as_commands(chain, tmp_path):
    path, ids = chain
    file = tmp_path / "p"
    assert run("--ledger", path, "prove", ids[5], "-o", file).status == 0
    path.rename(tmp_path / "gone.duckdb")  # a verifier has no ledger
    done = run("verify-proof", file)
    assert done.status == 0 and f"event {ids[5]} is number 5 of origin/a size 33" in done.out
    assert "compared with nothing" in done.out
    data = json.loads(run("verify-proof", file, "--json").out)
    assert data["valid"] and data["event_id"] == ids[5] and data["index"] == 5
    assert data["checkpoint_compared"] is False and event_id_of(data["event"]) == ids[5]
    kept = [p for p, _ in cp.kept(path)]
    done = run("verify-proof", file, "--checkpoint", kept[-1])
    assert done.status == 0 and "compared with nothing" not in done.out
    assert run("verify-proof", file, "--checkpoint", kept[0]).status == 1
    (tmp_path / "other").write_bytes(cp.note_bytes(cp.make_note(cp.Checkpoint("origin/a", 33, bytes(32)))))
    done = run("verify-proof", file, "--checkpoint", tmp_path / "other")
    assert done.status == 1 and "one is false" in done.error


def event_id_of(text):
    import hashlib

    return hashlib.sha256(b"\0" + text.encode()).hexdigest()


def test_proofs_carry_the_signature_asked_for(chain, tmp_path):
    path, ids = chain
    run("keygen", "--name", "release", "-o", tmp_path / "k")
    run("keygen", "--name", "release", "-o", tmp_path / "other")
    assert run("--ledger", path, "prove", ids[5], "-o", tmp_path / "plain").status == 0
    assert (
        run("--ledger", path, "prove", ids[5], "--key", tmp_path / "k", "-o", tmp_path / "signed").status == 0
    )
    assert run("verify-proof", tmp_path / "signed", "--public-key", tmp_path / "k.pub").status == 0
    assert run("verify-proof", tmp_path / "signed", "--public-key", tmp_path / "other.pub").status == 1
    assert run("verify-proof", tmp_path / "plain", "--public-key", tmp_path / "k.pub").status == 1
    # A signed checkpoint kept beside the ledger goes into the proofs of its size.
    for file, _ in list(cp.kept(path)):
        os.unlink(file)
    run("--ledger", path, "checkpoint", "--keep", "--key", tmp_path / "k")
    done = run("--ledger", path, "prove", ids[5])
    (tmp_path / "later").write_text(done.out)
    assert run("verify-proof", tmp_path / "later", "--public-key", tmp_path / "k.pub").status == 0


def test_consistency_as_commands(chain, tmp_path):
    path, _ = chain
    first, second, third = (p for p, _ in cp.kept(path))
    assert run("--ledger", path, "prove", "--from", first, "-o", tmp_path / "c").status == 0
    done = run("verify-proof", tmp_path / "c")
    assert done.status == 0 and "first 11 events are the beginning of origin/a size 33" in done.out
    for known in (first, third):
        assert run("verify-proof", tmp_path / "c", "--checkpoint", known).status == 0
    assert run("verify-proof", tmp_path / "c", "--checkpoint", second).status == 1
    assert run("--ledger", path, "prove", "--from", second, "--size", "30", "-o", tmp_path / "d").status == 0
    assert run("verify-proof", tmp_path / "d").status == 0
    assert run("--ledger", path, "prove", "--from", second, "--size", "12").status == 2
    (tmp_path / "f").write_bytes(cp.note_bytes(cp.make_note(cp.Checkpoint("origin/a", 11, bytes(32)))))
    assert run("--ledger", path, "prove", "--from", tmp_path / "f").status == 3
    (tmp_path / "g").write_bytes(cp.note_bytes(cp.make_note(cp.Checkpoint("origin/a", 34, bytes(32)))))
    done = run("--ledger", path, "prove", "--from", tmp_path / "g")
    assert done.status == 3 and "events were lost" in done.error


def test_every_changed_byte_of_a_proof_is_refused_or_changes_nothing(chain, tmp_path):
    path, ids = chain
    key = cp.generate_key("k")
    with open_ledger(path, read_only=True) as ledger:
        proof, head = proofs.prove_inclusion(ledger, ids[3], size=20)
    data = proofs.encode(proofs.with_note(proof, cp.make_note(head, key)))
    good = proofs.parse(data)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        try:
            verified = proofs.verify(proofs.parse(changed))
            cp.verify_signature(verified.note, key.public())
        except OakledgerError as e:
            assert e.exit_status == 1 and "\n" not in str(e)
            continue
        assert verified.proof == good  # white space between the fields


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"proof":"oakledger-inclusion/2"}',
        '{"proof":"oakledger-inclusion/1","event":"x","index":-1,"path":[],"checkpoint":""}',
        '{"proof":"oakledger-inclusion/1","event":"x","index":0,"path":["zz"],"checkpoint":""}',
        '{"proof":"oakledger-inclusion/1","event":"x","index":0,"path":[],"checkpoint":""}',
        '{"proof":"oakledger-inclusion/1","event":"x","index":0,"path":[],"checkpoint":"o\\n1\\nAAAA\\n"}',
        '{"proof":"oakledger-inclusion/1","event":"x","index":0,"path":[],"checkpoint":"o\\n1\\n'
        'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\\n","more":1}',
        "[" * 100_000,
        "\x1b[2J",
    ],
)
def test_files_that_are_no_proof_have_status_1(tmp_path, text):
    (tmp_path / "p").write_text(text)
    done = run("verify-proof", tmp_path / "p")
    assert done.status == 1 and "\n" not in done.error and "\x1b" not in done.error


def test_usage(chain, tmp_path):
    path, ids = chain
    ledger = ("--ledger", path)
    for args in [
        (*ledger, "prove"),
        (*ledger, "prove", ids[0], "--from", "x"),
        (*ledger, "prove", "XYZ"),
        (*ledger, "prove", ids[0].upper()),
        (*ledger, "prove", "0" * 64),
        (*ledger, "prove", ids[5], "--size", "5"),
        (*ledger, "prove", ids[5], "--size", "34"),
        (*ledger, "prove", ids[5], "--origin", "origin/b"),
        (*ledger, "prove", "--from", tmp_path / "none"),
        ("verify-proof", tmp_path / "none"),
        ("verify-proof", tmp_path),
        ("--ledger", tmp_path / "none", "checkpoint"),
        ("--ledger", tmp_path / "none", "keygen", "-o", tmp_path / "k"),
        ("keygen", "--name", "a b", "-o", tmp_path / "k"),
        (*ledger, "checkpoint", "--key", tmp_path / "none"),
    ]:
        done = run(*args)
        assert done.status == 2, args
        assert done.out == ""
    assert not (tmp_path / "k").exists()


def test_a_changed_payload_gives_no_proof(chain):
    path, ids = chain
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM events")
        con.execute("UPDATE events SET payload = replace(payload, 'git', 'oak') WHERE seq = 3")
        con.execute("UPDATE events SET event_id = sha256('x') WHERE seq = 4")
        con.execute("DELETE FROM events WHERE seq = 30")
    with open_ledger(path, read_only=True) as ledger:
        with pytest.raises(LedgerDamagedError, match="does not hash"):
            proofs.prove_inclusion(ledger, ids[3])
        with pytest.raises(LedgerDamagedError, match="lacks events"):
            proofs.prove_inclusion(ledger, ids[2])
        with pytest.raises(LedgerDamagedError, match="another root"):
            proofs.prove_inclusion(ledger, ids[2], size=22)


def test_an_event_of_two_origins_is_proved_in_either(make_ledger, one_of_each):
    a, b = make_ledger("a.duckdb", "origin/a"), make_ledger("b.duckdb", "origin/b", batches=4)
    with open_ledger(a) as ledger:
        merge(ledger, str(b))
        wanted = event_id(one_of_each()[3])
        proof, head = proofs.prove_inclusion(ledger, wanted)
        assert head.origin == "origin/a"
        proof, head = proofs.prove_inclusion(ledger, wanted, origin="origin/b")
        assert head.origin == "origin/b" and head.size == 44
        proofs.verify(proof)
        later = event_id(one_of_each("run", 60)[0])
        assert proofs.prove_inclusion(ledger, later)[1].origin == "origin/b"
    with open_ledger(b, read_only=True) as ledger:  # the checkpoint of b is as good there
        assert proofs.prove_inclusion(ledger, wanted)[1] == head


def test_consistency_between_origins_is_refused():
    a, b = (cp.checkpoint_text(cp.Checkpoint(o, 3, bytes(32))) for o in ("a", "b"))
    with pytest.raises(ProofError, match="origin"):
        proofs.verify(proofs.ConsistencyProof(from_=a, to=b, path=[]))


def test_keygen_writes_a_private_key_that_only_the_owner_reads(tmp_path):
    done = run("keygen", "--name", "example.org/k", "-o", tmp_path / "k")
    assert done.status == 0
    assert stat.S_IMODE(os.stat(tmp_path / "k").st_mode) == 0o600
    private, public = (tmp_path / "k").read_text(), (tmp_path / "k.pub").read_text()
    assert cp.parse_private_key(private).public() == cp.parse_public_key(public)
    assert private.split("+")[-1].strip() not in done.out and public.strip() in done.out
    before = private, public
    done = run("keygen", "--name", "x", "-o", tmp_path / "k")
    assert done.status == 2 and "exists" in done.error
    assert ((tmp_path / "k").read_text(), (tmp_path / "k.pub").read_text()) == before
    os.unlink(tmp_path / "k")
    assert run("keygen", "--name", "x", "-o", tmp_path / "k").status == 2
    assert not (tmp_path / "k").exists() and (tmp_path / "k.pub").read_text() == public
