"""Writes to resource claims (spec §2.11)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from berth.kube.client import errors
from berth.kube.client.api import Api
from berth.kube.client.writes.lanes import WriteLanes
from berth.kube.client.writes.pods import STRATEGIC_MERGE_PATCH
from berth.kube.objects.device_versions import V1BETA1, claim_from_v1beta1, claim_to_v1beta1
from berth.kube.objects.devices import RESOURCE_CLAIMS, ResourceClaim, decode_claim
from berth.scheduler.framework.writes import ConflictError


class ResourceClaimApi:
    """The :class:`~berth.scheduler.framework.writes.ResourceClaimWrites` of a real cluster.

    Its writes are what bindings wait for, so they go ahead of others.
    """

    def __init__(
        self,
        client: Api,
        lanes: WriteLanes,
        *,
        count_created: Callable[[str], None] = lambda _status: None,
        collection: Callable[[], str] = lambda: RESOURCE_CLAIMS,
    ) -> None:
        """*count_created* gets the result of each creation: success or failure.

        *collection* returns the path of the claims of all namespaces, in the version that the API
        server serves.
        """
        self._client = client
        self._lanes = lanes
        self._count_created = count_created
        self._collection = collection

    async def get(self, namespace: str, name: str) -> ResourceClaim:
        return self._decode(await self._client.request("GET", self._path(namespace, name)))

    async def create(self, body: Mapping[str, Any]) -> ResourceClaim:
        try:
            created = await self._write("POST", self._path(body["metadata"]["namespace"]), body)
        except (errors.ApiError, ConflictError):
            self._count_created("failure")
            raise
        self._count_created("success")
        return created

    async def update(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._write("PUT", self._path_of(body), body)

    async def update_status(self, body: Mapping[str, Any]) -> ResourceClaim:
        return await self._write("PUT", self._path_of(body) + "/status", body)

    async def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, Any]
    ) -> ResourceClaim:
        path = self._path(namespace, name) + "/status"
        return await self._write("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)

    async def delete(self, namespace: str, name: str) -> None:
        path = self._path(namespace, name)
        with _translated():
            await self._lanes.bind(lambda: self._client.request("DELETE", path))

    async def _write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        *,
        content_type: str = "application/json",
    ) -> ResourceClaim:
        if "apiVersion" in body:
            group_version = self._collection().removeprefix("/apis/").rpartition("/")[0]
            body = {**body, "apiVersion": group_version}
            if self._is_v1beta1:
                body = claim_to_v1beta1(body)
        data = msgspec.json.encode(body)
        with _translated():
            answer = await self._lanes.bind(
                lambda: self._client.request(method, path, body=data, content_type=content_type)
            )
        return self._decode(answer)

    @property
    def _is_v1beta1(self) -> bool:
        return self._collection().split("/")[-2] == V1BETA1

    def _decode(self, answer: bytes) -> ResourceClaim:
        if self._is_v1beta1:
            answer = msgspec.json.encode(claim_from_v1beta1(msgspec.json.decode(answer)))
        return decode_claim(answer)

    def _path(self, namespace: str, name: str = "") -> str:
        prefix, _, plural = self._collection().rpartition("/")
        path = f"{prefix}/namespaces/{namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def _path_of(self, body: Mapping[str, Any]) -> str:
        return self._path(body["metadata"]["namespace"], body["metadata"]["name"])


@contextmanager
def _translated() -> Iterator[None]:
    """Tell plugins of conflicts in words that they know."""
    try:
        yield
    except errors.ConflictError as exc:
        raise ConflictError(str(exc)) from exc
