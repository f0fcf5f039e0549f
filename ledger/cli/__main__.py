"""`python -m ledger.cli` is the same as the console script."""

from ledger.cli.root import main

main()
