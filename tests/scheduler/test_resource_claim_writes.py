"""The writes to resource claims, compared with what kube-scheduler 1.36 sends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from berth.kube.client import errors
from berth.kube.client.writes.lanes import WriteLanes
from berth.kube.objects.devices import RESOURCE_CLAIMS, claim_body, decode_claim
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.assume_cache import AssumeCache
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.writes import ConflictError
from berth.scheduler.resource_claim_writes import ResourceClaimApi
from berth_plugins.dynamic_resources.claim_writes import ClaimWrites
from berth_plugins.dynamic_resources.group_claims import consumer_of
from tests.builders import pod
from tests.device_builders import allocation
from tests.kube.client.fake_api import Answer, FakeApi, Request

PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/one-gpu"
STORED: dict[str, Any] = {
    "metadata": {
        "name": "one-gpu",
        "namespace": "default",
        "uid": "f8e6d9bb",
        "resourceVersion": "271",
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
    "status": {},
}
HEAD = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1"}


@asynccontextmanager
async def api_with_lanes(
    answer: Answer,
    *,
    count_created: Callable[[str], None] = lambda _status: None,
    collection: Callable[[], str] = lambda: RESOURCE_CLAIMS,
) -> AsyncIterator[tuple[FakeApi, ResourceClaimApi]]:
    api, lanes = FakeApi(answer), WriteLanes(clock=FakeClock())
    running = asyncio.create_task(lanes.run(), name="lanes")
    try:
        yield api, ResourceClaimApi(api, lanes, count_created=count_created, collection=collection)
    finally:
        running.cancel()
        await asyncio.wait([running])


def echo(request: Request) -> bytes:
    """Answer with the object as it would be stored."""
    body = request.body or STORED
    meta = body["metadata"]
    version = str(int(meta.get("resourceVersion", "1")) + 3)
    return msgspec.json.encode({**body, "metadata": {**meta, "resourceVersion": version}})


async def test_a_claim_is_allocated_in_two_requests() -> None:
    claim = decode_claim(msgspec.json.encode(STORED))
    async with api_with_lanes(echo) as (api, writer):
        commitment = ClaimWrites(writer, FakeClock())
        written = await commitment.reserve(
            claim, consumer_of(pod("p", uid="62ec")), allocation("gpu-0")
        )
    protected = {
        **STORED["metadata"],
        "finalizers": ["resource.kubernetes.io/delete-protection"],
    }
    status = {
        "allocation": {
            "devices": {
                "results": [
                    {
                        "request": "r0",
                        "driver": "gpu.example.com",
                        "pool": "n1",
                        "device": "gpu-0",
                    }
                ]
            }
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "62ec"}],
    }
    assert api.requests == [
        Request("PUT", PATH, {**STORED, **HEAD, "metadata": protected}),
        Request(
            "PUT",
            PATH + "/status",
            {**STORED, **HEAD, "metadata": {**protected, "resourceVersion": "274"}}
            | {"status": status},
        ),
    ]
    assert written.metadata.resource_version == "277"


Call = Callable[[ResourceClaimApi], Any]


@pytest.mark.parametrize(
    ("call", "want"),
    [
        pytest.param(
            lambda api: api.get("default", "one-gpu"), Request("GET", PATH), id="read again"
        ),
        pytest.param(
            lambda api: api.create({**STORED, **HEAD}),
            Request("POST", PATH.rpartition("/")[0], {**STORED, **HEAD}),
            id="created",
        ),
        pytest.param(
            lambda api: api.patch_status("default", "one-gpu", {"status": {}, **STORED}),
            Request(
                "PATCH",
                PATH + "/status",
                {"status": {}, **STORED},
                "application/strategic-merge-patch+json",
            ),
            id="patched",
        ),
        pytest.param(
            lambda api: api.delete("default", "one-gpu"), Request("DELETE", PATH), id="deleted"
        ),
    ],
)
async def test_other_requests(call: Call, want: Request) -> None:
    async with api_with_lanes(echo) as (api, writer):
        await call(writer)
    assert api.requests == [want]


async def test_a_conflict_is_told_in_the_words_of_plugins() -> None:
    conflict = errors.ConflictError(409, "Conflict", "the object has been modified")
    async with api_with_lanes(lambda request: conflict) as (_, writer):
        with pytest.raises(ConflictError, match="has been modified"):
            await writer.update({**STORED, **HEAD})


async def test_other_errors_stay_as_they_are() -> None:
    forbidden = errors.ForbiddenError(403, "Forbidden", "no")
    async with api_with_lanes(lambda request: forbidden) as (_, writer):
        with pytest.raises(errors.ForbiddenError):
            await writer.delete("default", "one-gpu")


def test_claims_that_the_server_made_are_known_by_their_version() -> None:
    known = AssumeCache(Lister([decode_claim(msgspec.json.encode(STORED))]))
    newer = decode_claim(echo(Request("GET", PATH)))
    known.assume(newer)
    assert known.get("default", "one-gpu") is newer


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(echo, "success", id="created"),
        pytest.param(
            lambda _: errors.ConflictError(409, "AlreadyExists", "there is one"),
            "failure",
            id="there is one",
        ),
        pytest.param(
            lambda _: errors.ForbiddenError(403, "Forbidden", "no"), "failure", id="not allowed"
        ),
    ],
)
async def test_creations_are_counted(answer: Answer, status: str) -> None:
    counted: list[str] = []
    async with api_with_lanes(answer, count_created=counted.append) as (_, writer):
        with suppress(errors.ApiError, ConflictError):
            await writer.create({**HEAD, **STORED})
    assert counted == [status]


async def test_claims_are_written_in_the_shape_of_v1beta1() -> None:
    """To an API server without a newer one: what it sent comes back, and new claims are alike."""
    request = {"name": "gpu", "deviceClassName": "gpu"}
    stored = {**STORED, "spec": {"devices": {"requests": [request]}}}
    collection = "/apis/resource.k8s.io/v1beta1/resourceclaims"
    async with api_with_lanes(
        lambda request: echo(request) if request.body else msgspec.json.encode(stored),
        collection=lambda: collection,
    ) as (api, claims):
        read = await claims.get("default", "one-gpu")
        written = await claims.update(claim_body(read))
        created = await claims.create({**HEAD, **STORED})
    for claim in (read, written, created):
        (asked,) = claim.spec.devices.requests
        assert asked.exactly is not None
        assert asked.exactly.device_class_name == "gpu"
    version = {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim"}
    assert [sent.body for sent in api.requests[1:]] == [{**stored, **version}] * 2
    assert api.requests[0].path == PATH.replace("/v1/", "/v1beta1/")


async def test_claims_are_written_in_the_version_in_which_they_are_read() -> None:
    """To an API server that has ``v1`` switched off."""
    collection = "/apis/resource.k8s.io/v1beta2/resourceclaims"
    async with api_with_lanes(echo, collection=lambda: collection) as (api, claims):
        claim = await claims.get("default", "one-gpu")
        await claims.update_status(claim_body(claim))
        await claims.patch_status("default", "one-gpu", {"metadata": {"uid": "f8e6d9bb"}})
    path = PATH.replace("/v1/", "/v1beta2/")
    assert [request.path for request in api.requests] == [path, f"{path}/status", f"{path}/status"]
    assert api.requests[1].body["apiVersion"] == "resource.k8s.io/v1beta2"
    assert api.requests[2].body == {"metadata": {"uid": "f8e6d9bb"}}
