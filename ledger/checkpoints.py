"""Checkpoints: a tree head as text that can be kept elsewhere, and signed.

The text is that of the C2SP specification tlog-checkpoint, three lines and a final newline:

    oakledger/87538ea79b3196ab
    1000000
    0v/3c0GsLos7zyND0YlvUistewpsHxMMX4oZkddRmFU=

origin, number of leaves in decimal, root in standard base64. A signed checkpoint is that text as a C2SP
signed-note: an empty line follows and one line a signature, `— <key name> <base64 of key id and signature>`.
The key id is the first four bytes of SHA-256(name || 0x0A || 0x01 || public key), 0x01 standing for Ed25519;
a public key is written `<name>+<key id in hex>+<base64 of 0x01 || public key>`.

A ledger cannot tell by itself that its newest events were lost. So every append keeps its checkpoint in a
folder beside the ledger, and copies of those files belong somewhere else, for example into a release.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from ledger.errors import EXIT_NEGATIVE, LedgerDamagedError, OakledgerError
from ledger.store import Checkpoint

#: Largest checkpoint file that is read, in bytes.
MAX_NOTE_BYTES = 64 << 10

#: Largest tree: leaf indices are 63-bit numbers in the ledger.
MAX_SIZE = 2**63 - 1

_ED25519 = b"\x01"
_SIGNATURE = re.compile(r"— (\S+) (\S+)")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


class CheckpointError(OakledgerError):
    """A text that is no checkpoint, or a key that is no key."""


class SignatureError(OakledgerError):
    """A checkpoint that is not signed by the key it should be signed by."""

    exit_status = EXIT_NEGATIVE


@dataclass(frozen=True)
class Signature:
    """One signature line: the name of the key, its four-byte id, and the signature itself."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True)
class Note:
    """A checkpoint as read: the tree head, the exact text that signatures cover, and the signatures."""

    checkpoint: Checkpoint
    text: str
    signatures: tuple[Signature, ...] = ()


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """Return the three lines of a checkpoint. Raises CheckpointError when the origin cannot be written so."""
    _check_origin(checkpoint.origin)
    root = base64.b64encode(checkpoint.root).decode()
    return f"{checkpoint.origin}\n{checkpoint.size}\n{root}\n"


def _check_origin(origin: str) -> None:
    if not origin or not origin.isprintable() or len(origin) > 500:
        raise CheckpointError(f"origin {origin[:80]!r} cannot be the first line of a checkpoint")


def parse_note(data: bytes, where: str = "the checkpoint") -> Note:
    """Read a checkpoint, signed or not. Raises CheckpointError saying what is wrong, with `where` it was.

    Extension lines after the root are allowed, are covered by signatures and mean nothing here.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise CheckpointError(f"{where} has {len(data)} bytes: a checkpoint has at most {MAX_NOTE_BYTES}")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError:
        raise CheckpointError(f"{where} is not UTF-8: it is no checkpoint") from None
    # The signed text may hold empty lines itself: the last one parts it from the signatures.
    text, parted, tail = whole.rpartition("\n\n")
    if parted:
        text += "\n"
    else:
        text, tail = whole, "\n"
    if not text.endswith("\n") or not tail.endswith("\n"):
        raise CheckpointError(f"{where} does not end with a newline: it was cut short")
    lines = text[:-1].split("\n")
    if len(lines) < 3:
        raise CheckpointError(f"{where} has {len(lines)} lines: a checkpoint has origin, size and root")
    if any(not line.isprintable() or not line for line in lines):
        raise CheckpointError(f"{where} has an empty line or control characters: it is no checkpoint")
    origin, size, root = lines[:3]
    _check_origin(origin)
    if not _SIZE.fullmatch(size) or int(size) > MAX_SIZE:
        raise CheckpointError(f"{where} has {size[:40]!r} as its size: a plain decimal number was expected")
    signatures = tuple(_signature(line, where) for line in tail[:-1].split("\n") if parted)
    return Note(Checkpoint(origin, int(size), _root(root, where)), text, signatures)


def _root(text: str, where: str) -> bytes:
    root = _unbase64(text)
    if root is None or len(root) != 32:
        raise CheckpointError(f"{where} has {text[:80]!r} as its root: base64 of 32 bytes was expected")
    return root


def _unbase64(text: str) -> bytes | None:
    """Decode standard base64 in its only canonical spelling; None for anything else."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _signature(line: str, where: str) -> Signature:
    match = _SIGNATURE.fullmatch(line)
    raw = _unbase64(match[2]) if match else None
    if match is None or raw is None or len(raw) < 5:
        raise CheckpointError(f"{where} has a malformed signature line {line[:80]!r}")
    return Signature(match[1], raw[:4], raw[4:])


def note_bytes(note: Note) -> bytes:
    """Return a note as it is written to a file."""
    lines = [note.text]
    if note.signatures:
        lines.append("\n")
    for s in note.signatures:
        lines.append(f"— {s.name} {base64.b64encode(s.key_id + s.signature).decode()}\n")
    return "".join(lines).encode()


def read_note(path: str) -> Note:
    """Read a checkpoint file. Raises CheckpointError naming the file and what is wrong with it."""
    return parse_note(read_small_file(path), path)


def read_small_file(path: str, limit: int = MAX_NOTE_BYTES) -> bytes:
    """Read a file of at most `limit` bytes; raises CheckpointError when it is larger or cannot be read."""
    try:
        # A named pipe would wait for ever for a writer; O_NONBLOCK changes nothing for regular files.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
            data = f.read(limit + 1) or b""
    except OSError as e:
        raise CheckpointError(f"{path} cannot be read ({e.strerror}): check the path") from e
    if len(data) > limit:
        raise CheckpointError(f"{path} is larger than {limit} bytes: it is not what was asked for")
    return data


# Keys


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key with its name, as a signed-note verifier knows it."""

    name: str
    raw: bytes

    @property
    def key_id(self) -> bytes:
        """The four bytes that signature lines name the key by."""
        return _key_id(self.name, self.raw)

    def encode(self) -> str:
        """Return the signed-note verifier key, `<name>+<id>+<base64>`."""
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(_ED25519 + self.raw).decode()}"


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """An Ed25519 private key (32-byte seed) with its name. It has no readable representation on purpose."""

    name: str
    seed: bytes

    def public(self) -> PublicKey:
        """Return the public half."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        key = Ed25519PrivateKey.from_private_bytes(self.seed).public_key()
        return PublicKey(self.name, key.public_bytes(Encoding.Raw, PublicFormat.Raw))

    def encode(self) -> str:
        """Return the signed-note signer key, `PRIVATE+KEY+<name>+<id>+<base64>`."""
        secret = base64.b64encode(_ED25519 + self.seed).decode()
        return f"PRIVATE+KEY+{self.name}+{self.public().key_id.hex()}+{secret}"

    def sign(self, text: str) -> Signature:
        """Sign the text of a note."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        signature = Ed25519PrivateKey.from_private_bytes(self.seed).sign(text.encode())
        return Signature(self.name, self.public().key_id, signature)


def _key_id(name: str, raw: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + raw).digest()[:4]


def check_key_name(name: str) -> None:
    """Raise CheckpointError unless a name may stand in a signature line (C2SP signed-note)."""
    if not name or "+" in name or not name.isprintable() or any(c.isspace() for c in name) or len(name) > 200:
        raise CheckpointError(
            f"key name {name[:80]!r}: at least one character and neither spaces nor plus signs, please"
        )


def generate_key(name: str) -> PrivateKey:
    """Make a new private key. Raises CheckpointError for a name that cannot be written."""
    check_key_name(name)
    return PrivateKey(name, secrets.token_bytes(32))


def parse_public_key(text: str, where: str = "the public key") -> PublicKey:
    """Read a signed-note verifier key. Raises CheckpointError; never repeats what it read."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    raw = _unbase64(encoded)
    if name == "PRIVATE":
        raise CheckpointError(
            f"{where} holds a private key: give the public one, and keep this one to yourself"
        )
    if raw is None or len(raw) != 33 or raw[:1] != _ED25519:
        raise CheckpointError(f"{where} is no Ed25519 public key: a line <name>+<id>+<base64> was expected")
    check_key_name(name)
    if _key_id(name, raw[1:]).hex() != key_id:
        raise CheckpointError(
            f"{where} has a key id that does not belong to its name and key: it was altered"
        )
    return PublicKey(name, raw[1:])


def parse_private_key(text: str, where: str = "the key") -> PrivateKey:
    """Read a signer key. Raises CheckpointError; never repeats what it read."""
    parts = text.strip().split("+", 4)
    raw = _unbase64(parts[4]) if len(parts) == 5 else None
    if parts[:2] != ["PRIVATE", "KEY"] or raw is None or len(raw) != 33 or raw[:1] != _ED25519:
        raise CheckpointError(f"{where} is no Ed25519 private key: make one with oakledger keygen")
    check_key_name(parts[2])
    key = PrivateKey(parts[2], raw[1:])
    if key.public().key_id.hex() != parts[3]:
        raise CheckpointError(
            f"{where} has a key id that does not belong to its name and key: it was altered"
        )
    return key


def read_public_key(path: str) -> PublicKey:
    """Read a public key file. Raises CheckpointError."""
    return parse_public_key(read_small_file(path).decode("utf-8", "replace"), path)


def read_private_key(path: str) -> PrivateKey:
    """Read a private key file. Raises CheckpointError."""
    return parse_private_key(read_small_file(path).decode("utf-8", "replace"), path)


def make_note(checkpoint: Checkpoint, key: PrivateKey | None = None) -> Note:
    """Make the note of a checkpoint, signed when a key is given."""
    text = checkpoint_text(checkpoint)
    return Note(checkpoint, text, (key.sign(text),) if key else ())


def verify_signature(note: Note, key: PublicKey, where: str = "the checkpoint") -> None:
    """Verify that a note is signed by a key. Raises SignatureError.

    Signatures of other keys are passed over, as signed-note asks; one in the name and id of this key must be
    right, every time it occurs.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    ours = [s for s in note.signatures if s.name == key.name and s.key_id == key.key_id]
    if not ours:
        raise SignatureError(
            f"{where} has no signature of {key.name}+{key.key_id.hex()}: ask for a signed one"
        )
    verifier = Ed25519PublicKey.from_public_bytes(key.raw)
    for s in ours:
        try:
            verifier.verify(s.signature, note.text.encode())
        except InvalidSignature:
            raise SignatureError(
                f"{where} has a signature of {key.name} that does not fit its text: it was altered"
            ) from None


# Kept checkpoints


def folder(ledger_path: str | os.PathLike[str]) -> str:
    """Return the folder of a ledger's kept checkpoints: the ledger's real path and `.checkpoints`."""
    return os.path.realpath(os.fspath(ledger_path)) + ".checkpoints"


def file_name(checkpoint: Checkpoint) -> str:
    """Return the name a checkpoint is kept under: the origin in safe characters and the size in 19 digits.

    Names of one origin sort by size, so the newest is the last one.
    """
    return f"{_origin_part(checkpoint.origin)}@{checkpoint.size:019d}.checkpoint"


def _origin_part(origin: str) -> str:
    quoted = quote(origin, safe="").replace("%2F", "_")
    # Short names, no hidden ones, and none that two origins share because / and _ look alike.
    if len(quoted) > 150 or "_" in origin or origin.startswith((".", "/")):
        quoted = f"_{quoted[:100]}_{hashlib.sha256(origin.encode()).hexdigest()[:16]}"
    return quoted


def keep(ledger_path: str | os.PathLike[str], checkpoint: Checkpoint) -> str | None:
    """Write a checkpoint beside its ledger and return the path; None for an empty tree.

    Keeping the same checkpoint again changes nothing. Raises LedgerDamagedError when one of the same origin
    and size but another root is kept already, and OakledgerError when it cannot be written.
    """
    return keep_note(ledger_path, make_note(checkpoint)) if checkpoint.size else None


def keep_note(ledger_path: str | os.PathLike[str], note: Note) -> str:
    """Write a note beside its ledger, durably and never over another one. Returns and raises as `keep`."""
    where = folder(ledger_path)
    path = os.path.join(where, file_name(note.checkpoint))
    if _is_kept(path, note):
        return path
    draft = os.path.join(where, f".{secrets.token_hex(8)}.draft")
    try:
        os.makedirs(where, exist_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with open(fd, "wb") as f:
                f.write(note_bytes(note))
                f.flush()
                os.fsync(f.fileno())
            # A link, unlike a rename, never replaces what is there.
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            os.unlink(draft)
        directory = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as e:
        raise OakledgerError(
            f"the checkpoint of {note.checkpoint.size} events could not be kept in {where} ({e.strerror}): "
            "the events are in the ledger; make room there, then run oakledger checkpoint --keep"
        ) from e
    if not _is_kept(path, note):  # pragma: no cover - somebody removed it in this moment
        raise OakledgerError(f"{path} vanished while it was written: run oakledger checkpoint --keep")
    return path


def _is_kept(path: str, note: Note) -> bool:
    if not os.path.lexists(path):
        return False
    there = read_note(path)
    if there.checkpoint != note.checkpoint:
        raise LedgerDamagedError(
            f"{path} is a checkpoint with root {there.checkpoint.root.hex()} and the ledger now has "
            f"{note.checkpoint.root.hex()} at that size: history was rewritten, run oakledger audit"
        )
    return True


def kept(ledger_path: str | os.PathLike[str]) -> Iterator[tuple[str, Note | CheckpointError]]:
    """Yield the kept checkpoints of a ledger, by name: the path, and the note or why it cannot be read."""
    where = folder(ledger_path)
    try:
        names = sorted(n for n in os.listdir(where) if n.endswith(".checkpoint") and not n.startswith("."))
    except FileNotFoundError:
        return
    except OSError as e:
        yield where, CheckpointError(f"{where} cannot be read ({e.strerror}): check its permissions")
        return
    for name in names:
        path = os.path.join(where, name)
        try:
            yield path, read_note(path)
        except CheckpointError as e:
            yield path, e


def newest(notes: Iterable[Note]) -> dict[str, Note]:
    """Return the largest checkpoint of each origin."""
    found: dict[str, Note] = {}
    for note in notes:
        known = found.get(note.checkpoint.origin)
        if known is None or note.checkpoint.size > known.checkpoint.size:
            found[note.checkpoint.origin] = note
    return found
