-- The leaf hash of every event, computed again from its payload. Grain: one row per event.
-- Columns: origin, seq (the leaf index), event_id (as stored), leaf_hash (RFC 6962 section 2.1: SHA-256 of one
-- zero byte and the payload), matches.
-- Rule: design section 4, event_id is the leaf hash of the canonical bytes.
--
-- How to run, with nothing but DuckDB 2 (start it without naming the ledger file):
--     ATTACH 'oakledger.duckdb' AS ledger (READ_ONLY);
--     .read sql/audit/leaf_hashes.sql

SELECT
    origin, seq, event_id,
    sha256(chr(0) || payload) AS leaf_hash,
    event_id IS NOT DISTINCT FROM sha256(chr(0) || payload) AS matches
FROM ledger.main.events
ORDER BY origin, seq;
