"""What a user can mend."""


class UserError(Exception):
    """Something is wrong with what the user gave; the message says what, what is allowed, and what to do."""
