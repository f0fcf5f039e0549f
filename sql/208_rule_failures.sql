-- rule_08_failures: what counts as the agent's failure is one, and every one of them counts.
-- Grain and columns as rule_01_planned_slots. A failure before HEAD stays in the denominator as a failure (trial_outcomes
-- keeps it there, and rule 1 refuses to have it replaced). A harness failure, an unlaunched or an unmeasured trial booked as
-- the agent's failure is a violation, and so is an agent's failure booked as one of the harness.
CREATE OR REPLACE VIEW rule_08_failures AS
WITH found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT campaign, 'harness_failure_as_agent_failure' AS what, scenario, scenario_version, condition_key, subject, trial,
        concat('booked as a failure of the agent with status ', status, ', and ',
            CASE
                WHEN exit_code IN (126, 127) THEN concat('exit code ', exit_code, ' says that the program did not run')
                ELSE concat('status code ', status_code, ' speaks of a service, a machine or the harness')
            END) AS detail,
        [event_id] AS event_ids
    FROM trial_outcomes
    WHERE booked_as_failure AND fact_outcome = 'harness_failure' AND status <> 'harness_failure'
        AND outcome <> 'replaced'
    UNION ALL BY NAME
    SELECT campaign, 'failure_not_shown' AS what, scenario, scenario_version, condition_key, subject, trial,
        concat('booked as a failure before HEAD, and ',
            CASE
                WHEN started_at_ns IS NULL THEN 'no start time says that it ran'
                WHEN NOT ran THEN 'neither an end time nor an exit code says that it ended'
                WHEN read_well THEN 'a reader did read its HEAD: an oracle has to judge it'
                ELSE concat('the reader could not look (', coalesce(unmeasured_reason, 'no reason given'), ')')
            END) AS detail,
        [event_id] AS event_ids
    FROM trial_outcomes
    WHERE booked_as_failure AND fact_outcome = 'unmeasured' AND outcome <> 'replaced'
    UNION ALL BY NAME
    SELECT campaign, 'agent_failure_as_harness_failure' AS what, scenario, scenario_version, condition_key, subject, trial,
        concat('recorded as ', replace(status, '_', ' '), ', and an oracle found its committed result wrong') AS detail,
        [event_id] AS event_ids
    FROM trial_outcomes
    WHERE fails > 0 AND status IN ('harness_failure', 'unlaunched')
    UNION ALL BY NAME
    SELECT campaign, concat('fail_', refused) AS what, scenario, scenario_version, condition_key, subject, trial,
        concat('a fail that does not count: ', replace(refused, '_', ' ')) AS detail,
        list_filter([event_id, reader_event_id], lambda x: x IS NOT NULL) AS event_ids
    FROM correctness_classes
    WHERE verdict = 'fail' AND refused NOT IN (
        'no_trial', 'scenario_not_planned', 'other_scenario', 'oracle_version', 'fixture_version', 'contract'
    )
    UNION ALL BY NAME
    SELECT s.campaign, 'failure_invalidated' AS what, s.scenario, s.scenario_version, s.condition_key, s.subject, s.trial,
        concat('it failed, and ', s.who, ' took it out of the count: ', s.why) AS detail, [s.event_id] AS event_ids
    FROM set_aside AS s
    WHERE s.what = 'invalidated' AND s.fact_outcome IN ('failed_committed', 'failed_before_head')
)
SELECT f.*, NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
