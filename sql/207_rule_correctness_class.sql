-- rule_07_correctness_class: successful compared subjects stand on one and the same evidence, read by one reader with one scope.
-- Grain and columns as rule_01_planned_slots. A class is derived from events; a recorded relation that claims more than the
-- facts is a violation, and so is a pass that no reader stands behind.
CREATE OR REPLACE VIEW rule_07_correctness_class AS
WITH found AS (
    SELECT campaign, what, detail, event_ids FROM empty_campaigns
    UNION ALL BY NAME
    SELECT l.campaign, 'nothing_measured' AS what, 'no planned trial has a measured outcome: there is no evidence' AS detail,
        c.declared_event_ids AS event_ids
    FROM campaign_lanes AS l
    JOIN campaigns AS c USING (campaign)
    ANTI JOIN (SELECT DISTINCT campaign FROM slot_outcomes WHERE measured) AS m ON m.campaign = l.campaign
    WHERE l.attempts > 0 AND c.declarations > 0
    UNION ALL BY NAME
    SELECT p.campaign, 'classes_differ' AS what, p.scenario, p.scenario_version, p.condition_key,
        concat('successes of different classes: ',
            string_agg(concat(p.subject, ' ', coalesce(p.correctness_class, 'of no class'), ' (', p.successes, ')'), '; '
                ORDER BY p.subject, p.correctness_class)) AS detail,
        (
            SELECT list(e.event_id)
            FROM (
                SELECT campaign, scenario, scenario_version, condition_key, min(event_id) AS event_id
                FROM correctness_classes
                WHERE verdict = 'pass' AND refused IS NULL
                GROUP BY campaign, scenario, scenario_version, condition_key, subject, correctness_class
            ) AS e
            WHERE e.campaign = p.campaign AND e.scenario = p.scenario AND e.scenario_version = p.scenario_version
                AND e.condition_key = p.condition_key
        ) AS event_ids
    FROM class_pairs AS p
    GROUP BY p.campaign, p.scenario, p.scenario_version, p.condition_key
    HAVING count(DISTINCT p.correctness_class) > 1
    UNION ALL BY NAME
    SELECT campaign, 'class_unknown' AS what, scenario, scenario_version, condition_key, subject,
        concat(count(*), ' success(es) without a class: ',
            CASE
                WHEN bool_or(independence = 'unqualified')
                    THEN 'nobody says how the instrument relates to the subject (qualified_by, qualified_because)'
                ELSE 'the verdict does not say how deep the committed content was checked'
            END) AS detail,
        list(event_id ORDER BY event_id) AS event_ids
    FROM correctness_classes
    WHERE verdict = 'pass' AND refused IS NULL AND correctness_class IS NULL
    GROUP BY campaign, scenario, scenario_version, condition_key, subject
    UNION ALL BY NAME
    SELECT c.campaign, 'relation_overclaimed' AS what, c.scenario, c.scenario_version, c.condition_key, c.subject,
        concat(count(*), ' reading(s) recorded as ', c.relation, ' whose facts say ', c.independence) AS detail,
        list(c.reader_event_id ORDER BY c.reader_event_id) AS event_ids
    FROM correctness_classes AS c
    WHERE c.overclaimed
    GROUP BY c.campaign, c.scenario, c.scenario_version, c.condition_key, c.subject, c.relation, c.independence
    UNION ALL BY NAME
    SELECT campaign, concat('pass_', refused) AS what, scenario, scenario_version, condition_key, subject, trial,
        concat('a pass that does not count: ', replace(refused, '_', ' ')) AS detail,
        list_filter([event_id, reader_event_id], lambda x: x IS NOT NULL) AS event_ids
    FROM correctness_classes
    WHERE verdict = 'pass' AND refused NOT IN (
        'no_trial', 'scenario_not_planned', 'other_scenario', 'oracle_version', 'fixture_version', 'contract'
    )
    UNION ALL BY NAME
    SELECT campaign, 'reader_changes' AS what,
        concat(vcs, ' was read by different readers, codes or backends') AS detail,
        [arg_min(event_id, reader_key), arg_max(event_id, reader_key)] AS event_ids
    FROM (
        SELECT campaign, vcs, reader_key, min(reader_event_id) AS event_id
        FROM correctness_classes
        GROUP BY ALL
    )
    GROUP BY campaign, vcs
    HAVING count(reader_key) > 1
    UNION ALL BY NAME
    SELECT campaign, 'instrument_changes' AS what, condition_key,
        concat(vcs, ' was read with different instruments or codecs') AS detail,
        [arg_min(event_id, instrument_key), arg_max(event_id, instrument_key)] AS event_ids
    FROM (
        SELECT campaign, vcs, condition_key, instrument_key, min(reader_event_id) AS event_id
        FROM correctness_classes
        GROUP BY ALL
    )
    GROUP BY campaign, vcs, condition_key
    HAVING count(instrument_key) > 1
    UNION ALL BY NAME
    SELECT campaign, 'scope_differs' AS what, scenario, scenario_version,
        'read with different scopes' AS detail,
        [arg_min(event_id, scope_key), arg_max(event_id, scope_key)] AS event_ids
    FROM (
        SELECT campaign, scenario, scenario_version, scope_key, min(reader_event_id) AS event_id
        FROM correctness_classes
        GROUP BY ALL
    )
    GROUP BY campaign, scenario, scenario_version
    HAVING count(scope_key) > 1
)
SELECT f.*, NOT coalesce(s.diagnostic, false) AS binding
FROM found AS f
LEFT JOIN campaign_scenarios AS s
    ON s.campaign = f.campaign AND s.scenario = f.scenario AND s.scenario_version = f.scenario_version;
