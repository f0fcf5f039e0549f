-- Are the numbers of every origin dense? Grain: one row per gap or repeated number; no row is a clean ledger.
-- Columns: origin, fault ('gap', 'duplicate_seq'), first and last (the missing numbers, or the repeated one).
-- Rule: design section 5, each origin has its own gapless seq. Events lost from the end leave no gap: only a
-- checkpoint kept elsewhere shows those (roots.sql).
--
-- How to run, with nothing but DuckDB 2 (start it without naming the ledger file):
--     ATTACH 'oakledger.duckdb' AS ledger (READ_ONLY);
--     .read sql/audit/gaps.sql

SELECT origin, 'gap' AS fault, before + 1 AS first, seq - 1 AS last
FROM (
    SELECT origin, seq, lag(seq, 1, -1::BIGINT) OVER (PARTITION BY origin ORDER BY seq) AS before
    FROM (SELECT DISTINCT origin, seq FROM ledger.main.events)
)
WHERE seq > before + 1
UNION ALL
SELECT origin, 'duplicate_seq', seq, seq
FROM ledger.main.events
GROUP BY origin, seq
HAVING count(*) > 1
ORDER BY origin, first, fault;
