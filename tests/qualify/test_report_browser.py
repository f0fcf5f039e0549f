"""The report in a real browser: what it shows; nothing runs, nothing is asked for, nothing overflows."""

import os
from pathlib import Path

import campaigns as c
import pytest
from chromium import Chromium, find_chromium

pytest.importorskip("jinja2", reason="the extra `report` is not installed")

from ledger.store import open_ledger
from qualify.decision import decide
from qualify.report.data import collect
from qualify.report.page import render

pytestmark = pytest.mark.browser

WIDTHS = {"phone": 390, "tablet": 820, "screen": 1280}

#: What must not run, and must not be asked for; the address is one of those kept for documentation.
PLANTED = (
    "<script>document.title='run'</script><img src='http://192.0.2.1/x' onerror=\"document.title='run'\">"
)

#: Elements wider than the page that are not inside a region of their own that scrolls.
OVERFLOWING = """
[...document.querySelectorAll('body *')].filter(e => {
    const r = e.getBoundingClientRect();
    return r.width && e.checkVisibility() && r.right > document.documentElement.clientWidth + 1
        && !e.closest('.scroll *') && !e.closest('.defs') && !e.closest('.skip');
}).map(e => e.tagName + '.' + (e.getAttribute('class') || '') + ' ' + e.textContent.slice(0, 60))
"""

#: Pairs of texts in the flow of the page that lie on each other.
OVERLAPPING = """
(() => {
    const boxes = [];
    const texts = 'h1,h2,h3,h4,main p,.who,.chips > *,dt,dd,summary,td,th,nav a';
    for (const e of document.querySelectorAll(texts)) {
        const r = e.getBoundingClientRect();
        if (r.width && r.height && e.checkVisibility() && !e.closest('.defs')) boxes.push([e, r]);
    }
    boxes.sort((a, b) => a[1].top - b[1].top);
    const found = [];
    for (let i = 0; i < boxes.length; i++) {
        const [e, r] = boxes[i];
        for (let j = i + 1; j < boxes.length && boxes[j][1].top < r.bottom - 3; j++) {
            const [f, s] = boxes[j];
            if (e.contains(f) || f.contains(e)) continue;
            if (s.left < r.right - 3 && r.left < s.right - 3)
                found.push(e.textContent.slice(0, 40) + ' | ' + f.textContent.slice(0, 40));
        }
    }
    return found.slice(0, 10);
})()
"""


def axe():
    """The text of axe-core: `.ci/provide-chromium` fetches it, OAKLEDGER_TEST_AXE names another; or null."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oakledger"
    named = os.environ.get("OAKLEDGER_TEST_AXE")
    for path in [Path(named)] if named else sorted(cache.glob("axe-core-*/package/axe.min.js")):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return None


def spoiled():
    """A campaign with a hole, failures with hostile paths, something set aside, and a claim."""
    hostile = f"\"'>{PLANTED}"
    spec = c.respec(c.AGENT, trials_per_cell=12, scenarios=c.SCENARIOS[:2])
    events = c.honest(spec)
    gone = {
        e.trial
        for e in events
        if isinstance(e, c.TrialRecorded)
        and (e.subject, e.scenario) == ("oak_installed", "wide_config_refactor")
        and e.condition == c.AGENT_CONDITIONS[1]
    }
    events = c.drop(events, lambda e: getattr(e, "trial", None) in gone)
    events = c.edit(events, c.kind(c.StudyCriteriaAttested), statement=hostile)
    runs = [e for e in events if isinstance(e, c.TrialRecorded)]
    late = c.kind(c.TrialRecorded, trial=runs[5].trial)
    events = c.edit(events, late, started_at_ns=runs[30].started_at_ns + 1, ended_at_ns=None)
    return c.seal(events)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with open_ledger(folder / "l.duckdb") as ledger:
        ledger.append(spoiled())
        decision = decide(ledger, "honest")
        data = collect(ledger, decision)
    path = folder / "report.html"
    path.write_bytes(render(data, "l.duckdb"))
    return path


@pytest.fixture(scope="module")
def browser():
    program = find_chromium()
    if program is None:
        pytest.skip("no chromium on PATH (.ci/provide-chromium)")
    with Chromium(program) as running:
        yield running


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_shows_everything_quietly(browser, page, width, scheme):
    browser.width(WIDTHS[width], mobile=width == "phone")
    browser.media(scheme)
    browser.open(page)
    assert browser.run("document.title") == "honest is diagnostic - oakledger report"
    assert "DIAGNOSTIC, not qualified" in browser.run("document.querySelector('.banner').innerText")
    assert browser.run("document.querySelectorAll('.rules > li').length") == 14
    assert browser.run("[...document.querySelectorAll('td.hole')].map(e => e.innerText)") == ["HOLE\n0 of 12"]
    assert browser.run("document.querySelectorAll('svg[role=img]').length") > 30
    assert browser.run("[...document.querySelectorAll('svg[role=img]')].every(e => e.clientWidth > 100)")
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.run(OVERFLOWING) == []
    assert browser.run(OVERLAPPING) == []
    dark = browser.run("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    # The style sheet is in force although the policy of the page forbids all but this one.
    assert browser.run("getComputedStyle(document.querySelector('.o-passed')).fill").startswith("rgb")
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]


def test_a_number_opens_its_events(browser, page):
    browser.width(1280)
    browser.open(page)
    closed = "document.getElementById('cell-1-passed').closest('details').open"
    assert browser.run(closed) is False
    browser.run("document.querySelector('a[href=\"#cell-1-passed\"]').click()")
    assert browser.run("new Promise(r => setTimeout(() => r(" + closed + "), 300))") is True
    assert browser.run("Math.abs(document.getElementById('cell-1-passed').getBoundingClientRect().top)") < 200


def test_keyboard_reaches_the_content_first(browser, page):
    browser.open(page)
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.run("document.activeElement.getAttribute('href')") == "#main"


def test_the_policy_of_the_page_holds(browser, page, tmp_path):
    """A script that got into the file does not run, an image is not asked for: shown on a copy."""
    text = page.read_text(encoding="utf-8")
    copy = tmp_path / "planted.html"
    copy.write_text(text.replace("</main>", PLANTED + "</main>"), encoding="utf-8")
    browser.open(copy)
    assert browser.run("document.title") == "honest is diagnostic - oakledger report"
    assert any("Content Security Policy" in text for text in browser.complaints())


def test_prints(browser, page):
    browser.media("dark", "print")
    browser.open(page)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    pdf = browser.pdf()
    browser.media("light")
    assert pdf.startswith(b"%PDF") and len(pdf) > 50_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["phone", "screen"])
def test_accessible_by_the_rules_of_axe(browser, page, width, scheme):
    script = axe()
    if script is None:
        pytest.skip("no axe-core (.ci/provide-chromium, or OAKLEDGER_TEST_AXE)")
    browser.width(WIDTHS[width], mobile=width == "phone")
    browser.media(scheme)
    browser.open(page)
    browser.run(script + "; 0")
    browser.run("document.querySelectorAll('details').forEach(e => e.open = true)")
    found = browser.run(
        "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map("
        "v => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160)).join(' | ')))",
        timeout=300,
    )
    assert found == []
