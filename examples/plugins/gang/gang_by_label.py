"""GangByLabel: the pods of a gang get nodes in one step, all of them or none."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from berth.plugin import (
    SKIP,
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    CycleState,
    EnqueueExtensions,
    EventResource,
    Gang,
    Handle,
    NodeTable,
    Pod,
    PodInfo,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueingHint,
    Status,
)

NAME_LABEL: Final = "gang.example.com/name"
SIZE_LABEL: Final = "gang.example.com/size"
"""How many members there must be, those that run included."""

POD_CHANGES: Final = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL)


class GangKey(NamedTuple):
    namespace: str
    name: str

    @classmethod
    def of(cls, pod: Pod) -> "GangKey | None":
        name = pod.metadata.labels.get(NAME_LABEL)
        return None if name is None else cls(pod.metadata.namespace, name)


class GangByLabel(PreEnqueuePlugin, PreFilterPlugin, EnqueueExtensions):
    """Gates pods until their gang is complete, then has all that wait placed in one step.

    Whoever is tried first brings the others along (``CycleState.gang``): the scheduler gives each
    its node by all filters and scores, with those before it in place, and if one gets none it takes
    all back before anything else happens. What waits therefore holds nothing.
    """

    NAME = "GangByLabel"

    def __init__(self, args: None = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        assert handle is not None, "made by a scheduler"
        self._scheduler = handle
        self._seen: dict[GangKey, dict[str, str]] = {}
        """Members that were on their way into the queue: UID to ``namespace/name``."""
        self._placed: dict[GangKey, set[str]] = {}
        """UIDs of members with a node, as the table was at this generation."""
        self._generation = -1

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gang = GangKey.of(pod.pod)
        return None if gang is None else self._incomplete(gang, pod)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        gang = GangKey.of(pod.pod)
        if gang is None:
            return SKIP
        incomplete = self._incomplete(gang, pod)
        if incomplete is None:
            state.gang = Gang(f"gang {gang.name}", tuple(self._waiting(gang)), self.NAME)
        return incomplete

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(POD_CHANGES, _concerns_gang)]

    def _incomplete(self, gang: GangKey, pod: PodInfo) -> Status | None:
        """Return why the gang of *pod* cannot be placed yet; None: all members are there."""
        text = pod.labels.get(SIZE_LABEL, "")
        if not text.isdecimal() or int(text) < 1:
            return Status.unresolvable(f"label {SIZE_LABEL}: {text!r} must be a number from 1 on")
        self._seen.setdefault(gang, {})[pod.uid] = pod.key
        found = len(self._waiting(gang)) + len(self._members_placed(gang))
        if found >= int(text):
            return None
        return Status.unresolvable(f"gang {gang.name}: {found} of {text} members exist")

    def _waiting(self, gang: GangKey) -> list[str]:
        """Return ``namespace/name`` of the members without a node; forget those that are gone."""
        seen, placed = self._seen[gang], self._members_placed(gang)
        for uid, key in list(seen.items()):
            pod = self._scheduler.pod(key)
            if pod is None or not _waits(pod, uid, gang):
                del seen[uid]
        # Who is being bound may come back.
        return [key for uid, key in seen.items() if uid not in placed]

    def _members_placed(self, gang: GangKey) -> set[str]:
        """Return the UIDs of members that run, or are being bound."""
        nodes = self._scheduler.nodes
        if self._generation != nodes.last_generation:
            self._generation = nodes.last_generation
            self._placed = {}
            for on_node in nodes.pods:
                for uid, pod in on_node.items():
                    of = GangKey.of(pod.pod)
                    if of is not None and not pod.is_terminating:
                        self._placed.setdefault(of, set()).add(uid)
        return self._placed.get(gang, set())


def _waits(pod: Pod, uid: str, gang: GangKey) -> bool:
    return (
        pod.metadata.uid == uid
        and not pod.spec.node_name
        and pod.metadata.deletion_timestamp is None
        and GangKey.of(pod) == gang
    )


def _concerns_gang(waiting: Pod, _old: Any, new: Pod | None) -> QueueingHint:
    """A pod of the same gang has come to run, or the labels of one have changed."""
    same = new is not None and GangKey.of(new) == GangKey.of(waiting)
    return QueueingHint.QUEUE if same else QueueingHint.SKIP
