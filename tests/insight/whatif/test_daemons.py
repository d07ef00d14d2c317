"""Pods of DaemonSets on nodes that come."""

import json
from typing import Any

import pytest

from berth.insight.whatif.manifests import QuestionError
from berth.insight.whatif.snapshot import Snapshot, SnapshotError, decode
from berth.kube.objects.meta import OwnerReference
from tests.builders import (
    node,
    node_affinity,
    pod,
    requirement,
    taint,
    term,
    toleration,
)
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot

ONE = node("one", cpu="4", labels={"pool": "a"})
AGENT = OwnerReference("apps/v1", "DaemonSet", "agent", "u-agent", controller=True)


def daemon(on: str, *, name: str = "agent", cpu: str = "2", **more: Any) -> Any:
    """A running pod of a DaemonSet, as its controller and the scheduler leave it."""
    owner = OwnerReference("apps/v1", "DaemonSet", name, f"u-{name}", controller=True)
    here = node_affinity(required=[term(fields=[requirement("metadata.name", "In", on)])])
    return pod(f"{name}-{on}", cpu=cpu, node=on, owner=owner, affinity=here, **more)


def daemon_set(name: str = "agent", *, cpu: str = "2", **spec: Any) -> dict[str, Any]:
    written = deployment(name, cpu=cpu, kind="DaemonSet", **spec)
    del written["spec"]["replicas"]
    return written


def needed(*objects: Any, **question: Any) -> int | None:
    asked = {"templates": [{"manifest": deployment(cpu="1"), "replicas": 30}], **question}
    found = ask(snapshot(*objects), **asked)
    assert found.nodes_needed is not None
    return found.nodes_needed.count


def test_nodes_that_are_found_run_daemons() -> None:
    """Half of each node is the agent's, also of the one that is there."""
    assert needed(ONE, findNodes={"like": "one"}) == 7
    assert needed(ONE, daemon("one"), findNodes={"like": "one"}) == 14
    found = ask(snapshot(ONE, daemon("one")), findNodes={"like": "one"})
    assert found.notes == ("findNodes: with the pods of DaemonSets default/agent",)
    like_one = manifest(node("new", cpu="4"))
    assert needed(ONE, daemon("one"), findNodes={"manifest": like_one}) == 14


def test_what_was_found_is_what_is_added() -> None:
    taken = snapshot(ONE, daemon("one"))
    templates = [{"manifest": deployment(cpu="1"), "replicas": 30}]
    for count, fits in ((14, True), (13, False)):
        added = [{"like": "one", "count": count}]
        found = ask(taken, templates=templates, addNodes=added)
        assert found.fits is fits
        assert found.before.pods == 1
        assert found.after.resources["cpu"].requested == found.after.resources["cpu"].allocatable


TOLERANT = [toleration("dedicated", operator="Exists")]


@pytest.mark.parametrize(
    ("running", "new", "comes"),
    [
        pytest.param({}, {}, True, id="any node"),
        pytest.param({"node_selector": {"pool": "a"}}, {"labels": {"pool": "a"}}, True, id="ours"),
        pytest.param({"node_selector": {"pool": "a"}}, {"labels": {"pool": "b"}}, False, id="not"),
        pytest.param({}, {"taints": [taint("dedicated")]}, False, id="tainted"),
        pytest.param(
            {"tolerations": TOLERANT}, {"taints": [taint("dedicated")]}, True, id="tolerated"
        ),
        pytest.param(
            {}, {"taints": [taint("dedicated", effect="PreferNoSchedule")]}, True, id="preferred"
        ),
    ],
)
def test_selector_and_tolerations_decide(
    running: dict[str, Any], new: dict[str, Any], comes: bool
) -> None:
    added = [{"manifest": manifest(node("new", cpu="4", **new))}]
    found = ask(snapshot(ONE, daemon("one", **running)), addNodes=added)
    assert found.after.pods == (2 if comes else 1)


@pytest.mark.parametrize(("on", "pods"), [(True, 2), (False, 1)], ids=["gate on", "gate off"])
def test_numbers_are_compared_with_the_feature_gate(*, on: bool, pods: int) -> None:
    few = [toleration("gpus", operator="Lt", value="8")]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {"TaintTolerationComparisonOperators": on},
    }
    added = [{"manifest": manifest(node("new", cpu="4", taints=[taint("gpus", "4")]))}]
    taken = snapshot(ONE, daemon("one", tolerations=few), config=config)
    assert ask(taken, addNodes=added).after.pods == pods


def test_a_copy_runs_what_its_model_runs() -> None:
    """The affinity of the template is lost in its pods: the controller writes the node's name."""
    two = node("two", cpu="4")
    taken = snapshot(ONE, two, daemon("one"), daemon("two", name="other"))
    found = ask(taken, addNodes=[{"like": "two"}], removePods={"names": ["agent-one"]})
    assert found.after.pods == 2
    assert found.after.resources["cpu"].requested == 4000


def test_nodes_that_replace_all_others_run_what_those_ran() -> None:
    """Where no pod of a DaemonSet is left, it is still known."""
    new = {"manifest": manifest(node("new", cpu="4")), "count": 2}
    found = ask(snapshot(ONE, daemon("one")), removeNodes={"names": ["one"]}, addNodes=[new])
    assert (found.after.nodes, found.after.pods) == (2, 2)


def test_manifests_of_a_list_say_more_than_pods() -> None:
    in_pool = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    }
    written = daemon_set(affinity=in_pool, priorityClassName="unknown")
    objects = [manifest(ONE), written]
    taken = decode(json.dumps({"kind": "List", "items": objects}).encode(), source="kubectl")
    again = decode(b"".join(taken.encode()), source="file")
    for each in (taken, again):
        for pool, pods in (("b", 1), ("a", 0)):
            new = manifest(node("new", cpu="4", labels={"pool": pool}))
            assert ask(each, addNodes=[{"manifest": new}]).after.pods == pods
    (spec,) = (each["spec"]["template"]["spec"] for each in again.daemon_sets)
    assert spec["priorityClassName"] == "unknown"


def test_a_daemon_set_of_a_list_that_cannot_be_read_is_named() -> None:
    broken = Snapshot(objects={"Node": [ONE]}, daemon_sets=({"spec": {"template": 1}},))
    with pytest.raises(QuestionError, match=r"DaemonSet\[0\] of the snapshot"):
        ask(broken, addNodes=[{"like": "one"}])
    with pytest.raises(SnapshotError, match=r"items\[0\], DaemonSet"):
        decode(b'{"kind":"List","items":[{"kind":"DaemonSetList","items":7}]}', source="x")


# DaemonSets that are asked about.


def test_a_daemon_set_has_a_pod_for_each_node_that_runs_it() -> None:
    tainted = node("tainted", cpu="4", taints=[taint("dedicated")])
    cordoned = node("cordoned", cpu="4", unschedulable=True)
    small = node("small", cpu="1")
    found = ask(
        snapshot(ONE, tainted, cordoned, small),
        templates=[{"manifest": daemon_set()}],
        addNodes=[{"manifest": manifest(node("new", cpu="4"))}],
    )
    assert found.placements == {f"shop/agent-{name}": name for name in ("one", "cordoned", "new")}
    (left,) = found.unplaced
    assert (left.template, left.pods) == ("DaemonSet shop/agent", ("shop/agent-small",))
    assert not found.fits


def test_a_daemon_set_that_runs_is_replaced() -> None:
    running = daemon("one", cpu="4", ns="shop")
    found = ask(snapshot(ONE, running), templates=[{"manifest": daemon_set(cpu="3")}])
    assert (found.fits, found.after.resources["cpu"].requested) == (True, 3000)
    found = ask(
        snapshot(ONE, running),
        templates=[
            {"manifest": daemon_set(cpu="3")},
            {"manifest": deployment(cpu="1"), "replicas": 3},
        ],
        findNodes={"like": "one"},
    )
    assert found.nodes_needed is not None
    assert found.nodes_needed.count == 2, "a new node runs the new agent"


def test_replicas_of_a_daemon_set_are_refused() -> None:
    with pytest.raises(QuestionError, match=r"templates\[0\].manifest.replicas: a DaemonSet"):
        ask(snapshot(ONE), templates=[{"manifest": daemon_set(), "replicas": 3}])
