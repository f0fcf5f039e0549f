"""Task contracts: what a scenario asks for, as data (design section 8).

One TOML file a scenario. A contract says which committed paths matter, what must be in them, what the
worktree must still hold, which tests must pass, what answer is right, and which wrong states it must
refuse. It is used for every subject alike, and its digest is in every verdict.

docs/contracts.md describes the format for people who bring their own.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from importlib.resources import files
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

SCHEMA = "oakledger-contract/1"

#: Largest contract file in bytes; an exact tree of 100,000 files fits.
MAX_CONTRACT_BYTES = 32 << 20

_Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
_Version = Annotated[int, Meta(ge=1, le=1_000_000)]
_Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
_Mode = Literal["100644", "100755", "120000"]
_Bytes = Annotated[int, Meta(ge=0, le=1 << 40)]
_Text = Annotated[str, Meta(min_length=1, max_length=10_000)]
_Seconds = Annotated[int, Meta(ge=1, le=3600)]


class ContractError(Exception):
    """A contract is wrong; the message names the file and the key."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class TreeFile(_Part, frozen=True):
    """One file of an exact tree."""

    path: _Text
    mode: _Mode
    sha256: _Sha256


class Marker(_Part, frozen=True):
    """What one committed file, or one file of the worktree, must and must not hold."""

    path: _Text
    mode: _Mode | None = None
    contains: tuple[_Text, ...] = ()
    not_contains: tuple[_Text, ...] = ()
    matches: tuple[_Text, ...] = ()
    not_matches: tuple[_Text, ...] = ()
    sha256: _Sha256 | None = None
    absent: bool = False
    max_bytes: _Bytes = 1 << 20
    """Largest content that a regular expression is run over."""


class PristineFile(_Part, frozen=True):
    """One of the task's own test files, written over what was committed."""

    path: _Text
    content: str
    executable: bool = False


class Suite(_Part, frozen=True):
    """The retained test suite."""

    command: Annotated[tuple[_Text, ...], Meta(min_length=1)]
    """Argument list; a first word `python` is the interpreter that runs oakledger."""
    ran: _Text
    """Regular expression over the output with one group: how many tests ran."""
    minimum: Annotated[int, Meta(ge=1)]
    """Fewer tests than this is unmeasured, not pass."""
    files: tuple[PristineFile, ...] = ()
    remove: tuple[_Text, ...] = ()
    """Committed paths that are taken away before the run, for example a planted test configuration."""
    time_limit_s: _Seconds = 60
    output_limit_bytes: _Bytes = 1 << 20
    memory_limit_bytes: _Bytes = 2 << 30
    lanes: tuple[Literal["core", "workflow", "agent", "contention", "mount"], ...] = ()
    """Lanes in which the suite is part of the task; empty: every lane."""


class Answer(_Part, frozen=True):
    """An answer artifact: a small JSON object in the worktree, and its scoring key."""

    path: _Text
    key: dict[str, str | int | bool]
    max_bytes: _Bytes = 4096


class WrongState(_Part, frozen=True):
    """A wrong result that the contract must refuse."""

    path: _Text | None = None
    content: str | None = None
    answer: dict[str, str | int | bool] | None = None


class Controls(_Part, frozen=True):
    """Negative controls: the absent result is always one; `wrong` lists results that look right."""

    wrong: Annotated[tuple[WrongState, ...], Meta(min_length=1)]


class Contract(_Part, frozen=True):
    """A whole contract, as the TOML file has it."""

    schema: Literal["oakledger-contract/1"]
    scenario: _Name
    scenario_version: _Version
    oracle_version: _Version
    fixture_version: _Version
    title: _Text
    evidence: Literal["committed_tree", "committed_payload", "answer", "none"]
    max_blob_bytes: _Bytes = 64 << 20
    unmeasured_because: _Text | None = None
    tree: tuple[TreeFile, ...] = ()
    payload: tuple[Marker, ...] = ()
    worktree: tuple[Marker, ...] = ()
    tests: Suite | None = None
    answer: Answer | None = None
    controls: Controls | None = None


class Loaded(Struct, frozen=True):
    """A contract with the digest of its file."""

    contract: Contract
    sha256: str
    name: str

    @property
    def scope(self) -> tuple[bytes, ...] | None:
        """The committed paths that the check reads, for every reader alike; None: the whole tree."""
        return committed_scope(self.contract)


def committed_scope(contract: Contract) -> tuple[bytes, ...] | None:
    """Return the exact committed paths a task owns (seed, "committed_scope"); None for an exact tree."""
    if contract.evidence == "committed_tree":
        return None
    return tuple(sorted({marker.path.encode() for marker in contract.payload}))


def parse(data: bytes, name: str) -> Loaded:
    """Read one contract. Raises ContractError with file and key."""
    if len(data) > MAX_CONTRACT_BYTES:
        raise ContractError(f"{name}: more than {MAX_CONTRACT_BYTES} bytes")
    try:
        table = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise ContractError(f"{name}: not UTF-8 at byte {e.start}") from None
    except tomllib.TOMLDecodeError as e:
        raise ContractError(f"{name}: {e}") from None
    except RecursionError:
        raise ContractError(f"{name}: nested too deeply") from None
    try:
        contract = msgspec.convert(table, Contract)
    except msgspec.ValidationError as e:
        raise ContractError(f"{name}: {e}") from None
    for key, problem in _problems(contract):
        raise ContractError(f"{name}: {key}: {problem}")
    return Loaded(contract=contract, sha256=hashlib.sha256(data).hexdigest(), name=name)


def _problems(contract: Contract) -> list[tuple[str, str]]:
    """What is wrong beyond the types, as (key, problem)."""
    found: list[tuple[str, str]] = []
    evidence = contract.evidence
    if (evidence == "none") != (contract.unmeasured_because is not None):
        found.append(("unmeasured_because", 'goes with evidence = "none", and only with it'))
    if evidence == "committed_tree" and not contract.tree:
        found.append(("tree", "an exact tree needs its files"))
    if evidence != "committed_tree" and contract.tree:
        found.append(("tree", 'files of an exact tree need evidence = "committed_tree"'))
    if evidence == "committed_payload" and not contract.payload:
        found.append(("payload", "a payload contract needs markers"))
    if evidence in ("none", "answer", "committed_tree") and contract.payload:
        found.append(("payload", 'markers need evidence = "committed_payload"'))
    if (evidence == "answer") != (contract.answer is not None):
        found.append(("answer", 'goes with evidence = "answer", and only with it'))
    if evidence == "none" and (contract.worktree or contract.tests):
        found.append(("evidence", "a contract that is always unmeasured has no checks"))
    if evidence != "none" and contract.controls is None:
        found.append(("controls", "negative controls are missing: name at least one wrong result"))
    paths = [f.path for f in contract.tree] or [m.path for m in contract.payload]
    found += (
        [("path", f"{p!r} twice") for p in sorted({p for p in paths if paths.count(p) > 1})[:1]]
        if len(set(paths)) != len(paths)
        else []
    )
    for key, markers in (("payload", contract.payload), ("worktree", contract.worktree)):
        for marker in markers:
            found += _marker_problems(key, marker)
    for file in contract.tree:
        found += _path_problems("tree.path", file.path)
    if contract.tests is not None:
        found += _regex_problems("tests.ran", contract.tests.ran, groups=1)
        for pristine in contract.tests.files:
            found += _path_problems("tests.files.path", pristine.path)
        for path in contract.tests.remove:
            found += _path_problems("tests.remove", path)
    if contract.answer is not None:
        found += _path_problems("answer.path", contract.answer.path)
        if not contract.answer.key:
            found.append(("answer.key", "the scoring key is empty"))
    found += _control_problems(contract, set(paths))
    return found


def _control_problems(contract: Contract, scope: set[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for wrong in contract.controls.wrong if contract.controls else ():
        if contract.evidence == "answer":
            if wrong.answer is None or wrong.path is not None or wrong.content is not None:
                found.append(("controls.wrong", "of an answer contract needs `answer` alone"))
        elif wrong.path is None or wrong.content is None or wrong.answer is not None:
            found.append(("controls.wrong", "needs `path` and `content`"))
        elif wrong.path not in scope:
            found.append(("controls.wrong.path", f"{wrong.path!r} is outside the committed scope"))
    return found


def _marker_problems(key: str, marker: Marker) -> list[tuple[str, str]]:
    found = _path_problems(f"{key}.path", marker.path)
    demands = marker.contains or marker.matches or marker.sha256 or marker.mode
    refusals = marker.not_contains or marker.not_matches
    if marker.absent and (demands or refusals):
        found.append((f"{key}.absent", f"{marker.path!r} cannot be absent and hold something"))
    if not (marker.absent or demands or refusals):
        found.append((key, f"{marker.path!r} asks for nothing"))
    for expression in (*marker.matches, *marker.not_matches):
        found += _regex_problems(f"{key}.matches", expression)
    return found


def _regex_problems(key: str, expression: str, groups: int | None = None) -> list[tuple[str, str]]:
    try:
        compiled = re.compile(expression.encode())
    except re.error as e:
        return [(key, f"{expression!r} is no regular expression ({e})")]
    if groups is not None and compiled.groups != groups:
        return [(key, f"{expression!r} needs {groups} group")]
    return []


def _path_problems(key: str, path: str) -> list[tuple[str, str]]:
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in path:
        return [(key, f"{path!r} is no relative path of a committed file")]
    if parts[0].casefold() in (".git", ".oak"):
        return [(key, f"{path!r} is inside the version control system's own folder")]
    return []


def load_file(path: str) -> Loaded:
    """Read a contract file. Raises ContractError; also for a file that cannot be read."""
    try:
        with open(path, "rb") as stream:
            return parse(stream.read(MAX_CONTRACT_BYTES + 1), os.path.basename(path))
    except OSError as e:
        raise ContractError(f"{path}: {e.strerror}") from None


def load(scenario: str, version: int | None = None, directory: str | None = None) -> Loaded:
    """Return the contract of a scenario: the shipped one, or one of `directory`.

    `version` defaults to the newest. Raises ContractError when there is none, or the file is wrong.
    """
    found: list[Loaded] = []
    seen: list[str] = []
    for name, data in _files(directory):
        stem = name.removesuffix(".toml")
        seen.append(stem)
        if stem == scenario or re.fullmatch(re.escape(scenario) + r"@[0-9]+", stem):
            loaded = parse(data, name)
            if loaded.contract.scenario != scenario:
                raise ContractError(f"{name}: scenario: the file is named for another scenario")
            found.append(loaded)
    if version is not None:
        found = [x for x in found if x.contract.scenario_version == version]
    if not found:
        what = scenario if version is None else f"{scenario} version {version}"
        raise ContractError(f"no contract for {what}: there are {', '.join(sorted(seen)) or 'none'}")
    return max(found, key=lambda x: x.contract.scenario_version)


def _files(directory: str | None) -> list[tuple[str, bytes]]:
    if directory is None:
        node = files("oracles") / "contracts"
        return [(n.name, n.read_bytes()) for n in node.iterdir() if n.name.endswith(".toml")]
    try:
        names = sorted(n for n in os.listdir(directory) if n.endswith(".toml"))
        result = []
        for name in names:
            with open(os.path.join(directory, name), "rb") as stream:
                result.append((name, stream.read(MAX_CONTRACT_BYTES + 1)))
        return result
    except OSError as e:
        raise ContractError(f"{directory}: {e.strerror}") from None
