-- trial_outcomes: what each attempt counts as. Grain: campaign x trial.
-- Columns: those of attempt_facts; slot (number of the planned slot), slot_repetition (the planned trial that the attempt fills: its own repetition, that of
-- the attempt it stands in for, or, in a cell where nobody numbered anything, the next one by start time), unplanned_because
-- (which part of the cell the plan does not have; null: the slot is planned), role (final: speaks for its slot; replaced:
-- rightly set aside for a later attempt; surplus: a later attempt at a slot that has its answer; unplanned), chain_role (the
-- same within its chain of replacements, whatever else was run for the slot), invalidated,
-- outcome (fact_outcome, or replaced, or invalidated) and measured (the outcome is in the denominator).
-- An attempt is rightly replaced when it is a harness failure, unlaunched or unmeasured; a chain ends at its first attempt
-- that is not, whatever was recorded after it.
-- Serves rules 1, 2, 3, 8 and 12.
CREATE OR REPLACE VIEW trial_outcomes AS
WITH chains AS (
    SELECT campaign, trial, arg_min(root, (step, root)) AS root, min(step) AS step
    FROM replacement_chains
    GROUP BY campaign, trial
),
chain_facts AS (
    SELECT c.campaign, c.root, c.trial, c.step, f.repetition, f.fact_outcome
    FROM chains AS c
    LEFT JOIN attempt_facts AS f ON f.campaign = c.campaign AND f.trial = c.trial
),
chain_ends AS (
    SELECT
        campaign,
        root,
        coalesce(
            min(step) FILTER (fact_outcome IN ('passed', 'failed_committed', 'failed_before_head', 'conflict')),
            max(step)
        ) AS final_step,
        arg_min(repetition, step) FILTER (repetition IS NOT NULL) AS repetition
    FROM chain_facts
    GROUP BY campaign, root
),
invalid AS (
    SELECT DISTINCT campaign, trial FROM invalidations
),
-- Cells in which nobody numbered anything, and the slots that their attempts get by start time.
unnumbered_cells AS (
    SELECT campaign, scenario, scenario_version, condition_key, subject
    FROM trial_facts
    GROUP BY ALL
    HAVING count(repetition) = 0
),
unnumbered_roots AS (
    SELECT
        f.campaign, coalesce(c.root, f.trial) AS root, f.scenario, f.scenario_version, f.condition_key, f.subject,
        min(f.started_at_ns) AS started_at_ns
    FROM attempt_facts AS f
    SEMI JOIN unnumbered_cells USING (campaign, scenario, scenario_version, condition_key, subject)
    LEFT JOIN chains AS c ON c.campaign = f.campaign AND c.trial = f.trial
    GROUP BY ALL
),
unnumbered AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY campaign, scenario, scenario_version, condition_key, subject
            ORDER BY started_at_ns NULLS LAST, root
        ) AS n
    FROM unnumbered_roots
),
free_slots AS (
    SELECT
        s.campaign, s.scenario, s.scenario_version, s.condition_key, s.subject, s.repetition,
        row_number() OVER (
            PARTITION BY s.campaign, s.scenario, s.scenario_version, s.condition_key, s.subject
            ORDER BY s.position, s.repetition
        ) AS n
    FROM planned_slots AS s
    SEMI JOIN unnumbered_cells USING (campaign, scenario, scenario_version, condition_key, subject)
),
numbered AS (
    SELECT u.campaign, u.root, s.repetition
    FROM unnumbered AS u
    JOIN free_slots AS s USING (campaign, scenario, scenario_version, condition_key, subject, n)
),
scenario_names AS (
    SELECT DISTINCT campaign, scenario FROM campaign_scenarios
),
placed AS NOT MATERIALIZED (
    SELECT
        f.*,
        coalesce(c.step, 0) AS step,
        coalesce(e.repetition, n.repetition, f.repetition) AS slot_repetition,
        CASE
            WHEN c.step IS NULL OR c.step = e.final_step THEN 'final'
            WHEN c.step < e.final_step THEN 'replaced'
            ELSE 'surplus'
        END AS chain_role,
        i.trial IS NOT NULL AS invalidated,
        s.n AS scenario_n,
        k.n AS condition_n,
        u.n AS subject_n,
        p.subjects,
        p.conditions,
        p.trials_per_cell,
        coalesce(s.diagnostic, false) AS diagnostic,
        CASE
            WHEN p.trials_per_cell IS NULL THEN 'campaign'
            WHEN sn.scenario IS NULL THEN 'scenario'
            WHEN s.scenario IS NULL THEN 'scenario_version'
            WHEN u.subject IS NULL THEN 'subject'
            WHEN k.condition_key IS NULL THEN 'condition'
        END AS cell_off_plan
    FROM attempt_facts AS f
    LEFT JOIN chains AS c ON c.campaign = f.campaign AND c.trial = f.trial
    LEFT JOIN chain_ends AS e ON e.campaign = c.campaign AND e.root = c.root
    LEFT JOIN numbered AS n ON n.campaign = f.campaign AND n.root = coalesce(c.root, f.trial)
    LEFT JOIN invalid AS i ON i.campaign = f.campaign AND i.trial = f.trial
    LEFT JOIN plan_shapes AS p ON p.campaign = f.campaign
    LEFT JOIN scenario_names AS sn ON sn.campaign = f.campaign AND sn.scenario = f.scenario
    LEFT JOIN campaign_scenarios AS s
        ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version
    LEFT JOIN campaign_subjects AS u ON u.campaign = f.campaign AND u.subject = f.subject
    LEFT JOIN campaign_conditions AS k ON k.campaign = f.campaign AND k.condition_key = f.condition_key
),
located AS NOT MATERIALIZED (
    SELECT
        * EXCLUDE (scenario_n, condition_n, subject_n, subjects, conditions, trials_per_cell, cell_off_plan),
        CASE
            WHEN cell_off_plan IS NOT NULL THEN cell_off_plan
            WHEN NOT coalesce(slot_repetition < trials_per_cell, false) THEN 'repetition'
        END AS unplanned_because,
        -- Null where the plan does not have the cell: one of the numbers is.
        CASE
            WHEN slot_repetition < trials_per_cell
                THEN ((scenario_n * conditions + condition_n) * trials_per_cell + slot_repetition) * subjects + subject_n
        END AS slot
    FROM placed
),
contested AS (
    -- Numbers that occur twice come first: they are few, and campaigns share them.
    SELECT campaign, slot, arg_min(trial, (coalesce(started_at_ns, 0), trial)) AS first_trial
    FROM located
    WHERE chain_role = 'final' AND slot IN (
        SELECT slot FROM located WHERE chain_role = 'final' GROUP BY slot HAVING count(*) > 1
    )
    GROUP BY campaign, slot
)
SELECT
    l.*,
    CASE
        WHEN l.unplanned_because IS NOT NULL THEN 'unplanned'
        WHEN l.chain_role = 'final' AND x.first_trial <> l.trial THEN 'surplus'
        ELSE l.chain_role
    END AS role,
    CASE
        WHEN l.invalidated THEN 'invalidated'
        WHEN l.chain_role = 'replaced' THEN 'replaced'
        ELSE l.fact_outcome
    END AS outcome,
    -- What was rightly replaced is never one of these.
    NOT l.invalidated AND l.fact_outcome IN ('passed', 'failed_committed', 'failed_before_head') AS measured
FROM located AS l
LEFT JOIN contested AS x ON x.campaign = l.campaign AND x.slot = l.slot;

-- slot_outcomes: what each planned trial came to. Grain: one row per planned slot.
-- Columns: those of planned_slots; trial and event_id of the attempt that speaks for the slot, outcome (missing where no
-- attempt does), measured, correctness_class, started_at_ns, unmeasured_owner.
-- The denominators are fixed here, by the plan. Serves rules 1, 2, 3, 7, 9 and 11.
CREATE OR REPLACE VIEW slot_outcomes AS
SELECT
    p.*,
    t.trial,
    t.event_id,
    coalesce(t.outcome, 'missing') AS outcome,
    coalesce(t.measured, false) AS measured,
    t.correctness_class,
    t.started_at_ns,
    t.unmeasured_reason,
    t.unmeasured_owner
FROM planned_slots AS p
LEFT JOIN (SELECT * FROM trial_outcomes WHERE role = 'final') AS t ON t.campaign = p.campaign AND t.slot = p.slot;
