"""Which slot a node or a pod falls into: by the API's objects alone, the same on every replica."""

from collections.abc import Iterable
from typing import Final
from zlib import crc32

import msgspec

from berth.kube.objects.devices import ResourceSlice
from berth.kube.objects.meta import Condition, KubeStruct
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Affinity, Pod, PodSpec
from berth.scheduler.framework.affinity_terms import terms_of
from berth.scheduler.framework.pod_info import PodInfo

OFFERED: Final = "berth.dev/Offered"
"""The condition of a pod that its home offers to the holder of the slot of a node."""
HOSTNAME: Final = "kubernetes.io/hostname"

ANTI_AFFINITY: Final = (
    "shards do not schedule pods with required anti-affinity by another key than"
    f" {HOSTNAME}: another replica may place a pod that it is about at the same moment"
)
AFFINITY: Final = (
    "shards do not schedule pods with required affinity to pods like themselves in other"
    " namespaces: two replicas may each place the first one"
)
DEVICES: Final = (
    "shards do not schedule pods that ask for devices while some devices are not of one node:"
    " two replicas may allocate the same"
)


RECORD: Final = "berth.dev/shard-by"
"""The annotation of a node with the label and the value that its slot goes by for good."""
NO_SLOT: Final = -1
"""Of a node whose slot is not recorded yet; nobody holds it."""


class _Given(KubeStruct, frozen=True, gc=False):
    """Something, whatever it says."""


class _Constraint(KubeStruct, frozen=True, gc=False):
    when_unsatisfiable: str = "DoNotSchedule"


class _Volume(KubeStruct, frozen=True, gc=False):
    persistent_volume_claim: _Given | None = None
    ephemeral: _Given | None = None


class SpecHead(KubeStruct, frozen=True, gc=False):
    """As much of the spec of a pod as its home goes by."""

    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[_Constraint, ...] = ()
    volumes: tuple[_Volume, ...] = ()
    resource_claims: tuple[_Given, ...] = ()
    scheduling_group: _Given | None = None


def slot_of(text: str, slots: int) -> int:
    """Return the slot, of so many, that *text* falls into."""
    return crc32(text.encode()) % slots


class Slots(msgspec.Struct, frozen=True):
    """How nodes and pods fall into slots; the same on every replica.

    The value of a label may change while binds are under way, and not all replicas learn of that at
    once. Therefore nodes go by what is recorded on them: whoever writes that first, for an object
    that has no record, says it for as long as the object is there.
    """

    number: int
    """Slots that are shared out evenly."""
    label: str = ""
    """The key of the label of nodes whose values fall into slots; "": nodes fall by their names."""
    pools: tuple[str, ...] = ()
    """Values of the label that have a slot of their own, after the others, for who is told to hold
    it."""

    @property
    def total(self) -> int:
        return self.number + len(self.pools)

    @property
    def mode(self) -> str:
        """What replicas that are not like this one must not be active beside."""
        by = f" by {self.label}" if self.label else ""
        return f"{self.number} shards{by}" + "".join(f", {pool}" for pool in self.pools)

    def of_node(self, node: Node) -> int:
        """Return the slot of *node*, :data:`NO_SLOT` if it goes by a record that is not there."""
        name = node.metadata.name
        if not self.label:
            return slot_of(name, self.number)
        key, is_recorded, value = node.metadata.annotations.get(RECORD, "").partition("=")
        if not is_recorded or key != self.label:
            return NO_SLOT
        if value in self.pools:
            return self.number + self.pools.index(value)
        return slot_of(value or name, self.number)

    def record_of(self, node: Node) -> str:
        """Return what to record on *node*; without a value it goes by its name."""
        return f"{self.label}={node.metadata.labels.get(self.label, '')}"

    def home_of(self, pod: Pod) -> int:
        """Return the slot whose holder decides about *pod*, which is not offered."""
        return self.home(pod.spec, namespace=pod.metadata.namespace, uid=pod.metadata.uid)

    def home(self, spec: PodSpec | SpecHead, *, namespace: str, uid: str) -> int:
        """Do the same for a pod of which only these are known.

        Pods that may go anywhere as far as other pods are concerned are spread over all slots, each
        by its UID; those that select a pool are for its holder, those for one node only, such as
        pods of DaemonSets, for its writer. All that must mind pods on other nodes, of one
        namespace, have the same home: it knows what it has decided for the others before the API
        does.
        """
        if minds_other_nodes(spec):
            return slot_of(namespace, self.number)
        if self.pools and (value := (spec.node_selector or {}).get(self.label)) in self.pools:
            return self.number + self.pools.index(value)
        only_node = _only_node(spec.affinity) if spec.affinity is not None else ""
        return slot_of(only_node or uid, self.number)


def _only_node(affinity: Affinity) -> str:
    """Return the node that required node affinity names, as a DaemonSet writes it; "" if none."""
    if affinity.node_affinity is None or affinity.node_affinity.required is None:
        return ""
    terms = affinity.node_affinity.required.node_selector_terms
    if len(terms) != 1 or len(terms[0].match_fields) != 1:
        return ""
    field = terms[0].match_fields[0]
    return field.values[0] if field.operator == "In" and len(field.values) == 1 else ""


def minds_other_nodes(spec: PodSpec | SpecHead) -> bool:
    """Whether what is required of the node of a pod depends on what other nodes have.

    Anti-affinity by host does not, in either direction: the one writer of the node sees to it.
    """
    # Asked of every pod of the cluster on every replica; so without generators.
    if spec.resource_claims or spec.scheduling_group is not None:
        return True
    for constraint in spec.topology_spread_constraints:
        if constraint.when_unsatisfiable == "DoNotSchedule":
            return True
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return True
    affinity = spec.affinity
    return bool(affinity is not None and affinity.pod_affinity and affinity.pod_affinity.required)


def offered_to(pod: Pod) -> str:
    """Return the node that *pod* is offered to the writer of; "" if there is none."""
    for condition in pod.status.conditions:
        if condition.type == OFFERED:
            return condition.message if condition.status == "True" else ""
    return ""


def refusal_of(pod: Pod) -> str:
    """Return why the last offer of *pod* was refused."""
    for condition in pod.status.conditions:
        if condition.type == OFFERED and condition.status != "True":
            return condition.message
    return ""


def offer(node_name: str, *, at: str) -> Condition:
    """Return the condition that offers a pod to the writer of a node."""
    return Condition(
        type=OFFERED, status="True", reason="Offered", message=node_name, last_transition_time=at
    )


def refused(why: str, *, at: str) -> Condition:
    """Return the condition that gives an offered pod back to its home."""
    return Condition(
        type=OFFERED, status="False", reason="Refused", message=why, last_transition_time=at
    )


def why_not(pod: PodInfo, slices: Iterable[ResourceSlice]) -> tuple[str, str] | None:
    """Return the plugin whose guarantee shards cannot give *pod*, and why; None if all is well."""
    terms, own = terms_of(pod.template), pod.pod.metadata.namespace
    for term in terms.required_anti_affinity:
        if term.topology_key != HOSTNAME:
            return "InterPodAffinity", ANTI_AFFINITY
    for term in terms.required_affinity:
        is_of_others = term.namespaces != {own} or not term.namespace_selector.is_nothing
        if is_of_others and term.selector.matches(pod.pod.metadata.labels):
            return "InterPodAffinity", AFFINITY
    asks = pod.pod.spec.resource_claims or pod.template.requested.scalars
    if asks and any(not of_slice.spec.node_name for of_slice in slices):
        return "DynamicResources", DEVICES
    return None
