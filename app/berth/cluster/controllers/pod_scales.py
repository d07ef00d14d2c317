"""Numbers of pods that controllers want, of which budgets take a percentage.

Source: the finders of ``pkg/controller/disruption``. Workloads are read from tables; of controllers
of any other kind the ``scale`` subresource has to be asked for.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import WorkloadView
from berth.cluster.kinds.registry import Registry
from berth.cluster.object_views import OwnerReference
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import ResourceType
from berth.kube.client.errors import ApiError, NotFoundError

Workloads = Mapping[str, Table[Any]]
"""Tables of :class:`WorkloadView` by kind: Deployment, ReplicaSet, ReplicationController,
StatefulSet."""

GROUPS = {
    "Deployment": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "StatefulSet": ("apps",),
}


class PodScaleError(Exception):
    """It cannot be said how many pods there are to be."""


class Scale(NamedTuple):
    """How many pods a controller wants."""

    uid: str
    replicas: int


class Answer(NamedTuple):
    """What came back when a ``scale`` was asked for."""

    scale: Scale | None = None
    """None: there is no such object, or an :attr:`error`."""
    error: str = ""


class Expected(NamedTuple):
    """How many pods the controllers of some pods want."""

    pods: int
    unmanaged: list[str]
    """Pods without a controller, which are not counted."""
    unknown: list[str]
    """URLs of scales that have to be asked for before the number means anything."""


def answer_of(body: bytes, error: ApiError | None) -> Answer:
    """Read the answer to a GET of a ``scale``."""
    if isinstance(error, NotFoundError):
        return Answer()
    if error is not None:
        return Answer(error=str(error))
    scale = msgspec.json.decode(body)
    return Answer(Scale(scale["metadata"]["uid"], (scale.get("spec") or {}).get("replicas") or 0))


class PodScales:
    """Finds the controllers of pods."""

    def __init__(self, workloads: Workloads, registry: Registry) -> None:
        self._workloads = workloads
        self._registry = registry

    def expected(self, pods: Iterable[PodView], answers: Mapping[str, Answer]) -> Expected:
        """Add up what the controllers of *pods* want; *answers* are by URL.

        Raises PodScaleError when the controller of a pod cannot be found.
        """
        scales = dict[str, int]()
        asked = dict[tuple[str, str], Scale | str | None]()
        unmanaged, unknown = [], dict[str, None]()
        for pod in pods:
            reference = pod.metadata.controller
            if reference is None:
                unmanaged.append(pod.metadata.name)
                continue
            key = reference.uid, reference.name
            if key not in asked:
                asked[key] = self._scale(reference, pod.metadata.namespace, answers)
            match asked[key]:
                case None:
                    raise PodScaleError(f'found no controllers for pod "{pod.metadata.name}"')
                case str(url):
                    unknown[url] = None
                case Scale(uid, replicas):
                    scales[uid] = replicas
        return Expected(sum(scales.values()), unmanaged, list(unknown))

    def _scale(
        self, reference: OwnerReference, namespace: str, answers: Mapping[str, Answer]
    ) -> Scale | str | None:
        """Return what a controller wants; the URL to ask if that is not known; None: it is gone."""
        if (found := self._of_workload(reference)) is not None:
            return found
        resource = self._resource(reference)
        if "scale" not in resource.subresources:
            what = resource.qualified_plural
            raise PodScaleError(f"{what} does not implement the scale subresource")
        url = f"{resource.path_of(namespace, reference.name)}/scale"
        if url not in answers:
            return url
        answer = answers[url]
        if answer.error:
            raise PodScaleError(answer.error)
        is_same = answer.scale is not None and answer.scale.uid == reference.uid
        return answer.scale if is_same else None

    def _of_workload(self, reference: OwnerReference) -> Scale | None:
        """Return what a workload wants; of a ReplicaSet, the Deployment above it."""
        workload = self._workload(reference)
        if workload is None or reference.kind == "Deployment":
            return None
        above = workload.metadata.controller
        if reference.kind == "ReplicaSet" and above is not None and above.kind == "Deployment":
            workload = self._workload(above)
        return None if workload is None else Scale(workload.metadata.uid, workload.replicas)

    def _workload(self, reference: OwnerReference) -> WorkloadView | None:
        group = reference.api_version.rpartition("/")[0]
        if group not in GROUPS.get(reference.kind, ()) or reference.kind not in self._workloads:
            return None
        return self._workloads[reference.kind].by_uid(reference.uid)

    def _resource(self, reference: OwnerReference) -> ResourceType:
        for resource in self._registry:
            if (resource.group_version, resource.kind) == (reference.api_version, reference.kind):
                return resource
        raise PodScaleError(
            f'no matches for kind "{reference.kind}" in version "{reference.api_version}"'
        )
