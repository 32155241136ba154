"""Errors that users can fix. Every command prints the message without a traceback and exits with status 2."""


class UserError(Exception):
    """An error that the user can fix. The message says what is wrong, what is allowed, and what to do."""
