-- rule_12_preregistration: a plan that calls itself preregistered was declared before its first trial started, and other
-- campaigns that measure the same are listed, so that running again until it passes can be seen.
-- Grain and columns as rule_01_planned_slots. The list is information; the late plan is a violation.
CREATE OR REPLACE VIEW rule_12_preregistration AS
SELECT campaign, what, true AS binding, detail, event_ids
FROM empty_campaigns
UNION ALL BY NAME
SELECT d.campaign, 'declared_late' AS what, true AS binding,
    concat('the plan calls itself preregistered, and ', w.because) AS detail, [d.event_id] AS event_ids
FROM campaign_declarations AS d
JOIN early_words AS w ON w.event_id = d.event_id
WHERE d.preregistered AND w.late
UNION ALL BY NAME
SELECT campaign, CASE WHEN same_plan THEN 'same_plan' ELSE 'same_comparison' END AS what, false AS binding,
    concat(
        'campaign ', other, ', declared ', CASE WHEN earlier THEN 'before' ELSE 'after' END, ' this one with ',
        CASE WHEN same_plan THEN 'the same plan' ELSE 'the same subjects and scenarios' END, ': ', trials, ' trial(s), ',
        coalesce(concat('decided ', decisions, ' time(s), last ', last_decision), 'never decided')
    ) AS detail,
    [event_id] AS event_ids
FROM reruns;
