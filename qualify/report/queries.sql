-- The questions that the report asks the ledger, as it prints them. $campaign stands for the campaign as an SQL text
-- and $limit for a bound on what is listed; both are filled in before a question is asked, so that what is printed runs
-- as it stands: oakledger sql "...".

-- query plan: The declaration that counts
SELECT * EXCLUDE (plan, slots), slots::BIGINT AS slots FROM campaigns WHERE campaign = $campaign;

-- query subjects: The subjects of the plan
SELECT subject, null_of FROM campaign_subjects WHERE campaign = $campaign ORDER BY subject;

-- query scenarios: The scenarios of the plan
SELECT * EXCLUDE (campaign, entries) FROM campaign_scenarios WHERE campaign = $campaign
ORDER BY scenario, scenario_version;

-- query conditions: Every condition, planned or met
SELECT * EXCLUDE (campaign, condition, same_but_environment) FROM conditions WHERE campaign = $campaign
ORDER BY planned DESC, condition_key;

-- query coverage: What was measured where
SELECT scenario, scenario_version, condition_key, subject, diagnostic, condition_planned, planned, recorded, measured, covered
FROM condition_coverage WHERE campaign = $campaign ORDER BY scenario, scenario_version, condition_key, subject;

-- query cells: Planned trials of each cell by outcome
SELECT * EXCLUDE (campaign) FROM cells WHERE campaign = $campaign ORDER BY scenario, scenario_version, condition_key, subject;

-- query slots: The events behind each outcome
SELECT scenario, scenario_version, condition_key, subject, repetition, outcome, trial, event_id, correctness_class, unmeasured_reason, verdicts
FROM slot_outcomes
LEFT JOIN (
    SELECT campaign, trial, list(event_id ORDER BY event_id) AS verdicts
    FROM correctness_classes GROUP BY campaign, trial
) USING (campaign, trial)
WHERE campaign = $campaign
QUALIFY row_number() OVER (PARTITION BY scenario, scenario_version, condition_key, subject, outcome ORDER BY repetition) <= $limit
ORDER BY scenario, scenario_version, condition_key, subject, outcome, repetition;

-- query other_attempts: Attempts that speak for no planned trial
SELECT scenario, scenario_version, condition_key, subject, slot_repetition AS repetition, role, fact_outcome, invalidated, unplanned_because, trial,
    event_id
FROM trial_outcomes WHERE campaign = $campaign AND role <> 'final' ORDER BY role, trial LIMIT $limit;

-- query classes: Correctness classes of the successes
SELECT scenario, scenario_version, condition_key, subject, diagnostic, correctness_class, successes FROM class_pairs WHERE campaign = $campaign
ORDER BY scenario, scenario_version, condition_key, subject, correctness_class;

-- query failures: Why trials failed or were not measured
SELECT c.scenario, c.scenario_version, c.condition_key, c.subject, c.verdict, c.reason, c.owner, c.refused,
    count(*) AS verdicts, min(c.event_id) AS example_event_id,
    arg_min(e.payload -> '$.checks', c.event_id) AS example_checks
FROM correctness_classes AS c
JOIN ledger_events AS e ON e.event_id = c.event_id
WHERE c.campaign = $campaign AND (c.verdict <> 'pass' OR c.refused IS NOT NULL)
GROUP BY c.scenario, c.scenario_version, c.condition_key, c.subject, c.verdict, c.reason, c.owner, c.refused
ORDER BY verdicts DESC, c.scenario, c.scenario_version, c.condition_key, c.subject, c.verdict, c.reason
LIMIT 200;

-- query order: First attempts by start time, with their declared places
SELECT * FROM (
    SELECT o.started_at_ns, u.subject, o.position, o.in_block, t.event_id,
        row_number() OVER (ORDER BY o.started_at_ns, t.event_id) AS n, count(*) OVER () AS starts
    FROM order_starts AS o
    JOIN campaign_subjects AS u ON u.campaign = o.campaign AND u.n = o.subject_n
    JOIN trial_outcomes AS t ON t.campaign = o.campaign AND t.slot = o.slot AND t.step = 0
        AND t.role IN ('final', 'replaced')
    WHERE o.campaign = $campaign
)
WHERE n % greatest(starts // 12000, 1) = 0 OR n = 1 ORDER BY n;

-- query places: How often each subject started first, second, ... in its block
SELECT u.subject, o.place, count(*) AS blocks
FROM (
    SELECT *, row_number() OVER (PARTITION BY block ORDER BY started_at_ns, subject_n) AS place
    FROM order_starts WHERE campaign = $campaign
) AS o
JOIN campaign_subjects AS u ON u.campaign = o.campaign AND u.n = o.subject_n
GROUP BY ALL ORDER BY u.subject, o.place;

-- query order_tests: Exact tests of an order that nobody declared, the least likely first
SELECT * EXCLUDE (campaign) FROM order_tests WHERE campaign = $campaign
ORDER BY p, scenario NULLS FIRST, scenario_version, condition_key, subject_a, subject_b, test LIMIT 20;

-- query pairs: Paired outcomes
SELECT * EXCLUDE (campaign) FROM paired_outcomes WHERE campaign = $campaign
ORDER BY scenario, scenario_version, condition_key, null_pair, subject_a, subject_b;

-- query pair_events: The events behind the paired outcomes
SELECT a.scenario, a.scenario_version, a.condition_key, a.subject AS subject_a, b.subject AS subject_b,
    a.repetition, a.event_id AS event_a, b.event_id AS event_b,
    CASE
        WHEN NOT (a.measured AND b.measured) THEN 'not_comparable'
        WHEN a.outcome = 'passed' AND b.outcome = 'passed' THEN 'both'
        WHEN a.outcome = 'passed' THEN 'only_a'
        WHEN b.outcome = 'passed' THEN 'only_b'
        ELSE 'neither'
    END AS pair
FROM slot_outcomes AS a
JOIN slot_outcomes AS b USING (campaign, scenario, scenario_version, condition_key, repetition)
WHERE campaign = $campaign AND a.subject < b.subject
QUALIFY row_number() OVER (
    PARTITION BY a.scenario, a.scenario_version, a.condition_key, a.subject, b.subject, pair
    ORDER BY a.repetition
) <= $limit
ORDER BY a.scenario, a.scenario_version, a.condition_key, subject_a, subject_b, pair, a.repetition;

-- query claims: Claims beside what was measured and the noise floor
SELECT * EXCLUDE (campaign) FROM claims WHERE campaign = $campaign
ORDER BY claim, scenario, scenario_version, condition_key;

-- query effects: Claimed and null comparisons with their intervals
SELECT * EXCLUDE (campaign) FROM metric_effects WHERE campaign = $campaign
ORDER BY claim, scenario, scenario_version, condition_key, role, subject, baseline;

-- query differences: Differences block by block, in thousandths of the baseline, as 51 quantiles
SELECT c.claim, c.scenario, c.scenario_version, c.condition_key, c.role, c.subject, c.baseline,
    count(*) AS blocks,
    quantile_disc(1000.0 * (a.value - b.value) / abs(b.value), [n / 50.0 FOR n IN range(51)]) AS quantiles
FROM claim_comparisons AS c
JOIN metric_values AS a
    ON a.campaign = c.campaign AND a.scenario = c.scenario AND a.scenario_version = c.scenario_version
    AND a.condition_key = c.condition_key AND a.subject = c.subject AND a.metric = c.metric
    AND a.operation IS NOT DISTINCT FROM c.operation
JOIN metric_values AS b
    ON b.campaign = c.campaign AND b.scenario = c.scenario AND b.scenario_version = c.scenario_version
    AND b.condition_key = c.condition_key AND b.subject = c.baseline AND b.metric = c.metric
    AND b.operation IS NOT DISTINCT FROM c.operation AND b.repetition = a.repetition
WHERE c.campaign = $campaign AND a.value IS NOT NULL AND b.value <> 0
GROUP BY c.claim, c.scenario, c.scenario_version, c.condition_key, c.role, c.subject, c.baseline
ORDER BY c.claim, c.scenario, c.scenario_version, c.condition_key, c.role, c.subject, c.baseline;

-- query metrics: Metrics of the trials that passed
SELECT scenario, scenario_version, condition_key, operation, metric, subject, count(*) AS trials,
    count(value) AS measured, quantile_disc(value, [n / 50.0 FOR n IN range(51)]) AS quantiles,
    median(value) AS median
FROM (
    SELECT * EXCLUDE (metrics), (metrics ->> concat('$.', metric))::BIGINT AS value
    FROM (
        SELECT s.scenario, s.scenario_version, s.condition_key, s.subject, t.operation, t.metrics,
            unnest(json_keys(t.metrics)) AS metric
        FROM slot_outcomes AS s
        JOIN trials AS t ON t.campaign = s.campaign AND t.trial = s.trial
        WHERE s.campaign = $campaign AND s.outcome = 'passed'
    )
)
GROUP BY ALL ORDER BY scenario, scenario_version, condition_key, operation NULLS FIRST, metric, subject;

-- query set_aside: Attempts that somebody took out of the count
SELECT * EXCLUDE (campaign) FROM set_aside WHERE campaign = $campaign
ORDER BY what, trial, event_id LIMIT 1000;

-- query readers: Readers and instruments
SELECT r.vcs, r.reader, r.reader_version, r.backend, r.code_sha256, r.codec_sha256, r.python_sha256,
    r.instrument_name, r.instrument_version, r.instrument_sha256, r.relation, c.independence, r.qualified_by,
    r.qualified_because, count(DISTINCT r.event_id) AS invocations, min(r.event_id) AS example_event_id
FROM reader_invocations AS r
LEFT JOIN correctness_classes AS c ON c.campaign = r.campaign AND c.reader_event_id = r.event_id
WHERE r.campaign = $campaign
GROUP BY ALL ORDER BY invocations DESC, example_event_id LIMIT 100;

-- query reader_outcomes: What became of the reader invocations
SELECT reader, backend, outcome, reason, count(*) AS invocations, min(event_id) AS example_event_id
FROM reader_invocations WHERE campaign = $campaign GROUP BY ALL ORDER BY invocations DESC, example_event_id LIMIT 100;

-- query identities: The binaries that ran
SELECT subject, subject_binary_sha256, subject_version, subject_source_sha256, subject_dirty,
    count(*) AS trials, min(event_id) AS example_event_id
FROM trials WHERE campaign = $campaign GROUP BY ALL ORDER BY subject, trials DESC, example_event_id LIMIT 200;

-- query environments: The environments of the conditions
SELECT DISTINCT payload ->> '$.environment_id' AS environment_id, payload -> '$.facts' AS facts, event_id
FROM ledger_events WHERE campaign = $campaign AND kind = 'environment_observed'
ORDER BY environment_id, event_id LIMIT 100;

-- query criteria: The study's own criteria and who attests them
SELECT k.criterion, k.text_sha256, a.who, a.statement, a.text_sha256 = k.text_sha256 AS same_text,
    a.event_id
FROM campaign_criteria AS k
LEFT JOIN attestations AS a USING (campaign, criterion)
WHERE campaign = $campaign ORDER BY k.criterion, a.recorded_at_ns LIMIT 200;

-- query conflict_rules: How conflicting facts were decided
SELECT conflict, decision, who, why, event_id FROM conflict_rules WHERE campaign = $campaign
ORDER BY recorded_at_ns, event_id LIMIT 100;

-- query reruns: Other campaigns that measure the same
SELECT * EXCLUDE (campaign) FROM reruns WHERE campaign = $campaign ORDER BY declared_at_ns, other LIMIT 200;
