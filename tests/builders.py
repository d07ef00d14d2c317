"""Kubernetes objects in one line, for tests: ``pod("web-1", cpu="500m", node="n1")``.

Objects come out as the API server would have stored them and the scheduler would have decoded them:
what is not said has the API's default. Positional arguments name the thing, the rest is by keyword.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from berth.kube.objects.cluster import (
    Lease,
    Namespace,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    ServiceSpec,
    StatefulSet,
    WorkloadSpec,
)
from berth.kube.objects.meta import (
    Condition,
    KubeStruct,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
)
from berth.kube.objects.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from berth.kube.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaimSource,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)
from berth.kube.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from berth.kube.objects.quantity import Quantities, Quantity

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"


def node(
    name: str = "n1",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "8Gi",
    pods: Quantity = 110,
    allocatable: Mapping[str, Quantity] = {},
    labels: Mapping[str, str] = {},
    zone: str = "",
    region: str = "",
    taints: Sequence[Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] = {},
    features: Sequence[str] = (),
    version: str = "1",
) -> Node:
    """A node, labelled with its host name; *allocatable* adds to or replaces cpu, memory, pods."""
    topology = {HOSTNAME: name, ZONE: zone, REGION: region}
    amounts = {"cpu": cpu, "memory": memory, "pods": pods, **allocatable}
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"node-{name}",
            resource_version=version,
            labels={**{key: value for key, value in topology.items() if value}, **labels},
        ),
        spec=NodeSpec(unschedulable=unschedulable, taints=tuple(taints)),
        status=NodeStatus(
            allocatable=amounts,
            capacity=amounts,
            images=tuple(
                ContainerImage(nullable_names=(image,), size_bytes=size)
                for image, size in images.items()
            ),
            declared_features=tuple(features),
        ),
    )


def taint(key: str, value: str = "", *, effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def pod(
    name: str = "p",
    *,
    ns: str = "default",
    uid: str = "",
    labels: Mapping[str, str] = {},
    owner: str | OwnerReference | None = None,
    deleted: str | None = None,
    version: str = "1",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] = {},
    image: str = "",
    ports: Sequence[int | ContainerPort] = (),
    containers: Sequence[Container] | None = None,
    init_containers: Sequence[Container] = (),
    overhead: Mapping[str, Quantity] = {},
    pod_level: Mapping[str, Quantity] | None = None,
    node: str = "",
    scheduler: str = "default-scheduler",
    priority: int | None = None,
    preemption_policy: str | None = None,
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | None = None,
    tolerations: Sequence[Toleration] = (),
    spread: Sequence[TopologySpreadConstraint] = (),
    gates: Sequence[str] = (),
    claims: Sequence[str] = (),
    volumes: Sequence[Volume] = (),
    status: PodStatus | None = None,
    phase: str = "",
    nominated: str = "",
    started: str | None = None,
    conditions: Sequence[Condition] = (),
) -> Pod:
    """A pod. Without *containers* it has one, made of cpu, memory, requests, image and ports.

    *pod_level* are requests of the pod as a whole, *claims* names of persistent volume claims,
    *owner* the name of a ReplicaSet; *status* replaces what the keywords after it say.
    """
    if containers is None:
        containers = (
            container(cpu=cpu, memory=memory, requests=requests, image=image, ports=ports),
        )
    if isinstance(owner, str):
        owner = OwnerReference(
            api_version="apps/v1", kind="ReplicaSet", name=owner, uid=f"rs-{owner}", controller=True
        )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=ns,
            uid=uid or f"pod-{ns}-{name}",
            resource_version=version,
            labels=dict(labels),
            deletion_timestamp=deleted,
            owner_references=(owner,) if owner else (),
        ),
        spec=PodSpec(
            node_name=node,
            scheduler_name=scheduler,
            priority=priority,
            preemption_policy=preemption_policy,
            containers=tuple(containers),
            init_containers=tuple(init_containers),
            overhead=dict(overhead),
            resources=None if pod_level is None else ResourceRequirements(requests=dict(pod_level)),
            node_selector=None if node_selector is None else dict(node_selector),
            affinity=affinity,
            tolerations=tuple(tolerations),
            topology_spread_constraints=tuple(spread),
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates),
            volumes=(*(claim_volume(claim) for claim in claims), *volumes),
        ),
        status=status
        or PodStatus(
            phase=phase or ("Running" if node else "Pending"),
            nominated_node_name=nominated,
            start_time=started,
            conditions=tuple(conditions),
        ),
    )


def container(
    name: str = "main",
    *,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] = {},
    image: str = "",
    ports: Sequence[int | ContainerPort] = (),
    restart_policy: str = "",
) -> Container:
    """A container; a number among *ports* is a host port."""
    amounts: Quantities = dict(requests)
    if cpu is not None:
        amounts["cpu"] = cpu
    if memory is not None:
        amounts["memory"] = memory
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(requests=amounts),
        ports=tuple(host_port(port) if isinstance(port, int) else port for port in ports),
        restart_policy=restart_policy,
    )


def sidecar(
    name: str = "sidecar",
    *,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] = {},
    ports: Sequence[int | ContainerPort] = (),
) -> Container:
    """An init container that stays."""
    return container(
        name, cpu=cpu, memory=memory, requests=requests, ports=ports, restart_policy="Always"
    )


def host_port(port: int, *, ip: str = "", protocol: str = "TCP") -> ContainerPort:
    return ContainerPort(container_port=port, host_port=port, host_ip=ip, protocol=protocol)


def container_status(
    name: str = "main",
    *,
    actuated: Mapping[str, Quantity] | None = None,
    allocated: Mapping[str, Quantity] = {},
) -> ContainerStatus:
    """What a resize in place has come to."""
    return ContainerStatus(
        name=name,
        resources=None if actuated is None else ResourceRequirements(requests=dict(actuated)),
        allocated_resources=dict(allocated),
    )


def condition(type: str, status: str = "True", *, reason: str = "", message: str = "") -> Condition:
    return Condition(type=type, status=status, reason=reason, message=message)


def claim_volume(claim: str) -> Volume:
    return Volume(name=claim, persistent_volume_claim=PersistentVolumeClaimSource(claim_name=claim))


def toleration(
    key: str = "", value: str = "", *, operator: str = "", effect: str = ""
) -> Toleration:
    """A toleration; without an operator it is Equal if there is a value, else Exists."""
    return Toleration(
        key=key, value=value, operator=operator or ("Equal" if value else "Exists"), effect=effect
    )


def spread(
    key: str = ZONE,
    *,
    max_skew: int = 1,
    soft: bool = False,
    selector: LabelSelector | None = None,
    min_domains: int | None = None,
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None,
    node_taints_policy: Literal["Honor", "Ignore"] | None = None,
    match_label_keys: Sequence[str] = (),
) -> TopologySpreadConstraint:
    """A topology spread constraint; *soft* is ScheduleAnyway."""
    return TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=key,
        when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
        label_selector=selector,
        min_domains=min_domains,
        node_affinity_policy=node_affinity_policy,
        node_taints_policy=node_taints_policy,
        match_label_keys=tuple(match_label_keys),
    )


def selector(
    labels: Mapping[str, str] = {}, *, expressions: Sequence[LabelSelectorRequirement] = ()
) -> LabelSelector:
    return LabelSelector(match_labels=dict(labels), match_expressions=tuple(expressions))


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    """A condition on pod labels."""
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    """A condition on node labels or, in a term's *fields*, on the node's name."""
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(
    *expressions: NodeSelectorRequirement, fields: Sequence[NodeSelectorRequirement] = ()
) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=tuple(fields))


def node_affinity(
    *,
    required: Sequence[NodeSelectorTerm] | None = None,
    preferred: Sequence[tuple[int, NodeSelectorTerm]] = (),
) -> Affinity:
    """Node affinity alone; any of the *required* terms will do."""
    return Affinity(
        node_affinity=NodeAffinity(
            required=None
            if required is None
            else NodeSelector(node_selector_terms=tuple(required)),
            preferred=tuple(
                PreferredSchedulingTerm(weight=weight, preference=wanted)
                for weight, wanted in preferred
            ),
        )
    )


def pod_term(
    labels: Mapping[str, str] | LabelSelector | None,
    *,
    key: str = HOSTNAME,
    namespaces: Sequence[str] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term of pod (anti-)affinity: pods with *labels*, within one domain of *key*."""
    if labels is not None and not isinstance(labels, LabelSelector):
        labels = selector(labels)
    return PodAffinityTerm(
        topology_key=key,
        label_selector=labels,
        namespaces=tuple(namespaces),
        namespace_selector=namespace_selector,
    )


def pod_affinity(
    *,
    required: Sequence[PodAffinityTerm] = (),
    preferred: Sequence[tuple[int, PodAffinityTerm]] = (),
) -> Affinity:
    """Pod affinity alone."""
    return Affinity(pod_affinity=_pod_affinity(required, preferred))


def pod_anti_affinity(
    *,
    required: Sequence[PodAffinityTerm] = (),
    preferred: Sequence[tuple[int, PodAffinityTerm]] = (),
) -> Affinity:
    """Pod anti-affinity alone."""
    return Affinity(pod_anti_affinity=_pod_affinity(required, preferred))


def affinities(*parts: Affinity) -> Affinity:
    """Several kinds of affinity in one, each kind at most once."""
    kinds = Affinity.__struct_fields__
    return Affinity(
        **{kind: getattr(part, kind) for part in parts for kind in kinds if getattr(part, kind)}
    )


def _pod_affinity(
    required: Sequence[PodAffinityTerm], preferred: Sequence[tuple[int, PodAffinityTerm]]
) -> PodAffinity:
    return PodAffinity(
        required=tuple(required),
        preferred=tuple(
            WeightedPodAffinityTerm(weight=weight, pod_affinity_term=wanted)
            for weight, wanted in preferred
        ),
    )


def namespace(name: str = "default", *, labels: Mapping[str, str] = {}) -> Namespace:
    known = {"kubernetes.io/metadata.name": name}
    return Namespace(metadata=_metadata("ns", name, labels={**known, **labels}))


def priority_class(
    name: str, value: int, *, is_default: bool = False, preemption_policy: str | None = None
) -> PriorityClass:
    return PriorityClass(
        metadata=_metadata("pc", name),
        value=value,
        global_default=is_default,
        preemption_policy=preemption_policy,
    )


def service(name: str, *, ns: str = "default", selects: Mapping[str, str] | None = None) -> Service:
    chosen = None if selects is None else dict(selects)
    return Service(metadata=_metadata("svc", name, ns=ns), spec=ServiceSpec(selector=chosen))


def replication_controller(
    name: str, *, ns: str = "default", selects: Mapping[str, str] | None = None
) -> ReplicationController:
    chosen = None if selects is None else dict(selects)
    return ReplicationController(
        metadata=_metadata("rc", name, ns=ns), spec=ServiceSpec(selector=chosen)
    )


def replica_set(
    name: str, *, ns: str = "default", selects: LabelSelector | None = None
) -> ReplicaSet:
    return ReplicaSet(metadata=_metadata("rs", name, ns=ns), spec=WorkloadSpec(selector=selects))


def stateful_set(
    name: str, *, ns: str = "default", selects: LabelSelector | None = None
) -> StatefulSet:
    return StatefulSet(metadata=_metadata("sts", name, ns=ns), spec=WorkloadSpec(selector=selects))


def disruption_budget(
    name: str = "pdb",
    *,
    ns: str = "default",
    selects: LabelSelector | None = None,
    allows: int = 0,
    granted: Sequence[str] = (),
) -> PodDisruptionBudget:
    """A budget that allows so many evictions beside those of *granted*, which are under way."""
    return PodDisruptionBudget(
        metadata=_metadata("pdb", name, ns=ns),
        spec=PodDisruptionBudgetSpec(selector=selects),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allows,
            disrupted_pods=dict.fromkeys(granted, "2026-01-01T00:00:00Z"),
        ),
    )


def _metadata(
    prefix: str, name: str, *, ns: str = "", labels: Mapping[str, str] = {}
) -> ObjectMeta:
    return ObjectMeta(
        name=name, namespace=ns, uid=f"{prefix}-{name}", resource_version="1", labels=dict(labels)
    )


API_VERSIONS: Final[Mapping[type[KubeStruct], str]] = {
    Pod: "v1",
    Node: "v1",
    Namespace: "v1",
    Service: "v1",
    ReplicationController: "v1",
    ReplicaSet: "apps/v1",
    StatefulSet: "apps/v1",
    PodDisruptionBudget: "policy/v1",
    PriorityClass: "scheduling.k8s.io/v1",
    Lease: "coordination.k8s.io/v1",
}


def to_json(thing: KubeStruct) -> bytes:
    """Return *thing* as bytes of the API, with ``apiVersion`` and ``kind``.

    What has its default is left out, so it is for decoding, not for creating: the API server
    insists on some fields that are not written here.
    """
    head = {"apiVersion": API_VERSIONS[type(thing)], "kind": type(thing).__name__}
    return msgspec.json.encode(head | msgspec.to_builtins(thing))
