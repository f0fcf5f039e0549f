-- ledger_events: the events that count. Grain: one row per event, whatever number of ledgers hold a copy.
-- Columns: those of the table `events`. Every other view starts here; rule 14 checks that `duplicates` hides nothing.
CREATE OR REPLACE VIEW ledger_events AS
SELECT e.*
FROM events AS e
ANTI JOIN duplicates AS d ON d.origin = e.origin AND d.seq = e.seq;

-- ledger_history: the same events, for the few questions that reach beyond one campaign (a trial identity used twice,
-- earlier campaigns with the same plan, negative controls). Grain and columns as ledger_events. `oakledger qualify`
-- looks at ledger_events of one campaign and at ledger_history of the whole ledger.
CREATE OR REPLACE VIEW ledger_history AS
SELECT e.*
FROM events AS e
ANTI JOIN duplicates AS d ON d.origin = e.origin AND d.seq = e.seq;
