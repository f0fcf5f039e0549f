"""The events: what a ledger is made of (design section 4).

One frozen struct a kind. The tag carries the version (`trial_recorded/1`); a published version never changes,
a new meaning is a new version, and `ledger.upcast` keeps the old ones readable. Null means unmeasured or
unknown, never zero and never false. The text behind each field is its specification and is what
`oakledger schema` prints.

Canonical bytes are `msgspec.json.encode(order="deterministic")`: fields in declared order, mapping keys
sorted, no white space, a field that has its default left out. `event_id` is the RFC 6962 leaf hash of those
bytes (RFC 6962 section 2.1).
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ledger.fields import (
    Code,
    Count,
    Depth,
    Excerpt,
    Lane,
    Name,
    ObjectId,
    Path,
    Plain,
    PlainKey,
    Quantity,
    Relation,
    Sentence,
    Sha256,
    TimestampNs,
    Verdict,
    Version,
)

#: Largest canonical event in bytes. A plan is compact (its slots are derived), so nothing honest is near it.
MAX_EVENT_BYTES = 1 << 20


class Event(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """What every event has: who produced it and when."""

    source: Annotated[Name, Meta(description="Name of the producing stream, unique to one producer run.")]
    ordinal: Annotated[
        Count,
        Meta(
            description="Number of the event within its source. (source, ordinal) is the producer key: "
            "the same key with other content is an error."
        ),
    ]
    recorded_at_ns: Annotated[
        TimestampNs, Meta(description="When the producer recorded it: nanoseconds since 1970-01-01 UTC.")
    ]


class Condition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Everything that must match for two subjects to be comparable.

    `condition_key` is the SHA-256 of its canonical JSON.
    """

    agent: Annotated[Plain | None, Meta(description="Coding agent CLI, null on scripted lanes.")] = None
    agent_version: Annotated[Plain | None, Meta(description="Version of that CLI.")] = None
    model: Annotated[Plain | None, Meta(description="Model as observed, not as requested.")] = None
    instruction_level: Annotated[
        Plain | None, Meta(description="How much VCS instruction the prompt carries.")
    ] = None
    instruction_sha256: Annotated[Sha256 | None, Meta(description="SHA-256 of the instruction text.")] = None
    track: Annotated[
        Literal["agent-default", "core-equivalent"] | None, Meta(description="Command-semantics contract.")
    ] = None
    environment_id: Annotated[
        Sha256 | None, Meta(description="Identity of the environment (see environment_observed).")
    ] = None
    transport: Annotated[Plain | None, Meta(description="Transport of remote operations.")] = None
    profile: Annotated[
        Literal["smoke", "standard", "large"] | None, Meta(description="Size tier of the core lane.")
    ] = None
    limits: Annotated[
        dict[PlainKey, Quantity], Meta(description="Limits in force, unit in the name.", max_length=64)
    ] = {}


class SubjectPlan(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A subject of the plan."""

    subject: Annotated[Name, Meta(description="Logical name, for example git or oak_installed.")]
    null_of: Annotated[
        Name | None,
        Meta(description="The same binary as the named subject, measured again for the noise floor."),
    ] = None


class ScenarioPlan(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A scenario of the plan and the evidence that a success in it needs."""

    scenario: Annotated[Name, Meta(description="Scenario name.")]
    scenario_version: Annotated[Version, Meta(description="Scenario version.")]
    oracle_version: Annotated[Version, Meta(description="Oracle version.")]
    fixture_version: Annotated[Version, Meta(description="Fixture version.")]
    contract_sha256: Annotated[
        Sha256 | None, Meta(description="Digest of the task contract; null: not fixed by the plan.")
    ] = None
    evidence: Annotated[
        Literal["committed_tree", "committed_payload", "answer", "none"],
        Meta(description="What must stand behind a success: exact tree, scoped payload, answer, or nothing."),
    ] = "committed_payload"
    tests: Annotated[bool, Meta(description="A success also needs the retained test suite.")] = False
    worktree: Annotated[bool, Meta(description="A success also needs the worktree check.")] = False
    diagnostic: Annotated[
        bool, Meta(description="Listed as diagnostic: shown, never part of a claim, and not a loss.")
    ] = False


class Claim(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An effect that the campaign wants to publish."""

    metric: Annotated[PlainKey, Meta(description="Metric name with its unit, or success_rate_permille.")]
    subject: Annotated[Name, Meta(description="The subject said to be better.")]
    baseline: Annotated[Name, Meta(description="The subject it is compared with.")]
    direction: Annotated[Literal["lower", "higher"], Meta(description="Which direction is better.")]
    size_permille: Annotated[
        Count, Meta(description="Claimed size of the relative difference, in thousandths of the baseline.")
    ]
    scenario: Annotated[
        Name | None, Meta(description="Scenario of the claim; null: every non-diagnostic scenario.")
    ] = None
    operation: Annotated[
        Name | None, Meta(description="The timed unit whose metric is claimed; null: the task.")
    ] = None


class Criterion(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A qualification criterion of the study itself."""

    criterion: Annotated[Name, Meta(description="Name of the criterion.")]
    text_sha256: Annotated[Sha256, Meta(description="SHA-256 of its text.")]


class Plan(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What will be measured. The SHA-256 of its canonical JSON, the plan digest, finds reruns of one plan."""

    lane: Annotated[Lane, Meta(description="The harness lane.")]
    subjects: Annotated[
        tuple[SubjectPlan, ...], Meta(description="The subjects.", min_length=1, max_length=64)
    ]
    scenarios: Annotated[
        tuple[ScenarioPlan, ...], Meta(description="The scenarios.", min_length=1, max_length=256)
    ]
    conditions: Annotated[
        tuple[Condition, ...], Meta(description="The conditions.", min_length=1, max_length=256)
    ]
    trials_per_cell: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000)], Meta(description="Planned trials of each cell.")
    ]
    claims: Annotated[tuple[Claim, ...], Meta(description="Claimed effects.", max_length=256)] = ()
    criteria: Annotated[
        tuple[Criterion, ...], Meta(description="The study's separate qualification criteria.", max_length=64)
    ] = ()


class Order(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The declared random order; docs/order.md has the algorithm."""

    algorithm: Annotated[Literal["blocked-sha256/1"], Meta(description="Name of the algorithm.")]
    seed: Annotated[Plain, Meta(description="The seed, chosen before the runs.")]
    extent: Annotated[
        Literal["campaign", "block"],
        Meta(
            description="campaign: one sequence over all slots; block: the order inside each block "
            "(scenario, condition, repetition), for harnesses that run blocks in parallel."
        ),
    ]


class CampaignDeclared(Event, frozen=True, tag="campaign_declared/1"):
    """A campaign with its plan and, if any, its randomised order; slots are derived from it in SQL."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    preregistered: Annotated[
        bool, Meta(description="The plan says that it was declared before its first trial started.")
    ]
    plan: Annotated[Plan, Meta(description="What will be measured.")]
    order: Annotated[
        Order | None, Meta(description="The declared order; null: a harness that only ingests afterwards.")
    ] = None


class EnvironmentObserved(Event, frozen=True, tag="environment_observed/1"):
    """An environment that trials ran in."""

    environment_id: Annotated[Sha256, Meta(description="SHA-256 of the canonical JSON of `facts`.")]
    facts: Annotated[
        dict[PlainKey, Plain],
        Meta(description="Facts that identify it, for example cpu, kernel, filesystem.", max_length=128),
    ]
    campaign: Annotated[Name | None, Meta(description="The campaign, if it belongs to one.")] = None

    def __post_init__(self) -> None:
        """Refuse an identity that is not the digest of the facts."""
        if self.environment_id != canonical_sha256(self.facts):
            raise ValueError("environment_id is not the SHA-256 of the canonical facts")


class SubjectIdentified(Event, frozen=True, tag="subject_identified/1"):
    """A VCS binary under measurement: logical name and provenance."""

    subject: Annotated[Name, Meta(description="Logical name.")]
    binary_sha256: Annotated[Sha256 | None, Meta(description="SHA-256 of the binary, links resolved.")] = None
    version: Annotated[Plain | None, Meta(description="Version text of the binary.")] = None
    source_sha256: Annotated[Sha256 | None, Meta(description="Digest of the source it was built from.")] = (
        None
    )
    dirty: Annotated[
        bool | None, Meta(description="Whether that source had uncommitted changes; null: not known.")
    ] = None
    campaign: Annotated[Name | None, Meta(description="The campaign, if it belongs to one.")] = None


class TrialRecorded(Event, frozen=True, tag="trial_recorded/1"):
    """One execution in a cell: what the harness saw. Whether the task was done is the oracle's word."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    lane: Annotated[Lane, Meta(description="The harness lane.")]
    scenario: Annotated[Name, Meta(description="Scenario name.")]
    scenario_version: Annotated[Version, Meta(description="Scenario version.")]
    subject: Annotated[Name, Meta(description="Subject, logical name.")]
    trial: Annotated[Name, Meta(description="Identity of this execution, unique for ever.")]
    condition: Annotated[Condition, Meta(description="The condition as observed.")]
    status: Annotated[
        Literal["completed", "timeout", "error", "harness_failure", "unlaunched"],
        Meta(
            description="completed: the run came to its own end; timeout: it ran past the task's limit; "
            "error: it ended by its own error; harness_failure: harness, machine or service failed; "
            "unlaunched: it never started."
        ),
    ]
    repetition: Annotated[
        Count | None, Meta(description="Which planned trial of the cell, from 0; null: no plan behind it.")
    ] = None
    operation: Annotated[
        Name | None, Meta(description="The timed unit, where a row is one; null: the task.")
    ] = None
    status_code: Annotated[
        Code | None, Meta(description="More about the status, for example http_529 or parse_error.")
    ] = None
    exit_code: Annotated[Quantity | None, Meta(description="Exit code of the run.")] = None
    reached_head: Annotated[
        bool | None,
        Meta(
            description="Whether the run got as far as a committed HEAD that a reader could look at; "
            "false: it failed before; null: not known."
        ),
    ] = None
    started_at_ns: Annotated[
        TimestampNs | None, Meta(description="Start of the run: nanoseconds since 1970-01-01 UTC.")
    ] = None
    ended_at_ns: Annotated[TimestampNs | None, Meta(description="End of the run.")] = None
    process_key: Annotated[
        Plain | None,
        Meta(
            description="Identity of the process or session that ran it; "
            "several records of one process are iterations, not trials."
        ),
    ] = None
    fixture_version: Annotated[Version | None, Meta(description="Version of the fixture it ran on.")] = None
    subject_binary_sha256: Annotated[Sha256 | None, Meta(description="SHA-256 of the subject's binary.")] = (
        None
    )
    subject_version: Annotated[Plain | None, Meta(description="Version text of the subject.")] = None
    subject_source_sha256: Annotated[
        Sha256 | None, Meta(description="Digest of the source the subject was built from.")
    ] = None
    subject_dirty: Annotated[
        bool | None, Meta(description="Whether that source had uncommitted changes; null: not known.")
    ] = None
    metrics: Annotated[
        dict[PlainKey, Quantity | None],
        Meta(
            description="Measured quantities, unit in the name (_ns, _bytes, _count); null: unmeasured.",
            max_length=200,
        ),
    ] = {}
    evidence_sha256: Annotated[
        Sha256 | None, Meta(description="Digest of the kept record of the run (transcript, log).")
    ] = None
    row_sha256: Annotated[
        Sha256 | None, Meta(description="Digest of the harness row this was made from.")
    ] = None
    claimed_success: Annotated[
        bool | None, Meta(description="What the row says about success; shown, never believed.")
    ] = None
    claimed_class: Annotated[
        Plain | None,
        Meta(description="What the row says about its correctness class; shown, never believed."),
    ] = None


class ReaderBounds(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The bounds a reader ran under."""

    max_blob_bytes: Annotated[Count | None, Meta(description="The task's size limit.")] = None
    max_object_bytes: Annotated[Count | None, Meta(description="Bound of one object's decoded size.")] = None
    max_total_bytes: Annotated[Count | None, Meta(description="Bound of all decoded bytes.")] = None
    max_entries: Annotated[Count | None, Meta(description="Bound of tree entries read.")] = None
    max_depth: Annotated[Count | None, Meta(description="Bound of path components.")] = None
    deadline_ns: Annotated[Count | None, Meta(description="Bound of wall time in nanoseconds.")] = None
    deep: Annotated[bool, Meta(description="Ancestors were verified too.")] = False
    complete: Annotated[bool, Meta(description="Absent content counted as invalid.")] = False


PathList: TypeAlias = Annotated[
    tuple[Path, ...], Meta(description="The first hundred, sorted by bytes.", max_length=100)
]


class ReaderInvoked(Event, frozen=True, tag="reader_invoked/1"):
    """One reader invocation: what was run, by what, under which bounds, and what it saw."""

    vcs: Annotated[Literal["git", "oak"], Meta(description="The kind of repository.")]
    reader: Annotated[Name, Meta(description="Reader name.")]
    reader_version: Annotated[Plain, Meta(description="Version of the reader's code.")]
    code_sha256: Annotated[Sha256, Meta(description="Digest of the reader's code.")]
    backend: Annotated[Literal["pure", "native", "git", "export"], Meta(description="Reader backend.")]
    outcome: Annotated[
        Literal["ok", "failed", "invalid", "unmeasured", "usage"], Meta(description="What became of it.")
    ]
    exit_status: Annotated[Quantity, Meta(description="Exit status: 0, 1, 2, 3 or 77.")]
    relation: Annotated[
        Relation,
        Meta(description="Relation to the subject as recorded; the views derive it again from the facts."),
    ]
    bounds: Annotated[ReaderBounds, Meta(description="The bounds in force.")]
    reason: Annotated[Code | None, Meta(description="Reason code; null on ok.")] = None
    campaign: Annotated[Name | None, Meta(description="The campaign.")] = None
    trial: Annotated[Name | None, Meta(description="The trial whose repository was read.")] = None
    subject: Annotated[Name | None, Meta(description="The subject that wrote the repository.")] = None
    codec_sha256: Annotated[Sha256 | None, Meta(description="Digest of the codec code (Oak).")] = None
    python_version: Annotated[Plain | None, Meta(description="Version of the Python that ran it.")] = None
    python_sha256: Annotated[Sha256 | None, Meta(description="SHA-256 of that Python's binary.")] = None
    dependencies: Annotated[
        dict[Plain, Plain], Meta(description="Versions of the packages it used.", max_length=32)
    ] = {}
    instrument_name: Annotated[
        Plain | None, Meta(description="File name of the instrument, without its folder.")
    ] = None
    instrument_version: Annotated[Plain | None, Meta(description="Version text of the instrument.")] = None
    instrument_sha256: Annotated[
        Sha256 | None, Meta(description="SHA-256 of the instrument's binary, links resolved.")
    ] = None
    subject_binary_sha256: Annotated[
        Sha256 | None, Meta(description="SHA-256 of the subject's binary, links resolved.")
    ] = None
    qualified_by: Annotated[
        Plain | None, Meta(description="Who asserts that the instrument is independent of the subject.")
    ] = None
    qualified_because: Annotated[Plain | None, Meta(description="Why they say so.")] = None
    scope_sha256: Annotated[Sha256 | None, Meta(description="Digest of the scope; null: the whole tree.")] = (
        None
    )
    scope_count: Annotated[Count | None, Meta(description="Number of scope paths.")] = None
    head: Annotated[ObjectId | None, Meta(description="The commit that HEAD named.")] = None
    format: Annotated[
        dict[Plain, Plain], Meta(description="What the store was recognised as.", max_length=16)
    ] = {}
    manifest_sha256: Annotated[Sha256 | None, Meta(description="Digest of the manifest; only on ok.")] = None
    entries: Annotated[Count | None, Meta(description="Manifest entries.")] = None
    nonregular_paths: PathList = ()
    oversize_paths: PathList = ()
    missing_paths: PathList = ()
    unsafe_paths: PathList = ()
    colliding_paths: Annotated[
        tuple[tuple[Path, ...], ...], Meta(description="The first hundred groups.", max_length=100)
    ] = ()
    nonregular_count: Annotated[Count, Meta(description="How many there are in all.")] = 0
    oversize_count: Annotated[Count, Meta(description="How many there are in all.")] = 0
    missing_count: Annotated[Count, Meta(description="How many there are in all.")] = 0
    unsafe_count: Annotated[Count, Meta(description="How many there are in all.")] = 0
    colliding_count: Annotated[Count, Meta(description="How many groups there are in all.")] = 0
    shallow_boundary: Annotated[
        tuple[ObjectId, ...], Meta(description="Absent ancestors, the first hundred.", max_length=100)
    ] = ()
    bytes_decoded: Annotated[Count | None, Meta(description="Decoded bytes of the objects read.")] = None
    objects_verified: Annotated[Count | None, Meta(description="Objects whose hash was computed.")] = None
    duration_ns: Annotated[Count | None, Meta(description="Wall time of the invocation.")] = None
    report_sha256: Annotated[
        Sha256 | None, Meta(description="SHA-256 of the reader's report as printed.")
    ] = None


class Check(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One check of an oracle with its evidence."""

    check: Annotated[Code, Meta(description="Which check.")]
    result: Annotated[Verdict, Meta(description="Its result.")]
    reason: Annotated[Code | None, Meta(description="Reason code; null on pass.")] = None
    path: Annotated[Path | None, Meta(description="The path it is about.")] = None
    expected: Annotated[Plain | None, Meta(description="What was expected: a digest, mode or code.")] = None
    found: Annotated[Plain | None, Meta(description="What was found.")] = None
    excerpt: Annotated[Excerpt | None, Meta(description="At most 200 bytes of what was found, as text.")] = (
        None
    )


class OracleJudged(Event, frozen=True, tag="oracle_judged/1"):
    """A verdict on one trial, or on a negative control."""

    scenario: Annotated[Name, Meta(description="Scenario name.")]
    scenario_version: Annotated[Version, Meta(description="Scenario version.")]
    oracle_version: Annotated[Version, Meta(description="Oracle version.")]
    fixture_version: Annotated[Version, Meta(description="Fixture version.")]
    contract_sha256: Annotated[Sha256, Meta(description="Digest of the task contract.")]
    verdict: Annotated[Verdict, Meta(description="pass, fail or unmeasured.")]
    reason: Annotated[Code | None, Meta(description="Reason code; null on pass.")] = None
    campaign: Annotated[Name | None, Meta(description="The campaign.")] = None
    trial: Annotated[Name | None, Meta(description="The trial; null for a negative control.")] = None
    subject: Annotated[Name | None, Meta(description="The subject.")] = None
    reader_event_id: Annotated[
        Sha256 | None, Meta(description="The reader invocation that this verdict rests on.")
    ] = None
    manifest_sha256: Annotated[Sha256 | None, Meta(description="The manifest that was judged.")] = None
    depth: Annotated[
        Depth | None, Meta(description="How deep the committed content was checked; null: it was not.")
    ] = None
    tests: Annotated[
        Verdict | None, Meta(description="The retained test suite; null: not part of the contract here.")
    ] = None
    worktree: Annotated[
        Verdict | None, Meta(description="The worktree rule; null: not part of the contract.")
    ] = None
    answer: Annotated[
        Verdict | None, Meta(description="The answer artifact; null: not part of the contract.")
    ] = None
    control: Annotated[
        Literal["absent", "wrong"] | None,
        Meta(description="Negative control that was judged; null: a real trial."),
    ] = None
    checks: Annotated[
        tuple[Check, ...], Meta(description="The checks with their evidence.", max_length=200)
    ] = ()
    duration_ns: Annotated[Count | None, Meta(description="Wall time of the judging.")] = None


class TrialInvalidated(Event, frozen=True, tag="trial_invalidated/1"):
    """A trial that must not count, and who says so. It stays visible and is counted as invalidated."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    trial: Annotated[Name, Meta(description="The trial.")]
    who: Annotated[Plain, Meta(description="Who invalidates it.", min_length=1)]
    why: Annotated[Sentence, Meta(description="Why.")]


class TrialReplaced(Event, frozen=True, tag="trial_replaced/1"):
    """An unmeasured attempt and the trial run in its place. A measured attempt can never be replaced."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    trial: Annotated[Name, Meta(description="The attempt that is replaced.")]
    replacement: Annotated[Name, Meta(description="The trial run in its place.")]
    who: Annotated[Plain, Meta(description="Who replaces it.", min_length=1)]
    why: Annotated[Sentence, Meta(description="Why.")]


class ConflictRuleRecorded(Event, frozen=True, tag="conflict_rule_recorded/1"):
    """How conflicting facts are decided in a campaign, for every subject alike."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    conflict: Annotated[
        Literal["pass_with_timeout", "pass_with_error"], Meta(description="Which conflicting facts.")
    ]
    decision: Annotated[Literal["pass", "fail"], Meta(description="What such a trial counts as.")]
    who: Annotated[Plain, Meta(description="Who decided.", min_length=1)]
    why: Annotated[Sentence, Meta(description="Why.")]


class StudyCriteriaAttested(Event, frozen=True, tag="study_criteria_attested/1"):
    """Somebody's word that the study's separate criteria are met."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    criteria: Annotated[
        tuple[Criterion, ...], Meta(description="The criteria attested.", min_length=1, max_length=64)
    ]
    who: Annotated[Plain, Meta(description="Who attests.", min_length=1)]
    statement: Annotated[Sentence, Meta(description="What they say.")]


class RuleResult(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state of one qualification rule."""

    rule: Annotated[Code, Meta(description="Rule id.")]
    state: Annotated[
        Literal["holds", "violated", "information", "not_applicable"], Meta(description="Its state.")
    ]
    violations: Annotated[Count, Meta(description="Number of violations.")]


class OriginHead(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The tree head of another origin that the ledger held when a decision was made."""

    origin: Annotated[str, Meta(description="The origin.", min_length=1, max_length=200)]
    size: Annotated[Count, Meta(description="Tree size.")]
    root: Annotated[Sha256, Meta(description="Root hash.")]


class QualificationDecided(Event, frozen=True, tag="qualification_decided/1"):
    """A decision on a campaign and the checkpoint it was made on."""

    campaign: Annotated[Name, Meta(description="The campaign.")]
    decision: Annotated[Literal["qualified", "diagnostic"], Meta(description="The decision.")]
    exit_status: Annotated[Quantity, Meta(description="Exit status of the command.")]
    plan_sha256: Annotated[Sha256 | None, Meta(description="Digest of the plan; null: none declared.")]
    checkpoint_origin: Annotated[str, Meta(description="Origin of the checkpoint.", max_length=200)]
    checkpoint_size: Annotated[Count, Meta(description="Tree size of the checkpoint.")]
    checkpoint_root: Annotated[Sha256, Meta(description="Root hash of the checkpoint.")]
    views_sha256: Annotated[Sha256, Meta(description="Digest of the SQL that decided.")]
    package_version: Annotated[Plain, Meta(description="Version of oakledger that decided.")]
    rules: Annotated[tuple[RuleResult, ...], Meta(description="Every rule and its state.", max_length=64)]
    other_checkpoints: Annotated[
        tuple[OriginHead, ...],
        Meta(description="Heads of the other origins in the ledger, sorted by origin.", max_length=1000),
    ] = ()


AnyEvent: TypeAlias = (
    CampaignDeclared
    | EnvironmentObserved
    | SubjectIdentified
    | TrialRecorded
    | ReaderInvoked
    | OracleJudged
    | TrialInvalidated
    | TrialReplaced
    | ConflictRuleRecorded
    | StudyCriteriaAttested
    | QualificationDecided
)

_encoder = msgspec.json.Encoder(order="deterministic")


def canonical(value: object) -> bytes:
    """Return the canonical JSON bytes of an event or of one of its parts (design section 4)."""
    return _encoder.encode(value)


def canonical_sha256(value: object) -> str:
    """Return the hex SHA-256 of the canonical JSON of a part: condition_key, plan digest, environment_id."""
    return hashlib.sha256(_encoder.encode(value)).hexdigest()


def leaf_hash(canonical_bytes: bytes) -> bytes:
    """Return the RFC 6962 section 2.1 leaf hash, SHA-256(0x00 || entry)."""
    return hashlib.sha256(b"\x00" + canonical_bytes).digest()


def event_id(event: AnyEvent) -> str:
    """Return an event's identity: its leaf hash in hex."""
    return leaf_hash(_encoder.encode(event)).hex()
