-- replacement_chains: which attempts stand in for which. Grain: campaign x first attempt x attempt of its chain.
-- Columns: campaign, root (the attempt that was replaced first), trial, step (0 is the root). Chains that lead in a circle
-- have no root and do not appear; rule 1 lists them. Serves rule 1.
CREATE OR REPLACE VIEW replacement_chains AS
WITH RECURSIVE chain (campaign, root, trial, step) AS (
    SELECT r.campaign, r.trial, r.trial, 0
    FROM replacements AS r
    ANTI JOIN replacements AS p ON p.campaign = r.campaign AND p.replacement = r.trial
    UNION
    SELECT c.campaign, c.root, r.replacement, c.step + 1
    FROM chain AS c
    JOIN replacements AS r ON r.campaign = c.campaign AND r.trial = c.trial
    WHERE c.step < 1000
)
SELECT campaign, root, trial, step
FROM chain;

-- attempt_facts: what each attempt came to, from what was recorded and before anybody set it aside. Grain: campaign x trial.
-- Columns: those of attempts; passes, fails (verdicts that count), refused_verdicts, correctness_class (of its passes),
-- infrastructure (a fact that speaks of a service, a machine or the harness), fact_outcome and, where it is unmeasured,
-- unmeasured_reason and unmeasured_owner; conflict (which facts contradict each other), booked_as_failure (it is recorded
-- as the agent's failure).
-- fact_outcome: passed, failed_committed, failed_before_head (these three are measured), unmeasured, harness_failure,
-- unlaunched, conflict. A failure before HEAD needs a run that started and ended, no sign of infrastructure, and either a
-- reader that found no HEAD or the harness's word that none was reached with no reader to contradict it.
-- Serves rules 1, 8 and 10.
CREATE OR REPLACE VIEW attempt_facts AS
WITH alike AS (
    -- A number is grouped faster than a name; a few names may share one.
    SELECT hash(trial) AS h
    FROM correctness_classes
    GROUP BY hash(trial)
    HAVING count(*) > 1
),
told AS NOT MATERIALIZED (
    SELECT
        campaign,
        trial,
        refused IS NULL AND verdict = 'pass' AS passes,
        refused IS NULL AND verdict = 'fail' AS fails,
        refused IS NULL AND verdict = 'unmeasured' AS unmeasured,
        unmeasured AND owner = 'subject' AS unmeasured_by_subject,
        refused IS NOT NULL AS refused_verdict,
        before_head,
        passes AND (contradicted OR 'fail' IN (tests, worktree, answer)) AS contradicted,
        CASE WHEN passes THEN correctness_class END AS correctness_class,
        CASE WHEN unmeasured THEN reason END AS reason,
        owner
    FROM correctness_classes
),
judged AS (
    -- Nearly every trial has one verdict, and needs no grouping. Of several reasons one of the subject's counts: it is the
    -- greatest owner, here and below.
    SELECT
        campaign, trial, passes::INTEGER AS passes, fails::INTEGER AS fails,
        unmeasured_by_subject::INTEGER AS unmeasured_by_subject, unmeasured::INTEGER AS unmeasured,
        refused_verdict::INTEGER AS refused_verdicts,
        fails AND before_head AS fails_before_head, contradicted, correctness_class, false AS classes_differ, reason
    FROM told
    WHERE hash(trial) NOT IN (SELECT h FROM alike)
    UNION ALL
    SELECT
        campaign, trial, count(*) FILTER (passes), count(*) FILTER (fails), count(*) FILTER (unmeasured_by_subject),
        count(*) FILTER (unmeasured), count(*) FILTER (refused_verdict),
        bool_and(before_head) FILTER (fails), bool_or(contradicted), any_value(correctness_class),
        count(DISTINCT correctness_class) FILTER (passes) + bool_or(passes AND correctness_class IS NULL)::INTEGER > 1,
        arg_max(reason, (owner, reason))
    FROM told
    WHERE hash(trial) IN (SELECT h FROM alike)
    GROUP BY campaign, trial
),
troubles AS (
    SELECT
        r.campaign,
        r.trial,
        bool_or(r.outcome = 'failed' AND o.before_head) AS found_no_head,
        arg_max(r.reason, (coalesce(o.owner, 'subject'), r.reason)) AS reader_reason,
        max(coalesce(o.owner, 'subject')) AS reader_owner
    FROM ledger_events AS r
    LEFT JOIN reasons AS o USING (reason)
    WHERE r.kind = 'reader_invoked' AND r.outcome <> 'ok'
    GROUP BY r.campaign, r.trial
),
read_well AS (
    SELECT a.campaign, a.trial
    FROM attempts AS a
    SEMI JOIN (SELECT campaign, trial FROM ledger_events WHERE kind = 'reader_invoked' AND outcome = 'ok') AS r
        ON r.campaign = a.campaign AND r.trial = a.trial
    WHERE a.reached_head = false
),
codes AS (
    SELECT c.status_code, bool_or(regexp_full_match(c.status_code, i.pattern)) AS infrastructure
    FROM (SELECT DISTINCT status_code FROM attempts) AS c
    CROSS JOIN infrastructure_codes AS i
    GROUP BY c.status_code
),
decisions AS (
    SELECT campaign, conflict, any_value(decision) AS decision
    FROM conflict_rules
    GROUP BY campaign, conflict
    HAVING count(DISTINCT decision) = 1
),
facts AS (
    SELECT
        a.*,
        coalesce(j.passes, 0) AS passes,
        coalesce(j.fails, 0) AS fails,
        coalesce(j.refused_verdicts, 0) AS refused_verdicts,
        -- Null without a verdict: no branch below is then taken.
        j.unmeasured_by_subject,
        j.unmeasured,
        j.fails_before_head,
        j.contradicted,
        j.classes_differ,
        j.correctness_class,
        j.reason AS verdict_reason,
        t.found_no_head,
        t.reader_reason,
        t.reader_owner,
        w.trial IS NOT NULL AS read_well,
        coalesce(c.infrastructure, false) OR coalesce(a.exit_code IN (126, 127), false) AS infrastructure,
        d.decision,
        a.started_at_ns IS NOT NULL
        AND (a.ended_at_ns IS NOT NULL OR a.exit_code IS NOT NULL OR a.status = 'timeout') AS ran
    FROM attempts AS a
    LEFT JOIN judged AS j ON j.campaign = a.campaign AND j.trial = a.trial
    LEFT JOIN troubles AS t ON t.campaign = a.campaign AND t.trial = a.trial
    LEFT JOIN read_well AS w ON w.campaign = a.campaign AND w.trial = a.trial
    LEFT JOIN codes AS c ON c.status_code = a.status_code
    LEFT JOIN decisions AS d ON d.campaign = a.campaign AND d.conflict = concat('pass_with_', a.status)
),
contradictions AS (
    SELECT
        *,
        CASE
            WHEN passes > 0 AND status IN ('unlaunched', 'harness_failure') THEN concat('pass_with_', status)
            WHEN (passes > 0 AND fails > 0) OR (passes + fails > 0 AND unmeasured_by_subject > 0) OR classes_differ
                THEN 'verdicts_disagree'
            WHEN contradicted THEN 'pass_against_its_evidence'
            WHEN passes > 0 AND reached_head = false THEN 'pass_without_head'
            WHEN passes > 0 AND status IN ('timeout', 'error') THEN concat('pass_with_', status)
        END AS conflict,
        (fails > 0 OR (reached_head = false AND passes = 0)) AS booked_as_failure
    FROM facts
),
outcomes AS (
    SELECT
        *,
        CASE
            WHEN status IN ('unlaunched', 'harness_failure') THEN status
            WHEN conflict IN ('pass_with_timeout', 'pass_with_error') AND decision = 'pass' THEN 'passed'
            WHEN conflict IN ('pass_with_timeout', 'pass_with_error') AND decision = 'fail' THEN 'failed_committed'
            WHEN conflict IS NOT NULL THEN 'conflict'
            WHEN passes > 0 THEN 'passed'
            WHEN infrastructure THEN 'harness_failure'
            WHEN fails > 0 AND NOT fails_before_head THEN 'failed_committed'
            WHEN fails > 0 AND ran THEN 'failed_before_head'
            WHEN unmeasured + refused_verdicts > 0 THEN 'unmeasured'
            WHEN found_no_head AND ran THEN 'failed_before_head'
            WHEN reached_head = false AND ran AND NOT read_well AND reader_owner IS NULL
                THEN 'failed_before_head'
            ELSE 'unmeasured'
        END AS fact_outcome
    FROM contradictions
)
SELECT
    campaign, trial, event_id, lane, scenario, scenario_version, subject, condition_key, repetition, status,
    status_code, exit_code, reached_head, started_at_ns, ended_at_ns, fixture_version, records, passes, fails,
    refused_verdicts, CASE WHEN NOT classes_differ THEN correctness_class END AS correctness_class, infrastructure, ran,
    read_well, conflict, decision, booked_as_failure, fact_outcome, binary_key,
    CASE
        WHEN fact_outcome <> 'unmeasured' THEN NULL
        WHEN verdict_reason IS NOT NULL THEN verdict_reason
        WHEN reader_reason IS NOT NULL THEN reader_reason
        WHEN refused_verdicts > 0 THEN 'verdict_refused'
        WHEN booked_as_failure THEN 'run_facts_missing'
        ELSE 'no_verdict'
    END AS unmeasured_reason,
    CASE
        WHEN fact_outcome <> 'unmeasured' THEN NULL
        WHEN unmeasured_by_subject > 0 THEN 'subject'
        WHEN unmeasured > 0 THEN 'harness'
        ELSE coalesce(reader_owner, 'harness')
    END AS unmeasured_owner
FROM outcomes;
