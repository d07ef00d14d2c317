"""A pod as far as what it uses depends on it."""

from collections.abc import Mapping

from berth.kube.objects.meta import KubeStruct, ObjectMeta
from berth.kube.objects.pod import Container


class _State(KubeStruct, frozen=True, gc=False):
    running: Mapping[str, str] | None = None


class _ContainerStatus(KubeStruct, frozen=True, gc=False):
    name: str = ""
    state: _State = _State()


class _PodSpec(KubeStruct, frozen=True, gc=False):
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class _PodStatus(KubeStruct, frozen=True, gc=False):
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class MeasuredPod(KubeStruct, frozen=True, gc=False):
    """A pod as far as its usage depends on it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()
