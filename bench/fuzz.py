"""Runs the long fuzzers one after another: `python -m bench.fuzz [NAME...]`."""

from __future__ import annotations

import subprocess
import sys

FUZZERS = ("fuzz_zstd", "fuzz_blake3", "fuzz_git", "fuzz_oak")


def main(argv: list[str]) -> int:
    """Run the named fuzzers, or all; exit status 1 when one found something."""
    unknown = set(argv) - set(FUZZERS)
    if unknown:
        print(f"no fuzzer {', '.join(sorted(unknown))}: there are {', '.join(FUZZERS)}", file=sys.stderr)
        return 2
    failed = []
    for name in argv or FUZZERS:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode != 0:
            failed.append(name)
    print("all fuzzers ended well" if not failed else f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
