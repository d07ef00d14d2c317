"""Whatever strangers bind to a node, it does not look emptier for it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduler.framework.kind import PODS
from berth.scheduler.framework.node_table import CPU, MEMORY
from tests.builders import node, pod
from tests.harness import Harness

EVERYTHING = str(2**63 - 1)


@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage", "example.com/gpu"])
def test_requests_do_not_wrap_around(resource: str) -> None:
    harness = Harness()
    harness.put(node("n1"))
    for number in range(100):
        harness.put(pod(f"p{number}", node="n1", requests={resource: EVERYTHING}))
    table = harness.cache.table
    row = table.resources[resource]
    assert table.requested[row, 0] > 2**58
    assert (table.non_zero_requested[:, 0] > 0).all()


ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "1Gi", "-1"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
ELSEWHERE = (
    *("priority", "volumes", "tolerations", "affinity", "topologySpreadConstraints"),
    *("nodeSelector", "resourceClaims", "schedulingGates", "hostNetwork", "initContainers"),
)


@settings(max_examples=60)
@given(
    spec=st.dictionaries(st.sampled_from(ELSEWHERE), ODD, max_size=3),
    container=st.dictionaries(st.sampled_from(["ports", "image", "restartPolicy", "name"]), ODD),
    more=st.dictionaries(st.sampled_from(["x", "memory", "example.com/y"]), ODD),
    status=ODD,
)
def test_what_can_be_read_of_requests_counts(
    spec: dict[str, Any], container: dict[str, Any], more: dict[str, Any], status: object
) -> None:
    container |= {"resources": {"requests": more | {"cpu": "3"}}}
    written = {
        "metadata": {"name": "p", "namespace": "a", "uid": "u"},
        "spec": spec | {"nodeName": "n1", "containers": [container, 7]},
        "status": status,
    }
    harness = Harness()
    harness.put(node("n1", cpu=4), PODS.decode_partly(msgspec.json.encode(written), None)[0])
    table = harness.cache.table
    assert table.requested[CPU, 0] >= 3000
    assert table.requested[MEMORY, 0] >= 0
    harness.cache.check_invariants()
