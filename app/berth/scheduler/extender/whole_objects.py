"""Pods and nodes with all that the API server says of them.

The scheduler reads a part of each object and forgets the rest; an extender may go by any of it. So
where an extender is to be sent whole objects, the bytes are kept with what was read from them, and
only of the objects that can be sent: a cluster with a hundred thousand pods should not pay for
those that merely run.
"""

import msgspec

from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.kube.objects.shared_parts import PodDecoder, node_decoder
from berth.scheduler.framework.pod_info import PodInfo

_decode_pod = PodDecoder()
_decode_node = node_decoder()
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class WholePod(Pod, frozen=True, gc=False):
    raw: bytes = b""
    """The object's JSON as it came."""


class WholeNode(Node, frozen=True, gc=False):
    raw: bytes = b""
    """The object's JSON as it came."""


def decode_waiting_pod(data: bytes) -> Pod:
    """Decode a pod; it is whole if it is not bound."""
    pod = _decode_pod(data)
    return pod if pod.spec.node_name else _whole(pod, data)


def decode_pod(data: bytes) -> Pod:
    """Decode a pod, which is whole."""
    return _whole(_decode_pod(data), data)


def decode_node(data: bytes) -> Node:
    """Decode a node, which is whole."""
    node = _decode_node(data)
    return WholeNode(node.metadata, node.spec, node.status, data)


def _whole(pod: Pod, data: bytes) -> WholePod:
    return WholePod(pod.metadata, pod.spec, pod.status, data)


def pod_as_written(info: PodInfo) -> msgspec.Raw:
    """Return the JSON of a pod, on the node where it is assumed to be.

    As with kube-scheduler it says neither its kind nor who manages which field. Of a pod that is
    not whole, it is what we read of it.
    """
    pod = info.pod
    said = _decode_fields(pod.raw if isinstance(pod, WholePod) else msgspec.json.encode(pod))
    parts = {
        part: _decode_fields(said[part]) if part in said else {}
        for part in ("metadata", "spec", "status")
    }
    parts["metadata"].pop("managedFields", None)
    if info.node_name:
        parts["spec"]["nodeName"] = msgspec.Raw(msgspec.json.encode(info.node_name))
    return msgspec.Raw(msgspec.json.encode(parts))


def node_as_written(node: Node) -> msgspec.Raw:
    """Return the JSON of a node; if it is not whole, what we read of it."""
    return msgspec.Raw(node.raw if isinstance(node, WholeNode) else msgspec.json.encode(node))
