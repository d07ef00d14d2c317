"""When volumes came into their phases."""

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object
from tests.cluster.serving import NOW_TEXT
from tests.cluster.writes.booted import Booted

VOLUMES = find("", "v1", "persistentvolumes")
LATER = "2023-11-14T22:14:20Z"
SAID = "2020-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("told", "want"),
    [
        pytest.param({"phase": "Available"}, LATER, id="another phase"),
        pytest.param({"phase": "Pending"}, NOW_TEXT, id="the same phase"),
        pytest.param(
            {"phase": "Failed", "lastPhaseTransitionTime": SAID}, SAID, id="a time that is said"
        ),
    ],
)
def test_the_time_of_a_phase(told: Object, want: str) -> None:
    cluster = Booted()
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/a"},
    }
    cluster.create(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
    cluster.clock.advance(60)

    def tell(obj: Object) -> Object:
        return {**obj, "status": {**obj["status"], **told}}

    status = cluster.update(VOLUMES, "/v", tell, subresource="status")["status"]
    assert status["lastPhaseTransitionTime"] == want
