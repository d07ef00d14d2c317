"""Tokens that are somebody's for ever: those of kubeconfigs and of token files. Opaque strings."""

import csv
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from berth.cluster.access.users import AUTHENTICATED, User
from berth.runtime.errors import UserError

TOKEN_BYTES: Final = 32


class TokenFileError(UserError):
    """A token file cannot be used; the message names the file and the line."""


def draw_token() -> str:
    """Return a new secret."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Tokens:
    """The table of tokens. *draw* makes new ones."""

    def __init__(self, *, draw: Callable[[], str] = draw_token) -> None:
        self._draw = draw
        self._users: dict[str, User] = {}

    def add(self, token: str, user: User) -> None:
        """Let *token* be *user*'s."""
        self._users[token] = user

    def issue(self, user: User) -> str:
        """Return a new token of *user*."""
        token = self._draw()
        self.add(token, user)
        return token

    def find(self, token: str) -> User | None:
        """Return whose token it is."""
        return self._users.get(token)


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
