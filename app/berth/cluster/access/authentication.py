"""Authentication by bearer token."""

from collections.abc import Sequence

from berth.cluster.access.service_account_tokens import (
    API_AUDIENCE,
    Authenticated,
    InvalidTokenError,
    ServiceAccountTokens,
)
from berth.cluster.access.tokens import Tokens


class TokenAuthenticator:
    """Asks the table of tokens first, then the signature."""

    def __init__(self, tokens: Tokens, accounts: ServiceAccountTokens) -> None:
        self._tokens = tokens
        self._accounts = accounts

    def authenticate(self, token: str, audiences: Sequence[str] = ()) -> Authenticated:
        """Return whose token it is, and for which of *audiences* it is good.

        Without *audiences* it must be good for the API server. Raises InvalidTokenError.
        """
        known = self._tokens.find(token)
        if known is not None and not audiences:
            return Authenticated(known)
        wanted = tuple(audiences) or (API_AUDIENCE,)
        found = self._accounts.authenticate(token) if known is None else Authenticated(known)
        shared = tuple(each for each in wanted if each in found.audiences)
        if not shared:
            raise InvalidTokenError(
                f"token audiences {_quoted(found.audiences)} is invalid for the target "
                f"audiences {_quoted(wanted)}"
            )
        return Authenticated(found.user, shared)


def _quoted(words: Sequence[str]) -> str:
    """Write a list as Go's ``%q`` does."""
    return "[" + " ".join(f'"{word}"' for word in words) + "]"
