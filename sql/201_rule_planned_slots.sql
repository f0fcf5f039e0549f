-- rule_01_planned_slots: the campaign is declared, has trials, and every planned slot ends in a measured outcome.
-- Grain: one row per violation, as in every rule view. Columns: campaign; what (code); binding (false: shown only, because
-- the lane or a scenario listed as diagnostic is not bound); scenario, scenario_version, condition_key, subject, trial where
-- it is about one; detail (for people); event_ids (the events behind it).
-- A slot whose attempts contradict each other is rule 10's; a trial under a condition off the plan is rule 3's.
CREATE OR REPLACE VIEW rule_01_planned_slots AS
SELECT campaign, what, true AS binding, detail, event_ids
FROM empty_campaigns
UNION ALL BY NAME
SELECT campaign, 'declared_differently' AS what, true AS binding,
    concat('declared ', different_declarations, ' times with different content') AS detail,
    declared_event_ids AS event_ids
FROM campaigns
WHERE different_declarations > 1
UNION ALL BY NAME
SELECT c.campaign, 'no_comparison' AS what, true AS binding,
    concat('the plan has ', l.real_subjects, ' subject(s) that are not the null of another: two make a comparison')
        AS detail,
    c.declared_event_ids AS event_ids
FROM campaigns AS c
JOIN campaign_lanes AS l USING (campaign)
WHERE c.declarations > 0 AND l.real_subjects < 2
UNION ALL BY NAME
SELECT c.campaign, 'all_diagnostic' AS what, true AS binding,
    'every scenario of the plan is diagnostic: nothing is left to publish' AS detail, c.declared_event_ids AS event_ids
FROM campaigns AS c
JOIN campaign_lanes AS l USING (campaign)
WHERE c.declarations > 0 AND l.compared_scenarios = 0
UNION ALL BY NAME
SELECT campaign, 'plan_too_large' AS what, true AS binding,
    concat('the plan has ', slots, ' slots: at most twenty million are evaluated') AS detail,
    declared_event_ids AS event_ids
FROM campaigns
WHERE slots > 20000000
UNION ALL BY NAME
SELECT p.campaign, 'plan_ambiguous' AS what, true AS binding,
    concat('the plan lists ', p.named, ' ', p.entries, ' times') AS detail, c.declared_event_ids AS event_ids
FROM (
    SELECT campaign, concat('subject ', subject) AS named, entries FROM campaign_subjects
    UNION ALL
    SELECT campaign, concat('scenario ', scenario, '@', scenario_version), entries FROM campaign_scenarios
    UNION ALL
    SELECT campaign, concat('condition ', condition_key), entries FROM campaign_conditions
) AS p
JOIN campaigns AS c USING (campaign)
WHERE p.entries > 1
UNION ALL BY NAME
SELECT f.campaign, 'other_lane' AS what, true AS binding,
    concat(count(*), ' trial(s) ran on lane ', f.lane, ', the plan says ', c.lane) AS detail,
    list(f.event_id ORDER BY f.event_id) AS event_ids
FROM trial_outcomes AS f
JOIN campaigns AS c USING (campaign)
WHERE f.lane <> c.lane
GROUP BY f.campaign, f.lane, c.lane
UNION ALL BY NAME
SELECT s.campaign, 'slots_missing' AS what, NOT s.diagnostic AS binding, s.scenario, s.scenario_version, s.condition_key,
    s.subject,
    concat(
        count(*), ' of ', c.trials_per_cell, ' planned trials have no event: repetition ',
        array_to_string((list(s.repetition ORDER BY s.repetition))[:20], ', '), CASE WHEN count(*) > 20 THEN ', ...' ELSE '' END
    ) AS detail,
    c.declared_event_ids AS event_ids
FROM slot_outcomes AS s
JOIN campaigns AS c USING (campaign)
WHERE s.outcome = 'missing'
GROUP BY s.campaign, s.diagnostic, s.scenario, s.scenario_version, s.condition_key, s.subject, c.trials_per_cell,
    c.declared_event_ids
UNION ALL BY NAME
SELECT campaign, concat('slot_', outcome) AS what, NOT diagnostic AS binding, scenario, scenario_version, condition_key,
    subject,
    array_to_string((list(trial ORDER BY trial))[:10], ', ') AS trial,
    concat(
        count(*), ' planned trial(s) whose attempt is ', replace(outcome, '_', ' '),
        CASE WHEN unmeasured_reason IS NULL THEN '' ELSE concat(' (', unmeasured_reason, ', ', unmeasured_owner, ')') END,
        ' and which no other stands in for: repetition ',
        array_to_string((list(repetition ORDER BY repetition))[:20], ', '), CASE WHEN count(*) > 20 THEN ', ...' ELSE '' END
    ) AS detail,
    list(event_id ORDER BY event_id) AS event_ids
FROM slot_outcomes
WHERE NOT measured AND outcome NOT IN ('missing', 'conflict')
GROUP BY campaign, outcome, diagnostic, scenario, scenario_version, condition_key, subject, unmeasured_reason,
    unmeasured_owner
UNION ALL BY NAME
SELECT campaign, concat('off_plan_', unplanned_because) AS what, true AS binding, scenario, scenario_version,
    condition_key, subject,
    concat(count(*), ' trial(s) whose ', replace(unplanned_because, '_', ' '), ' the plan does not have') AS detail,
    list(event_id ORDER BY event_id) AS event_ids
FROM trial_outcomes
WHERE unplanned_because NOT IN ('campaign', 'condition')
GROUP BY campaign, unplanned_because, scenario, scenario_version, condition_key, subject
UNION ALL BY NAME
SELECT t.campaign, 'slot_twice' AS what, NOT t.diagnostic AS binding, t.scenario, t.scenario_version, t.condition_key,
    t.subject, t.trial,
    concat('repetition ', t.slot_repetition, ' has its answer from trial ', s.trial, ' and this is another attempt at it')
        AS detail,
    [s.event_id, t.event_id] AS event_ids
FROM trial_outcomes AS t
JOIN slot_outcomes AS s ON s.campaign = t.campaign AND s.slot = t.slot
WHERE t.role = 'surplus' AND t.chain_role = 'final'
UNION ALL BY NAME
SELECT r.campaign, 'measured_attempt_replaced' AS what, NOT f.diagnostic AS binding, f.scenario,
    f.scenario_version, f.condition_key, f.subject, r.trial,
    concat('it is ', replace(f.fact_outcome, '_', ' '), ' and ', r.who, ' replaced it by ', r.replacement,
        ': only an unmeasured attempt can be replaced') AS detail,
    [f.event_id, r.event_id] AS event_ids
FROM replacements AS r
JOIN trial_outcomes AS f ON f.campaign = r.campaign AND f.trial = r.trial
WHERE f.fact_outcome IN ('passed', 'failed_committed', 'failed_before_head', 'conflict')
UNION ALL BY NAME
SELECT r.campaign, 'replaced_trial_unknown' AS what, true AS binding, r.trial,
    'it was replaced and never recorded: every attempt must be shown' AS detail, [r.event_id] AS event_ids
FROM replacements AS r
ANTI JOIN trial_facts AS a ON a.campaign = r.campaign AND a.trial = r.trial
UNION ALL BY NAME
SELECT r.campaign, 'replacement_unknown' AS what, true AS binding, r.replacement AS trial,
    concat('it is to stand in for ', r.trial, ' and was never recorded') AS detail, [r.event_id] AS event_ids
FROM replacements AS r
ANTI JOIN trial_facts AS a ON a.campaign = r.campaign AND a.trial = r.replacement
UNION ALL BY NAME
SELECT r.campaign, 'replacement_elsewhere' AS what, true AS binding, b.scenario, b.scenario_version, b.condition_key,
    b.subject, b.trial,
    concat('it stands in for ', a.trial, ' of another cell or repetition') AS detail,
    [a.event_id, b.event_id, r.event_id] AS event_ids
FROM replacements AS r
JOIN trial_outcomes AS a ON a.campaign = r.campaign AND a.trial = r.trial
JOIN trial_outcomes AS b ON b.campaign = r.campaign AND b.trial = r.replacement
WHERE a.scenario <> b.scenario OR a.scenario_version <> b.scenario_version OR a.condition_key <> b.condition_key
    OR a.subject <> b.subject OR a.repetition <> b.repetition
UNION ALL BY NAME
SELECT r.campaign, 'replacement_earlier' AS what, true AS binding, b.scenario, b.scenario_version, b.condition_key,
    b.subject, b.trial,
    concat('it started before ', a.trial, ', which it stands in for, had started') AS detail,
    [a.event_id, b.event_id, r.event_id] AS event_ids
FROM replacements AS r
JOIN trial_outcomes AS a ON a.campaign = r.campaign AND a.trial = r.trial
JOIN trial_outcomes AS b ON b.campaign = r.campaign AND b.trial = r.replacement
WHERE b.started_at_ns <= a.started_at_ns
UNION ALL BY NAME
SELECT campaign, 'replaced_twice' AS what, true AS binding, trial,
    concat('it has ', count(DISTINCT replacement), ' replacements: a slot has one answer') AS detail,
    list(event_id ORDER BY event_id) AS event_ids
FROM replacements
GROUP BY campaign, trial
HAVING count(DISTINCT replacement) > 1
UNION ALL BY NAME
SELECT campaign, 'replaces_two' AS what, true AS binding, replacement AS trial,
    concat('it is to stand in for ', count(DISTINCT trial), ' attempts: one trial fills one slot') AS detail,
    list(event_id ORDER BY event_id) AS event_ids
FROM replacements
GROUP BY campaign, replacement
HAVING count(DISTINCT trial) > 1
UNION ALL BY NAME
SELECT r.campaign, 'replacement_circle' AS what, true AS binding, r.trial,
    'its replacements lead in a circle, or in a chain of more than a thousand' AS detail, [r.event_id] AS event_ids
FROM replacements AS r
ANTI JOIN replacement_chains AS c ON c.campaign = r.campaign AND c.trial = r.replacement
UNION ALL BY NAME
SELECT i.campaign, 'invalidated_trial_unknown' AS what, true AS binding, i.trial,
    'it was invalidated and never recorded: every attempt must be shown' AS detail, [i.event_id] AS event_ids
FROM invalidations AS i
ANTI JOIN trial_facts AS a ON a.campaign = i.campaign AND a.trial = i.trial
UNION ALL BY NAME
SELECT e.campaign, 'evidence_without_trial' AS what, true AS binding, e.trial,
    'it was read or judged and never recorded as a trial: every attempt must be shown' AS detail,
    list(e.event_id ORDER BY e.event_id) AS event_ids
FROM (
    SELECT r.campaign, r.trial, r.event_id
    FROM ledger_events AS r
    ANTI JOIN trial_facts AS t ON t.campaign = r.campaign AND t.trial = r.trial
    WHERE r.kind = 'reader_invoked' AND r.trial IS NOT NULL
    UNION ALL
    SELECT campaign, trial, event_id
    FROM correctness_classes
    WHERE refused = 'no_trial'
) AS e
WHERE e.campaign IS NOT NULL
GROUP BY e.campaign, e.trial;
