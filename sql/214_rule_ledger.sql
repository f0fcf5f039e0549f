-- rule_14_ledger: the ledger hangs together, as far as SQL alone can say without hashing.
-- Grain and columns as rule_01_planned_slots; campaign is null: it is about the file. `oakledger audit` says the rest
-- (contents, tree, guards, kept checkpoints), and `oakledger qualify` asks it first. What does not verify is an error.
CREATE OR REPLACE VIEW rule_14_ledger AS
WITH sizes AS (
    SELECT origin, count(*) AS events, min(seq) AS first_seq, max(seq) AS last_seq FROM events GROUP BY origin
),
heads AS (
    SELECT origin, max(size) AS size FROM checkpoints GROUP BY origin
),
hidden AS (
    SELECT d.origin, d.seq, e.event_id
    FROM duplicates AS d
    LEFT JOIN events AS e ON e.origin = d.origin AND e.seq = d.seq
),
copies AS (
    SELECT h.origin, h.seq, h.event_id, count(c.event_id) AS standing
    FROM hidden AS h
    LEFT JOIN (
        SELECT e.event_id
        FROM events AS e
        SEMI JOIN hidden AS x ON x.event_id = e.event_id
        ANTI JOIN duplicates AS d ON d.origin = e.origin AND d.seq = e.seq
    ) AS c ON c.event_id = h.event_id
    GROUP BY ALL
)
SELECT NULL::VARCHAR AS campaign, 'sequence_gap' AS what, true AS binding,
    concat('origin ', origin, ' has ', events, ' events numbered ', first_seq, ' to ', last_seq) AS detail,
    []::VARCHAR[] AS event_ids
FROM sizes
WHERE first_seq <> 0 OR last_seq + 1 <> events
UNION ALL BY NAME
SELECT NULL::VARCHAR AS campaign, 'checkpoint_differs' AS what, true AS binding,
    concat('origin ', coalesce(s.origin, h.origin), ' has ', coalesce(s.events, 0), ' events and a checkpoint for ',
        coalesce(h.size, 0)) AS detail,
    []::VARCHAR[] AS event_ids
FROM sizes AS s
FULL JOIN heads AS h ON h.origin = s.origin
WHERE s.events IS DISTINCT FROM h.size
UNION ALL BY NAME
SELECT NULL::VARCHAR AS campaign, 'event_hidden' AS what, true AS binding,
    concat('origin ', origin, ' number ', seq, ' is marked as a copy, and no other copy counts') AS detail,
    list_filter([event_id], lambda x: x IS NOT NULL) AS event_ids
FROM copies
WHERE standing = 0
UNION ALL BY NAME
SELECT NULL::VARCHAR AS campaign, 'event_counted_twice' AS what, true AS binding,
    concat('an event counts ', standing, ' times') AS detail, [event_id] AS event_ids
FROM copies
WHERE standing > 1
UNION ALL BY NAME
SELECT NULL::VARCHAR AS campaign, 'empty_ledger' AS what, true AS binding, 'the ledger holds no event' AS detail,
    []::VARCHAR[] AS event_ids
FROM (SELECT count(*) AS events FROM events)
WHERE events = 0;
