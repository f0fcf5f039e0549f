-- conditions: every condition of a campaign, planned or met. Grain: campaign x condition_key.
-- Columns: campaign, condition_key, planned, condition (JSON), its facts one by one, and same_but_environment (digest of
-- the condition without its environment: equal where two conditions differ in the environment alone).
-- Serves rules 3 and 4.
CREATE OR REPLACE VIEW conditions AS
WITH met AS (
    SELECT campaign, condition_key, min({'origin': origin, 'seq': seq}) AS first
    FROM ledger_events
    WHERE kind = 'trial_recorded'
    GROUP BY campaign, condition_key
),
off_plan AS (
    SELECT m.*
    FROM met AS m
    ANTI JOIN campaign_conditions AS p ON p.campaign = m.campaign AND p.condition_key = m.condition_key
),
everything AS (
    SELECT campaign, condition_key, true AS planned, condition FROM campaign_conditions
    UNION ALL
    SELECT o.campaign, o.condition_key, false, e.payload -> '$.condition'
    FROM off_plan AS o
    JOIN ledger_events AS e ON e.origin = o.first.origin AND e.seq = o.first.seq
)
SELECT
    campaign,
    condition_key,
    planned,
    condition,
    unnest(json_transform(condition, '{
        "agent": "VARCHAR", "agent_version": "VARCHAR", "model": "VARCHAR", "instruction_level": "VARCHAR",
        "instruction_sha256": "VARCHAR", "track": "VARCHAR", "environment_id": "VARCHAR", "transport": "VARCHAR",
        "profile": "VARCHAR", "limits": "JSON"
    }')),
    sha256(json_merge_patch(condition, '{"environment_id": null}')) AS same_but_environment
FROM everything;
