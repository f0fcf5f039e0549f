-- planned_slots: what the plan promises, in the declared order. Grain: one row per planned trial of a cell.
-- Columns: campaign, scenario, scenario_version, diagnostic, condition_key, repetition (from 0), block_position,
-- in_block (place of the subject within its block), position (place in the whole sequence), subject. The positions are null
-- where no order was declared. Algorithm blocked-sha256/1, docs/order.md: a block is (scenario, version, condition,
-- repetition); blocks follow each other by the digest of a text with the seed and the block, the subjects of a block by the
-- digest of that text and the subject. A plan of more than twenty million slots has none, and rule 1 says why.
CREATE OR REPLACE VIEW planned_slots AS
WITH subjects AS (
    SELECT campaign, list(subject ORDER BY subject) AS subjects
    FROM campaign_subjects
    GROUP BY campaign
),
blocks AS (
    SELECT
        c.campaign,
        s.scenario,
        s.scenario_version,
        s.diagnostic,
        k.condition_key,
        unnest(range(c.trials_per_cell)) AS repetition,
        c.order_seed,
        u.subjects
    FROM campaigns AS c
    JOIN campaign_scenarios AS s USING (campaign)
    JOIN campaign_conditions AS k USING (campaign)
    JOIN subjects AS u USING (campaign)
    WHERE c.slots <= 20000000
),
texts AS (
    SELECT
        *,
        concat_ws(
            chr(10), 'blocked-sha256/1', order_seed, scenario, scenario_version, condition_key, repetition
        ) AS block_text
    FROM blocks
),
ranked AS (
    SELECT
        *,
        CASE
            WHEN order_seed IS NOT NULL
                THEN row_number() OVER (PARTITION BY campaign ORDER BY sha256(block_text), block_text) - 1
        END AS block_position,
        CASE
            WHEN order_seed IS NULL THEN subjects
            ELSE list_transform(
                list_sort(
                    list_transform(
                        subjects, lambda x: struct_pack(h := sha256(concat(block_text, chr(10), x)), s := x)
                    )
                ),
                lambda y: y.s
            )
        END AS sequence
    FROM texts
),
slots AS (
    SELECT
        campaign, scenario, scenario_version, diagnostic, condition_key, repetition, block_position, order_seed,
        len(sequence) AS width, generate_subscripts(sequence, 1) - 1 AS place, unnest(sequence) AS subject
    FROM ranked
)
SELECT
    campaign,
    scenario,
    scenario_version,
    diagnostic,
    condition_key,
    repetition,
    block_position,
    CASE WHEN order_seed IS NOT NULL THEN place END AS in_block,
    block_position * width + place AS position,
    subject
FROM slots;
