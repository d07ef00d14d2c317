"""The default selector: of which services and owners, and when it changes."""

import msgspec
import pytest

from berth.kube.objects.cluster import ReplicaSet
from berth.kube.objects.meta import OwnerReference
from berth.kube.objects.selectors import Selector, compile_selector
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.pod_topology_spread.default_selector import DefaultSelectors
from tests.builders import (
    expression,
    pod,
    replica_set,
    replication_controller,
    selector,
    service,
    stateful_set,
)
from tests.plugins.pod_topology_spread.spreading import listers

LABELS = {"app": "web", "tier": "front", "hash": "1"}
BY_HASH = selector({"hash": "1"})


def owned_by(kind: str, *, version: str = "apps/v1", controller: bool = True) -> PodInfo:
    owner = OwnerReference(
        api_version=version, kind=kind, name="owner", uid="owner", controller=controller
    )
    return PodInfo(pod(labels=LABELS, owner=owner))


def wanted(**labels: str) -> Selector:
    return compile_selector(selector(labels))


@pytest.mark.parametrize(
    ("pod_info", "objects", "want"),
    [
        pytest.param(PodInfo(pod(labels=LABELS)), [], wanted(), id="alone"),
        pytest.param(
            PodInfo(pod(labels=LABELS)),
            [
                service("one", selects={"app": "web"}),
                service("two", selects={"tier": "front"}),
                service("not", selects={"app": "web", "tier": "back"}),
                service("far", ns="other", selects={"hash": "1"}),
                service("all", selects={}),
                service("none", selects=None),
            ],
            wanted(app="web", tier="front"),
            id="all services that select the pod",
        ),
        pytest.param(
            owned_by("ReplicaSet"),
            [replica_set("owner", selects=BY_HASH), service("s", selects={"app": "web"})],
            wanted(app="web", hash="1"),
            id="service and replica set",
        ),
        pytest.param(
            owned_by("StatefulSet"),
            [stateful_set("owner", selects=BY_HASH), replica_set("owner", selects=selector())],
            wanted(hash="1"),
            id="a stateful set",
        ),
        pytest.param(
            owned_by("ReplicationController", version="v1"),
            [
                replication_controller("owner", selects={"app": "old", "hash": "1"}),
                service("s", selects={"app": "web"}),
            ],
            wanted(app="old", hash="1"),
            id="a replication controller replaces labels of services",
        ),
        pytest.param(
            owned_by("ReplicationController", version="v1"),
            [replication_controller("owner", selects=None)],
            wanted(),
            id="a replication controller without a selector",
        ),
        pytest.param(
            owned_by("ReplicaSet"),
            [replica_set("owner", selects=selector(expressions=[expression("hash", "Exists")]))],
            compile_selector(selector(expressions=[expression("hash", "Exists")])),
            id="expressions",
        ),
        pytest.param(
            owned_by("ReplicaSet"),
            [replica_set("owner", selects=None), service("s", selects={"app": "web"})],
            wanted(app="web"),
            id="a replica set without a selector adds nothing",
        ),
        pytest.param(
            owned_by("ReplicaSet"),
            [replica_set("owner", selects=selector(expressions=[expression("hash", "In")]))],
            wanted(),
            id="a selector that cannot be compiled adds nothing",
        ),
        pytest.param(
            owned_by("ReplicaSet"), [replica_set("other", selects=BY_HASH)], wanted(), id="gone"
        ),
        pytest.param(
            owned_by("ReplicaSet"),
            [replica_set("owner", ns="other", selects=BY_HASH)],
            wanted(),
            id="of another namespace",
        ),
        pytest.param(
            owned_by("ReplicaSet", controller=False),
            [replica_set("owner", selects=BY_HASH)],
            wanted(),
            id="an owner that does not control",
        ),
        pytest.param(
            owned_by("ReplicaSet", version="example.com/v1"),
            [replica_set("owner", selects=BY_HASH)],
            wanted(),
            id="a kind of another group",
        ),
        pytest.param(owned_by("Job", version="batch/v1"), [], wanted(), id="another kind"),
    ],
)
def test_default_selector(pod_info: PodInfo, objects: list[msgspec.Struct], want: Selector) -> None:
    assert DefaultSelectors(listers(*objects)).of(pod_info) == want


def test_it_follows_services_and_the_owner() -> None:
    found = listers(replica_set("owner", selects=BY_HASH))
    selectors, pod_info = DefaultSelectors(found), owned_by("ReplicaSet")
    first = selectors.of(pod_info)
    assert first == wanted(hash="1")
    assert selectors.of(pod_info) is first, "kept"

    found.services.on_add(service("s", selects={"app": "web"}))
    second = selectors.of(pod_info)
    assert second == wanted(app="web", hash="1")

    found.replica_sets.on_add(replica_set("another", selects=selector()))
    found.replica_sets.on_add(replica_set("owner", selects=BY_HASH))  # its status changed
    assert selectors.of(pod_info) is second, "kept"

    found.replica_sets.on_update(ReplicaSet(), replica_set("owner", selects=selector()))
    assert selectors.of(pod_info) == wanted(app="web")

    found.services.on_delete(service("s"))
    assert selectors.of(pod_info).is_empty


def test_pods_of_one_template_may_have_different_owners() -> None:
    found = listers(
        replica_set("owner", selects=BY_HASH), stateful_set("owner", selects=selector())
    )
    selectors = DefaultSelectors(found)
    one, other = owned_by("ReplicaSet"), owned_by("StatefulSet")
    assert one.template is other.template
    assert [selectors.of(p) for p in (one, other, one)] == [
        wanted(hash="1"),
        wanted(),
        wanted(hash="1"),
    ]
