"""A pod that is rejected whatever the nodes are like is told what to do about itself."""

import pytest

from berth.insight.explain.evaluation import advice
from berth.insight.explain.tables import render
from berth.runtime.tables import as_text
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import claim_volume, node, pod
from tests.harness import Harness
from tests.insight.explain.asking import explain


def test_a_missing_claim_has_advice_and_no_table_of_nodes() -> None:
    harness = Harness()
    harness.put(node("n1"), node("n2"), pod("p", volumes=[claim_volume("data")]))
    told = explain(harness, "default/p")

    helps = "create PersistentVolumeClaim default/data, or correct its name in spec.volumes"
    assert told.evaluation is not None
    assert told.evaluation.advice == (helps,)
    assert told.summary.endswith(f'persistentvolumeclaim "data" not found; {helps}')
    shown = as_text(render(told), width=200)
    assert f"advice        {helps}" in shown
    assert "reject the pod whatever" in shown or "rejects the pod whatever" in shown
    assert "no node was looked at" not in shown
    assert "n1" not in shown


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ('persistentvolumeclaim "a" is being deleted', "wait until PersistentVolumeClaim ns/a is"),
        ('persistentvolumeclaim "a" bound to non-existent persistentvolume "b"', "create Persist"),
        ("pod has unbound immediate PersistentVolumeClaims", "have the claim bound"),
        ('could not find ResourceClaim "ns/gpu"', "create ResourceClaim ns/gpu, or correct"),
        ('resourceclaim "gpu" is being deleted', "wait until ResourceClaim ns/gpu is gone"),
        ("request gpu: device class large does not exist", "create DeviceClass large, or name"),
        ("pod affinity terms conflict", "change spec.affinity.nodeAffinity"),
        ("Insufficient cpu", ""),
    ],
)
def test_advice(reason: str, says: str) -> None:
    found = [*advice((reason,), PodInfo(pod(ns="ns")))]

    assert len(found) == bool(says)
    assert all(each.startswith(says) for each in found)
