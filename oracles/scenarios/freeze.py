"""Writes the contracts of exact trees, whose digests follow from fixtures.

Run as `python -m oracles.scenarios.freeze`.

A contract is data and is reviewed as data; this only spares people from typing digests. A test fails when a
shipped file is not what this would write.
"""

from __future__ import annotations

import json
import os

from oracles.scenarios import SCENARIOS
from oracles.scenarios.files import manifest

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "contracts")

_HEAD = """schema = "oakledger-contract/1"
scenario = "{name}"
scenario_version = 1
oracle_version = 1
fixture_version = 1
title = "{title}"
evidence = "committed_tree"
"""

_EXACT = {
    "wide_config_refactor": (
        "Rename one key in every configuration file, and change nothing else",
        "config/billing/dev.toml",
    ),
    "large_asset_manifest": ("Replace assets and keep their manifest right", "manifest.json"),
}


def exact(name: str) -> str:
    """Return the contract of a scenario with an exact tree."""
    title, control = _EXACT[name]
    solution = SCENARIOS[name].solution
    assert solution is not None
    before = SCENARIOS[name].fixture()[control].content.decode()
    files = "".join(
        f'  {{ path = {json.dumps(path)}, mode = "{mode}", sha256 = "{digest}" }},\n'
        for path, mode, digest in manifest(solution())
    )
    return (
        _HEAD.format(name=name, title=title) + f"tree = [\n{files}]\n\n[[controls.wrong]]\n"
        f"path = {json.dumps(control)}\ncontent = {json.dumps(before)}\n"
    )


def contracts() -> dict[str, str]:
    """Return file name and text of every contract that is written here."""
    return {f"{name}.toml": exact(name) for name in _EXACT}


def main() -> None:
    """Write the files."""
    for name, content in contracts().items():
        with open(os.path.join(_FOLDER, name), "w", encoding="utf-8") as stream:
            stream.write(content)


if __name__ == "__main__":
    main()
