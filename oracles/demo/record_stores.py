"""Records the Oak stores that the demo uses where no Oak client is installed.

`python -m oracles.demo.record_stores` with an `oak` on PATH; it writes into `oracles/demo/stores`.
"""

from __future__ import annotations

import json
import lzma
import os
import tempfile

from oracles.demo.plan import RECIPES
from oracles.demo.subjects import find_subjects


def main() -> None:
    """Record every recipe that the demo runs."""
    oak = next(s for s in find_subjects() if s.vcs == "oak" and s.program is not None)
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stores")
    os.makedirs(target, exist_ok=True)
    for scenario, recipes in RECIPES.items():
        for recipe in recipes:
            with tempfile.TemporaryDirectory() as folder:
                ran = oak.run(scenario, recipe, folder)
                with open(os.path.join(ran.repo, ".oak", "oak.db"), "rb") as stream:
                    packed = lzma.compress(stream.read(), preset=9)
            with open(os.path.join(target, f"{scenario}-{recipe}.db.xz"), "wb") as stream:
                stream.write(packed)
    with open(os.path.join(target, "facts.json"), "w", encoding="utf-8") as facts:
        json.dump({"version": oak.version, "binary_sha256": oak.binary_sha256}, facts, indent=2)
        facts.write("\n")


if __name__ == "__main__":
    main()
