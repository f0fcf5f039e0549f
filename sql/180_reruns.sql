-- plan_history: every declared plan of the ledger. Grain: campaign. Columns: campaign, plan_sha256, comparison_sha256
-- (digest of lane, subjects and scenario names alone: it stays when a plan is changed a little), declared_at_ns, trials
-- (records), last_decision, last_decided_at_ns, decisions, event_id. Serves rule 12.
CREATE OR REPLACE VIEW plan_history AS
WITH declared AS (
    SELECT campaign, arg_min(payload -> '$.plan', (recorded_at_ns, event_id)) AS plan,
        arg_min(event_id, (recorded_at_ns, event_id)) AS event_id, min(recorded_at_ns) AS declared_at_ns
    FROM ledger_history
    WHERE kind = 'campaign_declared'
    GROUP BY campaign
),
decided AS (
    SELECT campaign, arg_max(payload ->> '$.decision', (recorded_at_ns, event_id)) AS last_decision,
        max(recorded_at_ns) AS last_decided_at_ns, count(*) AS decisions
    FROM ledger_history
    WHERE kind = 'qualification_decided'
    GROUP BY campaign
),
counted AS (
    SELECT campaign, count(*) AS trials FROM ledger_history WHERE kind = 'trial_recorded' GROUP BY campaign
)
SELECT
    d.campaign,
    sha256(d.plan) AS plan_sha256,
    sha256(concat(
        d.plan ->> '$.lane', chr(10),
        array_to_string(list_sort(d.plan ->> '$.subjects[*].subject'), ' '), chr(10),
        array_to_string(list_sort(d.plan ->> '$.scenarios[*].scenario'), ' ')
    )) AS comparison_sha256,
    d.declared_at_ns,
    coalesce(c.trials, 0) AS trials,
    s.last_decision,
    s.last_decided_at_ns,
    coalesce(s.decisions, 0) AS decisions,
    d.event_id
FROM declared AS d
LEFT JOIN decided AS s USING (campaign)
LEFT JOIN counted AS c USING (campaign);

-- reruns: other campaigns that measure the same. Grain: campaign x other campaign.
-- Columns: campaign, other, same_plan (the plans are equal; else only lane, subjects and scenarios are), earlier (the other
-- was declared before), trials, last_decision, decisions, event_id of the other. Serves rule 12.
CREATE OR REPLACE VIEW reruns AS
SELECT
    c.campaign,
    o.campaign AS other,
    o.plan_sha256 = c.plan_sha256 AS same_plan,
    o.declared_at_ns <= c.declared_at_ns AS earlier,
    o.declared_at_ns,
    o.trials,
    o.last_decision,
    o.decisions,
    o.event_id
FROM plan_history AS c
JOIN plan_history AS o ON o.comparison_sha256 = c.comparison_sha256 AND o.campaign <> c.campaign;

-- set_aside: attempts that somebody took out of the count, and who. Grain: one row per trial_invalidated and trial_replaced
-- event. Columns: campaign, what, trial, replacement, who, why, fact_outcome of the attempt, subject, event_id.
-- Serves rules 1 and 12.
CREATE OR REPLACE VIEW set_aside AS
SELECT i.campaign, 'invalidated' AS what, i.trial, NULL AS replacement, i.who, i.why, f.fact_outcome, f.scenario,
    f.scenario_version, f.condition_key, f.subject, f.diagnostic, i.event_id
FROM invalidations AS i
LEFT JOIN trial_outcomes AS f ON f.campaign = i.campaign AND f.trial = i.trial
UNION ALL
SELECT r.campaign, 'replaced', r.trial, r.replacement, r.who, r.why, f.fact_outcome, f.scenario, f.scenario_version,
    f.condition_key, f.subject, f.diagnostic, r.event_id
FROM replacements AS r
LEFT JOIN trial_outcomes AS f ON f.campaign = r.campaign AND f.trial = r.trial;
