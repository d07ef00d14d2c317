"""Bearer tokens: whose they are. Opaque strings, known to this server only."""

import csv
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Final

from berth.clock import Clock
from berth.cluster.access.users import AUTHENTICATED, User, service_account, split_service_account
from berth.cluster.storage.store import NotFoundError, Store
from berth.errors import UserError

API_AUDIENCE: Final = "https://kubernetes.default.svc.cluster.local"
"""Whom tokens are for that do not say it."""

TOKEN_BYTES: Final = 32

TOKENS_OF_USER: Final = 1_000
"""Tokens of a user that are remembered until they are over. A real server remembers none: its
tokens are signed."""

SERVICE_ACCOUNTS_KEY: Final = "serviceaccounts"
"""Where the store keeps them."""


class TokenFileError(UserError):
    """A token file cannot be used; the message names the file and the line."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token."""

    user: User
    audiences: tuple[str, ...] = (API_AUDIENCE,)
    expires: float | None = None
    """Unix seconds; None: never."""


def draw_token() -> str:
    """Return a new secret."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Tokens:
    """The table of tokens. *draw* makes new ones."""

    def __init__(self, *, clock: Clock, draw: Callable[[], str] = draw_token) -> None:
        self._clock = clock
        self._draw = draw
        self._tokens: dict[str, Token] = {}
        self._ends: list[tuple[float, str]] = []
        """A heap: when tokens are over."""
        self._issued: dict[str, deque[str]] = {}
        """By user: his tokens that are over some time, oldest first."""

    def add(self, token: str, user: User) -> None:
        """Let *token* be *user*'s for ever."""
        self._tokens[token] = Token(user)

    def issue(
        self,
        user: User,
        *,
        seconds: float | None = None,
        audiences: Sequence[str] = (API_AUDIENCE,),
    ) -> str:
        """Return a new token of *user* that is good for so many seconds; None: for ever.

        Of tokens that are over some time each user has :data:`TOKENS_OF_USER`: the oldest ends.
        """
        now = self._clock.now()
        while self._ends and self._ends[0][0] <= now:
            self._forget(heappop(self._ends)[1])
        token = self._draw()
        expires = None if seconds is None else now + seconds
        self._tokens[token] = Token(user, tuple(audiences), expires)
        if expires is not None:
            heappush(self._ends, (expires, token))
            issued = self._issued.setdefault(user.name, deque())
            issued.append(token)
            if len(issued) > TOKENS_OF_USER:
                self._forget(issued[0])
                self._tidy()
        return token

    def _forget(self, token: str) -> None:
        found = self._tokens.pop(token, None)
        if found is None:
            return
        issued = self._issued[found.user.name]
        issued.remove(token)
        if not issued:
            del self._issued[found.user.name]

    def _tidy(self) -> None:
        """Drop the ends of tokens that are gone, when they are as many as the others."""
        if len(self._ends) > 2 * len(self._tokens):
            self._ends = [each for each in self._ends if each[1] in self._tokens]
            heapify(self._ends)

    def find(self, token: str, store: Store) -> Token | None:
        """Return what is known of a token that is good now; None for all others.

        That of a service account dies with it; *store* tells.
        """
        found = self._tokens.get(token)
        if found is None or found.expires is None:
            return found
        if _is_over(found, self._clock.now()) or not _exists(found.user, store):
            return None
        return found


def _is_over(token: Token, now: float) -> bool:
    return token.expires is not None and token.expires <= now


def _exists(user: User, store: Store) -> bool:
    account = split_service_account(user.name)
    if account is None:
        return True
    try:
        return store.get(SERVICE_ACCOUNTS_KEY, *account).uid == user.uid
    except NotFoundError:
        return False


def read_token_file(path: Path) -> dict[str, User]:
    """Read a file of ``--token-auth-file``: CSV with token, user, uid and, if any, groups.

    Several groups are one quoted field, ``"a,b"``. Raises TokenFileError.
    """
    users: dict[str, User] = {}
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            reader = csv.reader(lines)
            for row in reader:
                fields = [field.strip() for field in row]
                if any(fields):
                    _add_user(users, fields, where=f"{path}:{reader.line_num}")
    except OSError as exc:
        raise TokenFileError(f"{path}: {exc.strerror}") from exc
    except (UnicodeDecodeError, csv.Error) as exc:
        raise TokenFileError(f"{path}: {exc}") from exc
    return users


def _add_user(users: dict[str, User], fields: Sequence[str], *, where: str) -> None:
    if len(fields) < 3:
        raise TokenFileError(
            f"{where}: expected at least 3 columns (token, user, uid), got {len(fields)}"
        )
    token, name, uid, *rest = fields
    if not token or not name:
        raise TokenFileError(f"{where}: token and user must not be empty")
    if token in users:
        raise TokenFileError(f"{where}: the token is that of {users[token].name!r} already")
    groups = [group.strip() for group in rest[0].split(",")] if rest else []
    named = [group for group in groups if group]
    if AUTHENTICATED not in named:
        named.append(AUTHENTICATED)
    users[token] = User(name, tuple(named), uid)


def service_account_of(namespace: str, name: str, store: Store) -> User:
    """Return the user that a stored service account is, or raise NotFoundError."""
    stored = store.get(SERVICE_ACCOUNTS_KEY, namespace, name)
    return service_account(namespace, name, uid=stored.uid)
