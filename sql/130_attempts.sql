-- attempts: executions. Grain: campaign x trial. A trial is recorded once, or once for each of its operations; what the
-- records say together is one attempt: its worst status, its first start, its last end.
-- Columns: as trial_facts; records (number of events), event_id (the first).
-- Serves rules 1, 2, 5, 8. Rule 2 refuses a trial identity whose records do not belong together.
CREATE OR REPLACE VIEW attempts AS
WITH alike AS (
    -- A number is grouped faster than a name; a few names may share one.
    SELECT hash(trial) AS h
    FROM trial_facts
    GROUP BY hash(trial)
    HAVING count(*) > 1
),
several AS (
    SELECT campaign, trial
    FROM trial_facts
    WHERE hash(trial) IN (SELECT h FROM alike)
    GROUP BY campaign, trial
    HAVING count(*) > 1
),
ranks AS (
    SELECT status, rank
    FROM (VALUES ('completed', 0), ('error', 1), ('timeout', 2), ('unlaunched', 3), ('harness_failure', 4))
        AS t (status, rank)
)
SELECT
    campaign, trial, event_id, lane, scenario, scenario_version, subject, condition_key, repetition, status,
    status_code, exit_code, reached_head, started_at_ns, ended_at_ns, fixture_version, binary_key, 1 AS records
FROM trial_facts
ANTI JOIN several USING (campaign, trial)
UNION ALL
SELECT
    t.campaign, t.trial, min(t.event_id), arg_min(t.lane, t.event_id), arg_min(t.scenario, t.event_id),
    arg_min(t.scenario_version, t.event_id), arg_min(t.subject, t.event_id), arg_min(t.condition_key, t.event_id),
    arg_min(t.repetition, t.event_id), arg_max(t.status, r.rank), arg_max(t.status_code, (r.rank, t.status_code)),
    arg_max(t.exit_code, (r.rank, t.exit_code)), bool_and(t.reached_head), min(t.started_at_ns), max(t.ended_at_ns),
    min(t.fixture_version), min(t.binary_key), count(*)
FROM trial_facts AS t
SEMI JOIN several USING (campaign, trial)
JOIN ranks AS r USING (status)
GROUP BY t.campaign, t.trial;
