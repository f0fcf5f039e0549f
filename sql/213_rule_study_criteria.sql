-- rule_13_study_criteria: the study's own criteria are named in the plan, and attested when the trials are done.
-- Grain and columns as rule_01_planned_slots. Without that a campaign stays diagnostic, whatever else holds.
CREATE OR REPLACE VIEW rule_13_study_criteria AS
WITH last_starts AS (
    SELECT campaign, max(started_at_ns) AS at_ns FROM trial_outcomes GROUP BY campaign
),
standing AS (
    SELECT a.*, coalesce(a.recorded_at_ns <= l.at_ns, false) AS early
    FROM attestations AS a
    LEFT JOIN last_starts AS l USING (campaign)
)
SELECT campaign, what, true AS binding, detail, event_ids
FROM empty_campaigns
UNION ALL BY NAME
SELECT c.campaign, 'no_criteria' AS what, true AS binding,
    'the plan names no criteria of its own: the study has not said what else must hold' AS detail,
    c.declared_event_ids AS event_ids
FROM campaigns AS c
ANTI JOIN campaign_criteria AS k ON k.campaign = c.campaign
WHERE c.declarations > 0
UNION ALL BY NAME
SELECT
    k.campaign,
    CASE
        WHEN s.criterion IS NULL THEN 'not_attested'
        WHEN bool_and(s.text_sha256 <> k.text_sha256) THEN 'other_text_attested'
        ELSE 'attested_early'
    END AS what,
    true AS binding,
    concat('criterion ', k.criterion, ': ',
        CASE
            WHEN s.criterion IS NULL THEN 'nobody attests it'
            WHEN bool_and(s.text_sha256 <> k.text_sha256) THEN 'what is attested is another text under its name'
            ELSE 'it was attested before the last trial started'
        END) AS detail,
    coalesce(list(s.event_id ORDER BY s.event_id) FILTER (s.event_id IS NOT NULL), any_value(c.declared_event_ids))
        AS event_ids
FROM campaign_criteria AS k
JOIN campaigns AS c USING (campaign)
LEFT JOIN standing AS s ON s.campaign = k.campaign AND s.criterion = k.criterion
GROUP BY k.campaign, k.criterion, k.text_sha256, s.criterion
HAVING NOT coalesce(bool_or(s.text_sha256 = k.text_sha256 AND NOT s.early), false);
