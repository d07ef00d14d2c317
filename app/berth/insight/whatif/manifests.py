"""From manifests to what a cluster would have: pods of templates, nodes of types.

What an API server and controllers fill in and scheduling reads is filled in here: namespace,
claims of a StatefulSet, all of :mod:`berth.kube.objects.pod_defaults`, and what
:mod:`berth.insight.whatif.admission` says of priorities and LimitRanges. The labels that a
controller adds to its pods are not known.
"""

from collections.abc import Container as Names
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import msgspec

from berth.insight.offline.scenario import ScenarioError, read
from berth.insight.whatif.admission import Admission, AdmissionError
from berth.insight.whatif.daemons import DaemonSet, declared
from berth.kube.objects.cluster import (
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from berth.kube.objects.meta import KubeStruct, OwnerReference
from berth.kube.objects.names import MAX_SUBDOMAIN
from berth.kube.objects.node import Node
from berth.kube.objects.pod import PersistentVolumeClaimSource, Pod, PodSpec, PodStatus, Volume
from berth.kube.objects.pod_defaults import default_pod, merge_match_label_keys
from berth.kube.objects.storage import PersistentVolumeClaim
from berth.runtime.errors import UserError
from berth.scheduler.framework.listers import KINDS

HOSTNAME: Final = "kubernetes.io/hostname"
_CONDITION_TAINTS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_OWNERS: Final[Mapping[str, tuple[str, type[KubeStruct]]]] = {
    # pods of a Deployment belong to a ReplicaSet of it
    "Deployment": ("ReplicaSet", ReplicaSet),
    "ReplicaSet": ("ReplicaSet", ReplicaSet),
    "ReplicationController": ("ReplicationController", ReplicationController),
    "StatefulSet": ("StatefulSet", StatefulSet),
}
_TEMPLATES: Final = ("Pod", "PodTemplate", "Job", "CronJob", *_OWNERS)

_replace = msgspec.structs.replace


class QuestionError(UserError):
    """A question that cannot be answered; names the field and the value."""


@dataclass(frozen=True, slots=True)
class Made:
    """Pods made from one template, and what came to be with them."""

    template: str
    """As in ``Deployment default/web``."""
    pods: tuple[Pod, ...]
    objects: tuple[KubeStruct, ...] = ()
    written: Mapping[str, Any] | None = None
    """The JSON of one of the pods, as admission has left it; None: of the first."""
    claims: tuple[Mapping[str, Any], ...] = ()
    """The JSON of the claims that each of them gets."""


def pod(manifest: Mapping[str, Any], *, at: str, admission: Admission) -> Made:
    """Return the one pod that *manifest* describes, as it is before it has a node.

    *at* names the field in errors. Raises QuestionError.
    """
    if manifest.get("kind", "Pod") != "Pod":
        raise QuestionError(f"{at}.kind: {manifest['kind']!r}: must be Pod")
    made, written = _pod(manifest, manifest, at=at, admission=admission)
    name = _name(manifest, at=at)
    if not name:
        raise QuestionError(f"{at}.metadata.name: needed")
    return Made(f"Pod {made.key}", (_called(made, name),), written=written)


def replicas(
    manifest: Mapping[str, Any],
    number: int | None,
    *,
    at: str,
    admission: Admission,
    taken: Names[str],
    most: int,
) -> Made:
    """Return *number* pods of a template, None: as many as *manifest* says.

    They are called after it and numbered; keys in *taken* are passed over. Raises QuestionError,
    also for more than *most* pods.
    """
    kind = manifest.get("kind")
    if kind not in _TEMPLATES:
        raise QuestionError(f"{at}.kind: {kind!r}: must be one of {', '.join(_TEMPLATES)}")
    base, written = _pod(_template(manifest, at=at), manifest, at=at, admission=admission)
    base = _owned(base, manifest, at=at)
    wanted = _number(manifest, at=at) if number is None else number
    name = _name(manifest, at=at) or "what-if"
    namespace = base.metadata.namespace
    pods = _numbered(base, name, wanted, at=at, taken=taken, most=most)
    objects: list[KubeStruct] = list(_owner(manifest, namespace))
    claims: Sequence[Any] = ()
    if kind == "StatefulSet":
        claims = _section(manifest, "spec", at=at).get("volumeClaimTemplates") or ()
        pods, made = _with_claims(pods, claims, at=f"{at}.spec.volumeClaimTemplates")
        objects += made
    template = f"{kind} {namespace}/{name}"
    return Made(template, pods, tuple(objects), written=written, claims=tuple(claims))


def copies(model: Pod, number: int, *, at: str, taken: Names[str], most: int) -> Made:
    """Return *number* pods that are like *model* before it had a node; named as replicas are.

    The resource claims that were made for *model* stay its own. Raises QuestionError for more than
    *most* pods.
    """
    meta = _replace(model.metadata, deletion_timestamp=None, creation_timestamp=None)
    base = Pod(meta, _replace(model.spec, node_name=""), PodStatus(phase="Pending"))
    name = model.metadata.name
    return Made(f"Pod {model.key}", _numbered(base, name, number, at=at, taken=taken, most=most))


def daemon_set(
    manifest: Mapping[str, Any], *, at: str, admission: Admission | None
) -> tuple[DaemonSet, Mapping[str, Any]]:
    """Return the DaemonSet that *manifest* describes, and the JSON of its pods.

    *admission* None: they are there already. Raises QuestionError.
    """
    base, written = _pod(_template(manifest, at=at), manifest, at=at, admission=admission)
    name = _name(manifest, at=at) or "what-if"
    return declared(f"{base.metadata.namespace}/{name}", base), written


def companion(manifest: Mapping[str, Any], *, at: str) -> KubeStruct:
    """Return an object of a render that makes no pods, but has a part in where they go.

    It is as the API server would have it. Raises QuestionError.
    """
    kind = KINDS[str(manifest["kind"])]
    made: Any = _read(manifest, kind.type, at=at)
    name = _name(manifest, at=at)
    if not name:
        raise QuestionError(f"{at}.metadata.name: needed")
    namespace = (made.metadata.namespace or "default") if kind.namespaced else ""
    meta = _replace(
        made.metadata,
        namespace=namespace,
        uid=f"what-if:{kind.name}/{namespace}/{name}",
        resource_version="1",
    )
    obj: KubeStruct = _replace(made, metadata=meta)
    return obj


def priority_class(manifest: Mapping[str, Any], *, at: str) -> PriorityClass:
    """Return the PriorityClass that *manifest* describes. Raises QuestionError."""
    made: PriorityClass = _read(manifest, PriorityClass, at=at)
    if not made.metadata.name:
        raise QuestionError(f"{at}.metadata.name: needed")
    return made


def _template(manifest: Mapping[str, Any], *, at: str) -> Mapping[str, Any]:
    """Return what the pods of *manifest* are made from: metadata and spec of a pod."""
    match manifest["kind"]:
        case "Pod":
            return manifest
        case "PodTemplate":
            return _section(manifest, "template", at=at)
    spec, where = _run(manifest, at=at)
    return _section(spec, "template", at=where)


def _run(manifest: Mapping[str, Any], *, at: str) -> tuple[Mapping[str, Any], str]:
    """Return the spec that counts the pods, of a CronJob one run's, and the name of its field."""
    spec, where = _section(manifest, "spec", at=at), f"{at}.spec"
    if manifest["kind"] != "CronJob":
        return spec, where
    job, where = _section(spec, "jobTemplate", at=where), f"{where}.jobTemplate"
    return _section(job, "spec", at=where), f"{where}.spec"


def _number(manifest: Mapping[str, Any], *, at: str) -> int:
    spec, _ = _run(manifest, at=at)
    name = "parallelism" if manifest["kind"] in ("Job", "CronJob") else "replicas"
    number = spec.get(name, 1)
    if not isinstance(number, int) or number < 0:
        raise QuestionError(f"{at}.spec.{name}: {number!r}: must be a number of pods")
    completions = spec.get("completions")
    return min(number, completions) if isinstance(completions, int) else number


def _pod(
    template: Mapping[str, Any],
    manifest: Mapping[str, Any],
    *,
    at: str,
    admission: Admission | None,
) -> tuple[Pod, Mapping[str, Any]]:
    """Return the pod of *template* as the API server would store it, and its JSON."""
    plain: Pod = _read(template, Pod, at=at)  # what is filled in follows from what can be read
    namespace = plain.metadata.namespace
    if not namespace:
        namespace = str(_section(manifest, "metadata", at=at).get("namespace") or "default")
    if len(namespace) > MAX_SUBDOMAIN:
        raise QuestionError(f"{at}.metadata.namespace: no more than {MAX_SUBDOMAIN} characters")
    written = {name: deepcopy(template[name]) for name in ("metadata", "spec") if name in template}
    default_pod(written.setdefault("spec", {}))
    try:
        if admission is not None:
            admission.admit(written, namespace=namespace)
        merge_match_label_keys(written)
    except (AdmissionError, ValueError) as exc:
        raise QuestionError(f"{at}: {exc}") from exc
    made: Pod = _read(written, Pod, at=at)
    spec = _replace(made.spec, node_name="")
    meta = _replace(
        made.metadata, namespace=namespace, deletion_timestamp=None, creation_timestamp=None
    )
    written["metadata"] = {**(written.get("metadata") or {}), "namespace": namespace}
    written["metadata"].pop("deletionTimestamp", None)
    return Pod(meta, spec, PodStatus(phase="Pending")), written


def _numbered(
    base: Pod, name: str, number: int, *, at: str, taken: Names[str], most: int
) -> tuple[Pod, ...]:
    """Return *number* pods, called *name* and a number; keys in *taken* are passed over."""
    if number > most:
        raise QuestionError(f"{at}.replicas: {number}: must be at most {most}, with the others")
    names = (f"{name}-{i}" for i in count())
    free = (name for name in names if f"{base.metadata.namespace}/{name}" not in taken)
    return tuple(_called(base, name) for name, _ in zip(free, range(number), strict=False))


def _called(pod: Pod, name: str) -> Pod:
    uid = f"what-if:{pod.metadata.namespace}/{name}"
    return _replace(pod, metadata=_replace(pod.metadata, name=name, uid=uid))


# Owners: what default spreading goes by.


def _owned(pod: Pod, manifest: Mapping[str, Any], *, at: str) -> Pod:
    owner = _OWNERS.get(str(manifest["kind"]))
    if owner is None:
        return pod
    kind, _ = owner
    api_version = "v1" if kind == "ReplicationController" else "apps/v1"
    name = _name(manifest, at=at)
    reference = OwnerReference(api_version, kind, name, f"what-if:{name}", controller=True)
    return _replace(pod, metadata=_replace(pod.metadata, owner_references=(reference,)))


def _owner(manifest: Mapping[str, Any], namespace: str) -> Iterator[KubeStruct]:
    """Yield the object that owns the pods; its selector is what they are spread by."""
    found = _OWNERS.get(str(manifest["kind"]))
    if found is not None:
        owner: Any = _read(manifest, found[1], at=str(manifest["kind"]))
        yield _replace(owner, metadata=_replace(owner.metadata, namespace=namespace))


def _with_claims(
    pods: Sequence[Pod], templates: Any, *, at: str
) -> tuple[tuple[Pod, ...], list[KubeStruct]]:
    """Give each of *pods* its own claims, as a StatefulSet does."""
    if not isinstance(templates, list | tuple):
        raise QuestionError(f"{at}: a list is needed, got {templates!r:.40}")
    claims = [
        _read(template, PersistentVolumeClaim, at=f"{at}[{i}]")
        for i, template in enumerate(templates)
    ]
    made: list[KubeStruct] = []
    with_volumes = []
    for pod in pods:
        volumes = {volume.name: volume for volume in pod.spec.volumes}
        for claim in claims:
            name = f"{claim.metadata.name}-{pod.metadata.name}"
            meta = _replace(
                claim.metadata,
                name=name,
                namespace=pod.metadata.namespace,
                uid=f"what-if:{name}",
                resource_version="1",
            )
            made.append(_replace(claim, metadata=meta))
            source = PersistentVolumeClaimSource(claim_name=name)
            volumes[claim.metadata.name] = Volume(
                name=claim.metadata.name, persistent_volume_claim=source
            )
        spec: PodSpec = _replace(pod.spec, volumes=tuple(volumes.values()))
        with_volumes.append(_replace(pod, spec=spec))
    return tuple(with_volumes), made


# Nodes.


def node(manifest: Mapping[str, Any], *, at: str) -> Node:
    """Return the node that *manifest* describes; without ``allocatable`` its capacity counts."""
    if manifest.get("kind", "Node") != "Node":
        raise QuestionError(f"{at}.kind: {manifest['kind']!r}: must be Node")
    made: Node = _read(manifest, Node, at=at)
    _name(manifest, at=at)
    if not made.status.allocatable:
        if not made.status.capacity:
            raise QuestionError(f"{at}.status.allocatable: needed: what the node has to give")
        made = _replace(made, status=_replace(made.status, allocatable=made.status.capacity))
    return made


def without_condition(node: Node) -> Node:
    """Return *node* as it is when it is well: no taints about its condition, not cordoned."""
    taints = tuple(t for t in node.spec.taints if not t.key.startswith(_CONDITION_TAINTS))
    return _replace(node, spec=_replace(node.spec, taints=taints, unschedulable=False))


def nodes_called(node: Node, *, taken: Names[str]) -> Iterator[Node]:
    """Yield nodes like *node* without end, numbered; names in *taken* are passed over.

    One that is not taken yet keeps its own name.
    """
    name = node.metadata.name or "what-if"
    names = (f"{name}-{i}" if i else name for i in count())
    for node_name in names:
        if node_name not in taken:
            labels = {**node.metadata.labels, HOSTNAME: node_name}
            meta = _replace(
                node.metadata, name=node_name, uid=f"what-if:{node_name}", labels=labels
            )
            yield _replace(node, metadata=meta)


# Reading.


def _read(manifest: Any, kind: type[Any], *, at: str) -> Any:
    if not isinstance(manifest, Mapping):
        raise QuestionError(f"{at}: an object is needed, got {manifest!r:.40}")
    try:
        return read(manifest, kind)
    except ScenarioError as exc:
        raise QuestionError(f"{at}: {exc}") from exc


def _name(manifest: Mapping[str, Any], *, at: str) -> str:
    """Return the name of an object, empty if it has none; it is repeated in every replica's."""
    meta = _section(manifest, "metadata", at=at)
    name = str(meta.get("name") or str(meta.get("generateName") or "").rstrip("-."))
    if len(name) > MAX_SUBDOMAIN:
        raise QuestionError(f"{at}.metadata.name: must be no more than {MAX_SUBDOMAIN} characters")
    return name


def _section(obj: Mapping[str, Any], name: str, *, at: str) -> Mapping[str, Any]:
    """Return the object in a field, an empty one if there is none."""
    section = obj.get(name)
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise QuestionError(f"{at}.{name}: an object is needed, got {section!r:.40}")
    return section
