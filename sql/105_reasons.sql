-- reasons: who owns the reason why something was not read or judged. Grain: one row per reason code.
-- Columns: reason; owner (harness: bounds, instrument, machine, contract; subject: state that the subject controls);
-- before_head (the repository has no HEAD that a reader could look at). The codes are those of docs/reader-report.md and docs/contracts.md.
-- Serves rules 1 and 8: an unmeasured attempt of the subject's making is counted as its failure in the second rate, so
-- nobody gains by being unreadable. A code that is not listed is counted against the subject too.
CREATE OR REPLACE VIEW reasons AS
SELECT reason, owner, before_head
FROM (VALUES
    ('store_missing', 'subject', true),
    ('store_linked', 'subject', true),
    ('store_not_regular', 'subject', true),
    ('store_redirected', 'subject', true),
    ('ref_not_regular', 'subject', true),
    ('no_committed_head', 'subject', true),
    ('malformed_head', 'subject', true),
    ('head_cycle', 'subject', true),
    ('head_commit_missing', 'subject', true),
    ('unsafe_path', 'subject', false),
    ('usage', 'harness', false),
    ('commit_mismatch', 'subject', false),
    ('tree_mismatch', 'subject', false),
    ('blob_mismatch', 'subject', false),
    ('chunk_mismatch', 'subject', false),
    ('size_mismatch', 'subject', false),
    ('store_damaged', 'subject', false),
    ('content_absent', 'subject', false),
    ('content_absent_sparse', 'subject', false),
    ('content_absent_restricted', 'subject', false),
    ('content_absent_lost', 'subject', false),
    ('not_quiescent', 'subject', false),
    ('store_changed', 'subject', false),
    ('clone_in_progress', 'subject', false),
    ('unrecognised_format', 'subject', false),
    ('newer_format', 'subject', false),
    ('unsupported_format', 'subject', false),
    ('alternates', 'subject', false),
    ('commit_header_not_reproducible', 'subject', false),
    ('bound_object_bytes', 'harness', false),
    ('bound_total_bytes', 'harness', false),
    ('bound_entries', 'harness', false),
    ('bound_depth', 'harness', false),
    ('bound_store_bytes', 'harness', false),
    ('deadline', 'harness', false),
    ('memory', 'harness', false),
    ('instrument_missing', 'harness', false),
    ('instrument_failed', 'harness', false),
    ('destination', 'harness', false),
    ('read_error', 'harness', false),
    -- Reasons of oracles (docs/contracts.md).
    ('unmeasured_by_contract', 'harness', false),
    ('scope_differs', 'harness', false),
    ('no_manifest', 'harness', false),
    ('content_not_materialised', 'harness', false),
    ('no_worktree', 'harness', false),
    ('tests_not_run', 'harness', false),
    ('tests_not_prepared', 'harness', false),
    ('tests_instrument_missing', 'harness', false),
    ('tests_instrument_failed', 'harness', false),
    ('tests_none_ran', 'subject', false),
    ('controls_missing', 'harness', false),
    ('controls_not_refused', 'harness', false),
    -- Reasons that these views give themselves.
    ('no_verdict', 'harness', false),
    ('verdict_refused', 'harness', false),
    ('run_facts_missing', 'harness', false)
) AS t (reason, owner, before_head);

-- infrastructure_codes: status codes that say that a service, a machine or the harness failed, not the agent.
-- Grain: one row per pattern. Columns: pattern (regular expression over the whole status_code), why.
-- Serves rule 8: such an attempt is a harness failure, whatever status it was booked under.
CREATE OR REPLACE VIEW infrastructure_codes AS
SELECT pattern, why
FROM (VALUES
    ('http_(401|402|403|407|408|409|421|423|425|429|5[0-9][0-9])', 'the model service refused or failed'),
    ('(rate_limit|rate_limited|quota|quota_exceeded|overloaded|service_unavailable|api_error|auth_error)(_.*)?',
     'the model service refused or failed'),
    ('(network|dns|tls|connection|socket|proxy)(_.*)?', 'the network failed'),
    ('(docker|container|image|sandbox|vm|host|machine|node|disk|filesystem)_.*', 'the machine or its container failed'),
    ('out_of_disk|no_space|machine|host|preempted|evicted|rebooted', 'the machine failed'),
    ('(harness|setup|teardown|environment|fixture|instrument|verifier|parser|parse)(_.*)?', 'the harness failed'),
    ('interrupted|cancelled|canceled|aborted_by_operator|operator_abort', 'an operator ended the run')
) AS t (pattern, why);
