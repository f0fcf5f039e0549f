"""Runs one program with less: no network, no writable machine, bounded memory, no survivors.

An isolated script, started by `oracles.sandbox` as `python -I`; the configuration is one JSON argument.
It writes one line of JSON about what could be taken away to the descriptor it is told, then becomes the
reaper of everything that the program starts, and ends all of it when the program has ended or when its own
parent dies. What the system does not allow (namespaces in some containers) is left as it is and said.
"""

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_SYS_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1


def main() -> int:
    """Run the program and return its exit status, 128 + signal if one ended it."""
    config = json.loads(sys.argv[1])
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    isolated = _separate(libc)
    read_only = isolated and _freeze_files(libc, config["cwd"].encode())
    os.write(config["report_fd"], json.dumps({"isolated": isolated, "read_only": read_only}).encode() + b"\n")
    os.close(config["report_fd"])
    child = os.fork()
    if child == 0:
        if isolated:
            _be_init(config, libc)
        _become(config, libc)
    _, status = os.waitpid(child, 0)
    _end_descendants()
    return _exit_status(status)


def _exit_status(status: int) -> int:
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _be_init(config: dict, libc: ctypes.CDLL) -> None:  # type: ignore[type-arg]
    """Stay as the first process of the namespace, so that the program is an ordinary one with signals.

    When this process ends, the system ends every other one of the namespace.
    """
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    program = os.fork()
    if program == 0:
        _become(config, libc)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            os._exit(_exit_status(status))


def _separate(libc: ctypes.CDLL) -> bool:
    """Enter namespaces without a network; root's power over the machine stays outside."""
    uid, gid = os.geteuid(), os.getegid()
    wanted = _CLONE_NEWUSER | _CLONE_NEWNET | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWNS
    if libc.unshare(wanted) != 0:
        return False
    with contextlib.suppress(OSError):
        _put("/proc/self/setgroups", "deny")
    _put("/proc/self/uid_map", f"{uid} {uid} 1")
    _put("/proc/self/gid_map", f"{gid} {gid} 1")
    return True


def _put(path: str, text: str) -> None:
    with open(path, "w") as stream:
        stream.write(text)


def _freeze_files(libc: ctypes.CDLL, keep: bytes) -> bool:
    """Make every mount read-only except the program's own directory."""
    attributes = ctypes.c_uint64 * 4
    if libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) != 0:
        return False
    if libc.mount(keep, keep, None, _MS_BIND, None) != 0:
        return False
    frozen = attributes(_MOUNT_ATTR_RDONLY, 0, 0, 0)
    if libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, b"/", _AT_RECURSIVE, frozen, ctypes.sizeof(frozen)) != 0:
        return False
    thawed = attributes(0, _MOUNT_ATTR_RDONLY, 0, 0)
    if libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, keep, 0, thawed, ctypes.sizeof(thawed)) != 0:
        return False
    # Semaphores of test runners live here; a private one, gone with the namespace.
    libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64m")
    return True


def _become(config: dict, libc: ctypes.CDLL) -> None:  # type: ignore[type-arg]
    try:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for name, limit in config["limits"].items():
            kind = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(kind)
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (limit, limit))
        os.chdir(config["cwd"])
        os.execve(config["argv"][0], config["argv"], config["env"])  # noqa: S606 - the point of this script
    except OSError as e:
        sys.stderr.write(f"cannot start {os.path.basename(config['argv'][0])}: {e.strerror}\n")
    finally:
        os._exit(127)


def _end_descendants() -> None:
    """Kill whatever was left behind; as subreaper, orphans are our children."""
    for _ in range(1000):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as f:
            for pid in f.read().split():
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


sys.exit(main())
