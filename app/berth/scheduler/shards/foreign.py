"""Pods that other replicas decide about or have on their nodes: what is heard of them may wait."""

from collections.abc import Container
from typing import Any, Final

import msgspec

from berth.kube.informer.identity import key_of
from berth.kube.informer.watch_event import WatchEvent
from berth.kube.objects.meta import KubeStruct
from berth.kube.objects.shared_parts import decode_pod_outline
from berth.scheduler.shards.ownership import Ownership
from berth.scheduler.shards.slots import OFFERED, SpecHead

BOUND_SECONDS: Final = 1.0
"""How late a pod on a node of another is counted there, for what is only preferred."""
WAITING_SECONDS: Final = 30.0
"""How late is told of a waiting pod of another: nothing follows, and most have a node by then."""

_CHANGES: Final = ("ADDED", "MODIFIED")
_OFFERED: Final = OFFERED.encode()


class _Status(KubeStruct, frozen=True, gc=False):
    nominated_node_name: str = ""


_decode_spec: Final = msgspec.json.Decoder(SpecHead).decode
_decode_status: Final = msgspec.json.Decoder(_Status).decode
_NO_SPEC: Final = SpecHead()


class ForeignPods:
    """Tells by an event of a watch whether this replica has no part in a pod.

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

    def may_wait(self, event: WatchEvent[Any]) -> tuple[str, str, float] | None:
        """Return the key and the version of the pod that was added or changed, if that may be told
        so many seconds later."""
        # Asked of every pod of the cluster on every replica; so in few calls.
        if event.type not in _CHANGES:
            return None
        ownership = self._ownership
        try:
            pod = event.object
            if isinstance(pod, msgspec.Raw):
                pod = decode_pod_outline(pod)
            meta = pod.metadata
            uid = meta.uid
            if (
                uid in ownership.ours
                or meta.deletion_timestamp is not None
                or meta.namespace in self._minding
                or uid in self._assumed
            ):
                return None
            spec = _decode_spec(pod.spec) if bytes(pod.spec) else _NO_SPEC
            if spec.node_name:
                slot, seconds = ownership.slot_of_node(spec.node_name), BOUND_SECONDS
            elif self._waiting and not _is_expected(bytes(pod.status)):
                slot = ownership.slots.home(spec, namespace=meta.namespace, uid=uid)
                seconds = WAITING_SECONDS
            else:
                return None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None  # whoever decodes it says why
        if slot in ownership.active:
            return None
        return key_of(meta.name, meta.namespace), meta.resource_version, seconds


def _is_expected(status: bytes) -> bool:
    """Whether a node may be kept for the pod of the status."""
    if _OFFERED in status:
        return True
    return bool(status and _decode_status(status).nominated_node_name)
