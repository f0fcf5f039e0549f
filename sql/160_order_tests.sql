-- order_basis: how the order of a campaign can be shown. Grain: campaign.
-- Columns: campaign, declared (an order was declared before the first start), extent, basis ('declared' or
-- 'by observation only'). Serves rule 5.
CREATE OR REPLACE VIEW order_basis AS
SELECT *, CASE WHEN declared THEN 'declared' ELSE 'by observation only' END AS basis
FROM (
    SELECT
        c.campaign, c.order_seed IS NOT NULL AND NOT coalesce(w.late, true) AS declared, c.order_extent AS extent
    FROM campaigns AS c
    LEFT JOIN early_words AS w ON w.event_id = c.declared_event_id
);

-- order_starts: the observed order. Grain: one row per first attempt at a planned slot that has a start time (what stands in
-- for another attempt is run later by its nature). Columns: campaign, slot, block, in_block, position (as planned_slots),
-- subject_n, started_at_ns. Serves rule 5.
CREATE OR REPLACE VIEW order_starts AS
SELECT t.campaign, p.slot, p.block, p.in_block, p.position, u.n AS subject_n, t.started_at_ns
FROM trial_outcomes AS t
JOIN planned_slots AS p ON p.campaign = t.campaign AND p.slot = t.slot
JOIN campaign_subjects AS u ON u.campaign = p.campaign AND u.subject = p.subject
WHERE t.step = 0 AND t.role IN ('final', 'replaced') AND t.started_at_ns IS NOT NULL;

-- order_tests: the exact tests of an order that nobody declared. Grain: campaign x sequence x pair of subjects x test.
-- Columns: campaign, scenario, scenario_version, condition_key (all null for the sequence of the whole campaign), subject_a,
-- subject_b, test ('first': one subject starts first too often; 'lag_1' .. 'lag_8': the order in a block repeats the one so
-- many blocks before too often), n (chances), hits, p (exact), tests (how many the campaign has), p_corrected
-- (Bonferroni), least_p (the smallest p_corrected that this test could have given).
-- Under a random order each block is a fair coin and the coins are independent, so the number of blocks that start with A,
-- and the number that equal the block L before, are binomial with one half: docs/order.md. A fixed order shows in `first`,
-- an alternating or rotating one in a lag.
-- Serves rule 5.
CREATE OR REPLACE VIEW order_tests AS
WITH starts AS (
    SELECT s.*
    FROM order_starts AS s
    JOIN order_basis AS b USING (campaign)
    WHERE NOT b.declared
),
coins AS (
    SELECT
        a.campaign, a.block // p.trials_per_cell AS comparison, a.subject_n AS a_n, b.subject_n AS b_n,
        least(a.started_at_ns, b.started_at_ns) AS at_ns, a.block,
        (a.started_at_ns < b.started_at_ns)::INTEGER AS a_first
    FROM starts AS a
    JOIN starts AS b ON a.campaign = b.campaign AND a.block = b.block AND a.subject_n < b.subject_n
    JOIN plan_shapes AS p ON p.campaign = a.campaign
    WHERE a.started_at_ns <> b.started_at_ns
),
sequences AS (
    SELECT * FROM coins
    UNION ALL
    SELECT * REPLACE (NULL AS comparison) FROM coins
),
lags AS (
    SELECT
        *,
        lag(a_first, 1) OVER w AS l1, lag(a_first, 2) OVER w AS l2, lag(a_first, 3) OVER w AS l3,
        lag(a_first, 4) OVER w AS l4, lag(a_first, 5) OVER w AS l5, lag(a_first, 6) OVER w AS l6,
        lag(a_first, 7) OVER w AS l7, lag(a_first, 8) OVER w AS l8
    FROM sequences
    WINDOW w AS (
        PARTITION BY campaign, comparison, a_n, b_n
        ORDER BY at_ns, block
    )
),
counts AS (
    SELECT
        campaign, comparison, a_n, b_n,
        [
            {'test': 'first', 'n': count(*), 'hits': greatest(sum(a_first), count(*) - sum(a_first))},
            {'test': 'lag_1', 'n': count(l1), 'hits': count(*) FILTER (a_first = l1)},
            {'test': 'lag_2', 'n': count(l2), 'hits': count(*) FILTER (a_first = l2)},
            {'test': 'lag_3', 'n': count(l3), 'hits': count(*) FILTER (a_first = l3)},
            {'test': 'lag_4', 'n': count(l4), 'hits': count(*) FILTER (a_first = l4)},
            {'test': 'lag_5', 'n': count(l5), 'hits': count(*) FILTER (a_first = l5)},
            {'test': 'lag_6', 'n': count(l6), 'hits': count(*) FILTER (a_first = l6)},
            {'test': 'lag_7', 'n': count(l7), 'hits': count(*) FILTER (a_first = l7)},
            {'test': 'lag_8', 'n': count(l8), 'hits': count(*) FILTER (a_first = l8)}
        ] AS cs
    FROM lags
    GROUP BY campaign, comparison, a_n, b_n
),
tests AS (
    SELECT
        * EXCLUDE (c), c.test AS test, c.n::BIGINT AS n, c.hits::BIGINT AS hits,
        CASE WHEN c.test = 'first' THEN 2 ELSE 1 END AS sides
    FROM (SELECT * EXCLUDE (cs), unnest(cs) AS c FROM counts)
    WHERE c.n > 0
),
points AS (
    SELECT n, hits, unnest(range(hits, n + 1)) AS i
    FROM (SELECT DISTINCT n, hits FROM tests)
),
tails AS (
    SELECT n, hits, sum(exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * ln(2.0))) AS tail
    FROM points
    GROUP BY n, hits
),
sized AS (
    SELECT t.*, least(1.0, t.sides * q.tail) AS p, count(*) OVER (PARTITION BY t.campaign) AS tests
    FROM tests AS t
    JOIN tails AS q USING (n, hits)
)
SELECT
    z.campaign, s.scenario, s.scenario_version, k.condition_key, a.subject AS subject_a, b.subject AS subject_b,
    z.test, z.n, z.hits, z.p, z.tests,
    least(1.0, z.p * z.tests) AS p_corrected,
    least(1.0, z.sides * exp(-z.n * ln(2.0)) * z.tests) AS least_p
FROM sized AS z
JOIN plan_shapes AS h ON h.campaign = z.campaign
JOIN campaign_subjects AS a ON a.campaign = z.campaign AND a.n = z.a_n
JOIN campaign_subjects AS b ON b.campaign = z.campaign AND b.n = z.b_n
LEFT JOIN campaign_scenarios AS s ON s.campaign = z.campaign AND s.n = z.comparison // h.conditions
LEFT JOIN campaign_conditions AS k ON k.campaign = z.campaign AND k.n = z.comparison % h.conditions;
