"""Pods and nodes from manifests, and what is wrong with a question."""

from typing import Any

import pytest
from pydantic import ValidationError

from berth.insight.whatif.admission import Admission
from berth.insight.whatif.manifests import QuestionError, pod, replicas
from berth.kube.objects.storage import PersistentVolumeClaim
from tests.builders import node, priority_class
from tests.insight.whatif.asking import ask, deployment, snapshot

ONE = node("one", cpu="1")
ADMISSION = Admission({"PriorityClass": [priority_class("gold", 7)]})


def made(manifest: dict[str, Any], number: int | None = None, **more: Any) -> Any:
    options = {"at": "t", "admission": ADMISSION, "taken": (), "most": 10, **more}
    return replicas(manifest, number, **options)


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


@pytest.mark.parametrize(
    ("manifest", "keys"),
    [
        pytest.param(deployment(replicas=2), ["shop/web-0", "shop/web-1"], id="a Deployment"),
        pytest.param({"kind": "Pod", **template()}, ["default/what-if-0"], id="one like a Pod"),
        pytest.param(
            {"kind": "PodTemplate", "metadata": {"name": "t"}, "template": template()},
            ["default/t-0"],
            id="a PodTemplate",
        ),
        pytest.param(
            {
                "kind": "Job",
                "metadata": {"name": "j"},
                "spec": {"parallelism": 3, "completions": 2, "template": template()},
            },
            ["default/j-0", "default/j-1"],
            id="a Job runs no more at once than it has to complete",
        ),
        pytest.param(
            {
                "kind": "ReplicationController",
                "metadata": {"name": "rc"},
                "spec": {"selector": {"app": "x"}, "replicas": 0, "template": template()},
            },
            [],
            id="a ReplicationController scaled to zero",
        ),
    ],
)
def test_pods_of_a_template(manifest: dict[str, Any], keys: list[str]) -> None:
    assert [each.key for each in made(manifest).pods] == keys


def test_names_that_are_taken_are_passed_over() -> None:
    found = made(deployment(), 2, taken=("shop/web-0", "shop/web-2"))
    assert [each.key for each in found.pods] == ["shop/web-1", "shop/web-3"]


def test_replicas_belong_to_an_owner_that_they_are_spread_by() -> None:
    found = made(deployment())
    (owner,) = found.objects
    (reference,) = found.pods[0].metadata.owner_references
    assert (owner.metadata.key, owner.spec.selector.match_labels) == ("shop/web", {"app": "web"})
    assert (reference.kind, reference.name, reference.controller) == ("ReplicaSet", "web", True)


def test_each_pod_of_a_stateful_set_has_its_own_claims() -> None:
    manifest = deployment("db", kind="StatefulSet", replicas=2)
    manifest["spec"]["volumeClaimTemplates"] = [
        {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    ]
    found = made(manifest)
    claims = [obj for obj in found.objects if isinstance(obj, PersistentVolumeClaim)]
    assert [claim.metadata.key for claim in claims] == ["shop/data-db-0", "shop/data-db-1"]
    assert [each.spec.volumes[0].persistent_volume_claim.claim_name for each in found.pods] == [
        "data-db-0",
        "data-db-1",
    ]


@pytest.mark.parametrize(
    ("spec", "priority"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"priority": 3, "priorityClassName": "gold"}, 3, id="as admission left it"),
        pytest.param({"priorityClassName": "gold"}, 7, id="of a class that the question knows"),
        pytest.param({"priorityClassName": "system-node-critical"}, 2_000_001_000, id="built in"),
    ],
)
def test_priority(spec: dict[str, Any], priority: int | None) -> None:
    (only,) = made({"kind": "Pod", **template(**spec)}).pods
    assert only.spec.priority == priority


def test_what_is_limited_and_not_requested_is_requested() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    (only,) = made(
        {"kind": "Pod", **template(containers=[{"name": "c", "resources": resources}])}
    ).pods
    assert only.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}


def test_ports_of_the_host_network_are_ports_of_the_host() -> None:
    container = {"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 81}]}
    spec = {"hostNetwork": True, "containers": [container], "initContainers": [container]}
    (only,) = made({"kind": "Pod", **template(**spec)}).pods
    for each in (*only.spec.containers, *only.spec.init_containers):
        assert [port.host_port for port in each.ports] == [80, 81]


def term(**keys: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"tier": "web"}}
    return {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, **keys}


def test_label_keys_become_part_of_the_selector() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = {
        "affinity": {
            "podAffinity": {required: [term(matchLabelKeys=["app", "not-a-label"])]},
            "podAntiAffinity": {required: [term(mismatchLabelKeys=["app"])]},
        },
        "topologySpreadConstraints": [term(matchLabelKeys=["app"])],
    }
    (only,) = made({"kind": "Pod", **template(**spec)}).pods
    affinity = only.spec.affinity
    for selector, operator in (
        (affinity.pod_affinity.required[0].label_selector, "In"),
        (affinity.pod_anti_affinity.required[0].label_selector, "NotIn"),
        (only.spec.topology_spread_constraints[0].label_selector, "In"),
    ):
        (expression,) = selector.match_expressions
        assert (expression.key, expression.operator, expression.values) == ("app", operator, ("x",))
    assert "matchExpressions" not in str(spec), "what was asked stays as it was"


@pytest.mark.parametrize("keys", [5, "app", [["app"]], {"app": 1}])
def test_label_keys_that_are_no_list_of_names_are_named(keys: Any) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spec = {"affinity": {"podAffinity": {required: [term(matchLabelKeys=keys)]}}}
    with pytest.raises(QuestionError, match=r"^t: matchLabelKeys: "):
        made({"kind": "Deployment", "spec": {"template": template(**spec)}})


def test_a_pod_is_asked_about_as_if_it_had_no_node() -> None:
    running = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}
    (only,) = pod(running, at="t", admission=Admission()).pods
    assert (only.key, only.spec.node_name, only.status.phase) == ("default/p", "", "Pending")


def asked(**template: Any) -> dict[str, Any]:
    return {"templates": [template]}


@pytest.mark.parametrize(
    ("question", "says"),
    [
        pytest.param(
            asked(manifest={"kind": "Deploy"}),
            "templates: none of them creates pods: 1 Deploy",
            id="a kind that makes no pods",
        ),
        pytest.param(
            asked(manifest={"kind": "Deployment", "spec": []}),
            "templates[0].manifest.spec: an object is needed, got []",
            id="a list for an object",
        ),
        pytest.param(
            asked(manifest=deployment(tolerations=[{"key": 1}])),
            "templates[0].manifest: Pod '': Expected `str`, got `int` - at"
            " `$.spec.tolerations[0].key`",
            id="a field of the wrong type",
        ),
        pytest.param(
            asked(manifest=deployment(priorityClassName="x")),
            "templates[0].manifest: priorityClassName: 'x': not known",
            id="an unknown priority class",
        ),
        pytest.param(
            asked(manifest=deployment(schedulerName="mine")),
            "pod shop/web-0: spec.schedulerName: no profile 'mine'",
            id="an unknown scheduler",
        ),
        pytest.param({"pods": [{}]}, "pods[0].metadata.name: needed", id="a pod without a name"),
        pytest.param(
            {"pods": [{"kind": "Job"}]}, "pods[0].kind: 'Job': must be Pod", id="no pod at all"
        ),
        pytest.param(
            {"addNodes": [{"manifest": {"kind": "Node"}}]},
            "addNodes[0].manifest.status.allocatable: needed",
            id="a node that has nothing to give",
        ),
        pytest.param(
            {"findNodes": {"like": "x"}},
            "findNodes.like: 'x': there is no such node",
            id="like a node that is not there",
        ),
        pytest.param(
            {"removeNodes": {"names": ["one", "x"]}},
            "removeNodes.names[1]: 'x': there is no such node",
            id="a node to remove that is not there",
        ),
        pytest.param(
            {"cordonNodes": {"selector": "a in"}},
            "cordonNodes.selector: 'a in': ",
            id="a broken selector",
        ),
        pytest.param(
            {"removePods": {"names": ["x"]}},
            "removePods.names[0]: 'default/x': there is no such pod",
            id="a pod to remove that is not there",
        ),
        pytest.param(
            {"removePods": {"namespace": "x"}},
            "removePods.namespace: goes with a selector",
            id="a namespace alone",
        ),
        pytest.param(
            {"templates": [{"manifest": deployment(), "replicas": 15_000}] * 2},
            "templates[1].manifest.replicas: 15000: must be at most 5000, with the others",
            id="too many pods",
        ),
    ],
)
def test_what_is_wrong_is_named(question: dict[str, Any], says: str) -> None:
    with pytest.raises(QuestionError) as caught:
        ask(snapshot(ONE), **question)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("question", "where"),
    [
        pytest.param({"podz": []}, ("podz",), id="an unknown field"),
        pytest.param({"seed": "1"}, ("seed",), id="a string for a number"),
        pytest.param({"seed": -1}, ("seed",), id="a negative seed"),
        pytest.param(
            {"templates": [{"manifest": {}, "replicas": 20_001}]},
            ("templates", 0, "replicas"),
            id="too many replicas",
        ),
        pytest.param({"findNodes": {}}, ("findNodes",), id="nodes of no type"),
        pytest.param(
            {"addNodes": [{"like": "one", "manifest": {}}]}, ("addNodes", 0), id="of two types"
        ),
    ],
)
def test_a_question_is_read_strictly(question: dict[str, Any], where: tuple[Any, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        ask(snapshot(ONE), **question)
    assert [error["loc"] for error in caught.value.errors()] == [where]
