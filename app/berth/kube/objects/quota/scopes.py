"""Scopes: which pods and volume claims a quota is about."""

from collections.abc import Callable, Collection, Iterator, Mapping

from berth.kube.objects.pod_defaults import Object, qos_class


def requirements_of(quota_spec: Object) -> list[Object]:
    """Return what a quota asks of the objects that it counts, as scope selector requirements."""
    plain = [{"scopeName": scope, "operator": "Exists"} for scope in quota_spec.get("scopes") or ()]
    selector = quota_spec.get("scopeSelector") or {}
    return [*plain, *(selector.get("matchExpressions") or ())]


def pod_matches(requirement: Object, pod: Object) -> bool:
    """Tell whether a pod is in the scope that *requirement* means."""
    scope = requirement.get("scopeName") or ""
    if scope == "PriorityClass":
        name = (pod.get("spec") or {}).get("priorityClassName") or ""
        return _classes_match(requirement, {name} if name else set())
    test = _TESTS.get(scope)
    return test is not None and test(pod)


def claim_matches(requirement: Object, claim: Object) -> bool:
    """Tell whether a volume claim is in the scope that *requirement* means: of claims there is one.

    It is in the scope of all classes that it has, had, or is to have (KEP-3751).
    """
    if requirement.get("scopeName") != "VolumeAttributesClass":
        return False
    return _classes_match(requirement, attributes_classes(claim))


def attributes_classes(claim: Object) -> set[str]:
    """Return the names of the VolumeAttributesClasses that *claim* says."""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    modified = status.get("modifyVolumeStatus") or {}
    names = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        modified.get("targetVolumeAttributesClassName"),
    )
    return {name for name in names if name}


def _classes_match(requirement: Object, names: Collection[str]) -> bool:
    """Tell whether one of the classes *names* is meant, or that there is none."""
    values = requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return any(name in values for name in names)
        case "NotIn":
            return not names or any(name not in values for name in names)
        case "DoesNotExist":
            return not names
        case _:
            return bool(names)


def is_terminating(pod: Object) -> bool:
    """Tell whether a pod has a deadline, which puts it into the scope ``Terminating``."""
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _is_best_effort(pod: Object) -> bool:
    return qos_class(pod.get("spec") or {}) == "BestEffort"


def _crosses_namespaces(pod: Object) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    return any(
        term.get("namespaces") or term.get("namespaceSelector") is not None
        for kind in ("podAffinity", "podAntiAffinity")
        for term in _terms(affinity.get(kind) or {})
    )


def _terms(affinity: Object) -> Iterator[Object]:
    yield from affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
        yield term.get("podAffinityTerm") or {}


_TESTS: Mapping[str, Callable[[Object], bool]] = {
    "BestEffort": _is_best_effort,
    "CrossNamespacePodAffinity": _crosses_namespaces,
    "NotBestEffort": lambda pod: not _is_best_effort(pod),
    "NotTerminating": lambda pod: not is_terminating(pod),
    "Terminating": is_terminating,
}
