-- correctness_classes: which evidence stands behind each verdict. Grain: one row per oracle_judged event on a trial.
-- Columns: campaign, trial, event_id, scenario, scenario_version, condition_key, subject (of the trial), verdict, reason,
-- owner of the reason, the facts of the reader invocation, refused (why the verdict does not count; null: it counts),
-- before_head (a failure for want of a readable HEAD), contradicted (a pass although the reader reports a path that must
-- fail it), independence, relation (as recorded), overclaimed, correctness_class.
-- Class, design section 6: <independence>_<depth> with +tests and +worktree. It is derived from the reader's facts and from
-- what the oracle checked; what a row claims is never read. independence follows docs/evidence-classes.md, and is the lesser
-- of what the facts say and what was recorded (overclaimed: more was recorded than the facts say). It is `unqualified`, and
-- the class null, where neither the facts nor a named person's word says how the instrument relates to the subject. Where
-- the plan asks for an answer, an answer that passed is a depth of its own: nothing committed was checked.
-- Serves rules 6, 7, 8, 9 and 10.
CREATE OR REPLACE VIEW correctness_classes AS
WITH joined AS (
    SELECT
        v.campaign, v.trial, v.event_id, v.verdict,
        coalesce(v.depth, CASE WHEN s.evidence = 'answer' AND v.answer = 'pass' THEN 'answer' END) AS depth, v.tests, v.worktree, v.answer, v.oracle_version,
        v.fixture_version, v.contract_sha256,
        v.scenario AS judged_scenario, v.scenario_version AS judged_version, v.subject AS judged_subject,
        v.manifest_sha256 AS judged_manifest, v.reader_event_id,
        coalesce(v.reason, r.reason) AS reason,
        r.reason AS reader_reason,
        a.scenario, a.scenario_version, a.condition_key, a.subject, a.trial AS known_trial,
        r.event_id AS reader_found, r.trial AS reader_trial, r.subject AS reader_subject, r.outcome AS reader_outcome,
        r.exit_status AS reader_exit_status, r.manifest_sha256 AS reader_manifest,
        r.vcs, r.reader, r.reader_version, r.code_sha256, r.backend, r.codec_sha256, r.instrument_sha256, r.relation,
        r.scope_sha256, r.qualified_by, r.qualified_because,
        coalesce(r.nonregular_count, 0) + coalesce(r.oversize_count, 0) + coalesce(r.colliding_count, 0) AS bad_paths,
        coalesce(r.missing_count, 0) AS missing_paths,
        CASE
            WHEN r.instrument_sha256 IN (a.subject_binary_sha256, r.subject_binary_sha256) THEN true
            WHEN r.instrument_sha256 IS NOT NULL
                AND coalesce(a.subject_binary_sha256, r.subject_binary_sha256) IS NOT NULL THEN false
        END AS same_bytes,
        s.evidence,
        s.scenario AS planned_scenario, s.oracle_version AS planned_oracle, s.fixture_version AS planned_fixture,
        s.contract_sha256 AS planned_contract
    FROM verdicts AS v
    LEFT JOIN attempts AS a ON a.campaign = v.campaign AND a.trial = v.trial
    LEFT JOIN reader_invocations AS r ON r.campaign = v.campaign AND r.event_id = v.reader_event_id
    LEFT JOIN campaign_scenarios AS s
        ON s.campaign = v.campaign AND s.scenario = v.scenario AND s.scenario_version = v.scenario_version
    WHERE v.trial IS NOT NULL AND v.control IS NULL
),
related AS (
    SELECT
        *,
        CASE
            WHEN reader_found IS NULL THEN NULL
            WHEN backend = 'export' OR reader = 'oak_export_reader' THEN 'subject_export'
            WHEN same_bytes THEN 'subject_binary'
            WHEN backend = 'pure' AND reader IN ('oak_sqlite_reader', 'git_object_reader') THEN 'independent'
            WHEN length(trim(qualified_by)) > 0 AND length(trim(qualified_because)) > 0
                AND (
                    (backend = 'native' AND reader = 'oak_sqlite_reader')
                    OR (backend = 'git' AND reader = 'git_instrument_reader' AND same_bytes IS NOT NULL)
                ) THEN 'independent'
            ELSE 'unqualified'
        END AS derived,
        CASE
            WHEN known_trial IS NULL THEN 'no_trial'
            WHEN judged_scenario <> scenario OR judged_version <> scenario_version THEN 'other_scenario'
            WHEN judged_subject IS DISTINCT FROM subject THEN 'other_subject'
            WHEN planned_scenario IS NULL THEN 'scenario_not_planned'
            WHEN oracle_version IS DISTINCT FROM planned_oracle THEN 'oracle_version'
            WHEN fixture_version IS DISTINCT FROM planned_fixture THEN 'fixture_version'
            WHEN planned_contract IS NOT NULL AND contract_sha256 IS DISTINCT FROM planned_contract THEN 'contract'
            WHEN verdict = 'unmeasured' THEN NULL
            WHEN reader_event_id IS NULL THEN 'without_reader'
            WHEN reader_found IS NULL THEN 'reader_not_recorded'
            WHEN reader_trial IS DISTINCT FROM trial THEN 'reader_of_another_trial'
            WHEN reader_subject IS DISTINCT FROM subject THEN 'reader_of_another_subject'
            WHEN judged_manifest IS NOT NULL AND judged_manifest IS DISTINCT FROM reader_manifest THEN 'other_manifest'
            WHEN verdict = 'pass'
                AND NOT coalesce(
                    reader_outcome = 'ok' AND reader_exit_status = 0 AND reader_reason IS NULL, false
                ) THEN 'reader_saw_nothing'
            WHEN verdict = 'fail' AND coalesce(reader_outcome, '') NOT IN ('ok', 'failed', 'invalid')
                AND bad_paths + missing_paths = 0 THEN 'reader_saw_nothing'
            WHEN verdict NOT IN ('pass', 'fail') THEN 'unknown_verdict'
        END AS refused
    FROM joined
),
ranks AS (
    SELECT relation, rank
    FROM (VALUES ('unqualified', 0), ('subject_export', 1), ('subject_binary', 2), ('independent', 3)) AS t (relation, rank)
),
settled AS (
    SELECT
        c.*,
        CASE WHEN coalesce(said.rank < facts.rank, false) THEN c.relation ELSE c.derived END AS independence,
        coalesce(said.rank > facts.rank, false) AS overclaimed
    FROM related AS c
    LEFT JOIN ranks AS said ON said.relation = c.relation
    LEFT JOIN ranks AS facts ON facts.relation = c.derived
)
SELECT
    campaign,
    trial,
    event_id,
    reader_event_id,
    scenario,
    scenario_version,
    condition_key,
    subject,
    verdict,
    reason,
    coalesce(o.owner, CASE WHEN verdict = 'unmeasured' THEN 'subject' END) AS owner,
    oracle_version,
    fixture_version,
    contract_sha256,
    depth,
    tests,
    worktree,
    answer,
    vcs,
    reader,
    reader_version,
    code_sha256,
    backend,
    codec_sha256,
    instrument_sha256,
    scope_sha256,
    reader_outcome,
    refused,
    verdict = 'fail' AND reader_outcome = 'failed' AND coalesce(b.before_head, false) AS before_head,
    verdict = 'pass' AND scope_sha256 IS NOT NULL AND bad_paths > 0 AS contradicted,
    independence,
    relation,
    overclaimed,
    CASE
        WHEN independence <> 'unqualified' AND depth IS NOT NULL
            THEN concat(
                independence, '_', depth,
                CASE WHEN tests = 'pass' THEN '+tests' ELSE '' END,
                CASE WHEN worktree = 'pass' THEN '+worktree' ELSE '' END
            )
    END AS correctness_class
FROM settled AS c
LEFT JOIN reasons AS o USING (reason)
LEFT JOIN reasons AS b ON b.reason = c.reader_reason;
