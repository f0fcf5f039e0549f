"""Small changes to the shipped views, each of which a test must notice.

`mutants()` reads the views as tokens and makes the changes that people make by mistake: a predicate left out,
a comparison turned round, LEFT JOIN for JOIN, DISTINCT forgotten, a constant one off, a word misspelt, a
branch of a UNION ALL or a CASE lost, the wrong end of an aggregate. Prose (`... AS detail`) is left alone.

`Trial` holds the tables of all campaigns of the suite and evaluates one mutant: the changed view is run again
and, as long as something differs, everything that builds on it. A mutant is caught when a rule finds other
things, or a figure that is shown differs, or the text cannot be run at all (a decision is then an error).
`LedgerTrial` does the same for the rule about the file, on ledgers that are damaged in every way it knows.
`equivalent` says of a mutant that cannot be caught why it makes no difference (sql_equivalents.toml).
"""

from __future__ import annotations

import contextlib
import re
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import batch
import duckdb
import msgspec
import mutations
from campaigns import SECOND, declaration, judgement, reading, respec, seal, sha, trial

from ledger import views
from ledger.campaign import Slot
from ledger.events import canonical_sha256
from ledger.merge import merge
from ledger.store import Ledger, open_ledger

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*)|(?P<string>'(?:[^']|'')*')|(?P<number>\d+(?:\.\d+)?)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<op><>|<=|>=|->>|->|::|:=|\|\||//|[-+*/%=<>(),.;\[\]{}:?])",
    re.DOTALL,
)

#: Where a predicate ends, outside of brackets.
_ENDS = frozenset(
    [
        "AND",
        "OR",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "UNION",
        "JOIN",
        "LEFT",
        "FULL",
        "ANTI",
        "SEMI",
        "CROSS",
        "WINDOW",
        "QUALIFY",
        "THEN",
        "ELSE",
        "END",
        "WHEN",
        "LIMIT",
        "FILTER",
        "AS",
        "ON",
    ]
)
_FLIPS = {"=": "<>", "<>": "=", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_ENDS_OF = {
    "min": "max",
    "max": "min",
    "arg_min": "arg_max",
    "arg_max": "arg_min",
    "bool_and": "bool_or",
    "bool_or": "bool_and",
    "least": "greatest",
    "greatest": "least",
}

#: Views that tests look at themselves: what is in them is compared with documents and examples
#: (test_sql_mutants.py), or told again in Python, from events and plans or from what they are counted from
#: (test_figures.py).
LOOKED_AT = frozenset(
    {
        "reasons",
        "infrastructure_codes",
        "order_tests",
        "metric_effects",
        "noise_floor",
        "campaign_declarations",
        "trials",
        "reader_invocations",
        "verdicts",
        "invalidations",
        "replacements",
        "conflict_rules",
        "attestations",
        "subject_identities",
        "campaign_subjects",
        "campaign_scenarios",
        "campaign_conditions",
        "campaign_claims",
        "campaign_criteria",
        "plan_shapes",
        "planned_slots",
        "attempts",
        "correctness_classes",
        "attempt_facts",
        "replacement_chains",
        "early_words",
        "claim_comparisons",
        "metric_values",
        "plan_history",
    }
)

#: Rules whose `detail` tells what a part of the view gathers for it: there it is compared too.
TELLING = frozenset({"rule_03_condition_coverage", "rule_04_environment"})

#: Seconds after which a mutant is taken for one that never ends.
DEADLINE = 20.0


@dataclass(frozen=True)
class Token:
    """A piece of SQL: kind, text, where it starts, and how many brackets are around it."""

    kind: str
    text: str
    at: int
    depth: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.at + len(self.text)

    @property
    def upper(self) -> str:
        """The text in capitals, for words."""
        return self.text.upper() if self.kind == "word" else self.text


@dataclass(frozen=True)
class Mutant:
    """A changed view. `key` names the change and stays the same while the view's text does."""

    view: str
    kind: str
    text: str
    sql: str

    @property
    def key(self) -> str:
        """View, kind of change and what was changed, in one line."""
        return f"{self.view}: {self.kind}: {self.text}"


def tokens(sql: str) -> list[Token]:
    """The tokens of a view, space and comments left out."""
    out: list[Token] = []
    at = depth = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        assert match is not None, f"cannot read SQL at {sql[at : at + 40]!r}"
        text, kind = match[0], str(match.lastgroup)
        if text in (")", "]", "}"):
            depth -= 1
        if kind != "space":
            out.append(Token(kind, text, at, depth))
        if text in ("(", "[", "{"):
            depth += 1
        at = match.end()
    return out


def _prose(ts: list[Token]) -> set[int]:
    """Indices of tokens that make text for people: from the comma before it to `AS detail`."""
    inside: set[int] = set()
    for n, t in enumerate(ts):
        if t.upper != "AS" or n + 1 >= len(ts) or ts[n + 1].text not in ("detail", "because", "named", "why"):
            continue
        k = n - 1
        while k >= 0 and not (ts[k].depth <= t.depth and (ts[k].text == "," or ts[k].upper == "SELECT")):
            if ts[k].depth < t.depth:
                break
            inside.add(k)
            k -= 1
    return inside


def _until(ts: list[Token], start: int, stops: frozenset[str]) -> int:
    """The index of the token that ends what begins at `start`: a stop, or the bracket around it closing."""
    depth = ts[start].depth
    k, cases, between = start, 0, 0
    while k < len(ts):
        t = ts[k]
        if t.depth < depth:
            return k
        if t.depth == depth:
            if t.upper == "CASE":
                cases += 1
            elif t.upper == "END" and cases:
                cases -= 1
            elif t.upper == "BETWEEN":
                between += 1
            elif cases == 0 and t.upper in stops:
                if t.upper == "AND" and between:
                    between -= 1
                elif k > start:
                    return k
        k += 1
    return k


def mutants(only: str | None = None) -> Iterator[Mutant]:
    """Every mutant of every shipped view (of one view, if named), none twice."""
    for one in views.shipped():
        if one.file == views.SOURCE_FILE or one.name == "violations" or (only and one.name != only):
            continue
        seen: set[str] = set()
        for kind, text, sql in _changes(one.select):
            if sql not in seen and sql != one.select:
                seen.add(sql)
                yield Mutant(one.name, kind, text, sql)


def _changes(sql: str) -> Iterator[tuple[str, str, str]]:
    ts = tokens(sql)
    prose = _prose(ts)

    def cut(a: int, b: int) -> str:
        """The text without the tokens from a to before b."""
        end = ts[b].at if b < len(ts) else len(sql)
        return sql[: ts[a].at] + " " + sql[end:]

    def put(a: int, b: int, new: str) -> str:
        return sql[: ts[a].at] + new + sql[ts[b - 1].end :]

    def near(a: int, b: int | None = None) -> str:
        """What was changed, in one line, and the line that it is in."""
        b = a + 1 if b is None else b
        here = " ".join(sql[ts[a].at : ts[b - 1].end].split())[:160]
        line = sql[: ts[a].at].count("\n") + 1
        return f"{here} (line {line}, {ts[a].at - sql.rfind(chr(10), 0, ts[a].at)})"

    for n, t in enumerate(ts):
        if n in prose:
            continue
        nxt = [x.upper for x in ts[n + 1 : n + 4]]
        if t.kind == "op" and t.text in _FLIPS:
            if t.text == "=" and _joins(ts, n):
                continue  # dropping the predicate is the cheaper mutant of the same mistake
            yield "flip", near(max(n - 1, 0), min(n + 2, len(ts))), put(n, n + 1, _FLIPS[t.text])
        elif t.upper in ("WHERE", "HAVING", "QUALIFY"):
            stop = _until(
                ts,
                n + 1,
                frozenset(["WHERE", "GROUP", "HAVING", "ORDER", "UNION", "WINDOW", "QUALIFY", "LIMIT"]),
            )
            yield "drop", near(n, stop), cut(n, stop)
            yield from _parts(ts, n + 1, stop, cut, near)
        elif t.upper == "ON" and n + 1 < len(ts):
            stop = _until(
                ts,
                n + 1,
                frozenset(
                    [
                        "WHERE",
                        "GROUP",
                        "HAVING",
                        "ORDER",
                        "UNION",
                        "WINDOW",
                        "QUALIFY",
                        "JOIN",
                        "LEFT",
                        "FULL",
                        "ANTI",
                        "SEMI",
                        "CROSS",
                    ]
                ),
            )
            yield from _parts(ts, n + 1, stop, cut, near)
        elif t.upper == "IS" and nxt[:2] == ["NOT", "NULL"]:
            yield "flip", near(max(n - 1, 0), n + 3), put(n, n + 3, "IS NULL")
        elif t.upper == "IS" and nxt[:1] == ["NULL"]:
            yield "flip", near(max(n - 1, 0), n + 2), put(n, n + 2, "IS NOT NULL")
        elif t.upper == "IS" and nxt[:2] == ["DISTINCT", "FROM"]:
            yield "flip", near(max(n - 1, 0), n + 4), put(n, n + 3, "IS NOT DISTINCT FROM")
            yield "null", near(max(n - 1, 0), n + 4), put(n, n + 3, "<>")
        elif t.upper == "IS" and nxt[:3] == ["NOT", "DISTINCT", "FROM"]:
            yield "null", near(max(n - 1, 0), n + 5), put(n, n + 4, "=")
        elif t.upper == "IN" and nxt[:1] == ["("]:
            if ts[n - 1].upper == "NOT":
                yield "flip", near(max(n - 2, 0), n + 3), put(n - 1, n + 1, "IN")
            else:
                yield "flip", near(max(n - 1, 0), n + 3), put(n, n + 1, "NOT IN")
        elif t.upper == "NOT" and nxt[:1] not in (["IN"], ["NULL"], ["DISTINCT"]):
            yield "not", near(n, min(n + 4, len(ts))), cut(n, n + 1)
        elif t.upper in ("TRUE", "FALSE"):
            yield (
                "boolean",
                near(max(n - 3, 0), n + 1),
                put(n, n + 1, "false" if t.upper == "TRUE" else "true"),
            )
        elif t.upper in ("ANTI", "SEMI", "LEFT", "FULL") and nxt[:1] == ["JOIN"]:
            other = {"ANTI": "SEMI", "SEMI": "ANTI", "LEFT": "", "FULL": "LEFT"}[t.upper]
            yield "join", near(n, n + 3), put(n, n + 1, other)
        elif t.upper == "JOIN" and ts[n - 1].upper not in ("ANTI", "SEMI", "LEFT", "FULL", "CROSS"):
            yield "join", near(n, n + 2), put(n, n + 1, "LEFT JOIN")
        elif t.upper == "DISTINCT" and nxt[:1] != ["FROM"]:
            yield "distinct", near(n, min(n + 4, len(ts))), cut(n, n + 1)
        elif t.kind == "number" and ts[n - 1].text not in ("[", ":") and not _type(ts, n):
            new = (
                "29"
                if t.text == "30"
                else str(int(t.text) + 1)
                if t.text.isdigit()
                else str(float(t.text) * 2)
            )
            yield "constant", near(max(n - 3, 0), min(n + 2, len(ts))), put(n, n + 1, new)
        elif t.kind == "string" and re.fullmatch(r"'[a-z_0-9]+'", t.text):
            yield "word", near(max(n - 2, 0), min(n + 3, len(ts))), put(n, n + 1, "'x_" + t.text[1:])
        elif t.kind == "string" and re.fullmatch(r"'\$\.[a-z_0-9.]+'", t.text):
            yield "path", near(n), put(n, n + 1, t.text[:-1] + "_x'")
        elif t.upper == "UNION":
            stop = _until(ts, n + 1, frozenset(["UNION"]))
            yield "branch", near(n, min(n + 9, len(ts))), cut(n, stop)
        elif t.upper == "WHEN":
            stop = _until(ts, n + 1, frozenset(["WHEN", "ELSE", "END"]))
            yield from _case(ts, n, stop, cut, near)
        elif t.upper.lower() in _ENDS_OF and nxt[:1] == ["("]:
            yield "end", near(n, min(n + 5, len(ts))), put(n, n + 1, _ENDS_OF[t.upper.lower()])
        elif t.upper == "COALESCE" and nxt[:1] == ["("]:
            first = _until(ts, n + 2, frozenset([","]))
            close = first
            while close < len(ts) and not (ts[close].text == ")" and ts[close].depth == t.depth):
                close += 1
            if close < len(ts) and ts[first].text == ",":
                yield (
                    "coalesce",
                    near(n, close + 1),
                    put(n, close + 1, "(" + sql[ts[n + 2].at : ts[first].at] + ")"),
                )


def _joins(ts: list[Token], n: int) -> bool:
    """Whether the `=` at n is an equality of a JOIN ... ON."""
    k = n
    while k >= 0 and ts[k].depth >= ts[n].depth:
        if ts[k].upper in ("WHERE", "HAVING", "WHEN", "SELECT", "FILTER"):
            return False
        if ts[k].upper == "ON":
            return True
        k -= 1
    return False


def _type(ts: list[Token], n: int) -> bool:
    """Whether a number is a number of decimals or a width, not a value."""
    return ts[n - 1].text == "::" or (n > 1 and ts[n - 2].text == "[")


def _parts(ts: list[Token], start: int, stop: int, cut, near) -> Iterator[tuple[str, str, str]]:  # type: ignore[no-untyped-def]
    """Leave out each part of a conjunction or disjunction, at every depth."""
    depth = ts[start].depth
    marks = [k for k in range(start, stop) if ts[k].depth == depth and ts[k].upper in ("AND", "OR")]
    if not marks:
        return
    yield "predicate", near(start, marks[0]), cut(start, marks[0] + 1)
    for k, mark in enumerate(marks):
        end = marks[k + 1] if k + 1 < len(marks) else stop
        yield "predicate", near(mark, end), cut(mark, end)


def _case(ts: list[Token], n: int, stop: int, cut, near) -> Iterator[tuple[str, str, str]]:  # type: ignore[no-untyped-def]
    then = next((k for k in range(n + 1, stop) if ts[k].upper == "THEN" and ts[k].depth == ts[n].depth), None)
    if then is not None:
        yield from _parts(ts, n + 1, then, cut, near)
    # A CASE needs one branch: the only one is not left out but made never to fit.
    before, after = ts[n - 1].upper, ts[stop].upper if stop < len(ts) else ""
    if not (before == "CASE" and after in ("ELSE", "END")):
        yield "when", near(n, stop), cut(n, stop)


@dataclass(frozen=True)
class Combination:
    """The facts that a reader's relation to the subject follows from."""

    trial: str
    reader: str
    backend: str
    instrument_sha256: str | None
    subject_sha256: str | None
    qualified_by: str | None
    qualified_because: str | None
    recorded: str = "independent"

    @property
    def same_bytes(self) -> bool:
        """Whether the instrument is known to be the subject's binary."""
        return self.instrument_sha256 is not None and self.instrument_sha256 == self.subject_sha256

    @property
    def own(self) -> bool:
        """Whether the reader is own code and nothing else."""
        return self.backend == "pure" and self.reader in ("git_object_reader", "oak_sqlite_reader")


_READERS = (
    "git_object_reader",
    "git_instrument_reader",
    "oak_sqlite_reader",
    "oak_export_reader",
    "another_reader",
)
_WORDS = (("R. Reader", "own sources"), (None, None), ("R. Reader", None), (None, "own sources"), ("", " "))

#: Every reader with every backend, equal, other and unknown bytes, and every state of an assertion; and what
#: became of each relation when another one was recorded.
_FACTS = (
    *(
        (reader, backend, instrument, subject, *words, "independent")
        for reader in _READERS
        for backend in ("pure", "native", "git", "export")
        for instrument in (sha("subject"), sha("instrument"), None)
        for subject in (sha("subject"), None)
        for words in _WORDS
    ),
    *(
        (reader, backend, instrument, sha("subject"), None, None, recorded)
        for reader, backend, instrument in (
            ("git_object_reader", "pure", sha("instrument")),
            ("git_instrument_reader", "git", sha("subject")),
            ("git_instrument_reader", "git", sha("instrument")),
            ("oak_export_reader", "export", None),
        )
        for recorded in ("independent", "subject_binary", "subject_export", "unqualified")
    ),
    # A letter is a name, and a reason.
    *(
        ("git_instrument_reader", "git", sha("instrument"), sha("subject"), *words, "independent")
        for words in (("R", "own sources"), ("R. Reader", "s"))
    ),
)
COMBINATIONS = tuple(Combination(f"relations/{n}", *facts) for n, facts in enumerate(_FACTS))


def relations() -> list[Any]:
    """A campaign in which each run was read in another way, and each reading says that it is independent."""
    spec = respec(mutations.SCRIPTED, campaign="relations", order=None, trials_per_cell=len(COMBINATIONS))
    key = canonical_sha256(spec.conditions[0])
    events: list[Any] = [declaration(spec)]
    for n, facts in enumerate(COMBINATIONS):
        slot = Slot(None, None, None, mutations.WIDE.scenario, 1, key, n, "git")
        run = trial(spec, slot, spec.start_ns + (n + 1) * 100 * SECOND)
        run = msgspec.structs.replace(run, trial=facts.trial, subject_binary_sha256=facts.subject_sha256)
        read = reading(
            run,
            reader=facts.reader,
            backend=facts.backend,
            instrument_sha256=facts.instrument_sha256,
            subject_binary_sha256=facts.subject_sha256,
            qualified_by=facts.qualified_by,
            qualified_because=facts.qualified_because,
            relation=facts.recorded,
        )
        events += [run, read, judgement(spec, run, read)]
    return seal(events)


def corpus() -> list[list[Any]]:
    """The campaigns that mutants are tried on: all of the suite but the largest.

    `plan_without_end` has a plan of twenty-two million slots, which a mutant would derive.
    """
    import honesty

    named = [*honesty.everything(), *honesty.pooled()]
    kept = [events for name, events in named if name not in ("honest_whole_workflow", "plan_without_end")]
    return [*kept, relations(), honesty.decisions()]


@contextlib.contextmanager
def loaded(path: Path) -> Iterator[Ledger]:
    """A ledger with the campaigns of `corpus`, some of which a second ledger took in too and was merged."""
    import honesty

    with batch.loaded(path, corpus()) as ledger:
        lab = path.with_name(f"lab-{path.name}")
        with open_ledger(lab, origin="lab") as other:
            other.append(event for _, events in honesty.merged() for event in events)
        merge(ledger, str(lab))
        yield ledger


@contextlib.contextmanager
def at_the_bounds(path: Path) -> Iterator[Trial]:
    """The trial of mutants on what is just evaluated and what is just too large; no slot is derived there.

    A plan of twenty million slots is looked at and not filled: `planned_slots` is empty.
    """
    import honesty

    campaigns = [events for _, events in honesty.at_the_bounds()]
    with (
        batch.loaded(path, campaigns) as ledger,
        batch.workspace(ledger, "large", empty="planned_slots") as con,
    ):
        yield Trial(con, empty="planned_slots")


class Trial:
    """The tables of all campaigns, and what a mutant makes of them."""

    def __init__(self, con: duckdb.DuckDBPyConnection, empty: str | None = None) -> None:
        self.con = con
        #: A view that is without rows here and stays so.
        self.empty = empty
        self.order = [v for v in views.shipped() if v.name != "violations"]
        self.direct = views.mentions(tuple(self.order))
        self.digests = {v.name: self.digest(v.name) for v in self.order}
        self.observed = (
            {v.name for v in self.order if v.name.startswith("rule_")} | set(batch.SHOWN) | LOOKED_AT
        )

    def digest(self, relation: str, told: str | None = None) -> tuple[object, ...]:
        """The content of a relation as a number of rows and a sum of hashes: prose and order left out.

        `told` names the view that it is the content of, where the relation has another name.
        """
        prose = {"because"} if (told or relation) in TELLING else {"because", "detail"}
        types = {n: t for n, t, *_ in self.con.execute(f"DESCRIBE {relation}").fetchall() if n not in prose}
        names = list(types)
        # An empty list and null have one hash, and two texts.
        parts = [f'list_sort("{n}")::VARCHAR' if t.endswith("[]") else f'"{n}"' for n, t in types.items()]
        fields = ", ".join(f"c{n} := {part}" for n, part in enumerate(parts))
        row = self.con.execute(
            f"SELECT count(*), sum(hash(struct_pack({fields}))::HUGEINT) FROM {relation}"
        ).fetchone()
        assert row is not None
        return (tuple(names), *row)

    def caught(self, mutant: Mutant) -> str | None:
        """What notices a mutant: the name of a rule or of a figure, or `error`; null: nothing does."""
        timer = threading.Timer(DEADLINE, self.con.interrupt)
        timer.start()
        changed: list[str] = []
        try:
            for one in self.order:
                if one.name == self.empty:
                    continue
                if one.name == mutant.view:
                    text = mutant.sql
                elif set(self.direct[one.name]) & set(changed):
                    text = one.select
                else:
                    continue
                self.con.execute(f"CREATE OR REPLACE TEMP TABLE changed_view AS {text}")
                if self.digest("changed_view", one.name) == self.digests[one.name]:
                    if one.name == mutant.view:
                        return None
                    continue
                if one.name in self.observed:
                    return one.name
                changed.append(one.name)
                self.con.execute(f"ALTER TABLE {one.name} RENAME TO kept_{one.name}")
                self.con.execute(f"CREATE TABLE {one.name} AS FROM changed_view")
            return None
        except duckdb.InterruptException:
            return "never ends"
        except duckdb.ParserException as e:
            raise AssertionError(f"no SQL came of {mutant.key}: {e}") from e
        except duckdb.Error as e:
            return f"error: {' '.join(str(e).split())[:80]}"
        finally:
            timer.cancel()
            for name in changed:
                self.con.execute(f"DROP TABLE IF EXISTS {name}")
                self.con.execute(f"ALTER TABLE kept_{name} RENAME TO {name}")


#: The view that is about the file and not about campaigns.
LEDGER_VIEW = "rule_14_ledger"

#: Ledgers of two origins, a and b, and one that is told by name: what was done to it, and what rule 14 says.
DAMAGE: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "sound": ((), frozenset()),
    "empty": (
        ("DELETE FROM events", "DELETE FROM checkpoints", "DELETE FROM duplicates"),
        frozenset({"empty_ledger"}),
    ),
    "emptied": (
        ("DELETE FROM events", "DELETE FROM duplicates"),
        frozenset({"empty_ledger", "checkpoint_differs"}),
    ),
    "first lost": (
        ("DELETE FROM events WHERE origin = 'a' AND seq = 0",),
        frozenset({"sequence_gap", "checkpoint_differs"}),
    ),
    "one lost in the middle": (
        ("DELETE FROM events WHERE origin = 'a' AND seq = 1",),
        frozenset({"sequence_gap", "checkpoint_differs"}),
    ),
    "one lost and the checkpoint made to fit": (
        (
            "DELETE FROM events WHERE origin = 'a' AND seq = 1",
            "UPDATE checkpoints SET size = 3 WHERE origin = 'a' AND size = 4",
        ),
        frozenset({"sequence_gap"}),
    ),
    "first lost and the numbers moved": (
        ("UPDATE events SET seq = seq + 1 WHERE origin = 'a'",),
        frozenset({"sequence_gap"}),
    ),
    "tail lost, and with it the copy that counts": (
        ("DELETE FROM events WHERE origin = 'a' AND seq = 3",),
        frozenset({"checkpoint_differs", "event_hidden"}),
    ),
    "first number below zero": (
        ("UPDATE events SET seq = -1 WHERE origin = 'a' AND seq = 0",),
        frozenset({"sequence_gap"}),
    ),
    "an event of no origin hidden": (
        ("INSERT INTO duplicates VALUES ('c', 0)",),
        frozenset({"event_hidden"}),
    ),
    "one added without a checkpoint": (
        ("INSERT INTO events VALUES ('a', 4, 'e-new')",),
        frozenset({"checkpoint_differs"}),
    ),
    "origin without a checkpoint": (
        ("DELETE FROM checkpoints WHERE origin = 'b'",),
        frozenset({"checkpoint_differs"}),
    ),
    "checkpoint without an origin": (
        ("INSERT INTO checkpoints VALUES ('c', 1)",),
        frozenset({"checkpoint_differs"}),
    ),
    "event hidden": (
        ("INSERT INTO duplicates VALUES ('a', 2)",),
        frozenset({"event_hidden"}),
    ),
    "both copies hidden": (
        ("INSERT INTO duplicates VALUES ('a', 3)",),
        frozenset({"event_hidden"}),
    ),
    "what is not there hidden": (
        ("INSERT INTO duplicates VALUES ('a', 77)",),
        frozenset({"event_hidden"}),
    ),
    "copy counted twice": (
        ("INSERT INTO events VALUES ('c', 0, 'e3')", "INSERT INTO checkpoints VALUES ('c', 1)"),
        frozenset({"event_counted_twice"}),
    ),
}


def damaged(con: duckdb.DuckDBPyConnection, statements: tuple[str, ...]) -> None:
    """Make the tables that rule 14 looks at: e3 is in both origins, and the copy in b does not count."""
    con.execute("CREATE OR REPLACE TABLE events (origin VARCHAR, seq BIGINT, event_id VARCHAR)")
    con.execute("CREATE OR REPLACE TABLE checkpoints (origin VARCHAR, size BIGINT)")
    con.execute("CREATE OR REPLACE TABLE duplicates (origin VARCHAR, seq BIGINT)")
    con.execute(
        "INSERT INTO events VALUES ('a', 0, 'e0'), ('a', 1, 'e1'), ('a', 2, 'e2'), ('a', 3, 'e3'), "
        "('b', 0, 'e3'), ('b', 1, 'e5')"
    )
    con.execute("INSERT INTO checkpoints VALUES ('a', 2), ('a', 4), ('b', 2)")
    con.execute("INSERT INTO duplicates VALUES ('b', 0)")
    for statement in statements:
        con.execute(statement)


class LedgerTrial:
    """Damaged ledgers, and what a mutant of rule 14 says of them."""

    def said(self, sql: str) -> dict[str, frozenset[tuple[object, ...]]]:
        """What the view finds in each ledger; prose left out."""
        out: dict[str, frozenset[tuple[object, ...]]] = {}
        with duckdb.connect() as con:
            for name, (statements, _) in DAMAGE.items():
                damaged(con, statements)
                rows = con.execute(
                    f"SELECT what, binding, campaign, event_ids::VARCHAR FROM ({sql})"
                ).fetchall()
                out[name] = frozenset(rows)
        return out

    def caught(self, mutant: Mutant) -> str | None:
        """As `Trial.caught`."""
        try:
            mutated = self.said(mutant.sql)
        except duckdb.ParserException as e:
            raise AssertionError(f"no SQL came of {mutant.key}: {e}") from e
        except duckdb.Error as e:
            return f"error: {' '.join(str(e).split())[:80]}"
        sound = self.said(views.view(LEDGER_VIEW).select)
        return next((name for name in sound if sound[name] != mutated[name]), None)


@cache
def explanations() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The entries of sql_equivalents.toml: a pattern of keys, and why those mutants make no difference."""
    data = tomllib.loads((Path(__file__).parent / "sql_equivalents.toml").read_text())
    return tuple((re.compile(row["mutant"]), row["why"]) for row in data.get("equivalent", ()))


def equivalent(mutant: Mutant) -> str | None:
    """Why a mutant makes no difference, or null."""
    return next((why for pattern, why in explanations() if pattern.search(mutant.key)), None)
