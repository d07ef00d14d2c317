"""Scopes: which pods a quota is about."""

from collections.abc import Callable, Iterator, Mapping

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
        return _class_matches(requirement, (pod.get("spec") or {}).get("priorityClassName") or "")
    test = _TESTS.get(scope)
    return test is not None and test(pod)


def _class_matches(requirement: Object, name: str) -> bool:
    values = requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return bool(name) and name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _is_terminating(pod: Object) -> bool:
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
    "NotTerminating": lambda pod: not _is_terminating(pod),
    "Terminating": _is_terminating,
}
