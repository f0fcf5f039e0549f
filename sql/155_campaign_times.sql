-- campaign_lanes: which rules bind. Grain: campaign. Columns: lane (of the plan), lanes_met (of the trials), bound (rules
-- 2, 4 and 5 bind: the plan or any trial is of the workflow or agent lane, or no plan says what lane it is), attempts,
-- real_subjects (that are not the null of another), compared_scenarios (that are not diagnostic).
-- Serves rules 1 to 5.
CREATE OR REPLACE VIEW campaign_lanes AS
WITH met AS (
    SELECT campaign, list_sort(list(DISTINCT lane)) AS lanes_met, count(*) AS attempts FROM trial_outcomes GROUP BY campaign
),
subjects AS (
    SELECT campaign, count(*) FILTER (null_of IS NULL) AS real_subjects FROM campaign_subjects GROUP BY campaign
),
scenarios AS (
    SELECT campaign, count(*) FILTER (NOT diagnostic) AS compared_scenarios FROM campaign_scenarios GROUP BY campaign
)
SELECT
    c.campaign,
    c.lane,
    coalesce(m.lanes_met, []) AS lanes_met,
    c.lane IS NULL OR c.lane IN ('workflow', 'agent') OR list_has_any(coalesce(m.lanes_met, []), ['workflow', 'agent'])
        AS bound,
    coalesce(m.attempts, 0) AS attempts,
    coalesce(s.real_subjects, 0) AS real_subjects,
    coalesce(n.compared_scenarios, 0) AS compared_scenarios
FROM campaigns AS c
LEFT JOIN met AS m USING (campaign)
LEFT JOIN subjects AS s USING (campaign)
LEFT JOIN scenarios AS n USING (campaign);

-- empty_campaigns: campaigns in which a rule would find nothing to look at. Grain: campaign x what (not_declared,
-- no_trials). Columns: campaign, what, detail, event_ids. Every rule view ends in it: nothing to look at is a violation.
CREATE OR REPLACE VIEW empty_campaigns AS
SELECT campaign, 'not_declared' AS what, 'no campaign_declared event: there is no plan to hold anything against' AS detail,
    [first_event_id] AS event_ids
FROM campaigns
WHERE declarations = 0
UNION ALL
SELECT c.campaign, 'no_trials', 'no trial was recorded', [c.first_event_id]
FROM campaigns AS c
JOIN campaign_lanes AS l USING (campaign)
WHERE l.attempts = 0;

-- early_words: was it said before the runs? Grain: one row per campaign_declared and conflict_rule_recorded event.
-- Columns: campaign, event_id, kind, recorded_at_ns, first_started_at_ns (of the campaign's trials), late, because. An event
-- is late when it gives a time at or after the first start, and when some ledger took it in after a trial of the campaign:
-- the producer's clock alone proves nothing.
-- Serves rules 5, 10 and 12.
CREATE OR REPLACE VIEW early_words AS
WITH starts AS (
    SELECT campaign, min(started_at_ns) AS first_started_at_ns FROM trial_outcomes GROUP BY campaign
),
first_trials AS (
    SELECT campaign, origin, min(seq) AS seq FROM events WHERE kind = 'trial_recorded' GROUP BY campaign, origin
),
words AS (
    SELECT campaign, event_id, kind, recorded_at_ns
    FROM ledger_events
    WHERE kind IN ('campaign_declared', 'conflict_rule_recorded')
),
overtaken AS (
    SELECT DISTINCT e.event_id
    FROM events AS e
    JOIN first_trials AS f ON f.campaign = e.campaign AND f.origin = e.origin AND f.seq < e.seq
    WHERE e.kind IN ('campaign_declared', 'conflict_rule_recorded')
)
SELECT
    w.campaign,
    w.event_id,
    w.kind,
    w.recorded_at_ns,
    s.first_started_at_ns,
    coalesce(w.recorded_at_ns >= s.first_started_at_ns, false) OR o.event_id IS NOT NULL AS late,
    CASE
        WHEN w.recorded_at_ns >= s.first_started_at_ns THEN 'it was recorded after the first trial had started'
        WHEN o.event_id IS NOT NULL THEN 'a ledger took it in after trials of the campaign'
    END AS because
FROM words AS w
LEFT JOIN starts AS s USING (campaign)
LEFT JOIN overtaken AS o USING (event_id);
