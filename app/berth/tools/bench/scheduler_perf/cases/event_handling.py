"""Test cases of ``event_handling``: pods that do not fit until an event lets them in."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from berth.tools.bench.scheduler_perf.operations import (
    Barrier,
    CreateNodes,
    CreatePods,
    DeletePods,
    Operation,
    UpdateAny,
)
from berth.tools.bench.scheduler_perf.run import NODES, PODS
from berth.tools.bench.scheduler_perf.storage import CSI, CSI_ONCE_POD, Volume, claim_source
from berth.tools.bench.scheduler_perf.templates import (
    CONTAINER,
    PREFIX,
    Object,
    Template,
    affinity,
    light_pod,
    named_node,
    node,
    node_affinity,
    pod_name,
    spread,
    tolerating,
)
from berth.tools.bench.scheduler_perf.test_case import PerfCase, Workload
from berth.tools.bench.workloads import HOSTNAME, ZONE, requests

UNSCHEDULABLE: Final = {"type": "unsched"}
BLUE: Final = {"topology": "blue"}
PORTS: Final = 12
"""Host ports that pods ask for in turns."""
VOLUMES_PER_NODE: Final = 20
ALLOWED: Final = {ZONE: "zone1", "affinity": "allow", "topology": "allow"}
"""What nodes are labelled with that pods wait for."""
MANY_PODS: Final = 3_000
"""That a node has room for, where nothing else is to limit them."""
MANY_UPDATED_PODS: Final = 90_000
"""The same, of nodes for pods that are updated."""
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

TOPOLOGY: Final = "blockertopologyportsresources"
AFFINITY: Final = "blockeraffinity"
SPREAD: Final = "podtopologyspread"
INTER_POD: Final = "interpodaffinity"
BLOCKER: Final = "blocker"


def _blocked(
    count: int, template: Template, namespace: str, volume: Volume | None = None
) -> CreatePods:
    """Return the creation of pods that are measured, and do not fit for now."""
    return CreatePods(count, template, (namespace,), volume, is_measured=True, skip_wait=True)


def _pod_delete(init_nodes: int, blocker_pods: int, measure_pods: int) -> Iterator[Operation]:
    """Delete pods that keep others off their nodes by plugins of six kinds."""
    yield CreateNodes(init_nodes, csi_limit=VOLUMES_PER_NODE)
    yield CreatePods(blocker_pods, _blocker, (TOPOLOGY,), CSI)
    yield CreatePods(blocker_pods, _green, (AFFINITY,), CSI_ONCE_POD)
    yield _blocked(measure_pods, _spread_over_nodes, TOPOLOGY)
    yield _blocked(blocker_pods, _with_claim_of_blocker, AFFINITY)
    yield _blocked(measure_pods, _with_port, "nodeports")
    yield _blocked(measure_pods, _with_requests, "noderesources")
    yield _blocked(blocker_pods, _unschedulable, "nodevolumelimits", CSI)
    yield _blocked(measure_pods, _not_beside_green, INTER_POD)
    yield Barrier(is_attempted=True)
    yield DeletePods(TOPOLOGY, blocker_pods, per_second=100)
    yield DeletePods(AFFINITY, blocker_pods, per_second=100)
    yield Barrier()


def _blocker(n: int) -> Object:
    spec = spread(BLUE, HOSTNAME, skew=10, minDomains=10_000) | _port(n)
    spec["containers"][0]["resources"] = {"requests": {"cpu": "350m", "memory": "3Gi"}}
    return light_pod(spec, labels={**BLUE, "type": "blocker"})


def _green(_: int) -> Object:
    return light_pod(labels={"color": "green", "type": "blocker"})


def _port(n: int) -> Object:
    port = int(f"8{n % PORTS}")
    return {"containers": [{**CONTAINER, "ports": [{"hostPort": port, "containerPort": port}]}]}


def _spread_over_nodes(_: int) -> Object:
    return light_pod(
        spread(BLUE, HOSTNAME, skew=11, minDomains=10_000), labels=BLUE | UNSCHEDULABLE
    )


def _with_claim_of_blocker(n: int) -> Object:
    return light_pod(claim_source(n), labels=UNSCHEDULABLE)


def _with_port(n: int) -> Object:
    return light_pod(_port(n), labels=UNSCHEDULABLE)


def _with_requests(_: int) -> Object:
    return light_pod(requests(200, 1_024), labels=UNSCHEDULABLE)


def _unschedulable(_: int) -> Object:
    return light_pod(labels=UNSCHEDULABLE)


def _not_beside_green(_: int) -> Object:
    spec = affinity("podAntiAffinity", "green", HOSTNAME, namespaces=[PREFIX + AFFINITY])
    return light_pod(spec, labels={"color": "green"} | UNSCHEDULABLE)


def _pod_add(measure_pods: int) -> Iterator[Operation]:
    """Add pods that balance the domains of others, or that others have affinity to."""
    yield CreateNodes(2, lambda n: node(f"node-{n}", pods=MANY_PODS))
    yield CreatePods(1, lambda _: light_pod(labels={"color": "green"}), (SPREAD,))
    yield _blocked(measure_pods, _spread_without_green, SPREAD)
    yield _blocked(measure_pods, _beside_yellow, INTER_POD)
    yield Barrier(is_attempted=True)
    yield CreatePods(measure_pods, _balancing, (SPREAD,))
    yield CreatePods(measure_pods, _yellow, (INTER_POD,))
    yield Barrier()


def _in(namespace: str, kind: str, color: str) -> Object:
    return affinity(kind, color, HOSTNAME, namespaces=[PREFIX + namespace])


def _spread_without_green(_: int) -> Object:
    spec = _in(SPREAD, "podAntiAffinity", "green") | spread(BLUE, HOSTNAME)
    return light_pod(spec, labels=BLUE | UNSCHEDULABLE)


def _beside_yellow(n: int) -> Object:
    return light_pod(_in(INTER_POD, "podAffinity", f"yellow-{n}"), labels=UNSCHEDULABLE)


def _balancing(_: int) -> Object:
    return light_pod(_in(SPREAD, "podAffinity", "green"), labels={**BLUE, "color": "green"})


def _yellow(n: int) -> Object:
    return light_pod(labels={"color": f"yellow-{n}"})


def _pod_update(blocker_pods: int, measure_pods: int) -> Iterator[Operation]:
    """Update waiting pods, and pods that are in the way of others, so that they fit."""
    yield CreateNodes(1, _unschedulable_node)
    yield _blocked(measure_pods, _unschedulable, "nodeunschedulable")
    yield CreateNodes(1, _node_with_taint)
    yield _blocked(measure_pods, _unschedulable, "tainttoleration")
    yield Barrier(is_attempted=True)
    yield _update_pods(measure_pods, "nodeunschedulable", _tolerated(TAINT_UNSCHEDULABLE))
    yield _update_pods(measure_pods, "tainttoleration", _tolerated("toleration"))
    yield Barrier()

    memory = f"{30_000 // blocker_pods}Mi"
    yield CreateNodes(1, named_node)
    yield CreatePods(blocker_pods, _blocker_of_updates(memory), (BLOCKER,))
    yield _blocked(measure_pods, _not_beside_its_green, INTER_POD)
    yield _blocked(measure_pods, lambda _: _with_memory(memory), "noderesources")
    yield _blocked(blocker_pods, _spread_over_one_node(blocker_pods), BLOCKER)
    yield _blocked(measure_pods, _gated, "schedulinggates")
    yield Barrier(is_attempted=True)
    no_labels = {"metadata": {"labels": {"color": None, "topology": None}}}
    yield _update_pods(blocker_pods, BLOCKER, no_labels)
    yield _update_pods(blocker_pods, BLOCKER, {"spec": _memory("1Mi")}, subresource="/resize")
    yield _update_pods(measure_pods, "schedulinggates", {"spec": {"schedulingGates": None}})
    yield Barrier()


def _update_pods(count: int, namespace: str, patch: Object, *, subresource: str = "") -> UpdateAny:
    pods = PODS.format(namespace=PREFIX + namespace)
    return UpdateAny(count, lambda n: f"{pods}/{pod_name(n)}{subresource}", lambda _: patch)


def _unschedulable_node(_: int) -> Object:
    obj = node("unschedulable-node", pods=MANY_UPDATED_PODS)
    return obj | {"spec": {"unschedulable": True}}


def _node_with_taint(_: int) -> Object:
    return node("node-with-taint", pods=MANY_UPDATED_PODS, taint="toleration")


def _tolerated(key: str) -> Object:
    return {"spec": tolerating(key)}


def _memory(amount: str) -> Object:
    amounts = {"requests": {"cpu": "0.0001", "memory": amount}}
    return {"containers": [{**CONTAINER, "resources": amounts}]}


def _with_memory(amount: str) -> Object:
    return light_pod(_memory(amount), labels=UNSCHEDULABLE)


def _blocker_of_updates(memory: str) -> Template:
    return lambda n: light_pod(_memory(memory), labels={**BLUE, "color": f"green-{n}"})


def _not_beside_its_green(n: int) -> Object:
    spec = _in(BLOCKER, "podAntiAffinity", f"green-{n}")
    return light_pod(spec, labels={"color": f"green-{n}"} | UNSCHEDULABLE)


def _spread_over_one_node(skew: int) -> Template:
    spec = spread(BLUE, HOSTNAME, skew=skew, minDomains=100)
    return lambda _: light_pod(spec, labels=BLUE | UNSCHEDULABLE)


def _gated(_: int) -> Object:
    return light_pod({"schedulingGates": [{"name": "test.k8s.io/hold"}]}, labels=UNSCHEDULABLE)


def _node_add(nodes: int, measure_pods: int) -> Iterator[Operation]:
    """Add nodes, each time of those that fit the pods that one or more plugins had rejected."""
    yield CreateNodes(1, lambda _: _labelled("node-unschedulable", unschedulable=True))
    yield _blocked(measure_pods, _tolerating_pod, "nodeunschedulable")
    yield Barrier(is_attempted=True)
    yield CreateNodes(1, lambda _: _sized("node-low-capacity", "0.1", "100Mi"))
    yield _blocked(measure_pods, _medium_pod, "noderesources")
    yield Barrier(is_attempted=True)
    yield CreateNodes(nodes, lambda n: _sized(f"node-high-capacity-{n}", "200", "200Gi"))
    yield Barrier()

    yield _blocked(measure_pods, _with_affinity_to_itself, INTER_POD)
    yield _blocked(measure_pods, _with_node_affinity, "nodeaffinity")
    yield _blocked(measure_pods, _spread_over_many_domains, SPREAD)
    yield Barrier(is_attempted=True)
    yield CreateNodes(nodes, lambda n: _labelled(f"node-unblocker-{n}"))
    yield Barrier()

    yield _blocked(measure_pods, lambda _: _tolerant("toleration"), "tainttoleration")
    yield Barrier(is_attempted=True)
    yield CreateNodes(nodes, lambda n: _tainted(f"node-with-taint-{n}", taint="toleration"))
    yield Barrier()


def _labelled(name: str, *, unschedulable: bool = False) -> Object:
    obj = _tainted(name, unschedulable=unschedulable)
    obj["metadata"]["labels"] |= ALLOWED
    return obj


def _sized(name: str, cpu: str, memory: str) -> Object:
    return node(name, pods=MANY_PODS, taint="allow", amounts={"cpu": cpu, "memory": memory})


def _medium_pod(_: int) -> Object:
    return _tolerant("allow", requests(200, 200))


def _spread_over_many_domains(_: int) -> Object:
    spec = spread({"color": "blue"}, "topology", skew=1_000, minDomains=10_000)
    return _tolerant("allow", spec, color="blue")


def _node_update(nodes: int, measure_pods: int) -> Iterator[Operation]:
    """Update nodes, each time so that the pods fit that one or more plugins had rejected."""
    yield CreateNodes(nodes, lambda n: _tainted(f"node-unschedulable-{n}", unschedulable=True))
    yield _blocked(measure_pods, _tolerating_pod, "nodeunschedulable")
    yield Barrier(is_attempted=True)
    yield _update(nodes, "node-unschedulable", lambda _: {"spec": {"unschedulable": None}})
    yield Barrier()

    yield CreateNodes(nodes, _small_node)
    yield _blocked(measure_pods, _large_pod, "noderesources")
    yield Barrier(is_attempted=True)
    yield _update(nodes, "node-low-capacity", _more_capacity, subresource="/status")
    yield Barrier()

    yield CreateNodes(nodes, lambda n: _tainted(f"node-without-labels-{n}"))
    yield _blocked(measure_pods, _with_affinity_to_itself, INTER_POD)
    yield _blocked(measure_pods, _with_node_affinity, "nodeaffinity")
    yield _blocked(measure_pods, _spread_by_label, SPREAD)
    yield Barrier(is_attempted=True)
    yield _update(nodes, "node-without-labels", lambda _: {"metadata": {"labels": ALLOWED}})
    yield Barrier()

    yield CreateNodes(nodes, lambda n: _tainted(f"node-without-taints-{n}"))
    yield _blocked(measure_pods, _tolerating_one_node, "tainttoleration")
    yield Barrier(is_attempted=True)
    yield _update(nodes, "node-without-taints", _other_taint)
    yield Barrier()


def _update(count: int, name: str, patch: Template, *, subresource: str = "") -> UpdateAny:
    return UpdateAny(count, lambda n: f"{NODES}/{name}-{n}{subresource}", patch)


def _tainted(name: str, *, taint: str = "allow", unschedulable: bool = False) -> Object:
    obj = node(name, pods=MANY_PODS, taint=taint)
    return obj | {"spec": obj["spec"] | {"unschedulable": True}} if unschedulable else obj


def _small_node(n: int) -> Object:
    name, amounts = f"node-low-capacity-{n}", {"cpu": "0.0001", "memory": "1Mi"}
    return node(name, pods=MANY_PODS, taint="allow-noderesources", amounts=amounts)


def _more_capacity(_: int) -> Object:
    return {"status": node("", pods=MANY_PODS)["status"]}


def _other_taint(n: int) -> Object:
    return {"spec": node("", taint=f"toleration-{n}")["spec"]}


def _tolerating_pod(_: int) -> Object:
    return _tolerant("allow")


def _tolerant(key: str, spec: Object | None = None, **labels: Any) -> Object:
    return light_pod(tolerating(key) | (spec or {}), labels=labels)


def _large_pod(_: int) -> Object:
    return _tolerant("allow-noderesources", requests(350, 3_072))


def _with_affinity_to_itself(_: int) -> Object:
    return _tolerant("allow", affinity("podAffinity", "green", ZONE), color="green")


def _with_node_affinity(_: int) -> Object:
    return _tolerant("allow", node_affinity("matchExpressions", "affinity", "allow"))


def _spread_by_label(_: int) -> Object:
    spec = spread({"color": "blue"}, "topology", minDomains=1)
    return _tolerant("allow", spec, color="blue")


def _tolerating_one_node(n: int) -> Object:
    return _tolerant(f"toleration-{n // 10}")


CASES: Final[Mapping[str, PerfCase]] = {
    "EventHandlingPodDelete": PerfCase(
        _pod_delete,
        {
            "2Nodes_20Pods": Workload((2, 15, 20)),
            "50Nodes_500Pods": Workload((50, 480, 500)),
        },
    ),
    "EventHandlingPodUpdate": PerfCase(
        _pod_update,
        {"1Node_10Pods": Workload((10, 10)), "1Node_1000Pods": Workload((1_000, 1_000))},
    ),
    "EventHandlingNodeAdd": PerfCase(
        _node_add,
        {"2Nodes_20Pods": Workload((2, 20)), "100Nodes_1000Pods": Workload((100, 1_000))},
    ),
    "EventHandlingPodAdd": PerfCase(
        _pod_add, {"10Pods": Workload((10,)), "1000Pods": Workload((1_000,))}
    ),
    "EventHandlingNodeUpdate": PerfCase(
        _node_update,
        {"2Nodes_20Pods": Workload((2, 20)), "100Nodes_1000Pods": Workload((100, 1_000))},
    ),
}
