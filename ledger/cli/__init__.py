"""The command line: one module a command, options and output shared."""
