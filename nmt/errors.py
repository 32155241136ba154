"""Errors that users can fix. Every command prints the message without a traceback and exits with status 2."""

import signal


class UserError(Exception):
    """An error that the user can fix. The message says what is wrong, what is allowed, and what to do."""


def describe_end(status: int) -> str:
    """Returns how a process ended, given its exit status, which is negative for a signal."""
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
