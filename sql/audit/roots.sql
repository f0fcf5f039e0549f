-- The tree of every origin, computed again. Grain: one row per origin and size, for every size that the table
-- `checkpoints` has and for all events that are there.
-- Columns: origin, size, root (RFC 6962 section 2.1 over the first `size` events; null: they are not all there),
-- root_base64 (as the third line of a checkpoint file spells it), stated (the root in `checkpoints`; null: no row),
-- state ('matches', 'DIFFERS', 'EVENTS MISSING', 'NO CHECKPOINT').
-- Rule: design section 5. Compare the sizes and roots with checkpoints that were kept elsewhere: a kept
-- checkpoint with a larger size means that events were lost, another root of the same size that they were changed.
--
-- `nodes` are the roots of all perfect subtrees, built level by level from the leaves; the tree over `size`
-- leaves hangs together from one such subtree for every 1 in the binary digits of `size`, folded from the right.
--
-- How to run, with nothing but DuckDB 2 (start it without naming the ledger file):
--     ATTACH 'oakledger.duckdb' AS ledger (READ_ONLY);
--     .read sql/audit/roots.sql

WITH RECURSIVE nodes (origin, level, position, hash) AS (
    SELECT origin, 0, seq, event_id FROM ledger.main.events
    UNION ALL
    SELECT
        origin, level + 1, position // 2,
        sha256('\x01'::BLOB || unhex(string_agg(hash, '' ORDER BY position)))
    FROM nodes
    GROUP BY origin, level, position // 2
    HAVING count(*) = 2
),
sizes AS (
    SELECT origin, size, root AS stated FROM ledger.main.checkpoints
    UNION ALL
    SELECT origin, count(*), NULL FROM ledger.main.events e GROUP BY origin
    HAVING count(*) NOT IN (SELECT size FROM ledger.main.checkpoints c WHERE c.origin = e.origin)
),
subtrees AS (
    SELECT s.origin, s.size, s.stated, d.level, (s.size >> d.level) - 1 AS position
    FROM sizes s, range(0, 63) d (level)
    WHERE (s.size >> d.level) & 1 = 1
),
folded AS (
    SELECT
        s.origin, s.size, s.stated,
        CASE WHEN count(*) = count(n.hash) THEN list_reduce(
            list(n.hash ORDER BY s.level),
            lambda right_hash, left_hash: sha256('\x01'::BLOB || unhex(left_hash || right_hash))
        ) END AS root
    FROM subtrees s LEFT JOIN nodes n USING (origin, level, position)
    GROUP BY s.origin, s.size, s.stated
)
SELECT
    origin, size, root, base64(unhex(root)) AS root_base64, stated,
    CASE
        WHEN root IS NULL THEN 'EVENTS MISSING'
        WHEN stated IS NULL THEN 'NO CHECKPOINT'
        WHEN root = stated THEN 'matches'
        ELSE 'DIFFERS'
    END AS state
FROM folded
ORDER BY origin, size;
