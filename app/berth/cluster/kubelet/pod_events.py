"""Events that kubelets write about pods: what they do with containers."""

from collections.abc import Callable
from typing import Final

from berth.cluster.events.correlator import Reference, Type
from berth.cluster.events.recorder import EventRecorder
from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.container_life import ContainerLife
from berth.cluster.kubelet.container_plan import Pull, Role
from berth.cluster.pods.kubelet import KubeletPod
from berth.kube.objects.pod import Pod
from berth.runtime.duration import Duration

HOLLOW: Final = "the hollow node chose so"
"""What there is to say of a probe that no process failed."""


class PodEvents:
    """Records them in the name of the kubelet of the pod's node."""

    def __init__(self, recorder_of: Callable[[str], EventRecorder]) -> None:
        """*recorder_of* returns the recorder of the node with that name."""
        self._recorder_of = recorder_of

    def pulling(self, pod: KubeletPod, life: ContainerLife) -> None:
        message = f'Pulling image "{life.container.image}"'
        self._record(pod, life, reason="Pulling", message=message)

    def pulled(self, pod: KubeletPod, life: ContainerLife, pull: Pull) -> None:
        seconds = Duration.of(round(pull.seconds, 3))
        self._record(
            pod,
            life,
            reason="Pulled",
            message=f'Successfully pulled image "{life.container.image}" in {seconds} '
            f"({seconds} including waiting). Image size: {pull.size_bytes} bytes.",
        )

    def pull_failed(self, pod: KubeletPod, life: ContainerLife, error: str) -> None:
        image = life.container.image
        for type_, reason, message in (
            ("Warning", "Failed", f'Failed to pull image "{image}": {error}'),
            ("Warning", "Failed", "Error: ErrImagePull"),
            ("Normal", "BackOff", f'Back-off pulling image "{image}"'),
            ("Warning", "Failed", "Error: ImagePullBackOff"),
        ):
            warning: Type = "Warning" if type_ == "Warning" else "Normal"
            self._record(pod, life, type=warning, reason=reason, message=message)

    def never_pulled(self, pod: KubeletPod, life: ContainerLife, message: str) -> None:
        self._record(pod, life, type="Warning", reason="ErrImageNeverPull", message=message)
        message = "Error: ErrImageNeverPull"
        self._record(pod, life, type="Warning", reason="Failed", message=message)

    def started(self, pod: KubeletPod, life: ContainerLife, *, is_pulled: bool) -> None:
        """A container runs; the events tell where its image was if it was not pulled now."""
        recorder, about = self._recorder_of(pod.spec.node_name), reference(pod, life)
        if not is_pulled:
            present = "already present on machine and can be accessed by the pod"
            message = f'Container image "{life.container.image}" {present}'
            recorder.event(about, reason="Pulled", message=message)
        recorder.event(about, reason="Created", message="Container created")
        recorder.event(about, reason="Started", message="Container started")

    def backing_off(self, pod: KubeletPod, life: ContainerLife) -> None:
        """A container that fails waits before it is restarted."""
        meta = pod.metadata
        message = (
            f"Back-off restarting failed container {life.container.name} "
            f"in pod {meta.name}_{meta.namespace}({meta.uid})"
        )
        self._record(pod, life, type="Warning", reason="BackOff", message=message)

    def unhealthy(self, pod: KubeletPod, life: ContainerLife, probe: str) -> None:
        """A container fails its *probe*: ``Liveness`` or ``Readiness``."""
        message = f"{probe} probe failed: {HOLLOW}"
        self._record(pod, life, type="Warning", reason="Unhealthy", message=message)
        if probe == "Liveness":
            message = f"Container {life.container.name} failed liveness probe, will be restarted"
            self._record(pod, life, reason="Killing", message=message)

    def stopping(self, pod: KubeletPod, life: ContainerLife) -> None:
        """A container is told to end."""
        message = f"Stopping container {life.container.name}"
        self._record(pod, life, reason="Killing", message=message)

    def redefined(self, pod: KubeletPod, life: ContainerLife) -> None:
        """A container is started anew with another image."""
        message = f"Container {life.container.name} definition changed, will be restarted"
        self._record(pod, life, reason="Killing", message=message)

    def sandbox_changed(self, pod: KubeletPod) -> None:
        message = "Pod sandbox changed, it will be killed and re-created."
        self._record(pod, None, reason="SandboxChanged", message=message)

    def deadline_exceeded(self, pod: KubeletPod) -> None:
        message = "Pod was active on the node longer than the specified deadline"
        self._record(pod, None, reason="DeadlineExceeded", message=message)

    def rejected(self, pod: KubeletPod, rejection: Rejection) -> None:
        """The node does not take it."""
        self._record(pod, None, type="Warning", reason=rejection.reason, message=rejection.message)

    def _record(
        self,
        pod: KubeletPod,
        life: ContainerLife | None,
        *,
        type: Type = "Normal",
        reason: str,
        message: str,
    ) -> None:
        recorder = self._recorder_of(pod.spec.node_name)
        recorder.event(reference(pod, life), type=type, reason=reason, message=message)


def reference(pod: Pod, life: ContainerLife | None) -> Reference:
    """Return what an event is about: *pod*, or one of its containers."""
    meta, about = pod.metadata, ""
    if life is not None:
        field = "containers" if life.role is Role.MAIN else "initContainers"
        about = f"spec.{field}{{{life.container.name}}}"
    return Reference(
        "v1",
        "Pod",
        meta.namespace,
        meta.name,
        meta.uid,
        resource_version=meta.resource_version,
        field_path=about,
    )
