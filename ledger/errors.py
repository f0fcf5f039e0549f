"""The errors that a person may meet, each with an exit status and a next step in its one-line message."""

from __future__ import annotations

#: Exit statuses of the ledger commands (design section 9 fixes those of `qualify`).
EXIT_OK = 0
EXIT_NEGATIVE = 1
EXIT_USAGE = 2
EXIT_LEDGER = 3
EXIT_NO_CAMPAIGN = 4
EXIT_INTERRUPTED = 130


class OakledgerError(Exception):
    """A problem to tell a person about: one line saying what was found, where, and what to do next."""

    exit_status = EXIT_USAGE


class LedgerOpenError(OakledgerError):
    """The ledger path cannot be opened: missing, a directory, locked, newer, not writable."""


class LedgerDamagedError(OakledgerError):
    """The file is a ledger or was one, and does not verify."""

    exit_status = EXIT_LEDGER


class ProducerKeyConflictError(OakledgerError):
    """The same (source, ordinal) came with other content."""


class BadEventError(OakledgerError):
    """An event or row is not valid."""


class NoSuchCampaignError(OakledgerError):
    """No event mentions the campaign."""

    exit_status = EXIT_NO_CAMPAIGN
