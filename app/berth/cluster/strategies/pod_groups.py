"""Workloads and PodGroups of ``scheduling.k8s.io/v1alpha2`` (spec G2)."""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from berth.cluster.resources import Object, section
from berth.cluster.strategies import syntax
from berth.cluster.strategies.constraint_table import HIGHEST_USER_PRIORITY
from berth.kube import field_errors
from berth.kube.field_errors import FieldError, join

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


def check_pod_group(group: Object) -> list[FieldError]:
    spec = group.get("spec") or {}
    return [*_check_reference(spec), *_check_group(spec, "spec")]


def check_pod_group_update(new: Object, old: Object) -> list[FieldError]:
    return list(_check_immutable(new.get("spec") or {}, old.get("spec") or {}))


def check_workload(workload: Object) -> list[FieldError]:
    return list(_check_workload(workload.get("spec") or {}))


def check_workload_update(new: Object, old: Object) -> list[FieldError]:
    return list(_check_immutable(new.get("spec") or {}, old.get("spec") or {}))


def _check_immutable(new: Object, old: Object) -> Iterator[FieldError]:
    for field in sorted(new.keys() | old.keys()):
        if new.get(field) != old.get(field):
            yield field_errors.invalid(join("spec", field), new.get(field), IMMUTABLE)


def _check_reference(spec: Object) -> Iterator[FieldError]:
    reference = spec.get("podGroupTemplateRef")
    if reference is None:
        return
    path = "spec.podGroupTemplateRef"
    workload = reference.get("workload")
    if workload is None:
        yield field_errors.invalid(path, "", "must specify one of: `workload`")
        return
    for field in ("workloadName", "podGroupTemplateName"):
        if not workload.get(field):
            yield field_errors.required(f"{path}.workload.{field}")


def _check_workload(spec: Object) -> Iterator[FieldError]:
    reference = spec.get("controllerRef")
    if reference is not None:
        for field in ("kind", "name"):
            if not reference.get(field):
                yield field_errors.required(f"spec.controllerRef.{field}")
    templates = spec.get("podGroupTemplates") or []
    path = "spec.podGroupTemplates"
    if not templates:
        yield field_errors.required(path, "must have at least one item")
    if len(templates) > MOST_TEMPLATES:
        yield field_errors.too_many(path, len(templates), MOST_TEMPLATES)
        return
    seen: set[str] = set()
    for index, template in enumerate(templates):
        here = f"{path}[{index}]"
        yield from _check_name(template.get("name"), here, seen)
        yield from _check_group(template, here)


def _check_name(name: str | None, path: str, seen: set[str]) -> Iterator[FieldError]:
    """Evaluate the name of an item of a list by names; *seen* are those before it."""
    if not name:
        yield field_errors.required(f"{path}.name")
        return
    if name in seen:
        yield field_errors.duplicate(path, {"name": name})
        return
    seen.add(name)
    for problem in syntax.dns1123_label(name):
        yield field_errors.invalid(f"{path}.name", name, problem)


def _check_group(spec: Object, path: str) -> Iterator[FieldError]:
    """Evaluate what a group and a template of one have in common."""
    yield from _check_policy(spec.get("schedulingPolicy"), f"{path}.schedulingPolicy")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    here = f"{path}.schedulingConstraints.topology"
    if len(topology) > MOST_TOPOLOGY_CONSTRAINTS:
        yield field_errors.too_many(here, len(topology), MOST_TOPOLOGY_CONSTRAINTS)
    for index, constraint in enumerate(topology):
        key = constraint.get("key")
        if not key:
            yield field_errors.required(f"{here}[{index}].key")
            continue
        for problem in syntax.qualified_name(key):
            yield field_errors.invalid(f"{here}[{index}].key", key, problem)
    yield from _check_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in DISRUPTION_MODES:
        yield field_errors.not_supported(f"{path}.disruptionMode", mode, DISRUPTION_MODES)
    class_name, priority = spec.get("priorityClassName"), spec.get("priority")
    for problem in syntax.dns1123_subdomain(class_name) if class_name else ():
        yield field_errors.invalid(f"{path}.priorityClassName", class_name, problem)
    if priority is not None and priority > HIGHEST_USER_PRIORITY:
        why = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"  # the wording is a guess
        yield field_errors.invalid(f"{path}.priority", priority, why)


def _check_policy(policy: Object | None, path: str) -> Iterator[FieldError]:
    if policy is None:
        yield field_errors.required(path)
        return
    given = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not given:
        yield field_errors.invalid(path, "", "must specify one of: `basic`, `gang`")
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        yield field_errors.invalid(path, shown, "must specify exactly one of: `basic`, `gang`")
    gang = policy.get("gang")
    if gang is None:
        return
    count = gang.get("minCount")
    if count is None:
        yield field_errors.required(f"{path}.gang.minCount")
    elif count < 1:
        why = "must be greater than or equal to 1"
        yield field_errors.invalid(f"{path}.gang.minCount", count, why)


def _check_claims(claims: list[Object], path: str) -> Iterator[FieldError]:
    if len(claims) > MOST_CLAIMS:
        yield field_errors.too_many(path, len(claims), MOST_CLAIMS)
        return
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        yield from _check_name(claim.get("name"), here, seen)
        given = [source for source in CLAIM_SOURCES if claim.get(source) is not None]
        of = ", ".join(f"`{source}`" for source in CLAIM_SOURCES)
        if not given:
            yield field_errors.invalid(here, "", f"must specify one of: {of}")
        elif len(given) > 1:
            shown = f"{{{', '.join(given)}}}"
            yield field_errors.invalid(here, shown, f"must specify exactly one of: {of}")
        for source in given:
            for problem in syntax.dns1123_subdomain(claim[source]):
                yield field_errors.invalid(f"{here}.{source}", claim[source], problem)


def check_pod_group_status(new: Object, _old: Object) -> list[FieldError]:
    """Evaluate the names of the claims that were made for a group."""
    known = {claim.get("name") for claim in (new.get("spec") or {}).get("resourceClaims") or []}
    errors = []
    for index, status in enumerate((new.get("status") or {}).get("resourceClaimStatuses") or []):
        here = f"status.resourceClaimStatuses[{index}]"
        if status.get("name") not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(field_errors.invalid(f"{here}.name", status.get("name"), why))
        name = status.get("resourceClaimName")
        if name is not None:
            errors += [
                field_errors.invalid(f"{here}.resourceClaimName", name, problem)
                for problem in syntax.dns1123_subdomain(name)
            ]
    return errors
