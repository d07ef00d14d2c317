"""Discovery of the URL of an object's kind, asked of the API server."""

from collections.abc import Mapping
from typing import Any

import msgspec

from berth.kube.client.api import Api
from berth.kube.client.errors import NotFoundError


class UnknownKindError(Exception):
    """The API server does not serve that apiVersion and kind."""


class _Resource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False


class _ResourceList(msgspec.Struct):
    resources: list[_Resource] = []


class _Kind(msgspec.Struct, frozen=True):
    plural: str
    namespaced: bool


class Discovery:
    """What one API server serves; every group is asked for once."""

    def __init__(self, client: Api) -> None:
        self._client = client
        self._groups: dict[str, dict[str, _Kind]] = {}

    async def collection_of(self, obj: Mapping[str, Any], *, namespace: str = "default") -> str:
        """Return the path of the collection that *obj* would be created in.

        One that does not say its namespace goes to *namespace*. Raises UnknownKindError.
        """
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        described = (await self._kinds(api_version)).get(kind)
        if described is None:
            raise UnknownKindError(f'no matches for kind "{kind}" in version "{api_version}"')
        prefix = group_path(api_version)
        if not described.namespaced:
            return f"{prefix}/{described.plural}"
        metadata = obj.get("metadata")
        own = metadata.get("namespace") if isinstance(metadata, Mapping) else None
        return f"{prefix}/namespaces/{own or namespace}/{described.plural}"

    async def serves(self, collection: str) -> bool:
        """Say whether there is a cluster-wide collection such as ``/apis/apps/v1/replicasets``."""
        prefix, _, plural = collection.rpartition("/")
        api_version = prefix.removeprefix("/apis/").removeprefix("/api/")
        return any(kind.plural == plural for kind in (await self._kinds(api_version)).values())

    async def _kinds(self, api_version: str) -> dict[str, _Kind]:
        known = self._groups.get(api_version)
        if known is not None:
            return known
        try:
            answer = await self._client.request("GET", group_path(api_version))
        except NotFoundError:
            served: list[_Resource] = []
        else:
            served = msgspec.json.decode(answer, type=_ResourceList).resources
        # Subresources, such as pods/status, have kinds of their own.
        kinds = {r.kind: _Kind(r.name, r.namespaced) for r in served if "/" not in r.name}
        self._groups[api_version] = kinds
        return kinds


def group_path(api_version: str) -> str:
    """Return the URL of a group and version: ``/api/v1``, ``/apis/apps/v1``."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
