"""A pod as far as a hollow kubelet reads it."""

import msgspec

from berth.objects.meta import KubeStruct, ObjectMeta
from berth.objects.pod import Container, Pod, PodSpec, PodStatus
from berth.objects.sharing import POD_PARTS, sharing


class DeletableMeta(ObjectMeta, frozen=True, gc=False):
    """Metadata with how long the pod may take to stop, and who waits for its end."""

    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()


class PodOS(KubeStruct, frozen=True, gc=False):
    name: str = ""


class RestartableSpec(PodSpec, frozen=True, gc=False):
    """A pod's spec with what is done about containers that end, and those that came later."""

    restart_policy: str = "Always"
    ephemeral_containers: tuple[Container, ...] = ()
    os: PodOS | None = None


class AddressedStatus(PodStatus, frozen=True, gc=False):
    """A pod's status with its address."""

    pod_ip: str = msgspec.field(default="", name="podIP")


class KubeletPod(Pod, frozen=True, gc=False):
    """A pod as far as a hollow kubelet reads it."""

    metadata: DeletableMeta = DeletableMeta()
    spec: RestartableSpec = RestartableSpec()
    status: AddressedStatus = AddressedStatus()


decode_pod = sharing(msgspec.json.Decoder(KubeletPod).decode, POD_PARTS)
