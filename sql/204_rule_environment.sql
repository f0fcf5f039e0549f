-- rule_04_environment: one known environment identity in each comparison.
-- Grain and columns as rule_01_planned_slots. Binds the workflow and agent lanes. Subjects whose conditions differ in the
-- environment alone must have met the same set of environments; the events are a trial of each subject in each of them.
CREATE OR REPLACE VIEW rule_04_environment AS
WITH met AS (
    SELECT c.campaign, c.scenario, c.scenario_version, k.same_but_environment, c.subject,
        coalesce(k.environment_id, 'unknown') AS environment
    FROM cells AS c
    JOIN conditions AS k USING (campaign, condition_key)
    WHERE c.recorded > 0
),
sets AS (
    SELECT campaign, scenario, scenario_version, same_but_environment, subject,
        string_agg(environment[:12], ', ' ORDER BY environment) AS named,
        string_agg(environment, ' ' ORDER BY environment) AS environments
    FROM met
    GROUP BY ALL
),
found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT k.campaign, 'environment_unknown' AS what, k.condition_key,
        'the condition has no environment identity' AS detail, c.declared_event_ids AS event_ids
    FROM conditions AS k
    JOIN campaigns AS c USING (campaign)
    WHERE k.environment_id IS NULL
    UNION ALL BY NAME
    SELECT s.campaign, 'environments_differ' AS what, s.scenario, s.scenario_version,
        concat('the subjects met different environments: ',
            string_agg(concat(s.subject, ' ', s.named), '; ' ORDER BY s.subject)) AS detail,
        any_value(e.event_ids) AS event_ids
    FROM sets AS s
    JOIN (
        SELECT campaign, scenario, scenario_version, same_but_environment, list(event_id ORDER BY event_id) AS event_ids
        FROM (
            SELECT t.campaign, t.scenario, t.scenario_version, k.same_but_environment, t.subject, k.environment_id,
                min(t.event_id) AS event_id
            FROM trial_outcomes AS t
            JOIN conditions AS k USING (campaign, condition_key)
            GROUP BY ALL
        )
        GROUP BY ALL
    ) AS e USING (campaign, scenario, scenario_version, same_but_environment)
    GROUP BY s.campaign, s.scenario, s.scenario_version, s.same_but_environment
    HAVING count(DISTINCT s.environments) > 1
)
SELECT f.*, l.bound AND NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
JOIN campaign_lanes AS l USING (campaign)
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
