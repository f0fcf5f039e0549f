-- rule_09_exact_output: a success rests on the evidence that its scenario demands, in every lane.
-- Grain and columns as rule_01_planned_slots. An answer counts only after the same oracle, on the same contract, failed an
-- absent and a wrong one: negative controls, recorded before the first pass.
CREATE OR REPLACE VIEW rule_09_exact_output AS
WITH passes AS (
    SELECT c.*, s.evidence, s.tests AS tests_asked, s.worktree AS worktree_asked
    FROM correctness_classes AS c
    JOIN campaign_scenarios AS s USING (campaign, scenario, scenario_version)
    WHERE c.verdict = 'pass' AND c.refused IS NULL
),
weak AS (
    SELECT
        campaign, scenario, scenario_version, condition_key, subject, event_id,
        unnest(list_filter([
            CASE WHEN evidence = 'committed_tree' AND depth IS DISTINCT FROM 'committed_tree' THEN 'exact_tree' END,
            CASE
                WHEN evidence = 'committed_payload' AND coalesce(depth, '') NOT IN ('committed_tree', 'committed_payload')
                    THEN 'committed_payload'
            END,
            CASE WHEN evidence = 'answer' AND answer IS DISTINCT FROM 'pass' THEN 'answer' END,
            CASE WHEN tests_asked AND tests IS DISTINCT FROM 'pass' THEN 'tests' END,
            CASE WHEN worktree_asked AND worktree IS DISTINCT FROM 'pass' THEN 'worktree' END
        ], lambda x: x IS NOT NULL)) AS lacking
    FROM passes
    -- Only these can lack anything; the lists are costly.
    WHERE depth IS DISTINCT FROM evidence OR (tests_asked AND tests IS DISTINCT FROM 'pass')
        OR (worktree_asked AND worktree IS DISTINCT FROM 'pass')
),
first_passes AS (
    SELECT campaign, scenario, scenario_version, oracle_version, contract_key, min(recorded_at_ns) AS at_ns,
        arg_min(event_id, recorded_at_ns) AS event_id
    FROM passes
    WHERE evidence = 'answer'
    GROUP BY ALL
),
controls AS (
    SELECT
        campaign, scenario, scenario_version, verdict, recorded_at_ns, payload ->> '$.control' AS control,
        (payload ->> '$.oracle_version')::INTEGER AS oracle_version, hash(payload ->> '$.contract_sha256') AS contract_key
    FROM ledger_history
    WHERE kind = 'oracle_judged' AND trial IS NULL AND scenario IN (SELECT scenario FROM first_passes)
),
found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT campaign, concat('lacks_', lacking) AS what, scenario, scenario_version, condition_key, subject,
        concat(count(*), ' success(es) without what the scenario demands: ', replace(lacking, '_', ' ')) AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM weak
    GROUP BY campaign, lacking, scenario, scenario_version, condition_key, subject
    UNION ALL BY NAME
    SELECT s.campaign, 'no_evidence_asked' AS what, s.scenario, s.scenario_version,
        'the plan asks for no evidence and does not list the scenario as diagnostic' AS detail,
        c.declared_event_ids AS event_ids
    FROM campaign_scenarios AS s
    JOIN campaigns AS c USING (campaign)
    WHERE s.evidence = 'none' AND NOT s.diagnostic
    UNION ALL BY NAME
    SELECT p.campaign, concat('control_', k.control) AS what, p.scenario, p.scenario_version,
        concat('no ', k.control, ' answer had failed this oracle when the first pass was recorded') AS detail,
        [p.event_id] AS event_ids
    FROM first_passes AS p
    CROSS JOIN (VALUES ('absent'), ('wrong')) AS k (control)
    ANTI JOIN controls AS c
        ON c.scenario = p.scenario AND c.scenario_version = p.scenario_version AND c.oracle_version = p.oracle_version
        AND c.contract_key = p.contract_key AND c.control = k.control AND c.verdict = 'fail'
        AND c.recorded_at_ns <= p.at_ns AND coalesce(c.campaign = p.campaign, true)
)
SELECT f.*, NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
