"""How long a decision takes, whole process, and how the cost grows.

`python -m bench.qualify [TRIALS ...]` makes campaigns of so many trials (three events each), decides on each
in a new process without the audit part, and prints medians, the parts, and peak memory. The campaigns are
honest: the answer must be `qualified`.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
import msgspec

import ledger
from ledger.events import (
    CampaignDeclared,
    Claim,
    Condition,
    Criterion,
    OracleJudged,
    Order,
    Plan,
    ReaderBounds,
    ReaderInvoked,
    ScenarioPlan,
    StudyCriteriaAttested,
    SubjectPlan,
    TrialRecorded,
    canonical,
    canonical_sha256,
)
from ledger.frontier import Frontier

DAY = 1_767_600_000_000_000_000
HEX = "0123456789abcdef"


def digest(text: str) -> str:
    """A made-up digest."""
    return canonical_sha256(text)


SUBJECTS = (
    SubjectPlan("git"),
    SubjectPlan("oak_installed"),
    SubjectPlan("git_again", null_of="git"),
    SubjectPlan("oak_main"),
)
SCENARIOS = tuple(
    ScenarioPlan(f"scenario_{n}", 1, 1, 1, digest(f"contract {n}"), evidence="committed_tree")
    for n in range(5)
)
CONDITIONS = tuple(
    Condition(
        agent="codebot",
        agent_version="1",
        model=f"model-{n}",
        instruction_level="minimal",
        instruction_sha256=digest("instruction"),
        track="agent-default",
        environment_id=digest("environment"),
    )
    for n in range(2)
)


def plan(trials: int) -> Plan:
    """A plan of about so many trials: 4 subjects, 5 scenarios, 2 conditions."""
    cell = max(trials // (len(SUBJECTS) * len(SCENARIOS) * len(CONDITIONS)), 1)
    return Plan(
        lane="agent",
        subjects=SUBJECTS,
        scenarios=SCENARIOS,
        conditions=CONDITIONS,
        trials_per_cell=cell,
        claims=(Claim("wall_ns", "oak_installed", "git", "lower", 100),),
        criteria=(Criterion("power", digest("power")),),
    )


def templates() -> tuple[str, str, str]:
    """Canonical trial, reader and verdict events with tokens in the place of what differs."""
    trial = TrialRecorded(
        source="SOURCE",
        ordinal=8_111_111_111_111_111_111,
        recorded_at_ns=1_700_000_000_000_000_003,
        campaign="bench",
        lane="agent",
        scenario="SCENARIO",
        scenario_version=1,
        subject="SUBJECT",
        trial="TRIAL",
        condition=Condition(),
        status="completed",
        repetition=8_222_222_222_222_222_222,
        exit_code=0,
        reached_head=True,
        started_at_ns=1_700_000_000_000_000_001,
        ended_at_ns=1_700_000_000_000_000_002,
        process_key="PROCESS",
        fixture_version=1,
        subject_binary_sha256="b" * 64,
        subject_version="1.2.3",
        subject_source_sha256="5" * 64,
        subject_dirty=False,
        metrics={"wall_ns": 8_333_333_333_333_333_333, "store_bytes": 1000, "energy_uj": None},
        evidence_sha256="e" * 64,
        row_sha256="f" * 64,
    )
    reader = ReaderInvoked(
        source="SOURCE",
        ordinal=8_111_111_111_111_111_111,
        recorded_at_ns=1_700_000_000_000_000_003,
        vcs="git",
        reader="git_object_reader",
        reader_version="1.0",
        code_sha256="a1" * 32,
        backend="pure",
        outcome="ok",
        exit_status=0,
        relation="independent",
        bounds=ReaderBounds(max_blob_bytes=1 << 20, max_object_bytes=1 << 28, deadline_ns=120 * 10**9),
        campaign="bench",
        trial="TRIAL",
        subject="SUBJECT",
        python_version="3.11.7",
        python_sha256="a2" * 32,
        instrument_name="python3.11",
        instrument_sha256="a2" * 32,
        subject_binary_sha256="b" * 64,
        scope_sha256="a3" * 32,
        scope_count=4,
        head="4" * 40,
        format={"name": "git", "object_format": "sha1"},
        manifest_sha256="6" * 64,
        entries=4,
        bytes_decoded=10_000,
        objects_verified=12,
        duration_ns=40_000_000,
        report_sha256="7" * 64,
    )
    verdict = OracleJudged(
        source="SOURCE",
        ordinal=8_111_111_111_111_111_111,
        recorded_at_ns=1_700_000_000_000_000_003,
        scenario="SCENARIO",
        scenario_version=1,
        oracle_version=1,
        fixture_version=1,
        contract_sha256="c" * 64,
        verdict="pass",
        campaign="bench",
        trial="TRIAL",
        subject="SUBJECT",
        reader_event_id="d" * 64,
        manifest_sha256="6" * 64,
        depth="committed_tree",
    )
    return tuple(canonical(e).decode() for e in (trial, reader, verdict))  # type: ignore[return-value]


def make(path: str, trials: int) -> int:
    """Write a ledger with an honest campaign of about so many trials; returns how many."""
    declared = CampaignDeclared(
        source="bench",
        ordinal=0,
        recorded_at_ns=DAY,
        campaign="bench",
        preregistered=True,
        plan=plan(trials),
        order=Order("blocked-sha256/1", "bench", "campaign"),
    )
    trial, reader, verdict = templates()
    with ledger.open(path) as book:
        book.append([declared])
        con = book.con
        con.execute("CREATE TEMP TABLE slots AS SELECT * FROM planned_slots")
        count = con.execute("SELECT count(*) FROM slots").fetchone()[0]
        con.execute("CREATE TEMP TABLE contracts AS SELECT scenario, contract_sha256 FROM campaign_scenarios")
        con.execute(
            "CREATE TEMP TABLE keys AS SELECT condition_key, condition::VARCHAR AS text "
            "FROM campaign_conditions"
        )

        def oak(one: str, other: str) -> str:
            return f"""CASE WHEN subject LIKE 'oak%' THEN '"{one}"' ELSE '"{other}"' END"""

        def fill(template: str, column: str) -> str:
            # `position` numbers the trials; every digest differs from trial to trial as in a real run.
            swaps = {
                '"SOURCE"': f"concat('\"bench/{column}\"')",
                "8111111111111111111": "position",
                '"TRIAL"': "concat('\"t', position, '\"')",
                '"PROCESS"': "concat('\"p', position, '\"')",
                '"SUBJECT"': "concat('\"', subject, '\"')",
                '"SCENARIO"': "concat('\"', scenario, '\"')",
                '"condition":{}': "concat('\"condition\":', text)",
                "8222222222222222222": "repetition",
                "8333333333333333333": "wall",
                "1700000000000000001": f"{DAY + 60 * 10**9} + position * 50000000000",
                "1700000000000000002": f"{DAY + 60 * 10**9} + position * 50000000000 + wall",
                "1700000000000000003": f"{DAY + 60 * 10**9} + position * 50000000000 + wall + 1",
                "b" * 64: "sha256(CASE subject WHEN 'git_again' THEN 'git' ELSE subject END)",
                "c" * 64: "contract_sha256",
                "e" * 64: "sha256(concat('evidence', position))",
                "f" * 64: "sha256(concat('row', position))",
                "4" * 40: "sha256(concat('head', position))[:40]",
                "7" * 64: "sha256(concat('report', position))",
                '"git_object_reader"': oak("oak_sqlite_reader", "git_object_reader"),
                '"vcs":"git"': f"""concat('"vcs":', {oak("oak", "git")})""",
                "d" * 64: "reader_id",
            }
            expression = "'" + template.replace("'", "''") + "'"
            for token, value in swaps.items():
                if token in template:
                    quoted = token.replace("'", "''")
                    expression = f"replace({expression}, '{quoted}', ({value})::VARCHAR)"
            return expression

        base = "(CASE WHEN subject LIKE 'git%' THEN 40000000 ELSE 28000000 END)"
        wall = f"{base} * (1000 + hash(position) % 60) // 1000 "
        con.execute(
            f"CREATE TEMP TABLE base AS SELECT s.*, contract_sha256, text, {wall} AS wall FROM slots s "
            "JOIN contracts USING (scenario) JOIN keys USING (condition_key)"
        )
        con.execute(
            f"CREATE TEMP TABLE readings AS SELECT position, payload, sha256(chr(0) || payload) AS reader_id "
            f"FROM (SELECT position, {fill(reader, 'reader')} AS payload FROM base)"
        )
        parts = (
            f"SELECT position * 3 + 1 AS n, {fill(trial, 'trial')} AS payload FROM base",
            "SELECT position * 3 + 2 AS n, payload FROM readings",
            f"SELECT position * 3 + 3 AS n, {fill(verdict, 'verdict')} AS payload FROM base "
            "JOIN readings USING (position)",
        )
        names = [
            "source",
            "ordinal",
            "recorded_at_ns",
            "campaign",
            "lane",
            "scenario",
            "scenario_version",
            "subject",
            "trial",
            "repetition",
            "status",
            "started_at_ns",
            "verdict",
            "reader_event_id",
            "outcome",
            "reason",
        ]
        paths = ", ".join(f"'$.{n}'" for n in ("kind", *names))
        values = ", ".join(f"v[{i}]" for i in range(2, len(names) + 2))
        for part in parts:
            con.execute(
                f"INSERT INTO events (origin, seq, event_id, kind, kind_version, {', '.join(names)}, "
                "condition_key, payload) "
                f"SELECT '{book.origin}', n, sha256(chr(0) || payload), split_part(v[1], '/', 1), "
                f"split_part(v[1], '/', 2)::INTEGER, {values}, sha256(payload -> '$.condition'), payload "
                f"FROM (SELECT n, payload, json_extract_string(payload, [{paths}]) AS v FROM ({part}))"
            )
        frontier = Frontier()
        rows = con.execute("SELECT event_id FROM events ORDER BY seq")
        while batch := rows.fetchmany(50_000):
            frontier.extend(bytes.fromhex(r[0]) for r in batch)
        con.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?)",
            [book.origin, frontier.size, frontier.root().hex(), frontier.encode()],
        )
        last = con.execute("SELECT max(recorded_at_ns) FROM events").fetchone()[0]
        book.append(
            [
                StudyCriteriaAttested(
                    source="bench",
                    ordinal=1,
                    recorded_at_ns=last + 1,
                    campaign="bench",
                    criteria=(Criterion("power", digest("power")),),
                    who="bench",
                    statement="met",
                )
            ]
        )
        con.execute("CHECKPOINT")
    return int(count)


CHILD = """
import json, resource, sys, time
start = time.perf_counter()
from ledger.store import open_ledger
from qualify.decision import decide
imported = time.perf_counter()
with open_ledger(sys.argv[1], read_only=True) as book:
    opened = time.perf_counter()
    decision = decide(book, "bench")
decided = time.perf_counter()
json.dumps(decision.as_json())
usage = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as status:  # the other figure begins with what the parent had
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
print(json.dumps({
    "word": decision.word, "import": imported - start, "open": opened - imported, "decide": decided - opened,
    "cpu": usage.ru_utime + usage.ru_stime, "mb": peak // 1024,
    "bad": [(r.rule.id, v.what, v.detail) for r in decision.rules for v in r.violations][:5],
}))
"""


def measure(path: str, rounds: int) -> dict[str, float]:
    """Decide in new processes and return medians: wall and CPU seconds, megabytes."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        run = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, check=True)
        wall = time.perf_counter() - start
        row = json.loads(run.stdout)
        if row["word"] != "qualified":
            raise SystemExit(f"an honest campaign was refused: {row['bad']}")
        found.append({**row, "wall": wall})
    return {
        k: statistics.median(r[k] for r in found) for k in ("wall", "cpu", "import", "open", "decide", "mb")
    }


def main() -> None:
    """Measure and print a table."""
    sizes = [int(a) for a in sys.argv[1:]] or [10_000, 100_000, 1_000_000]
    print(
        f"duckdb {duckdb.__version__}, msgspec {msgspec.__version__}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    print("| trials | events | whole process s | CPU s | import s | open s | decide s | peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = os.path.join(folder, f"{size}.duckdb")
            trials = make(path, size)
            m = measure(path, 3)
            print(
                f"| {trials} | {trials * 3 + 2} | {m['wall']:.2f} | {m['cpu']:.2f} | {m['import']:.2f} "
                f"| {m['open']:.2f} | {m['decide']:.2f} | {m['mb']:.0f} |",
                flush=True,
            )
            os.remove(path)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
