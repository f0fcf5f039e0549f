"""Readers: what a repository's HEAD really contains, every hash verified on the way.

The two isolated scripts (`oak_sqlite_reader.py`, `git_object_reader.py`) run as `python -I` and need
nothing outside the standard library. Nothing in this package imports the ledger, the oracles or the
qualification rules.
"""
