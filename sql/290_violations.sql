-- violations: everything that the rules find, side by side. Grain: one row per violation.
-- Columns: rule (number), rule_id, and those of rule_01_planned_slots. `oakledger qualify` reads the rule views one by one;
-- this view is for people who ask in SQL.
CREATE OR REPLACE VIEW violations AS
SELECT 1 AS rule, 'planned_slots' AS rule_id, * FROM rule_01_planned_slots
UNION ALL BY NAME
SELECT 2 AS rule, 'sample_size' AS rule_id, * FROM rule_02_sample_size
UNION ALL BY NAME
SELECT 3 AS rule, 'condition_coverage' AS rule_id, * FROM rule_03_condition_coverage
UNION ALL BY NAME
SELECT 4 AS rule, 'environment' AS rule_id, * FROM rule_04_environment
UNION ALL BY NAME
SELECT 5 AS rule, 'order' AS rule_id, * FROM rule_05_order
UNION ALL BY NAME
SELECT 6 AS rule, 'identity' AS rule_id, * FROM rule_06_identity
UNION ALL BY NAME
SELECT 7 AS rule, 'correctness_class' AS rule_id, * FROM rule_07_correctness_class
UNION ALL BY NAME
SELECT 8 AS rule, 'failures' AS rule_id, * FROM rule_08_failures
UNION ALL BY NAME
SELECT 9 AS rule, 'exact_output' AS rule_id, * FROM rule_09_exact_output
UNION ALL BY NAME
SELECT 10 AS rule, 'conflicts' AS rule_id, * FROM rule_10_conflicts
UNION ALL BY NAME
SELECT 11 AS rule, 'noise_floor' AS rule_id, * FROM rule_11_noise_floor
UNION ALL BY NAME
SELECT 12 AS rule, 'preregistration' AS rule_id, * FROM rule_12_preregistration
UNION ALL BY NAME
SELECT 13 AS rule, 'study_criteria' AS rule_id, * FROM rule_13_study_criteria
UNION ALL BY NAME
SELECT 14 AS rule, 'ledger' AS rule_id, * FROM rule_14_ledger;
