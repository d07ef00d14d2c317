"""What a person did wrong, whichever part of berth finds it."""


class UserError(Exception):
    """Input that cannot be used; the message says which and why. Ends a command with status 2."""
