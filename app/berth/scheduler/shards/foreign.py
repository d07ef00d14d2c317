"""Pods that other replicas decide about or have on their nodes: what is heard of them may wait."""

from collections.abc import Container
from typing import Final

import msgspec

from berth.kube.informer.identity import key_of
from berth.kube.objects.meta import KubeStruct
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import OFFERED, SpecHead

BOUND_SECONDS: Final = 1.0
"""How late a pod on a node of another is counted there, for what is only preferred."""
WAITING_SECONDS: Final = 30.0
"""How late is told of a waiting pod of another: nothing follows, and most have a node by then."""

_CHANGES: Final = ("ADDED", "MODIFIED")
_NOTHING: Final = msgspec.Raw()
_OFFERED: Final = OFFERED.encode()


class _Meta(KubeStruct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None


class _Status(KubeStruct, frozen=True, gc=False):
    nominated_node_name: str = ""
    conditions: msgspec.Raw = _NOTHING


class _Pod(KubeStruct, frozen=True, gc=False):
    """As little as says whose a pod is."""

    metadata: _Meta = _Meta()
    spec: SpecHead = SpecHead()
    status: _Status = _Status()


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: _Pod


_decode: Final = msgspec.json.Decoder(_Event).decode


class ForeignPods:
    """Tells by a line of a watch whether this replica has no part in a pod.

    What it has no part in, it may know late. It has part in the nodes that it binds to, in
    the pods that it decides about, and in the namespaces of those of them that mind other nodes.
    What frees room (a deletion), and what is reserved for a pod (a nomination, an offer), it knows
    at once.
    """

    def __init__(
        self,
        ownership: Ownership,
        *,
        assumed: Container[str],
        minding: Container[str],
        waiting: bool,
    ) -> None:
        """*assumed* has the UIDs of pods that count on a node before they are bound, *minding* the
        namespaces whose pods count wherever they are.

        *waiting* says whether the spec tells the home of a pod without a node: else none of them
        may wait.
        """
        self._ownership = ownership
        self._assumed = assumed
        self._minding = minding
        self._waiting = waiting

    def may_wait(self, line: bytes) -> tuple[str, str, float] | None:
        """Return the key and the version of the pod that was added or changed, if that may be told
        so many seconds later."""
        # Asked of every pod of the cluster on every replica; so in few calls.
        ownership = self._ownership
        try:
            event = _decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None  # whoever decodes it says why
        pod = event.object
        meta, spec = pod.metadata, pod.spec
        uid = meta.uid
        if (
            uid in ownership.ours
            or event.type not in _CHANGES
            or meta.deletion_timestamp is not None
            or meta.namespace in self._minding
            or uid in self._assumed
        ):
            return None
        if spec.node_name:
            slot, seconds = ownership.slot_of_node(spec.node_name), BOUND_SECONDS
        elif (
            self._waiting
            and not pod.status.nominated_node_name
            and _OFFERED not in bytes(pod.status.conditions)
        ):
            slot = ownership.slots.home(spec, namespace=meta.namespace, uid=uid)
            seconds = WAITING_SECONDS
        else:
            return None
        if slot in ownership.active:
            return None
        return key_of(meta.name, meta.namespace), meta.resource_version, seconds
