"""Mistakes of the user. Every command prints them in one line and exits with status 2."""


class UserError(Exception):
    """A mistake that the user can mend. The message says what came, what is allowed, and what to do."""
