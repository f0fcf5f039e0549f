"""Oracles: one contract a scenario, the same for every subject; pass, fail or unmeasured."""
