"""Node groups, and the file that describes them.

::

    apiVersion: berth/v1
    kind: NodeGroup
    metadata:
      name: general
    spec:
      minSize: 1
      maxSize: 5
      provisionTime: 40s
      template:              # a Node: labels, taints, allocatable
        status:
          allocatable: {cpu: "4", memory: 16Gi}
    ---
    apiVersion: berth/v1
    kind: ClusterAutoscaler
    args:                    # flags of cluster-autoscaler
      scale-down-unneeded-time: 2m
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from berth.cluster.kubelet.configuration import KubeletConfiguration
from berth.cluster.kubelet.node_template import NodeTemplate
from berth.cluster.kubelet.template_manifest import template_from
from berth.cluster.resources import Object
from berth.kube import manifests
from berth.kube.manifests import ManifestError
from berth.kube.objects.names import is_label_value, is_qualified_name, is_subdomain
from berth.kube.objects.pod import Pod
from berth.runtime.duration import Duration
from berth.runtime.errors import UserError
from berth.tools.autoscaler.options import PRICE, AutoscalingOptions

API_VERSION: Final = "berth/v1"
NODE_GROUP: Final = "NodeGroup"
CLUSTER_AUTOSCALER: Final = "ClusterAutoscaler"
GROUP_LABEL: Final = "berth.dev/node-group"
"""Each node of a group has its name in this label."""
MOST_NODES: Final = 5_000
"""Of one group."""


LONGEST_NAME: Final = 50
"""Characters of a group's name; those of its nodes are longer."""

T = TypeVar("T", bound=BaseModel)


class NodeGroupError(UserError):
    """A file of node groups that cannot be used; names the file, the object and the field."""


class GroupSpec(BaseModel):
    """``spec`` of a NodeGroup."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, strict=True
    )

    min_size: int = Field(
        default=0, ge=0, le=MOST_NODES, description="Nodes that are never removed"
    )
    max_size: int = Field(ge=1, le=MOST_NODES, description="Nodes that the group has at most")
    initial_size: int | None = Field(
        default=None,
        ge=0,
        le=MOST_NODES,
        description="Nodes that the cluster begins with; `minSize` if it is not set",
    )
    price: float | None = Field(
        default=None, gt=0, description="Of a node for an hour; for the expander `price`"
    )
    priority: int = Field(default=0, description="For the expander `priority`: the highest grows")
    provision_time: Duration = Field(
        default=Duration.of(60.0), description="How long a new machine takes until its kubelet runs"
    )
    failure_rate: float = Field(
        default=0.0, ge=0, le=1, description="Which part of new machines never comes"
    )
    template: dict[str, Any] = Field(
        description="A Node: its labels, taints and allocatable, or else capacity"
    )

    @field_validator("provision_time")
    @classmethod
    def _not_negative(cls, time: Duration) -> Duration:
        if time.nanoseconds < 0:
            raise ValueError("must not be negative")
        return time

    @model_validator(mode="after")
    def _in_order(self) -> "GroupSpec":
        if self.min_size > self.max_size:
            raise ValueError(f"minSize: {self.min_size}: must be at most maxSize, {self.max_size}")
        initial = self.initial_size
        if initial is not None and not self.min_size <= initial <= self.max_size:
            raise ValueError(f"initialSize: {initial}: must be between minSize and maxSize")
        return self


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Machines of one kind. Times are in seconds."""

    name: str
    max_size: int
    min_size: int = 0
    initial_size: int = 0
    template: NodeTemplate = field(default_factory=NodeTemplate)
    price: float | None = None
    """Of a machine, for an hour."""
    priority: int = 0
    """For the expander of that name: the group of the highest grows."""
    provision_seconds: float = 60.0
    """From asking for a machine until its kubelet starts."""
    failure_rate: float = 0.0
    """Which part of the machines that are asked for never comes."""

    def node(self, *, now: float = 0.0) -> Object:
        """Return the manifest of a new node of this group."""
        return self.template.node(f"template-node-for-{self.name}", index=0, now=now)


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """What the files say."""

    groups: Sequence[NodeGroup] = ()
    options: AutoscalingOptions = field(default_factory=AutoscalingOptions)

    def __bool__(self) -> bool:
        return bool(self.groups)

    def with_kubelets(self, configuration: KubeletConfiguration) -> "NodeGroups":
        """Return the same groups, whose nodes have kubelets of this configuration."""
        groups = [
            replace(group, template=configuration.applied_to(group.template))
            for group in self.groups
        ]
        return replace(self, groups=groups)


def read(paths: Iterable[Path]) -> NodeGroups:
    """Read files of node groups. Raises NodeGroupError and ManifestError."""
    groups: dict[str, NodeGroup] = {}
    options: AutoscalingOptions | None = None
    for path in paths:
        for manifest in manifests.read(path):
            kind, version = manifest["kind"], manifest["apiVersion"]
            if version != API_VERSION or kind not in (NODE_GROUP, CLUSTER_AUTOSCALER):
                wanted = f"a {API_VERSION} {NODE_GROUP} or {CLUSTER_AUTOSCALER}"
                raise NodeGroupError(f"{path}: {wanted} is needed, got a {version} {kind}")
            if kind == NODE_GROUP:
                group = node_group(manifest, source=str(path))
                if group.name in groups:
                    raise NodeGroupError(f"{path}: {NODE_GROUP} {group.name!r}: there are two")
                groups[group.name] = group
            elif options is not None:
                raise NodeGroupError(f"{path}: {CLUSTER_AUTOSCALER}: there are two")
            else:
                options = autoscaling_options(manifest, source=str(path))
    node_groups = NodeGroups(tuple(groups.values()), options or AutoscalingOptions())
    _check_prices(node_groups)
    return node_groups


def node_group(manifest: Mapping[str, Any], *, source: str) -> NodeGroup:
    """Make a group of its manifest; *source* names it in errors. Raises NodeGroupError."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not is_subdomain(name) or len(name) > LONGEST_NAME:
        where = f"{source}: {NODE_GROUP}: metadata.name"
        what = f"a lowercase RFC 1123 subdomain of at most {LONGEST_NAME} characters"
        raise NodeGroupError(f"{where}: {name!r}: must be {what}")
    at = f"{source}: {NODE_GROUP} {name!r}"
    _only(manifest, ("metadata", "spec"), at=at)
    spec = _validated(GroupSpec, manifest.get("spec"), at=f"{at}: spec")
    try:
        template = template_from(spec.template, source=f"{at}: spec.template")
    except ManifestError as exc:
        raise NodeGroupError(str(exc)) from exc
    for key, value in template.labels.items():
        if not is_qualified_name(key) or not is_label_value(value):
            where = f"{at}: spec.template.metadata.labels"
            raise NodeGroupError(f"{where}: {key!r}: {value!r}: no valid label")
    labels = {**template.labels, GROUP_LABEL: name}
    return NodeGroup(
        name,
        max_size=spec.max_size,
        min_size=spec.min_size,
        initial_size=spec.min_size if spec.initial_size is None else spec.initial_size,
        # A group is in one zone, if it says which: a new node must be known before it is there.
        template=NodeTemplate(
            prefix=f"{name}-",
            resources=template.resources,
            labels=labels,
            taints=template.taints,
            zones=0,
        ),
        price=spec.price,
        priority=spec.priority,
        provision_seconds=spec.provision_time.seconds,
        failure_rate=spec.failure_rate,
    )


def autoscaling_options(manifest: Mapping[str, Any], *, source: str) -> AutoscalingOptions:
    """Read ``args`` of a ClusterAutoscaler. Raises NodeGroupError."""
    at = f"{source}: {CLUSTER_AUTOSCALER}"
    _only(manifest, ("metadata", "args"), at=at)
    return _validated(AutoscalingOptions, manifest.get("args") or {}, at=f"{at}: args")


def _validated(model: type[T], written: Any, *, at: str) -> T:
    try:
        return model.model_validate_json(json.dumps(written))
    except (ValidationError, TypeError) as exc:
        raise NodeGroupError(f"{at}{_in_words(exc)}") from exc


def _in_words(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f": {error}"
    told = []
    for problem in error.errors(include_url=False, include_context=False):
        path = "".join(f".{part}" for part in problem["loc"])
        value = "" if problem["type"] == "missing" or not path else f" {problem['input']!r:.80}:"
        told.append(f"{path}:{value} {problem['msg'].removeprefix('Value error, ')}")
    return "; ".join(told)


def _only(manifest: Mapping[str, Any], fields: Sequence[str], *, at: str) -> None:
    for name in manifest:
        if name not in ("apiVersion", "kind", *fields):
            raise NodeGroupError(f"{at}: {name}: unknown field")


def _check_prices(node_groups: NodeGroups) -> None:
    if PRICE not in node_groups.options.expanders:
        return
    for group in node_groups.groups:
        if group.price is None:
            at = f"{NODE_GROUP} {group.name!r}: spec.price"
            raise NodeGroupError(f"{at}: needed: the expander {PRICE!r} compares prices")


def group_of(labels: Mapping[str, str]) -> str:
    """Return the name of the group that a node with *labels* belongs to, empty if to none."""
    return labels.get(GROUP_LABEL, "")


def is_of_daemon_set(pod: Pod) -> bool:
    """Whether *pod* is of a DaemonSet, so that it comes and goes with its node."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"
