"""Fields behind feature gates: dropped while the gate is off, and kept where they are already."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.features import default_features
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.writes.subresources.binding import Binding
from berth.runtime.release import RELEASES
from berth.scheduler.config.kube_features import FEATURE_GATES
from tests.cluster.at_once import at_once
from tests.cluster.writes.booted import TEST, Booted

PODS = find("", "v1", "pods")
NODES = find("", "v1", "nodes")
DEPLOYMENTS = find("apps", "v1", "deployments")
CSI_DRIVERS = find("storage.k8s.io", "v1", "csidrivers")

SPREAD: Object = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "a"}},
    "matchLabelKeys": ["rev"],
}
COMPARING: Object = {"key": "gpus", "operator": "Lt", "value": "8", "effect": "NoSchedule"}


def pod(**spec: Any) -> Object:
    containers = [{"name": "c", "image": "i"}]
    metadata = {"name": "p", "namespace": "default", "labels": {"rev": "1"}}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def deployment(**spec: Any) -> Object:
    labels = {"app": "a"}
    template = {**pod(**spec), "metadata": {"labels": labels}}
    return {
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def csi_driver(**spec: Any) -> Object:
    return {"metadata": {"name": "d.example.com"}, "spec": spec}


def node() -> Object:
    return {"metadata": {"name": "n"}, "status": {"declaredFeatures": ["A"]}}


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_on_by_default_is_on_by_default_in_kubernetes(release: str) -> None:
    on, gates = default_features(release), FEATURE_GATES[release]
    known = frozenset().union(*map(default_features, RELEASES))
    assert on == {name for name in known if gates[name].enabled}


@pytest.mark.parametrize(
    ("gate", "resource", "obj", "path"),
    [
        pytest.param(
            "GenericWorkload",
            PODS,
            pod(schedulingGroup={"podGroupName": "g"}),
            "spec.schedulingGroup",
            id="the group of a pod",
        ),
        pytest.param(
            "MatchLabelKeysInPodTopologySpread",
            PODS,
            pod(topologySpreadConstraints=[SPREAD]),
            "spec.topologySpreadConstraints.0.matchLabelKeys",
            id="label keys of a constraint",
        ),
        pytest.param(
            "PodLevelResources",
            PODS,
            pod(resources={"requests": {"cpu": "1"}}),
            "spec.resources",
            id="resources of a pod",
        ),
        pytest.param(
            "PodLevelResources",
            DEPLOYMENTS,
            deployment(resources={"requests": {"cpu": "1"}}),
            "spec.template.spec.resources",
            id="resources of a template",
        ),
        pytest.param(
            "NodeDeclaredFeatures", NODES, node(), "status.declaredFeatures", id="those of a node"
        ),
        pytest.param(
            "VolumeLimitScaling",
            CSI_DRIVERS,
            csi_driver(preventPodSchedulingIfMissing=True),
            "spec.preventPodSchedulingIfMissing",
            id="a driver that nodes need",
        ),
    ],
)
def test_a_field_needs_its_gate(gate: str, resource: ResourceType, obj: Object, path: str) -> None:
    assert at(Booted(gate).create(resource, obj), path) is not None
    assert at(Booted(off=[gate]).create(resource, obj), path) is None


def at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj[int(step)] if isinstance(obj, list) else (obj or {}).get(step)
    return obj


def test_label_keys_that_are_dropped_do_not_become_part_of_the_selector() -> None:
    cluster = Booted(off=["MatchLabelKeysInPodTopologySpread"])
    spec = cluster.create(PODS, pod(topologySpreadConstraints=[SPREAD]))["spec"]
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == SPREAD["labelSelector"]


def test_the_field_of_a_driver_has_a_default_with_the_gate() -> None:
    field = "preventPodSchedulingIfMissing"
    assert Booted("VolumeLimitScaling").create(CSI_DRIVERS, csi_driver())["spec"][field] is False
    without = Booted(off=("VolumeLimitScaling",))
    assert field not in without.create(CSI_DRIVERS, csi_driver())["spec"]


def later(cluster: Booted, *more: str) -> Booted:
    """Return a server on the objects of *cluster* with other gates."""
    return Booted(*more, store=cluster.store)


def test_a_field_that_is_there_stays_when_its_gate_is_off() -> None:
    before = Booted("VolumeLimitScaling")
    before.create(CSI_DRIVERS, csi_driver(preventPodSchedulingIfMissing=True))

    def relabel(obj: Object) -> Object:
        return {**obj, "metadata": {**obj["metadata"], "labels": {"a": "b"}}}

    after = later(before).update(CSI_DRIVERS, "d.example.com", relabel)
    assert after["spec"]["preventPodSchedulingIfMissing"] is True


# Tolerations that compare.

REFUSED = 'Unsupported value: "Lt": supported values: "Equal", "Exists"'


@pytest.mark.parametrize(
    ("resource", "obj", "field"),
    [
        pytest.param(PODS, pod(tolerations=[COMPARING]), "spec", id="a pod"),
        pytest.param(
            DEPLOYMENTS, deployment(tolerations=[COMPARING]), "spec.template.spec", id="a template"
        ),
    ],
)
def test_comparisons_need_their_gate(resource: ResourceType, obj: Object, field: str) -> None:
    created = Booted("TaintTolerationComparisonOperators").create(resource, obj)
    assert COMPARING in at(created, f"{field}.tolerations")
    with pytest.raises(StatusError) as caught:
        Booted().create(resource, obj)
    assert caught.value.code == 422
    assert f"{field}.tolerations[0].operator: {REFUSED}" in caught.value.message


def test_a_template_that_compares_may_be_changed_when_the_gate_is_off() -> None:
    before = Booted("TaintTolerationComparisonOperators")
    before.create(DEPLOYMENTS, deployment(tolerations=[COMPARING]))

    def scaled(obj: Object) -> Object:
        return {**obj, "spec": {**obj["spec"], "replicas": 3}}

    after = later(before).update(DEPLOYMENTS, "default/d", scaled)
    assert after["spec"]["template"]["spec"]["tolerations"] == [COMPARING]


# Nominations.


def bind(cluster: Booted) -> Object:
    cluster.create(PODS, pod())

    def nominate(obj: Object) -> Object:
        return {**obj, "status": {**obj["status"], "nominatedNodeName": "n"}}

    cluster.update(PODS, "default/p", nominate, subresource="status")
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    binding = Binding(cluster.store, clock=cluster.clock, features=cluster.features)
    at_once(binding.act(PODS, "default", "p", body, TEST))
    return cluster.get(PODS, "default/p")


@pytest.mark.parametrize(
    ("off", "want"),
    [
        pytest.param([], None, id="cleared"),
        pytest.param(["ClearingNominatedNodeNameAfterBinding"], "n", id="kept without the gate"),
    ],
)
def test_the_nomination_of_a_pod_that_is_bound(off: list[str], want: str | None) -> None:
    assert bind(Booted(off=off))["status"].get("nominatedNodeName") == want


def test_a_bound_pod_cannot_be_nominated_again() -> None:
    def nominate(obj: Object) -> Object:
        return {**obj, "status": {**obj["status"], "nominatedNodeName": "other"}}

    cluster = Booted()
    bind(cluster)
    with pytest.raises(StatusError) as caught:
        cluster.update(PODS, "default/p", nominate, subresource="status")
    why = "may not be set on pods that are already bound to a node"
    assert f"status.nominatedNodeName: Forbidden: {why}" in caught.value.message

    cluster = Booted(off=["ClearingNominatedNodeNameAfterBinding"])
    bind(cluster)
    again = cluster.update(PODS, "default/p", nominate, subresource="status")
    assert again["status"]["nominatedNodeName"] == "other"
