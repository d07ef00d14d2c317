"""Workloads, PodGroups and CompositePodGroups since Kubernetes 1.37 (1.37 spec N7, N11).

:mod:`.pod_groups` has the rules of 1.36. The texts of errors are those of Kubernetes' declarative
validation, as far as they are known from 1.36; that of a gate that is off is a guess.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.strategies.pod_groups import HIGHEST_USER_PRIORITY
from berth.kube import field_errors
from berth.kube.field_errors import FieldError, join

MOST_TEMPLATES: Final = 8
MOST_LEVELS: Final = 4
"""Of groups in groups, the pod groups counted."""
MOST_TOPOLOGY_CONSTRAINTS: Final = 1
MOST_CLAIMS: Final = 4
IMMUTABLE: Final = "field is immutable"

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

CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")
DISRUPTION_MODES: Final = ("single", "all")
POLICIES: Final = ("basic", "gang")
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


def check_pod_group(group: Object) -> list[FieldError]:
    spec = group.get("spec") or {}
    errors = list(_check_reference(spec, is_required=False))
    parent = spec.get("parentCompositePodGroupName")
    if parent is not None and spec.get("workloadRef") is None:
        why = "required with `parentCompositePodGroupName`"
        errors.append(field_errors.required("spec.workloadRef", why))
    return [*errors, *_check_parent(spec), *_check_group(spec, "spec", _check_gang)]


def check_composite(group: Object) -> list[FieldError]:
    spec = group.get("spec") or {}
    return [
        *_check_reference(spec, is_required=True),
        *_check_parent(spec),
        *_check_group(spec, "spec", _check_composite_gang),
    ]


def check_group_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse changes but that of how many a gang needs."""
    return list(_check_immutable(new.get("spec") or {}, old.get("spec") or {}, "spec"))


def check_workload(workload: Object) -> list[FieldError]:
    spec = workload.get("spec") or {}
    errors: list[FieldError] = []
    reference = spec.get("controllerRef")
    if reference is not None:
        errors += [
            field_errors.required(f"spec.controllerRef.{field}")
            for field in ("kind", "name")
            if not reference.get(field)
        ]
    errors += _exactly_one(spec, "spec", TEMPLATES)
    errors += _check_lists(spec, "spec")
    for template, path, level in _templates(spec, "spec"):
        is_composite = "compositePodGroupTemplates" in path.rpartition(".")[2]
        gang = _check_composite_gang if is_composite else _check_gang
        errors += _check_group(template, path, gang)
        if is_composite:
            errors += _exactly_one(template, path, TEMPLATES)
            errors += _check_lists(template, path)
        if level > MOST_LEVELS:
            why = f"must not be deeper than {MOST_LEVELS} levels"
            errors.append(field_errors.forbidden(path, why))
    return errors


def check_workload_update(new: Object, old: Object) -> list[FieldError]:
    """Refuse changes but that of how many the gangs of templates need."""
    return list(_check_immutable(new.get("spec") or {}, old.get("spec") or {}, "spec"))


def check_pod_group_status(new: Object, _old: Object) -> list[FieldError]:
    """Evaluate the names of the claims that were made for a group."""
    known = {claim.get("name") for claim in (new.get("spec") or {}).get("resourceClaims") or []}
    errors = []
    for index, status in enumerate((new.get("status") or {}).get("resourceClaimStatuses") or []):
        path = f"status.resourceClaimStatuses[{index}]"
        if status.get("name") not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(field_errors.invalid(f"{path}.name", status.get("name"), why))
        errors += _said(status, "resourceClaimName", path, syntax.dns1123_subdomain)
    return errors


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


def _check_lists(owner: Object, path: str) -> Iterator[FieldError]:
    """Evaluate how many templates an owner has, and their names."""
    for field in TEMPLATES:
        templates, here = owner.get(field) or [], f"{path}.{field}"
        if len(templates) > MOST_TEMPLATES:
            yield field_errors.too_many(here, len(templates), MOST_TEMPLATES)
        yield from _check_names(templates, here)


def _check_names(items: list[Object], path: str) -> Iterator[FieldError]:
    """Evaluate the names of the items of a list by names."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        name, here = item.get("name"), f"{path}[{index}]"
        if not name:
            yield field_errors.required(f"{here}.name")
        elif name in seen:
            yield field_errors.duplicate(here, {"name": name})
        else:
            seen.add(name)
            yield from _said(item, "name", here, syntax.dns1123_label)


def _check_reference(spec: Object, *, is_required: bool) -> Iterator[FieldError]:
    reference, path = spec.get("workloadRef"), "spec.workloadRef"
    if reference is None:
        if is_required:
            yield field_errors.required(path)
        return
    for field, rule in (
        ("workloadName", syntax.dns1123_subdomain),
        ("templateName", syntax.dns1123_label),
    ):
        if not reference.get(field):
            yield field_errors.required(f"{path}.{field}")
        else:
            yield from _said(reference, field, path, rule)


def _check_parent(spec: Object) -> Iterator[FieldError]:
    return _said(spec, "parentCompositePodGroupName", "spec", syntax.dns1123_subdomain)


def _check_group(
    spec: Object, path: str, check_gang: Callable[[Object, str], Iterator[FieldError]]
) -> Iterator[FieldError]:
    """Evaluate what groups, groups of groups and templates of both have in common."""
    policy, here = spec.get("schedulingPolicy"), f"{path}.schedulingPolicy"
    yield from _exactly_one(policy or {}, here, POLICIES)
    if (gang := (policy or {}).get("gang")) is not None:
        yield from check_gang(gang, f"{here}.gang")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    here = f"{path}.schedulingConstraints.topology"
    if len(topology) > MOST_TOPOLOGY_CONSTRAINTS:
        yield field_errors.too_many(here, len(topology), MOST_TOPOLOGY_CONSTRAINTS)
    for index, constraint in enumerate(topology):
        if not constraint.get("key"):
            yield field_errors.required(f"{here}[{index}].key")
        else:
            yield from _said(constraint, "key", f"{here}[{index}]", syntax.qualified_name)
    yield from _check_claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    if (mode := spec.get("disruptionMode")) is not None:
        yield from _exactly_one(mode, f"{path}.disruptionMode", DISRUPTION_MODES)
    if spec.get("priorityClassName"):
        yield from _said(spec, "priorityClassName", path, syntax.dns1123_subdomain)
    priority = spec.get("priority")
    if priority is not None and priority > HIGHEST_USER_PRIORITY:
        why = f"must be less than or equal to {HIGHEST_USER_PRIORITY}"  # the wording is a guess
        yield field_errors.invalid(f"{path}.priority", priority, why)


def _check_gang(gang: Object, path: str) -> Iterator[FieldError]:
    return _at_least_one(gang, "minCount", path)


def _check_composite_gang(gang: Object, path: str) -> Iterator[FieldError]:
    return _at_least_one(gang, "minGroupCount", path)


def _at_least_one(gang: Object, field: str, path: str) -> Iterator[FieldError]:
    count = gang.get(field)
    if not count:
        yield field_errors.required(f"{path}.{field}")
    elif count < 1:
        why = "must be greater than or equal to 1"
        yield field_errors.invalid(f"{path}.{field}", count, why)


def _check_claims(claims: list[Object], path: str) -> Iterator[FieldError]:
    if len(claims) > MOST_CLAIMS:
        yield field_errors.too_many(path, len(claims), MOST_CLAIMS)
        return
    yield from _check_names(claims, path)
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        yield from _exactly_one(claim, here, CLAIM_SOURCES)
        for source in CLAIM_SOURCES:
            yield from _said(claim, source, here, syntax.dns1123_subdomain)


def _exactly_one(owner: Object, path: str, fields: tuple[str, ...]) -> Iterator[FieldError]:
    """Evaluate a union: one of *fields* is set, an empty list is not."""
    given = [field for field in fields if owner.get(field) is not None and owner[field] != []]
    of = ", ".join(f"`{field}`" for field in fields)
    if not given:
        yield field_errors.invalid(path, "", f"must specify one of: {of}")
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        yield field_errors.invalid(path, shown, f"must specify exactly one of: {of}")


def _said(owner: Object, field: str, path: str, rule: syntax.Rule) -> Iterator[FieldError]:
    value = owner.get(field)
    for problem in rule(value) if value is not None else ():
        yield field_errors.invalid(f"{path}.{field}", value, problem)


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
