-- rule_10_conflicts: facts that contradict each other block until a recorded rule decides.
-- Grain and columns as rule_01_planned_slots. A rule can decide what a pass with a timeout or an error counts as, for every
-- subject alike; one that turns such conflicts into passes must have been recorded before the first start.
CREATE OR REPLACE VIEW rule_10_conflicts AS
WITH found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT campaign, conflict AS what, scenario, scenario_version, condition_key, subject, trial,
        CASE
            WHEN conflict IN ('pass_with_timeout', 'pass_with_error')
                THEN concat('an oracle passed it and the harness saw status ', status, ': no recorded rule decides')
            WHEN conflict = 'verdicts_disagree' THEN 'its verdicts, or the evidence behind them, disagree'
            WHEN conflict = 'pass_against_its_evidence' THEN 'an oracle passed it against its own reader or checks'
            WHEN conflict = 'pass_without_head' THEN 'an oracle passed it and the harness says that it never reached a HEAD'
            ELSE concat('an oracle passed it and the harness says that it is ', replace(status, '_', ' '))
        END AS detail,
        [event_id] AS event_ids
    FROM trial_outcomes
    WHERE conflict IS NOT NULL AND NOT (conflict IN ('pass_with_timeout', 'pass_with_error') AND decision IS NOT NULL)
    UNION ALL BY NAME
    -- A record that claims success beside a timeout or an error contradicts itself, whether an oracle looked or not.
    SELECT t.campaign, concat('claim_with_', t.status) AS what, t.scenario, t.scenario_version, t.condition_key, t.subject,
        concat(count(*), ' record(s) claim success beside status ', t.status, ': no recorded rule decides') AS detail,
        list(t.event_id ORDER BY t.event_id) AS event_ids
    FROM trials AS t
    ANTI JOIN conflict_rules AS r ON r.campaign = t.campaign AND r.conflict = concat('pass_with_', t.status)
    WHERE t.claimed_success AND t.status IN ('timeout', 'error')
    GROUP BY t.campaign, t.status, t.scenario, t.scenario_version, t.condition_key, t.subject
    UNION ALL BY NAME
    SELECT campaign, 'rules_disagree' AS what, concat('rules on ', conflict, ' decide both ways') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM conflict_rules
    GROUP BY campaign, conflict
    HAVING count(DISTINCT decision) > 1
    UNION ALL BY NAME
    SELECT r.campaign, 'rule_too_late' AS what,
        concat(r.who, ' decided that ', replace(r.conflict, '_', ' '), ' counts as a pass, and ', w.because) AS detail,
        [r.event_id] AS event_ids
    FROM conflict_rules AS r
    JOIN early_words AS w ON w.event_id = r.event_id
    WHERE r.decision = 'pass' AND w.late
)
SELECT f.*, NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
