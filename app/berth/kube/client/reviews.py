"""Asks the API server who somebody is and what they may do: delegated access control (§7.3)."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from berth.kube.client.api import Api
from berth.runtime.errors import UNREADABLE

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

TIMEOUT: Final = 10.0
"""Seconds for one review; kube-scheduler gives up after as many."""


class User(msgspec.Struct, frozen=True):
    """The user of a request, as UserInfo of ``authentication.k8s.io``."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenReviewStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct):
    status: _TokenReviewStatus


class _AccessReviewStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessReviewStatus


class ReviewError(Exception):
    """The API server's answer to a review cannot be read."""


async def review_token(api: Api, token: str) -> User | None:
    """Return the user of *token*, None when it is not valid. Raises ApiError and ReviewError."""
    answer = await _create(
        api, TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", {"token": token}
    )
    try:
        status = msgspec.json.decode(answer, type=_TokenReview).status
    except UNREADABLE as exc:
        raise ReviewError(f"{TOKEN_REVIEWS}: {exc}") from exc
    return status.user if status.authenticated and status.user.username else None


async def review_access(api: Api, user: User, *, path: str, verb: str) -> bool:
    """Return whether *user* may do *verb* on *path*, which is no resource.

    Raises ApiError and ReviewError.
    """
    spec: dict[str, Any] = {
        "nonResourceAttributes": {"path": path, "verb": verb},
        "user": user.username,
        "groups": user.groups,
    }
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = user.extra
    answer = await _create(
        api, ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec
    )
    try:
        status = msgspec.json.decode(answer, type=_AccessReview).status
    except UNREADABLE as exc:
        raise ReviewError(f"{ACCESS_REVIEWS}: {exc}") from exc
    return status.allowed and not status.denied


async def _create(api: Api, path: str, version: str, kind: str, spec: Mapping[str, Any]) -> bytes:
    body = {"apiVersion": version, "kind": kind, "metadata": {}, "spec": spec}
    return await api.request("POST", path, body=msgspec.json.encode(body), timeout=TIMEOUT)
