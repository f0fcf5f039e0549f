# ruff: noqa: E501 - tables of hostile bytes read better one a line
"""Hostile and odd Git repositories, and what every Git reader must make of each.

A case builds one repository, with git plumbing or by writing bytes, and names the outcomes that are right for
it. Where several are listed, the contract leaves room; no reader may ever report content that is not the
committed one. Families follow the ways a subject can lie: each family must be closed, not each example.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Content = dict[bytes, tuple[str, bytes]]
"""Committed paths with mode and bytes (for a link its target)."""

OK = (0, None)

TRUTH: Content = {
    b"README.md": ("100644", b"true readme\n"),
    b"bin/run.sh": ("100755", b"#!/bin/sh\necho run\n"),
    b"docs/a b.txt": ("100644", b"a space in the name\n"),
    b"empty": ("100644", b""),
    b"link": ("120000", b"README.md"),
    b"src/deep/er/file.txt": ("100644", b"deep\n" * 50),
}
FORGED = b"FORGED readme\n"
SECRET = b"SECRET from outside\n"

IDENT = b"T <t@example.invalid> 1700000000 +0000"


# --- bytes -----------------------------------------------------------------------------------------------------


def object_id(kind: bytes, body: bytes, algorithm: str = "sha1") -> str:
    """Name of an object: hash over header and body."""
    return hashlib.new(algorithm, kind + b" %d\0" % len(body) + body).hexdigest()


def tree_body(entries: Iterable[tuple[bytes, bytes, str]]) -> bytes:
    """Tree bytes for (mode, name, id), in exactly the given order."""
    return b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)


def commit_body(tree: str, parents: Sequence[str] = (), message: bytes = b"m\n", extra: bytes = b"") -> bytes:
    """Commit bytes with fixed people and time."""
    lines = [b"tree " + tree.encode()] + [b"parent " + p.encode() for p in parents]
    return b"\n".join([*lines, b"author " + IDENT, b"committer " + IDENT]) + b"\n" + extra + b"\n" + message


PACK_TYPES = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}


@dataclass
class PackObject:
    """One entry of a pack under construction.

    `kind` is a pack type number; `base` is the raw id (type 7) or the distance in bytes (type 6); `size` and
    `stream` lie when they are given.
    """

    oid: str
    kind: int
    body: bytes
    base: bytes | int | None = None
    size: int | None = None
    stream: bytes | None = None


def _entry_header(kind: int, size: int) -> bytes:
    first = (kind << 4) | (size & 15)
    size >>= 4
    out = bytearray()
    while size:
        out.append(first | 0x80)
        first = size & 0x7F
        size >>= 7
    out.append(first)
    return bytes(out)


def _offset(distance: int) -> bytes:
    out = [distance & 0x7F]
    distance >>= 7
    while distance:
        distance -= 1
        out.append(0x80 | (distance & 0x7F))
        distance >>= 7
    return bytes(reversed(out))


def varint(value: int) -> bytes:
    """A size as delta headers write it (little-endian base 128)."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delta(base_size: int, result_size: int, *instructions: bytes) -> bytes:
    """Delta bytes; the sizes may lie."""
    return varint(base_size) + varint(result_size) + b"".join(instructions)


def copy_op(offset: int, size: int) -> bytes:
    """Delta instruction that copies `size` bytes (below 2**24) from `offset` of the base."""
    return b"\xff" + struct.pack("<I", offset) + struct.pack("<I", size)[:3]


def build_pack(
    objects: Sequence[PackObject],
    *,
    version: int = 2,
    count: int | None = None,
    algorithm: str = "sha1",
    offsets: Mapping[str, int] | None = None,
) -> tuple[bytes, bytes]:
    """Bytes of a pack and of its index (version 2); `offsets` overrides what the index says."""
    pack = bytearray(b"PACK" + struct.pack(">II", version, len(objects) if count is None else count))
    rows: list[tuple[bytes, int, int]] = []
    for item in objects:
        start = len(pack)
        raw = _entry_header(item.kind, len(item.body) if item.size is None else item.size)
        if item.kind == 6:
            assert isinstance(item.base, int)
            raw += _offset(item.base)
        elif item.kind == 7:
            assert isinstance(item.base, bytes)
            raw += item.base
        raw += zlib.compress(item.body, 1) if item.stream is None else item.stream
        pack += raw
        told = start if offsets is None else offsets.get(item.oid, start)
        rows.append((bytes.fromhex(item.oid), zlib.crc32(raw), told))
    pack += hashlib.new(algorithm, pack).digest()
    return bytes(pack), build_index(rows, bytes(pack[-hashlib.new(algorithm).digest_size :]), algorithm)


def build_index(rows: Sequence[tuple[bytes, int, int]], pack_sum: bytes, algorithm: str = "sha1") -> bytes:
    """Pack index version 2 over (id, crc, offset)."""
    ordered = sorted(rows)
    fan = [0] * 256
    for oid, _, _ in ordered:
        fan[oid[0]] += 1
    total = 0
    table = []
    for value in fan:
        total += value
        table.append(total)
    large: list[int] = []
    small = []
    for _, _, offset in ordered:
        if offset >= 1 << 31:
            small.append(0x80000000 | len(large))
            large.append(offset)
        else:
            small.append(offset)
    out = b"\xfftOc" + struct.pack(">I", 2) + struct.pack(">256I", *table)
    out += b"".join(row[0] for row in ordered)
    out += b"".join(struct.pack(">I", row[1]) for row in ordered)
    out += b"".join(struct.pack(">I", value) for value in small)
    out += b"".join(struct.pack(">Q", value) for value in large)
    out += pack_sum
    return out + hashlib.new(algorithm, out).digest()


def zero_bomb(header: bytes, mebibytes: int) -> bytes:
    """A zlib stream of `header` followed by that many MiB of zeros, made without producing the zeros."""
    packer = zlib.compressobj(9)
    head = packer.compress(header) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"\0" * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    tail = b"\x01\x00\x00\xff\xff"
    low = (1 + sum(header)) % 65521
    high = 0
    running = 1
    for byte in header:
        running = (running + byte) % 65521
        high = (high + running) % 65521
    high = (high + low * (mebibytes << 20)) % 65521
    return head + block * mebibytes + tail + struct.pack(">I", (high << 16) | low)


# --- a repository under construction ---------------------------------------------------------------------------


def git_environment(home: Path) -> dict[str, str]:
    """What git needs to build a fixture, and nothing of the machine's own configuration."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "T"), ("EMAIL", "t@example.invalid"), ("DATE", "1700000000 +0000"))},
    }  # fmt: skip


@dataclass
class Repo:
    """One repository being built, with a place outside it and a canary that planted programs touch."""

    root: Path
    work: Path
    outside: Path
    canary: Path
    algorithm: str = "sha1"
    content: Content = field(default_factory=lambda: dict(TRUTH))
    environment: dict[str, str] = field(default_factory=dict)
    report: dict[str, object] = field(default_factory=dict)
    """Further report fields that must hold exactly when the read succeeds."""

    @property
    def dir(self) -> Path:
        return self.work / ".git"

    @property
    def objects(self) -> Path:
        return self.dir / "objects"

    def git(self, *arguments: str, data: bytes | None = None, cwd: Path | None = None) -> bytes:
        done = subprocess.run(
            ["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", *arguments],
            cwd=cwd or self.work,
            env=git_environment(self.root),
            input=data if data is not None else b"",
            capture_output=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout

    def rev(self, spec: str) -> str:
        return self.git("rev-parse", "--verify", spec).decode().strip()

    def program(self, name: str = "planted") -> Path:
        """An executable that leaves the canary behind."""
        path = self.outside / name
        path.write_text(f"#!/bin/sh\necho ran >>'{self.canary}'\nexit 0\n")
        path.chmod(0o755)
        return path

    def loose_path(self, oid: str) -> Path:
        return self.objects / oid[:2] / oid[2:]

    def write_loose(self, oid: str, stream: bytes) -> Path:
        path = self.loose_path(oid)
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(stream)
        return path

    def add(self, kind: bytes, body: bytes) -> str:
        """Write a loose object under its true name, however malformed its body."""
        oid = object_id(kind, body, self.algorithm)
        if not self.loose_path(oid).exists():
            self.write_loose(oid, zlib.compress(kind + b" %d\0" % len(body) + body))
        return oid

    def add_raw(self, whole: bytes) -> str:
        """Write header and body as they are under the hash of exactly these bytes."""
        oid = hashlib.new(self.algorithm, whole).hexdigest()
        self.write_loose(oid, zlib.compress(whole))
        return oid

    def tree(self, *entries: tuple[bytes, bytes, str]) -> str:
        return self.add(b"tree", tree_body(entries))

    def commit(self, tree: str, *parents: str, message: bytes = b"m\n", extra: bytes = b"") -> str:
        return self.add(b"commit", commit_body(tree, parents, message, extra))

    def set_head(self, commit: str) -> None:
        """Let main name that commit."""
        (self.dir / "refs/heads/main").write_text(commit + "\n")

    def commit_entries(self, *entries: tuple[bytes, bytes, str]) -> str:
        """Commit exactly these root entries and make it HEAD."""
        oid = self.commit(self.tree(*entries))
        self.set_head(oid)
        return oid

    def single(self, blob: str, name: bytes = b"f", mode: bytes = b"100644") -> None:
        self.commit_entries((mode, name, blob))

    def config(self, text: str) -> None:
        with (self.dir / "config").open("a") as out:
            out.write(text)

    def pack(
        self,
        objects: Sequence[PackObject],
        *,
        name: str = "pack-" + "ab" * 20,
        version: int = 2,
        count: int | None = None,
        offsets: Mapping[str, int] | None = None,
    ) -> Path:
        """Write a pack of our own making; returns its path without the suffix."""
        pack, index = build_pack(
            objects, version=version, count=count, algorithm=self.algorithm, offsets=offsets
        )
        stem = self.objects / "pack" / name
        stem.with_suffix(".pack").write_bytes(pack)
        stem.with_suffix(".idx").write_bytes(index)
        return stem

    def repack(self) -> Path:
        """Let git pack everything; returns the pack's path without the suffix."""
        self.git("repack", "-adq")
        self.git("prune-packed", "-q")
        found = sorted((self.objects / "pack").glob("*.pack"))
        for path in (self.objects / "pack").iterdir():
            path.chmod(0o644)
        return found[0].with_suffix("")

    def blob(self, data: bytes) -> str:
        return self.add(b"blob", data)


def make_base(root: Path, algorithm: str = "sha1") -> Repo:
    """Two commits with real git: TRUTH at HEAD, an older README before; a forged commit lies loose beside it."""
    work = root / "repo"
    work.mkdir(parents=True)
    outside = root / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    repo = Repo(root, work, outside, root / "canary", algorithm)
    repo.git("init", "-q", f"--object-format={algorithm}", "--template=", ".")
    repo.git("symbolic-ref", "HEAD", "refs/heads/main")
    (work / "README.md").write_bytes(b"old readme\n")
    repo.git("add", "README.md")
    repo.git("commit", "-q", "-m", "first")
    for path, (mode, data) in TRUTH.items():
        target = work / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            target.symlink_to(os.fsdecode(data))
        else:
            target.write_bytes(data)
            target.chmod(0o755 if mode == "100755" else 0o644)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "second")
    forged = repo.commit(repo.tree((b"100644", b"README.md", repo.blob(FORGED))))
    assert repo.rev(forged) == forged
    for folder, _, names in os.walk(repo.objects):
        for name in names:
            Path(folder, name).chmod(0o644)
    return repo


def copy_base(base: Repo, root: Path) -> Repo:
    """A private copy of a base repository for one case."""
    shutil.copytree(base.root, root, symlinks=True, dirs_exist_ok=True)
    return Repo(root, root / "repo", root / "outside", root / "canary", base.algorithm)


def forged_commit(repo: Repo) -> str:
    blob = object_id(b"blob", FORGED, repo.algorithm)
    tree = object_id(b"tree", tree_body([(b"100644", b"README.md", blob)]), repo.algorithm)
    return object_id(b"commit", commit_body(tree), repo.algorithm)


# --- cases -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A repository and what a reader must say about it."""

    name: str
    family: str
    build: Callable[[Repo], None]
    allowed: tuple[tuple[int, str | None], ...] = (OK,)
    arguments: tuple[str, ...] = ()
    algorithm: str = "sha1"
    deadline: str = "20"
    destination: bool = False


CASES: list[Case] = []

BLOB_BAD = ((3, "blob_mismatch"), (3, "size_mismatch"))
TREE_BAD = ((3, "tree_mismatch"), (3, "size_mismatch"))
COMMIT_BAD = ((3, "commit_mismatch"), (3, "size_mismatch"))
UNUSABLE = ((77, "unrecognised_format"), (77, "unsupported_format"))
ANY_BAD = (*BLOB_BAD, (3, "tree_mismatch"), (3, "commit_mismatch"), (3, "store_damaged"))
IRREGULAR = ((1, "ref_not_regular"), (1, "store_not_regular"), (1, "store_linked"))
ABSENT = ((77, "content_absent"),)
MALFORMED = ((1, "malformed_head"),)


def case(
    family: str,
    name: str,
    *allowed: tuple[int, str | None],
    arguments: Sequence[str] = (),
    algorithm: str = "sha1",
    deadline: str = "20",
    destination: bool = False,
) -> Callable[[Callable[[Repo], None]], Callable[[Repo], None]]:
    """Register a case; without outcomes the true content must be read."""

    def register(build: Callable[[Repo], None]) -> Callable[[Repo], None]:
        CASES.append(
            Case(
                name,
                family,
                build,
                tuple(allowed) or (OK,),
                tuple(arguments),
                algorithm,
                deadline,
                destination,
            )
        )
        return build

    return register


def each(
    family: str,
    prefix: str,
    variants: Mapping[str, object],
    *allowed: tuple[int, str | None],
    arguments: Sequence[str] = (),
    algorithm: str = "sha1",
    destination: bool = False,
) -> Callable[[Callable[[Repo, object], None]], None]:
    """Register one case for each variant."""

    def register(build: Callable[[Repo, object], None]) -> None:
        for key, value in variants.items():

            def one(repo: Repo, value: object = value) -> None:
                build(repo, value)

            case(
                family,
                f"{prefix}-{key}",
                *allowed,
                arguments=arguments,
                algorithm=algorithm,
                destination=destination,
            )(one)

    return register


# substituted history -------------------------------------------------------------------------------------------

HISTORY = "substituted history"


def _replace(repo: Repo, old: str, new: str) -> None:
    folder = repo.dir / "refs/replace"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / old).write_text(new + "\n")


@case(HISTORY, "replace-commit")
def _(repo: Repo) -> None:
    _replace(repo, repo.rev("HEAD"), forged_commit(repo))


@case(HISTORY, "replace-tree")
def _(repo: Repo) -> None:
    _replace(repo, repo.rev("HEAD^{tree}"), repo.rev(forged_commit(repo) + "^{tree}"))


@case(HISTORY, "replace-blob")
def _(repo: Repo) -> None:
    _replace(repo, repo.rev("HEAD:README.md"), object_id(b"blob", FORGED))


@case(HISTORY, "replace-self")
def _(repo: Repo) -> None:
    for oid in [repo.rev(spec) for spec in ("HEAD", "HEAD^{tree}", "HEAD:README.md")]:
        _replace(repo, oid, oid)


@case(HISTORY, "replace-circle")
def _(repo: Repo) -> None:
    head, forged = repo.rev("HEAD"), forged_commit(repo)
    _replace(repo, head, forged)
    _replace(repo, forged, head)


@case(HISTORY, "replace-packed")
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    _replace(repo, head, forged_commit(repo))
    repo.git("pack-refs", "--all")
    assert not (repo.dir / "refs/replace" / head).exists()


@case(HISTORY, "replace-ref-base-in-environment")
def _(repo: Repo) -> None:
    folder = repo.dir / "refs/heads/evil"
    folder.mkdir(parents=True)
    (folder / repo.rev("HEAD")).write_text(forged_commit(repo) + "\n")
    repo.environment["GIT_REPLACE_REF_BASE"] = "refs/heads/evil/"


@case(HISTORY, "replace-config-true")
def _(repo: Repo) -> None:
    repo.config("[core]\n\tuseReplaceRefs = true\n")
    _replace(repo, repo.rev("HEAD"), forged_commit(repo))


@case(HISTORY, "grafts-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    (repo.dir / "info").mkdir(exist_ok=True)
    (repo.dir / "info/grafts").write_text(f"{repo.rev('HEAD')} {forged_commit(repo)}\n")
    repo.report["ancestors"] = 1


@case(HISTORY, "grafts-to-nothing-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    (repo.dir / "info").mkdir(exist_ok=True)
    (repo.dir / "info/grafts").write_text(f"{repo.rev('HEAD')} {'12' * 20}\n")
    repo.report["ancestors"] = 1


@case(HISTORY, "graft-file-in-environment", arguments=["--deep"])
def _(repo: Repo) -> None:
    path = repo.outside / "grafts"
    path.write_text(f"{repo.rev('HEAD')} {forged_commit(repo)}\n")
    repo.environment["GIT_GRAFT_FILE"] = str(path)
    repo.report["ancestors"] = 1


@case(HISTORY, "shallow-lie-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    (repo.dir / "shallow").write_text(repo.rev("HEAD") + "\n")
    repo.report.update(ancestors=1, shallow_boundary=[])


@case(HISTORY, "shallow-true-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    parent = repo.rev("HEAD^")
    repo.loose_path(parent).unlink()
    (repo.dir / "shallow").write_text(repo.rev("HEAD") + "\n")
    repo.report.update(ancestors=0, shallow_boundary=[parent])


@case(HISTORY, "history-lost-without-shallow-file-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    parent = repo.rev("HEAD^")
    repo.loose_path(parent).unlink()
    repo.report.update(ancestors=0, shallow_boundary=[parent])


@case(HISTORY, "history-forged-deep", *COMMIT_BAD, arguments=["--deep"])
def _(repo: Repo) -> None:
    body = commit_body(repo.rev("HEAD^{tree}"), message=b"another past\n")
    repo.write_loose(repo.rev("HEAD^"), zlib.compress(b"commit %d\0" % len(body) + body))


@case(HISTORY, "parent-is-a-blob-deep", *COMMIT_BAD, arguments=["--deep"])
def _(repo: Repo) -> None:
    repo.set_head(repo.commit(repo.rev("HEAD^{tree}"), repo.rev("HEAD:README.md")))


# objects from elsewhere ----------------------------------------------------------------------------------------

ELSEWHERE = "objects from elsewhere"


def _move_out(repo: Repo) -> Path:
    """Move the whole object store outside; an empty one stays."""
    target = repo.outside / "objects"
    shutil.move(repo.objects, target)
    (repo.objects / "pack").mkdir(parents=True)
    (repo.objects / "info").mkdir()
    return target


@case(ELSEWHERE, "alternates-outside", (77, "alternates"))
def _(repo: Repo) -> None:
    target = _move_out(repo)
    (repo.objects / "info/alternates").write_text(f"{target}\n")


@case(ELSEWHERE, "alternates-outside-for-one-blob", (77, "alternates"))
def _(repo: Repo) -> None:
    shutil.copytree(repo.objects, repo.outside / "objects")
    repo.loose_path(repo.rev("HEAD:README.md")).unlink()
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.objects / "info/alternates").write_text(f"{repo.outside / 'objects'}\n")


@case(ELSEWHERE, "alternates-itself", (77, "alternates"))
def _(repo: Repo) -> None:
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.objects / "info/alternates").write_text("../objects\n.\n")


@case(ELSEWHERE, "alternates-not-needed", (77, "alternates"))
def _(repo: Repo) -> None:
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.objects / "info/alternates").write_text(f"{repo.outside}\n")


@case(ELSEWHERE, "alternates-link", (77, "alternates"), *IRREGULAR)
def _(repo: Repo) -> None:
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.outside / "alternates").write_text(f"{repo.outside}\n")
    (repo.objects / "info/alternates").symlink_to(repo.outside / "alternates")


@case(ELSEWHERE, "alternates-dangling-link", (77, "alternates"), *IRREGULAR)
def _(repo: Repo) -> None:
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.objects / "info/alternates").symlink_to(repo.outside / "nothing")


@case(ELSEWHERE, "alternates-fifo", (77, "alternates"), *IRREGULAR)
def _(repo: Repo) -> None:
    (repo.objects / "info").mkdir(exist_ok=True)
    os.mkfifo(repo.objects / "info/alternates")


@case(ELSEWHERE, "alternates-in-linked-info", (77, "alternates"), *IRREGULAR)
def _(repo: Repo) -> None:
    target = _move_out(repo)
    (repo.outside / "info").mkdir()
    (repo.outside / "info/alternates").write_text(f"{target}\n")
    (repo.objects / "info").rmdir()
    (repo.objects / "info").symlink_to(repo.outside / "info")


@case(ELSEWHERE, "alternates-in-environment", *ABSENT)
def _(repo: Repo) -> None:
    shutil.copytree(repo.objects, repo.outside / "objects")
    repo.loose_path(repo.rev("HEAD:README.md")).unlink()
    repo.environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(repo.outside / "objects")


@case(ELSEWHERE, "object-directory-in-environment", (1, "head_commit_missing"))
def _(repo: Repo) -> None:
    repo.environment["GIT_OBJECT_DIRECTORY"] = str(_move_out(repo))


@case(ELSEWHERE, "http-alternates", OK, (77, "alternates"))
def _(repo: Repo) -> None:
    (repo.objects / "info").mkdir(exist_ok=True)
    (repo.objects / "info/http-alternates").write_text("/elsewhere\n")


@case(ELSEWHERE, "commondir", (1, "store_redirected"))
def _(repo: Repo) -> None:
    shutil.move(repo.dir, repo.outside / "real")
    repo.dir.mkdir()
    (repo.dir / "HEAD").write_text("ref: refs/heads/main\n")
    (repo.dir / "commondir").write_text(f"{repo.outside / 'real'}\n")


@case(ELSEWHERE, "commondir-itself", (1, "store_redirected"))
def _(repo: Repo) -> None:
    (repo.dir / "commondir").write_text(".\n")


@case(ELSEWHERE, "commondir-fifo", (1, "store_redirected"), *IRREGULAR)
def _(repo: Repo) -> None:
    os.mkfifo(repo.dir / "commondir")


@case(ELSEWHERE, "gitfile", (1, "store_redirected"))
def _(repo: Repo) -> None:
    shutil.move(repo.dir, repo.outside / "real")
    repo.dir.write_text(f"gitdir: {repo.outside / 'real'}\n")


@case(ELSEWHERE, "gitfile-garbage", (1, "store_redirected"), (1, "store_not_regular"))
def _(repo: Repo) -> None:
    shutil.move(repo.dir, repo.outside / "real")
    repo.dir.write_bytes(b"\0\xff nothing\n")


@case(ELSEWHERE, "gitfile-circle", (1, "store_redirected"))
def _(repo: Repo) -> None:
    shutil.rmtree(repo.dir)
    repo.dir.write_text("gitdir: .git\n")


@case(ELSEWHERE, "linked-worktree", (1, "store_redirected"))
def _(repo: Repo) -> None:
    real = repo.root / "real"
    shutil.move(repo.work, real)
    repo.git("worktree", "add", "-q", "--detach", str(repo.work), cwd=real)


@case(ELSEWHERE, "git-link", (1, "store_linked"))
def _(repo: Repo) -> None:
    shutil.move(repo.dir, repo.outside / "real")
    repo.dir.symlink_to(repo.outside / "real")


@case(ELSEWHERE, "git-dangling-link", (1, "store_linked"))
def _(repo: Repo) -> None:
    shutil.rmtree(repo.dir)
    repo.dir.symlink_to(repo.outside / "nothing")


@case(ELSEWHERE, "git-missing", (1, "store_missing"))
def _(repo: Repo) -> None:
    shutil.rmtree(repo.dir)


@case(ELSEWHERE, "git-missing-in-a-repository-above", (1, "store_missing"))
def _(repo: Repo) -> None:
    shutil.move(repo.dir, repo.root / ".git")


@case(ELSEWHERE, "git-empty", *MALFORMED, (1, "no_committed_head"), (1, "store_missing"))
def _(repo: Repo) -> None:
    shutil.rmtree(repo.dir)
    repo.dir.mkdir()


@case(ELSEWHERE, "bare-at-the-root", (1, "store_missing"))
def _(repo: Repo) -> None:
    """What git would take for a bare repository is none here: a worktree can hold such files."""
    real = repo.root / "real"
    shutil.move(repo.dir, real)
    shutil.rmtree(repo.work)
    shutil.move(real, repo.work)


def _link(repo: Repo, relative: str) -> None:
    path = repo.dir / relative
    target = repo.outside / ("moved-" + relative.replace("/", "-"))
    shutil.move(path, target)
    path.symlink_to(target)


@each(
    ELSEWHERE,
    "link",
    {
        name.replace("/", "-"): name
        for name in ("HEAD", "objects", "refs", "refs/heads", "refs/heads/main", "config")
    },
    *IRREGULAR,
)
def _(repo: Repo, relative: object) -> None:
    _link(repo, str(relative))


@case(ELSEWHERE, "link-HEAD-legacy-symref", *IRREGULAR)
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").unlink()
    (repo.dir / "HEAD").symlink_to("refs/heads/main")


@case(ELSEWHERE, "link-packed-refs", *IRREGULAR)
def _(repo: Repo) -> None:
    repo.git("pack-refs", "--all")
    _link(repo, "packed-refs")


@case(ELSEWHERE, "link-pack-directory", *IRREGULAR)
def _(repo: Repo) -> None:
    repo.repack()
    _link(repo, "objects/pack")


@each(ELSEWHERE, "link", {"pack": ".pack", "idx": ".idx"}, *IRREGULAR)
def _(repo: Repo, suffix: object) -> None:
    stem = repo.repack()
    _link(repo, f"objects/pack/{stem.name}{suffix}")


@each(
    ELSEWHERE,
    "link-loose",
    {"commit": "HEAD", "tree": "HEAD^{tree}", "blob": "HEAD:README.md"},
    *IRREGULAR,
)
def _(repo: Repo, spec: object) -> None:
    oid = repo.rev(str(spec))
    _link(repo, f"objects/{oid[:2]}/{oid[2:]}")


@case(ELSEWHERE, "link-fan-out", *IRREGULAR)
def _(repo: Repo) -> None:
    _link(repo, f"objects/{repo.rev('HEAD:README.md')[:2]}")


@case(ELSEWHERE, "link-loose-to-secret", *IRREGULAR)
def _(repo: Repo) -> None:
    path = repo.loose_path(repo.rev("HEAD:README.md"))
    path.unlink()
    path.symlink_to(repo.outside / "secret")


@case(ELSEWHERE, "hard-linked-objects")
def _(repo: Repo) -> None:
    for number, path in enumerate(sorted(repo.objects.rglob("*"))):
        if path.is_file():
            os.link(path, repo.outside / f"name-{number}")


# lazy fetch ----------------------------------------------------------------------------------------------------

LAZY = "lazy fetch"


def _promisor(repo: Repo, url: str, more: str = "") -> None:
    repo.git("config", "core.repositoryformatversion", "1")
    repo.config(
        f'[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\turl = {url}\n\tpromisor = true\n'
        f"\tpartialclonefilter = blob:none\n{more}"
    )


def _lose_blob(repo: Repo) -> None:
    repo.loose_path(repo.rev("HEAD:README.md")).unlink()


def _lazy(repo: Repo, how: object) -> None:
    program = repo.program()
    shutil.copytree(repo.dir, repo.outside / "origin")
    if how == "uploadpack":
        _promisor(repo, f"file://{repo.outside}/origin", f"\tuploadpack = {program}\n")
    elif how == "honest-remote":
        _promisor(repo, f"file://{repo.outside}/origin")
    elif how == "ssh-command":
        _promisor(repo, "ssh://host.invalid/x", f"[core]\n\tsshCommand = {program}\n")
    elif how == "ext":
        _promisor(repo, f'"ext::{program} %S"', '[protocol "ext"]\n\tallow = always\n')
    elif how == "ssh-in-environment":
        _promisor(repo, "ssh://host.invalid/x")
        repo.environment["GIT_SSH_COMMAND"] = str(program)
        repo.environment["GIT_SSH"] = str(program)
    elif how == "remote-helper":
        helper = repo.program("git-remote-planted")
        _promisor(repo, "planted::x", '[protocol "planted"]\n\tallow = always\n')
        repo.environment["GIT_EXEC_PATH"] = str(helper.parent)
    elif how == "always-allowed":
        _promisor(
            repo,
            f"file://{repo.outside}/origin",
            f"\tuploadpack = {program}\n[protocol]\n\tallow = always\n",
        )
        repo.environment["GIT_ALLOW_PROTOCOL"] = "file:ssh:ext"
        repo.environment["GIT_NO_LAZY_FETCH"] = "0"


LAZY_WAYS = {
    key: key
    for key in (
        "uploadpack",
        "honest-remote",
        "ssh-command",
        "ext",
        "ssh-in-environment",
        "remote-helper",
        "always-allowed",
    )
}


@each(LAZY, "missing-blob", LAZY_WAYS, *ABSENT)
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    _lose_blob(repo)


@each(
    LAZY,
    "missing-blob-complete",
    {"uploadpack": "uploadpack"},
    (3, "content_absent"),
    arguments=["--complete"],
)
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    _lose_blob(repo)


@each(
    LAZY,
    "missing-blob-only-its-path",
    {"uploadpack": "uploadpack"},
    *ABSENT,
    arguments=["--path", "README.md"],
)
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    _lose_blob(repo)


@each(LAZY, "missing-blob-out-of-scope", {"uploadpack": "uploadpack"}, arguments=["--path", "empty"])
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    _lose_blob(repo)
    repo.content = {b"empty": TRUTH[b"empty"]}


@each(LAZY, "missing-tree", {"uploadpack": "uploadpack", "ssh-command": "ssh-command"}, *ABSENT)
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    repo.loose_path(repo.rev("HEAD:src")).unlink()


@each(LAZY, "missing-root-tree", {"uploadpack": "uploadpack"}, *ABSENT)
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    repo.loose_path(repo.rev("HEAD^{tree}")).unlink()


@each(LAZY, "missing-commit", {"uploadpack": "uploadpack"}, (1, "head_commit_missing"))
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)
    repo.loose_path(repo.rev("HEAD")).unlink()


@each(LAZY, "nothing-missing", {"uploadpack": "uploadpack"})
def _(repo: Repo, how: object) -> None:
    _lazy(repo, how)


@case(LAZY, "missing-blob-promisor-pack", *ABSENT)
def _(repo: Repo) -> None:
    gone = repo.rev("HEAD:README.md")
    kept = [line.split()[0].decode() for line in repo.git("rev-list", "--objects", "HEAD").splitlines()]
    names = "\n".join(oid for oid in kept if oid != gone) + "\n"
    repo.git("pack-objects", "-q", str(repo.objects / "pack/pack"), data=names.encode())
    repo.git("prune-packed", "-q")
    repo.loose_path(gone).unlink()
    for path in list((repo.objects / "pack").glob("*.pack")):
        path.with_suffix(".promisor").write_bytes(b"")
    program = repo.program()
    _promisor(repo, f"file://{repo.outside}", f"\tuploadpack = {program}\n")


@case(LAZY, "plain-missing-blob", *ABSENT)
def _(repo: Repo) -> None:
    _lose_blob(repo)


# configuration -------------------------------------------------------------------------------------------------

CONFIG = "configuration"

PROGRAM_CONFIGS = {
    "fsmonitor": "[core]\n\tfsmonitor = {p}\n",
    "hooks-path": "[core]\n\thooksPath = {d}\n",
    "filter": '[filter "x"]\n\tsmudge = {p}\n\tclean = {p}\n\tprocess = {p}\n\trequired = true\n',
    "textconv": '[diff "x"]\n\ttextconv = {p}\n\tcommand = {p}\n\tcachetextconv = true\n',
    "external-diff": "[diff]\n\texternal = {p}\n",
    "gpg": '[gpg]\n\tprogram = {p}\n[gpg "ssh"]\n\tprogram = {p}\n[log]\n\tshowSignature = true\n',
    "alias": "[alias]\n\tcat-file = !{p}\n\tls-tree = !{p}\n\trev-parse = !{p}\n",
    "pager": "[core]\n\tpager = {p}\n[pager]\n\tcat-file = {p}\n",
    "editor": "[core]\n\teditor = {p}\n\taskPass = {p}\n[sequence]\n\teditor = {p}\n",
    "credential": "[credential]\n\thelper = !{p}\n",
    "ssh": "[core]\n\tsshCommand = {p}\n\tgitProxy = {p}\n",
    "alternate-refs": "[core]\n\talternateRefsCommand = {p}\n[uploadpack]\n\tpackObjectsHook = {p}\n",
    "merge-driver": '[merge "x"]\n\tdriver = {p}\n[mergetool "x"]\n\tcmd = {p}\n',
    "trace2": "[trace2]\n\tnormalTarget = {c}\n\teventTarget = {c}\n\tperfTarget = {c}\n",
}


@each(CONFIG, "program", PROGRAM_CONFIGS)
def _(repo: Repo, text: object) -> None:
    program = repo.program()
    hooks = repo.outside / "hooks"
    hooks.mkdir()
    for name in (
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
    ):
        shutil.copy(program, hooks / name)
    shutil.copytree(hooks, repo.dir / "hooks", dirs_exist_ok=True)
    (repo.dir / "info").mkdir(exist_ok=True)
    (repo.dir / "info/attributes").write_text("* filter=x diff=x merge=x text eol=crlf ident\n")
    repo.config(str(text).format(p=program, d=hooks, c=repo.canary))


HARMLESS_CONFIGS = {
    "worktree-elsewhere": "[core]\n\tworktree = /nonexistent/elsewhere\n",
    "bare": "[core]\n\tbare = true\n",
    "safe-directory": "[safe]\n\tdirectory = /nowhere\n\tbareRepository = explicit\n",
    "include-missing": "[include]\n\tpath = /nonexistent/config\n",
    "big-file-threshold": "[core]\n\tbigFileThreshold = 1\n\tcompression = 0\n",
    "attributes-file": "[core]\n\tattributesFile = /nonexistent/attributes\n\tautocrlf = true\n",
    "index-skip-hash": "[index]\n\tskipHash = true\n\tsparse = true\n",
    "submodule": '[submodule "x"]\n\turl = ext::false\n\tupdate = !false\n\tactive = true\n',
}


@each(CONFIG, "harmless", HARMLESS_CONFIGS)
def _(repo: Repo, text: object) -> None:
    repo.config(str(text))


@case(CONFIG, "include-fifo")
def _(repo: Repo) -> None:
    os.mkfifo(repo.outside / "fifo")
    repo.config(f"[include]\n\tpath = {repo.outside / 'fifo'}\n")


@case(CONFIG, "include-itself")
def _(repo: Repo) -> None:
    repo.config("[include]\n\tpath = config\n")


@case(CONFIG, "include-changes-the-format", OK, (77, "unsupported_format"), (77, "unrecognised_format"))
def _(repo: Repo) -> None:
    (repo.outside / "more").write_text(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
    )
    repo.config(f"[include]\n\tpath = {repo.outside / 'more'}\n")


@case(CONFIG, "include-condition")
def _(repo: Repo) -> None:
    os.mkfifo(repo.outside / "fifo")
    repo.config(f'[includeIf "onbranch:main"]\n\tpath = {repo.outside / "fifo"}\n')
    repo.config(f'[includeIf "gitdir:/"]\n\tpath = {repo.outside / "fifo"}\n')


UNKNOWN_FORMAT = ((77, "unsupported_format"), (77, "unrecognised_format"), (77, "newer_format"))

BROKEN_CONFIGS = {
    "no-section": b"filemode = true\n",
    "open-section": b"[core\n\tbare = false\n",
    "garbage": b"\0\1\2\xff\xfe\n" * 20,
    "open-quote": b'[core]\n\trepositoryformatversion = "0\n',
    "bad-key": b"[core]\n\t9bad = 1\n",
    "version-is-a-word": b"[core]\n\trepositoryformatversion = zero\n",
    "version-overflows": b"[core]\n\trepositoryformatversion = 99999999999999999999\n",
    "version-negative": b"[core]\n\trepositoryformatversion = -7\n",
    "version-two": b"[core]\n\trepositoryformatversion = 2\n",
    "version-million": b"[core]\n\trepositoryformatversion = 1000000\n",
    "unknown-extension": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tplanted = true\n",
    "unknown-object-format": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = md5\n",
    "unknown-ref-storage": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = planted\n",
    "reftable": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n",
    "last-value-counts": b"[core]\n\trepositoryformatversion = 0\n\trepositoryformatversion = 2\n",
}


@each(CONFIG, "broken", BROKEN_CONFIGS, *UNKNOWN_FORMAT)
def _(repo: Repo, data: object) -> None:
    assert isinstance(data, bytes)
    (repo.dir / "config").write_bytes(data)


ODD_CONFIGS = {
    "empty": b"",
    "bom": b"\xef\xbb\xbf[core]\n\trepositoryformatversion = 0\n",
    "crlf": b"[core]\r\n\trepositoryformatversion = 0\r\n",
    "one-line": b"[core] repositoryformatversion = 0 ; comment\n",
    "no-last-newline": b"[core]\n\trepositoryformatversion = 0",
    "case": b"[CoRe]\n\tREPOSITORYformatVERSION = 0\n",
    "repeated-sections": b"[core]\n\tbare = false\n" * 2000,
    "first-value-is-overruled": b"[core]\n\trepositoryformatversion = 7\n\trepositoryformatversion = 0\n",
    "version-zero-with-unknown-extension": b"[core]\n\trepositoryformatversion = 0\n[extensions]\n\tplanted = 1\n",
    "old-subsection": b"[core]\n\trepositoryformatversion = 0\n[branch.main]\n\tremote = origin\n",
    "continuation": b"[core]\n\trepositoryformat\\\nversion = 0\n[core]\n\tbare = fal\\\nse\n",
    "preciousobjects": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpreciousObjects = true\n",
    "worktree-config": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n",
    "noop": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tnoop = true\n",
}


@each(CONFIG, "odd", ODD_CONFIGS, OK, *UNKNOWN_FORMAT)
def _(repo: Repo, data: object) -> None:
    assert isinstance(data, bytes)
    (repo.dir / "config").write_bytes(data)


@case(CONFIG, "missing", OK, *UNKNOWN_FORMAT)
def _(repo: Repo) -> None:
    (repo.dir / "config").unlink()


@case(CONFIG, "huge", *UNKNOWN_FORMAT, (77, "bound_store_bytes"), (77, "bound_object_bytes"))
def _(repo: Repo) -> None:
    with (repo.dir / "config").open("r+b") as out:
        out.truncate(3 << 30)


@case(CONFIG, "worktree-config-file-runs", OK, *UNKNOWN_FORMAT)
def _(repo: Repo) -> None:
    program = repo.program()
    repo.git("config", "core.repositoryformatversion", "1")
    repo.config("[extensions]\n\tworktreeConfig = true\n")
    (repo.dir / "config.worktree").write_text(f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n")


@case(CONFIG, "global-in-home")
def _(repo: Repo) -> None:
    program = repo.program()
    home = repo.outside / "home"
    (home / ".config/git").mkdir(parents=True)
    text = f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n[trace2]\n\teventTarget = {repo.canary}\n"
    (home / ".gitconfig").write_text(text)
    (home / ".config/git/config").write_text(text)
    repo.environment.update(HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"))


@case(CONFIG, "global-is-a-fifo")
def _(repo: Repo) -> None:
    home = repo.outside / "home"
    home.mkdir()
    os.mkfifo(home / ".gitconfig")
    repo.environment.update(HOME=str(home), GIT_CONFIG_GLOBAL=str(home / ".gitconfig"))
    repo.environment["GIT_CONFIG_SYSTEM"] = str(home / ".gitconfig")


# FIFOs, sockets, devices, directories --------------------------------------------------------------------------

SPECIAL = "fifos and devices"

NEEDED_FILES = ("HEAD", "config", "refs/heads/main")
NEEDED_FOLDERS = ("refs", "refs/heads", "objects")
NEVER_NEEDED = (
    "index", "shallow", "info/grafts", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "description", "hooks",
    "logs", "info/attributes", "info/exclude", "info/sparse-checkout", "index.lock", "HEAD.lock", "gc.pid",
    "config.worktree", "refs/replace", "refs/tags/v1", "objects/info/commit-graph", "modules", "worktrees",
)  # fmt: skip


def _plant(path: Path, what: str) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "fifo":
        os.mkfifo(path)
    elif what == "socket":
        plug = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        try:
            os.chdir(path.parent)  # socket names are short
            plug.bind(path.name)
        finally:
            os.chdir(here)
            plug.close()
    elif what == "zero":
        path.symlink_to("/dev/zero")
    elif what == "directory":
        path.mkdir()
    elif what == "file":
        path.write_bytes(b"x\n")


@each(
    SPECIAL,
    "needed",
    {
        f"{name.replace('/', '-')}-{what}": (name, what)
        for name in (*NEEDED_FILES, *NEEDED_FOLDERS)
        for what in ("fifo", "socket", "zero")
    },
    *IRREGULAR,
)
def _(repo: Repo, pair: object) -> None:
    name, what = pair  # type: ignore[misc]
    _plant(repo.dir / name, what)


@each(
    SPECIAL,
    "directory",
    {name.replace("/", "-"): name for name in ("HEAD", "config")},
    *IRREGULAR,
    *MALFORMED,
    (1, "no_committed_head"),
)
def _(repo: Repo, name: object) -> None:
    _plant(repo.dir / str(name), "directory")


@case(SPECIAL, "directory-refs-heads-main", (1, "no_committed_head"), *IRREGULAR, *MALFORMED)
def _(repo: Repo) -> None:
    _plant(repo.dir / "refs/heads/main", "directory")


@case(SPECIAL, "empty-directory-over-packed-ref", OK, (1, "no_committed_head"), *IRREGULAR)
def _(repo: Repo) -> None:
    repo.git("pack-refs", "--all")
    (repo.dir / "refs/heads/main").mkdir(parents=True)


@each(
    SPECIAL,
    "file",
    {name.replace("/", "-"): name for name in NEEDED_FOLDERS},
    *IRREGULAR,
    (1, "no_committed_head"),
    *MALFORMED,
)
def _(repo: Repo, name: object) -> None:
    _plant(repo.dir / str(name), "file")


@each(SPECIAL, "git", {what: what for what in ("fifo", "socket")}, (1, "store_not_regular"))
def _(repo: Repo, what: object) -> None:
    _plant(repo.dir, str(what))


@each(SPECIAL, "never-needed-fifo", {name.replace("/", "-"): name for name in NEVER_NEEDED})
def _(repo: Repo, name: object) -> None:
    _plant(repo.dir / str(name), "fifo")


@case(SPECIAL, "packed-refs-fifo", *IRREGULAR)
def _(repo: Repo) -> None:
    repo.git("pack-refs", "--all")
    _plant(repo.dir / "packed-refs", "fifo")


@each(
    SPECIAL,
    "loose",
    {
        f"{kind}-{what}": (spec, what)
        for kind, spec in (("commit", "HEAD"), ("tree", "HEAD:src"), ("blob", "HEAD:README.md"))
        for what in ("fifo", "socket", "zero", "directory")
    },
    *IRREGULAR,
)
def _(repo: Repo, pair: object) -> None:
    spec, what = pair  # type: ignore[misc]
    _plant(repo.loose_path(repo.rev(spec)), what)


@each(SPECIAL, "fan-out", {what: what for what in ("fifo", "zero", "file")}, *IRREGULAR)
def _(repo: Repo, what: object) -> None:
    _plant(repo.loose_path(repo.rev("HEAD:README.md")).parent, str(what))


@each(SPECIAL, "pack-directory", {what: what for what in ("fifo", "zero", "file")}, *IRREGULAR)
def _(repo: Repo, what: object) -> None:
    _plant(repo.objects / "pack", str(what))


@each(
    SPECIAL,
    "pack-file",
    {
        f"{suffix[1:]}-{what}": (suffix, what)
        for suffix in (".pack", ".idx")
        for what in ("fifo", "zero", "directory")
    },
    *IRREGULAR,
)
def _(repo: Repo, pair: object) -> None:
    suffix, what = pair  # type: ignore[misc]
    _plant(repo.repack().with_suffix(suffix), what)


# odd HEAD ------------------------------------------------------------------------------------------------------

HEADS = "odd HEAD"


@case(HEADS, "unborn", (1, "no_committed_head"))
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").write_text("ref: refs/heads/unborn\n")


@case(HEADS, "fresh-repository", (1, "no_committed_head"))
def _(repo: Repo) -> None:
    shutil.rmtree(repo.dir)
    repo.git("init", "-q", "--template=", ".")


@case(HEADS, "missing", (1, "no_committed_head"), (1, "store_missing"), *MALFORMED)
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").unlink()


@case(HEADS, "detached")
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").write_text(repo.rev("HEAD") + "\n")


@case(HEADS, "packed")
def _(repo: Repo) -> None:
    repo.git("pack-refs", "--all")
    assert not (repo.dir / "refs/heads/main").exists()


@case(HEADS, "loose-wins-over-packed")
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    repo.git("update-ref", "refs/heads/main", forged_commit(repo))
    repo.git("pack-refs", "--all")
    repo.set_head(head)


@case(HEADS, "tag-of-the-same-name")
def _(repo: Repo) -> None:
    for folder in ("refs/tags", "refs/remotes", "refs"):
        (repo.dir / folder).mkdir(exist_ok=True)
        (repo.dir / folder / "main").write_text(forged_commit(repo) + "\n")
    (repo.dir / "main").write_text(forged_commit(repo) + "\n")
    (repo.dir / "refs/heads/HEAD").write_text(forged_commit(repo) + "\n")


@case(HEADS, "packed-tag-of-the-same-name")
def _(repo: Repo) -> None:
    (repo.dir / "refs/tags").mkdir(exist_ok=True)
    (repo.dir / "refs/tags/main").write_text(forged_commit(repo) + "\n")
    repo.git("pack-refs", "--all")


@case(HEADS, "file-named-like-the-id")
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    (repo.dir / "refs/heads" / head).write_text(forged_commit(repo) + "\n")
    (repo.dir / head).write_text(forged_commit(repo) + "\n")


@case(HEADS, "symref-chain")
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").write_text("ref: refs/heads/one\n")
    (repo.dir / "refs/heads/one").write_text("ref: refs/heads/main\n")


@case(HEADS, "symref-loop", (1, "head_cycle"))
def _(repo: Repo) -> None:
    (repo.dir / "refs/heads/main").write_text("ref: refs/heads/other\n")
    (repo.dir / "refs/heads/other").write_text("ref: refs/heads/main\n")


@case(HEADS, "symref-to-itself", (1, "head_cycle"))
def _(repo: Repo) -> None:
    (repo.dir / "refs/heads/main").write_text("ref: refs/heads/main\n")


@case(HEADS, "HEAD-names-HEAD", (1, "head_cycle"), *MALFORMED)
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").write_text("ref: HEAD\n")


@case(HEADS, "symref-chain-too-long", (1, "head_cycle"))
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    (repo.dir / "HEAD").write_text("ref: refs/heads/c0\n")
    for number in range(40):
        (repo.dir / f"refs/heads/c{number}").write_text(f"ref: refs/heads/c{number + 1}\n")
    (repo.dir / "refs/heads/c40").write_text(head + "\n")


@each(
    HEADS,
    "names",
    {"tree": "HEAD^{tree}", "blob": "HEAD:README.md"},
    *MALFORMED,
)
def _(repo: Repo, spec: object) -> None:
    repo.set_head(repo.rev(str(spec)))


@case(HEADS, "names-tag", *MALFORMED)
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    body = f"object {head}\ntype commit\ntag v1\n".encode() + b"tagger " + IDENT + b"\n\nm\n"
    repo.set_head(repo.add(b"tag", body))


@case(HEADS, "names-nothing", (1, "head_commit_missing"))
def _(repo: Repo) -> None:
    repo.set_head("12" * 20)


@case(HEADS, "names-zero", (1, "head_commit_missing"), (1, "malformed_head"), (1, "no_committed_head"))
def _(repo: Repo) -> None:
    repo.set_head("0" * 40)


@case(HEADS, "names-nothing-detached", (1, "head_commit_missing"))
def _(repo: Repo) -> None:
    (repo.dir / "HEAD").write_text("12" * 20 + "\n")


BAD_REFS: dict[str, Callable[[str], bytes]] = {
    "junk-after": lambda oid: f"{oid} junk\n".encode(),
    "junk-glued": lambda oid: f"{oid}ab\n".encode(),
    "second-line": lambda oid: f"{oid}\n{'ab' * 20}\n".encode(),
    "short": lambda oid: f"{oid[:39]}\n".encode(),
    "abbreviated": lambda oid: f"{oid[:8]}\n".encode(),
    "not-hex": lambda oid: f"{oid[:39]}g\n".encode(),
    "empty": lambda oid: b"",
    "newline": lambda oid: b"\n",
    "leading-space": lambda oid: f" {oid}\n".encode(),
    "nul": lambda oid: oid.encode() + b"\0\n",
    "name": lambda oid: b"HEAD\n",
    "expression": lambda oid: b"HEAD~0\n",
    "fullwidth-digits": lambda oid: ("\uff11" * 40 + "\n").encode(),
    "arabic-digits": lambda oid: ("\u0661" * 40 + "\n").encode(),
}


@each(HEADS, "ref", dict(BAD_REFS), *MALFORMED)
def _(repo: Repo, make: object) -> None:
    (repo.dir / "refs/heads/main").write_bytes(make(repo.rev("HEAD")))  # type: ignore[operator]


@each(HEADS, "detached", dict(BAD_REFS), *MALFORMED)
def _(repo: Repo, make: object) -> None:
    (repo.dir / "HEAD").write_bytes(make(repo.rev("HEAD")))  # type: ignore[operator]


TOLERATED_REFS: dict[str, Callable[[str], bytes]] = {
    "no-newline": lambda oid: oid.encode(),
    "upper-case": lambda oid: oid.upper().encode() + b"\n",
    "crlf": lambda oid: oid.encode() + b"\r\n",
    "trailing-space": lambda oid: oid.encode() + b" \n",
}


@each(HEADS, "ref", dict(TOLERATED_REFS), OK, *MALFORMED)
def _(repo: Repo, make: object) -> None:
    (repo.dir / "refs/heads/main").write_bytes(make(repo.rev("HEAD")))  # type: ignore[operator]


BAD_SYMREFS = {
    "above": "ref: ../outside/ref\n",
    "dot-dot": "ref: refs/heads/../../../../outside/ref\n",
    "absolute": "ref: {outside}/ref\n",
    "outside-refs": "ref: config\n",
    "lock": "ref: refs/heads/main.lock\n",
    "empty": "ref: \n",
    "no-name": "ref:\n",
    "double-slash": "ref: refs//heads/main\n",
    "trailing-slash": "ref: refs/heads/main/\n",
    "leading-dot": "ref: refs/heads/.main\n",
    "at-brace": "ref: refs/heads/main@{{0}}\n",
    "tilde": "ref: refs/heads/main~0\n",
    "star": "ref: refs/heads/mai*\n",
    "space": "ref: refs/heads/ma in\n",
    "control": "ref: refs/heads/ma\x07in\n",
    "nul": "ref: refs/heads/main\0\n",
    "two-lines": "ref: refs/heads/main\nref: refs/heads/other\n",
    "upper-case-word": "REF: refs/heads/main\n",
    "long": "ref: refs/heads/" + "a" * 70000 + "\n",
    "long-component": "ref: refs/heads/" + "a" * 300 + "\n",
    "reftable-stub": "ref: refs/heads/.invalid\n",
}


@each(HEADS, "symref", BAD_SYMREFS, *MALFORMED, (1, "no_committed_head"))
def _(repo: Repo, text: object) -> None:
    (repo.outside / "ref").write_text(repo.rev("HEAD") + "\n")
    (repo.dir / "refs/heads/main.lock").write_text(forged_commit(repo) + "\n")
    (repo.dir / "HEAD").write_text(str(text).format(outside=repo.outside))


TOLERATED_SYMREFS = {"no-newline": "ref: refs/heads/main", "tab": "ref:\trefs/heads/main\n", "tight": "ref:refs/heads/main\n",
                     "trailing-space": "ref: refs/heads/main \n", "crlf": "ref: refs/heads/main\r\n"}  # fmt: skip


@each(HEADS, "symref", TOLERATED_SYMREFS, OK, *MALFORMED)
def _(repo: Repo, text: object) -> None:
    (repo.dir / "HEAD").write_bytes(str(text).encode())


@case(HEADS, "huge-sparse", *MALFORMED)
def _(repo: Repo) -> None:
    with (repo.dir / "HEAD").open("r+b") as out:
        out.truncate(5 << 30)


@case(HEADS, "huge-sparse-ref", *MALFORMED)
def _(repo: Repo) -> None:
    with (repo.dir / "refs/heads/main").open("r+b") as out:
        out.truncate(5 << 30)


PACKED_LIES: dict[str, Callable[[str, str], bytes]] = {
    "garbage": lambda head, other: b"\0\xff garbage\n" + f"{head} refs/heads/main\n".encode(),
    "garbage-after": lambda head, other: f"{head} refs/heads/main\n".encode() + b"garbage\n",
    "short-id": lambda head, other: f"{head[:20]} refs/heads/main\n".encode(),
    "no-space": lambda head, other: f"{head}refs/heads/main\n".encode(),
    "no-last-newline": lambda head, other: f"{head} refs/heads/main".encode(),
    "twice-differently": lambda head, other: f"{head} refs/heads/main\n{other} refs/heads/main\n".encode(),
    "crlf": lambda head, other: f"{head} refs/heads/main\r\n".encode(),
    "peeled-first": lambda head, other: f"^{other}\n{head} refs/heads/main\n".encode(),
}


@each(HEADS, "packed-refs", dict(PACKED_LIES), OK, *MALFORMED, (1, "no_committed_head"))
def _(repo: Repo, make: object) -> None:
    head = repo.rev("HEAD")
    (repo.dir / "refs/heads/main").unlink()
    (repo.dir / "packed-refs").write_bytes(make(head, forged_commit(repo)))  # type: ignore[operator]


@case(HEADS, "packed-refs-said-sorted-but-not", OK, *MALFORMED)
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    (repo.dir / "refs/heads/main").unlink()
    lines = [f"{head} refs/heads/{name}" for name in ("zz", "main", "aa", "mm")]
    (repo.dir / "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n" + "\n".join(lines) + "\n"
    )


@case(HEADS, "packed-refs-many")
def _(repo: Repo) -> None:
    head = repo.rev("HEAD")
    (repo.dir / "refs/heads/main").unlink()
    names = sorted([f"refs/heads/b{number:06d}" for number in range(30000)] + ["refs/heads/main"])
    (repo.dir / "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n" + "".join(f"{head} {name}\n" for name in names)
    )


@case(HEADS, "packed-refs-huge-sparse", (77, "bound_store_bytes"), (77, "bound_object_bytes"), *MALFORMED)
def _(repo: Repo) -> None:
    repo.git("pack-refs", "--all")
    with (repo.dir / "packed-refs").open("r+b") as out:
        out.truncate(5 << 30)


@case(HEADS, "reftable-directory", (77, "unsupported_format"))
def _(repo: Repo) -> None:
    """What `git init --ref-format=reftable` leaves, also where the installed git cannot make one."""
    shutil.rmtree(repo.dir / "refs")
    (repo.dir / "refs").mkdir()
    (repo.dir / "refs/heads").write_text("this repository uses the reftable format\n")
    (repo.dir / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (repo.dir / "reftable").mkdir()
    (repo.dir / "reftable/tables.list").write_text("")
    (repo.dir / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n"
    )


@case(HEADS, "sha256", algorithm="sha256")
def _(repo: Repo) -> None:
    repo.report["object_format"] = "sha256"


@case(HEADS, "sha256-packed", algorithm="sha256")
def _(repo: Repo) -> None:
    repo.repack()
    repo.git("pack-refs", "--all")


@case(HEADS, "sha256-odd-config", OK, *UNKNOWN_FORMAT, algorithm="sha256")
def _(repo: Repo) -> None:
    (repo.dir / "config").write_text(
        '[CORE] repositoryFORMATversion = "1" # one\n[extensions]\n\tOBJECTformat = sha1\n\tobjectformat = "sha\\\n256" ; two\n'
    )


@case(HEADS, "format-lie-sha256", *MALFORMED)
def _(repo: Repo) -> None:
    repo.git("config", "core.repositoryformatversion", "1")
    repo.config("[extensions]\n\tobjectFormat = sha256\n")


@case(HEADS, "format-lie-sha1", *MALFORMED, algorithm="sha256")
def _(repo: Repo) -> None:
    (repo.dir / "config").write_text("[core]\n\trepositoryformatversion = 0\n")


@case(HEADS, "format-in-version-zero", *MALFORMED, *UNKNOWN_FORMAT, algorithm="sha256")
def _(repo: Repo) -> None:
    (repo.dir / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n[extensions]\n\tobjectFormat = sha256\n"
    )


@case(HEADS, "default-hash-in-environment")
def _(repo: Repo) -> None:
    repo.environment["GIT_DEFAULT_HASH"] = "sha256"
    repo.environment["GIT_DEFAULT_REF_FORMAT"] = "reftable"


# trees that lie ------------------------------------------------------------------------------------------------

TREES = "trees that lie"

BAD_TREES: dict[str, Callable[[Repo], list[tuple[bytes, bytes, str]]]] = {
    "duplicate": lambda r: [(b"100644", b"a", r.blob(b"1")), (b"100644", b"a", r.blob(b"2"))],
    "duplicate-file-and-folder": lambda r: [
        (b"100644", b"a", r.blob(b"1")),
        (b"40000", b"a", r.tree((b"100644", b"b", r.blob(b"2")))),
    ],
    "duplicate-apart": lambda r: [
        (b"100644", b"a", r.blob(b"1")),
        (b"100644", b"a.x", r.blob(b"3")),
        (b"40000", b"a", r.tree((b"100644", b"b", r.blob(b"2")))),
    ],
    "order": lambda r: [(b"100644", b"b", r.blob(b"1")), (b"100644", b"a", r.blob(b"2"))],
    "order-folder-as-file": lambda r: [
        (b"40000", b"a", r.tree((b"100644", b"b", r.blob(b"2")))),
        (b"100644", b"a.x", r.blob(b"1")),
    ],
    "dot-dot": lambda r: [(b"40000", b"..", r.tree((b"100644", b"b", r.blob(b"2"))))],
    "dot": lambda r: [(b"100644", b".", r.blob(b"1"))],
    "empty-name": lambda r: [(b"100644", b"", r.blob(b"1"))],
    "slash": lambda r: [(b"100644", b"a/b", r.blob(b"1"))],
    "absolute": lambda r: [(b"100644", b"/tmp/planted", r.blob(b"1"))],
    "climbing": lambda r: [(b"100644", b"../planted", r.blob(b"1"))],
    "zero-padded-mode": lambda r: [(b"040000", b"a", r.tree((b"100644", b"b", r.blob(b"2"))))],
    "zero-padded-file-mode": lambda r: [(b"0100644", b"a", r.blob(b"1"))],
    "odd-mode-100600": lambda r: [(b"100600", b"a", r.blob(b"1"))],
    "odd-mode-100777": lambda r: [(b"100777", b"a", r.blob(b"1"))],
    "odd-mode-0": lambda r: [(b"0", b"a", r.blob(b"1"))],
    "odd-mode-fifo": lambda r: [(b"10644", b"a", r.blob(b"1"))],
    "odd-mode-device": lambda r: [(b"20644", b"a", r.blob(b"1"))],
    "odd-mode-huge": lambda r: [(b"7777777777777777777777100644", b"a", r.blob(b"1"))],
    "mode-not-octal": lambda r: [(b"10064z", b"a", r.blob(b"1"))],
    "mode-plus": lambda r: [(b"+100644", b"a", r.blob(b"1"))],
    "mode-empty": lambda r: [(b"", b"a", r.blob(b"1"))],
    "mode-underscore": lambda r: [(b"100_644", b"a", r.blob(b"1"))],
    "file-mode-for-a-tree": lambda r: [(b"100644", b"a", r.tree((b"100644", b"b", r.blob(b"2"))))],
    "folder-mode-for-a-blob": lambda r: [(b"40000", b"a", r.blob(b"1"))],
    "link-mode-for-a-tree": lambda r: [(b"120000", b"a", r.tree((b"100644", b"b", r.blob(b"2"))))],
    "file-mode-for-a-commit": lambda r: [(b"100644", b"a", forged_commit(r))],
    "folder-mode-for-a-commit": lambda r: [(b"40000", b"a", forged_commit(r))],
}


@each(TREES, "root", dict(BAD_TREES), *TREE_BAD, *BLOB_BAD)
def _(repo: Repo, make: object) -> None:
    repo.commit_entries(*make(repo))  # type: ignore[operator]


@each(
    TREES,
    "below",
    {
        key: value
        for key, value in BAD_TREES.items()
        if key in ("duplicate", "order", "dot-dot", "empty-name", "folder-mode-for-a-blob", "odd-mode-100777")
    },
    *TREE_BAD,
    *BLOB_BAD,
)
def _(repo: Repo, make: object) -> None:
    inner = repo.tree(*make(repo))  # type: ignore[operator]
    middle = repo.tree((b"100644", b"x", repo.blob(b"x")), (b"40000", b"y", inner))
    repo.commit_entries((b"40000", b"d", middle))


RAW_TREES = {
    "truncated-id": lambda good: good[:-1],
    "truncated-name": lambda good: b"100644 README",
    "truncated-mode": lambda good: b"1006",
    "trailing-nul": lambda good: good + b"\0",
    "trailing-entry": lambda good: good + b"100644 z",
    "garbage": lambda good: b"\xff" * 50,
    "no-space": lambda good: good.replace(b"100644 ", b"100644", 1),
}


@each(TREES, "raw", dict(RAW_TREES), *TREE_BAD)
def _(repo: Repo, make: object) -> None:
    good = tree_body([(b"100644", b"README.md", repo.blob(b"1"))])
    repo.set_head(repo.commit(repo.add(b"tree", make(good))))  # type: ignore[operator]


@case(TREES, "empty-root")
def _(repo: Repo) -> None:
    repo.commit_entries()
    repo.content = {}


@case(TREES, "empty-folder")
def _(repo: Repo) -> None:
    repo.commit_entries((b"40000", b"d", repo.tree()), (b"100644", b"f", repo.blob(b"1")))
    repo.content = {b"f": ("100644", b"1")}


@case(TREES, "empty-tree-not-stored", OK, *ABSENT)
def _(repo: Repo) -> None:
    """Git knows the empty tree and blob without storing them; a reader may say that they are absent."""
    empty = object_id(b"tree", b"")
    repo.set_head(repo.commit(empty))
    repo.loose_path(empty).unlink(missing_ok=True)
    repo.content = {}


@case(TREES, "odd-names")
def _(repo: Repo) -> None:
    names = [
        b"tab\tname", b"new\nline", b"quote\"s", b"back\\slash", b" lead", b"trail ", b"-option", b"--batch",
        b"caf\xc3\xa9", b"cafe\xcc\x81-x", b"\xff\xfe not utf-8", b"\xed\xa0\x80 surrogate", b"a\x01\x7fb", b"HEAD",
        b"HEAD:x", b"^{tree}", b"@{-1}", b"\xe2\x80\xae rtl", b"a" * 4000,
    ]  # fmt: skip
    repo.content = {name: ("100644", b"c" + name[:9]) for name in names}
    repo.commit_entries(*((b"100644", name, repo.blob(repo.content[name][1])) for name in sorted(names)))


@case(TREES, "newline-in-nested-names")
def _(repo: Repo) -> None:
    blob = repo.blob(b"x\n")
    inner = repo.tree((b"100644", b"f\n\nf", blob))
    repo.commit_entries((b"40000", b"d\n100644 blob x\tz", inner))
    repo.content = {b"d\n100644 blob x\tz/f\n\nf": ("100644", b"x\n")}


@case(TREES, "submodule")
def _(repo: Repo) -> None:
    repo.commit_entries(
        (b"100644", b".gitmodules", repo.blob(b'[submodule "m"]\n\tpath = m\n\turl = ext::false\n')),
        (b"160000", b"m", "12" * 20),
    )
    repo.content = {b".gitmodules": ("100644", b'[submodule "m"]\n\tpath = m\n\turl = ext::false\n')}
    repo.report["nonregular_paths"] = ["m"]


@case(TREES, "submodule-id-is-a-blob-here")
def _(repo: Repo) -> None:
    repo.commit_entries((b"100644", b"f", repo.blob(b"1")), (b"160000", b"m", repo.blob(SECRET)))
    repo.content = {b"f": ("100644", b"1")}
    repo.report["nonregular_paths"] = ["m"]


DOT_GIT = {
    "plain": b".git", "upper": b".GIT", "mixed": b".gIt", "ntfs-short": b"git~1", "ntfs-short-upper": b"GIT~1",
    "ntfs-stream": b".git::$INDEX_ALLOCATION", "ntfs-stream-short": b"git~1:x", "trailing-dot": b".git.",
    "trailing-space": b".git ", "trailing-both": b".git . .", "hfs-ignorable": b".g\xe2\x80\x8cit",
    "hfs-bom": b"\xef\xbb\xbf.git", "hfs-end": b".git\xe2\x81\xaf", "oak": b".oak", "oak-upper": b".OAK",
    "backslash": b".git\\config", "backslash-below": b"a\\.git\\config",
}  # fmt: skip


@each(TREES, "dot-git-listed", dict(DOT_GIT), OK, *TREE_BAD)
def _(repo: Repo, name: object) -> None:
    assert isinstance(name, bytes)
    inner = repo.tree((b"100755", b"config", repo.blob(b"planted\n")))
    entries = sorted([(b"40000", name, inner), (b"100644", b"zz", repo.blob(b"z"))], key=lambda e: e[1])
    repo.commit_entries(*entries)
    repo.content = {name + b"/config": ("100755", b"planted\n"), b"zz": ("100644", b"z")}
    repo.report["unsafe"] = [name + b"/config"]


@each(TREES, "dot-git-written", dict(DOT_GIT), (1, "unsafe_path"), *TREE_BAD, destination=True)
def _(repo: Repo, name: object) -> None:
    assert isinstance(name, bytes)
    inner = repo.tree((b"100755", b"config", repo.blob(b"planted\n")))
    entries = sorted([(b"40000", name, inner), (b"100644", b"zz", repo.blob(b"z"))], key=lambda e: e[1])
    repo.commit_entries(*entries)


@case(TREES, "link-then-path-through-it-written", *TREE_BAD, destination=True)
def _(repo: Repo) -> None:
    inner = repo.tree((b"100644", b"planted", repo.blob(b"planted\n")))
    repo.commit_entries((b"120000", b"a", repo.blob(os.fsencode(repo.outside))), (b"40000", b"a", inner))


@case(TREES, "links-written-last", destination=True)
def _(repo: Repo) -> None:
    repo.commit_entries(
        (b"120000", b"a", repo.blob(os.fsencode(repo.outside / "secret"))),
        (b"120000", b"b", repo.blob(b"../../../../etc/passwd")),
        (b"100644", b"c", repo.blob(b"c")),
    )
    repo.content = {
        b"a": ("120000", os.fsencode(repo.outside / "secret")),
        b"b": ("120000", b"../../../../etc/passwd"),
        b"c": ("100644", b"c"),
    }


@case(TREES, "folding-link-and-folder-written", (1, "unsafe_path"), destination=True)
def _(repo: Repo) -> None:
    inner = repo.tree((b"100644", b"planted", repo.blob(b"planted\n")))
    repo.commit_entries((b"120000", b"A", repo.blob(os.fsencode(repo.outside))), (b"40000", b"a", inner))


@case(TREES, "colliding-names")
def _(repo: Repo) -> None:
    names = [b"Readme", b"README", b"caf\xc3\xa9", b"cafe\xcc\x81", b"plain"]
    repo.content = {name: ("100644", name) for name in names}
    repo.commit_entries(*((b"100644", name, repo.blob(name)) for name in sorted(names)))
    repo.report["colliding_paths"] = [["README", "Readme"], ["cafe\u0301", "caf\u00e9"]]


# objects that lie ----------------------------------------------------------------------------------------------

OBJECTS = "objects that lie"


def _false_name(repo: Repo, spec: str, kind: bytes, body: bytes) -> None:
    repo.write_loose(repo.rev(spec), zlib.compress(kind + b" %d\0" % len(body) + body))


@case(OBJECTS, "blob-false-name", *BLOB_BAD)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:README.md", b"blob", FORGED)


@case(OBJECTS, "blob-false-name-same-size", *BLOB_BAD)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:README.md", b"blob", b"TRUE README\n")


@case(OBJECTS, "blob-false-name-only-its-path", *BLOB_BAD, arguments=["--path", "README.md"])
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:README.md", b"blob", FORGED)


@case(OBJECTS, "blob-false-name-out-of-scope", arguments=["--path", "empty"])
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:README.md", b"blob", FORGED)
    repo.content = {b"empty": TRUTH[b"empty"]}


@case(OBJECTS, "link-false-target", *BLOB_BAD)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:link", b"blob", b"/etc/passwd")


@case(OBJECTS, "tree-false-name", *TREE_BAD)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:src", b"tree", tree_body([(b"100644", b"x", repo.blob(FORGED))]))


@case(OBJECTS, "root-tree-false-name", *TREE_BAD)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD^{tree}", b"tree", tree_body([(b"100644", b"README.md", repo.blob(FORGED))]))


@case(OBJECTS, "commit-false-name", *COMMIT_BAD)
def _(repo: Repo) -> None:
    tree = repo.rev(forged_commit(repo) + "^{tree}")
    _false_name(repo, "HEAD", b"commit", commit_body(tree))


@case(OBJECTS, "commit-is-a-false-blob", *COMMIT_BAD, *MALFORMED)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD", b"blob", b"not a commit")


@case(OBJECTS, "blob-stored-as-tree", *BLOB_BAD, *TREE_BAD)
def _(repo: Repo) -> None:
    _false_name(repo, "HEAD:README.md", b"tree", TRUTH[b"README.md"][1])


LYING_HEADERS = {
    "size-small": b"blob 3\0hello",
    "size-large": b"blob 9\0hello",
    "size-zero": b"blob 0\0hello",
    "size-leading-zero": b"blob 05\0hello",
    "size-plus": b"blob +5\0hello",
    "size-negative": b"blob -5\0hello",
    "size-empty": b"blob \0hello",
    "size-word": b"blob five\0hello",
    "size-underscore": b"blob 0_5\0hello",
    "size-hex": b"blob 0x5\0hello",
    "size-overflow": b"blob 18446744073709551621\0hello",
    "size-space-after": b"blob 5 \0hello",
    "two-spaces": b"blob  5\0hello",
    "kind-unknown": b"blab 5\0hello",
    "kind-empty": b" 5\0hello",
    "kind-upper": b"BLOB 5\0hello",
    "kind-long": b"blob" * 60 + b" 5\0hello",
    "no-nul": b"blob 5 hello",
    "newline-for-nul": b"blob 5\nhello",
    "nothing": b"",
    "only-nul": b"\0",
}


@each(OBJECTS, "header", LYING_HEADERS, *BLOB_BAD, *TREE_BAD)
def _(repo: Repo, whole: object) -> None:
    assert isinstance(whole, bytes)
    repo.single(repo.add_raw(whole))


def _streams(true: bytes) -> dict[str, bytes]:
    good = zlib.compress(true)
    raw = zlib.compressobj(wbits=-15)
    gzip = zlib.compressobj(wbits=31)
    dictionary = zlib.compressobj(zdict=b"true readme")
    return {
        "empty": b"",
        "one-byte": good[:1],
        "half": good[: len(good) // 2],
        "no-checksum": good[:-4],
        "short-checksum": good[:-1],
        "wrong-checksum": good[:-1] + bytes([good[-1] ^ 1]),
        "uncompressed": true,
        "raw-deflate": raw.compress(true) + raw.flush(),
        "gzip": gzip.compress(true) + gzip.flush(),
        "dictionary": dictionary.compress(true) + dictionary.flush(),
        "zeros": bytes(100),
        "noise": bytes(range(256)),
        "bad-block": good[:2] + b"\xff" * 20,
    }


_README = b"blob 12\0true readme\n"


@each(OBJECTS, "stream", dict(_streams(_README)), *BLOB_BAD)
def _(repo: Repo, stream: object) -> None:
    assert isinstance(stream, bytes)
    repo.write_loose(repo.rev("HEAD:README.md"), stream)


@each(
    OBJECTS,
    "stream-commit",
    {key: key for key in ("empty", "half", "noise", "wrong-checksum")},
    *COMMIT_BAD,
)
def _(repo: Repo, key: object) -> None:
    head = repo.rev("HEAD")
    whole = zlib.decompress(repo.loose_path(head).read_bytes())
    repo.write_loose(head, _streams(whole)[str(key)])


@each(
    OBJECTS,
    "stream-tree",
    {key: key for key in ("empty", "half", "noise", "wrong-checksum")},
    *TREE_BAD,
)
def _(repo: Repo, key: object) -> None:
    tree = repo.rev("HEAD:src")
    whole = zlib.decompress(repo.loose_path(tree).read_bytes())
    repo.write_loose(tree, _streams(whole)[str(key)])


@each(
    OBJECTS,
    "stream-with-more",
    {
        "garbage": zlib.compress(_README) + b"garbage",
        "zeros": zlib.compress(_README) + bytes(100),
        "second-stream": zlib.compress(_README) + zlib.compress(b"blob 3\0xyz"),
    },
    OK,
    *BLOB_BAD,
)
def _(repo: Repo, stream: object) -> None:
    assert isinstance(stream, bytes)
    repo.write_loose(repo.rev("HEAD:README.md"), stream)


BAD_COMMITS: dict[str, Callable[[str, str], bytes]] = {
    "empty": lambda tree, head: b"",
    "no-tree": lambda tree, head: b"author " + IDENT + b"\ncommitter " + IDENT + b"\n\nm\n",
    "short-tree": lambda tree, head: b"tree " + tree[:30].encode() + b"\n\nm\n",
    "tree-not-hex": lambda tree, head: b"tree " + b"z" * 40 + b"\nauthor " + IDENT + b"\n\nm\n",
    "tree-upper-case": lambda tree, head: commit_body(tree).replace(tree.encode(), b"AB" * 20),
    "tree-second": lambda tree, head: b"author " + IDENT + b"\ntree " + tree.encode() + b"\n\nm\n",
    "leading-newline": lambda tree, head: b"\n" + commit_body(tree),
    "unfinished-tree-line": lambda tree, head: b"tree " + tree.encode(),
    "tree-in-the-message": lambda tree, head: b"\ntree " + tree.encode() + b"\n",
    "tree-with-more": lambda tree, head: commit_body(tree + "00"),
}


@each(OBJECTS, "commit", dict(BAD_COMMITS), *COMMIT_BAD, *MALFORMED)
def _(repo: Repo, make: object) -> None:
    repo.set_head(repo.add(b"commit", make(repo.rev("HEAD^{tree}"), repo.rev("HEAD"))))  # type: ignore[operator]


@case(OBJECTS, "commit-with-two-trees", OK, *COMMIT_BAD)
def _(repo: Repo) -> None:
    forged = repo.rev(forged_commit(repo) + "^{tree}")
    body = commit_body(repo.rev("HEAD^{tree}")).replace(
        b"\nauthor", b"\ntree " + forged.encode() + b"\nauthor", 1
    )
    repo.set_head(repo.add(b"commit", body))


@each(
    OBJECTS,
    "odd-commit",
    {
        "signature": b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n tree 00\n -----END PGP SIGNATURE-----\n",
        "mergetag": b"mergetag object 00\n type commit\n tag x\n",
        "encoding": b"encoding ISO-8859-1\n",
    },
)
def _(repo: Repo, extra: object) -> None:
    assert isinstance(extra, bytes)
    repo.set_head(repo.commit(repo.rev("HEAD^{tree}"), repo.rev("HEAD"), message=b"\xff\0\n", extra=extra))


@each(OBJECTS, "commit-tree-names", {"a-blob": "HEAD:README.md", "a-commit": "HEAD"}, *TREE_BAD, *COMMIT_BAD)
def _(repo: Repo, spec: object) -> None:
    repo.set_head(repo.commit(repo.rev(str(spec))))


# packs


def _plain_pack_objects(repo: Repo, blob: bytes = b"packed\n") -> tuple[list[PackObject], str]:
    """Commit, tree and blob `f` for a pack; the loose copies do not exist."""
    oid = object_id(b"blob", blob, repo.algorithm)
    tree = tree_body([(b"100644", b"f", oid)])
    tree_id = object_id(b"tree", tree, repo.algorithm)
    commit = commit_body(tree_id)
    commit_id = object_id(b"commit", commit, repo.algorithm)
    repo.content = {b"f": ("100644", blob)}
    repo.set_head(commit_id)
    return [PackObject(commit_id, 1, commit), PackObject(tree_id, 2, tree), PackObject(oid, 3, blob)], oid


@case(OBJECTS, "pack-own-writing")
def _(repo: Repo) -> None:
    items, _ = _plain_pack_objects(repo)
    repo.pack(items)


@case(OBJECTS, "pack-version-3")
def _(repo: Repo) -> None:
    items, _ = _plain_pack_objects(repo)
    repo.pack(items, version=3)


@case(OBJECTS, "pack-real")
def _(repo: Repo) -> None:
    repo.repack()


@case(OBJECTS, "pack-index-version-1")
def _(repo: Repo) -> None:
    stem = repo.repack()
    stem.with_suffix(".idx").unlink()
    repo.git("index-pack", "--index-version=1", str(stem) + ".pack")


@case(OBJECTS, "pack-index-64-bit-offsets")
def _(repo: Repo) -> None:
    stem = repo.repack()
    stem.with_suffix(".idx").unlink()
    repo.git("index-pack", "--index-version=2,0x10", str(stem) + ".pack")


@case(OBJECTS, "pack-index-only-64-bit-offsets", OK, (77, "instrument_failed"), *ANY_BAD)
def _(repo: Repo) -> None:
    """Git writes this when asked to, and then refuses it: the first object is never that far away."""
    stem = repo.repack()
    stem.with_suffix(".idx").unlink()
    repo.git("index-pack", "--index-version=2,0x0", str(stem) + ".pack")


@case(OBJECTS, "pack-no-trailing-newline-names")
def _(repo: Repo) -> None:
    stem = repo.repack()
    for suffix in (".pack", ".idx"):
        stem.with_suffix(suffix).rename(repo.objects / "pack" / f"pack-odd name{suffix}")


@case(OBJECTS, "pack-and-loose-twice")
def _(repo: Repo) -> None:
    repo.git("repack", "-aq")
    repo.git("repack", "-aq")


@each(OBJECTS, "pack-forged", {"blob": 2, "tree": 1, "commit": 0}, *ANY_BAD)
def _(repo: Repo, number: object) -> None:
    items, _ = _plain_pack_objects(repo)
    item = items[number]  # type: ignore[call-overload]
    other = {2: FORGED, 1: tree_body([(b"100644", b"f", repo.blob(FORGED))]), 0: commit_body(repo.tree())}
    item.body = other[number]  # type: ignore[index]
    repo.pack(items)


@case(OBJECTS, "pack-index-swapped", *ANY_BAD)
def _(repo: Repo) -> None:
    items, oid = _plain_pack_objects(repo)
    other = PackObject(object_id(b"blob", FORGED), 3, FORGED)
    repo.pack([other, *items], offsets={oid: 12})


@each(
    OBJECTS,
    "pack-wrong-type",
    {"tree-as-blob": (1, 3), "blob-as-tree": (2, 2), "blob-as-tag": (2, 4)},
    *ANY_BAD,
)
def _(repo: Repo, pair: object) -> None:
    items, _ = _plain_pack_objects(repo)
    number, kind = pair  # type: ignore[misc]
    items[number].kind = kind
    repo.pack(items)


@each(OBJECTS, "pack-type", {"zero": 0, "five": 5}, *ANY_BAD)
def _(repo: Repo, kind: object) -> None:
    items, _ = _plain_pack_objects(repo)
    items[2].kind = int(str(kind))
    repo.pack(items)


@each(OBJECTS, "pack-size", {"small": 3, "large": 700, "huge": 1 << 60}, *ANY_BAD, (77, "bound_object_bytes"))
def _(repo: Repo, size: object) -> None:
    items, _ = _plain_pack_objects(repo)
    items[2].size = int(str(size))
    repo.pack(items)


@each(
    OBJECTS,
    "pack-offset",
    {"zero": 0, "header": 4, "odd": 13, "end": 1 << 20, "huge": 1 << 62},
    *ANY_BAD,
    *ABSENT,
)
def _(repo: Repo, offset: object) -> None:
    items, oid = _plain_pack_objects(repo)
    repo.pack(items, offsets={oid: int(str(offset))})


PACK_DAMAGE: dict[str, Callable[[bytes, bytes], tuple[bytes, bytes]]] = {
    "pack-empty": lambda pack, idx: (b"", idx),
    "pack-header-only": lambda pack, idx: (pack[:12], idx),
    "pack-half": lambda pack, idx: (pack[: len(pack) // 2], idx),
    "pack-signature": lambda pack, idx: (b"KCAP" + pack[4:], idx),
    "pack-version-9": lambda pack, idx: (pack[:4] + struct.pack(">I", 9) + pack[8:], idx),
    "idx-empty": lambda pack, idx: (pack, b""),
    "idx-half": lambda pack, idx: (pack, idx[: len(idx) // 2]),
    "idx-header": lambda pack, idx: (pack, idx[:8]),
    "idx-version-9": lambda pack, idx: (pack, idx[:4] + struct.pack(">I", 9) + idx[8:]),
    "idx-fan-out-falls": lambda pack, idx: (pack, idx[:8] + b"\xff" * 4 + idx[12:]),
    "idx-count-absurd": lambda pack, idx: (pack, idx[: 8 + 255 * 4] + b"\xff" * 4 + idx[8 + 256 * 4 :]),
    "idx-noise": lambda pack, idx: (pack, b"\xfftOc\0\0\0\2" + b"\xee" * 2000),
    "both-empty": lambda pack, idx: (b"", b""),
}


@each(OBJECTS, "pack-damage", dict(PACK_DAMAGE), *ANY_BAD, *ABSENT, *UNUSABLE, (1, "head_commit_missing"))
def _(repo: Repo, make: object) -> None:
    stem = repo.repack()
    pack, idx = stem.with_suffix(".pack"), stem.with_suffix(".idx")
    new_pack, new_idx = make(pack.read_bytes(), idx.read_bytes())  # type: ignore[operator]
    pack.write_bytes(new_pack)
    idx.write_bytes(new_idx)


@each(
    OBJECTS,
    "pack-harmless-damage",
    {
        "pack-trailer": lambda pack, idx: (pack[:-1] + bytes([pack[-1] ^ 1]), idx),
        "idx-trailer": lambda pack, idx: (pack, idx[:-1] + bytes([idx[-1] ^ 1])),
        "idx-names-another-pack": lambda pack, idx: (pack, idx[:-40] + bytes(20) + idx[-20:]),
        "pack-count": lambda pack, idx: (pack[:8] + struct.pack(">I", 99) + pack[12:], idx),
        "pack-trailing": lambda pack, idx: (pack + b"more", idx),
    },
    OK,
    *ANY_BAD,
    *ABSENT,
    *UNUSABLE,
    (1, "head_commit_missing"),
)
def _(repo: Repo, make: object) -> None:
    stem = repo.repack()
    pack, idx = stem.with_suffix(".pack"), stem.with_suffix(".idx")
    new_pack, new_idx = make(pack.read_bytes(), idx.read_bytes())  # type: ignore[operator]
    pack.write_bytes(new_pack)
    idx.write_bytes(new_idx)


@each(OBJECTS, "pack-lonely", {"idx": ".pack", "pack": ".idx"}, (1, "head_commit_missing"), *ANY_BAD)
def _(repo: Repo, gone: object) -> None:
    repo.repack().with_suffix(str(gone)).unlink()


@case(OBJECTS, "pack-damaged-but-loose-copy-good", OK, *ANY_BAD)
def _(repo: Repo) -> None:
    repo.git("repack", "-aq")
    for path in (repo.objects / "pack").glob("*.pack"):
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        data[12:-20] = bytes(len(data) - 32)
        path.write_bytes(data)


@case(OBJECTS, "loose-damaged-but-packed-copy-good", OK, *ANY_BAD)
def _(repo: Repo) -> None:
    repo.git("repack", "-aq")
    repo.write_loose(repo.rev("HEAD:README.md"), b"noise")


# deltas


def _delta_case(repo: Repo, make: Callable[[PackObject, str], list[PackObject]], result: bytes) -> None:
    """Blob `f` comes from whatever `make` says; it gets the base blob and the id the result must have."""
    items, _ = _plain_pack_objects(repo, result)
    base = PackObject(object_id(b"blob", b"base bytes\n"), 3, b"base bytes\n")
    repo.pack([*items[:2], base, *make(base, items[2].oid)])


GOOD_RESULT = b"base bytes\nmore\n"
GOOD_DELTA = delta(11, 16, copy_op(0, 11), b"\x05more\n")

GOOD_DELTAS: dict[str, Callable[[PackObject, str], list[PackObject]]] = {
    "ref": lambda base, oid: [PackObject(oid, 7, GOOD_DELTA, bytes.fromhex(base.oid))],
    "ofs": lambda base, oid: [PackObject(oid, 6, GOOD_DELTA, len(_entry_header(3, 11)) + len(zlib.compress(base.body, 1)))],
    "ref-base-last": lambda base, oid: [
        PackObject(oid, 7, delta(4, 16, b"\x10" + GOOD_RESULT), bytes.fromhex(object_id(b"blob", b"last"))),
        PackObject(object_id(b"blob", b"last"), 3, b"last"),
    ],
}  # fmt: skip


@each(OBJECTS, "delta-good", dict(GOOD_DELTAS))
def _(repo: Repo, make: object) -> None:
    _delta_case(repo, make, GOOD_RESULT)  # type: ignore[arg-type]


def _ref(body: bytes) -> Callable[[PackObject, str], list[PackObject]]:
    return lambda base, oid: [PackObject(oid, 7, body, bytes.fromhex(base.oid))]


BAD_DELTAS: dict[str, Callable[[PackObject, str], list[PackObject]]] = {
    "itself": lambda base, oid: [PackObject(oid, 7, GOOD_DELTA, bytes.fromhex(oid))],
    "pair-circle": lambda base, oid: [
        PackObject(oid, 7, GOOD_DELTA, bytes.fromhex("ee" * 20)),
        PackObject("ee" * 20, 7, GOOD_DELTA, bytes.fromhex(oid)),
    ],
    "base-absent": lambda base, oid: [PackObject(oid, 7, GOOD_DELTA, bytes.fromhex("ee" * 20))],
    "ofs-zero": lambda base, oid: [PackObject(oid, 6, GOOD_DELTA, 0)],
    "ofs-before-the-pack": lambda base, oid: [PackObject(oid, 6, GOOD_DELTA, 1 << 40)],
    "ofs-into-the-header": lambda base, oid: [PackObject(oid, 6, GOOD_DELTA, 22)],
    "base-size-lie": _ref(delta(12, 16, copy_op(0, 11), b"\x05more\n")),
    "result-size-small": _ref(delta(11, 15, copy_op(0, 11), b"\x05more\n")),
    "result-size-large": _ref(delta(11, 17, copy_op(0, 11), b"\x05more\n")),
    "copy-beyond": _ref(delta(11, 16, copy_op(5, 11), b"\x05more\n")),
    "copy-far-beyond": _ref(delta(11, 16, copy_op(0xFFFFFFFF, 11), b"\x05more\n")),
    "opcode-zero": _ref(delta(11, 16, b"\0", copy_op(0, 11), b"\x05more\n")),
    "insert-cut": _ref(delta(11, 16, copy_op(0, 11), b"\x05mo")),
    "copy-cut": _ref(delta(11, 16, b"\xff\0\0")),
    "empty": _ref(b""),
    "one-byte": _ref(b"\x80"),
    "endless-varint": _ref(b"\xff" * 200),
    "other-result": _ref(delta(11, 16, copy_op(0, 11), b"\x05MORE\n")),
}


@each(OBJECTS, "delta-bad", dict(BAD_DELTAS), *ANY_BAD, *ABSENT)
def _(repo: Repo, make: object) -> None:
    _delta_case(repo, make, GOOD_RESULT)  # type: ignore[arg-type]


@case(OBJECTS, "delta-base-is-loose-only", OK, (77, "instrument_failed"), *ANY_BAD, *ABSENT)
def _(repo: Repo) -> None:
    """A thin pack in the store: git itself finds such a base only when it recovers from damage."""
    items, oid = _plain_pack_objects(repo, GOOD_RESULT)
    base = repo.blob(b"base bytes\n")
    repo.pack([*items[:2], PackObject(oid, 7, GOOD_DELTA, bytes.fromhex(base))])


@case(OBJECTS, "delta-chain-long", OK, (77, "bound_depth"), *ANY_BAD)
def _(repo: Repo) -> None:
    """A chain of 3,000 deltas: git reads it; a reader may refuse it, but not crash on it."""
    bodies = [b"start\n"]
    items: list[PackObject] = [PackObject(object_id(b"blob", bodies[0]), 3, bodies[0])]
    for number in range(3000):
        line = b"%d\n" % number
        step = delta(len(bodies[-1]), 6 + len(line), copy_op(0, 6), bytes([len(line)]) + line)
        bodies.append(b"start\n" + line)
        items.append(PackObject(object_id(b"blob", bodies[-1]), 7, step, bytes.fromhex(items[-1].oid)))
    last = bodies[-1]
    plain, _ = _plain_pack_objects(repo, last)
    repo.pack([*plain[:2], *reversed(items)])


# lies beside the objects ---------------------------------------------------------------------------------------

BESIDE = "lies beside the objects"


@case(BESIDE, "commit-graph-forged", arguments=["--deep"])
def _(repo: Repo) -> None:
    repo.git("config", "core.commitGraph", "true")
    repo.git("commit-graph", "write", "--reachable")
    path = repo.objects / "info/commit-graph"
    path.chmod(0o644)
    data = path.read_bytes()
    tree = bytes.fromhex(repo.rev("HEAD^{tree}"))
    forged = bytes.fromhex(repo.rev(forged_commit(repo) + "^{tree}"))
    assert tree in data
    data = data.replace(tree, forged)[:-20]
    path.write_bytes(data + hashlib.sha1(data).digest())
    repo.report["ancestors"] = 1


@each(
    BESIDE,
    "garbage",
    {
        name.replace("/", "-"): name
        for name in (
            "objects/info/commit-graph",
            "objects/info/commit-graphs/commit-graph-chain",
            "objects/info/packs",
            "objects/pack/multi-pack-index",
            "objects/pack/tmp_pack_abc",
            "objects/tmp_obj_abc",
            "objects/garbage",
            "objects/zz/1234",
            "index",
            "info/sparse-checkout",
            "info/attributes",
            "info/refs",
            "logs/HEAD",
            "refs/heads/garbage",
            "refs/notes/commits",
            "refs/stash",
            "shallow",
            "gc.log",
        )
    },
)
def _(repo: Repo, name: object) -> None:
    repo.repack()
    path = repo.dir / str(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\xff\0garbage\n" * 40)


@case(BESIDE, "multi-pack-index-real")
def _(repo: Repo) -> None:
    repo.git("repack", "-dq")
    repo.git("multi-pack-index", "write")


@case(BESIDE, "multi-pack-index-forged", OK, *ANY_BAD)
def _(repo: Repo) -> None:
    """The multi-pack-index says that README is where the forged blob is."""
    listed = repo.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    repo.git("pack-objects", "-q", str(repo.objects / "pack/pack"), data=listed)
    repo.git("prune-packed", "-q")
    repo.git("multi-pack-index", "write")
    path = repo.objects / "pack/multi-pack-index"
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    readme = data.index(bytes.fromhex(repo.rev("HEAD:README.md")))
    forged = data.index(bytes.fromhex(object_id(b"blob", FORGED)))
    names = bytes(data).index(b"OOFF", 8)
    offsets = struct.unpack(">Q", data[names + 4 : names + 12])[0]
    lookup = bytes(data).index(b"OIDL", 8)
    first = struct.unpack(">Q", data[lookup + 4 : lookup + 12])[0]
    here, there = offsets + (readme - first) // 20 * 8, offsets + (forged - first) // 20 * 8
    data[here : here + 8] = data[there : there + 8]
    body = bytes(data[:-20])
    path.write_bytes(body + hashlib.sha1(body).digest())


@each(
    BESIDE,
    "pack-side-file",
    {suffix: suffix for suffix in ("rev", "bitmap", "keep", "promisor", "mtimes", "other")},
)
def _(repo: Repo, suffix: object) -> None:
    stem = repo.repack()
    path = stem.with_suffix(f".{suffix}")
    path.unlink(missing_ok=True)
    path.write_bytes(b"RIDX\xff\xff" + b"\xff" * 300)


@each(
    BESIDE, "pack-side-fifo", {suffix: suffix for suffix in ("rev", "bitmap", "keep", "promisor", "mtimes")}
)
def _(repo: Repo, suffix: object) -> None:
    stem = repo.repack()
    path = stem.with_suffix(f".{suffix}")
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@case(BESIDE, "worktree-changed")
def _(repo: Repo) -> None:
    for path in sorted(repo.work.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            path.write_bytes(FORGED)
    (repo.work / "untracked").write_bytes(FORGED)


@case(BESIDE, "worktree-empty")
def _(repo: Repo) -> None:
    for path in list(repo.work.iterdir()):
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@case(BESIDE, "staged-but-not-committed")
def _(repo: Repo) -> None:
    (repo.work / "README.md").write_bytes(FORGED)
    (repo.work / "new").write_bytes(FORGED)
    repo.git("add", "-A")


@case(BESIDE, "index-flags")
def _(repo: Repo) -> None:
    repo.git("update-index", "--skip-worktree", "README.md")
    repo.git("update-index", "--assume-unchanged", "empty")


@case(BESIDE, "index-missing")
def _(repo: Repo) -> None:
    (repo.dir / "index").unlink()


@case(BESIDE, "sparse-checkout")
def _(repo: Repo) -> None:
    repo.git("config", "core.sparseCheckout", "true")
    (repo.dir / "info").mkdir(exist_ok=True)
    (repo.dir / "info/sparse-checkout").write_text("/bin/\n")


@case(BESIDE, "attributes-change-bytes")
def _(repo: Repo) -> None:
    data = b"* text eol=crlf ident working-tree-encoding=UTF-16 export-ignore export-subst filter=lfs\n"
    blob = b"$Id$ $Format:%H$\n"
    repo.commit_entries((b"100644", b".gitattributes", repo.blob(data)), (b"100644", b"f", repo.blob(blob)))
    repo.content = {b".gitattributes": ("100644", data), b"f": ("100644", blob)}


# bombs ---------------------------------------------------------------------------------------------------------

BOMBS = "bombs"


@case(BOMBS, "ten-trees-to-the-twelfth", (77, "bound_entries"), arguments=["--max-entries", "5000"])
def _(repo: Repo) -> None:
    oid = repo.blob(b"x")
    entries = [(b"100644", b"%02d" % n, oid) for n in range(16)]
    for _ in range(10):
        tree = repo.tree(*entries)
        entries = [(b"40000", b"%02d" % n, tree) for n in range(16)]
    repo.commit_entries(*entries)


@case(
    BOMBS,
    "ten-trees-to-the-twelfth-one-path",
    arguments=["--max-entries", "5000", "--path", "/".join(["15"] * 12)],
)
def _(repo: Repo) -> None:
    oid = repo.blob(b"x")
    entries = [(b"100644", b"%02d" % n, oid) for n in range(16)]
    for _ in range(11):
        tree = repo.tree(*entries)
        entries = [(b"40000", b"%02d" % n, tree) for n in range(16)]
    repo.commit_entries(*entries)
    repo.content = {b"/".join([b"15"] * 12): ("100644", b"x")}


def _levels(repo: Repo, count: int) -> None:
    blob = b"bottom\n"
    oid = object_id(b"blob", blob)
    items = [PackObject(oid, 3, blob)]
    entry = (b"100644", b"f", oid)
    for _ in range(count):
        body = tree_body([entry])
        tree = object_id(b"tree", body)
        items.append(PackObject(tree, 2, body))
        entry = (b"40000", b"d", tree)
    body = commit_body(entry[2])
    items.append(PackObject(object_id(b"commit", body), 1, body))
    repo.set_head(items[-1].oid)
    repo.pack(items)
    repo.content = {b"d/" * (count - 1) + b"f": ("100644", blob)}


@case(BOMBS, "levels-30000", (77, "bound_depth"))
def _(repo: Repo) -> None:
    _levels(repo, 30000)


@case(BOMBS, "levels-2000-allowed", arguments=["--max-depth", "3000"])
def _(repo: Repo) -> None:
    _levels(repo, 2000)


@case(BOMBS, "levels-at-the-bound")
def _(repo: Repo) -> None:
    _levels(repo, 256)


@case(BOMBS, "levels-one-too-many", (77, "bound_depth"))
def _(repo: Repo) -> None:
    _levels(repo, 257)


def _wide(repo: Repo, count: int) -> None:
    oid = repo.blob(b"x")
    repo.set_head(
        repo.commit(
            repo.add(b"tree", tree_body((b"100644", b"%06d" % number, oid) for number in range(count)))
        )
    )


@case(BOMBS, "entries-60000", (77, "bound_entries"), arguments=["--max-entries", "20000"])
def _(repo: Repo) -> None:
    _wide(repo, 60000)


@case(
    BOMBS,
    "entries-300000-tree-too-large",
    (77, "bound_object_bytes"),
    arguments=["--max-object-bytes", "1000000"],
)
def _(repo: Repo) -> None:
    _wide(repo, 300000)


@case(BOMBS, "entries-at-the-bound", arguments=["--max-entries", "2000"])
def _(repo: Repo) -> None:
    _wide(repo, 2000)
    repo.content = {b"%06d" % number: ("100644", b"x") for number in range(2000)}


@case(BOMBS, "entries-one-too-many", (77, "bound_entries"), arguments=["--max-entries", "1999"])
def _(repo: Repo) -> None:
    _wide(repo, 2000)


@case(BOMBS, "zlib-600-mebibytes", (77, "bound_object_bytes"))
def _(repo: Repo) -> None:
    oid = "ab" * 20
    repo.write_loose(oid, zero_bomb(b"blob %d\0" % (600 << 20), 600))
    repo.single(oid)


@case(BOMBS, "zlib-600-mebibytes-oversize", arguments=["--max-blob-bytes", "1000"])
def _(repo: Repo) -> None:
    oid = "ab" * 20
    repo.write_loose(oid, zero_bomb(b"blob %d\0" % (600 << 20), 600))
    repo.single(oid)
    repo.content = {}
    repo.report["oversize_paths"] = ["f"]


@case(BOMBS, "zlib-600-mebibytes-said-to-be-small", *BLOB_BAD)
def _(repo: Repo) -> None:
    oid = "ab" * 20
    repo.write_loose(oid, zero_bomb(b"blob 10\0", 600))
    repo.single(oid)


@case(BOMBS, "zlib-600-mebibytes-without-a-header", *BLOB_BAD)
def _(repo: Repo) -> None:
    oid = "ab" * 20
    repo.write_loose(oid, zero_bomb(b"", 600))
    repo.single(oid)


@case(BOMBS, "zlib-600-mebibytes-as-commit", (77, "bound_object_bytes"))
def _(repo: Repo) -> None:
    oid = "ab" * 20
    repo.write_loose(oid, zero_bomb(b"commit %d\0" % (600 << 20), 600))
    repo.set_head(oid)


@case(BOMBS, "zlib-600-mebibytes-as-tree", (77, "bound_object_bytes"))
def _(repo: Repo) -> None:
    oid = "ab" * 20
    repo.write_loose(oid, zero_bomb(b"tree %d\0" % (600 << 20), 600))
    repo.set_head(repo.commit(oid))


@case(BOMBS, "zlib-in-pack", (77, "bound_object_bytes"))
def _(repo: Repo) -> None:
    items, _ = _plain_pack_objects(repo)
    items[2].size = 600 << 20
    items[2].stream = zero_bomb(b"", 600)
    repo.pack(items)


@case(BOMBS, "zlib-in-pack-said-to-be-small", *ANY_BAD)
def _(repo: Repo) -> None:
    items, _ = _plain_pack_objects(repo)
    items[2].stream = zero_bomb(b"", 600)
    repo.pack(items)


@case(BOMBS, "delta-expands", (77, "bound_object_bytes"))
def _(repo: Repo) -> None:
    """A delta of a few kilobytes that makes 50 GB out of a base of 16 MB."""
    items, oid = _plain_pack_objects(repo)
    size = (1 << 24) - 1
    base = PackObject("cd" * 20, 3, b"", size=size, stream=zero_bomb(b"", 16))
    body = delta(size, size * 3000, *([copy_op(0, size)] * 3000))
    repo.pack([*items[:2], base, PackObject(oid, 7, body, bytes.fromhex("cd" * 20))])


@case(BOMBS, "total-bytes", (77, "bound_total_bytes"), arguments=["--max-total-bytes", "100"])
def _(repo: Repo) -> None:
    pass


@case(
    BOMBS,
    "total-bytes-many-names-of-one-blob",
    OK,
    (77, "bound_total_bytes"),
    arguments=["--max-total-bytes", "3000000"],
)
def _(repo: Repo) -> None:
    """One blob of a megabyte under two hundred names: two hundred megabytes for whoever does not notice."""
    data = bytes(1 << 20)
    oid = repo.blob(data)
    repo.commit_entries(*((b"100644", b"%04d" % number, oid) for number in range(200)))
    repo.content = {b"%04d" % number: ("100644", data) for number in range(200)}


@case(BOMBS, "link-target-too-large", arguments=["--max-object-bytes", "1000"])
def _(repo: Repo) -> None:
    repo.single(repo.blob(b"t" * 5000), mode=b"120000")
    repo.content = {}
    repo.report["nonregular_paths"] = ["f"]


@case(
    BOMBS, "commit-message-too-large", (77, "bound_object_bytes"), arguments=["--max-object-bytes", "100000"]
)
def _(repo: Repo) -> None:
    repo.set_head(repo.commit(repo.rev("HEAD^{tree}"), message=b"m" * 200000))


@case(BOMBS, "history-long-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    tree = object_id(b"tree", b"")
    items = [PackObject(tree, 2, b"")]
    parent: tuple[str, ...] = ()
    for number in range(3000):
        body = commit_body(tree, parent, b"%d\n" % number)
        items.append(PackObject(object_id(b"commit", body), 1, body))
        parent = (items[-1].oid,)
    repo.set_head(items[-1].oid)
    repo.pack(items)
    repo.content = {}
    repo.report["ancestors"] = 2999


@case(BOMBS, "history-diamonds-deep", arguments=["--deep"])
def _(repo: Repo) -> None:
    """Two parents at each of 200 steps: 2**200 paths for a walk that does not remember."""
    tree = repo.tree()
    left = right = repo.commit(tree, message=b"root\n")
    total = 1
    for number in range(200):
        parents = tuple(dict.fromkeys((left, right)))
        left = repo.commit(tree, *parents, message=b"l%d\n" % number)
        right = repo.commit(tree, *parents, message=b"r%d\n" % number)
        total += 2
    repo.set_head(repo.commit(tree, left, right))
    repo.content = {}
    repo.report["ancestors"] = total


@case(BOMBS, "pack-sparse-terabyte", OK, (77, "bound_store_bytes"), *ANY_BAD, *UNUSABLE)
def _(repo: Repo) -> None:
    items, _ = _plain_pack_objects(repo)
    stem = repo.pack(items)
    with stem.with_suffix(".pack").open("r+b") as out:
        out.truncate(1 << 40)


@case(
    BOMBS,
    "idx-sparse-gigabytes",
    OK,
    (77, "bound_store_bytes"),
    (1, "head_commit_missing"),
    *UNUSABLE,
    *ANY_BAD,
    *ABSENT,
)
def _(repo: Repo) -> None:
    items, _ = _plain_pack_objects(repo)
    stem = repo.pack(items)
    with stem.with_suffix(".idx").open("r+b") as out:
        out.truncate(64 << 30)


@case(BOMBS, "packs-many", OK, (77, "bound_store_bytes"))
def _(repo: Repo) -> None:
    """700 packs: more files than a process may usually hold open."""
    items, _ = _plain_pack_objects(repo)
    for number in range(700):
        data = b"pack %d\n" % number
        repo.pack([PackObject(object_id(b"blob", data), 3, data)], name=f"pack-{number:040x}")
    repo.pack(items)


@case(BOMBS, "deadline", (77, "deadline"), arguments=["--deadline", "0"])
def _(repo: Repo) -> None:
    pass


# environment ---------------------------------------------------------------------------------------------------

ENVIRONMENT = "environment"

PLANTED_ENVIRONMENT: dict[str, dict[str, str]] = {
    "git-dir": {"GIT_DIR": "{o}/other/.git", "GIT_WORK_TREE": "{o}/other", "GIT_COMMON_DIR": "{o}/other/.git"},
    "index": {"GIT_INDEX_FILE": "{o}/index", "GIT_PREFIX": "x/", "GIT_NAMESPACE": "evil"},
    "trace": dict.fromkeys(("GIT_TRACE", "GIT_TRACE_SETUP", "GIT_TRACE_PACK_ACCESS", "GIT_TRACE_PACKFILE", "GIT_TRACE_PERFORMANCE", "GIT_TRACE_REFS", "GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE2_PERF", "GIT_REDIRECT_STDOUT", "GIT_REDIRECT_STDERR"), "{c}"),
    "exec-path": {"GIT_EXEC_PATH": "{o}/exec", "GIT_TEMPLATE_DIR": "{o}/exec"},
    "config-parameters": {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "{p}",
        "GIT_CONFIG_KEY_1": "core.pager",
        "GIT_CONFIG_VALUE_1": "{p}",
        "GIT_CONFIG_PARAMETERS": "'core.pager'='{p}'",
    },
    "config-broken": {"GIT_CONFIG_COUNT": "nonsense", "GIT_CONFIG": "{o}/none"},
    "programs": dict.fromkeys(("GIT_SSH_COMMAND", "GIT_PAGER", "PAGER", "LESSOPEN", "GIT_EDITOR", "EDITOR", "VISUAL", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "BASH_ENV", "ENV"), "{p}"),
    "shallow-file": {"GIT_SHALLOW_FILE": "{o}/shallow"},
    "quarantine": {"GIT_QUARANTINE_PATH": "{o}", "GIT_NO_REPLACE_OBJECTS": "0"},
    "literal": {"GIT_LITERAL_PATHSPECS": "1", "GIT_FLUSH": "1", "GIT_ATTR_SOURCE": "HEAD", "GIT_TEST_GIT_OPEN_CLOEXEC": "1"},
    "python": {"PYTHONPATH": "{o}/python", "PYTHONSTARTUP": "{o}/python/os.py", "PYTHONHOME": "{o}/python"},
}  # fmt: skip


@each(ENVIRONMENT, "inherited", dict(PLANTED_ENVIRONMENT), arguments=["--deep"])
def _(repo: Repo, values: object) -> None:
    program = repo.program()
    for folder, names in (
        ("exec", ("git-cat-file", "cat-file", "git")),
        ("python", ("os.py", "json.py", "zlib.py")),
    ):
        (repo.outside / folder).mkdir()
        for name in names:
            shutil.copy(program, repo.outside / folder / name)
    (repo.outside / "shallow").write_text(repo.rev("HEAD") + "\n")
    (repo.outside / "other").mkdir()
    shutil.copytree(repo.dir, repo.outside / "other/.git")
    (repo.outside / "other/.git/refs/heads/main").write_text(forged_commit(repo) + "\n")
    assert isinstance(values, dict)
    repo.environment.update(
        {key: value.format(o=repo.outside, p=program, c=repo.canary) for key, value in values.items()}
    )
    repo.report["ancestors"] = 1


# moving target -------------------------------------------------------------------------------------------------

MOVING = "moving target"


@case(MOVING, "lock-files", OK, (77, "not_quiescent"))
def _(repo: Repo) -> None:
    for name in (
        "HEAD.lock",
        "index.lock",
        "packed-refs.lock",
        "config.lock",
        "shallow.lock",
        "refs/heads/main.lock",
    ):
        (repo.dir / name).write_text(forged_commit(repo) + "\n")


@case(MOVING, "gc-under-way", OK, (77, "not_quiescent"))
def _(repo: Repo) -> None:
    repo.repack()
    (repo.dir / "gc.pid").write_text("1 host\n")
    (repo.objects / "pack/tmp_pack_XXXX").write_bytes(b"PACK\0\0\0\2")
    (repo.objects / "pack/.tmp-1-pack-ab.pack").write_bytes(b"PACK\0\0\0\2")


# --- observing -------------------------------------------------------------------------------------------------


def snapshot(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything about the files under `root` that a reader must leave alone; reading times are not compared."""
    found: dict[str, tuple[object, ...]] = {}
    pending = [os.fsencode(root)]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                found[os.fsdecode(entry.path)] = (
                    info.st_mode, info.st_ino, info.st_nlink, info.st_uid, info.st_size, info.st_mtime_ns, info.st_ctime_ns,
                )  # fmt: skip
                if stat.S_ISDIR(info.st_mode):
                    pending.append(entry.path)
    return found


def quick_folder() -> Iterator[Path]:
    """A folder that is removed at the end; in memory where there is such a place, for the many small files."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="oakledger-test-", dir=base))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
