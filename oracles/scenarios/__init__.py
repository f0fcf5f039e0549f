"""The shipped scenarios: fixtures and recipes, one module each, for the contracts beside this folder."""

from oracles.scenarios import (
    branch_switch_wip,
    bugfix_test_loop,
    history_archaeology,
    large_asset_manifest,
    merge_conflict_resolution,
    rename_across_directories,
    sync_pull_dirty,
    undo_bad_commit,
    wide_config_refactor,
)

SCENARIOS = {
    module.SCENARIO.name: module.SCENARIO
    for module in (
        wide_config_refactor,
        large_asset_manifest,
        bugfix_test_loop,
        sync_pull_dirty,
        branch_switch_wip,
        merge_conflict_resolution,
        undo_bad_commit,
        rename_across_directories,
        history_archaeology,
    )
}
