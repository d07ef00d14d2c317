"""Events that kubelets write about nodes."""

from collections.abc import Mapping
from typing import Final

from berth.cluster.events.correlator import Reference
from berth.cluster.events.recorder import EventRecorder

PRESSURE: Final[Mapping[str, tuple[str, str]]] = {
    "MemoryPressure": ("NodeHasSufficientMemory", "NodeHasInsufficientMemory"),
    "DiskPressure": ("NodeHasNoDiskPressure", "NodeHasDiskPressure"),
    "PIDPressure": ("NodeHasSufficientPID", "NodeHasInsufficientPID"),
}
"""The reasons of events, by condition: that it does not hold, and that it does."""

LARGEST_FLEET: Final = 100
"""Nodes up to which all of this is told: the events of thousands would crowd out those of pods."""


def registered(name: str, recorder: EventRecorder) -> None:
    """Record that a kubelet has started, registered its node and found it ready."""
    node = Reference("v1", "Node", "", name, name)
    recorder.event(node, reason="Starting", message="Starting kubelet.")
    for condition, _ in PRESSURE.values():
        recorder.event(node, reason=condition, message=_status(name, condition))
    message = "Updated Node Allocatable limit across pods"
    recorder.event(node, reason="NodeAllocatableEnforced", message=message)
    recorder.event(node, reason="NodeReady", message=_status(name, "NodeReady"))


def returned(name: str, recorder: EventRecorder, *, boot_id: str) -> None:
    """Record that a kubelet has started after its machine was restarted."""
    node = Reference("v1", "Node", "", name, name)
    recorder.event(node, reason="Starting", message="Starting kubelet.")
    message = f"Node {name} has been rebooted, boot id: {boot_id}"
    recorder.event(node, type="Warning", reason="Rebooted", message=message)


def pressure(name: str, recorder: EventRecorder, condition: str, *, is_under: bool) -> None:
    """Record that a node has come under pressure, or is out of it."""
    node = Reference("v1", "Node", "", name, name)
    reason = PRESSURE[condition][is_under]
    recorder.event(node, reason=reason, message=_status(name, reason))


def _status(name: str, condition: str) -> str:
    return f"Node {name} status is now: {condition}"
