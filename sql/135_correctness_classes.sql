-- correctness_classes: which evidence stands behind each verdict. Grain: one row per oracle_judged event on a trial.
-- Columns: campaign, trial, event_id, recorded_at_ns, reader_event_id, scenario, scenario_version, condition_key, subject (of
-- the trial), verdict, reason and its owner, oracle_version, contract_key, depth, tests, worktree, answer; of the reader
-- invocation vcs, reader_key (of reader, version, backend, code), instrument_key (of instrument and codec), scope_key;
-- refused (why the verdict does not count; null: it counts), before_head (a failure for want of a readable HEAD),
-- contradicted (a pass although the reader reports a path that must fail it), independence, relation (as recorded),
-- overclaimed, correctness_class. A _key is a number, equal where the facts behind it are: verdicts and
-- reader_invocations have the texts.
-- Class, design section 6: <independence>_<depth> with +tests and +worktree. It is derived from the reader's facts and from
-- what the oracle checked; what a row claims is never read. independence follows docs/evidence-classes.md, and is the lesser
-- of what the facts say and what was recorded (overclaimed: more was recorded than the facts say). It is `unqualified`, and
-- the class null, where neither the facts nor a named person's word says how the instrument relates to the subject. Where
-- the plan asks for an answer, an answer that passed is a depth of its own: nothing committed was checked.
-- Serves rules 6, 7, 8, 9 and 10.
CREATE OR REPLACE VIEW correctness_classes AS
WITH read AS (
    -- As reader_invocations, with what a class needs and no more: the text of an event is the costliest thing here.
    SELECT
        campaign, trial, event_id, subject, outcome, reason,
        unnest(json_transform(payload, '{
            "vcs": "VARCHAR", "reader": "VARCHAR", "reader_version": "VARCHAR", "code_sha256": "VARCHAR",
            "backend": "VARCHAR", "exit_status": "BIGINT", "relation": "VARCHAR", "codec_sha256": "VARCHAR",
            "instrument_sha256": "VARCHAR", "subject_binary_sha256": "VARCHAR", "qualified_by": "VARCHAR",
            "qualified_because": "VARCHAR", "scope_sha256": "VARCHAR", "manifest_sha256": "VARCHAR",
            "nonregular_count": "BIGINT", "oversize_count": "BIGINT", "colliding_count": "BIGINT",
            "missing_count": "BIGINT"
        }'))
    FROM ledger_events
    WHERE kind = 'reader_invoked'
),
readings AS (
    SELECT
        campaign, event_id, trial, subject, outcome, reason, vcs, relation,
        CASE WHEN manifest_sha256 IS NOT NULL THEN hash(manifest_sha256) END AS manifest,
        CASE WHEN instrument_sha256 IS NOT NULL THEN hash(instrument_sha256) END AS instrument,
        CASE WHEN subject_binary_sha256 IS NOT NULL THEN hash(subject_binary_sha256) END AS binary_key,
        scope_sha256 IS NOT NULL AS scoped,
        hash(scope_sha256) AS scope_key,
        coalesce(outcome = 'ok' AND exit_status = 0 AND reason IS NULL, false) AS read_well,
        hash(reader, reader_version, backend, code_sha256) AS reader_key,
        hash(instrument_sha256, codec_sha256) AS instrument_key,
        CASE
            WHEN backend = 'export' OR reader = 'oak_export_reader' THEN 'export'
            WHEN backend = 'pure' AND reader IN ('oak_sqlite_reader', 'git_object_reader') THEN 'own'
            WHEN backend = 'git' AND reader = 'git_instrument_reader' THEN 'instrument'
            WHEN backend = 'native' AND reader = 'oak_sqlite_reader' THEN 'shared_code'
            ELSE 'unknown'
        END AS way,
        coalesce(length(trim(qualified_by)) > 0 AND length(trim(qualified_because)) > 0, false) AS asserted,
        coalesce(nonregular_count, 0) + coalesce(oversize_count, 0) + coalesce(colliding_count, 0) AS bad_paths,
        coalesce(missing_count, 0) AS missing_paths
    FROM read
),
runs AS (
    SELECT campaign, trial, scenario, scenario_version, condition_key, subject, binary_key FROM attempts
),
judgements AS (
    SELECT
        v.campaign, v.trial, v.event_id, v.recorded_at_ns, v.verdict, v.reason, v.tests, v.worktree, v.answer,
        coalesce(v.depth, CASE WHEN s.evidence = 'answer' AND v.answer = 'pass' THEN 'answer' END) AS depth,
        v.oracle_version, hash(v.contract_sha256) AS contract_key, v.scenario AS judged_scenario, v.scenario_version AS judged_version,
        v.subject AS judged_subject, CASE WHEN v.manifest_sha256 IS NOT NULL THEN hash(v.manifest_sha256) END AS judged_manifest, v.reader_event_id,
        CASE
            WHEN s.scenario IS NULL THEN 'scenario_not_planned'
            WHEN v.oracle_version IS DISTINCT FROM s.oracle_version THEN 'oracle_version'
            WHEN v.fixture_version IS DISTINCT FROM s.fixture_version THEN 'fixture_version'
            WHEN s.contract_sha256 IS NOT NULL AND v.contract_sha256 IS DISTINCT FROM s.contract_sha256 THEN 'contract'
        END AS off_plan
    FROM verdicts AS v
    LEFT JOIN campaign_scenarios AS s
        ON s.campaign = v.campaign AND s.scenario = v.scenario AND s.scenario_version = v.scenario_version
    WHERE v.trial IS NOT NULL AND v.control IS NULL
),
joined AS (
    SELECT
        j.*,
        a.scenario, a.scenario_version, a.condition_key, a.subject, a.trial AS known_trial,
        r.event_id IS NOT NULL AS reader_found, r.trial AS reader_trial, r.subject AS reader_subject,
        r.outcome AS reader_outcome, r.reason AS reader_reason, r.manifest AS reader_manifest, r.read_well, r.way, r.asserted,
        r.vcs, r.reader_key, r.instrument_key, r.relation, r.scoped, r.scope_key, r.bad_paths, r.missing_paths,
        CASE
            WHEN r.instrument IN (a.binary_key, r.binary_key) THEN true
            WHEN r.instrument IS NOT NULL AND coalesce(a.binary_key, r.binary_key) IS NOT NULL THEN false
        END AS same_bytes
    FROM judgements AS j
    LEFT JOIN runs AS a ON a.campaign = j.campaign AND a.trial = j.trial
    LEFT JOIN readings AS r ON r.campaign = j.campaign AND r.event_id = j.reader_event_id
),
related AS (
    SELECT
        *,
        CASE
            WHEN way = 'export' THEN 'subject_export'
            WHEN way = 'unknown' OR (way = 'shared_code' AND NOT asserted) THEN 'unqualified'
            WHEN same_bytes THEN 'subject_binary'
            WHEN way IN ('own', 'shared_code') OR (asserted AND same_bytes IS NOT NULL) THEN 'independent'
            ELSE 'unqualified'
        END AS derived,
        CASE
            WHEN known_trial IS NULL THEN 'no_trial'
            WHEN judged_scenario <> scenario OR judged_version <> scenario_version THEN 'other_scenario'
            WHEN judged_subject IS DISTINCT FROM subject THEN 'other_subject'
            WHEN off_plan IS NOT NULL THEN off_plan
            WHEN verdict = 'unmeasured' THEN NULL
            WHEN reader_event_id IS NULL THEN 'without_reader'
            WHEN NOT reader_found THEN 'reader_not_recorded'
            WHEN reader_trial IS DISTINCT FROM trial THEN 'reader_of_another_trial'
            WHEN reader_subject IS DISTINCT FROM subject THEN 'reader_of_another_subject'
            WHEN judged_manifest IS NOT NULL AND judged_manifest IS DISTINCT FROM reader_manifest THEN 'other_manifest'
            WHEN verdict = 'pass' AND NOT read_well THEN 'reader_saw_nothing'
            WHEN reader_outcome NOT IN ('ok', 'failed', 'invalid') AND bad_paths + missing_paths = 0
                THEN 'reader_saw_nothing'
        END AS refused
    FROM joined
),
ranked AS (
    SELECT
        *,
        CASE relation WHEN 'independent' THEN 3 WHEN 'subject_binary' THEN 2 WHEN 'subject_export' THEN 1 ELSE 0 END
            AS said,
        CASE derived WHEN 'independent' THEN 3 WHEN 'subject_binary' THEN 2 WHEN 'subject_export' THEN 1 ELSE 0 END
            AS shown
    FROM related
),
settled AS (
    SELECT
        *,
        CASE WHEN reader_found THEN CASE WHEN said < shown THEN relation ELSE derived END END AS independence,
        said > shown AS overclaimed,
        coalesce(reason, reader_reason) AS any_reason
    FROM ranked
)
SELECT
    c.campaign,
    c.trial,
    c.event_id,
    c.recorded_at_ns,
    c.reader_event_id,
    c.scenario,
    c.scenario_version,
    c.condition_key,
    c.subject,
    c.verdict,
    c.any_reason AS reason,
    coalesce(o.owner, CASE WHEN c.verdict = 'unmeasured' THEN 'subject' END) AS owner,
    c.oracle_version,
    c.contract_key,
    c.depth,
    c.tests,
    c.worktree,
    c.answer,
    c.vcs,
    c.reader_key,
    c.instrument_key,
    c.scope_key,
    c.refused,
    c.verdict = 'fail' AND c.reader_outcome = 'failed' AND coalesce(b.before_head, false) AS before_head,
    c.verdict = 'pass' AND c.reader_found AND c.scoped AND c.bad_paths > 0 AS contradicted,
    c.independence,
    c.relation,
    c.overclaimed,
    CASE
        WHEN c.independence <> 'unqualified' AND c.depth IS NOT NULL
            THEN concat(
                c.independence, '_', c.depth,
                CASE WHEN c.tests = 'pass' THEN '+tests' ELSE '' END,
                CASE WHEN c.worktree = 'pass' THEN '+worktree' ELSE '' END
            )
    END AS correctness_class
FROM settled AS c
LEFT JOIN reasons AS o ON o.reason = c.any_reason
LEFT JOIN reasons AS b ON b.reason = c.reader_reason;
