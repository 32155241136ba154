"""What a user did wrong, said in one line; every command prints it and exits with status 2."""


class UserError(Exception):
    """A mistake the user can mend. The message says what came, what is allowed and what to do."""
