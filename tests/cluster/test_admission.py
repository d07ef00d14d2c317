"""What a new object must pass in view of others, and what a cluster has from the start."""

import random

import pytest

from berth.clock import FakeClock
from berth.cluster.bootstrap import bootstrap
from berth.cluster.errors import StatusError
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission import (
    DEFAULT_CLASS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    Admission,
)
from berth.cluster.writes.deletion import Deletions
from berth.cluster.writes.identities import Identities
from berth.cluster.writes.pipeline import Writes
from tests.cluster.bodies import pod

NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}


def make_writes() -> Writes:
    """A server without HTTP, as it is after its first start."""
    store, clock = Store(), FakeClock()
    writes = Writes(
        store,
        Deletions(store, clock=clock),
        admission=Admission(),
        clock=clock,
        identities=Identities(random.Random(7)),
    )
    bootstrap(writes)
    return writes


@pytest.fixture
def writes() -> Writes:
    return make_writes()


def created(writes: Writes, obj: Object) -> Object:
    return writes.create(PODS, obj["metadata"]["namespace"], obj).decode()


def create_class(writes: Writes, name: str, value: int, **more: object) -> None:
    writes.create(PRIORITY_CLASSES, "", {"metadata": {"name": name}, "value": value, **more})


def refused(writes: Writes, obj: Object) -> tuple[int, str]:
    with pytest.raises(StatusError) as error:
        created(writes, obj)
    return error.value.code, error.value.message


def test_a_namespace_must_exist(writes: Writes) -> None:
    assert refused(writes, pod(namespace="nowhere")) == (404, 'namespaces "nowhere" not found')


def test_nothing_new_in_a_namespace_that_is_being_deleted(writes: Writes) -> None:
    writes.create(NAMESPACES, "", {"metadata": {"name": "demo"}})
    writes.delete(NAMESPACES, "", "demo", DeleteOptions())

    assert refused(writes, pod("tmp", namespace="demo")) == (
        403,
        'pods "tmp" is forbidden: unable to create new content in namespace demo because it is '
        "being terminated",
    )


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_stay(writes: Writes, name: str) -> None:
    with pytest.raises(StatusError) as error:
        writes.delete(NAMESPACES, "", name, DeleteOptions())
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
def test_priority(writes: Writes, spec: Object, want: tuple[str | None, int, str]) -> None:
    create_class(writes, "polite", 7, preemptionPolicy="Never")
    got = created(writes, pod(**spec))["spec"]
    assert (got.get("priorityClassName"), got["priority"], got["preemptionPolicy"]) == want


def test_the_default_class_is_for_pods_that_name_none(writes: Writes) -> None:
    create_class(writes, "usual", 5, globalDefault=True)
    got = created(writes, pod())["spec"]
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
def test_priority_is_not_for_pods_to_say(writes: Writes, spec: Object, why: str) -> None:
    assert refused(writes, pod(**spec)) == (403, f'pods "p" is forbidden: {why}')


def test_one_default_class_only(writes: Writes) -> None:
    create_class(writes, "first", 1, globalDefault=True)
    create_class(writes, "second", 2)

    def make_default(obj: Object) -> Object:
        return {**obj, "globalDefault": True}

    with pytest.raises(StatusError) as on_create:
        create_class(writes, "third", 3, globalDefault=True)
    with pytest.raises(StatusError) as on_update:
        writes.update(PRIORITY_CLASSES, "", "second", make_default)
    writes.update(PRIORITY_CLASSES, "", "first", make_default)

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
    writes: Writes, tolerations: list[Object], want: list[Object]
) -> None:
    assert created(writes, pod(tolerations=tolerations))["spec"]["tolerations"] == want


def test_a_new_pod_is_as_a_real_server_makes_it(writes: Writes) -> None:
    got = created(writes, pod("plain"))

    assert got["spec"]["priority"] == 0
    assert got["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_starting_again_changes_nothing(writes: Writes) -> None:
    before = writes.get(NAMESPACES, "", "default").version
    bootstrap(writes)
    assert writes.get(NAMESPACES, "", "default").version == before


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param({}, "default", id="nothing: the default class"),
        pytest.param({"storageClassName": "slow"}, "slow", id="a class"),
        pytest.param({"storageClassName": ""}, "", id="none, on purpose"),
    ],
)
def test_the_class_of_a_volume_claim(writes: Writes, said: Object, want: str) -> None:
    for name in ("slow", "default"):
        annotations = {DEFAULT_CLASS: str(name == "default").lower()}
        storage_class = {"metadata": {"name": name, "annotations": annotations}, "provisioner": "p"}
        writes.create(STORAGE_CLASSES, "", storage_class)
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": requests, **said}
    claim = {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}

    assert writes.create(VOLUME_CLAIMS, "default", claim).decode()["spec"]["storageClassName"] == (
        want
    )
