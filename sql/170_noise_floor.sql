-- claim_comparisons: what a claim compares, and the null comparisons that it must exceed. Grain: campaign x claim x
-- scenario@version x condition_key x comparison. Columns: campaign, claim, metric, operation, role ('claim': the subject
-- against the baseline; 'null': a subject of the claim against itself), subject, baseline.
-- Serves rule 11.
CREATE OR REPLACE VIEW claim_comparisons AS
WITH places AS (
    SELECT c.*, s.scenario AS in_scenario, s.scenario_version, k.condition_key
    FROM campaign_claims AS c
    JOIN campaign_scenarios AS s ON s.campaign = c.campaign AND NOT s.diagnostic AND coalesce(c.scenario = s.scenario, true)
    JOIN campaign_conditions AS k ON k.campaign = c.campaign
)
SELECT campaign, claim, metric, operation, in_scenario AS scenario, scenario_version, condition_key,
    'claim' AS role, subject, baseline
FROM places
UNION ALL
SELECT p.campaign, p.claim, p.metric, p.operation, p.in_scenario, p.scenario_version, p.condition_key,
    'null', n.subject, n.null_of
FROM places AS p
JOIN campaign_subjects AS n ON n.campaign = p.campaign AND n.null_of IN (p.subject, p.baseline);

-- metric_values: the claimed metrics of the trials that passed. Grain: planned slot x operation x metric.
-- Columns: the slot, operation, metric, value (null: unmeasured, never zero), event_id.
-- Serves rule 11.
CREATE OR REPLACE VIEW metric_values AS
WITH wanted AS (
    SELECT campaign, operation, metric, subject
    FROM claim_comparisons
    WHERE metric <> 'success_rate_permille'
    UNION
    SELECT campaign, operation, metric, baseline
    FROM claim_comparisons
    WHERE metric <> 'success_rate_permille'
)
SELECT
    s.campaign, s.scenario, s.scenario_version, s.condition_key, s.subject, s.repetition, w.operation, w.metric,
    t.event_id,
    (t.metrics ->> concat('$.', w.metric))::BIGINT AS value
FROM slot_outcomes AS s
JOIN wanted AS w ON w.campaign = s.campaign AND w.subject = s.subject
LEFT JOIN trial_facts AS t
    ON t.campaign = s.campaign AND t.trial = s.trial AND t.operation IS NOT DISTINCT FROM w.operation
WHERE s.outcome = 'passed';

-- metric_effects: how far apart the two sides of a comparison are. Grain: as claim_comparisons.
-- Columns: those of claim_comparisons; pairs (blocks in which both sides passed; for the success rate: in which both were
-- measured), unmeasured (of them, those without a value on a side, or with a baseline of zero), effect_permille (median over
-- the blocks of the relative difference, in thousandths of the baseline; for the success rate the relative difference of
-- the two rates), low_permille and high_permille (exact 95 % interval of that median by the sign test; for the success rate
-- the difference one trial more or less would make).
-- Serves rule 11.
CREATE OR REPLACE VIEW metric_effects AS
WITH pairs AS (
    SELECT
        c.campaign, c.claim, c.metric, c.operation, c.scenario, c.scenario_version, c.condition_key, c.role,
        c.subject, c.baseline,
        CASE WHEN b.value <> 0 THEN 1000.0 * (a.value - b.value) / abs(b.value) END AS d
    FROM claim_comparisons AS c
    JOIN metric_values AS a
        ON a.campaign = c.campaign AND a.scenario = c.scenario AND a.scenario_version = c.scenario_version
        AND a.condition_key = c.condition_key AND a.subject = c.subject AND a.metric = c.metric
        AND a.operation IS NOT DISTINCT FROM c.operation
    JOIN metric_values AS b
        ON b.campaign = c.campaign AND b.scenario = c.scenario AND b.scenario_version = c.scenario_version
        AND b.condition_key = c.condition_key AND b.subject = c.baseline AND b.metric = c.metric
        AND b.operation IS NOT DISTINCT FROM c.operation AND b.repetition = a.repetition
),
gathered AS (
    SELECT
        campaign, claim, metric, operation, scenario, scenario_version, condition_key, role, subject, baseline,
        count(*) AS pairs,
        count(*) - count(d) AS unmeasured,
        median(d) AS effect_permille,
        count(d) AS n,
        list_sort(list(d) FILTER (d IS NOT NULL)) AS sorted
    FROM pairs
    GROUP BY ALL
),
points AS (
    SELECT n, unnest(range(0, n + 1)) AS i
    FROM (SELECT DISTINCT n FROM gathered)
),
cumulated AS (
    SELECT
        n,
        sum(exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) - n * ln(2.0))) OVER (
            PARTITION BY n ORDER BY i
        ) AS below
    FROM points
),
ranks AS (
    SELECT n, count(*) FILTER (below <= 0.025) AS rank
    FROM cumulated
    GROUP BY n
),
rates AS (
    SELECT
        c.campaign, c.claim, c.metric, c.operation, c.scenario, c.scenario_version, c.condition_key, c.role,
        c.subject, c.baseline,
        count(*) FILTER (a.measured AND b.measured) AS pairs,
        count(*) FILTER (NOT (a.measured AND b.measured)) AS unmeasured,
        count(*) FILTER (a.measured AND b.measured AND a.outcome = 'passed') AS a_passed,
        count(*) FILTER (a.measured AND b.measured AND b.outcome = 'passed') AS b_passed
    FROM claim_comparisons AS c
    JOIN slot_outcomes AS a
        ON a.campaign = c.campaign AND a.scenario = c.scenario AND a.scenario_version = c.scenario_version
        AND a.condition_key = c.condition_key AND a.subject = c.subject
    JOIN slot_outcomes AS b
        ON b.campaign = c.campaign AND b.scenario = c.scenario AND b.scenario_version = c.scenario_version
        AND b.condition_key = c.condition_key AND b.subject = c.baseline AND b.repetition = a.repetition
    WHERE c.metric = 'success_rate_permille'
    GROUP BY ALL
)
-- Rank 0 is too few blocks for an interval: a list has neither a place 0 nor one after its last.
SELECT
    g.* EXCLUDE (n, sorted),
    sorted[r.rank] AS low_permille,
    sorted[n - r.rank + 1] AS high_permille
FROM gathered AS g
JOIN ranks AS r USING (n)
UNION ALL
SELECT
    * EXCLUDE (a_passed, b_passed),
    CASE WHEN b_passed > 0 THEN 1000.0 * (a_passed - b_passed) / b_passed END,
    CASE WHEN b_passed > 0 THEN 1000.0 * (a_passed - b_passed - 1) / b_passed END,
    CASE WHEN b_passed > 0 THEN 1000.0 * (a_passed - b_passed + 1) / b_passed END
FROM rates;

-- noise_floor: how far a subject is from itself. Grain: campaign x claim x scenario@version x condition_key.
-- Columns: null_comparisons, floor_permille (the largest distance from zero that the intervals of the null comparisons
-- allow; null when a null comparison has no interval), least_pairs. Serves rule 11.
CREATE OR REPLACE VIEW noise_floor AS
SELECT
    campaign, claim, metric, operation, scenario, scenario_version, condition_key,
    count(*) AS null_comparisons,
    CASE
        WHEN count(*) = count(low_permille) THEN max(greatest(abs(low_permille), abs(high_permille)))
    END AS floor_permille,
    min(pairs - unmeasured) AS least_pairs
FROM metric_effects
WHERE role = 'null'
GROUP BY ALL;

-- claims: each claim where it was measured, beside the noise floor. Grain: campaign x claim x scenario@version x
-- condition_key. Columns: the claim, effect_permille (signed), its interval, pairs, unmeasured, floor_permille,
-- null_comparisons, advantage_permille (the effect in the claimed direction). Serves rule 11.
CREATE OR REPLACE VIEW claims AS
WITH places AS (
    SELECT * FROM claim_comparisons WHERE role = 'claim'
),
effects AS (
    SELECT * FROM metric_effects WHERE role = 'claim'
)
SELECT
    p.campaign, p.claim, p.metric, p.operation, p.scenario, p.scenario_version, p.condition_key, p.subject, p.baseline,
    c.direction, c.size_permille,
    coalesce(e.pairs, 0) AS pairs,
    coalesce(e.unmeasured, 0) AS unmeasured,
    e.effect_permille, e.low_permille, e.high_permille,
    CASE c.direction WHEN 'lower' THEN -e.effect_permille WHEN 'higher' THEN e.effect_permille END AS advantage_permille,
    coalesce(f.null_comparisons, 0) AS null_comparisons,
    f.floor_permille
FROM places AS p
JOIN campaign_claims AS c ON c.campaign = p.campaign AND c.claim = p.claim
LEFT JOIN effects AS e
    ON e.campaign = p.campaign AND e.claim = p.claim AND e.scenario = p.scenario
    AND e.scenario_version = p.scenario_version AND e.condition_key = p.condition_key
LEFT JOIN noise_floor AS f
    ON f.campaign = p.campaign AND f.claim = p.claim AND f.scenario = p.scenario
    AND f.scenario_version = p.scenario_version AND f.condition_key = p.condition_key;
