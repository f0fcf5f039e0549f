"""The report: the decision of `qualify`, figures of the views, holes in plain sight, nothing that runs."""

import base64
import hashlib
import json
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser

import campaigns as c
import duckdb
import pytest

pytest.importorskip("jinja2", reason="the extra `report` is not installed")

from ledger.checkpoints import keep
from ledger.events import (
    Check,
    OracleJudged,
    Order,
    StudyCriteriaAttested,
    TrialInvalidated,
    TrialRecorded,
    TrialReplaced,
)
from ledger.snapshot import snapshot
from ledger.store import open_ledger
from qualify.decision import decide
from qualify.report import data as report_data
from qualify.report import words
from qualify.report.data import collect
from qualify.report.page import MARK, render

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}\u202egnp.\x1b[31m"

#: Every element that the templates use.
TAGS = set(
    """a bdi body br caption circle code dd defs desc details div dl dt figcaption figure footer g h1 h2 h3 h4
    head header html li line main meta nav ol p path pattern pre rect section span strong style summary svg
    table tbody td th thead title tr ul wbr""".split()  # noqa: SIM905
)


class Page(HTMLParser):
    """What is in a page: tags, attributes, ids, links, and texts by place."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.attributes, self.texts = [], [], [], [], []
        self.cells = []
        self._open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        found = dict(attributes)
        self.attributes += [(tag, k, v) for k, v in attributes]
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "a":
            self.links.append(found["href"])
        self._open.append((tag, found))
        if tag == "td":
            self.cells.append((found.get("class", ""), ""))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self._open.pop()

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        self.texts.append(text)
        if any(t == "td" for t, _ in self._open) and self.cells:
            css, said = self.cells[-1]
            self.cells[-1] = (css, said + text)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def book(path, events):
    with open_ledger(path) as ledger:
        keep(path, ledger.append(events).checkpoint)
    return path


def make(path, campaign):
    """Decide, collect and render on one open ledger."""
    with open_ledger(path, read_only=True) as ledger:
        decision = decide(ledger, campaign)
        data = collect(ledger, decision)
    return decision, data, render(data, path.name)


def hostile_events():
    """The honest campaign with a hole, a start out of order, and hostile text where events hold text."""
    events = c.honest()
    gone = {
        e.trial
        for e in events
        if isinstance(e, TrialRecorded)
        and (e.subject, e.scenario) == ("oak_installed", "wide_config_refactor")
        and e.condition == c.AGENT_CONDITIONS[1]
    }
    events = c.drop(events, lambda e: getattr(e, "trial", None) in gone)
    events = c.edit(events, c.kind(StudyCriteriaAttested), statement=HOSTILE)
    events = c.edit(events, c.kind(TrialReplaced), why=HOSTILE)
    events = c.edit(
        events,
        c.kind(OracleJudged, verdict="fail"),
        checks=(Check("content", "fail", path=HOSTILE, expected="a", found="b", excerpt=HOSTILE),),
    )
    runs = [e for e in events if isinstance(e, TrialRecorded)]
    early = c.kind(TrialRecorded, trial=runs[20].trial)
    events = c.edit(events, early, started_at_ns=runs[40].started_at_ns + 1, ended_at_ns=None)
    at = max(e.recorded_at_ns for e in events)
    invalid = TrialInvalidated(
        **c.envelope(at), campaign="honest", trial=runs[3].trial, who="operator", why=HOSTILE
    )
    return c.seal([*events, invalid])


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    path = book(tmp_path_factory.mktemp("honest") / "it's a ledger.duckdb", c.honest())
    decision, data, page = make(path, "honest")
    return path, decision, data, page, Page(page.decode())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = book(tmp_path_factory.mktemp("small") / "it's a ledger.duckdb", c.honest(c.SMALL))
    decision, data, page = make(path, "small")
    return path, decision, data, page, Page(page.decode())


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = book(tmp_path_factory.mktemp("hostile") / "l.duckdb", hostile_events())
    decision, data, page = make(path, "honest")
    return path, decision, data, page, Page(page.decode())


def test_the_decision_and_every_rule_are_those_of_qualify(honest, hostile):
    _, decision, _, page, parsed = honest
    assert decision.qualified
    assert "QUALIFIED All 14 rules were evaluated" in parsed.text
    assert b"VIOLATED" not in page
    path, decision, _, page, parsed = hostile
    assert not decision.qualified
    refused = [r.rule.number for r in decision.rules if r.violations]
    assert f"DIAGNOSTIC, not qualified Rules {' , '.join(map(str, refused))} are violated" in parsed.text
    for state in decision.rules:
        item = re.search(rf'<li class="(\w+)" id="rule-{state.rule.number}">', page.decode())
        assert item[1] == state.state
        for violation in state.violations:
            assert " ".join(violation.detail.split()) in parsed.text
    run = oakledger(path, "qualify", "--campaign", "honest", "--no-record", "--json")
    answer = json.loads(run.stdout)
    assert [r["state"] for r in answer["rules"]] == [r.state for r in decision.rules]
    assert run.returncode == decision.exit_status == 1


def test_figures_are_rows_of_the_views(hostile):
    _, decision, data, page, _ = hostile
    assert data.rows("cells") == decision.tables["cells"]
    assert data.rows("claims") == decision.tables["claims"]
    assert data.rows("reruns") == decision.tables["reruns"]
    assert len(data.rows("slots")) == decision.facts["slots"]
    text = page.decode()
    for n, cell in enumerate(decision.tables["cells"], start=1):
        item = text[text.index(f'<li id="cell-{n}">') :]
        item = item[: item.index("</li>")]
        said = {k: int(v) for k, v in re.findall(rf'href="#cell-{n}-(\w+)">.*?</svg>(\d+) ', item)}
        columns = {"invalidated": "slots_invalidated"}
        assert said == {o: cell[columns.get(o, o)] for o in words.OUTCOMES if cell[columns.get(o, o)]}
        # The bar is the fixed denominator: its parts are shares of all planned trials.
        widths = [
            float(w) for w in re.findall(r'<rect class="o-\w+" x="[\d.]+%" y="0" width="([\d.]+)%"', item)
        ]
        assert widths == pytest.approx([100 * v / cell["planned"] for v in said.values()], abs=0.01)


def test_every_number_leads_to_its_events(hostile):
    _, _, data, page, parsed = hostile
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert {link[1:] for link in parsed.links if link.startswith("#")} <= set(parsed.ids)
    assert all(link.startswith("#") for link in parsed.links)
    text = page.decode()
    for row in data.rows("slots"):
        if row["event_id"]:
            assert f"{row['trial']}  {row['event_id']}" in text
    for row in data.rows("set_aside"):
        assert row["event_id"] in text


def test_the_printed_sql_gives_the_printed_rows(hostile):
    path, _, data, page, _ = hostile
    compared = 0
    with snapshot(str(path)) as con:
        for answer in data.answers.values():
            cursor = con.execute(answer.sql)
            names = [d[0] for d in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            if answer.name not in ("failures", "environments"):  # whose JSON is taken apart
                assert rows == answer.rows, answer.name
            assert len(rows) == len(answer.rows)
            compared += len(rows)
            assert f'<h3 id="sql-{answer.name}">' in page.decode()
    assert compared > 1000


def test_a_hole_cannot_be_overlooked(honest, hostile):
    assert "No hole: every subject was measured" in honest[4].text
    _, _, _, _, parsed = hostile
    assert (
        "1 hole : nothing was measured for oak_installed, wide_config_refactor@1, model-b-20260101"
        in parsed.text
    )
    holes = [said for css, said in parsed.cells if css == "hole"]
    assert [" ".join(h.split()) for h in holes] == ["HOLE0 of 32"]
    assert sum(css == "hole diagnostic" for css, _ in parsed.cells) == 6
    assert sum(css == "full" for css, _ in parsed.cells) == 11


def test_hostile_text_runs_nothing_and_steers_nothing(hostile):
    _, _, _, page, parsed = hostile
    assert set(parsed.tags) <= TAGS
    for tag, name, value in parsed.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "style", "srcset", "xlink:href", "action", "formaction", "background"), (
            name
        )
        if name == "href":
            assert tag == "a" and re.fullmatch(r"#[\w-]+", value)
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
    assert (
        parsed.text.count(shown) >= 4
    )  # statement, reason of a replacement and of an invalidation, path, excerpt
    assert "\u202e" not in page.decode() and b"\x1b" not in page


def test_every_text_field_is_escaped(hostile):
    """Whatever the event types allow: put the hostile text into every text of every row."""
    _, decision, data, _, _ = hostile

    def spoil(value):
        if isinstance(value, dict):
            return {k: spoil(v) for k, v in value.items()}
        if isinstance(value, list):
            return [spoil(v) for v in value]
        return value + HOSTILE if isinstance(value, str) else value

    spared = {"outcome", "role", "pair", "correctness_class", "direction", "verdict"}
    answers = {
        name: report_data.Answer(
            answer.name,
            answer.title + HOSTILE,
            answer.sql + HOSTILE,
            [{k: v if k in spared else spoil(v) for k, v in row.items()} for row in answer.rows],
        )
        for name, answer in data.answers.items()
    }
    spoiled = Page(render(report_data.Data(decision, answers, data.limit), "x" + HOSTILE).decode())
    assert set(spoiled.tags) <= TAGS
    assert not [a for a in spoiled.attributes if a[1].startswith("on") or a[1] in ("src", "style")]
    assert spoiled.text.count("alert(1)") > 1000


def test_self_contained_and_its_own_policy_forbids_the_rest(honest):
    _, _, _, page, parsed = honest
    text = page.decode()
    assert page.startswith(MARK)
    assert not re.search(r"https?:|//[a-z]|@import|javascript:", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {f"#p-{n}" for n in parsed_patterns(parsed)}
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(v for t, k, v in parsed.attributes if t == "meta" and k == "content" and "default-src" in v)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    for needed in ("prefers-color-scheme: dark", "@media print", "max-width: 40rem", "focus-visible"):
        assert needed in style


def parsed_patterns(parsed):
    return [v.removeprefix("p-") for t, k, v in parsed.attributes if t == "pattern" and k == "id"]


def test_pictures_have_names_and_descriptions(honest):
    _, _, _, page, parsed = honest
    images = re.findall(
        r'<svg class="[\w ]+" role="img" aria-labelledby="(\w+)" aria-describedby="(\w+)"', page.decode()
    )
    assert len(images) > 30
    assert {i for pair in images for i in pair} <= set(parsed.ids)
    bare = re.findall(
        r"<svg(?![^>]*(?:role=\"img\"|aria-hidden=\"true\"|preserveAspectRatio))[^>]*>", page.decode()
    )
    assert bare == []


def test_order_marks_what_rule_5_found(honest, hostile):
    assert b'<g class="wrong"><circle cx="' not in honest[3].replace(
        b'<g class="wrong"><circle cx="7.5"', b""
    )
    assert hostile[3].count(b'<g class="wrong"><circle') == 1 + 1  # one on the timeline, one in the legend
    assert "1 out of order" in hostile[4].text


def test_noise_floor_is_drawn_where_the_views_have_one(honest):
    _, decision, _, page, parsed = honest
    claims = decision.tables["claims"]
    assert claims and all(row["floor_permille"] is not None for row in claims)
    bands = page.count(b'<rect class="noise" x=')
    assert bands == len(claims) * 2 + len(claims) * 3  # claim and null; three subjects of each raw metric
    assert parsed.text.count("Rule 11 finds nothing against it.") == len(claims)


def test_same_ledger_same_bytes(honest):
    path, _, _, page, _ = honest
    assert make(path, "honest")[2] == page


VARIANTS = {
    "by_observation": lambda: c.honest(c.respec(c.SMALL, order=None)),
    "blocks": lambda: c.honest(c.respec(c.SMALL, order=Order("blocked-sha256/1", "dice 1", "block"))),
    "small": lambda: c.honest(c.SMALL),
    "undeclared": lambda: c.seal(c.honest(c.SMALL)[1:]),
    "only_declared": lambda: c.seal(c.honest(c.SMALL)[:1]),
    "without_readers": lambda: c.seal(
        [e for e in c.honest(c.SMALL) if type(e).__name__ not in ("ReaderInvoked", "OracleJudged")]
    ),
    "without_start_times": lambda: c.edit(
        c.honest(c.SMALL), c.kind(TrialRecorded), started_at_ns=None, ended_at_ns=None
    ),
    "other_condition": lambda: c.edit(
        c.honest(c.SMALL), c.kind(TrialRecorded), 1, condition=c.SCRIPT_CONDITIONS[1]
    ),
    "core_lane": lambda: c.honest(
        c.respec(c.SMALL, lane="core", order=Order("blocked-sha256/1", "s", "block"))
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_whatever_a_ledger_holds_has_a_page(tmp_path, name):
    events = VARIANTS[name]()
    campaign = next(e.campaign for e in events if getattr(e, "campaign", None))
    decision, _, page = make(book(tmp_path / "l.duckdb", events), campaign)
    parsed = Page(page.decode())
    assert decision.word.upper() in parsed.text
    assert {link[1:] for link in parsed.links} <= set(parsed.ids)
    assert len(set(parsed.ids)) == len(parsed.ids)


def test_lists_are_bounded_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(report_data, "LISTED_EVENTS", 50)
    path = book(tmp_path / "l.duckdb", c.honest(c.SMALL))
    decision, data, page = make(path, "small")
    assert data.limit < 31
    shown = [r for r in data.rows("slots") if r["outcome"] == "passed"]
    assert len(shown) == 2 * data.limit
    text = Page(page.decode()).text
    for cell in decision.tables["cells"]:
        assert f"{cell['passed'] - data.limit} more:" in text


def oakledger(path, *args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "ledger.cli", "--ledger", str(path), *args],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )


def test_command_writes_the_page_and_nothing_else(small, tmp_path):
    path, _, _, page, _ = small
    before = path.read_bytes()
    out = tmp_path / "r.html"
    run = oakledger(path, "report", "--campaign", "small", "-o", str(out))
    assert (run.returncode, run.stderr) == (0, "")
    assert "campaign small is qualified" in run.stdout
    assert out.read_bytes() == page and path.read_bytes() == before
    again = oakledger(path, "report", "--campaign", "small", "-o", str(out), "--json")
    said = json.loads(again.stdout)
    assert said["sha256"] == hashlib.sha256(page).hexdigest() and said["decision"] == "qualified"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    piped = subprocess.run(
        [
            sys.executable,
            "-m",
            "ledger.cli",
            "--ledger",
            str(path),
            "report",
            "--campaign",
            "small",
            "-o",
            "-",
        ],
        capture_output=True,
        check=True,
    )
    assert piped.stdout == page


def test_the_commands_on_the_page_work(small, tmp_path):
    """A reader copies the commands from the page, with the ledger beside it."""
    path, _, data, page, _ = small
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes())
    (tmp_path / "this-page.html").write_bytes(page)
    text = page.decode()
    section = text[text.index('<h2 id="verify">') : text.index('<h2 id="events">')]
    blocks = ["".join(Page(b).texts) for b in re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL)]
    event = data.rows("slots")[0]["event_id"]
    ran = []
    for block in blocks:
        for line in block.replace("EVENT", event).replace('"..."', '"SELECT 1"').splitlines():
            argv = shlex.split(line) if not line.startswith((".read", "ATTACH")) else []
            if argv and argv[0] == "oakledger":
                run = subprocess.run(
                    [sys.executable, "-m", "ledger.cli", *argv[1:]],
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, (line, run.stderr)
                ran.append(argv[1] if argv[1] != "--ledger" else argv[3])
            elif argv and argv[0] in ("printf", "cmp"):
                subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
                ran.append(argv[0])
    assert ran == ["printf", "audit", "qualify", "sql", "show", "prove", "verify-proof", "report", "cmp"]


def test_errors_have_a_next_step(small, tmp_path):
    path = small[0]
    run = oakledger(path, "report", "--campaign", "smal", "-o", str(tmp_path / "r.html"))
    assert run.returncode == 4 and "did you mean small?" in run.stderr
    other = tmp_path / "mine.html"
    other.write_text("mine")
    run = oakledger(path, "report", "--campaign", "small", "-o", str(other))
    assert run.returncode == 2 and "is no oakledger report: give another name" in run.stderr
    assert other.read_text() == "mine"
    run = oakledger(path, "report", "--campaign", "small", "-o", str(tmp_path / "no" / "r.html"))
    assert run.returncode == 2 and "cannot be written" in run.stderr
    run = oakledger(tmp_path / "none.duckdb", "report", "--campaign", "small", "-o", str(tmp_path / "r.html"))
    assert run.returncode == 2 and run.stderr.count("\n") == 1
    code = "import sys; sys.modules['jinja2'] = None; from ledger.cli.root import main; main(sys.argv[1:])"
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "--ledger",
            str(path),
            "report",
            "--campaign",
            "small",
            "-o",
            str(tmp_path / "r.html"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and "oakledger[report]" in run.stderr
    assert not (tmp_path / "r.html").exists()


def test_no_page_on_a_ledger_that_does_not_verify(tmp_path):
    path = book(tmp_path / "l.duckdb", c.honest(c.SMALL))
    con = duckdb.connect(str(path))
    con.execute("DROP TRIGGER events_no_delete ON events")
    con.execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    con.close()
    run = oakledger(path, "report", "--campaign", "small", "-o", str(tmp_path / "r.html"))
    assert run.returncode == 3 and "does not verify" in run.stderr
    assert not (tmp_path / "r.html").exists()
