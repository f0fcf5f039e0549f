"""Every command of the documentation is run as it stands, and says what the page shows.

How a page marks its blocks, in comments that a reader of the page does not see, above the block:

* nothing: a `sh` block is a script; in a `console` block every line that begins with `$ ` is a command (lines
  that end in a backslash go on), and the lines below it must appear in its output, in that order. `...` is
  any text within a line, and for any lines when it is alone. White space counts once.
* `<!-- file: NAME -->`: the block, of whatever language, is written to NAME.
* `<!-- needs: PROGRAM MAJOR -->`: the block is run where PROGRAM of that version or a later one is on PATH;
  otherwise a skipped test says so.
* `<!-- not run: WHY -->`: the block is not run; its commands and options must exist.
* `<!-- run: COMMAND -->`: not shown, run at this place: what the reader has and a fresh directory lacks.

A page has one fresh directory. A command must end with status 0; `; echo "exit status $?"` shows another.
"""

from __future__ import annotations

import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

import click
import pytest

from ledger.cli.root import cli

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/howto").glob("*.md"))]
ALL_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = ("sh", "console")

#: Longest that one block may take, in seconds; they take a few on an idle machine.
SECONDS = 240

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (file|needs|not run|run): (.*?) -->", re.DOTALL)


@functools.cache
def have(needed: str) -> bool:
    """Whether a program of at least that major version is there."""
    name, major = needed.split()
    program = shutil.which(name)
    if program is None:
        return False
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    found = re.search(r"\d+", done.stdout)
    return found is not None and int(found[0]) >= int(major)


@dataclass(frozen=True)
class Block:
    page: pathlib.Path
    line: int
    language: str
    text: str
    mark: str | None = None
    value: str = ""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def left_out(self) -> str | None:
        """Why the block is not run here, if so."""
        if self.mark == "not run" and self.language in RUN:
            return self.value
        return f"there is no {self.value} on PATH" if self.mark == "needs" and not have(self.value) else None


def blocks(page: pathlib.Path) -> list[Block]:
    """Return the blocks and hidden commands of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = []
    pending: re.Match[str] | None = None
    for match in re.finditer(f"{_FENCE.pattern}|{_COMMENT.pattern}", text, re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        language, body, mark, value = match.groups()
        if mark == "run":
            found.append(Block(page, line, "sh", value + "\n"))
        elif mark is not None:
            pending = match
        else:
            near = pending is not None and not text[pending.end() : match.start()].strip()
            kind, what = (pending[3], pending[4]) if pending is not None and near else (None, "")
            found.append(Block(page, line, language, body, kind, " ".join(what.split())))
            pending = None
    return found


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the lines that are shown below it."""
    found: list[tuple[str, list[str]]] = []
    going_on = False
    for line in text.splitlines():
        if going_on:
            found[-1] = (found[-1][0] + "\n" + line, [])
        elif line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
        going_on = line.endswith("\\") and (going_on or line.startswith("$ "))
    return found


def missing_line(shown: list[str], output: str) -> str | None:
    """Return the first shown line that the output does not have at its place."""
    rest = [" ".join(line.split()) for line in output.splitlines()]
    for line in shown:
        words = " ".join(line.split())
        if words in ("", "..."):
            continue
        wanted = re.compile(".*".join(re.escape(part.strip()) for part in words.split("...")))
        at = next((n for n, candidate in enumerate(rest) if wanted.fullmatch(candidate)), None)
        if at is None:
            return line
        rest = rest[at + 1 :]
    return None


def shell(command: str, folder: pathlib.Path, *, strict: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody would who has oakledger installed. strict: end at the first failure."""
    places = [str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "/usr/bin:/bin")]
    env = {
        "PATH": os.pathsep.join(places),
        "HOME": str(folder.parent / "home"),
        "LC_ALL": "C.UTF-8",
        "TMPDIR": str(folder.parent / "tmp"),
        "COLUMNS": "120",
    }
    for name in ("home", "tmp"):
        (folder.parent / name).mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", *(["-e"] if strict else []), "-uo", "pipefail", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def run_block(block: Block, folder: pathlib.Path) -> None:
    if block.mark == "file":
        target = folder / block.value
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text, encoding="utf-8")
        return
    if block.language not in RUN or block.left_out:
        return
    parts = commands(block.text) if block.language == "console" else [(block.text, [])]
    for command, shown in parts:
        done = shell(command, folder, strict=block.language == "sh")
        assert done.returncode == 0, f"{block.name}\n$ {command}\n{done.stdout}\nstatus {done.returncode}"
        lacking = missing_line(shown, done.stdout)
        assert lacking is None, f"{block.name}\n$ {command}\n{done.stdout}\nlacks the line: {lacking}"


def ids(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


LEFT_OUT = [b for page in PAGES for b in blocks(page) if b.left_out]


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_the_commands_of_a_page(page, tmp_path):
    found = blocks(page)
    assert any(b.language in RUN and not b.left_out for b in found), f"{page} has no block that is run"
    folder = tmp_path / "here"
    folder.mkdir()
    for block in found:
        run_block(block, folder)


@pytest.mark.parametrize("block", LEFT_OUT, ids=lambda b: b.name)
def test_blocks_that_are_not_run_here(block):
    pytest.skip(block.left_out)


@pytest.mark.parametrize("page", ALL_PAGES, ids=ids)
def test_blocks_of_commands_say_so(page):
    """A block without a language is never run, so it must not look like commands."""
    if page.name == "README.md" or page in PAGES:
        for block in blocks(page):
            first = block.text.lstrip().splitlines()[:1]
            plain = block.language == "" and first and re.match(r"(\$ |oakledger |make )", first[0])
            assert not plain, f"{block.name}: mark the language, sh or console"


def oakledger_lines(page: pathlib.Path) -> list[tuple[int, str]]:
    """Return every command line of oakledger on a page: in blocks, and in code within text."""
    found = []
    for block in blocks(page):
        text = block.text.replace("\\\n", " ")
        for n, line in enumerate(text.splitlines()):
            if re.match(r"\s*(\$ )?oakledger( |$)", line):
                found.append((block.line + n + 1, line.strip().removeprefix("$ ")))
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found += [(0, " ".join(m[1].split())) for m in re.finditer(r"`(oakledger [^`]*)`", prose)]
    return found


def check_line(line: str) -> None:
    """Raise unless the commands and the options of a line exist."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    command: click.Command | None = None
    for word in lexer:
        if word == "oakledger":
            command, takes_value = cli, False
            options = {o: p for p in command.params for o in (*p.opts, *p.secondary_opts)}
        elif command is None or word == "...":
            continue
        elif set(word) <= set(";|&<>"):
            command = None
        elif word.startswith("-") and word != "-":
            name = word.partition("=")[0]
            assert name in {*options, "--help", "-h"}, f"{command.name} has no option {name}: {line}"
            found = options.get(name)
            takes_value = isinstance(found, click.Option) and not found.is_flag and "=" not in word
        elif takes_value:
            takes_value = False
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            inner = command.get_command(click.Context(command), word)
            assert inner is not None, f"there is no command {word}: {line}"
            command = inner
            options |= {o: p for p in command.params for o in (*p.opts, *p.secondary_opts)}


@pytest.mark.parametrize("page", ALL_PAGES, ids=ids)
def test_commands_and_options_that_are_mentioned_exist(page):
    for number, line in oakledger_lines(page):
        try:
            check_line(line)
        except AssertionError as e:
            raise AssertionError(f"{page.relative_to(ROOT)}:{number}: {e}") from None


@pytest.mark.parametrize("page", ALL_PAGES, ids=ids)
def test_links_lead_to_files(page):
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_a_wrong_page_is_noticed(tmp_path):
    """The checks above can fail: a wrong output, a failing command, an option that does not exist."""
    assert missing_line(["a ... c", "..."], "x\na  b c\n") is None
    assert missing_line(["b", "a"], "a\nb\n") == "a"
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one \\\n  two\none two\n$ false\n```\n")
    (block,) = blocks(page)
    assert commands(block.text) == [("echo one \\\n  two", ["one two"]), ("false", [])]
    with pytest.raises(AssertionError, match="status 1"):
        run_block(Block(ROOT / "README.md", 1, "console", block.text), tmp_path)
    with pytest.raises(AssertionError, match="no option --nonsense"):
        check_line("oakledger audit --nonsense")
    check_line('oakledger --ledger x; echo "oakledger nothing; a -> b" | oakledger sql --json "a ->> b"')
    with pytest.raises(AssertionError, match="no option --nonsense"):
        check_line("true && oakledger --ledger x audit --json; oakledger campaign declare --nonsense")
    with pytest.raises(AssertionError, match="no command nothing"):
        check_line("oakledger nothing")
