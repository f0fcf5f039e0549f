-- conditions: every condition of a campaign, planned or met. Grain: campaign x condition_key.
-- Columns: campaign, condition_key, planned, condition (JSON), its facts one by one, and same_but_environment (digest of
-- the condition without its environment: equal where two conditions differ in the environment alone).
-- Serves rules 3 and 4.
CREATE OR REPLACE VIEW conditions AS
WITH off_plan AS (
    SELECT t.campaign, t.condition_key, min(t.event_id) AS event_id
    FROM trial_facts AS t
    ANTI JOIN campaign_conditions AS p ON p.campaign = t.campaign AND p.condition_key = t.condition_key
    GROUP BY t.campaign, t.condition_key
),
everything AS (
    SELECT campaign, condition_key, true AS planned, condition FROM campaign_conditions
    UNION ALL
    SELECT o.campaign, o.condition_key, false, e.payload -> '$.condition'
    FROM off_plan AS o
    JOIN ledger_events AS e ON e.kind = 'trial_recorded' AND e.event_id = o.event_id
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
