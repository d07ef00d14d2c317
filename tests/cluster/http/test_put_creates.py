"""A PUT creates what is not there, of the kinds for which kube-apiserver does so."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import RESOURCES, STORED, TRAITS
from tests.cluster.serving import Serving

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE: Any = {
    "metadata": {"name": "lock"},
    "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
}


@pytest.fixture
async def serving() -> Serving:
    made = Serving(resources=RESOURCES)
    await made.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    return made


async def test_an_object_is_created_then_replaced(serving: Serving) -> None:
    code, made = await serving.request("PUT", f"{LEASES}/lock", LEASE)
    assert (code, made["metadata"]["name"]) == (201, "lock")
    assert made["metadata"]["uid"]

    code, answer = await serving.request("PUT", f"{LEASES}/lock", LEASE)
    assert (code, answer["message"].endswith("must be specified for an update")) == (422, True)
    made["spec"] = {"holderIdentity": "x"}
    code, again = await serving.request("PUT", f"{LEASES}/lock", made)
    assert (code, again["metadata"]["uid"]) == (200, made["metadata"]["uid"])


async def test_a_version_that_was_seen_before_does_not_matter(serving: Serving) -> None:
    body = {**LEASE, "metadata": {"name": "lock", "resourceVersion": "77"}}
    code, made = await serving.request("PUT", f"{LEASES}/lock", body)
    assert (code, made["metadata"]["resourceVersion"] != "77") == (201, True)


@pytest.mark.parametrize(
    ("path", "body", "code", "said"),
    [
        pytest.param(
            f"{LEASES}/lock",
            {**LEASE, "metadata": {"name": "other"}},
            400,
            "the name of the object (other) does not match the name on the URL (lock)",
            id="another name",
        ),
        pytest.param(
            f"{LEASES}/lock",
            {"spec": LEASE["spec"]},
            400,
            "the name of the object (lock based on URL) was undeterminable: name must be provided",
            id="no name",
        ),
        pytest.param(
            f"{LEASES}/lock",
            {**LEASE, "metadata": {"name": "lock", "uid": "gone"}},
            409,
            "StorageError: invalid object, Code: 4, Key: /registry/leases/default/lock, "
            "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: "
            "gone, UID in object meta: ",
            id="an object that was deleted",
        ),
        pytest.param(
            "/api/v1/namespaces/default/configmaps/c",
            {"metadata": {"name": "c", "uid": "gone"}},
            404,
            'configmaps "c" not found',
            id="a kind that a PUT does not create",
        ),
        pytest.param(
            "/api/v1/namespaces/default/services/s/status",
            {"metadata": {"name": "s"}},
            404,
            "not found",
            id="a part of it",
        ),
    ],
)
async def test_what_is_not_created(
    serving: Serving, path: str, body: Any, code: int, said: str
) -> None:
    got, answer = await serving.request("PUT", path, body)
    assert (got, said in answer["message"]) == (code, True), answer


async def test_dry_runs_keep_nothing(serving: Serving) -> None:
    code, _ = await serving.request("PUT", f"{LEASES}/lock?dryRun=All", LEASE)
    assert code == 201
    code, _ = await serving.request("GET", f"{LEASES}/lock")
    assert code == 404


def test_all_these_kinds_are_served() -> None:
    served = {f"{each.group_version}/{each.plural}" for each in STORED}
    assert served >= TRAITS.created_by_put
