"""Every small mistake in the shipped views, one after another: `python -m bench.fuzz_sql [VIEW...]`.

Each mutant must be caught by the campaigns of the test suite, or be listed with the reason why it makes no
difference (tests/qualify/sql_equivalents.toml), and not both. `make test` tries a sample.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests" / "qualify"


def main(argv: list[str]) -> int:
    """Try all mutants, of the named views if any are named; exit status 1 when one survives."""
    sys.path.insert(0, str(TESTS))
    import batch
    import sqlmutants as q

    chosen = [m for m in q.mutants() if not argv or m.view in argv]
    unknown = set(argv) - {m.view for m in q.mutants()}
    if unknown:
        print(f"no view {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    how: Counter[str] = Counter()
    survivors: list[str] = []
    listed: list[str] = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "all.duckdb"
        with (
            q.loaded(path) as ledger,
            batch.workspace(ledger) as con,
            q.at_the_bounds(Path(folder) / "bounds.duckdb") as bounds,
        ):
            con.execute("SET threads = 1")
            con.execute("SET memory_limit = '1500MB'")
            trial, ledger_trial = q.Trial(con), q.LedgerTrial()
            for mutant in chosen:
                if mutant.view == q.LEDGER_VIEW:
                    by = ledger_trial.caught(mutant)
                else:
                    by = trial.caught(mutant) or bounds.caught(mutant)
                if by is not None and q.equivalent(mutant) is not None:
                    listed.append(mutant.key)
                    print(f"listed as making no difference, and caught by {by}: {mutant.key}", flush=True)
                if by is not None:
                    how["by an error" if by.startswith(("error", "never")) else "by a result"] += 1
                elif q.equivalent(mutant) is not None:
                    how["equivalent"] += 1
                else:
                    survivors.append(mutant.key)
                    print(f"survives: {mutant.key}", flush=True)
    figures = ", ".join(f"{count} {name}" for name, count in sorted(how.items()))
    print(
        f"{len(chosen)} mutants in {time.monotonic() - start:.0f} s: {figures}, {len(survivors)} not caught"
    )
    return 1 if survivors or listed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
