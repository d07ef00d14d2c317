"""The identity of a cluster across restarts: its keys, its lasting tokens, its port."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import msgspec

from berth.cluster.access.signing_key import SigningKey, new_signing_key
from berth.cluster.access.tokens import Tokens
from berth.cluster.access.users import ADMIN, KUBELETS, MONITORING, SCHEDULER, User
from berth.cluster.storage.database import Database
from berth.runtime.certificates import KeyPair, authority
from berth.runtime.clock import Clock

LASTING: Final = (ADMIN, SCHEDULER, KUBELETS, MONITORING)
"""Users whose tokens are written to files."""


class Identity:
    """Kept in *database*; without one it is new with every start."""

    def __init__(self, database: Database | None, tokens: Tokens, *, clock: Clock) -> None:
        """Tokens that were written to files are good again in *tokens*."""
        self._database = database
        self._tokens = tokens
        self._clock = clock
        for user in LASTING:
            kept = None if database is None else database.secret(_token(user))
            if kept is not None:
                tokens.add(kept.decode(), user)

    @cached_property
    def authority(self) -> KeyPair:
        """The certificate authority of the cluster."""

        def make() -> bytes:
            now = datetime.fromtimestamp(self._clock.now(), UTC)
            return msgspec.json.encode(authority(now=now, name="berth"))

        return msgspec.json.decode(self._kept("authority", make), type=KeyPair)

    @cached_property
    def signing_key(self) -> SigningKey:
        """What signs service account tokens."""
        return SigningKey(self._kept("service-account-key", new_signing_key))

    def token_of(self, user: User) -> str:
        """Return the token that the files of *user*, one of LASTING, have."""
        return self._kept(_token(user), lambda: self._tokens.issue(user).encode()).decode()

    @property
    def port(self) -> int:
        """Where the API was served last; 0 if it never was."""
        kept = None if self._database is None else self._database.secret("port")
        return 0 if kept is None else int(kept)

    @port.setter
    def port(self, number: int) -> None:
        if self._database is not None:
            self._database.keep_secret("port", b"%d" % number)

    def _kept(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return what was kept under *name*, or keep what *make* returns."""
        if self._database is None:
            return make()
        kept = self._database.secret(name)
        if kept is None:
            kept = make()
            self._database.keep_secret(name, kept)
        return kept


def _token(user: User) -> str:
    return f"token/{user.name}"
