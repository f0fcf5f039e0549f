"""The reader that believes the subject: only when asked, never more than it says it is."""

import json
import os
import subprocess
import sys

import pytest

from reader.driver import Request, read
from reader.relation import evidence_label, relation

SCRIPT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "reader", "oak_export_reader.py"
)


def subject_that(tmp_path, body):
    path = tmp_path / "oak"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def repo(tmp_path):
    """A store that is never opened by this reader: the subject's word is all there is."""
    folder = tmp_path / "repo"
    (folder / ".oak").mkdir(parents=True)
    (folder / ".oak" / "oak.db").write_bytes(b"whatever")
    return str(folder)


GOOD = """
[ "$1 $2 $3 $4" = "export --tree-only --at HEAD" ] || exit 9
mkdir -p "$5/d" && printf hello > "$5/a" && printf x > "$5/d/run" && chmod +x "$5/d/run" && ln -s a "$5/l"
echo '{"status": "verified", "commit": "%s"}'
""" % ("a" * 64)  # fmt: skip


def test_it_reports_what_the_subject_wrote(repo, tmp_path):
    subject = subject_that(tmp_path, GOOD)
    reading = read(Request("oak", repo, "export", subject_binary=subject))
    assert reading.outcome == "ok", reading.message
    entries = [(e["path"], e["mode"], e["size"]) for e in reading.report["entries"]]
    assert entries == [("a", "100644", 5), ("d/run", "100755", 1), ("l", "120000", 1)]
    assert reading.report["counts"]["objects_verified"] == 0
    assert reading.report["instrument"]["name"] == "oak"
    found = relation(reading.report["reader"], reading.backend, None, None)
    assert evidence_label(found, "committed_tree") == "subject_export_committed_tree"


@pytest.mark.parametrize(
    "body",
    [
        "exit 1",
        'echo \'{"status": "corrupt"}\'',
        "echo nonsense",
        "yes",
        'mkdir "$5"; echo \'{"status": "verified"}\'',
        'mkdir "$5"; mkfifo "$5/pipe"; echo \'{"status": "verified", "commit": "%s"}\'' % ("a" * 64),
    ],
)
def test_a_failed_export_is_unmeasured(repo, tmp_path, body):
    reading = read(Request("oak", repo, "export", subject_binary=subject_that(tmp_path, body), deadline_s=20))
    assert (reading.exit_status, reading.reason) == (77, "instrument_failed"), reading.message


def test_a_hanging_export_meets_the_deadline(repo, tmp_path):
    subject = subject_that(tmp_path, "sleep 300")
    reading = read(Request("oak", repo, "export", subject_binary=subject, deadline_s=1))
    assert (reading.exit_status, reading.reason) == (77, "deadline")


def test_without_a_subject_there_is_no_fallback(repo):
    assert read(Request("oak", repo, "export")).reason == "instrument_missing"


def test_the_shape_of_the_store_is_asked_first(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    reading = read(Request("oak", str(folder), "export", subject_binary=subject_that(tmp_path, GOOD)))
    assert (reading.exit_status, reading.reason) == (1, "store_missing")


def test_deep_is_a_usage_error(repo, tmp_path):
    done = subprocess.run(
        [sys.executable, "-I", SCRIPT, repo, "--deep"],
        capture_output=True,
        text=True,
        env={"OAK_BENCH_OAK_SUBJECT": subject_that(tmp_path, GOOD)},
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["outcome"] == "usage"
    assert done.stderr.count("\n") == 1


def test_the_subject_works_on_a_copy_with_a_clean_environment(repo, tmp_path):
    subject = subject_that(tmp_path, f"env > {tmp_path}/env; pwd > {tmp_path}/pwd; rm -rf .oak; exit 1")
    read(Request("oak", repo, "export", subject_binary=subject), {"SECRET": "x", "PATH": os.environ["PATH"]})
    names = {line.split("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names <= {"HOME", "TMPDIR", "LC_ALL", "OAK_NO_UPDATE_CHECK", "PWD", "SHLVL", "_", "OLDPWD"}
    assert (tmp_path / "pwd").read_text().strip() != repo
    assert os.path.exists(os.path.join(repo, ".oak", "oak.db"))
