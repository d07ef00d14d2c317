"""What a new object must pass in view of others, and what a cluster has from the start."""

from dataclasses import replace

import pytest

from berth.cluster.bootstrap import NAMESPACES, PRIORITY_CLASSES, bootstrap
from berth.cluster.errors import StatusError
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.chain import Admission
from berth.cluster.writes.admission.default_storage_class import (
    DEFAULT_CLASS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
)
from berth.cluster.writes.admission.namespace_lifecycle import NamespaceLifecycle
from berth.cluster.writes.admission.priority import PODS
from berth.cluster.writes.admission.request import Operation
from berth.cluster.writes.admission.taint_nodes_by_condition import NODES
from tests.cluster.at_once import at_once
from tests.cluster.bodies import pod
from tests.cluster.writes.booted import Booted

NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}


@pytest.fixture
def cluster() -> Booted:
    return Booted()


def created(cluster: Booted, obj: Object) -> Object:
    return cluster.create(PODS, obj)


def create_class(cluster: Booted, name: str, value: int, **more: object) -> None:
    cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **more})


def refused(cluster: Booted, obj: Object) -> tuple[int, str]:
    with pytest.raises(StatusError) as error:
        created(cluster, obj)
    return error.value.code, error.value.message


def test_a_namespace_must_exist(cluster: Booted) -> None:
    assert refused(cluster, pod(namespace="nowhere")) == (404, 'namespaces "nowhere" not found')


def test_a_kind_may_come_back_with_another_scope() -> None:
    admission = Admission([NamespaceLifecycle(Store(log_capacity=1))])
    kinds = [replace(PODS, namespaced=each) for each in (True, False)]
    assert [admission.handles(Operation.CREATE, kind, "") for kind in kinds] == [True, False]


def test_nothing_new_in_a_namespace_that_is_being_deleted(cluster: Booted) -> None:
    cluster.create(NAMESPACES, {"metadata": {"name": "demo"}})
    cluster.delete(NAMESPACES, "demo")

    assert refused(cluster, pod("tmp", namespace="demo")) == (
        403,
        'pods "tmp" is forbidden: unable to create new content in namespace demo because it is '
        "being terminated",
    )


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_stay(cluster: Booted, name: str) -> None:
    with pytest.raises(StatusError) as error:
        cluster.delete(NAMESPACES, name)
    assert error.value.message == (
        f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    )


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, (None, 0, "PreemptLowerPriority"), id="no class: 0"),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            id="a class of the system",
        ),
        pytest.param({"priorityClassName": "polite"}, ("polite", 7, "Never"), id="a class of ours"),
    ],
)
def test_priority(cluster: Booted, spec: Object, want: tuple[str | None, int, str]) -> None:
    create_class(cluster, "polite", 7, preemptionPolicy="Never")
    got = created(cluster, pod(**spec))["spec"]
    assert (got.get("priorityClassName"), got["priority"], got["preemptionPolicy"]) == want


def test_the_default_class_is_for_pods_that_name_none(cluster: Booted) -> None:
    create_class(cluster, "usual", 5, globalDefault=True)
    got = created(cluster, pod())["spec"]
    assert (got["priorityClassName"], got["priority"]) == ("usual", 5)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"priorityClassName": "none"},
            "no PriorityClass with name none was found",
            id="an unknown class",
        ),
        pytest.param(
            {"priority": 9},
            "the integer value of priority (9) must not be provided in pod spec; priority "
            "admission controller computed 0 from the given PriorityClass name",
            id="a number of one's own",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given "
            "PriorityClass name",
            id="a policy of one's own",
        ),
    ],
)
def test_priority_is_not_for_pods_to_say(cluster: Booted, spec: Object, why: str) -> None:
    assert refused(cluster, pod(**spec)) == (403, f'pods "p" is forbidden: {why}')


def test_one_default_class_only(cluster: Booted) -> None:
    create_class(cluster, "first", 1, globalDefault=True)
    create_class(cluster, "second", 2)

    def make_default(obj: Object) -> Object:
        return {**obj, "globalDefault": True}

    with pytest.raises(StatusError) as on_create:
        create_class(cluster, "third", 3, globalDefault=True)
    with pytest.raises(StatusError) as on_update:
        cluster.update(PRIORITY_CLASSES, "second", make_default)
    cluster.update(PRIORITY_CLASSES, "first", make_default)

    why = "PriorityClass first is already marked as default. Only one default can exist"
    assert [on_create.value.message, on_update.value.message] == [
        f'priorityclasses.scheduling.k8s.io "{name}" is forbidden: {why}'
        for name in ("third", "second")
    ]


@pytest.mark.parametrize(
    ("tolerations", "want"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="both are added"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, UNREACHABLE],
            id="one is there already",
        ),
        pytest.param([{"operator": "Exists"}], [{"operator": "Exists"}], id="all is tolerated"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [{"operator": "Exists", "effect": "NoSchedule"}, NOT_READY, UNREACHABLE],
            id="another effect does not count",
        ),
    ],
)
def test_pods_stay_a_while_on_lost_nodes(
    cluster: Booted, tolerations: list[Object], want: list[Object]
) -> None:
    assert created(cluster, pod(tolerations=tolerations))["spec"]["tolerations"] == want


def test_a_new_pod_is_as_a_real_server_makes_it(cluster: Booted) -> None:
    got = created(cluster, pod("plain"))

    assert got["spec"]["priority"] == 0
    assert got["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_starting_again_changes_nothing(cluster: Booted) -> None:
    before = cluster.get(NAMESPACES, "default")["metadata"]["resourceVersion"]
    at_once(bootstrap(cluster.writes))
    assert cluster.get(NAMESPACES, "default")["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({}, "default", id="nothing: the default class"),
        pytest.param({"storageClassName": "slow"}, "slow", id="a class"),
        pytest.param({"storageClassName": ""}, "", id="none, on purpose"),
    ],
)
def test_the_class_of_a_volume_claim(cluster: Booted, said: Object, want: str) -> None:
    for name in ("slow", "default"):
        annotations = {DEFAULT_CLASS: str(name == "default").lower()}
        storage_class = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "p"}
        cluster.create(STORAGE_CLASSES, storage_class)
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": requests, **said}
    claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}

    assert cluster.create(VOLUME_CLAIMS, claim)["spec"]["storageClassName"] == (want)


NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taints", "want"),
    [
        pytest.param(None, [NOT_READY], id="a new node is not ready"),
        pytest.param([OTHER], [OTHER, NOT_READY], id="it keeps the taints that it comes with"),
        pytest.param([{**NOT_READY, "value": "x"}], [{**NOT_READY, "value": "x"}], id="it has it"),
        pytest.param(
            [{**NOT_READY, "effect": "NoExecute"}],
            [{**NOT_READY, "effect": "NoExecute"}, NOT_READY],
            id="one of another effect is another",
        ),
    ],
)
def test_a_new_node_is_tainted(
    cluster: Booted, taints: list[Object] | None, want: list[Object]
) -> None:
    node: Object = {"metadata": {"name": "n"}, "spec": {"taints": taints}}
    assert cluster.create(NODES, node)["spec"]["taints"] == want


def test_a_node_that_is_updated_is_not_tainted(cluster: Booted) -> None:
    cluster.create(NODES, {"metadata": {"name": "n"}})

    def untaint(node: Object) -> Object:
        return {**node, "spec": {}}

    assert "taints" not in cluster.update(NODES, "n", untaint)["spec"]
