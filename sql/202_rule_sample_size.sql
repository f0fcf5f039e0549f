-- rule_02_sample_size: distinct trial identities, and at least thirty trials recorded and measured in each cell.
-- Grain and columns as rule_01_planned_slots. Binds the workflow and agent lanes.
-- A trial's records are copies of another's when they were made from the same harness row, or keep the same record of the
-- run together with the same start, the same metrics, or a model in it: no two runs of a model write the same transcript.
-- What the harness broke off counts for nobody, and its empty logs are alike.
CREATE OR REPLACE VIEW rule_02_sample_size AS
-- Occurring twice is looked for among numbers first (same_...): they are grouped faster, and almost all occur once.
WITH same_trial AS (
    SELECT hash(trial) AS h FROM trial_facts GROUP BY hash(trial) HAVING count(*) > 1
),
same_row AS (
    SELECT row_key AS h FROM trial_facts GROUP BY row_key HAVING count(*) > 1
),
same_evidence AS (
    SELECT evidence AS h FROM trial_facts GROUP BY evidence HAVING count(*) > 1
),
same_times AS (
    SELECT hash(started_at_ns, ended_at_ns) AS h FROM trial_facts GROUP BY hash(started_at_ns, ended_at_ns) HAVING count(*) > 1
),
same_process AS (
    SELECT process AS h FROM trial_facts GROUP BY process HAVING count(*) > 1
),
found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT campaign, 'identity_twice' AS what, trial,
        concat(count(*), ' records of one trial',
            CASE WHEN operation IS NULL THEN '' ELSE concat(' and operation ', operation) END,
            ': an identity names one execution') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_facts
    WHERE hash(trial) IN (SELECT h FROM same_trial)
    GROUP BY campaign, trial, operation
    HAVING count(*) > 1
    UNION ALL BY NAME
    SELECT t.campaign, 'identity_in_two_cells' AS what, t.trial,
        'the records of one trial name different cells or repetitions' AS detail,
        list(t.event_id ORDER BY t.event_id) AS event_ids
    FROM trial_facts AS t
    WHERE hash(t.trial) IN (SELECT h FROM same_trial)
    GROUP BY t.campaign, t.trial
    HAVING count(DISTINCT concat_ws(
        ' ', t.scenario, t.scenario_version, t.subject, t.condition_key, t.repetition, t.lane
    )) > 1
    UNION ALL BY NAME
    SELECT t.campaign, 'identity_used_elsewhere' AS what, t.trial,
        concat('campaign ', h.campaign, ' has a trial of this identity') AS detail,
        [t.event_id, h.event_id] AS event_ids
    FROM trial_facts AS t
    JOIN ledger_history AS h ON h.kind = 'trial_recorded' AND h.trial = t.trial AND h.campaign <> t.campaign
    UNION ALL BY NAME
    SELECT t.campaign, 'trial_of_another_campaign' AS what, t.scenario, t.scenario_version, t.condition_key, t.subject,
        t.trial,
        concat('campaign ', h.campaign, ' has trial ', h.trial, ' of the same subject, scenario and start') AS detail,
        [t.event_id, h.event_id] AS event_ids
    FROM trial_facts AS t
    -- Events of no other kind have a start.
    JOIN ledger_history AS h
        ON h.started_at_ns = t.started_at_ns AND h.scenario = t.scenario
        AND h.subject = t.subject AND h.campaign <> t.campaign AND h.trial <> t.trial
    UNION ALL BY NAME
    SELECT campaign, 'copied_trial' AS what, array_to_string(list_sort(list(DISTINCT trial)), ', ') AS trial,
        concat(count(DISTINCT trial), ' trials were made from one harness row') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_facts
    WHERE row_key IN (SELECT h FROM same_row)
    GROUP BY campaign, row_key
    HAVING count(DISTINCT trial) > 1
    UNION ALL BY NAME
    SELECT campaign, 'copied_trial' AS what, array_to_string(list_sort(list(DISTINCT trial)), ', ') AS trial,
        concat(count(DISTINCT trial), ' trials keep one and the same record of their run') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_facts
    WHERE evidence IN (SELECT h FROM same_evidence) AND status NOT IN ('harness_failure', 'unlaunched')
    GROUP BY campaign, evidence
    HAVING count(DISTINCT trial) > 1
        AND (
            count(DISTINCT started_at_ns) < count(DISTINCT trial)
            OR count(DISTINCT metrics::VARCHAR) < count(DISTINCT trial)
            OR bool_or(lane = 'agent')
        )
    UNION ALL BY NAME
    SELECT campaign, 'copied_trial' AS what, subject, array_to_string(list_sort(list(DISTINCT trial)), ', ') AS trial,
        concat(count(DISTINCT trial), ' trials of one subject started and ended at the same nanosecond') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_facts
    WHERE started_at_ns IS NOT NULL AND ended_at_ns IS NOT NULL
        AND hash(started_at_ns, ended_at_ns) IN (SELECT h FROM same_times)
    GROUP BY campaign, subject, scenario, started_at_ns, ended_at_ns
    HAVING count(DISTINCT trial) > 1
    UNION ALL BY NAME
    SELECT campaign, 'iterations' AS what, array_to_string((list_sort(list(DISTINCT trial)))[:10], ', ') AS trial,
        concat(count(DISTINCT trial), ' trials ran in one process: iterations are not trials') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_facts
    WHERE process IN (SELECT h FROM same_process)
    GROUP BY campaign, process
    HAVING count(DISTINCT trial) > 1
    UNION ALL BY NAME
    SELECT c.campaign, CASE WHEN c.recorded < 30 THEN 'too_few_recorded' ELSE 'too_few_measured' END AS what,
        c.scenario, c.scenario_version, c.condition_key, c.subject,
        concat(c.recorded, ' trials recorded, ', c.measured, ' of them measured: at least 30 are needed') AS detail,
        coalesce(nullif(p.declared_event_ids, []), [p.first_event_id]) AS event_ids
    FROM cells AS c
    JOIN campaigns AS p USING (campaign)
    -- What is measured was recorded in the same cell.
    WHERE (c.planned > 0 OR p.trials_per_cell IS NULL) AND c.measured < 30
)
SELECT f.*, l.bound AND NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
JOIN campaign_lanes AS l USING (campaign)
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
