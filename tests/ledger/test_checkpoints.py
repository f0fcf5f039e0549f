"""Checkpoint text, signed notes, keys, and the folder of kept checkpoints."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import checkpoints as cp
from ledger.checkpoints import Checkpoint, CheckpointError, SignatureError
from ledger.errors import LedgerDamagedError, OakledgerError

ROOT = bytes(range(32))
HEAD = Checkpoint("oakledger/0123456789abcdef", 42, ROOT)
TEXT = "oakledger/0123456789abcdef\n42\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"


def test_text_is_the_three_lines_of_the_specification():
    assert cp.checkpoint_text(HEAD) == TEXT
    note = cp.parse_note(TEXT.encode())
    assert note.checkpoint == HEAD and note.signatures == () and cp.note_bytes(note) == TEXT.encode()


@given(
    st.text(min_size=1, max_size=60).filter(str.isprintable),
    st.integers(0, cp.MAX_SIZE),
    st.binary(min_size=32, max_size=32),
)
def test_every_checkpoint_reads_back(origin, size, root):
    head = Checkpoint(origin, size, root)
    assert cp.parse_note(cp.note_bytes(cp.make_note(head))).checkpoint == head


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut short"),
        (b"o\n", "2 lines|1 lines"),
        (TEXT.encode()[:-1], "cut short"),
        (b"\n42\n" + base64.b64encode(ROOT) + b"\n", "empty line"),
        (b"o\n042\n" + base64.b64encode(ROOT) + b"\n", "size"),
        (b"o\n-1\n" + base64.b64encode(ROOT) + b"\n", "size"),
        (b"o\n9223372036854775808\n" + base64.b64encode(ROOT) + b"\n", "size"),
        ("o\n٤٢\n".encode() + base64.b64encode(ROOT) + b"\n", "size"),
        (b"o\n42\n" + base64.b64encode(ROOT[:-1]) + b"\n", "root"),
        (b"o\n42\n" + base64.b64encode(ROOT).rstrip(b"=") + b"\n", "root"),
        # The same 32 bytes with unused bits set: not the one canonical spelling.
        (b"o\n42\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=\n", "root"),
        (b"o\n42\n" + b"A" * 300 + b"\n", "root"),
        (b"o\x1b[2J\n42\n" + base64.b64encode(ROOT) + b"\n", "control"),
        (b"o\xff\n42\n" + base64.b64encode(ROOT) + b"\n", "UTF-8"),
        (TEXT.encode() + b"\n", "cut short|signature"),
        (TEXT.encode() + b"\nno signature line\n", "signature line"),
        (TEXT.encode() + "\n— key AAAA\n".encode(), "signature line"),
        (TEXT.encode() + "\n— key AAAAAAAA".encode(), "cut short"),
        (b"x" * (cp.MAX_NOTE_BYTES + 1), "at most"),
    ],
)
def test_what_is_no_checkpoint_says_why(data, why):
    with pytest.raises(CheckpointError, match=why) as e:
        cp.parse_note(data, "f.checkpoint")
    assert "f.checkpoint" in str(e.value) or "first line" in str(e.value)
    assert "\n" not in str(e.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    try:
        note = cp.parse_note(data)
    except CheckpointError:
        return
    assert cp.note_bytes(note) == data


def test_signed_note_verifies_and_every_changed_byte_is_noticed():
    key = cp.generate_key("release.example/key")
    data = cp.note_bytes(cp.make_note(HEAD, key))
    cp.verify_signature(cp.parse_note(data), key.public())
    for i in range(len(data)):
        for bit in (1, 0x20):
            changed = data[:i] + bytes([data[i] ^ bit]) + data[i + 1 :]
            try:
                note = cp.parse_note(changed)
            except CheckpointError:
                continue
            with pytest.raises(SignatureError):
                cp.verify_signature(note, key.public())


def test_a_note_by_another_implementation_verifies():
    """The worked example of the Go note package: same key encoding, key id and signature form."""
    vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    message = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
        "\n"
        "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6K"
        "E6RyyBwJnAM=\n"
    )
    key = cp.parse_public_key(vkey)
    assert key.encode() == vkey and key.key_id.hex() == "c74f20a3"
    text, _, signature = message.rpartition("\n\n")
    _, name, encoded = signature.split()
    raw = base64.b64decode(encoded)
    note = cp.Note(HEAD, text + "\n", (cp.Signature(name, raw[:4], raw[4:]),))
    cp.verify_signature(note, key)


def test_signatures_of_strangers_are_passed_over_and_a_missing_one_is_an_error():
    ours, theirs = cp.generate_key("ours"), cp.generate_key("theirs")
    note = cp.make_note(HEAD, theirs)
    both = cp.Note(note.checkpoint, note.text, (*note.signatures, ours.sign(note.text)))
    cp.verify_signature(both, ours.public())
    with pytest.raises(SignatureError, match="no signature of ours"):
        cp.verify_signature(note, ours.public())
    with pytest.raises(SignatureError):
        cp.verify_signature(cp.make_note(HEAD), ours.public())
    # The same name with another key has another id: it is a stranger too.
    with pytest.raises(SignatureError):
        cp.verify_signature(note, cp.generate_key("theirs").public())


def test_keys_read_back_and_never_show_themselves():
    key = cp.generate_key("k")
    assert cp.parse_private_key(key.encode() + "\n") == key
    assert cp.parse_public_key(key.public().encode() + "\n") == key.public()
    secret = base64.b64encode(b"\x01" + key.seed).decode()
    assert secret not in repr(key) and key.seed.hex() not in repr(key) and repr(key.seed) not in repr(key)
    for text in [
        "",
        "x",
        key.encode()[:-4],
        key.encode().replace("+k+", "+l+"),
        "PRIVATE+KEY+k+00000000+" + secret,
    ]:
        with pytest.raises(CheckpointError) as e:
            cp.parse_private_key(text)
        assert secret not in str(e.value)
    with pytest.raises(CheckpointError, match="private key"):
        cp.parse_public_key(key.encode())
    for text in ["", "k+00000000+AAAA", key.public().encode().replace("k+", "l+")]:
        with pytest.raises(CheckpointError):
            cp.parse_public_key(text)
    for name in ["", "a b", "a+b", "a\nb", "a\u2003b", "x" * 300]:
        with pytest.raises(CheckpointError, match="key name"):
            cp.generate_key(name)


def test_keep_writes_once_and_never_over_another_root(tmp_path):
    ledger = tmp_path / "l.duckdb"
    path = cp.keep(ledger, HEAD)
    assert os.path.dirname(path) == f"{ledger}.checkpoints"
    assert Path(path).read_text() == TEXT
    before = os.stat(path)
    assert cp.keep(ledger, HEAD) == path
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns
    with pytest.raises(LedgerDamagedError, match="history was rewritten"):
        cp.keep(ledger, Checkpoint(HEAD.origin, HEAD.size, bytes(32)))
    assert Path(path).read_text() == TEXT
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert cp.keep(ledger, Checkpoint(HEAD.origin, 0, ROOT)) is None


def test_a_signed_note_of_the_same_head_is_left_alone(tmp_path):
    ledger = tmp_path / "l.duckdb"
    path = cp.keep_note(ledger, cp.make_note(HEAD, cp.generate_key("k")))
    signed = Path(path).read_text()
    assert cp.keep(ledger, HEAD) == path and Path(path).read_text() == signed


def test_newest_kept_checkpoint_is_the_last_name_of_its_origin(tmp_path):
    ledger = tmp_path / "l.duckdb"
    for size in [9, 10, 100, 1, 10**12]:
        cp.keep(ledger, Checkpoint("a", size, ROOT))
    cp.keep(ledger, Checkpoint("b/c", 5, ROOT))
    found = [(note.checkpoint.origin, note.checkpoint.size) for _, note in cp.kept(ledger)]
    assert found == [("a", 1), ("a", 9), ("a", 10), ("a", 100), ("a", 10**12), ("b/c", 5)]
    best = cp.newest(note for _, note in cp.kept(ledger))
    assert {o: n.checkpoint.size for o, n in best.items()} == {"a": 10**12, "b/c": 5}
    assert list(cp.kept(tmp_path / "none.duckdb")) == []


@given(
    st.lists(st.text(min_size=1, max_size=300).filter(str.isprintable), min_size=2, max_size=2, unique=True)
)
def test_file_names_are_safe_and_two_origins_never_share_one(pair):
    names = [cp.file_name(Checkpoint(o, 7, ROOT)) for o in pair]
    assert names[0] != names[1]
    for name in names:
        assert name.isascii() and "/" not in name and not name.startswith(".") and len(name) < 256


@pytest.mark.parametrize(
    "pair", [("a/b", "a_b"), ("/.x", ".x"), ("_a", "/a"), ("x" * 200, "x" * 201), ("a%2Fb", "a/b")]
)
def test_file_names_of_lookalike_origins_differ(pair):
    a, b = (cp.file_name(Checkpoint(o, 7, ROOT)) for o in pair)
    assert a != b


def test_unreadable_kept_files_are_reported_not_skipped(tmp_path):
    ledger = tmp_path / "l.duckdb"
    good = cp.keep(ledger, HEAD)
    bad = os.path.join(cp.folder(ledger), "x@0.checkpoint")
    Path(bad).write_text("nonsense\n")
    os.mkfifo(os.path.join(cp.folder(ledger), "y@0.checkpoint"))
    os.symlink(good, os.path.join(cp.folder(ledger), "z@0.checkpoint"))
    Path(cp.folder(ledger), ".half.draft").write_text("x")
    got = {os.path.basename(p): type(n).__name__ for p, n in cp.kept(ledger)}
    assert got == {
        os.path.basename(good): "Note",
        "x@0.checkpoint": "CheckpointError",
        "y@0.checkpoint": "CheckpointError",
        "z@0.checkpoint": "Note",
    }


def test_no_room_to_keep_says_that_the_events_are_safe(tmp_path):
    (tmp_path / "l.duckdb.checkpoints").write_text("a file in the way")
    with pytest.raises(OakledgerError, match="events are in the ledger"):
        cp.keep(tmp_path / "l.duckdb", HEAD)


def test_a_ledger_reached_by_a_link_has_one_folder(tmp_path):
    (tmp_path / "l.duckdb").write_text("")
    (tmp_path / "link.duckdb").symlink_to("l.duckdb")
    assert cp.folder(tmp_path / "link.duckdb") == cp.folder(tmp_path / "l.duckdb")
