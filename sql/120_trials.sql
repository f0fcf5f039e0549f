-- trials: what the harness saw. Grain: one row per trial_recorded event.
-- Columns: the typed columns of the event and its other facts. Null is unknown or unmeasured, never zero.
CREATE OR REPLACE VIEW trials AS
SELECT
    campaign, trial, event_id, lane, scenario, scenario_version, subject, condition_key, repetition, status,
    started_at_ns,
    unnest(json_transform(payload, '{
        "operation": "VARCHAR", "status_code": "VARCHAR", "exit_code": "BIGINT", "reached_head": "BOOLEAN",
        "ended_at_ns": "BIGINT", "process_key": "VARCHAR", "fixture_version": "INTEGER",
        "subject_binary_sha256": "VARCHAR", "subject_version": "VARCHAR", "subject_source_sha256": "VARCHAR",
        "subject_dirty": "BOOLEAN", "metrics": "JSON", "evidence_sha256": "VARCHAR", "row_sha256": "VARCHAR",
        "claimed_success": "BOOLEAN", "claimed_class": "VARCHAR"
    }'))
FROM ledger_events
WHERE kind = 'trial_recorded';

-- trial_facts: the same, narrow. Grain: as trials. Facts that are only ever compared are numbers here (hash() of the text,
-- null where it is null), which costs a fraction: process, binary_key, version_key, source_key, evidence, row_key. Equal facts
-- have equal numbers, and unequal ones practically never; trials has the texts. Columns otherwise as trials.
CREATE OR REPLACE VIEW trial_facts AS
SELECT
    campaign, trial, event_id, lane, scenario, scenario_version, subject, condition_key, repetition, status,
    started_at_ns, operation, status_code, exit_code, reached_head, ended_at_ns, fixture_version, subject_dirty, metrics,
    CASE WHEN process_key IS NOT NULL THEN hash(process_key) END AS process,
    CASE WHEN subject_binary_sha256 IS NOT NULL THEN hash(subject_binary_sha256) END AS binary_key,
    CASE WHEN subject_version IS NOT NULL THEN hash(subject_version) END AS version_key,
    CASE WHEN subject_source_sha256 IS NOT NULL THEN hash(subject_source_sha256) END AS source_key,
    CASE WHEN evidence_sha256 IS NOT NULL THEN hash(evidence_sha256) END AS evidence,
    CASE WHEN row_sha256 IS NOT NULL THEN hash(row_sha256) END AS row_key
FROM trials;

-- reader_invocations: what readers did. Grain: one row per reader_invoked event.
-- Columns: the typed columns of the event and the facts that classes and rule 7 are derived from. A count that the event
-- leaves out is zero.
CREATE OR REPLACE VIEW reader_invocations AS
SELECT * REPLACE (
    coalesce(nonregular_count, 0) AS nonregular_count, coalesce(oversize_count, 0) AS oversize_count,
    coalesce(colliding_count, 0) AS colliding_count, coalesce(missing_count, 0) AS missing_count
)
FROM (
    SELECT
        campaign, trial, event_id, subject, outcome, reason, recorded_at_ns,
        unnest(json_transform(payload, '{
            "vcs": "VARCHAR", "reader": "VARCHAR", "reader_version": "VARCHAR", "code_sha256": "VARCHAR",
            "backend": "VARCHAR", "exit_status": "BIGINT", "relation": "VARCHAR", "codec_sha256": "VARCHAR",
            "python_sha256": "VARCHAR", "instrument_name": "VARCHAR", "instrument_version": "VARCHAR",
            "instrument_sha256": "VARCHAR", "subject_binary_sha256": "VARCHAR", "qualified_by": "VARCHAR",
            "qualified_because": "VARCHAR", "scope_sha256": "VARCHAR", "scope_count": "BIGINT", "head": "VARCHAR",
            "manifest_sha256": "VARCHAR", "nonregular_count": "BIGINT", "oversize_count": "BIGINT",
            "colliding_count": "BIGINT", "missing_count": "BIGINT", "duration_ns": "BIGINT"
        }'))
    FROM ledger_events
    WHERE kind = 'reader_invoked'
);

-- verdicts: what oracles said. Grain: one row per oracle_judged event.
-- Columns: the typed columns of the event and its other facts; control is null for a real trial.
CREATE OR REPLACE VIEW verdicts AS
SELECT
    campaign, trial, event_id, scenario, scenario_version, subject, verdict, reason, reader_event_id, recorded_at_ns,
    unnest(json_transform(payload, '{
        "oracle_version": "INTEGER", "fixture_version": "INTEGER", "contract_sha256": "VARCHAR",
        "manifest_sha256": "VARCHAR", "depth": "VARCHAR", "tests": "VARCHAR", "worktree": "VARCHAR",
        "answer": "VARCHAR", "control": "VARCHAR"
    }'))
FROM ledger_events
WHERE kind = 'oracle_judged';

-- invalidations: trials that somebody says must not count. Grain: one row per trial_invalidated event.
CREATE OR REPLACE VIEW invalidations AS
SELECT campaign, trial, event_id, recorded_at_ns, payload ->> '$.who' AS who, payload ->> '$.why' AS why
FROM ledger_events
WHERE kind = 'trial_invalidated';

-- replacements: attempts and the trials run in their place. Grain: one row per trial_replaced event.
CREATE OR REPLACE VIEW replacements AS
SELECT
    campaign, trial, payload ->> '$.replacement' AS replacement, event_id, recorded_at_ns,
    payload ->> '$.who' AS who, payload ->> '$.why' AS why
FROM ledger_events
WHERE kind = 'trial_replaced';

-- conflict_rules: how conflicting facts are decided. Grain: one row per conflict_rule_recorded event. Serves rule 10.
CREATE OR REPLACE VIEW conflict_rules AS
SELECT
    campaign, event_id, recorded_at_ns, payload ->> '$.conflict' AS conflict, payload ->> '$.decision' AS decision,
    payload ->> '$.who' AS who, payload ->> '$.why' AS why
FROM ledger_events
WHERE kind = 'conflict_rule_recorded';

-- attestations: somebody's word on criteria. Grain: one row per attested criterion of a study_criteria_attested event.
-- Columns: campaign, event_id, recorded_at_ns, criterion, text_sha256, who, statement. Serves rule 13.
CREATE OR REPLACE VIEW attestations AS
SELECT
    campaign, event_id, recorded_at_ns, c ->> '$.criterion' AS criterion, c ->> '$.text_sha256' AS text_sha256,
    who, statement
FROM (
    SELECT
        campaign, event_id, recorded_at_ns, unnest(from_json(payload -> '$.criteria', '["JSON"]')) AS c,
        payload ->> '$.who' AS who, payload ->> '$.statement' AS statement
    FROM ledger_events
    WHERE kind = 'study_criteria_attested'
);

-- subject_identities: what was said about a subject's binary. Grain: one row per subject_identified event.
-- Serves rule 6: it fills in what a trial does not say itself.
CREATE OR REPLACE VIEW subject_identities AS
SELECT
    campaign, subject, event_id,
    unnest(json_transform(payload, '{
        "binary_sha256": "VARCHAR", "version": "VARCHAR", "source_sha256": "VARCHAR", "dirty": "BOOLEAN"
    }'))
FROM ledger_events
WHERE kind = 'subject_identified';
