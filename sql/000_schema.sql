-- The tables of a ledger file. Grain of events: one row per (origin, seq).
--
-- Typed columns are what views filter and group by; each is derived from the payload and held to it by a CHECK,
-- so the payload alone is the evidence. event_id is the RFC 6962 leaf hash of the payload, held by a CHECK too.
-- Triggers and CHECKs guard against accidents; what somebody does to the file on purpose is found by the audit.

CREATE TABLE ledger_meta (
    key VARCHAR PRIMARY KEY,
    value VARCHAR NOT NULL
);

CREATE TABLE events (
    origin VARCHAR NOT NULL,            -- the ledger that numbered the event
    seq BIGINT NOT NULL,                -- dense from 0 within its origin: the leaf index of the origin's tree
    event_id VARCHAR NOT NULL,          -- hex SHA-256 of 0x00 || payload
    kind VARCHAR NOT NULL,              -- for example trial_recorded
    kind_version INTEGER NOT NULL,      -- for example 1
    source VARCHAR NOT NULL,            -- producer key, first part
    ordinal BIGINT NOT NULL,            -- producer key, second part
    recorded_at_ns BIGINT NOT NULL,     -- nanoseconds since 1970-01-01 UTC
    campaign VARCHAR,
    lane VARCHAR,
    scenario VARCHAR,
    scenario_version INTEGER,
    subject VARCHAR,
    trial VARCHAR,
    condition_key VARCHAR,              -- hex SHA-256 of the condition's canonical JSON
    repetition BIGINT,
    status VARCHAR,                     -- trial_recorded
    started_at_ns BIGINT,               -- trial_recorded
    verdict VARCHAR,                    -- oracle_judged
    reader_event_id VARCHAR,            -- oracle_judged: the reader invocation it rests on
    outcome VARCHAR,                    -- reader_invoked
    reason VARCHAR,                     -- reader_invoked, oracle_judged
    payload VARCHAR NOT NULL USING COMPRESSION zstd,  -- the exact canonical JSON text; zstd takes a third less room
    PRIMARY KEY (origin, seq),
    CONSTRAINT event_id_is_leaf_hash_of_payload CHECK (event_id = sha256(chr(0) || payload)),
    CONSTRAINT condition_key_matches_payload CHECK (
        condition_key IS NOT DISTINCT FROM sha256(payload -> '$.condition')
    ),
    CONSTRAINT columns_match_payload CHECK (
        json_extract_string(payload, [
            '$.kind', '$.source', '$.ordinal', '$.recorded_at_ns', '$.campaign', '$.lane', '$.scenario',
            '$.scenario_version', '$.subject', '$.trial', '$.repetition', '$.status', '$.started_at_ns',
            '$.verdict', '$.reader_event_id', '$.outcome', '$.reason'
        ]) IS NOT DISTINCT FROM [
            kind || '/' || kind_version, source, ordinal::VARCHAR, recorded_at_ns::VARCHAR, campaign, lane, scenario,
            scenario_version::VARCHAR, subject, trial, repetition::VARCHAR, status, started_at_ns::VARCHAR,
            verdict, reader_event_id, outcome, reason
        ]
    )
);

-- Grain: one row per append or merge and origin. The frontier lets the next append extend the tree without
-- reading all of it; the audit computes every root again from the events.
CREATE TABLE checkpoints (
    origin VARCHAR NOT NULL,
    size BIGINT NOT NULL,               -- number of leaves
    root VARCHAR NOT NULL,              -- hex RFC 6962 root over the first size leaves
    frontier VARCHAR NOT NULL,          -- hex roots of the perfect subtrees of that size, largest first, joined by spaces
    PRIMARY KEY (origin, size)
);

-- Grain: one row per copy of an event that does not count because an origin of a smaller name has it too.
CREATE TABLE duplicates (
    origin VARCHAR NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (origin, seq)
);

CREATE TABLE _deny (reason VARCHAR);

CREATE TRIGGER events_no_update BEFORE UPDATE ON events FOR EACH STATEMENT
    INSERT INTO _deny SELECT error('events are append-only: to correct one, ingest a new event that names it (trial_invalidated, trial_replaced)');
CREATE TRIGGER events_no_delete BEFORE DELETE ON events FOR EACH STATEMENT
    INSERT INTO _deny SELECT error('events are append-only: to take one out of the count, ingest a trial_invalidated event that names it');
CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints FOR EACH STATEMENT
    INSERT INTO _deny SELECT error('checkpoints are append-only: run oakledger checkpoint to make a new one');
CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints FOR EACH STATEMENT
    INSERT INTO _deny SELECT error('checkpoints are append-only: run oakledger checkpoint to make a new one');
