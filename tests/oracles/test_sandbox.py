"""The sandbox: bounded in time, output and memory; nothing of the machine changed; no survivors."""

import os
import time

import pytest

from oracles import sandbox
from oracles.checks.retained_suite import run_suite
from oracles.contract import PristineFile, Suite


def run(tmp_path, *command, seconds=10.0, output=100_000, memory=1 << 30):
    return sandbox.run(
        command, str(tmp_path), time_limit_s=seconds, output_limit_bytes=output, memory_limit_bytes=memory
    )


def suite(tmp_path, body, **options):
    options = {"ran": r"RAN ([0-9]+)", "minimum": 1, "time_limit_s": 10, **options}
    return run_suite(
        str(tmp_path),
        Suite(command=("python", "-I", "run.py"), files=(PristineFile("run.py", body),), **options),
    )[0]


def test_exit_status_and_output(tmp_path):
    done = run(
        tmp_path, "python", "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    )
    assert (done.ended, done.status) == ("exit", 3)
    assert b"out" in done.output and b"err" in done.output


def test_environment_is_built_from_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    names = {line.split(b"=")[0] for line in run(tmp_path, "env").output.splitlines()}
    assert names == {
        b"PATH",
        b"HOME",
        b"TMPDIR",
        b"LC_ALL",
        b"TZ",
        b"PYTHONDONTWRITEBYTECODE",
        b"PYTHONHASHSEED",
    }


def test_a_hanging_command_and_all_it_started_ends(tmp_path):
    body = "echo $$ > pid; setsid sh -c 'sleep 31; touch late' & sleep 31"
    started = time.monotonic()
    assert run(tmp_path, "sh", "-c", body, seconds=1).ended == "time"
    assert time.monotonic() - started < 15
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    assert b"sleep\x0031" not in f.read()
            except OSError:
                continue


def test_what_is_left_behind_ends_with_the_command(tmp_path):
    done = run(tmp_path, "sh", "-c", "(setsid sh -c 'sleep 2; touch late' &) ; echo done")
    assert done.ended == "exit" and done.output == b"done\n"
    time.sleep(2.5)
    assert not (tmp_path / "late").exists()


def test_many_processes_end_with_the_command(tmp_path):
    started = time.monotonic()
    done = run(
        tmp_path,
        "python",
        "-c",
        "import os, time\nfor _ in range(200):\n  os.fork() or time.sleep(60)",
        seconds=2,
    )
    assert (done.ended, done.status) == ("exit", 0) and time.monotonic() - started < 20


def test_output_memory_and_file_limits(tmp_path):
    assert run(tmp_path, "yes").ended == "output"
    done = run(tmp_path, "python", "-c", "bytearray(1 << 30)", memory=256 << 20)
    assert done.status == 1 and b"MemoryError" in done.output
    done = run(
        tmp_path, "python", "-c", "f = open('big', 'wb')\nfor _ in range(400): f.write(bytes(1 << 20))"
    )
    assert done.status != 0 and os.path.getsize(tmp_path / "big") <= sandbox.FILE_LIMIT_BYTES


def test_no_network_and_no_writable_machine(tmp_path):
    probe = run(tmp_path, "true")
    if not probe.isolated or not probe.read_only:
        pytest.skip("this system allows no namespaces")
    outside = tmp_path.parent / "outside"
    done = run(
        tmp_path,
        "python",
        "-c",
        "import socket\n"
        "for act in (lambda: open(%r, 'w'), lambda: socket.create_connection(('127.0.0.1', 9), 1)):\n"
        "    try: act(); print('done')\n"
        "    except OSError as e: print(e.errno)\n"
        "open('inside', 'w')".replace("%r", repr(str(outside))),
    )
    assert done.output == b"30\n101\n" and done.status == 0  # EROFS, ENETUNREACH
    assert not outside.exists() and (tmp_path / "inside").exists()


def test_a_missing_program(tmp_path):
    assert run(tmp_path, "no-such-program").status == sandbox.NOT_STARTED


@pytest.mark.parametrize(
    ("body", "result", "reason"),
    [
        ("print('RAN 3')", "pass", None),
        ("print('RAN 0')", "unmeasured", "tests_none_ran"),
        ("print('all good')", "unmeasured", "tests_none_ran"),
        ("print('RAN 3'); raise SystemExit(1)", "fail", "tests_failed"),
        ("import os; os.kill(os.getpid(), 15) or print('RAN 3')", "fail", "tests_failed"),
        ("import time; time.sleep(60)", "fail", "tests_timeout"),
        ("while True: print('x' * 1000)", "fail", "tests_output_limit"),
    ],
)
def test_suites(tmp_path, body, result, reason):
    check = suite(tmp_path, body, time_limit_s=2)
    assert (check.result, check.reason) == (result, reason)


def test_a_suite_without_its_interpreter_is_unmeasured(tmp_path):
    check = run_suite(str(tmp_path), Suite(command=("no-such-program",), ran="(.)", minimum=1))[0]
    assert (check.result, check.reason) == ("unmeasured", "tests_instrument_missing")


def test_pristine_files_replace_what_was_committed(tmp_path):
    tree = tmp_path / "tree"
    (tree / "t").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("untouched")
    os.symlink(elsewhere, tree / "t" / "test.py")
    os.symlink(tmp_path, tree / "linked")
    (tree / "planted.cfg").write_text("x")
    (tree / "dir.cfg").mkdir()
    body = "import os; print('RAN', len([n for n in os.listdir('.') if n.endswith('.cfg')]) + 1)"
    tests = Suite(
        command=("python", "-I", "t/test.py"),
        ran=r"RAN ([0-9]+)",
        minimum=1,
        files=(PristineFile("t/test.py", body), PristineFile("linked/x.py", "x = 1\n")),
        remove=("planted.cfg", "dir.cfg", "not/there"),
    )
    assert run_suite(str(tree), tests)[0].result == "pass"
    assert elsewhere.read_text() == "untouched"
    assert not (tmp_path / "x.py").exists() and (tree / "linked" / "x.py").exists()
