"""Measurements: `python -m bench` runs them all and writes the table of docs/benchmarks.md."""
