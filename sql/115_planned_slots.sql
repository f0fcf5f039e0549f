-- planned_slots: what the plan promises, in the declared order. Grain: one row per planned trial of a cell.
-- Columns: campaign, slot (its number, see plan_shapes), block (that of its block), scenario, scenario_version, diagnostic,
-- condition_key, repetition (from 0), block_position, in_block (place of the subject within its block), position (place in
-- the whole sequence), subject. The positions are null where no order was declared. Algorithm blocked-sha256/1,
-- docs/order.md: a block is (scenario, version, condition, repetition); blocks follow each other by the digest of a text
-- with the seed and the block, the subjects of a block by the digest of that text and the subject. A plan of more than
-- twenty million slots has none, and rule 1 says why.
CREATE OR REPLACE VIEW planned_slots AS
WITH subjects AS (
    SELECT campaign, list(struct_pack(s := subject, n := n) ORDER BY n) AS subjects
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
        (s.n * p.conditions + k.n) * p.trials_per_cell AS first_block,
        unnest(range(p.trials_per_cell)) AS repetition,
        c.order_seed,
        u.subjects
    FROM campaigns AS c
    JOIN plan_shapes AS p USING (campaign)
    JOIN campaign_scenarios AS s USING (campaign)
    JOIN campaign_conditions AS k USING (campaign)
    JOIN subjects AS u USING (campaign)
),
texts AS (
    SELECT
        *,
        first_block + repetition AS block,
        CASE
            WHEN order_seed IS NOT NULL
                THEN concat_ws(
                    chr(10), 'blocked-sha256/1', order_seed, scenario, scenario_version, condition_key, repetition
                )
        END AS block_text
    FROM blocks
),
places AS (
    SELECT
        campaign, block,
        row_number() OVER (PARTITION BY campaign ORDER BY sha256(block_text), block_text) - 1 AS block_position
    FROM texts
    WHERE block_text IS NOT NULL
),
sequences AS (
    SELECT
        campaign, scenario, scenario_version, diagnostic, condition_key, repetition, block, order_seed,
        CASE
            WHEN order_seed IS NULL THEN subjects
            ELSE list_transform(
                list_sort(
                    list_transform(
                        subjects, lambda x: struct_pack(h := sha256(concat(block_text, chr(10), x.s)), s := x.s, n := x.n)
                    )
                ),
                lambda y: struct_pack(s := y.s, n := y.n)
            )
        END AS sequence
    FROM texts
),
slots AS (
    SELECT
        * EXCLUDE (sequence), len(sequence) AS width, generate_subscripts(sequence, 1) - 1 AS place,
        unnest(sequence) AS who
    FROM sequences
)
SELECT
    s.campaign,
    s.block * s.width + s.who.n AS slot,
    s.block,
    s.scenario,
    s.scenario_version,
    s.diagnostic,
    s.condition_key,
    s.repetition,
    p.block_position,
    CASE WHEN s.order_seed IS NOT NULL THEN s.place END AS in_block,
    p.block_position * s.width + s.place AS position,
    s.who.s AS subject
FROM slots AS s
LEFT JOIN places AS p ON p.campaign = s.campaign AND p.block = s.block;
