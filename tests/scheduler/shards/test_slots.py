"""The home of a pod, and what shards refuse."""

from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import ResourceSlice, ResourceSliceSpec
from berth.kube.objects.pod import Pod
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.shards.slots import (
    AFFINITY,
    ANTI_AFFINITY,
    DEVICES,
    HOSTNAME,
    home_of,
    why_not,
)

ZONE = "topology.kubernetes.io/zone"


def term(key: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}, **more}


def affine(kind: str, *terms: Any) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def pod_with(**spec: Any) -> Pod:
    metadata = {"name": "p", "namespace": "team", "uid": "u-1", "labels": {"app": "a"}}
    manifest = {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}
    return msgspec.convert(manifest, Pod)


def on_node(operator: str, *names: str) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": operator, "values": names}]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


@pytest.mark.parametrize(
    ("spec", "home"),
    [
        pytest.param({}, "u-1", id="a plain pod: its own"),
        pytest.param(on_node("In", "n1"), "n1", id="a pod of a DaemonSet: its node's"),
        pytest.param(on_node("In", "n1", "n2"), "u-1", id="one of two nodes: its own"),
        pytest.param(affine("podAntiAffinity", term(HOSTNAME)), "u-1", id="apart by host: its own"),
        pytest.param(affine("podAffinity", term(ZONE)), "team", id="affinity: the namespace's"),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "team",
            id="required spread: the namespace's",
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
                ]
            },
            "u-1",
            id="preferred spread: its own",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "team",
            id="a claim: the namespace's",
        ),
    ],
)
def test_home(spec: dict[str, Any], home: str) -> None:
    assert home_of(pod_with(**spec)) == home


def a_slice(node: str | None) -> ResourceSlice:
    return ResourceSlice(spec=ResourceSliceSpec(node_name=node))


CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}


@pytest.mark.parametrize(
    ("spec", "slices", "why"),
    [
        pytest.param({}, [a_slice(None)], None, id="a plain pod"),
        pytest.param(affine("podAntiAffinity", term(HOSTNAME)), [], None, id="apart by host"),
        pytest.param(affine("podAntiAffinity", term(ZONE)), [], ANTI_AFFINITY, id="apart by zone"),
        pytest.param(affine("podAffinity", term(ZONE)), [], None, id="together"),
        pytest.param(
            affine("podAffinity", term(ZONE, namespaces=["team", "other"])),
            [],
            AFFINITY,
            id="together with pods like itself of another namespace",
        ),
        pytest.param(
            affine("podAffinity", {**term(ZONE, namespaces=["other"]), "labelSelector": {}}),
            [],
            AFFINITY,
            id="an empty selector matches the pod itself",
        ),
        pytest.param(
            affine(
                "podAffinity",
                {"topologyKey": ZONE, "namespaces": ["other"],
                 "labelSelector": {"matchLabels": {"app": "b"}}},
            ),
            [],
            None,
            id="together with others of another namespace",
        ),
        pytest.param(CLAIM, [a_slice("n1")], None, id="devices of a node"),
        pytest.param(CLAIM, [a_slice("n1"), a_slice(None)], DEVICES, id="devices of all nodes"),
    ],
)  # fmt: skip
def test_what_is_refused(
    spec: dict[str, Any], slices: list[ResourceSlice], why: str | None
) -> None:
    answer = why_not(PodInfo(pod_with(**spec)), slices)
    assert (answer and answer[1]) == why
