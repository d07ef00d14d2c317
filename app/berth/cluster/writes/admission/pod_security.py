"""PodSecurity: pods of a namespace are as its labels want them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from berth.cluster import errors
from berth.cluster.kinds.builtin import find
from berth.cluster.pod_security.baseline import APPARMOR
from berth.cluster.pod_security.policy import Standard, policy_of
from berth.cluster.reading import objects
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.writes.admission.refusals import forbidden
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step

POD: Final = find("", "v1", "pods")
PODS: Final = POD.storage_key
NAMESPACES = find("", "v1", "namespaces").storage_key

MOST_PODS: Final = 3000
"""Pods of a namespace that are looked at when its level rises."""

CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def _template_of(obj: Object) -> Object:
    found: Object = (obj.get("spec") or {}).get("template") or {}
    return found


def _job_template_of(obj: Object) -> Object:
    return _template_of((obj.get("spec") or {}).get("jobTemplate") or {})


TEMPLATES: Final[Mapping[str, Callable[[Object], Object]]] = {
    **dict.fromkeys(
        (
            "daemonsets.apps",
            "deployments.apps",
            "jobs.batch",
            "replicasets.apps",
            "replicationcontrollers",
            "statefulsets.apps",
        ),
        _template_of,
    ),
    "cronjobs.batch": _job_template_of,
    "podtemplates": lambda obj: obj.get("template") or {},
}
"""Where a kind has the template of its pods. Of those there are warnings only."""


class PodSecurity(Step):
    def __init__(self, store: Store) -> None:
        self._store = store

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        if operation not in (Operation.CREATE, Operation.UPDATE):
            return False
        if resource.storage_key == PODS:
            return subresource in ("", "ephemeralcontainers")
        kinds = (NAMESPACES, *TEMPLATES)
        return not subresource and resource.storage_key in kinds

    def validate(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        if request.resource.storage_key == NAMESPACES:
            self._validate_namespace(request, request.object)
            return
        try:
            labels = self._store.get(NAMESPACES, "", request.namespace).labels
        except NotFoundError:
            return
        policy, _ = policy_of(labels)
        if not policy.enforce.strictness and not policy.warn.strictness:
            return
        template = TEMPLATES.get(request.resource.storage_key)
        if template is not None:
            _warn(request, policy.warn, template(request.object))
        elif _matters(request.object, request.old_object):
            _enforce(request, policy.enforce, request.object)
            _warn(request, policy.warn, request.object)

    def _validate_namespace(self, request: AdmissionRequest, obj: Object) -> None:
        """Refuse labels that mean nothing; tell which pods a stricter level would refuse."""
        policy, found = policy_of(obj["metadata"].get("labels") or {})
        if request.old_object is None:
            if found:
                raise errors.invalid(request.resource, request.name, found)
            return
        before, found_before = policy_of(request.old_object["metadata"].get("labels") or {})
        if found and found != found_before:
            raise errors.invalid(request.resource, request.name, found)
        level, old_level = policy.enforce, before.enforce
        if level == old_level or not level.strictness:
            return
        if level.version == old_level.version and level.strictness <= old_level.strictness:
            return
        request.context.warnings.extend(self._violating(request.name, level))

    def _violating(self, namespace: str, level: Standard) -> Iterator[str]:
        """Yield the warnings about pods that are there already."""
        pods = self._store.list(PODS, namespace)
        seen: dict[str, list[str]] = {}
        for pod in objects(POD, pods[:MOST_PODS]):
            reasons = level.reasons(pod["metadata"], pod.get("spec") or {})
            if reasons:
                seen.setdefault(reasons, []).append(pod["metadata"]["name"])
        if len(pods) > MOST_PODS:
            yield (
                "new PodSecurity enforce level only checked against the first "
                f"{MOST_PODS} of {len(pods)} existing pods"
            )
        if seen:
            yield (
                f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce '
                f'level "{level}"'
            )
        yield from sorted(f"{_first_of(names)}: {reasons}" for reasons, names in seen.items())


def _first_of(names: list[str]) -> str:
    """Return the first pod, and how many there are besides."""
    first, *others = sorted(names)
    if not others:
        return first
    return f"{first} (and {len(others)} other pod{'s' if len(others) > 1 else ''})"


def _enforce(request: AdmissionRequest, standard: Standard, pod: Object) -> None:
    found = standard.violations(pod["metadata"], pod.get("spec") or {})
    if found:
        raise forbidden(request, f'violates PodSecurity "{standard}": {found}')


def _warn(request: AdmissionRequest, standard: Standard, pod: Object) -> None:
    found = standard.violations(pod.get("metadata") or {}, pod.get("spec") or {})
    if found:
        request.context.warnings.append(f'would violate PodSecurity "{standard}": {found}')


def _matters(new: Object, old: Object | None) -> bool:
    """Tell whether an update changes anything that the standards are about."""
    return old is None or _concerned(new) != _concerned(old)


def _concerned(pod: Object) -> list[object]:
    spec, annotations = pod.get("spec") or {}, pod["metadata"].get("annotations") or {}
    profiles = {key: value for key, value in annotations.items() if key.startswith(APPARMOR)}
    return [profiles, *(spec.get(field) for field in CONTAINERS)]
