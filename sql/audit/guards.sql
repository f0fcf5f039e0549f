-- Which guards does the file have? Grain: one row per guard that a ledger must have, and one per object that
-- is not part of a ledger's tables and could shadow something (macros and types of the file's own).
-- Columns: kind, name, state ('present', 'MISSING', 'EXTRA').
-- A guard of another text counts as missing. The texts are those that DuckDB 2.0 prints.
-- Rule: design section 5, guards against accidents. A guard that is missing proves nothing yet: the other
-- queries here say whether the contents still hold. Views are compared with the shipped text by `oakledger audit`.
--
-- How to run, with nothing but DuckDB 2 (start it WITHOUT naming the ledger file, so that no macro in the file
-- can stand in for a function of the same name):
--     ATTACH 'oakledger.duckdb' AS ledger (READ_ONLY);
--     .read sql/audit/guards.sql

WITH wanted (kind, name, definition) AS (
    VALUES
        ('table', 'events', ''),
        ('table', 'checkpoints', ''),
        ('table', 'duplicates', ''),
        ('table', 'ledger_meta', ''),
        ('trigger', 'events_no_update', 'CREATE TRIGGER events_no_update BEFORE UPDATE ON events FOR EACH STATEMENT INSERT '
            || 'INTO _deny SELECT "error"(''events are append-only: to correct one, ingest a new '
            || 'event that names it (trial_invalidated, trial_replaced)'');'),
        ('trigger', 'events_no_delete', 'CREATE TRIGGER events_no_delete BEFORE DELETE ON events FOR EACH STATEMENT INSERT '
            || 'INTO _deny SELECT "error"(''events are append-only: to take one out of the count, '
            || 'ingest a trial_invalidated event that names it'');'),
        ('trigger', 'checkpoints_no_update', 'CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints FOR EACH STATEMENT'
            || ' INSERT INTO _deny SELECT "error"(''checkpoints are append-only: run oakledger '
            || 'checkpoint to make a new one'');'),
        ('trigger', 'checkpoints_no_delete', 'CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints FOR EACH STATEMENT'
            || ' INSERT INTO _deny SELECT "error"(''checkpoints are append-only: run oakledger '
            || 'checkpoint to make a new one'');'),
        ('check', 'event_id is the leaf hash of payload', 'CHECK((event_id = sha256((chr(0) || payload))))'),
        ('check', 'condition_key matches payload', 'CHECK((condition_key IS NOT DISTINCT FROM sha256((payload -> ''$.condition''))))'),
        ('check', 'columns match payload', 'CHECK((json_extract_string(payload, list_value(''$.kind'', ''$.source'', ''$.ordinal'', '
            || '''$.recorded_at_ns'', ''$.campaign'', ''$.lane'', ''$.scenario'', ''$.scenario_version'', '
            || '''$.subject'', ''$.trial'', ''$.repetition'', ''$.status'', ''$.started_at_ns'', ''$.verdict'', '
            || '''$.reader_event_id'', ''$.outcome'', ''$.reason'')) IS NOT DISTINCT FROM '
            || 'list_value(((kind || ''/'') || kind_version), "source", CAST(ordinal AS VARCHAR), '
            || 'CAST(recorded_at_ns AS VARCHAR), campaign, lane, scenario, CAST(scenario_version AS '
            || 'VARCHAR), subject, trial, CAST(repetition AS VARCHAR), status, CAST(started_at_ns AS'
            || ' VARCHAR), verdict, reader_event_id, outcome, reason)))'),
        ('primary key', 'events', 'PRIMARY KEY(origin, seq)'),
        ('primary key', 'duplicates', 'PRIMARY KEY(origin, seq)'),
        ('primary key', 'checkpoints', 'PRIMARY KEY(origin, size)')
),
present (kind, name, definition) AS (
    SELECT 'table', table_name, '' FROM duckdb_tables() WHERE database_name = 'ledger' AND schema_name = 'main'
    UNION ALL
    SELECT 'trigger', trigger_name, sql FROM duckdb_triggers()
    WHERE database_name = 'ledger' AND schema_name = 'main'
    UNION ALL
    SELECT lower(constraint_type), table_name, constraint_text FROM duckdb_constraints()
    WHERE database_name = 'ledger' AND schema_name = 'main' AND constraint_type IN ('CHECK', 'PRIMARY KEY')
),
extra (kind, name) AS (
    SELECT 'macro', function_name FROM duckdb_functions() WHERE database_name = 'ledger' AND NOT internal
    UNION ALL
    SELECT 'type', type_name FROM duckdb_types() WHERE database_name = 'ledger' AND NOT internal
)
SELECT
    w.kind, w.name,
    CASE WHEN EXISTS (
        SELECT 1 FROM present p
        WHERE p.kind = w.kind AND p.definition = w.definition AND (p.name = w.name OR p.kind = 'check')
    ) THEN 'present' ELSE 'MISSING' END AS state
FROM wanted w
UNION ALL
SELECT kind, name, 'EXTRA' FROM extra
ORDER BY state, kind, name;
