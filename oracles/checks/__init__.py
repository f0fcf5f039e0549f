"""The checks that oracles are made of, one module a kind."""
