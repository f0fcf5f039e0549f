-- cells: the figures of each cell. Grain: campaign x scenario@version x condition_key x subject, planned or met.
-- Columns: planned (slots), recorded (attempts), the slots by
-- outcome (passed, failed_committed, failed_before_head, unmeasured, harness_failure, unlaunched, missing, conflict,
-- slots_invalidated), measured (the first three: the denominator), the attempts that were replaced, invalidated, surplus or
-- unplanned, unmeasured_by_subject (attempts, replaced ones too), success_permille = passed / measured, its 95 % Wilson
-- interval, and strict_success_permille = passed / (measured + unmeasured_by_subject): the rate with every unmeasured
-- attempt of the subject's making counted as its failure. Rates are null where nothing was measured. The interval describes;
-- it permits nothing.
-- Serves rules 2, 3 and 8.
CREATE OR REPLACE VIEW cells AS
WITH slots AS (
    SELECT
        campaign, scenario, scenario_version, condition_key, subject,
        count(*) AS planned,
        count(*) FILTER (outcome = 'passed') AS passed,
        count(*) FILTER (outcome = 'failed_committed') AS failed_committed,
        count(*) FILTER (outcome = 'failed_before_head') AS failed_before_head,
        count(*) FILTER (outcome = 'unmeasured') AS unmeasured,
        count(*) FILTER (outcome = 'harness_failure') AS harness_failure,
        count(*) FILTER (outcome = 'unlaunched') AS unlaunched,
        count(*) FILTER (outcome = 'missing') AS missing,
        count(*) FILTER (outcome = 'conflict') AS conflict,
        count(*) FILTER (outcome = 'invalidated') AS slots_invalidated,
        count(*) FILTER (measured) AS measured
    FROM slot_outcomes
    GROUP BY ALL
),
tries AS (
    SELECT
        campaign, scenario, scenario_version, condition_key, subject,
        count(*) AS recorded,
        count(*) FILTER (role = 'replaced') AS replaced,
        count(*) FILTER (invalidated) AS invalidated,
        count(*) FILTER (role = 'surplus') AS surplus,
        count(*) FILTER (role = 'unplanned') AS unplanned,
        count(*) FILTER (fact_outcome = 'unmeasured' AND unmeasured_owner = 'subject') AS unmeasured_by_subject
    FROM trial_outcomes
    GROUP BY ALL
),
sums AS (
    SELECT
        campaign, scenario, scenario_version, condition_key, subject,
        coalesce(planned, 0) AS planned,
        coalesce(recorded, 0) AS recorded,
        coalesce(measured, 0) AS measured,
        coalesce(passed, 0) AS passed,
        coalesce(failed_committed, 0) AS failed_committed,
        coalesce(failed_before_head, 0) AS failed_before_head,
        coalesce(unmeasured, 0) AS unmeasured,
        coalesce(harness_failure, 0) AS harness_failure,
        coalesce(unlaunched, 0) AS unlaunched,
        coalesce(missing, 0) AS missing,
        coalesce(conflict, 0) AS conflict,
        coalesce(slots_invalidated, 0) AS slots_invalidated,
        coalesce(replaced, 0) AS replaced,
        coalesce(invalidated, 0) AS invalidated,
        coalesce(surplus, 0) AS surplus,
        coalesce(unplanned, 0) AS unplanned,
        coalesce(unmeasured_by_subject, 0) AS unmeasured_by_subject
    FROM slots
    FULL JOIN tries USING (campaign, scenario, scenario_version, condition_key, subject)
),
rates AS (
    SELECT
        *,
        CASE WHEN measured > 0 THEN passed / measured END AS p,
        1.959963984540054 AS z
    FROM sums
)
SELECT
    * EXCLUDE (p, z),
    round(1000 * p, 1) AS success_permille,
    CASE WHEN p IS NOT NULL THEN round(1000 * greatest(0, (p + z * z / (2 * measured)
        - z * sqrt(p * (1 - p) / measured + z * z / (4 * measured * measured))) / (1 + z * z / measured)), 1) END
        AS wilson_low_permille,
    CASE WHEN p IS NOT NULL THEN round(1000 * (p + z * z / (2 * measured)
        + z * sqrt(p * (1 - p) / measured + z * z / (4 * measured * measured))) / (1 + z * z / measured), 1) END
        AS wilson_high_permille,
    CASE
        WHEN measured + unmeasured_by_subject > 0
            THEN round(1000 * passed / (measured + unmeasured_by_subject), 1)
    END AS strict_success_permille
FROM rates;

-- condition_coverage: who was measured under which condition. Grain: campaign x scenario@version x condition_key x subject,
-- over every scenario and condition that is planned or was met, and every subject that is planned or was met in the campaign.
-- Columns: planned, recorded, measured, covered (something was measured), diagnostic (scenario), and the condition's facts.
-- Serves rule 3: a condition that one subject has and another has not is a hole, never a group of its own.
CREATE OR REPLACE VIEW condition_coverage AS
WITH seen AS (
    SELECT DISTINCT campaign, scenario, scenario_version, condition_key FROM cells
),
subjects AS (
    SELECT campaign, subject FROM campaign_subjects
    UNION
    SELECT campaign, subject FROM cells
)
SELECT
    g.campaign,
    g.scenario,
    g.scenario_version,
    g.condition_key,
    u.subject,
    coalesce(s.diagnostic, false) AS diagnostic,
    k.planned AS condition_planned,
    coalesce(c.planned, 0) AS planned,
    coalesce(c.recorded, 0) AS recorded,
    coalesce(c.measured, 0) AS measured,
    coalesce(c.measured, 0) > 0 AS covered,
    k.agent, k.agent_version, k.model, k.instruction_level, k.instruction_sha256, k.track, k.environment_id,
    k.transport, k.profile, k.limits
FROM seen AS g
JOIN subjects AS u USING (campaign)
LEFT JOIN cells AS c USING (campaign, scenario, scenario_version, condition_key, subject)
JOIN conditions AS k USING (campaign, condition_key)
LEFT JOIN campaign_scenarios AS s USING (campaign, scenario, scenario_version);

-- class_pairs: the correctness classes that met in a comparison. Grain: campaign x scenario@version x condition_key x
-- subject x class of a success. Columns: successes. Serves rule 7.
CREATE OR REPLACE VIEW class_pairs AS
SELECT campaign, scenario, scenario_version, diagnostic, condition_key, subject, correctness_class,
    count(*) AS successes
FROM slot_outcomes
WHERE outcome = 'passed'
GROUP BY ALL;

-- paired_outcomes: the two sides of each comparison, slot by slot. Grain: campaign x scenario@version x condition_key x
-- pair of subjects. Columns: subject_a, subject_b, null_pair (one is the other measured again), pairs (planned), both,
-- only_a, only_b, neither, not_comparable (a side without a measured outcome), before_head_a, before_head_b (failures before
-- HEAD among the comparable pairs: they are failures there, not absences), classes_a, classes_b (of the successes).
-- The two sides of a pair share the block (scenario, condition, repetition).
-- The figures describe; they permit nothing.
CREATE OR REPLACE VIEW paired_outcomes AS
WITH sides AS (
    SELECT
        campaign, block, scenario, scenario_version, diagnostic, condition_key, subject, measured, outcome,
        correctness_class
    FROM slot_outcomes
)
SELECT
    a.campaign,
    a.scenario,
    a.scenario_version,
    a.diagnostic,
    a.condition_key,
    a.subject AS subject_a,
    b.subject AS subject_b,
    coalesce(any_value(ua.null_of = b.subject OR ub.null_of = a.subject), false) AS null_pair,
    count(*) AS pairs,
    count(*) FILTER (a.outcome = 'passed' AND b.outcome = 'passed') AS both,
    count(*) FILTER (a.outcome = 'passed' AND b.measured AND b.outcome <> 'passed') AS only_a,
    count(*) FILTER (b.outcome = 'passed' AND a.measured AND a.outcome <> 'passed') AS only_b,
    count(*) FILTER (a.measured AND b.measured AND a.outcome <> 'passed' AND b.outcome <> 'passed') AS neither,
    count(*) FILTER (NOT (a.measured AND b.measured)) AS not_comparable,
    count(*) FILTER (a.outcome = 'failed_before_head' AND b.measured) AS before_head_a,
    count(*) FILTER (b.outcome = 'failed_before_head' AND a.measured) AS before_head_b,
    list_sort(list(DISTINCT a.correctness_class) FILTER (a.outcome = 'passed')) AS classes_a,
    list_sort(list(DISTINCT b.correctness_class) FILTER (b.outcome = 'passed')) AS classes_b
FROM sides AS a
JOIN sides AS b
    ON a.campaign = b.campaign AND a.block = b.block AND a.subject < b.subject
LEFT JOIN campaign_subjects AS ua ON ua.campaign = a.campaign AND ua.subject = a.subject
LEFT JOIN campaign_subjects AS ub ON ub.campaign = b.campaign AND ub.subject = b.subject
GROUP BY ALL;
