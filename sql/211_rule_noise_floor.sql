-- rule_11_noise_floor: a claimed effect is as large as claimed, and larger than a subject's distance from itself.
-- Grain and columns as rule_01_planned_slots. A plan without claims has nothing to hold against the rule: it then does not
-- apply, and no effect may be published. A null metric is unmeasured, and a claim on it is not shown.
CREATE OR REPLACE VIEW rule_11_noise_floor AS
WITH shown AS (
    SELECT c.*, p.declared_event_ids, concat_ws(' ', 'claim', claim, 'on', metric, operation) AS named
    FROM claims AS c
    JOIN campaigns AS p USING (campaign)
),
found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT c.campaign, 'claim_without_subjects' AS what,
        concat('claim ', c.claim, ' compares ', c.subject, ' with ', c.baseline, ': both must be subjects of the plan, and two')
            AS detail,
        p.declared_event_ids AS event_ids
    FROM campaign_claims AS c
    JOIN campaigns AS p USING (campaign)
    LEFT JOIN campaign_subjects AS a ON a.campaign = c.campaign AND a.subject = c.subject AND a.null_of IS NULL
    LEFT JOIN campaign_subjects AS b ON b.campaign = c.campaign AND b.subject = c.baseline AND b.null_of IS NULL
    WHERE a.subject IS NULL OR b.subject IS NULL OR c.subject = c.baseline
    UNION ALL BY NAME
    SELECT c.campaign, 'claim_without_scenario' AS what,
        concat('claim ', c.claim, ' is on no scenario that the plan compares') AS detail,
        p.declared_event_ids AS event_ids
    FROM campaign_claims AS c
    JOIN campaigns AS p USING (campaign)
    ANTI JOIN claims AS m ON m.campaign = c.campaign AND m.claim = c.claim
    UNION ALL BY NAME
    SELECT campaign, 'claim_without_null' AS what, scenario, scenario_version, condition_key, subject,
        concat(named, ': no subject of it is measured against itself (null_of)') AS detail,
        declared_event_ids AS event_ids
    FROM shown
    WHERE null_comparisons = 0
    UNION ALL BY NAME
    SELECT campaign, 'metric_unmeasured' AS what, scenario, scenario_version, condition_key, subject,
        concat(named, ': ',
            CASE
                WHEN effect_permille IS NULL THEN 'no block has the metric on both sides'
                ELSE concat(unmeasured, ' of ', pairs, ' blocks lack the metric on a side')
            END) AS detail,
        declared_event_ids AS event_ids
    FROM shown
    WHERE effect_permille IS NULL OR (unmeasured > 0 AND metric <> 'success_rate_permille')
    UNION ALL BY NAME
    SELECT campaign, 'noise_unmeasured' AS what, scenario, scenario_version, condition_key, subject,
        concat(named, ': the null comparison has too few blocks for an interval') AS detail,
        declared_event_ids AS event_ids
    FROM shown
    WHERE null_comparisons > 0 AND floor_permille IS NULL
    UNION ALL BY NAME
    SELECT campaign, 'effect_smaller_than_claimed' AS what, scenario, scenario_version, condition_key, subject,
        concat(named, ': ', size_permille, ' permille ', direction, ' claimed, ', round(advantage_permille, 1), ' measured')
            AS detail,
        declared_event_ids AS event_ids
    FROM shown
    WHERE advantage_permille < size_permille
    UNION ALL BY NAME
    SELECT campaign, 'effect_within_noise' AS what, scenario, scenario_version, condition_key, subject,
        concat(named, ': ', round(least(advantage_permille, size_permille), 1), ' permille does not exceed the noise floor of ',
            round(floor_permille, 1)) AS detail,
        declared_event_ids AS event_ids
    FROM shown
    WHERE effect_permille IS NOT NULL AND least(advantage_permille, size_permille) <= floor_permille
    UNION ALL BY NAME
    SELECT n.campaign, 'null_is_not_itself' AS what, n.subject,
        concat(n.subject, ' is to be ', n.null_of, ' again, and ',
            CASE
                WHEN o.subject IS NULL THEN 'that is no subject of the plan'
                WHEN o.null_of IS NOT NULL THEN 'that is itself a null'
                ELSE 'their binaries differ'
            END) AS detail,
        p.declared_event_ids AS event_ids
    FROM campaign_subjects AS n
    JOIN campaigns AS p USING (campaign)
    LEFT JOIN campaign_subjects AS o ON o.campaign = n.campaign AND o.subject = n.null_of
    LEFT JOIN (
        SELECT campaign, subject, condition_key, min(binary_key) AS first_binary,
            max(binary_key) AS last_binary
        FROM trial_outcomes
        GROUP BY ALL
    ) AS x ON x.campaign = n.campaign AND x.subject = n.subject
    LEFT JOIN (
        SELECT campaign, subject, condition_key, min(binary_key) AS first_binary,
            max(binary_key) AS last_binary
        FROM trial_outcomes
        GROUP BY ALL
    ) AS y ON y.campaign = n.campaign AND y.subject = n.null_of AND y.condition_key = x.condition_key
    WHERE n.null_of IS NOT NULL
    GROUP BY n.campaign, n.subject, n.null_of, o.subject, o.null_of, p.declared_event_ids
    HAVING o.subject IS NULL OR o.null_of IS NOT NULL
        OR bool_or(x.first_binary <> y.first_binary OR x.last_binary <> y.last_binary)
)
SELECT *, true AS binding
FROM found;
