-- rule_05_order: the subjects ran in a random order, and start times show it.
-- Grain and columns as rule_01_planned_slots. Binds the workflow and agent lanes.
-- With an order declared before the first start, the observed one must be that one. Without, or with one declared late, the
-- observed order must not be one that chance hardly ever makes (order_tests, level 1 in 1000 for the campaign); that is
-- "by observation only". Attempts that stand in for others are run later by their nature and take no part.
CREATE OR REPLACE VIEW rule_05_order AS
WITH in_sequence AS (
    -- With extent campaign every start is compared with the one before it, else only with one of its own block.
    SELECT
        s.campaign, s.slot, s.block, s.position, s.started_at_ns, b.extent,
        lag(s.position) OVER (PARTITION BY s.campaign ORDER BY s.started_at_ns, s.position) AS position_before
    FROM order_starts AS s
    JOIN order_basis AS b USING (campaign)
    WHERE b.extent = 'campaign'
    UNION ALL
    SELECT
        s.campaign, s.slot, s.block, s.position, s.started_at_ns, b.extent,
        lag(s.position) OVER (PARTITION BY s.campaign, s.block ORDER BY s.started_at_ns, s.position)
    FROM order_starts AS s
    JOIN order_basis AS b USING (campaign)
    WHERE b.extent = 'block'
),
out_of_order AS (
    SELECT q.campaign, q.started_at_ns, p.scenario, p.scenario_version, p.condition_key, p.repetition, p.trial, p.event_id
    FROM in_sequence AS q
    JOIN slot_outcomes AS p ON p.campaign = q.campaign AND p.slot = q.slot
    WHERE q.position_before > q.position
),
same_start AS (
    SELECT campaign, started_at_ns
    FROM trial_outcomes
    GROUP BY campaign, started_at_ns
    HAVING count(*) > 1
),
found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT campaign, 'start_missing' AS what, scenario, scenario_version, condition_key, subject,
        concat(count(*), ' trial(s) without a start time') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_outcomes
    WHERE started_at_ns IS NULL AND status NOT IN ('unlaunched', 'harness_failure')
    GROUP BY campaign, scenario, scenario_version, condition_key, subject
    UNION ALL BY NAME
    SELECT campaign, 'ended_before_start' AS what, scenario, scenario_version, condition_key, subject, trial,
        'its end lies before its start' AS detail, [event_id] AS event_ids
    FROM trial_outcomes
    WHERE ended_at_ns < started_at_ns
    UNION ALL BY NAME
    SELECT a.campaign, 'start_equal' AS what, a.scenario, a.scenario_version, a.condition_key,
        array_to_string((list(a.trial ORDER BY a.trial))[:10], ', ') AS trial,
        concat(count(*), ' trials of one comparison started at the same nanosecond: ',
            string_agg(DISTINCT a.subject, ', ' ORDER BY a.subject)) AS detail,
        list(a.event_id ORDER BY a.event_id) AS event_ids
    FROM trial_outcomes AS a
    JOIN same_start AS s USING (campaign, started_at_ns)
    GROUP BY a.campaign, a.started_at_ns, a.scenario, a.scenario_version, a.condition_key
    HAVING count(*) > 1
    UNION ALL BY NAME
    SELECT campaign, 'order_differs' AS what, scenario, scenario_version, condition_key,
        concat(count(*), ' trial(s) started before one that the declared order puts ahead of them; the first is trial ',
            arg_min(trial, started_at_ns), ' at repetition ', arg_min(repetition, started_at_ns)) AS detail,
        list(event_id ORDER BY started_at_ns) AS event_ids
    FROM out_of_order
    GROUP BY campaign, scenario, scenario_version, condition_key
    UNION ALL BY NAME
    SELECT t.campaign, 'order_not_random' AS what, t.scenario, t.scenario_version, t.condition_key,
        concat_ws(' ', t.subject_a, 'and', t.subject_b, 'over', t.n, 'blocks:',
            CASE
                WHEN t.test = 'first' THEN concat('one of them starts first in ', t.hits)
                ELSE concat('the order is that of the block ', replace(t.test, 'lag_', ''), ' before in ', t.hits)
            END,
            concat('(exact p ', format('{:.2e}', t.p_corrected), ' over ', t.tests, ' tests)')
        ) AS detail,
        c.declared_event_ids AS event_ids
    FROM (
        SELECT * FROM order_tests
        WHERE p_corrected < 0.001
        QUALIFY row_number() OVER (
            PARTITION BY campaign, scenario, scenario_version, condition_key, subject_a, subject_b ORDER BY p, test
        ) = 1
    ) AS t
    JOIN campaigns AS c USING (campaign)
    UNION ALL BY NAME
    SELECT t.campaign, 'order_untestable' AS what, t.scenario, t.scenario_version, t.condition_key,
        concat(t.subject_a, ' and ', t.subject_b, ' met in ', t.n, ' blocks: too few to tell a fixed order from a random one')
            AS detail,
        c.declared_event_ids AS event_ids
    FROM order_tests AS t
    JOIN campaigns AS c USING (campaign)
    WHERE t.test = 'first' AND t.least_p >= 0.001
    UNION ALL BY NAME
    SELECT c.campaign, 'order_not_shown' AS what,
        'no order was declared and no two subjects have start times in one block: there is no order to observe' AS detail,
        c.declared_event_ids AS event_ids
    FROM campaigns AS c
    JOIN order_basis AS b USING (campaign)
    ANTI JOIN order_tests AS t ON t.campaign = c.campaign
    WHERE NOT b.declared AND c.declarations > 0
    UNION ALL BY NAME
    SELECT c.campaign, 'order_not_followed' AS what,
        'an order was declared and no trial with a start time fills a slot of it' AS detail,
        c.declared_event_ids AS event_ids
    FROM campaigns AS c
    JOIN order_basis AS b USING (campaign)
    ANTI JOIN order_starts AS s ON s.campaign = c.campaign
    WHERE b.declared
),
bound AS (
    SELECT f.*, l.bound AND NOT coalesce(s.diagnostic, false) AS binding
    FROM found AS f
    JOIN campaign_lanes AS l USING (campaign)
    LEFT JOIN campaign_scenarios AS s
        ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version
)
SELECT * FROM bound
UNION ALL BY NAME
SELECT w.campaign, 'order_declared_late' AS what, false AS binding,
    concat('the order shows by observation only: ', w.because) AS detail, [w.event_id] AS event_ids
FROM early_words AS w
JOIN campaigns AS c ON c.declared_event_id = w.event_id
WHERE w.late AND c.order_seed IS NOT NULL;
