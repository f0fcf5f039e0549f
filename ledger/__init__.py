"""The ledger: immutable events in a DuckDB file, with an RFC 6962 hash tree over them."""
