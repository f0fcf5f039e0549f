-- rule_06_identity: one known binary, version and source behind each subject, and one scenario, oracle and fixture version.
-- Grain and columns as rule_01_planned_slots. Identity is that of the trial's record, or, where the record is silent, the one
-- that subject_identified gives for the subject in this campaign, if it gives one alone. Binary and version must be known.
-- The source may be unknown (an installed release), but not in part of the trials, and a known source must be known clean.
CREATE OR REPLACE VIEW rule_06_identity AS
WITH said AS (
    SELECT
        campaign, subject,
        CASE WHEN count(DISTINCT binary_sha256) = 1 THEN any_value(binary_sha256) END AS binary_sha256,
        CASE WHEN count(DISTINCT version) = 1 THEN any_value(version) END AS version,
        CASE WHEN count(DISTINCT source_sha256) = 1 THEN any_value(source_sha256) END AS source_sha256,
        CASE WHEN count(DISTINCT dirty) = 1 THEN any_value(dirty) END AS dirty,
        list(binary_sha256) FILTER (binary_sha256 IS NOT NULL) AS binaries,
        list(event_id ORDER BY event_id) AS event_ids
    FROM subject_identities
    GROUP BY campaign, subject
),
kinds AS (
    -- One row for each different way in which trials of a subject under a condition say what ran: few rows.
    SELECT
        campaign, condition_key, subject, binary_key, version_key, source_key, subject_dirty,
        status IN ('completed', 'timeout', 'error') AS ran, count(*) AS trials, min(event_id) AS event_id
    FROM trial_facts
    GROUP BY ALL
),
texts AS (
    SELECT t.event_id, t.subject_binary_sha256, t.subject_version, t.subject_source_sha256
    FROM trials AS t
    SEMI JOIN kinds AS k ON k.event_id = t.event_id
),
known AS (
    SELECT
        k.campaign, k.condition_key, k.subject, k.event_id, k.ran, k.trials,
        coalesce(x.subject_binary_sha256, s.binary_sha256) AS binary_sha256,
        coalesce(x.subject_version, s.version) AS version,
        coalesce(x.subject_source_sha256, s.source_sha256) AS source_sha256,
        coalesce(k.subject_dirty, s.dirty) AS dirty,
        s.event_ids AS said_in,
        -- Null, which is no contradiction, where the record or every identification is silent.
        NOT list_contains(s.binaries, x.subject_binary_sha256) AS contradicted
    FROM kinds AS k
    JOIN texts AS x USING (event_id)
    LEFT JOIN said AS s USING (campaign, subject)
),
identities AS (
    -- Of the events that name one binary, version or source the first by id: the same one every time.
    SELECT
        campaign, condition_key, subject,
        min(binary_sha256) AS first_binary, max(binary_sha256) AS last_binary,
        [arg_min(event_id, binary_sha256 || chr(10) || event_id), arg_max(event_id, binary_sha256 || chr(10) || event_id)]
            AS binary_events,
        min(version) AS first_version, max(version) AS last_version,
        [arg_min(event_id, version || chr(10) || event_id), arg_max(event_id, version || chr(10) || event_id)]
            AS version_events,
        min(source_sha256) AS first_source, max(source_sha256) AS last_source,
        [arg_min(event_id, source_sha256 || chr(10) || event_id), arg_max(event_id, source_sha256 || chr(10) || event_id)]
            AS source_events,
        sum(trials) FILTER (binary_sha256 IS NULL AND ran) AS without_binary,
        min(event_id) FILTER (binary_sha256 IS NULL AND ran) AS without_binary_event,
        sum(trials) FILTER (version IS NULL AND ran) AS without_version,
        min(event_id) FILTER (version IS NULL AND ran) AS without_version_event,
        sum(trials) FILTER (source_sha256 IS NULL AND ran) AS without_source,
        min(event_id) FILTER (source_sha256 IS NULL AND ran) AS without_source_event,
        sum(trials) FILTER (dirty) AS dirty,
        min(event_id) FILTER (dirty) AS dirty_event,
        sum(trials) FILTER (dirty IS NULL AND source_sha256 IS NOT NULL AND ran) AS maybe_dirty,
        min(event_id) FILTER (dirty IS NULL AND source_sha256 IS NOT NULL AND ran) AS maybe_dirty_event,
        sum(trials) FILTER (contradicted) AS contradicted,
        min(event_id) FILTER (contradicted) AS contradicted_event,
        any_value(said_in) AS said_in
    FROM known
    GROUP BY campaign, condition_key, subject
),
found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT campaign, 'binary_changes' AS what, condition_key, subject,
        concat('binaries ', first_binary[:12], ' and ', last_binary[:12], ' under one name') AS detail,
        binary_events AS event_ids
    FROM identities
    WHERE first_binary <> last_binary
    UNION ALL BY NAME
    SELECT campaign, 'version_changes' AS what, condition_key, subject,
        concat('versions ', first_version, ' and ', last_version, ' under one name') AS detail,
        version_events AS event_ids
    FROM identities
    WHERE first_version <> last_version
    UNION ALL BY NAME
    SELECT campaign, 'source_changes' AS what, condition_key, subject,
        concat('sources ', first_source[:12], ' and ', last_source[:12], ' under one name') AS detail,
        source_events AS event_ids
    FROM identities
    WHERE first_source <> last_source
    UNION ALL BY NAME
    SELECT campaign, 'binary_unknown' AS what, condition_key, subject,
        concat(without_binary, ' trial(s) do not say which binary ran') AS detail, [without_binary_event] AS event_ids
    FROM identities
    WHERE without_binary IS NOT NULL
    UNION ALL BY NAME
    SELECT campaign, 'version_unknown' AS what, condition_key, subject,
        concat(without_version, ' trial(s) do not say which version ran') AS detail, [without_version_event] AS event_ids
    FROM identities
    WHERE without_version IS NOT NULL
    UNION ALL BY NAME
    SELECT campaign, 'source_unknown' AS what, condition_key, subject,
        concat(without_source, ' trial(s) do not say which source the subject was built from, and others do') AS detail,
        [without_source_event] AS event_ids
    FROM identities
    WHERE without_source IS NOT NULL AND first_source IS NOT NULL
    UNION ALL BY NAME
    SELECT campaign, 'dirty_source' AS what, condition_key, subject,
        concat(dirty, ' trial(s) ran a subject built from a source with uncommitted changes') AS detail,
        [dirty_event] AS event_ids
    FROM identities
    WHERE dirty IS NOT NULL
    UNION ALL BY NAME
    SELECT campaign, 'dirty_unknown' AS what, condition_key, subject,
        concat(maybe_dirty, ' trial(s) name a source and do not say whether it was clean') AS detail,
        [maybe_dirty_event] AS event_ids
    FROM identities
    WHERE maybe_dirty IS NOT NULL
    UNION ALL BY NAME
    SELECT campaign, 'identity_contradicted' AS what, condition_key, subject,
        concat(contradicted, ' trial(s) ran another binary than the campaign says the subject is') AS detail,
        list_concat([contradicted_event], said_in) AS event_ids
    FROM identities
    WHERE contradicted IS NOT NULL
    UNION ALL BY NAME
    SELECT t.campaign, 'fixture_differs' AS what, t.scenario, t.scenario_version, t.condition_key, t.subject,
        concat(count(*), ' trial(s) on fixture version ', t.fixture_version, ', the plan says ', s.fixture_version) AS detail,
        list(t.event_id ORDER BY t.event_id) AS event_ids
    FROM trial_facts AS t
    JOIN campaign_scenarios AS s USING (campaign, scenario, scenario_version)
    WHERE t.fixture_version <> s.fixture_version
    GROUP BY t.campaign, t.scenario, t.scenario_version, t.condition_key, t.subject, t.fixture_version, s.fixture_version
    UNION ALL BY NAME
    SELECT campaign, 'fixture_unknown' AS what, scenario, scenario_version, condition_key, subject,
        concat(count(*), ' measured trial(s) of which neither the record nor a verdict says the fixture version') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM trial_outcomes
    WHERE measured AND fixture_version IS NULL AND passes + fails = 0
    GROUP BY campaign, scenario, scenario_version, condition_key, subject
    UNION ALL BY NAME
    SELECT campaign, concat('verdict_', refused) AS what, scenario, scenario_version, condition_key, subject,
        concat(count(*), ' verdict(s) of another ', replace(replace(refused, 'other_', ''), '_', ' '),
            ' than the trial and the plan say: they do not count') AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM correctness_classes
    WHERE refused IN ('other_scenario', 'oracle_version', 'fixture_version', 'contract')
    GROUP BY campaign, refused, scenario, scenario_version, condition_key, subject
    UNION ALL BY NAME
    SELECT campaign, 'contract_differs' AS what, scenario, scenario_version,
        'verdicts rest on different task contracts' AS detail,
        [arg_min(event_id, contract_key), arg_max(event_id, contract_key)] AS event_ids
    FROM (
        SELECT campaign, scenario, scenario_version, contract_key, min(event_id) AS event_id
        FROM correctness_classes
        WHERE refused IS NULL
        GROUP BY ALL
    )
    GROUP BY campaign, scenario, scenario_version
    HAVING count(*) > 1
)
SELECT f.*, NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
