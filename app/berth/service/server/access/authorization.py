"""Authorization: some paths are public, the API server knows about the others (spec §7.3)."""

from collections.abc import Sequence
from typing import Final

from berth.kube.client.api import Api
from berth.kube.client.reviews import User, review_access
from berth.runtime.clock import Clock
from berth.runtime.errors import UserError
from berth.service.server.access.expiring_cache import ExpiringCache

MASTERS: Final = "system:masters"
"""Members may do everything, whatever the rules say."""

ANSWERS_KEPT: Final = 8192
LONGEST_REMEMBERED: Final = 10_000
"""Characters of a question whose answer is kept; else a client could fill our memory."""


class PublicPathError(UserError):
    """A path that should be open to everyone is none; the message names it."""


class PublicPaths:
    """Paths that everybody may use; a ``*`` at the end stands for whatever follows."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Raises PublicPathError for a ``*`` elsewhere."""
        for path in paths:
            if "*" in path.removesuffix("*"):
                raise PublicPathError(
                    f"--authorization-always-allow-paths {path}: only trailing * allowed"
                )
        trimmed = [path.removeprefix("/") for path in paths]
        self._whole = frozenset(path for path in trimmed if not path.endswith("*"))
        self._beginnings = tuple(path[:-1] for path in trimmed if path.endswith("*"))

    def __contains__(self, path: str) -> bool:
        trimmed = path.removeprefix("/")
        return trimmed in self._whole or trimmed.startswith(self._beginnings)


class Authorizer:
    """Decides who may use a path, by SubjectAccessReview where it is not cached."""

    def __init__(
        self,
        api: Api,
        *,
        public: PublicPaths,
        allowed_ttl: float,
        denied_ttl: float,
        clock: Clock,
    ) -> None:
        """An answer counts for *allowed_ttl* seconds if it is yes, else for *denied_ttl*."""
        self._api = api
        self._public = public
        self._ttl = {True: allowed_ttl, False: denied_ttl}
        self._answers: ExpiringCache[tuple[object, ...], bool | None] = ExpiringCache(
            capacity=ANSWERS_KEPT, monotonic=clock.monotonic
        )

    async def allows(self, user: User, *, path: str, verb: str) -> bool:
        """Return whether *user* may do *verb*, an HTTP method in lower case, on *path*.

        Raises ApiError and ReviewError when the API server has to be asked and does not say.
        """
        if MASTERS in user.groups or path in self._public:
            return True
        key = (user.username, user.uid, user.groups, tuple(user.extra.items()), path, verb)
        known = self._answers.get(key, None)
        if known is not None:
            return known
        allowed = await review_access(self._api, user, path=path, verb=verb)
        if len(repr(key)) <= LONGEST_REMEMBERED:
            self._answers.put(key, allowed, seconds=self._ttl[allowed])
        return allowed
