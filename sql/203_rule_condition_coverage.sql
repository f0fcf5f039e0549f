-- rule_03_condition_coverage: all subjects cover the same conditions, scenario by scenario, and the conditions are known.
-- Grain and columns as rule_01_planned_slots. A condition that one subject alone has is listed, never a group of its own.
CREATE OR REPLACE VIEW rule_03_condition_coverage AS
SELECT campaign, what, true AS binding, detail, event_ids
FROM empty_campaigns
UNION ALL BY NAME
SELECT c.campaign, 'hole' AS what, NOT c.diagnostic AS binding, c.scenario, c.scenario_version, c.condition_key, c.subject,
    concat('nothing was measured here; measured: ', coalesce(o.others, 'no subject')) AS detail,
    p.declared_event_ids AS event_ids
FROM condition_coverage AS c
JOIN campaigns AS p USING (campaign)
LEFT JOIN (
    SELECT campaign, scenario, scenario_version, condition_key, string_agg(subject, ', ' ORDER BY subject) AS others
    FROM condition_coverage
    WHERE covered
    GROUP BY ALL
) AS o USING (campaign, scenario, scenario_version, condition_key)
WHERE NOT c.covered AND c.condition_planned
UNION ALL BY NAME
SELECT t.campaign, 'condition_not_planned' AS what, true AS binding, t.scenario, t.scenario_version, t.condition_key,
    t.subject,
    concat(
        count(*), ' trial(s) under a condition that the plan does not have: model ', coalesce(k.model, 'unknown'),
        ', instruction level ', coalesce(k.instruction_level, 'none'), ', track ', coalesce(k.track, 'unknown'),
        ', environment ', coalesce(k.environment_id[:12], 'unknown'), ', transport ', coalesce(k.transport, 'none')
    ) AS detail,
    list(t.event_id ORDER BY t.event_id) AS event_ids
FROM trial_outcomes AS t
JOIN conditions AS k ON k.campaign = t.campaign AND k.condition_key = t.condition_key
WHERE t.unplanned_because = 'condition'
GROUP BY t.campaign, t.scenario, t.scenario_version, t.condition_key, t.subject, k.model, k.instruction_level, k.track,
    k.environment_id, k.transport
UNION ALL BY NAME
SELECT k.campaign, 'condition_unknown' AS what, true AS binding, k.condition_key,
    concat('unknown: ', array_to_string(k.unknown, ', '), ': two unknowns are not known to be equal') AS detail,
    p.declared_event_ids AS event_ids
FROM (
    SELECT
        c.campaign,
        c.condition_key,
        list_filter([
            CASE WHEN l.agent_lane AND c.agent IS NULL THEN 'agent' END,
            CASE WHEN l.agent_lane AND c.agent_version IS NULL THEN 'agent_version' END,
            CASE WHEN l.agent_lane AND c.model IS NULL THEN 'model' END,
            CASE WHEN l.agent_lane AND c.instruction_level IS NULL THEN 'instruction_level' END,
            CASE WHEN l.agent_lane AND c.instruction_sha256 IS NULL THEN 'instruction_sha256' END,
            CASE WHEN c.track IS NULL THEN 'track' END
        ], lambda x: x IS NOT NULL) AS unknown
    FROM conditions AS c
    JOIN (
        SELECT campaign, lane = 'agent' OR list_contains(lanes_met, 'agent') AS agent_lane, bound
        FROM campaign_lanes
    ) AS l USING (campaign)
    WHERE l.bound
) AS k
JOIN campaigns AS p USING (campaign)
WHERE len(k.unknown) > 0;
