"""What pods say of claims that take resources of their node is kept with the gate only."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from berth.cluster.writes.admission.claim_statuses import FIELD
from tests.cluster.writes.booted import Booted

PODS = find("", "v1", "pods")
TOLD = [{"resourceClaimName": "c", "containers": ["a"], "resources": {"cpu": "2"}}]


@pytest.mark.parametrize("gates", [(), ("DRANodeAllocatableResources",)], ids=["off", "on"])
def test_the_status_of_a_pod(gates: tuple[str, ...]) -> None:
    cluster = Booted(*gates)
    spec = {"containers": [{"name": "a", "image": "i"}]}
    cluster.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})

    def tell(obj: Object) -> Object:
        return {**obj, "status": {**obj["status"], FIELD: TOLD, "message": "seen"}}

    status = cluster.update(PODS, "default/p", tell, subresource="status")["status"]
    assert status["message"] == "seen"
    assert status.get(FIELD) == (TOLD if gates else None)
