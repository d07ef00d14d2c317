"""Events that kubelets write about pods: what they do with containers."""

from collections.abc import Callable

from berth.cluster.events.correlator import Reference, Type
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.kubelet_pod import KubeletPod


class PodEvents:
    """Records them in the name of the kubelet of the pod's node."""

    def __init__(self, recorder_of: Callable[[str], EventRecorder]) -> None:
        """*recorder_of* returns the recorder of the node with that name."""
        self._recorder_of = recorder_of

    def started(self, pod: KubeletPod) -> None:
        """All containers run; the images of hollow pods are everywhere already."""
        for field, name, image in _containers(pod):
            about = f"{field}{{{name}}}"
            present = "already present on machine and can be accessed by the pod"
            self._record(
                pod, about, reason="Pulled", message=f'Container image "{image}" {present}'
            )
            self._record(pod, about, reason="Created", message="Container created")
            self._record(pod, about, reason="Started", message="Container started")

    def stopping(self, pod: KubeletPod) -> None:
        """Its containers are told to end."""
        for container in pod.spec.containers:
            about = f"spec.containers{{{container.name}}}"
            message = f"Stopping container {container.name}"
            self._record(pod, about, reason="Killing", message=message)

    def rejected(self, pod: KubeletPod, rejection: Rejection) -> None:
        """The node does not take it."""
        self._record(
            pod,
            "",
            type="Warning",
            reason=rejection.reason,
            message=rejection.message,
        )

    def _record(
        self, pod: KubeletPod, about: str, *, type: Type = "Normal", reason: str, message: str
    ) -> None:
        meta = pod.metadata
        regarding = Reference(
            "v1",
            "Pod",
            meta.namespace,
            meta.name,
            meta.uid,
            resource_version=meta.resource_version,
            field_path=about,
        )
        recorder = self._recorder_of(pod.spec.node_name)
        recorder.event(regarding, type=type, reason=reason, message=message)


def _containers(pod: KubeletPod) -> list[tuple[str, str, str]]:
    """Return field, name and image of all containers, in the order in which they start."""
    spec = pod.spec
    return [
        *(("spec.initContainers", each.name, each.image) for each in spec.init_containers),
        *(("spec.containers", each.name, each.image) for each in spec.containers),
    ]
