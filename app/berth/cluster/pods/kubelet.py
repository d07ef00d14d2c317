"""A pod as far as a hollow kubelet reads it."""

import msgspec

from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, Volume
from berth.kube.objects.quantity import Quantity
from berth.kube.objects.sharing import POD_PARTS, sharing


class DeletableMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with how long the pod may take to stop, and who waits for its end."""

    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()


class ExecAction(KubeStruct, frozen=True, gc=False):
    command: tuple[str, ...] = ()


class Probe(KubeStruct, frozen=True, gc=False):
    exec: ExecAction | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3


class SleepAction(KubeStruct, frozen=True, gc=False):
    seconds: int = 0


class LifecycleHandler(KubeStruct, frozen=True, gc=False):
    sleep: SleepAction | None = None


class Lifecycle(KubeStruct, frozen=True, gc=False):
    pre_stop: LifecycleHandler | None = None


class ExitCodes(KubeStruct, frozen=True, gc=False):
    operator: str = ""
    values: tuple[int, ...] = ()


class ContainerRestartRule(KubeStruct, frozen=True, gc=False):
    action: str = ""
    exit_codes: ExitCodes | None = None


class KubeletContainer(Container, frozen=True, gc=False):
    """A container with what it runs, when it is ready, how it stops, and whether it is restarted.

    Not its environment and its mounts: those of pods of one workload differ, and are not shared.
    """

    image_pull_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()  # type: ignore[assignment]


class PodOS(KubeStruct, frozen=True, gc=False):
    name: str = ""


class ReadinessGate(KubeStruct, frozen=True, gc=False):
    condition_type: str = ""


class EmptyDir(KubeStruct, frozen=True, gc=False):
    size_limit: Quantity | None = None


class KubeletVolume(Volume, frozen=True, gc=False):
    """A volume with how much may be in it."""

    empty_dir: EmptyDir | None = None


class KubeletPodSpec(PodSpec, frozen=True, gc=False):
    """A pod's spec with what is done about containers that end, and those that came later."""

    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    readiness_gates: tuple[ReadinessGate, ...] = ()
    containers: tuple[KubeletContainer, ...] = ()
    init_containers: tuple[KubeletContainer, ...] = ()
    ephemeral_containers: tuple[KubeletContainer, ...] = ()  # type: ignore[assignment]
    volumes: tuple[KubeletVolume, ...] = ()
    os: PodOS | None = None


class StateRunning(KubeStruct, frozen=True, gc=False):
    started_at: str | None = None


class StateTerminated(KubeStruct, frozen=True, gc=False):
    exit_code: int = 0
    reason: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(KubeStruct, frozen=True, gc=False):
    running: StateRunning | None = None
    terminated: StateTerminated | None = None


class KubeletContainerStatus(ContainerStatus, frozen=True, gc=False):
    """What an earlier kubelet process has reported of a container."""

    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class KubeletPodStatus(PodStatus, frozen=True, gc=False):
    """A pod's status with its address and the states of its containers."""

    pod_ip: str = msgspec.field(default="", name="podIP")
    qos_class: str = ""
    reason: str = ""
    container_statuses: tuple[KubeletContainerStatus, ...] = ()
    init_container_statuses: tuple[KubeletContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[KubeletContainerStatus, ...] = ()


class KubeletPod(Pod, frozen=True, gc=False):
    """A pod as far as a hollow kubelet reads it."""

    metadata: DeletableMeta = DeletableMeta()
    spec: KubeletPodSpec = KubeletPodSpec()
    status: KubeletPodStatus = KubeletPodStatus()

    @property
    def ready(self) -> str:
        """The status of the condition Ready, as the API has it; empty: it has none."""
        return next(
            (condition.status for condition in self.status.conditions if condition.type == "Ready"),
            "",
        )


decode_pod = sharing(msgspec.json.Decoder(KubeletPod).decode, POD_PARTS)
