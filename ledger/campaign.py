"""Campaign files: from a TOML plan to a declaration, and to the order in which its trials are to run.

The order is computed by the shipped view `planned_slots` over the declaration, here in memory and later in
the ledger: one implementation, so a harness cannot be given another order than the one it is held to
(docs/order.md).
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import msgspec

from ledger import sqlfiles, views
from ledger.errors import OakledgerError
from ledger.events import (
    MAX_EVENT_BYTES,
    CampaignDeclared,
    EnvironmentObserved,
    Plan,
    canonical,
    canonical_sha256,
    event_id,
)

#: Largest plan file in bytes; a declaration is at most MAX_EVENT_BYTES.
MAX_FILE_BYTES = 4 << 20

#: Largest plan in slots; `planned_slots` derives none for a larger one.
MAX_SLOTS = 20_000_000

_PLAN_KEYS = ("lane", "subjects", "scenarios", "conditions", "trials_per_cell", "claims", "criteria")


class CampaignFileError(OakledgerError):
    """A campaign file cannot be used: one line with the file, the key and what to do."""


@dataclass(frozen=True)
class CampaignFile:
    """A campaign file's content: event mappings without envelope, and the plan behind them."""

    campaign: str
    plan: Plan
    declaration: dict[str, Any]
    environments: list[dict[str, Any]]

    @property
    def plan_sha256(self) -> str:
        """The plan digest, by which reruns of the plan are found."""
        return canonical_sha256(self.plan)

    @property
    def slot_count(self) -> int:
        """Number of planned trials."""
        return slot_count(self.plan)


@dataclass(frozen=True)
class Slot:
    """One planned trial. The positions are null where the plan declares no order."""

    position: int | None
    block_position: int | None
    in_block: int | None
    scenario: str
    scenario_version: int
    condition_key: str
    repetition: int
    subject: str


def slot_count(plan: Plan) -> int:
    """Return the number of planned trials: scenarios x conditions x subjects x trials of a cell."""
    return len(plan.scenarios) * len(plan.conditions) * len(plan.subjects) * plan.trials_per_cell


def read(path: str | os.PathLike[str]) -> CampaignFile:
    """Read a campaign file. Raises CampaignFileError."""
    path = os.fspath(path)
    try:
        if not os.path.isfile(path):
            raise CampaignFileError(f"{path} is no file: name a campaign file in TOML (docs/order.md)")
        with open(path, "rb") as f:
            raw = f.read(MAX_FILE_BYTES + 1)
    except OSError as e:
        raise CampaignFileError(f"{path} cannot be read ({e.strerror}): check its permissions") from e
    if len(raw) > MAX_FILE_BYTES:
        raise CampaignFileError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB: no plan is")
    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise CampaignFileError(f"{path} is not UTF-8 (byte {e.start}): save it as UTF-8") from e
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise CampaignFileError(f"{path} is not TOML ({e}): see docs/order.md for an example") from e
    return from_mapping(data, path)


def from_mapping(data: Mapping[str, Any], where: str) -> CampaignFile:
    """Check a campaign file's content; `where` names it in messages. Raises CampaignFileError."""
    data = dict(data)
    campaign = data.pop("campaign", None)
    preregistered = data.pop("preregistered", None)
    order = data.pop("order", None)
    unknown = sorted(set(data) - set(_PLAN_KEYS))
    if unknown:
        raise CampaignFileError(f"{where}: key {unknown[0]!r} is not known: known are {_known()}")
    if not isinstance(campaign, str):
        raise CampaignFileError(
            f"{where}: key 'campaign' must be a name, for example campaign = \"oak-2026\""
        )
    if not isinstance(preregistered, bool):
        raise CampaignFileError(
            f"{where}: key 'preregistered' must be true or false: is the plan declared before the runs?"
        )
    environments = _environments(data, campaign, where)
    _digest_criteria(data, where)
    if isinstance(order, dict):
        order = {"algorithm": "blocked-sha256/1", **order}
    declaration = {
        "kind": "campaign_declared/1",
        "campaign": campaign,
        "preregistered": preregistered,
        "plan": data,
        "order": order,
    }
    try:
        declared = msgspec.convert({**declaration, **_envelope()}, CampaignDeclared)
    except msgspec.ValidationError as e:
        raise CampaignFileError(f"{where}: {_reworded(str(e))}") from None
    _check_plan(declared.plan, where)
    size = len(canonical(declared))
    if size > MAX_EVENT_BYTES:
        raise CampaignFileError(f"{where}: the declaration has {size} bytes: at most {MAX_EVENT_BYTES} fit")
    return CampaignFile(campaign, declared.plan, msgspec.to_builtins(declaration), environments)


def _known() -> str:
    return ", ".join(("campaign", "preregistered", "order", *_PLAN_KEYS))


def _envelope() -> dict[str, Any]:
    return {"source": "campaign-file", "ordinal": 0, "recorded_at_ns": 1_500_000_000_000_000_000}


def _reworded(message: str) -> str:
    return message.replace("`$.plan.", "`").replace("`$.", "`").replace("Object contains", "it contains")


def _environments(data: dict[str, Any], campaign: str, where: str) -> list[dict[str, Any]]:
    """Turn the `environment` facts of conditions into identities and the events that record them."""
    events: dict[str, dict[str, Any]] = {}
    conditions = data.get("conditions")
    if not isinstance(conditions, list):
        return []
    data["conditions"] = conditions = [dict(c) if isinstance(c, dict) else c for c in conditions]
    for n, condition in enumerate(conditions):
        facts = condition.pop("environment", None) if isinstance(condition, dict) else None
        if facts is None:
            continue
        if not isinstance(facts, dict) or "environment_id" in condition:
            raise CampaignFileError(
                f"{where}: conditions[{n}].environment must be a table of facts, and then environment_id "
                "follows from it: give one of the two"
            )
        identity = canonical_sha256(facts)
        event = {
            "kind": "environment_observed/1",
            "environment_id": identity,
            "facts": facts,
            "campaign": campaign,
        }
        try:
            msgspec.convert({**event, **_envelope()}, EnvironmentObserved)
        except msgspec.ValidationError as e:
            raise CampaignFileError(f"{where}: conditions[{n}].environment: {e}") from None
        condition["environment_id"] = identity
        events[identity] = event
    return list(events.values())


def _digest_criteria(data: dict[str, Any], where: str) -> None:
    """Replace the `text` of criteria by its digest."""
    criteria = data.get("criteria")
    if not isinstance(criteria, list):
        return
    data["criteria"] = criteria = [dict(c) if isinstance(c, dict) else c for c in criteria]
    for n, criterion in enumerate(criteria):
        if not isinstance(criterion, dict) or "text" not in criterion:
            continue
        text = criterion.pop("text")
        if not isinstance(text, str) or "text_sha256" in criterion:
            raise CampaignFileError(
                f"{where}: criteria[{n}].text must be a text, and then text_sha256 follows from it: "
                "give one of the two"
            )
        criterion["text_sha256"] = text_sha256(text)


def text_sha256(text: str) -> str:
    """Return the digest under which a criterion's text is attested: SHA-256 of its UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_plan(plan: Plan, where: str) -> None:
    """Refuse a plan that could never qualify, for the reason that rules 1 and 11 would give."""
    names = [s.subject for s in plan.subjects]
    _refuse_repeats(names, "subject", where)
    _refuse_repeats([f"{s.scenario}@{s.scenario_version}" for s in plan.scenarios], "scenario", where)
    _refuse_repeats([canonical_sha256(c) for c in plan.conditions], "condition", where)
    real = {s.subject for s in plan.subjects if s.null_of is None}
    for s in plan.subjects:
        if s.null_of is not None and s.null_of not in real:
            raise CampaignFileError(
                f"{where}: subject {s.subject} is null_of {s.null_of}: name a subject that is no null itself"
            )
    scenarios = {s.scenario for s in plan.scenarios if not s.diagnostic}
    for n, claim in enumerate(plan.claims):
        for side in (claim.subject, claim.baseline):
            if side not in real:
                raise CampaignFileError(
                    f"{where}: claims[{n}] is about {side}: claims compare subjects of the plan, no nulls"
                )
        if claim.subject == claim.baseline:
            raise CampaignFileError(f"{where}: claims[{n}] compares {claim.subject} with itself")
        if claim.scenario is not None and claim.scenario not in scenarios:
            raise CampaignFileError(
                f"{where}: claims[{n}] is on {claim.scenario}: claims are on scenarios of the plan that are "
                "not diagnostic"
            )
        if not any(s.null_of in (claim.subject, claim.baseline) for s in plan.subjects):
            raise CampaignFileError(
                f"{where}: claims[{n}] has no null comparison: add a subject with null_of = "
                f"{claim.baseline!r}, so that the noise floor is measured"
            )
    if slot_count(plan) > MAX_SLOTS:
        raise CampaignFileError(f"{where}: the plan has {slot_count(plan)} trials: at most {MAX_SLOTS}")


def _refuse_repeats(names: list[str], what: str, where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CampaignFileError(f"{where}: {what} {name} is listed twice: list each once")
        seen.add(name)


def planned_slots(declared: CampaignDeclared) -> Iterator[Slot]:
    """Yield the planned trials of a declaration, in the declared order if there is one."""
    payload = canonical(declared).decode()
    with duckdb.connect() as con:
        con.execute(sqlfiles.read("000_schema.sql"))
        con.execute(
            "INSERT INTO events (origin, seq, event_id, kind, kind_version, source, ordinal, recorded_at_ns, "
            "campaign, payload) VALUES ('plan', 0, ?, 'campaign_declared', 1, ?, ?, ?, ?, ?)",
            [
                event_id(declared),
                declared.source,
                declared.ordinal,
                declared.recorded_at_ns,
                declared.campaign,
                payload,
            ],
        )
        views.build(con, declared.campaign, upto="116")
        cursor = con.execute(
            "SELECT position, block_position, in_block, scenario, scenario_version, condition_key, "
            "repetition, subject FROM planned_slots "
            "ORDER BY position, scenario, scenario_version, condition_key, "
            "repetition, subject"
        )
        while rows := cursor.fetchmany(10_000):
            for row in rows:
                yield Slot(*row)


def slots_of_file(file: CampaignFile) -> Iterator[Slot]:
    """Yield the planned trials of a campaign file."""
    return planned_slots(msgspec.convert({**file.declaration, **_envelope()}, CampaignDeclared))
