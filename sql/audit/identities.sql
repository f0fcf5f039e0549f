-- Does every event count once and every producer key name one event? Grain: one row per fault and event; no row
-- is a clean ledger.
-- Columns: origin, seq, event_id, fault ('producer_key': its (source, ordinal) names another event too;
-- 'duplicate_event': its origin has it twice; 'not_in_duplicates': a copy that would count again;
-- 'wrong_in_duplicates': taken out of the count without being a copy).
-- Rule: design section 4, the same producer key with other content is an error, and section 5, an event met in
-- two origins counts once. Copies are all occurrences of an event but the first by origin name and seq.
--
-- How to run, with nothing but DuckDB 2 (start it without naming the ledger file):
--     ATTACH 'oakledger.duckdb' AS ledger (READ_ONLY);
--     .read sql/audit/identities.sql

WITH copies AS (
    SELECT origin, seq, event_id, first_origin
    FROM (
        SELECT
            origin, seq, event_id,
            row_number() OVER w AS copy, first(origin) OVER w AS first_origin
        FROM ledger.main.events
        WINDOW w AS (PARTITION BY event_id ORDER BY origin, seq)
    )
    WHERE copy > 1
)
SELECT origin, seq, event_id, 'producer_key' AS fault
FROM ledger.main.events
WHERE (source, ordinal) IN (
    SELECT (source, ordinal) FROM ledger.main.events GROUP BY source, ordinal HAVING count(DISTINCT event_id) > 1
)
UNION ALL
SELECT origin, seq, event_id, 'duplicate_event' FROM copies WHERE origin = first_origin
UNION ALL
SELECT origin, seq, event_id, 'not_in_duplicates' FROM copies ANTI JOIN ledger.main.duplicates USING (origin, seq)
UNION ALL
SELECT d.origin, d.seq, e.event_id, 'wrong_in_duplicates'
FROM ledger.main.duplicates d LEFT JOIN ledger.main.events e USING (origin, seq)
ANTI JOIN copies USING (origin, seq)
ORDER BY origin, seq, fault;
