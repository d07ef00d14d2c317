"""A Job whose pods are a gang keeps its size (WorkloadWithJob)."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gates import GENERIC_WORKLOAD, WORKLOAD_WITH_JOB
from berth.cluster.resources import Object
from tests.cluster.writes.booted import Booted

JOBS = find("batch", "v1", "jobs")
PODS: Object = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
GANG: Object = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}
LARGER: Object = {"completions": 5, "parallelism": 5}


def scaled(cluster: Booted, spec: Object, change: Object) -> Any:
    metadata = {"name": "j", "namespace": "default"}
    cluster.create(JOBS, {"metadata": metadata, "spec": {**spec, "template": {"spec": PODS}}})

    def scale(stored: Object) -> Object:
        return {**stored, "spec": {**stored["spec"], **change}}

    return cluster.update(JOBS, "default/j", scale)["spec"]


@pytest.mark.parametrize(
    ("features", "spec", "change"),
    [
        pytest.param((), GANG, LARGER, id="without the gate"),
        pytest.param((WORKLOAD_WITH_JOB,), {**GANG, "parallelism": 2}, LARGER, id="no gang"),
        pytest.param((WORKLOAD_WITH_JOB,), GANG, {"suspend": True}, id="what is no size"),
    ],
)
def test_what_may_change(features: tuple[str, ...], spec: Object, change: Object) -> None:
    found = scaled(Booted(GENERIC_WORKLOAD, *features), spec, change)
    assert {key: found[key] for key in change} == change


def test_a_gang_keeps_its_size() -> None:
    why = "spec.parallelism: Invalid value: 5: field is immutable"
    with pytest.raises(StatusError, match=why):
        scaled(Booted(GENERIC_WORKLOAD, WORKLOAD_WITH_JOB), GANG, LARGER)
