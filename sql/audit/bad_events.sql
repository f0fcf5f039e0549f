-- Events whose row does not hold together. Grain: one row per event and kind of fault; no row is a clean ledger.
-- Columns: origin, seq, event_id, fault ('event_id': it is not the leaf hash of the payload; 'payload': it is
-- not JSON; 'columns': typed columns are not what the payload says), wrong (the leaf hash, or the columns).
-- Rule: design sections 4 and 5. Whether a payload is the canonical text of a known kind is beyond SQL and is
-- checked by `oakledger audit`.
--
-- How to run, with nothing but DuckDB 2 (start it without naming the ledger file):
--     ATTACH 'oakledger.duckdb' AS ledger (READ_ONLY);
--     .read sql/audit/bad_events.sql

WITH parsed AS (
    SELECT
        origin, seq, event_id, payload,
        CASE WHEN json_valid(payload) THEN payload END AS document,
        [
            kind || '/' || kind_version, source, ordinal::VARCHAR, recorded_at_ns::VARCHAR, campaign, lane, scenario,
            scenario_version::VARCHAR, subject, trial, repetition::VARCHAR, status, started_at_ns::VARCHAR,
            verdict, reader_event_id, outcome, reason, condition_key
        ] AS held
    FROM ledger.main.events
),
compared AS (
    SELECT
        origin, seq, event_id, payload, document, held,
        list_append(
            json_extract_string(document, [
                '$.kind', '$.source', '$.ordinal', '$.recorded_at_ns', '$.campaign', '$.lane', '$.scenario',
                '$.scenario_version', '$.subject', '$.trial', '$.repetition', '$.status', '$.started_at_ns',
                '$.verdict', '$.reader_event_id', '$.outcome', '$.reason'
            ]),
            sha256(document -> '$.condition')
        ) AS said
    FROM parsed
)
SELECT origin, seq, event_id, 'event_id' AS fault, sha256(chr(0) || payload) AS wrong
FROM compared
WHERE event_id IS DISTINCT FROM sha256(chr(0) || payload)
UNION ALL
SELECT origin, seq, event_id, 'payload', 'not JSON'
FROM compared
WHERE document IS NULL
UNION ALL
SELECT
    origin, seq, event_id, 'columns',
    array_to_string(list_filter([
        'kind/kind_version', 'source', 'ordinal', 'recorded_at_ns', 'campaign', 'lane', 'scenario', 'scenario_version',
        'subject', 'trial', 'repetition', 'status', 'started_at_ns', 'verdict', 'reader_event_id', 'outcome', 'reason',
        'condition_key'
    ], lambda name, i: held[i] IS DISTINCT FROM said[i]), ', ')
FROM compared
WHERE document IS NOT NULL AND held IS DISTINCT FROM said
ORDER BY origin, seq, fault;
