"""Pods that other replicas decide about or have on their nodes: what is heard of them may wait."""

from collections.abc import Container
from typing import Final

import msgspec

from berth.kube.informer.identity import Identity, key_of
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.shared_parts import PodSpecs, without_node
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import OFFERED

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
    spec: msgspec.Raw = _NOTHING
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
        ours: Container[str],
        assumed: Container[str],
        minding: Container[str],
        waiting: bool,
    ) -> None:
        """*ours* has the UIDs of the pods without a node that this replica decides about, *assumed*
        those of pods that count on a node before they are bound, and *minding* the namespaces whose
        pods count wherever they are.

        *waiting* says whether the spec tells the home of a pod without a node: else none of them
        may wait.
        """
        self._ownership = ownership
        self._ours = ours
        self._assumed = assumed
        self._minding = minding
        self._waiting = waiting
        self._specs = PodSpecs()

    def may_wait(self, line: bytes) -> tuple[Identity, float] | None:
        """Identify the pod that was added or changed, if that may be told so many seconds later."""
        try:
            event = _decode(line)
            pod = event.object
            # A label may have that name, too: of such a pod is heard late, or needlessly soon.
            spec, node = without_node(bytes(pod.spec))
            slot, seconds = self._of_node(node) if node else self._home(pod, spec)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None  # whoever decodes it says why
        meta = pod.metadata
        uid = meta.uid
        if (
            slot is None
            or event.type not in _CHANGES
            or meta.deletion_timestamp is not None
            or meta.namespace in self._minding
            or uid in self._ours
            or uid in self._assumed
            or slot in self._ownership.active
        ):
            return None
        identity = Identity(key_of(meta.name, meta.namespace), meta.resource_version, uid)
        return identity, seconds

    def _of_node(self, name: str) -> tuple[int, float]:
        """Return the slot of a node, and how long what is heard of its pods may wait."""
        return self._ownership.slot_of_node(name), BOUND_SECONDS

    def _home(self, pod: _Pod, data: bytes) -> tuple[int | None, float]:
        """Return the home of *pod*, of whose spec *data* is the JSON, and how long that may wait.

        Or the slot of its node, if that is there after all; None if something is reserved for the
        pod.
        """
        spec, status = self._specs.of(data), pod.status
        if spec.node_name:
            return self._of_node(spec.node_name)
        if not self._waiting or status.nominated_node_name or _OFFERED in bytes(status.conditions):
            return None, 0.0
        meta = pod.metadata
        home = self._ownership.slots.home(spec, namespace=meta.namespace, uid=meta.uid)
        return home, WAITING_SECONDS
