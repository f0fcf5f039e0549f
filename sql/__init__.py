"""The SQL that oakledger ships: schema, views and audit queries, one subject a file."""
