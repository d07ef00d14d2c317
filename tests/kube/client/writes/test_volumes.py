"""Writing volumes and claims: the whole object goes back, in one request."""

import msgspec
import pytest

from berth.kube.client.errors import ConflictError
from berth.kube.client.writes.volumes import (
    decode_claim,
    decode_volume,
    update_claim,
    update_volume,
)
from tests.kube.client.fake_api import FakeApi, Request
from tests.volume_builders import claim, reference

VOLUME = b'{"metadata":{"name":"pv","resourceVersion":"7"},"spec":{"nfs":{"path":"/x"}}}'
CLAIM = b'{"metadata":{"name":"data","namespace":"team","resourceVersion":"7"},"spec":{"x":1}}'


async def test_update_volume() -> None:
    api = FakeApi(lambda _: VOLUME.replace(b'"7"', b'"8"'))
    known = decode_volume(VOLUME)
    spec = msgspec.structs.replace(known.spec, claim_ref=reference(claim()))
    written = await update_volume(api, msgspec.structs.replace(known, spec=spec))

    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv", "resourceVersion": "7"},
        "spec": {
            "nfs": {"path": "/x"},
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": "default",
                "name": "data",
                "uid": "pvc-default-data",
                "resourceVersion": "1",
            },
        },
    }
    assert api.requests == [Request("PUT", "/api/v1/persistentvolumes/pv", body)]
    assert written.metadata.resource_version == "8"


async def test_update_claim() -> None:
    api = FakeApi(lambda _: CLAIM.replace(b'"7"', b'"8"'))
    known = decode_claim(CLAIM)
    meta = msgspec.structs.replace(known.metadata, annotations={"a": "b"})
    written = await update_claim(api, msgspec.structs.replace(known, metadata=meta))

    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "namespace": "team",
            "resourceVersion": "7",
            "annotations": {"a": "b"},
        },
        "spec": {"x": 1},
    }
    path = "/api/v1/namespaces/team/persistentvolumeclaims/data"
    assert api.requests == [Request("PUT", path, body)]
    assert written.metadata.resource_version == "8"


async def test_a_conflict_is_the_callers_affair() -> None:
    api = FakeApi(lambda _: ConflictError(409, "Conflict", "changed"))
    with pytest.raises(ConflictError):
        await update_volume(api, decode_volume(VOLUME))
