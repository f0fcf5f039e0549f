"""A process that has the Git readers loaded and forks one process for each read. Run as `python -I FILE
ROOT`.

One job a line on standard input, as JSON: script, arguments, environment, stdout, stderr (files to write),
seconds (after which the read counts as hanging). One answer a line: the exit status, or `hang`.
"""

import importlib
import importlib.util
import json
import os
import signal
import sys
import time
import traceback


def child(reader, job):
    """The forked process: everything of it is that of a reader's own."""
    for number, name in ((0, os.devnull), (1, job["stdout"]), (2, job["stderr"])):
        os.dup2(os.open(name, os.O_RDWR), number)
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    try:
        status = reader.main(job["arguments"])
    except BaseException:
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def wait(pid, seconds):
    """Exit status of the child, or `hang`."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "hang"
        time.sleep(0.001)


def main(root):
    """Answer jobs until standard input ends."""
    folder = os.path.join(root, "reader")
    spec = importlib.util.spec_from_file_location(
        "reader", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    sys.modules["reader"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["reader"])
    for line in sys.stdin:
        job = json.loads(line)
        reader = importlib.import_module("reader." + job["script"])
        pid = os.fork()
        if not pid:
            child(reader, job)
        print(wait(pid, job["seconds"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
