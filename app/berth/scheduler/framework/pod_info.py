"""Pods as the scheduler handles them: compiled once per template, queued with a history."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from copy import copy
from functools import cached_property
from operator import methodcaller
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from berth.kube.objects import resources
from berth.kube.objects.host_ports import HostPort, host_ports
from berth.kube.objects.pod import Container, Pod, PodStatus, ResourceRequirements, Volume
from berth.kube.objects.pod_group import GroupKey, PodGroup
from berth.kube.objects.resources import Resources
from berth.kube.objects.selectors import RequiredNodeAffinity, required_node_affinity
from berth.kube.objects.sharing import POD_PARTS, share

T = TypeVar("T")

LARGE: Final = 2**43
"""Eight tebibytes, or billions of cores."""


class PodTemplate:
    """All that follows from what replicas share: spec, labels, namespace, allocated resources.

    The names of PersistentVolumeClaims are not shared: each pod of a StatefulSet has its own.
    Interned by signature, so that a thousand replicas are compiled once. Everything is computed on
    first use. ``pod`` is one of the pods of this template; only what is part of the signature may
    be read from it here.
    """

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self._memo: dict[object, Any] = {}

    @cached_property
    def requested(self) -> Resources:
        """What the pod takes from a node: ``NodeInfo.Requested`` (spec §4.4)."""
        return resources.requested(self.pod)

    @cached_property
    def non_zero_requested(self) -> tuple[int, int]:
        """Milli-CPU and bytes with defaults for what is not requested (spec §4.4)."""
        if self._is_plain:
            return self.fit_score_requests.milli_cpu, self.fit_score_requests.memory
        return resources.non_zero_requested(self.pod)

    @cached_property
    def _is_plain(self) -> bool:
        """Nothing is resized, and nothing requested for the pod as a whole or by claims.

        Then the views of spec §4.4 that differ only in these are one.
        """
        spec, status = self.pod.spec, self.pod.status
        return spec.resources is None and not (
            status.node_allocatable_resource_claim_statuses
            or status.resources is not None
            or status.allocated_resources
            or resources.is_resize_infeasible(self.pod)
            or resources.resized_containers(self.pod)
        )

    @cached_property
    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What the pod adds to a table's columns: cpu, memory, storage; then non-zero cpu, memory.

        Not to be changed.
        """
        amounts = self.requested
        native = (amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage)
        return np.array(native, np.int64), np.array(self.non_zero_requested, np.int64)

    @cached_property
    def is_large(self) -> bool:
        """Whether a million such pods may come to more than int64 holds, of any resource."""
        amounts = self.requested
        native = (amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage)
        return max(*native, *self.non_zero_requested, *amounts.scalars.values()) > LARGE

    @cached_property
    def load(self) -> tuple[object, ...]:
        """All that the pod takes from a node, whatever its labels; to be compared."""
        return self.requested, self.non_zero_requested, self.host_ports

    @cached_property
    def incoming_requested(self) -> Resources:
        """What the pod needs to fit: NodeResourcesFit's Filter (spec §4.4)."""
        return self.requested if self._is_plain else resources.incoming_requested(self.pod)

    @cached_property
    def fit_score_requests(self) -> Resources:
        """What NodeResourcesFit's Score counts (spec §4.4, the quirk)."""
        if self._is_plain and not resources.takes_defaults(self.pod):
            return self.requested
        return resources.fit_score_requests(self.pod)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The host ports that the pod takes on its node."""
        return host_ports(self.pod)

    @cached_property
    def required_node_affinity(self) -> RequiredNodeAffinity | None:
        """nodeSelector and required node affinity together; None: any node will do."""
        return required_node_affinity(self.pod.spec)

    @cached_property
    def volumes(self) -> tuple[Volume, ...]:
        """The volumes that plugins look at; what claims are called is each pod's own."""
        return _shared_volumes(self.pod)

    @cached_property
    def node_facts(self) -> bytes | None:
        """What plugins look at that go neither by containers nor by labels; to be compared.

        None if the pod has resource claims.
        """
        spec = self.pod.spec
        if spec.resource_claims:
            return None
        containers = (*spec.containers, *spec.init_containers)
        return _encode(
            (
                spec.node_selector,
                None if spec.affinity is None else spec.affinity.node_affinity,
                spec.tolerations,
                self.volumes,
                (spec.host_network, spec.host_users),
                [(c.ports, c.restart_policy_rules) for c in containers],
                any(mount.bind_mount_options for mount in spec.volume_mounts),
                tuple(self.incoming_requested.scalars),
            )
        )

    @cached_property
    def facts_but_labels(self) -> bytes | None:
        """What makes the template, but for namespace and labels; to be compared.

        None if the pod has resource claims.
        """
        return None if self.pod.spec.resource_claims else _facts(self.pod, labels=False)

    def memo(self, key: object, build: Callable[[], T]) -> T:
        """Return what *build* made for *key* the first time; plugins keep compiled terms here.

        *key* must identify the plugin instance and the thing, for two profiles may compile the
        same template differently: ``(self, "thing")``. What depends on the template alone goes by
        a name.
        """
        try:
            value: T = self._memo[key]
        except KeyError:
            value = self._memo[key] = build()
        return value

    def forget_plugins(self) -> None:
        """Drop what plugin instances keep here, and with it the instances."""
        for key in [key for key in self._memo if isinstance(key, tuple)]:
            del self._memo[key]


_templates: WeakValueDictionary[bytes, PodTemplate] = WeakValueDictionary()
_by_parts: WeakValueDictionary[tuple[int, int], PodTemplate] = WeakValueDictionary()
"""Templates by the identities of containers and labels, which both are alive while they are."""
_encode = msgspec.msgpack.Encoder().encode


def forgetting_plugins() -> Iterator[None]:
    """Drop what plugin instances keep with templates: those in use make theirs anew.

    Each template is a step.
    """
    for template in [*_templates.values()]:
        template.forget_plugins()
        yield


def _facts(
    pod: Pod, containers: Sequence[Container] | None = None, *, labels: bool = True
) -> bytes:
    """Return all that makes a template; with *containers* in place of the pod's own, and without
    *labels* and namespace if these are not asked for."""
    spec, status = pod.spec, pod.status
    return _encode(
        (
            (pod.metadata.namespace, pod.metadata.labels) if labels else None,
            spec.containers if containers is None else containers,
            spec.init_containers,
            spec.ephemeral_containers,
            spec.overhead,
            spec.resources,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            _shared_volumes(pod),
            spec.resource_claims,
            (spec.host_network, spec.host_users),
            resources.resized_containers(pod),
            (
                status.resources,
                status.allocated_resources,
                status.node_allocatable_resource_claim_statuses,
            ),
            [c.reason for c in status.conditions if c.type == "PodResizePending"],
        )
    )


def _shared_volumes(pod: Pod) -> tuple[Volume, ...]:
    """Return the volumes of *pod* that plugins look at, without the names of claims.

    Projected token volumes have random names and no source that we read.
    """
    shared = []
    for volume in pod.spec.volumes:
        claim = volume.persistent_volume_claim
        if claim is not None:
            unnamed = replace(claim, claim_name="")
            shared.append(replace(volume, persistent_volume_claim=unnamed))
        elif volume != Volume(name=volume.name):
            shared.append(volume)
    return tuple(shared)


def facts_without_requests(pod: Pod) -> bytes:
    """Return what makes the template of *pod*, but for what its containers request.

    What its init containers request is part of it.
    """
    return _facts(pod, [replace(c, resources=_no_requests(c)) for c in pod.spec.containers])


def _no_requests(container: Container) -> ResourceRequirements:
    return replace(container.resources, requests={})


def _template_of(pod: Pod) -> PodTemplate:
    """Return the template of *pod*: at once if its parts are those of a pod that was seen before,
    as they are of pods decoded by one :func:`~berth.kube.objects.shared_parts.PodDecoder`."""
    parts = (id(pod.spec.containers), id(pod.metadata.labels))
    template = _by_parts.get(parts)
    if template is not None and _are_of_one_template(template.pod, pod):
        return template
    signature = _facts(pod)
    template = _templates.get(signature)
    if template is None:
        template = _templates[signature] = PodTemplate(pod)
    elif template.pod.spec.containers is not pod.spec.containers:  # nor what else it decoded
        share(template.pod, pod, POD_PARTS)
    if _says_nothing(template.pod.status) and _are_of_one_template(template.pod, pod):
        _by_parts[parts] = template
    return template


def _are_of_one_template(known: Pod, pod: Pod) -> bool:
    """Whether :func:`_facts` of two pods are sure to be equal, of which the status of the *known*
    one adds nothing: nor does the other's, and the parts of their specs are the same objects."""
    before, spec = known.spec, pod.spec
    return (
        spec.containers is before.containers
        and pod.metadata.labels is known.metadata.labels
        and pod.metadata.namespace == known.metadata.namespace
        and spec.init_containers is before.init_containers
        and spec.ephemeral_containers is before.ephemeral_containers
        and spec.overhead is before.overhead
        and spec.resources is before.resources
        and spec.node_selector is before.node_selector
        and spec.affinity is before.affinity
        and spec.tolerations is before.tolerations
        and spec.topology_spread_constraints is before.topology_spread_constraints
        and spec.volumes is before.volumes
        and spec.resource_claims is before.resource_claims
        and spec.host_network is before.host_network
        and spec.host_users is before.host_users
        and _says_nothing(pod.status)
    )


def _says_nothing(status: PodStatus) -> bool:
    """Whether *status* adds nothing to the template of a pod."""
    for condition in status.conditions:
        if condition.type == "PodResizePending":
            return False
    return not (
        status.container_statuses
        or status.init_container_statuses
        or status.resources is not None
        or status.allocated_resources
        or status.node_allocatable_resource_claim_statuses
    )


class PodInfo(msgspec.Struct, eq=False, gc=False):
    """A pod and what was compiled from it. Immutable; a changed pod gets a new PodInfo.

    Made of *pod* and, if that is not what it says, *node_name*.

    The garbage collector neither counts nor visits it, nor dicts of it: it would walk a million of
    them and find that each is in use.
    """

    pod: Pod
    """The API object. Of the conditions of a bound pod, but for PodScheduled and DisruptionTarget,
    only type, status and reason are kept."""
    node_name: str = ""
    """Where the pod is bound, or assumed to be; empty while it waits."""
    template: PodTemplate = msgspec.UNSET  # type: ignore[assignment]  # see __post_init__
    uid: str = ""
    priority: int = 0

    def __post_init__(self) -> None:
        pod = self.pod
        self.node_name = self.node_name or pod.spec.node_name
        self.template = _template_of(pod)
        self.uid = pod.metadata.uid
        self.priority = pod.spec.priority or 0

    @property
    def key(self) -> str:
        """``namespace/name`` of the pod."""
        return self.pod.metadata.key

    @property
    def name(self) -> str:
        """``metadata.name`` of the pod."""
        return self.pod.metadata.name

    @property
    def namespace(self) -> str:
        """``metadata.namespace`` of the pod."""
        return self.pod.metadata.namespace

    @property
    def labels(self) -> dict[str, str]:
        """``metadata.labels`` of the pod."""
        return self.pod.metadata.labels

    @property
    def is_terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.pod.metadata.deletion_timestamp is not None

    def on_node(self, node_name: str) -> "PodInfo":
        """Return this pod as if it were bound to *node_name*; nothing is compiled again."""
        twin = copy(self)
        twin.node_name = node_name
        return twin

    def __repr__(self) -> str:
        return f"PodInfo({self.key!r})"


copied: Final[Callable[["QueuedPodInfo"], "QueuedPodInfo"]] = methodcaller("__copy__")
"""Return a copy that stays as it is: what :func:`copy.copy` does, in a third of the time."""


class QueuedPodInfo(msgspec.Struct, eq=False):
    """A waiting pod with its history in the queue (spec §3.1). Times are of the queue's clock.

    Its sets are replaced, not changed, so that a copy of it stays as it is.
    """

    pod_info: PodInfo
    timestamp: float
    """When it was last put into a sub-queue."""
    initial_attempt_timestamp: float | None = None
    """When it first entered the active queue; None while it never did."""
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    backoff_expiration: float | None = None
    unschedulable_plugins: set[str] = msgspec.field(default_factory=set)
    pending_plugins: set[str] = msgspec.field(default_factory=set)
    gating_plugin: str = ""
    gate_hints_by_signature: bool = False
    """Whether the hints of the gating plugin give pods of one signature the same answers."""
    was_flushed_from_unschedulable: bool = False
    key: str = ""
    """``namespace/name`` of the pod."""

    def __post_init__(self) -> None:
        self.key = self.pod_info.key

    @property
    def pod(self) -> Pod:
        """The API object."""
        return self.pod_info.pod

    @property
    def uid(self) -> str:
        """``metadata.uid`` of the pod."""
        return self.pod_info.uid

    @property
    def priority(self) -> int:
        """What the queue goes by."""
        return self.pod_info.priority

    @property
    def pods(self) -> "Collection[QueuedPodInfo]":
        """The pods that are tried when it is its turn: of a pod, it alone."""
        return (self,)

    @property
    def pending_since(self) -> float:
        """When it could first be tried; of a pod that never could, when it was put where it is."""
        first = self.initial_attempt_timestamp
        return self.timestamp if first is None else first


class QueuedPodGroupInfo(QueuedPodInfo, eq=False):
    """All waiting pods of a PodGroup, which the queue has as one entity (1.37 spec N8.1).

    Of a CompositePodGroup that is part of no other, those of all groups below it (N11). Timestamps,
    counts and backoff are the group's. ``pod_info`` is its first pod, which stands for the others
    where they are alike. In a sub-queue it must not change: take it out first.
    """

    group: PodGroup = PodGroup()
    """As it was seen last."""
    members: dict[str, QueuedPodInfo] = msgspec.field(default_factory=dict)
    """By ``namespace/name``; never empty while it waits."""
    kinds: dict[str, Hashable] = msgspec.field(default_factory=dict)
    """By ``namespace/name``, what pods alike have in common; None: there is no pod like it."""
    num_of_kind: Counter[Hashable] = msgspec.field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.key = group_entity_key(self.group_key)

    @property
    def group_key(self) -> GroupKey:
        return self.group.key

    @property
    def priority(self) -> int:
        return self.group.priority_beside(self.pod)

    @property
    def pods(self) -> Collection[QueuedPodInfo]:
        return self.members.values()

    @property
    def are_alike(self) -> bool:
        """Whether all pods are of one kind."""
        return len(self.num_of_kind) == 1 and None not in self.num_of_kind

    def put(self, member: QueuedPodInfo, kind: Hashable) -> None:
        """Add a pod, or its newer version."""
        self.take(member.key)
        self.members[member.key] = member
        self.kinds[member.key] = kind
        self.num_of_kind[kind] += 1
        self.pod_info = next(iter(self.members.values())).pod_info

    def take(self, key: str) -> None:
        """Take the pod ``namespace/name`` out, if it is here."""
        if self.members.pop(key, None) is None:
            return
        kind = self.kinds.pop(key)
        self.num_of_kind[kind] -= 1
        if not self.num_of_kind[kind]:
            del self.num_of_kind[kind]
        if self.members:
            self.pod_info = next(iter(self.members.values())).pod_info

    def clear(self) -> None:
        """Take all pods out."""
        self.members, self.kinds = {}, {}
        self.num_of_kind.clear()


def group_entity_key(group: GroupKey) -> str:
    """Return what the queue files a group under, which is no pod's ``namespace/name``."""
    return f"{group.ENTITY_TYPE}:{group}"
