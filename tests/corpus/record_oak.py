"""Records real Oak databases, with the facts that a reader must find in them.

Every item is made by driving the real client (offline, or against its own server on the loopback
address), and every fact comes from what this script itself wrote into the work tree or from what the
client printed, never from the reader under test. So a reader can be held to the facts. (One kind of fact
is asked of the commits table: which parents are absent.) Items whose rows were changed after recording
say so in `notes.edited`.

Run as `python tests/corpus/record_oak.py [--client VERSION=PATH ...] [--only ITEM ...]`; it writes
`tests/data/oak/ITEM/facts.json` and the store, compressed. Clients are looked for in
`${XDG_CACHE_HOME:-~/.cache}/oakledger/oak-VERSION/bin/oak`, where `.ci/provide-oak` puts the pinned one.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import getpass
import hashlib
import json
import lzma
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PINNED = "0.108.0"
PINNED_MIGRATION = "0014_change_captures"
LEGACY = "0.94.0"  # newest migration 0004: raw blobs, trees as rows of tree_entries
OLDER = "0.102.1"  # newest migration 0010: compressed blobs and trees
NEWER = "0.109.0"  # newest migration 0016
AUTHOR = "Ada <ada@example.com>"
DATA = Path(__file__).resolve().parent.parent / "data" / "oak"

# What of a store is kept; oak.db-shm is rebuilt by SQLite and says nothing.
STORE_FILES = ("oak.db", "oak.db-wal", "oak.db-journal", "CLONE_IN_PROGRESS")

REGULAR, EXECUTABLE, LINK = "100644", "100755", "120000"


class RecordingError(Exception):
    """The client did something else than the recipe expects; the message has its output."""


@dataclass(frozen=True)
class File:
    """One committed file: Git-style mode and content (for a link its target bytes)."""

    content: bytes
    mode: str = REGULAR


Tree = dict[str, File]


@dataclass
class Read:
    """One way to read an item, and the exit status and reason that the reader must answer with."""

    options: list[str] = field(default_factory=list)
    exit: int = 0
    reason: str | None = None
    entries: list[str] | None = None  # paths expected as entries; None: all files of the item
    fields: dict[str, Any] = field(default_factory=dict)  # further report fields, exactly


@dataclass
class Item:
    """A recorded store and the facts about it."""

    name: str
    about: str
    store: Path  # the directory that holds oak.db
    files: Tree
    head: str | None
    branch: str | None
    versions: list[str]
    commands: list[str]
    reads: list[Read]
    inspection: dict[str, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def clean_environment(home: Path) -> dict[str, str]:
    """Environment for the client and for git: nothing of the caller's but where programs are."""
    return {
        "HOME": str(home),
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "NO_COLOR": "1",
        "OAK_AUTHOR": AUTHOR,
        "OAK_NO_UPDATE_CHECK": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.com",
        "GIT_COMMITTER_NAME": "Ada",
        "GIT_COMMITTER_EMAIL": "ada@example.com",
        "GIT_AUTHOR_DATE": "2026-07-04T08:25:15+02:00",
        "GIT_COMMITTER_DATE": "2026-07-04T08:25:15+02:00",
    }


class Bench:
    """One empty directory with an empty home, the clients, and a log of what was run in it."""

    def __init__(self, root: Path, clients: dict[str, Path]) -> None:
        self.root = root
        self.clients = clients
        self.home = root / "home"
        self.home.mkdir()
        self.log: list[str] = []
        self.used: list[str] = []
        self.version = PINNED

    def env(self) -> dict[str, str]:
        return clean_environment(self.home)

    def words(self, program: str, arguments: Sequence[str], cwd: Path) -> str:
        where = cwd.relative_to(self.root).as_posix()
        text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", " ".join([program, *arguments]))
        return f"({where}) {text}"

    def program(self, version: str | None = None) -> str:
        version = version or self.version
        if version not in self.used:
            self.used.append(version)
        return str(self.clients[version])

    def oak(
        self,
        cwd: Path,
        *arguments: str,
        version: str | None = None,
        ok: Sequence[int] = (0,),
        quiet: bool = False,
    ) -> str:
        """Standard output of one client command; its exit status must be in `ok`."""
        if not quiet:
            self.log.append(self.words(f"oak[{version or self.version}]", arguments, cwd))
        return self.run([self.program(version), *arguments], cwd, ok)

    def git(self, cwd: Path, *arguments: str) -> str:
        self.log.append(self.words("git", arguments, cwd))
        return self.run(["git", *arguments], cwd, (0,))

    def run(self, command: list[str], cwd: Path, ok: Sequence[int]) -> str:
        done = subprocess.run(
            command, cwd=cwd, env=self.env(), stdin=subprocess.DEVNULL, capture_output=True, timeout=120
        )
        if done.returncode not in ok:
            raise RecordingError(
                f"{' '.join(command)} exited {done.returncode}: "
                f"{done.stdout.decode(errors='replace')}{done.stderr.decode(errors='replace')}"
            )
        return done.stdout.decode()

    def new(self, name: str) -> Path:
        """An empty work tree with a fresh repository."""
        tree = self.root / name
        tree.mkdir()
        self.oak(tree, "init")
        return tree

    def commit(self, tree: Path) -> str:
        """Commits everything and returns the hash that the client reports."""
        if self.version == LEGACY:  # has no --json and prints twelve digits
            self.oak(tree, "commit")
            return self.head(tree)
        answer = json.loads(self.oak(tree, "commit", "--json"))
        if not answer.get("committed"):
            raise RecordingError(f"nothing was committed: {answer}")
        return str(answer["head_after"])

    def head(self, tree: Path, version: str | None = None) -> str:
        return self.oak(tree, "hash", version=version, quiet=True).strip()

    def branch(self, tree: Path) -> str | None:
        for line in self.oak(tree, "branch", quiet=True).splitlines():
            if line.startswith("* "):
                name = line[2:].split(" ", 1)[0]
                return None if name.startswith("(") else name
        return None

    @contextlib.contextmanager
    def server(self, name: str, version: str | None = None) -> Iterator[str]:
        """The client's own server on a free loopback port, for as long as the context lasts."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        store = self.root / name
        self.log.append(f"(.) oak[{version or self.version}] serve --dir {name} --port PORT")
        process = subprocess.Popen(
            [self.program(version), "serve", "--dir", str(store), "--port", str(port)],
            cwd=self.root,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 30
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RecordingError("the server did not start")
                time.sleep(0.02)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def inspect(self, tree: Path, version: str | None = None) -> dict[str, Any]:
        """The client's own account of HEAD: a second opinion on every digest."""
        text = self.oak(
            tree, "tree", "inspect", "--at", "HEAD", "--json", version=version, ok=(0, 1), quiet=True
        )
        return dict(json.loads(text)["evidence"])


def write(tree: Path, files: Tree) -> None:
    """Writes files into a work tree, replacing what is there."""
    for path, file in files.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or target.exists():
            target.unlink()
        if file.mode == LINK:
            os.symlink(file.content, os.fsencode(target))
        else:
            target.write_bytes(file.content)
            target.chmod(0o755 if file.mode == EXECUTABLE else 0o644)


def noise(size: int, seed: str = "noise") -> bytes:
    """Bytes that no compressor shrinks, the same on every machine."""
    return hashlib.shake_256(seed.encode()).digest(size)


def prose(size: int) -> bytes:
    """Text that compresses well but never repeats exactly, so that chunk boundaries appear in it."""
    lines: list[bytes] = []
    total = 0
    number = 0
    while total < size:
        line = b"%08d the quick brown fox %s\n" % (
            number,
            hashlib.sha256(b"%d" % (number // 64)).hexdigest()[:8].encode(),
        )
        lines.append(line)
        total += len(line)
        number += 1
    return b"".join(lines)[:size]


BASIC: Tree = {
    "hello.txt": File(b"hello\n"),
    "dir/inner.txt": File(b"inner\n"),
    "run.sh": File(b"#!/bin/sh\necho hi\n", EXECUTABLE),
    "link": File(b"hello.txt", LINK),
    "repeated.txt": File(b"hello\n" * 100),
}


def shapes() -> Tree:
    """Names, modes and sizes at the edges of what the scanner takes."""
    files: Tree = {
        "empty": File(b""),
        "empty-executable": File(b"", EXECUTABLE),
        "with space.txt": File(b"space\n"),
        " leading and trailing ": File(b"spaces\n"),
        "-dash": File(b"dash\n"),
        "Z": File(b"order\n"),
        "a-b": File(b"order\n"),
        "a/x": File(b"order\n"),
        "a.txt": File(b"order\n"),
        "é-nfc": File("é".encode()),
        "ｗｉｄｅ": File(b"wide\n"),
        "Ａ": File(b"order\n"),
        "😀/🎉 party.txt": File("🎉\n".encode()),
        "日本語/ファイル.txt": File("内容\n".encode()),
        "crlf.txt": File(b"one\r\ntwo\r\n"),
        "nul.bin": File(b"a\0b\0c"),
        "not-utf8.bin": File(bytes(range(256))),
        "quote\"and'.txt": File(b"quotes\n"),
        "glob*[x]?.txt": File(b"glob\n"),
        "trailing.dot.": File(b"dot\n"),
        "name-" + "n" * 200: File(b"long name\n"),
        "links/to-file": File(b"../a.txt", LINK),
        "links/to-directory": File(b"../a", LINK),
        "links/dangling": File(b"nowhere/at all", LINK),
        "links/absolute": File(b"/nonexistent/target", LINK),
        "links/not-utf8": File(b"caf\xe9", LINK),
        "links/unicode": File("日本語".encode(), LINK),
        "tool": File(b"#!/bin/sh\nexit 0\n", EXECUTABLE),
        ".hidden/.config": File(b"hidden\n"),
        "/".join(f"d{level}" for level in range(60)) + "/bottom.txt": File(b"deep\n"),
        # The same bytes in several places, as file and as link target, are one blob.
        "same/one": File(b"../a.txt"),
        "same/two": File(b"../a.txt", EXECUTABLE),
    }
    for number in range(600):
        files[f"many/{number % 12:02d}/{number % 7}/file{number:04d}.txt"] = File(
            b"file %d\n" % number * (number % 5 + 1)
        )
    return files


def linear(bench: Bench, name: str = "repo") -> tuple[Path, list[str], list[Tree]]:
    """Three commits on the first branch; the hashes and the trees after each."""
    tree = bench.new(name)
    states: list[Tree] = []
    heads: list[str] = []
    state: Tree = {}
    for step in (
        BASIC,
        {
            "hello.txt": File(b"hello again\n"),
            "second.txt": File(b"second\n"),
            "tool": File(b"tool\n", EXECUTABLE),
        },
        {"dir/third.txt": File(b"third\n"), "run.sh": File(b"#!/bin/sh\necho hi\n")},
    ):
        write(tree, step)
        state = {**state, **step}
        heads.append(bench.commit(tree))
        states.append(dict(state))
    return tree, heads, states


READ_ALL = [Read(), Read(["--deep"])]


def finish(
    bench: Bench,
    name: str,
    about: str,
    tree: Path,
    files: Tree,
    *,
    reads: list[Read] | None = None,
    head: str | None = "ask",
    inspect: bool = True,
    notes: dict[str, Any] | None = None,
) -> Item:
    """The facts of a finished work tree; asks the client for HEAD, the branch and its own inspection."""
    branch = bench.branch(tree) if head == "ask" else None
    return Item(
        name=name,
        about=about,
        store=tree / ".oak",
        files=files,
        head=bench.head(tree) if head == "ask" else head,
        branch=branch,
        versions=list(bench.used),
        commands=list(bench.log),
        reads=reads if reads is not None else list(READ_ALL),
        inspection=bench.inspect(tree) if inspect else None,
        notes=notes or {},
    )


# ---------------------------------------------------------------- recipes


def init_only(bench: Bench) -> Item:
    tree = bench.new("repo")
    write(tree, BASIC)
    return finish(
        bench,
        "init_only",
        "initialised, files in the work tree, nothing committed",
        tree,
        {},
        reads=[
            Read(exit=1, reason="no_committed_head"),
            Read(["--deep"], exit=1, reason="no_committed_head"),
        ],
        head=None,
        inspect=False,
    )


def one_commit(bench: Bench) -> Item:
    tree = bench.new("repo")
    write(tree, BASIC)
    head = bench.commit(tree)
    # What is not committed must not be seen.
    write(tree, {"hello.txt": File(b"changed, not committed\n"), "uncommitted.txt": File(b"no\n")})
    item = finish(bench, "one_commit", "one commit, then changes that were not committed", tree, BASIC)
    assert item.head == head
    return item


def three_commits(bench: Bench) -> Item:
    tree, heads, states = linear(bench)
    return finish(
        bench,
        "three_commits",
        "a line of three commits",
        tree,
        states[-1],
        reads=[
            Read(),
            Read(["--deep"], fields={"shallow_boundary": []}),
            Read(["--path", "second.txt"], entries=["second.txt"]),
        ],
        notes={"history": heads},
    )


def tree_shapes(bench: Bench) -> Item:
    files = shapes()
    tree = bench.new("repo")
    write(tree, files)
    (tree / "empty-directory").mkdir()
    bench.commit(tree)
    links = sorted(path for path, file in files.items() if file.mode == LINK)
    return finish(
        bench,
        "tree_shapes",
        "600 small files, 60 directories deep, odd names, links, executables, empty files",
        tree,
        files,
        reads=[
            Read(fields={"nonregular_paths": links, "missing_paths": []}),
            Read(["--deep"]),
            Read(
                ["--path", "many", "--path", "tool", "--path", "absent/x"],
                entries=["tool"],
                fields={"nonregular_paths": ["many"], "missing_paths": ["absent/x"]},
            ),
            Read(["--max-depth", "60"], exit=77, reason="bound_depth"),
            Read(["--max-depth", "61"]),
            Read(["--max-entries", "100"], exit=77, reason="bound_entries"),
        ],
    )


def big_files(bench: Bench) -> Item:
    files: Tree = {
        "noise.bin": File(noise(1_200_000)),
        "prose.txt": File(prose(3_000_000)),
        "zeros.bin": File(bytes(2_500_000)),
        "page.bin": File(noise(4096, "page")),
        "block.bin": File(prose(131_072 + 1)),
    }
    tree = bench.new("repo")
    write(tree, files)
    bench.commit(tree)
    total = sum(len(file.content) for file in files.values())
    return finish(
        bench,
        "big_files",
        "over 1 MiB: bytes that do not compress, text, zeros",
        tree,
        files,
        reads=[
            Read(),
            Read(["--deep"]),
            Read(["--path", "page.bin"], entries=["page.bin"]),
            Read(["--max-object-bytes", "2999999"], exit=77, reason="bound_object_bytes"),
            Read(["--max-object-bytes", "3000000"]),
            Read(["--max-total-bytes", str(total // 2)], exit=77, reason="bound_total_bytes"),
            Read(
                ["--path", "zeros.bin", "--path", "page.bin", "--max-blob-bytes", "2499999"],
                entries=["page.bin", "zeros.bin"],
                fields={"oversize_paths": ["zeros.bin"]},
            ),
            Read(
                ["--path", "zeros.bin", "--max-blob-bytes", "2500000"],
                entries=["zeros.bin"],
                fields={"oversize_paths": []},
            ),
        ],
    )


def colliding(bench: Bench) -> Item:
    files: Tree = {
        "README": File(b"upper\n"),
        "readme": File(b"lower\n"),
        "caf\u00e9": File(b"nfc\n"),
        "cafe\u0301": File(b"nfd\n"),
        "Dir/x": File(b"one\n"),
        "dir/x": File(b"two\n"),
        "plain": File(b"plain\n"),
    }
    tree = bench.new("repo")
    write(tree, files)
    bench.commit(tree)
    return finish(
        bench,
        "colliding",
        "names that are one on file systems that fold case or normalise",
        tree,
        files,
        reads=[
            Read(
                fields={
                    "colliding_paths": [
                        ["Dir/x", "dir/x"],
                        ["README", "readme"],
                        ["cafe\u0301", "caf\u00e9"],
                    ],
                    "unsafe_paths": [],
                }
            ),
            Read(
                ["--path", "README", "--path", "plain"],
                entries=["README", "plain"],
                fields={"colliding_paths": []},
            ),
        ],
        notes={"materialise": "unsafe_path"},
    )


def lossy_name(bench: Bench) -> Item:
    tree = bench.new("repo")
    with open(os.path.join(os.fsencode(tree), b"caf\xe9.txt"), "wb") as stream:
        stream.write(b"latin\n")
    write(tree, {"plain": File(b"plain\n")})
    bench.commit(tree)
    files: Tree = {"caf\ufffd.txt": File(b"latin\n"), "plain": File(b"plain\n")}
    return finish(bench, "lossy_name", "a file name that is not UTF-8 is recorded with U+FFFD", tree, files)


def tracked_oak_files(bench: Bench) -> Item:
    tree = bench.new("repo")
    files: Tree = {
        ".oak/attributes": File(b"*.bin binary\n"),
        ".oak/workflows/ci.yml": File(b"name: ci\n"),
        "x": File(b"x\n"),
    }
    write(tree, files)
    write(
        tree,
        {
            "nested/.oak/attributes": File(b"ignored\n"),
            ".oak/other": File(b"ignored\n"),
            ".oak-branch": File(b"ignored\n"),
        },
    )
    bench.commit(tree)
    return finish(bench, "tracked_oak_files", "the two kinds of tracked files below .oak", tree, files)


def tracked_permissions(bench: Bench) -> Item:
    tree = bench.new("repo")
    files: Tree = {".oak/PERMISSIONS": File(b"# nobody\n"), "x": File(b"x\n")}
    write(tree, files)
    bench.commit(tree)
    return finish(
        bench,
        "tracked_permissions",
        "a file below .oak that newer clients track as well",
        tree,
        files,
        reads=[
            Read(fields={"unsafe_paths": [".oak/PERMISSIONS"]}),
            Read(["--path", "x"], entries=["x"], fields={"unsafe_paths": []}),
        ],
        notes={"materialise": "unsafe_path"},
    )


def branch_switch(bench: Bench) -> Item:
    tree, _, states = linear(bench)
    first = bench.branch(tree)
    bench.oak(tree, "switch", "-c", "side")
    write(tree, {"side.txt": File(b"side\n")})
    bench.commit(tree)
    assert first is not None
    bench.oak(tree, "switch", first)
    write(tree, {"after.txt": File(b"after\n")})
    bench.commit(tree)
    bench.oak(tree, "switch", "side")
    files = {**states[-1], "side.txt": File(b"side\n")}
    return finish(bench, "branch_switch", "two branches diverged; HEAD is on the second", tree, files)


def fresh_branch(bench: Bench) -> Item:
    tree, heads, states = linear(bench)
    bench.oak(tree, "switch", "-c", "fresh")
    item = finish(
        bench, "fresh_branch", "a branch that was just created and has no commit of its own", tree, states[-1]
    )
    assert item.head == heads[-1] and item.branch == "fresh"
    return item


def detached(bench: Bench) -> Item:
    tree, heads, states = linear(bench)
    bench.oak(tree, "switch", "-d", heads[1])
    item = finish(bench, "detached", "HEAD detached at the second of three commits", tree, states[1])
    assert item.head == heads[1]
    return item


def deleted_all(bench: Bench) -> Item:
    tree = bench.new("repo")
    write(tree, {"only": File(b"only\n")})
    bench.commit(tree)
    (tree / "only").unlink()
    bench.commit(tree)
    return finish(bench, "deleted_all", "the last commit deletes everything: an empty root tree", tree, {})


def renamed(bench: Bench) -> Item:
    tree, _, states = linear(bench)
    old = bench.branch(tree)
    assert old is not None
    bench.oak(tree, "branch", "rename", old, "renamed")
    refuse = [
        Read(options, exit=77, reason="commit_header_not_reproducible")
        for options in ([], ["--deep"], ["--path", "second.txt"])
    ]
    return finish(bench, "renamed", "a branch renamed after committing", tree, states[-1], reads=refuse)


def renamed_then_committed(bench: Bench) -> Item:
    tree, _, states = linear(bench)
    old = bench.branch(tree)
    assert old is not None
    bench.oak(tree, "branch", "rename", old, "renamed")
    write(tree, {"fourth.txt": File(b"fourth\n")})
    bench.commit(tree)
    files = {**states[-1], "fourth.txt": File(b"fourth\n")}
    reads = [Read(), Read(["--deep"], exit=77, reason="commit_header_not_reproducible")]
    return finish(
        bench, "renamed_then_committed", "a commit after the branch was renamed", tree, files, reads=reads
    )


def compacted(bench: Bench) -> Item:
    tree, _, states = linear(bench)
    bench.oak(tree, "maintenance", "compact")
    return finish(bench, "compacted", "storage compacted: no tree_entries table", tree, states[-1])


def git_import(bench: Bench) -> Item:
    source = bench.root / "source"
    source.mkdir()
    base: Tree = {**BASIC, "shared.txt": File(b"one\ntwo\nthree\n")}
    bench.git(source, "init", "-q", "-b", "main")
    write(source, base)
    bench.git(source, "add", "-A")
    bench.git(source, "commit", "-q", "-m", "First\n\nwith a body")
    bench.git(source, "switch", "-q", "-c", "topic")
    write(source, {"topic.txt": File(b"topic\n")})
    bench.git(source, "add", "-A")
    bench.git(source, "commit", "-q", "-m", "Topic")
    bench.git(source, "switch", "-q", "main")
    write(source, {"main.txt": File(b"main\n")})
    bench.git(source, "add", "-A")
    bench.git(source, "commit", "-q", "-m", "Main")
    bench.git(source, "merge", "-q", "--no-ff", "-m", "Merge topic", "topic")
    bench.git(bench.root, "clone", "-q", "--bare", "source", "source.git")
    bench.oak(bench.root, "clone", "source.git", "imported")
    files = {**base, "topic.txt": File(b"topic\n"), "main.txt": File(b"main\n")}
    return finish(
        bench,
        "git_import",
        "a Git history with a two-parent commit, imported",
        bench.root / "imported",
        files,
        reads=[Read(), Read(["--deep"], fields={"shallow_boundary": []})],
    )


WIDGET: Tree = {
    **BASIC,
    "src/app.txt": File(b"app\n"),
    "src/empty": File(b""),
    "assets/prose.txt": File(prose(1_400_000)),
    "docs/guide.txt": File(b"guide\n" * 200),
}


def land(bench: Bench, tree: Path, url: str, description: str) -> None:
    """Pushes the current branch and has the server merge it into `main`."""
    bench.oak(tree, "push", "-r", url, "--repo", "acme/widget")
    bench.oak(tree, "desc", description)
    bench.oak(tree, "merge", "--json")


@contextlib.contextmanager
def published(bench: Bench) -> Iterator[tuple[Path, str, Tree]]:
    """A repository with two commits, pushed to a running server and merged into its `main`."""
    tree = bench.new("repo")
    write(tree, WIDGET)
    bench.commit(tree)
    write(tree, {"src/app.txt": File(b"app, second\n")})
    bench.commit(tree)
    state = {**WIDGET, "src/app.txt": File(b"app, second\n")}
    with bench.server("served") as url:
        land(bench, tree, url, "Add the widget\n\nIn two paragraphs.")
        yield tree, url, state


def clone(bench: Bench, url: str, name: str, *options: str) -> Path:
    bench.oak(bench.root, "clone", "acme/widget", name, "-r", url, *options)
    return bench.root / name


def pushed(bench: Bench) -> Item:
    with published(bench) as (tree, _, state):
        pass
    return finish(bench, "pushed", "a repository after push and merge on the server", tree, state)


def captured(bench: Bench) -> Item:
    with published(bench) as (tree, _, state):
        write(tree, {"pending.txt": File(b"pending\n")})
        bench.oak(tree, "change", "capture", "--json")
    return finish(bench, "captured", "uncommitted changes kept with `oak change capture`", tree, state)


def with_boundary(tree: Path) -> list[Read]:
    """A plain and a deep read of a store whose history is cut."""
    boundary = absent_parents(tree)
    return [Read(), Read(["--deep", "--complete"], fields={"shallow_boundary": boundary})]


def cloned(bench: Bench) -> Item:
    with published(bench) as (_, url, state):
        tree = clone(bench, url, "clone")
    reads = with_boundary(tree)
    return finish(bench, "cloned", "a full clone: blobs and chunks", tree, state, reads=reads)


def cloned_detached(bench: Bench) -> Item:
    with published(bench) as (_, url, state):
        tree = clone(bench, url, "clone", "--detached")
    about = "a read-only clone: HEAD detached at the server's main"
    return finish(bench, "cloned_detached", about, tree, state, reads=with_boundary(tree))


def shallow(bench: Bench) -> Item:
    """Two merges into main, so that the parent of HEAD on main is cut off as well."""
    with published(bench) as (one, url, state):
        write(one, {"second.txt": File(b"second\n")})
        bench.commit(one)
        land(bench, one, url, "Second")
        tree = clone(bench, url, "clone", "--shallow")
    reads = with_boundary(tree)
    if len(absent_parents(tree)) != 2:
        raise RecordingError("a shallow clone should lack both parents of HEAD")
    files = {**state, "second.txt": File(b"second\n")}
    return finish(
        bench, "shallow", "a shallow clone: both parents of HEAD are absent", tree, files, reads=reads
    )


CHUNKED: Tree = {
    # At 10 MiB and above a file is cut by its content; below, it travels as one chunk.
    "mixed.bin": File(noise(200_000, "chunked-0") * 53),
    "zeros.bin": File(bytes(1_000_000)),
    "small.txt": File(b"small\n"),
    "empty": File(b""),
    "tool": File(b"#!/bin/sh\nexit 0\n", EXECUTABLE),
    "link": File(b"small.txt", LINK),
}


def clone_chunked(bench: Bench) -> Path:
    tree = bench.new("repo")
    write(tree, CHUNKED)
    bench.commit(tree)
    with bench.server("served") as url:
        land(bench, tree, url, "Files of several chunks")
        return clone(bench, url, "clone")


def chunked(bench: Bench) -> Item:
    tree = clone_chunked(bench)
    with contextlib.closing(sqlite3.connect(tree / ".oak/oak.db")) as database:
        most = database.execute("SELECT max(chunk_index) FROM blob_chunks").fetchone()[0]
    if most < 2:
        raise RecordingError("no blob has several chunks")
    return finish(
        bench, "chunked", "a clone with blobs of several chunks", tree, CHUNKED, reads=with_boundary(tree)
    )


def chunks_only(bench: Bench) -> Item:
    """Blobs left to their chunks alone, as a store can be whose blob rows were never filled."""
    tree = clone_chunked(bench)
    edit = "DELETE FROM blobs"
    with contextlib.closing(sqlite3.connect(tree / ".oak/oak.db")) as database, database:
        database.execute(edit)
    many = sum(1 for file in CHUNKED.values() if file.content)
    return finish(
        bench,
        "chunks_only",
        "a clone whose blobs rows were deleted: only the chunks are left",
        tree,
        CHUNKED,
        reads=[
            Read(),
            Read(["--deep"]),
            Read(["--complete"]),
            Read(["--path", "mixed.bin"], entries=["mixed.bin"]),
        ],
        notes={"edited": edit, "chunked_blobs": many},
    )


def sparse(bench: Bench) -> Item:
    """The client's own server delivers all content whatever the cone is; only the work tree is sparse."""
    with published(bench) as (_, url, state):
        tree = clone(bench, url, "clone", "--path", "src")
    if sorted(path.name for path in tree.iterdir()) != [".oak", "src"]:
        raise RecordingError("the work tree is not sparse")
    reads = with_boundary(tree)
    return finish(
        bench, "sparse", "a sparse clone of src/ whose content is all there", tree, state, reads=reads
    )


def sparse_withheld(bench: Bench) -> Item:
    """A sparse clone without the content outside the cone, which a server that honours the cone withholds."""
    with published(bench) as (_, url, state):
        tree = clone(bench, url, "clone", "--path", "src")
    inside = [path for path in state if path.startswith("src/")]
    keep = {state[path].content for path in inside}
    outside = sorted(
        {file["blob"] for file in bench.inspect(tree)["files"] if state[file["path"]].content not in keep}
    )
    with contextlib.closing(sqlite3.connect(tree / ".oak/oak.db")) as database, database:
        for digest in outside:
            database.execute("DELETE FROM blobs WHERE hash = ?", (digest,))
            for (chunk,) in database.execute(
                "SELECT chunk_hash FROM blob_chunks WHERE blob_hash = ?", (digest,)
            ).fetchall():
                database.execute("DELETE FROM chunks WHERE hash = ?", (chunk,))
            database.execute("DELETE FROM blob_chunks WHERE blob_hash = ?", (digest,))
    absent = "content_absent_sparse"
    return finish(
        bench,
        "sparse_withheld",
        "a sparse clone of src/: the other blobs are absent",
        tree,
        state,
        reads=[
            Read(exit=77, reason=absent),
            Read(["--complete"], exit=3, reason=absent),
            Read(["--path", "src/app.txt", "--path", "src/empty"], entries=["src/app.txt", "src/empty"]),
            Read(["--path", "src/app.txt", "--complete"], entries=["src/app.txt"]),
            Read(["--path", "docs/guide.txt"], exit=77, reason=absent),
            Read(["--path", "docs/guide.txt", "--complete"], exit=3, reason=absent),
        ],
        notes={"edited": "rows of blobs, chunks and blob_chunks outside src/ were deleted"},
    )


def absent_parents(tree: Path) -> list[str]:
    """Parents that commits rows name and that have no row, from the database itself."""
    with contextlib.closing(sqlite3.connect(tree / ".oak/oak.db")) as database:
        rows = database.execute("SELECT hash, parent_hash, merge_parent_hash FROM commits").fetchall()
    present = {row[0] for row in rows}
    return sorted({parent for row in rows for parent in row[1:] if parent and parent not in present})


def pulled(bench: Bench) -> Item:
    """The first clone lands a change on main, the second (with a commit of its own) pulls it: two parents."""
    with published(bench) as (_, url, state):
        one = clone(bench, url, "one")
        two = clone(bench, url, "two")
        write(
            one,
            {
                "from-one.txt": File(b"one\n"),
                "assets/prose.txt": File(prose(1_200_000) + b"tail\n"),
            },
        )
        bench.commit(one)
        land(bench, one, url, "From one")
        write(two, {"from-two.txt": File(b"two\n")})
        bench.commit(two)
        bench.oak(two, "pull")
    files = {
        **state,
        "from-one.txt": File(b"one\n"),
        "assets/prose.txt": File(prose(1_200_000) + b"tail\n"),
        "from-two.txt": File(b"two\n"),
    }
    return finish(
        bench, "pulled", "diverged clones, the second pulled main: a commit with two parents", two, files
    )


def conflicting(bench: Bench) -> Item:
    """A pull that stopped at a conflict leaves HEAD where it was."""
    with published(bench) as (_, url, state):
        one = clone(bench, url, "one")
        two = clone(bench, url, "two")
        write(one, {"src/app.txt": File(b"app, by one\n")})
        bench.commit(one)
        land(bench, one, url, "From one")
        write(two, {"src/app.txt": File(b"app, by two\n")})
        head = bench.commit(two)
        bench.oak(two, "pull", ok=(5,))
    item = finish(
        bench,
        "conflicting",
        "a pull in progress, stopped at a conflict",
        two,
        {**state, "src/app.txt": File(b"app, by two\n")},
    )
    assert item.head == head
    return item


def served(bench: Bench) -> Item:
    """The server's own database, which has no current branch and no HEAD."""
    with published(bench):
        pass
    directory = bench.root / "server-copy"
    directory.mkdir()
    shutil.copy(bench.root / "served/acme/widget.oakdb", directory / "oak.db")
    return Item(
        "served",
        "the database of the loopback server",
        directory,
        {},
        None,
        None,
        list(bench.used),
        list(bench.log),
        [Read(exit=1, reason="no_committed_head")],
    )


def held_open(bench: Bench) -> Item:
    """Another program has the database open while a commit is made, so the commit stays in the WAL."""
    tree, heads, states = linear(bench)
    database = sqlite3.connect(tree / ".oak/oak.db")
    try:
        database.execute("BEGIN")
        database.execute("SELECT count(*) FROM commits").fetchone()
        write(tree, {"in-wal.txt": File(b"only in the WAL\n")})
        head = bench.commit(tree)
        store = bench.root / "copy"
        shutil.copytree(tree / ".oak", store)
    finally:
        database.close()
    if not (store / "oak.db-wal").stat().st_size:
        raise RecordingError("the WAL is empty")
    return Item(
        "held_open",
        "a commit whose rows are in the WAL, copied while another program had the database open",
        store,
        {**states[-1], "in-wal.txt": File(b"only in the WAL\n")},
        head,
        bench.branch(tree),
        list(bench.used),
        list(bench.log),
        [Read(exit=77, reason="not_quiescent"), Read(["--deep"], exit=77, reason="not_quiescent")],
        notes={"head_without_wal": heads[-1]},
    )


def interrupt(bench: Bench) -> tuple[Path, list[str], Tree, Tree]:
    """Kills a commit while the WAL holds something; returns the tree, the commits before, and both states."""
    tree, heads, states = linear(bench)
    new: Tree = {f"bulk/{number:04d}.txt": File(b"bulk %d\n" % number) for number in range(1500)}
    write(tree, new)
    wal = tree / ".oak/oak.db-wal"
    bench.log.append("(repo) oak commit, killed (SIGKILL) while the WAL was not empty")
    for _ in range(20):
        process = subprocess.Popen(
            [bench.program(), "commit"],
            cwd=tree,
            env=bench.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if wal.stat().st_size > 0:
                    process.kill()
                    break
        process.wait()
        if wal.exists() and wal.stat().st_size > 0:
            return tree, heads, states[-1], {**states[-1], **new}
        write(tree, {"bulk/again.txt": File(b"%d\n" % time.monotonic_ns())})
        new["bulk/again.txt"] = File((tree / "bulk/again.txt").read_bytes())
    raise RecordingError("the commit could not be interrupted in time")


def killed(bench: Bench) -> Item:
    tree, _, _, _ = interrupt(bench)
    return Item(
        "killed",
        "a commit was killed: the WAL is not empty",
        tree / ".oak",
        {},
        None,
        None,
        list(bench.used),
        list(bench.log),
        [Read(exit=77, reason="not_quiescent")],
    )


def recovered(bench: Bench) -> Item:
    tree, heads, before, after = interrupt(bench)
    bench.oak(tree, "status", "--json")
    head = bench.head(tree)
    files = before if head == heads[-1] else after
    return finish(bench, "recovered", "the client was started again after a killed commit", tree, files)


MARKER = "CLONE_IN_PROGRESS"


def applied_migrations(tree: Path) -> int:
    """How many migrations a store and its WAL record, counted in a copy so that the store stays as it is."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("oak.db", "oak.db-wal"):
            shutil.copy(tree / ".oak" / name, directory)
        with contextlib.closing(sqlite3.connect(Path(directory) / "oak.db")) as database:
            try:
                return int(database.execute("SELECT count(*) FROM schema_migrations").fetchone()[0])
            except sqlite3.OperationalError:
                return 0


def interrupt_clone(bench: Bench) -> Path:
    """Kills a clone after its schema is complete and before it has finished; returns the work tree."""
    source = bench.new("repo")
    write(
        source,
        {**WIDGET, **{f"bulk/{number:04d}.txt": File(b"bulk %d\n" % number) for number in range(2000)}},
    )
    bench.commit(source)
    with bench.server("served") as url:
        land(bench, source, url, "Bulk")
        bench.log.append("(.) oak clone acme/widget clone, killed (SIGKILL) while it fetched")
        for attempt in range(20):
            tree = bench.root / f"clone{attempt}"
            command = [bench.program(), "clone", "acme/widget", tree.name, "-r", url]
            process = subprocess.Popen(
                command,
                cwd=bench.root,
                env=bench.env(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            wal = tree / ".oak/oak.db-wal"
            while process.poll() is None:
                with contextlib.suppress(FileNotFoundError):
                    if wal.stat().st_size > 400_000:
                        time.sleep(0.02 * attempt)
                        process.kill()
                        break
            process.wait()
            if (tree / ".oak" / MARKER).exists() and wal.exists() and applied_migrations(tree) == 15:
                return tree
    raise RecordingError("the clone could not be interrupted in time")


def clone_killed(bench: Bench) -> Item:
    tree = interrupt_clone(bench)
    return Item(
        "clone_killed",
        "a clone was killed: the WAL is not empty and the marker is there",
        tree / ".oak",
        {},
        None,
        None,
        list(bench.used),
        list(bench.log),
        [Read(exit=77, reason="not_quiescent")],
    )


def clone_unfinished(bench: Bench) -> Item:
    """What is left when some SQLite program opened and closed the database of a killed clone."""
    tree = interrupt_clone(bench)
    with contextlib.closing(sqlite3.connect(tree / ".oak/oak.db")) as database:
        database.execute("SELECT count(*) FROM schema_migrations").fetchone()
    bench.log.append("(clone) opened and closed with SQLite, which puts the WAL into the database")
    return Item(
        "clone_unfinished",
        "a killed clone whose WAL was put into the database since",
        tree / ".oak",
        {},
        None,
        None,
        list(bench.used),
        list(bench.log),
        [Read(exit=77, reason="clone_in_progress")],
    )


def older(bench: Bench) -> Item:
    bench.version = OLDER
    tree, _, states = linear(bench)
    return finish(
        bench,
        "older",
        "written by an older client: required migrations are missing",
        tree,
        states[-1],
        reads=[Read(exit=77, reason="unrecognised_format")],
        inspect=False,
    )


def upgraded(bench: Bench) -> Item:
    bench.version = OLDER
    tree, _, states = linear(bench)
    bench.version = PINNED
    bench.oak(tree, "status", "--json")
    return finish(
        bench, "upgraded", "written by an older client, then opened by the pinned one", tree, states[-1]
    )


def legacy(bench: Bench) -> tuple[Path, Tree]:
    bench.version = LEGACY
    tree, _, states = linear(bench)
    bench.version = PINNED
    # That client followed links: it recorded the content of the target as a regular file.
    return tree, {**states[-1], "link": File(states[-1]["hello.txt"].content)}


def legacy_trees(bench: Bench) -> Item:
    tree, state = legacy(bench)
    bench.oak(tree, "status", "--json")
    return finish(
        bench,
        "legacy_trees",
        "trees as tree_entries rows and raw blobs, opened by the pinned client",
        tree,
        state,
    )


def legacy_mixed(bench: Bench) -> Item:
    tree, state = legacy(bench)
    write(tree, {"dir/new.txt": File(b"new\n" * 50)})
    bench.commit(tree)
    state = {**state, "dir/new.txt": File(b"new\n" * 50), "link": BASIC["link"]}
    return finish(bench, "legacy_mixed", "old trees as rows, new trees compressed", tree, state)


def legacy_compacted(bench: Bench) -> Item:
    tree, state = legacy(bench)
    bench.oak(tree, "maintenance", "compact")
    return finish(bench, "legacy_compacted", "old trees as rows, then compacted", tree, state)


def newer(bench: Bench) -> Item:
    bench.version = NEWER
    tree, _, states = linear(bench)
    return finish(
        bench,
        "newer",
        "written by a newer client: migrations that the pin does not know",
        tree,
        states[-1],
        reads=[Read(exit=77, reason="newer_format"), Read(["--deep"], exit=77, reason="newer_format")],
    )


def newer_opened(bench: Bench) -> Item:
    tree, _, states = linear(bench)
    bench.version = NEWER
    bench.oak(tree, "status", "--json")
    return finish(
        bench,
        "newer_opened",
        "written by the pinned client, then opened by a newer one",
        tree,
        states[-1],
        reads=[Read(exit=77, reason="newer_format")],
    )


Recipe = Callable[[Bench], Item]

# Item name -> (recipe, client versions that it needs).
RECIPES: dict[str, tuple[Recipe, tuple[str, ...]]] = {
    recipe.__name__: (recipe, versions)
    for recipe, versions in (
        (init_only, (PINNED,)),
        (one_commit, (PINNED,)),
        (three_commits, (PINNED,)),
        (tree_shapes, (PINNED,)),
        (big_files, (PINNED,)),
        (colliding, (PINNED,)),
        (lossy_name, (PINNED,)),
        (tracked_oak_files, (PINNED,)),
        (tracked_permissions, (PINNED,)),
        (branch_switch, (PINNED,)),
        (fresh_branch, (PINNED,)),
        (detached, (PINNED,)),
        (deleted_all, (PINNED,)),
        (renamed, (PINNED,)),
        (renamed_then_committed, (PINNED,)),
        (compacted, (PINNED,)),
        (git_import, (PINNED,)),
        (pushed, (PINNED,)),
        (captured, (PINNED,)),
        (cloned, (PINNED,)),
        (cloned_detached, (PINNED,)),
        (shallow, (PINNED,)),
        (chunked, (PINNED,)),
        (chunks_only, (PINNED,)),
        (sparse, (PINNED,)),
        (sparse_withheld, (PINNED,)),
        (pulled, (PINNED,)),
        (conflicting, (PINNED,)),
        (served, (PINNED,)),
        (held_open, (PINNED,)),
        (killed, (PINNED,)),
        (recovered, (PINNED,)),
        (clone_killed, (PINNED,)),
        (clone_unfinished, (PINNED,)),
        (older, (OLDER,)),
        (upgraded, (OLDER, PINNED)),
        (legacy_trees, (LEGACY, PINNED)),
        (legacy_mixed, (LEGACY, PINNED)),
        (legacy_compacted, (LEGACY, PINNED)),
        (newer, (NEWER,)),
        (newer_opened, (NEWER, PINNED)),
    )
}


# ---------------------------------------------------------------- facts


def entry(path: str, file: File) -> dict[str, Any]:
    """A manifest entry as the reader report defines it."""
    made: dict[str, Any] = {
        "path": path,
        "mode": file.mode,
        "size": len(file.content),
        "sha256": hashlib.sha256(file.content).hexdigest(),
    }
    if file.mode == LINK:
        try:
            made["target"] = file.content.decode()
        except UnicodeDecodeError:
            made["target_b64"] = base64.b64encode(file.content).decode()
    return made


def entries(files: Tree) -> list[dict[str, Any]]:
    """All manifest entries, in the order of the path bytes."""
    return [entry(path, files[path]) for path in sorted(files, key=str.encode)]


def check_inspection(item: Item) -> dict[str, Any] | None:
    """Holds the client's own inspection against the facts; returns what is kept of it.

    The client must confirm every digest that it could read; a difference means that the recipe is wrong.
    """
    if item.inspection is None:
        return None
    files = {file["path"]: file for file in item.inspection["files"]}
    mismatches = [
        path
        for path, file in item.files.items()
        if path in files
        and files[path].get("sha256") is not None
        and files[path]["sha256"] != hashlib.sha256(file.content).hexdigest()
    ]
    if item.inspection.get("complete") and (mismatches or set(files) != set(item.files)):
        raise RecordingError(f"{item.name}: the client's inspection differs from the facts")
    if mismatches:
        raise RecordingError(f"{item.name}: the client reports other digests for {mismatches[:3]}")
    return {
        "complete": bool(item.inspection.get("complete")),
        "status": item.inspection.get("status"),
        "commit": item.inspection.get("commit"),
        "files_with_sha256": sum(1 for file in files.values() if file.get("sha256")),
        "commit_verification": item.inspection.get("commit_verification"),
    }


def facts(item: Item) -> dict[str, Any]:
    """The facts of an item, as they are written to `facts.json`."""
    return {
        "item": item.name,
        "about": item.about,
        "oak_versions": item.versions,
        "commands": item.commands,
        "head": item.head,
        "branch": item.branch,
        "entries": entries(item.files),
        "inspection": check_inspection(item),
        "reads": [
            {
                "options": read.options,
                "exit": read.exit,
                "reason": read.reason,
                "entries": read.entries,
                "fields": read.fields,
            }
            for read in item.reads
        ],
        "notes": item.notes,
    }


def written(described: dict[str, Any]) -> str:
    """JSON with one entry, one read and one command a line, so that a change shows as a small difference."""
    lines = []
    for name, value in described.items():
        if isinstance(value, list) and value:
            inner = ",\n".join("  " + json.dumps(element, ensure_ascii=False) for element in value)
            lines.append(f"{json.dumps(name)}: [\n{inner}\n ]")
        else:
            lines.append(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def private_words() -> list[bytes]:
    """What must not be in a recorded file: credentials, and this machine's names and directories."""
    words = {
        b"api_key",
        b"Bearer ",
        b"/home/",
        b"/root/",
        b"/Users/",
        b"/tmp/",
        os.fsencode(tempfile.gettempdir()),
        os.fsencode(Path.home()),
    }
    words.add(socket.gethostname().encode())
    user = getpass.getuser().encode()
    if user != b"root":  # "root" is also a word of the format
        words.add(user)
    return sorted(word for word in words if len(word) > 2)


def save(item: Item, target: Path) -> int:
    """Writes one item below `target`; returns the number of bytes written."""
    directory = target / item.name
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    described = facts(item)
    described["files"] = {}
    total = 0
    for name in STORE_FILES:
        path = item.store / name
        if not path.exists():
            continue
        data = path.read_bytes()
        for word in private_words():
            if word in data:
                raise RecordingError(f"{item.name}: {name} holds {word!r}")
        packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
        (directory / f"{name}.xz").write_bytes(packed)
        described["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        total += len(packed)
    text = written(described)
    if any(word in text.encode() for word in private_words()):
        raise RecordingError(f"{item.name}: the facts hold a name of this machine")
    (directory / "facts.json").write_text(text, encoding="utf-8")
    return total + len(text.encode())


def known_clients() -> dict[str, Path]:
    """Clients below the cache directory, by version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oakledger"
    found = {path.parent.parent.name.removeprefix("oak-"): path for path in cache.glob("oak-*/bin/oak")}
    return {version: path for version, path in found.items() if os.access(path, os.X_OK)}


def record(name: str, clients: dict[str, Path], root: Path) -> Item:
    """Makes one item below the empty directory `root`.

    Raises RecordingError when the client does something unexpected.
    """
    recipe, _ = RECIPES[name]
    return recipe(Bench(root, clients))


def main() -> int:
    """Records the corpus; 1 when an item could not be recorded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--client", action="append", default=[], metavar="VERSION=PATH")
    parser.add_argument("--only", action="append", default=[], metavar="ITEM", choices=[*RECIPES])
    parser.add_argument("--into", type=Path, default=DATA)
    chosen = parser.parse_args()
    clients = known_clients()
    clients.update({version: Path(path) for version, path in (text.split("=", 1) for text in chosen.client)})
    failed = 0
    for name in chosen.only or RECIPES:
        lacking = [version for version in RECIPES[name][1] if version not in clients]
        if lacking:
            print(f"{name}: no client {', '.join(lacking)}", file=sys.stderr)
            failed = 1
            continue
        with tempfile.TemporaryDirectory() as directory:
            try:
                size = save(record(name, clients, Path(directory)), chosen.into)
            except (RecordingError, AssertionError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = 1
                continue
        print(f"{name}: {size} bytes")
    return failed


if __name__ == "__main__":
    sys.exit(main())
