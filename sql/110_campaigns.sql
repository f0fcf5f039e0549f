-- campaign_declarations: what was declared. Grain: one row per campaign_declared event.
-- Columns: campaign, event_id, recorded_at_ns, preregistered, plan (JSON), plan_sha256 (digest of the plan alone, so that
-- the same plan under another campaign name, seed or promise is found again), order_algorithm, order_seed, order_extent.
CREATE OR REPLACE VIEW campaign_declarations AS
SELECT
    campaign,
    event_id,
    recorded_at_ns,
    (payload ->> '$.preregistered')::BOOLEAN AS preregistered,
    payload -> '$.plan' AS plan,
    sha256(payload -> '$.plan') AS plan_sha256,
    payload ->> '$.order.algorithm' AS order_algorithm,
    payload ->> '$.order.seed' AS order_seed,
    payload ->> '$.order.extent' AS order_extent
FROM ledger_events
WHERE kind = 'campaign_declared';

-- campaigns: every campaign that an event mentions, declared or not. Grain: one row per campaign.
-- Columns: campaign, declarations (events), different_declarations (contents), declared_event_id and the declaration that
-- counts (the earliest), lane, trials_per_cell, slots (size of the plan), first_event_id (evidence that it is mentioned).
-- Serves rule 1: a campaign without a declaration stays visible, and is refused.
CREATE OR REPLACE VIEW campaigns AS
WITH mentioned AS (
    SELECT campaign, min(event_id) AS first_event_id
    FROM ledger_events
    WHERE campaign IS NOT NULL AND kind <> 'qualification_decided'
    GROUP BY campaign
),
declared AS (
    SELECT
        campaign,
        count(*) AS declarations,
        count(DISTINCT concat_ws('|', plan_sha256, preregistered, order_algorithm, order_seed, order_extent))
            AS different_declarations,
        list(event_id ORDER BY recorded_at_ns, event_id) AS declared_event_ids,
        arg_min(
            {
                'event_id': event_id, 'recorded_at_ns': recorded_at_ns, 'preregistered': preregistered, 'plan': plan,
                'plan_sha256': plan_sha256, 'order_algorithm': order_algorithm, 'order_seed': order_seed,
                'order_extent': order_extent
            },
            (recorded_at_ns, event_id)
        ) AS d
    FROM campaign_declarations
    GROUP BY campaign
)
SELECT
    m.campaign,
    coalesce(declarations, 0) AS declarations,
    coalesce(different_declarations, 0) AS different_declarations,
    coalesce(declared_event_ids, []) AS declared_event_ids,
    d.event_id AS declared_event_id,
    d.recorded_at_ns AS declared_at_ns,
    d.preregistered AS preregistered,
    d.plan AS plan,
    d.plan_sha256 AS plan_sha256,
    d.plan ->> '$.lane' AS lane,
    (d.plan ->> '$.trials_per_cell')::BIGINT AS trials_per_cell,
    d.order_algorithm AS order_algorithm,
    d.order_seed AS order_seed,
    d.order_extent AS order_extent,
    (d.plan ->> '$.trials_per_cell')::HUGEINT * json_array_length(d.plan, '$.subjects')
    * json_array_length(d.plan, '$.scenarios') * json_array_length(d.plan, '$.conditions') AS slots,
    m.first_event_id
FROM mentioned AS m
LEFT JOIN declared USING (campaign);

-- campaign_subjects: the subjects of a plan. Grain: campaign x subject.
-- Columns: campaign, subject, null_of (the subject that it measures again for the noise floor), entries (1 in a sound plan),
-- n (number of the subject, from 0, by name).
CREATE OR REPLACE VIEW campaign_subjects AS
SELECT *, row_number() OVER (PARTITION BY campaign ORDER BY subject) - 1 AS n
FROM (
    SELECT campaign, s ->> '$.subject' AS subject, any_value(s ->> '$.null_of') AS null_of, count(*) AS entries
    FROM (SELECT campaign, unnest(from_json(plan -> '$.subjects', '["JSON"]')) AS s FROM campaigns)
    GROUP BY ALL
);

-- campaign_scenarios: the scenarios of a plan. Grain: campaign x scenario@version.
-- Columns: campaign, scenario, scenario_version, oracle_version, fixture_version, contract_sha256, evidence, tests,
-- worktree, diagnostic, entries (1 in a sound plan), n (number of the scenario, from 0, by name and version).
CREATE OR REPLACE VIEW campaign_scenarios AS
WITH entries AS (
    SELECT
        campaign,
        s ->> '$.scenario' AS scenario,
        (s ->> '$.scenario_version')::INTEGER AS scenario_version,
        min((s ->> '$.oracle_version')::INTEGER) AS oracle_version,
        min((s ->> '$.fixture_version')::INTEGER) AS fixture_version,
        min(s ->> '$.contract_sha256') AS contract_sha256,
        min(coalesce(s ->> '$.evidence', 'committed_payload')) AS evidence,
        bool_or(coalesce((s ->> '$.tests')::BOOLEAN, false)) AS tests,
        bool_or(coalesce((s ->> '$.worktree')::BOOLEAN, false)) AS worktree,
        bool_and(coalesce((s ->> '$.diagnostic')::BOOLEAN, false)) AS diagnostic,
        count(*) AS entries
    FROM (SELECT campaign, unnest(from_json(plan -> '$.scenarios', '["JSON"]')) AS s FROM campaigns)
    GROUP BY ALL
)
SELECT *, row_number() OVER (PARTITION BY campaign ORDER BY scenario, scenario_version) - 1 AS n
FROM entries;

-- campaign_conditions: the conditions of a plan. Grain: campaign x condition_key.
-- Columns: campaign, condition_key (SHA-256 of the condition's canonical JSON), condition (JSON), entries (1 in a sound plan),
-- n (number of the condition, from 0, by key).
CREATE OR REPLACE VIEW campaign_conditions AS
SELECT *, row_number() OVER (PARTITION BY campaign ORDER BY condition_key) - 1 AS n
FROM (
    SELECT campaign, sha256(c) AS condition_key, any_value(c) AS condition, count(*) AS entries
    FROM (SELECT campaign, unnest(from_json(plan -> '$.conditions', '["JSON"]')) AS c FROM campaigns)
    GROUP BY ALL
);

-- campaign_claims: the claimed effects of a plan. Grain: campaign x claim.
-- Columns: campaign, claim (number, from 0), metric, operation, subject, baseline, direction, size_permille, scenario.
-- Serves rule 11.
CREATE OR REPLACE VIEW campaign_claims AS
SELECT
    campaign,
    claim,
    c ->> '$.metric' AS metric,
    c ->> '$.operation' AS operation,
    c ->> '$.subject' AS subject,
    c ->> '$.baseline' AS baseline,
    c ->> '$.direction' AS direction,
    (c ->> '$.size_permille')::BIGINT AS size_permille,
    c ->> '$.scenario' AS scenario
FROM (
    SELECT campaign, generate_subscripts(claims, 1) - 1 AS claim, unnest(claims) AS c
    FROM (SELECT campaign, from_json(plan -> '$.claims', '["JSON"]') AS claims FROM campaigns)
);

-- campaign_criteria: the study's own criteria. Grain: campaign x criterion x text.
-- Columns: campaign, criterion, text_sha256. Serves rule 13.
CREATE OR REPLACE VIEW campaign_criteria AS
SELECT DISTINCT campaign, c ->> '$.criterion' AS criterion, c ->> '$.text_sha256' AS text_sha256
FROM (SELECT campaign, unnest(from_json(plan -> '$.criteria', '["JSON"]')) AS c FROM campaigns);

-- plan_shapes: the sizes from which slots are numbered. Grain: campaign with a plan that is evaluated.
-- Columns: campaign, subjects, conditions, trials_per_cell. The slot of (scenario, condition, repetition, subject) is
-- ((scenario * conditions + condition) * trials_per_cell + repetition) * subjects + subject, with the numbers `n` of
-- campaign_scenarios, campaign_conditions and campaign_subjects; its block is slot // subjects.
CREATE OR REPLACE VIEW plan_shapes AS
SELECT c.campaign, s.subjects, k.conditions, c.trials_per_cell
FROM campaigns AS c
JOIN (SELECT campaign, count(*) AS subjects FROM campaign_subjects GROUP BY campaign) AS s USING (campaign)
JOIN (SELECT campaign, count(*) AS conditions FROM campaign_conditions GROUP BY campaign) AS k USING (campaign)
WHERE c.slots <= 20000000;
