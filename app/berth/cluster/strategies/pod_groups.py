"""Workloads and PodGroups of ``scheduling.k8s.io/v1alpha2`` (spec G2)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from berth.cluster.resources import Object, section
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraints import (
    ITSELF,
    If,
    Plain,
    Rules,
    Table,
    at_least,
    at_most,
    between,
    named,
    one_of,
    present,
    required,
    said,
    text,
)
from berth.kube import field_errors
from berth.kube.field_errors import FieldError, join

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""What is above belongs to the system classes."""
MOST_TEMPLATES: Final = 8
MOST_TOPOLOGY_CONSTRAINTS: Final = 1
MOST_CLAIMS: Final = 4
CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
DISRUPTION_MODES: Final = ("Pod", "PodGroup")
IMMUTABLE: Final = "field is immutable"

WORKLOAD_AWARE_PREEMPTION: Final = "WorkloadAwarePreemption"
BEHIND_GATES: Final = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "resourceClaims": "DRAWorkloadResourceClaims",
    "disruptionMode": WORKLOAD_AWARE_PREEMPTION,
    "priorityClassName": WORKLOAD_AWARE_PREEMPTION,
    "priority": WORKLOAD_AWARE_PREEMPTION,
}
"""Fields of a group, or of a template of one, that are dropped unless the gate is on."""

Prepare = Callable[[Object, Object | None], None]


def prepare_pod_group(features: Collection[str]) -> Prepare:
    """Return what drops the fields of a group that are behind gates, unless it has them.

    A new group gets what is the default with these gates.
    """

    def prepare(new: Object, old: Object | None) -> None:
        spec = section(new, "spec")
        _drop(spec, (old or {}).get("spec") or {}, features)
        if old is None:
            _default(spec, features)

    return prepare


def prepare_workload(features: Collection[str]) -> Prepare:
    """Return the same for the templates of a Workload."""

    def prepare(new: Object, old: Object | None) -> None:
        before = {each.get("name"): each for each in _templates(old or {})}
        for template in _templates(new):
            _drop(template, before.get(template.get("name")) or {}, features)
            if old is None:
                _default(template, features)

    return prepare


def _default(spec: Object, features: Collection[str]) -> None:
    if WORKLOAD_AWARE_PREEMPTION in features and not spec.get("disruptionMode"):
        spec["disruptionMode"] = "Pod"


def _drop(spec: Object, before: Object, features: Collection[str]) -> None:
    for field, gate in BEHIND_GATES.items():
        if gate not in features and field not in before:
            spec.pop(field, None)


def _templates(workload: Object) -> list[Object]:
    return (workload.get("spec") or {}).get("podGroupTemplates") or []


def check_unchanged(new: Object, old: Object) -> Iterator[FieldError]:
    """Refuse any change of a group's or a Workload's spec, told field by field."""
    after, before = new.get("spec") or {}, old.get("spec") or {}
    for field in sorted(after.keys() | before.keys()):
        if after.get(field) != before.get(field):
            yield field_errors.invalid(join("spec", field), after.get(field), IMMUTABLE)


def union(*fields: str) -> Plain:
    """Refuse an object that has none, or several, of *fields*; an empty list is none."""
    listed = ", ".join(f"`{field}`" for field in fields)

    def rule(obj: Object, path: str) -> Iterator[FieldError]:
        given = [field for field in fields if obj.get(field) not in (None, [])]
        if not given:
            yield field_errors.invalid(path, "", f"must specify one of: {listed}")
        elif len(given) > 1:
            shown, detail = f"{{{', '.join(given)}}}", f"must specify exactly one of: {listed}"
            yield field_errors.invalid(path, shown, detail)

    return rule


def distinct_names(items: list[Object] | None, path: str) -> Iterator[FieldError]:
    """Refuse an item of a list by names that has the name of one before it."""
    seen: set[str] = set()
    for index, item in enumerate(items or ()):
        if (name := item.get("name")) and name in seen:
            yield field_errors.duplicate(f"{path}[{index}]", {"name": name})
        seen.add(name or "")


def by_name(most: int) -> Rules:
    """Return the rules of a list by names that has *most* items: if it has more, that is all."""
    return (at_most(most), If(lambda items, _owners: len(items or ()) <= most), distinct_names)


# The wording is a guess.
PRIORITY: Final[Rules] = (
    between(
        -(2**31), HIGHEST_USER_PRIORITY, f"must be less than or equal to {HIGHEST_USER_PRIORITY}"
    ),
)
PRIORITY_CLASS: Final[Rules] = (text(syntax.dns1123_subdomain),)
CLAIM: Final[Mapping[str, Rules]] = {
    "name": (named(syntax.dns1123_label),),
    ITSELF: (union(*CLAIM_SOURCES),),
    **dict.fromkeys(CLAIM_SOURCES, (said(syntax.dns1123_subdomain),)),
}

_TYPES: Final = "scheduling.v1alpha2."
_COMMON: Final[Mapping[str, Rules]] = {
    "schedulingPolicy": (present(),),
    "schedulingConstraints": (),
    "resourceClaims": by_name(MOST_CLAIMS),
    "disruptionMode": (one_of(*DISRUPTION_MODES),),
    "priorityClassName": PRIORITY_CLASS,
    "priority": PRIORITY,
}
POD_GROUP_TABLE: Final[Table] = {
    f"{_TYPES}PodGroupSpec": {"podGroupTemplateRef": (), **_COMMON},
    f"{_TYPES}PodGroupTemplateReference": {ITSELF: (union("workload"),)},
    f"{_TYPES}WorkloadPodGroupTemplateReference": {
        "workloadName": (required(),),
        "podGroupTemplateName": (required(),),
    },
    f"{_TYPES}WorkloadSpec": {
        "controllerRef": (),
        "podGroupTemplates": (
            required("must have at least one item"),
            *by_name(MOST_TEMPLATES),
        ),
    },
    f"{_TYPES}TypedLocalObjectReference": {"kind": (required(),), "name": (required(),)},
    f"{_TYPES}PodGroupTemplate": {"name": (named(syntax.dns1123_label),), **_COMMON},
    f"{_TYPES}PodGroupSchedulingPolicy": {ITSELF: (union("basic", "gang"),)},
    f"{_TYPES}GangSchedulingPolicy": {"minCount": (present(), at_least(1))},
    f"{_TYPES}PodGroupSchedulingConstraints": {"topology": (at_most(MOST_TOPOLOGY_CONSTRAINTS),)},
    f"{_TYPES}TopologyConstraint": {"key": (named(syntax.qualified_name),)},
    f"{_TYPES}PodGroupResourceClaim": CLAIM,
    f"{_TYPES}PodGroupResourceClaimStatus": {
        "resourceClaimName": (said(syntax.dns1123_subdomain),),
    },
}


def check_claim_statuses(new: Object, _old: Object) -> Iterator[FieldError]:
    """Evaluate whether claims that were made for a pod or a group are claims of it."""
    known = {claim.get("name") for claim in (new.get("spec") or {}).get("resourceClaims") or []}
    for index, status in enumerate((new.get("status") or {}).get("resourceClaimStatuses") or []):
        if status.get("name") not in known:
            here = f"status.resourceClaimStatuses[{index}].name"
            why = "must match the name of an entry in `spec.resourceClaims`"
            yield field_errors.invalid(here, status.get("name"), why)
