"""A cluster read from plain API objects, and the profiles that decide on it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from berth.kube.informer.store import ResourceEventHandler
from berth.kube.objects.node import Node
from berth.kube.objects.pod import Pod
from berth.scheduler.cache.cache import Cache
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.listers import KINDS, Listers, kinds_of
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.pod_reader import PodReader


class ScenarioError(Exception):
    """A file does not hold what it should; names the field and the value."""


@dataclass(slots=True)
class Scenario:
    """A cluster at one moment. Bound pods are in ``cache``; of waiting ones, the nominated."""

    cache: Cache = field(default_factory=Cache)
    listers: Listers = field(default_factory=Listers)
    nominated: dict[str, list[PodInfo]] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    """All pods by namespace/name, also those that are done."""
    read_pod: PodReader | None = None
    """Reads each pod as it counts for the configuration that decides."""
    _lister_of: Mapping[type[msgspec.Struct], ResourceEventHandler[Any]] = field(init=False)

    def __post_init__(self) -> None:
        self._lister_of = {kind.type: lister for kind, lister in self.listers.by_kind().items()}

    def take_in(self, obj: msgspec.Struct) -> None:
        """Take in one object of a known kind; CacheError if a pod is bound that has no uid."""
        if isinstance(obj, Node):
            self.cache.add_node(obj)
        elif isinstance(obj, Pod):
            self._add_pod(obj)
        else:
            self._lister_of[type(obj)].on_add(obj)

    def _add_pod(self, pod: Pod) -> None:
        if self.read_pod is not None:
            pod = self.read_pod(pod)
        self.pods[pod.key] = pod
        if pod.is_terminated:
            return
        if pod.spec.node_name:
            self.cache.add_pod(PodInfo(pod))
        elif name := pod.status.nominated_node_name:
            self.nominated.setdefault(name, []).append(PodInfo(pod))

    @classmethod
    def of(
        cls,
        objects: Iterable[Mapping[str, Any]],
        *,
        listers: type[Listers] = Listers,
        read_pod: PodReader | None = None,
    ) -> "Scenario":
        """Take in *objects* of the kinds that *listers* declares, see :func:`objects_of`."""
        scenario = cls(listers=listers(), read_pod=read_pod)
        for obj in objects_of(objects, kinds=kinds_of(listers)):
            scenario.take_in(obj)
        scenario.cache.refresh_order()
        return scenario


def objects_of(
    raw: Iterable[Mapping[str, Any]], *, kinds: Mapping[str, Kind[Any]] = KINDS
) -> Iterator[Any]:
    """Decode API objects, in the order in which an API server lists them: by namespace and name.

    The order in which pods came decides where nothing else does, as between victims that are
    equally important. Objects of other *kinds* are left out; ScenarioError for one that is
    malformed.
    """
    for manifest in sorted(raw, key=_key):
        kind = kinds.get(manifest.get("kind", ""))
        if kind is not None:
            yield read(manifest, kind.type)


def _key(raw: Mapping[str, Any]) -> tuple[str, str]:
    """Return what an object is listed by; what is malformed is complained of when it is read."""
    meta = raw.get("metadata")
    if not isinstance(meta, Mapping):
        return "", ""
    return str(meta.get("namespace", "")), str(meta.get("name", ""))


def read(raw: Mapping[str, Any], kind: type[msgspec.Struct]) -> Any:
    """Decode one object; ScenarioError names it and the field that is wrong."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as exc:
        meta = raw.get("metadata")
        name = meta.get("name", "") if isinstance(meta, Mapping) else ""
        raise ScenarioError(f"{raw.get('kind', kind.__name__)} {name!r}: {exc}") from exc
