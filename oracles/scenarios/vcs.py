"""The two version control systems that recipes drive: the real programs, with an environment from nothing.

Recipes are written once against `Vcs`. Where the systems differ in what exists (Oak has no index and no local
merge), a method says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Protocol

#: Longest a single command may take, in seconds.
COMMAND_SECONDS = 60.0

_CONFLICT = 5  # Oak's exit status for conflicts
_AUTHOR = "Ada"
_EMAIL = "ada@example.com"


class VcsError(Exception):
    """A command of the version control system failed: the recipe, not the subject's evidence, is broken."""


class Vcs(Protocol):
    """What recipes need. `repo` is a working directory."""

    name: str
    program: str

    def init(self, repo: str) -> None:
        """Make an empty repository in an existing folder."""

    def commit(self, repo: str, *paths: str) -> None:
        """Commit everything in the worktree, or only the given paths."""

    def branch(self, repo: str, name: str) -> None:
        """Make a branch at HEAD and switch to it."""

    def switch(self, repo: str, name: str) -> None:
        """Switch to an existing branch."""

    def start(self, repo: str) -> str:
        """Name of the branch that a new repository starts on."""

    def stage(self, repo: str, *paths: str) -> bool:
        """Add to the index only; False where there is no index."""

    def restore(self, repo: str, path: str) -> None:
        """Throw away the uncommitted change of one path."""

    def conclude(self, repo: str) -> None:
        """Finish a pull whose conflicts have been resolved in the worktree."""

    def shared(self, root: str, repo: str) -> contextlib.AbstractContextManager[Remote]:
        """Publish a repository so that clones can land commits and pull, on this machine only."""


class Remote(Protocol):
    """A published repository."""

    def clone(self, target: str) -> None:
        """Clone it into a new folder."""

    def land(self, repo: str) -> None:
        """Put a clone's commits on the shared main branch."""

    def pull(self, repo: str) -> bool:
        """Bring a clone up to date; False when there are conflicts to resolve in the worktree."""


def run(
    argv: list[str], cwd: str, env: dict[str, str], *, check: bool = True
) -> subprocess.CompletedProcess[bytes]:
    """Run one command without a shell. Raises VcsError when it fails and `check` is set."""
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS
        )
    except subprocess.TimeoutExpired as e:
        raise VcsError(f"{' '.join(argv[:3])} did not end in {COMMAND_SECONDS:g} s") from e
    if check and done.returncode != 0:
        words = (done.stderr or done.stdout).decode("utf-8", "replace").split()
        raise VcsError(f"{' '.join(argv[:3])} ended with {done.returncode}: {' '.join(words)[:300]}")
    return done


class Git:
    """Git, with extra `-c` settings for a tuned subject."""

    name = "git"

    def __init__(self, program: str, home: str, settings: tuple[str, ...] = ()) -> None:
        self.program = program
        self._settings = [word for setting in settings for word in ("-c", setting)]
        self._ticks = 0
        self._env = {
            "PATH": os.path.dirname(program) + ":/usr/bin:/bin",
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_EDITOR": "true",
        }

    def git(self, repo: str, *args: str, check: bool = True) -> bytes:
        """Run git in a repository and return its output; commits get counted dates, so ids repeat."""
        self._ticks += 1
        when = f"{1_700_000_000 + self._ticks} +0000"
        env = {**self._env}
        for role in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{role}_NAME": _AUTHOR, f"GIT_{role}_EMAIL": _EMAIL, f"GIT_{role}_DATE": when}
        return run([self.program, *self._settings, *args], repo, env, check=check).stdout

    def init(self, repo: str) -> None:
        """Make an empty repository."""
        self.git(repo, "init", "-q", "-b", "main")

    def commit(self, repo: str, *paths: str) -> None:
        """Commit everything, or the given paths."""
        self.git(repo, "add", "-A", "--", *(paths or (".",)))
        self.git(repo, "commit", "-q", "-m", "work", "--allow-empty")

    def branch(self, repo: str, name: str) -> None:
        """Make a branch at HEAD and switch to it."""
        self.git(repo, "switch", "-q", "-c", name)

    def switch(self, repo: str, name: str) -> None:
        """Switch to a branch."""
        self.git(repo, "switch", "-q", name)

    def start(self, repo: str) -> str:
        """Return the first branch's name."""
        return "main"

    def stage(self, repo: str, *paths: str) -> bool:
        """Add to the index, where there is one."""
        self.git(repo, "add", "-A", "--", *(paths or (".",)))
        return True

    def restore(self, repo: str, path: str) -> None:
        """Throw away the uncommitted change of a path."""
        self.git(repo, "checkout", "-q", "HEAD", "--", path)

    def conclude(self, repo: str) -> None:
        """Finish a pull with resolved conflicts."""
        self.git(repo, "add", "-A")
        self.git(repo, "commit", "-q", "--no-edit")

    @contextlib.contextmanager
    def shared(self, root: str, repo: str) -> Iterator[Remote]:
        """Publish a repository on this machine."""
        bare = os.path.join(root, "shared.git")
        self.git(root, "clone", "-q", "--bare", repo, bare)
        yield _GitRemote(self, bare)


class _GitRemote:
    def __init__(self, git: Git, bare: str) -> None:
        self._git, self._bare = git, bare

    def clone(self, target: str) -> None:
        self._git.git(os.path.dirname(target), "clone", "-q", self._bare, target)

    def land(self, repo: str) -> None:
        self._git.git(repo, "push", "-q", "origin", "HEAD:main")

    def pull(self, repo: str) -> bool:
        self._git.git(repo, "fetch", "-q", "origin")
        self._git.git(repo, "merge", "-q", "origin/main", check=False)
        return not self._git.git(repo, "ls-files", "--unmerged")


class Oak:
    """Oak, offline or against its own server on the loopback interface."""

    name = "oak"

    def __init__(self, program: str, home: str) -> None:
        self.program = program
        self._env = {
            "PATH": os.path.dirname(program) + ":/usr/bin:/bin",
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "OAK_AUTHOR": f"{_AUTHOR} <{_EMAIL}>",
            "OAK_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
        }

    def oak(self, repo: str, *args: str, check: bool = True) -> bytes:
        """Run oak in a repository and return its output."""
        return run([self.program, *args], repo, self._env, check=check).stdout

    def status(self, repo: str, *args: str) -> int:
        """Run oak and return its exit status, if that is success or a conflict."""
        done = run([self.program, *args], repo, self._env, check=False)
        if done.returncode not in (0, _CONFLICT):
            raise VcsError(f"oak {args[0]} ended with {done.returncode}")
        return done.returncode

    def init(self, repo: str) -> None:
        """Make an empty repository."""
        self.oak(repo, "init")

    def commit(self, repo: str, *paths: str) -> None:
        """Commit everything, or the given paths."""
        self.oak(repo, "commit", "--json", *paths)

    def branch(self, repo: str, name: str) -> None:
        """Make a branch at HEAD and switch to it."""
        self.oak(repo, "switch", "-c", name)

    def switch(self, repo: str, name: str) -> None:
        """Switch to a branch."""
        self.oak(repo, "switch", name)

    def start(self, repo: str) -> str:
        """Return the first branch's name."""
        found = re.search(rb'"branch"\s*:\s*"([^"]+)"', self.oak(repo, "status", "--json"))
        if found is None:
            raise VcsError("oak status names no branch")
        return found[1].decode()

    def stage(self, repo: str, *paths: str) -> bool:
        """Add to the index, where there is one."""
        return False

    def restore(self, repo: str, path: str) -> None:
        """Throw away the uncommitted change of a path."""
        self.oak(repo, "restore", "--force", path)

    def conclude(self, repo: str) -> None:
        """Finish a pull with resolved conflicts."""
        self.oak(repo, "pull", "--continue")

    @contextlib.contextmanager
    def shared(self, root: str, repo: str) -> Iterator[Remote]:
        """Publish a repository on this machine."""
        store = os.path.join(root, "server")
        os.mkdir(store)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen(
            [self.program, "serve", "--dir", store, "--port", str(port)],
            cwd=root,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _await_port(port)
            url = f"http://127.0.0.1:{port}"
            remote = _OakRemote(self, url)
            remote.land(repo)
            yield remote
        finally:
            server.kill()
            server.wait()


def _await_port(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise VcsError("oak serve does not answer")


class _OakRemote:
    def __init__(self, oak: Oak, url: str) -> None:
        self._oak, self._url = oak, url

    def clone(self, target: str) -> None:
        self._oak.oak(os.path.dirname(target), "clone", "acme/widget", target, "-r", self._url)

    def land(self, repo: str) -> None:
        self._oak.oak(repo, "push", "-r", self._url, "--repo", "acme/widget")
        self._oak.oak(repo, "desc", "work")
        self._oak.oak(repo, "merge", "--json")

    def pull(self, repo: str) -> bool:
        return self._oak.status(repo, "pull") != _CONFLICT


def find_oak() -> str | None:
    """Return the path of `oak` on PATH."""
    return shutil.which("oak")


def find_git() -> str | None:
    """Return the path of `git` on PATH."""
    return shutil.which("git")
