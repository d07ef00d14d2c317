"""Workloads, PodGroups and CompositePodGroups since Kubernetes 1.37 (1.37 spec N7, N11).

:mod:`.pod_groups` has the rules of 1.36. The texts of errors are those of Kubernetes' declarative
validation, as far as they are known from 1.36; that of a gate that is off is a guess.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import (
    ITSELF,
    Owners,
    Rules,
    Table,
    Within,
    at_least,
    at_most,
    named,
    present,
    required,
    said,
)
from berth.cluster.strategies.pod_groups import (
    CLAIM,
    IMMUTABLE,
    MOST_CLAIMS,
    MOST_TEMPLATES,
    MOST_TOPOLOGY_CONSTRAINTS,
    PRIORITY,
    PRIORITY_CLASS,
    by_name,
    union,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError, join

MOST_LEVELS: Final = 4
"""Of groups in groups, the pod groups counted."""

COMPOSITE_POD_GROUP: Final = "CompositePodGroup"
RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
PREEMPTION_POLICY: Final = "PodGroupPreemptionPolicy"
FORBIDDEN: Final = {
    "compositePodGroupTemplates": COMPOSITE_POD_GROUP,
    "parentCompositePodGroupName": COMPOSITE_POD_GROUP,
    "preemptionPolicy": PREEMPTION_POLICY,
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
}
"""Fields of groups, and of templates of some, that a new object may have with a gate only."""

TEMPLATES: Final = ("podGroupTemplates", "compositePodGroupTemplates")

Check = Callable[[Object], list[FieldError]]
Prepare = Callable[[Object, Object | None], None]


def prepare_pod_group(features: Collection[str]) -> Prepare:
    """Return what drops claims without their gate, and defaults the policy with its own."""

    def prepare(new: Object, old: Object | None) -> None:
        spec, before = new["spec"], (old or {}).get("spec") or {}
        if RESOURCE_CLAIMS not in features and "resourceClaims" not in before:
            spec.pop("resourceClaims", None)
        if old is None:
            _default(spec, features)

    return prepare


def prepare_composite(features: Collection[str]) -> Prepare:
    """Return the same for groups of groups, which have the default of single disruption, too."""

    def prepare(new: Object, old: Object | None) -> None:
        if old is None:
            _default(new["spec"], features)

    return prepare


def _default(spec: Object, features: Collection[str]) -> None:
    if PREEMPTION_POLICY in features:
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def prepare_workload(features: Collection[str]) -> Prepare:
    """Return what drops the claims of templates without their gate."""

    def prepare(new: Object, old: Object | None) -> None:
        if RESOURCE_CLAIMS in features:
            return
        before = {template.get("name"): template for template in _pod_groups(old or {})}
        for template in _pod_groups(new):
            if "resourceClaims" not in before.get(template.get("name"), {}):
                template.pop("resourceClaims", None)

    return prepare


def check_gates_of_group(features: Collection[str]) -> Check:
    """Return what refuses the fields of a new group that are behind gates."""
    return lambda obj: list(_forbidden(obj.get("spec") or {}, "spec", features))


def check_gates_of_workload(features: Collection[str]) -> Check:
    """Return what refuses the fields of the templates of a new Workload."""

    def check(obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        found = list(_forbidden(spec, "spec", features))
        for template, path, _level in _templates(spec, "spec"):
            found += _forbidden(template, path, features)
        return found

    return check


def _forbidden(spec: Object, path: str, features: Collection[str]) -> Iterator[FieldError]:
    for field, gate in FORBIDDEN.items():
        if gate not in features and spec.get(field):
            why = f"requires the feature gate {gate}"
            yield field_errors.forbidden(f"{path}.{field}", why)


def check_group_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse changes but that of how many a gang needs."""
    return list(_check_immutable(new.get("spec") or {}, old.get("spec") or {}, "spec"))


def check_workload_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse changes but that of how many the gangs of templates need."""
    return list(_check_immutable(new.get("spec") or {}, old.get("spec") or {}, "spec"))


def _pod_groups(workload: Object) -> Iterator[Object]:
    """Yield the templates of pod groups, wherever they are."""
    for template, path, _level in _templates(workload.get("spec") or {}, "spec"):
        if path.rpartition(".")[2].startswith(TEMPLATES[0]):
            yield template


def _templates(owner: Object, path: str, level: int = 1) -> Iterator[tuple[Object, str, int]]:
    """Yield the templates below *owner*, each with its path and how deep it is."""
    for field in TEMPLATES:
        for index, template in enumerate(owner.get(field) or []):
            where = f"{path}.{field}[{index}]"
            yield template, where, level
            yield from _templates(template, where, level + 1)


def _policy(policy: Object | None, path: str) -> Iterator[FieldError]:
    """Evaluate how a group is scheduled: as a gang or not, which it must say."""
    yield from union("basic", "gang")(policy or {}, path)


def _parent(spec: Object, path: str) -> Iterator[FieldError]:
    """A pod group that is in a group of groups is of a Workload."""
    if spec.get("parentCompositePodGroupName") is not None and spec.get("workloadRef") is None:
        why = "required with `parentCompositePodGroupName`"
        yield field_errors.required(f"{path}.workloadRef", why)


def _depth(_template: Object, path: str, owners: Owners) -> Iterator[FieldError]:
    if len(owners) - 2 > MOST_LEVELS:  # without the Workload and its spec
        yield field_errors.forbidden(path, f"must not be deeper than {MOST_LEVELS} levels")


def _count(count: int | None, path: str) -> Iterable[FieldError]:
    return at_least(1)(count, path) if count else [field_errors.required(path)]


_NAME: Final[Rules] = (said(syntax.dns1123_subdomain),)
_COMMON: Final[Mapping[str, Rules]] = {
    "schedulingPolicy": (_policy,),
    "schedulingConstraints": (),
    "resourceClaims": by_name(MOST_CLAIMS),
    "disruptionMode": (),
    "priorityClassName": PRIORITY_CLASS,
    "priority": PRIORITY,
}
_OF_COMPOSITES: Final = {name: _COMMON[name] for name in _COMMON if name != "resourceClaims"}
_LISTS: Final[Mapping[str, Rules]] = dict.fromkeys(TEMPLATES, by_name(MOST_TEMPLATES))
_CONSTRAINTS: Final[Mapping[str, Rules]] = {"topology": (at_most(MOST_TOPOLOGY_CONSTRAINTS),)}
_MODE: Final[Mapping[str, Rules]] = {ITSELF: (union("single", "all"),)}


def _table(version: str) -> Table:
    """Return the constraints of the types that both versions have."""
    types = f"scheduling.{version}."
    return {
        f"{types}PodGroupSpec": {
            "workloadRef": (),
            "parentCompositePodGroupName": _NAME,
            **_COMMON,
            ITSELF: (_parent,),
        },
        f"{types}WorkloadReference": {
            "workloadName": (named(syntax.dns1123_subdomain),),
            "templateName": (named(syntax.dns1123_label),),
        },
        f"{types}WorkloadSpec": {"controllerRef": (), ITSELF: (union(*TEMPLATES),), **_LISTS},
        f"{types}TypedLocalObjectReference": {"kind": (required(),), "name": (required(),)},
        f"{types}PodGroupTemplate": {
            "name": (named(syntax.dns1123_label),),
            ITSELF: (Within(_depth),),
            **_COMMON,
        },
        f"{types}CompositePodGroupTemplate": {
            "name": (named(syntax.dns1123_label),),
            ITSELF: (Within(_depth), union(*TEMPLATES)),
            **_OF_COMPOSITES,
            **_LISTS,
        },
        f"{types}GangSchedulingPolicy": {"minCount": (_count,)},
        f"{types}CompositeGangSchedulingPolicy": {"minGroupCount": (_count,)},
        f"{types}PodGroupSchedulingConstraints": _CONSTRAINTS,
        f"{types}CompositePodGroupSchedulingConstraints": _CONSTRAINTS,
        f"{types}TopologyConstraint": {"key": (named(syntax.qualified_name),)},
        f"{types}PodGroupResourceClaim": CLAIM,
        f"{types}DisruptionMode": _MODE,
        f"{types}CompositeDisruptionMode": _MODE,
        f"{types}PodGroupResourceClaimStatus": {"resourceClaimName": _NAME},
    }


_ALPHA: Final = "scheduling.v1alpha3."
GROUP_TABLE: Final[Table] = {
    **_table("v1beta1"),
    **_table("v1alpha3"),
    f"{_ALPHA}CompositePodGroupSpec": {
        "workloadRef": (present(),),
        "parentCompositePodGroupName": _NAME,
        **_OF_COMPOSITES,
    },
    # What Jobs say of their groups.
    f"{_ALPHA}WorkloadPodGroupSchedulingPolicy": {ITSELF: (_policy,)},
    f"{_ALPHA}WorkloadPodGroupGangSchedulingPolicy": {"minCount": (at_least(1),)},
    f"{_ALPHA}WorkloadPodGroupSchedulingConstraints": _CONSTRAINTS,
    f"{_ALPHA}WorkloadPodGroupResourceClaim": CLAIM,
    f"{_ALPHA}WorkloadPodGroupDisruptionMode": _MODE,
}
"""A part of the constraint table."""


def _check_immutable(new: Any, old: Any, path: str) -> Iterator[FieldError]:
    """Refuse changes, and name the fields of a template that changed, but of how many are needed.

    ``gang`` may neither come nor go.
    """
    for field in sorted(new.keys() | old.keys()):
        here, after, before = join(path, field), new.get(field), old.get(field)
        if after == before or field in ("minCount", "minGroupCount"):
            continue
        if field in ("schedulingPolicy", "gang") and after is not None and before is not None:
            yield from _check_immutable(after, before, here)
        elif field in TEMPLATES and _names(after) == _names(before):
            for index, (template, earlier) in enumerate(zip(after, before, strict=True)):
                yield from _check_immutable(template, earlier, f"{here}[{index}]")
        else:
            yield field_errors.invalid(here, after, IMMUTABLE)


def _names(templates: list[Object] | None) -> list[Any]:
    return [template.get("name") for template in templates or []]
