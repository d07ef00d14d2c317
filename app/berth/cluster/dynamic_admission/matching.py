"""Requests that a webhook or a policy is about: rules and selectors.

Source: ``k8s.io/apiserver/pkg/admission/plugin/webhook/predicates``.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from berth.cluster import views
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.strategies.selectors import LabelSelector, matches
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.kube.objects.meta import KubeStruct

ANY: Final = "*"
EQUIVALENT: Final = "Equivalent"
CONFIGURATION_GROUP: Final = "admissionregistration.k8s.io"
"""Its objects pass all of this, so that a broken webhook can be repaired."""
NAMESPACES: Final = "namespaces"


class Rule(KubeStruct, frozen=True):
    """``RuleWithOperations`` of a webhook, ``NamedRuleWithOperations`` of a policy."""

    operations: list[str] | None = None
    api_groups: list[str] | None = None
    api_versions: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None
    scope: str | None = None

    def covers(self, resource: ResourceType, request: AdmissionRequest) -> bool:
        """Tell whether this is about *request*, as a request to *resource*."""
        return (
            _among(request.operation, self.operations)
            and _among(resource.group, self.api_groups)
            and _among(resource.version, self.api_versions)
            and self._covers_resource(resource.plural, request.subresource)
            and (not self.resource_names or request.name in self.resource_names)
            and self.scope in (None, ANY, "Namespaced" if resource.namespaced else "Cluster")
        )

    def _covers_resource(self, plural: str, subresource: str) -> bool:
        for resource in self.resources or ():
            name, _, below = resource.partition("/")
            if name in (ANY, plural) and below in (ANY, subresource):
                return True
        return False


class Matcher:
    """Matches requests, with what it must look up for that."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._revision = 0
        self._by_storage: dict[str, list[ResourceType]] = {}

    def resource_of(
        self, rules: Sequence[Rule], match_policy: str | None, request: AdmissionRequest
    ) -> ResourceType | None:
        """Return as which resource *rules* cover a request; None if they do not.

        That is another version than was asked for only where *match_policy* is ``Equivalent``.
        """
        if any(rule.covers(request.resource, request) for rule in rules):
            return request.resource
        if match_policy != EQUIVALENT:
            return None
        for other in self._equivalent(request.resource):
            if any(rule.covers(other, request) for rule in rules):
                return other
        return None

    def selects(
        self,
        namespaces: LabelSelector | None,
        objects: LabelSelector | None,
        request: AdmissionRequest,
    ) -> bool:
        """Tell whether both selectors let a request through.

        Objects without a namespace pass the selector of namespaces, but for namespaces, whose own
        labels count. The selector of objects is met by the new or the old object.
        """
        if namespaces is not None and not namespaces.is_empty:
            labels = self._namespace_labels(request)
            if labels is not None and not matches(namespaces, labels):
                return False
        if objects is None or objects.is_empty:
            return True
        both = (request.object, request.old_object)
        return any(each is not None and matches(objects, _labels(each)) for each in both)

    def _namespace_labels(self, request: AdmissionRequest) -> dict[str, str] | None:
        if request.resource.plural == NAMESPACES and not request.resource.group:
            own = request.old_object if request.object is None else request.object
            return _labels(own or {})
        if not request.namespace:
            return None
        try:
            return self._store.get(NAMESPACES, "", request.namespace).labels
        except NotFoundError:
            return {}

    def _equivalent(self, resource: ResourceType) -> Iterator[ResourceType]:
        """Yield the other resources that show the same objects."""
        if self._revision != self._registry.revision:
            self._revision, self._by_storage = self._registry.revision, {}
            for each in self._registry:
                self._by_storage.setdefault(each.storage_key, []).append(each)
        for each in self._by_storage.get(resource.storage_key, ()):
            if each is not resource:
                yield each


def converted(obj: Object | None, source: ResourceType, target: ResourceType) -> Object | None:
    """Return an object of *source* as *target* shows it."""
    if obj is None or source is target:
        return obj
    return {**target.from_storage(source.to_storage(obj)), **views.type_of(target)}


def is_exempt(request: AdmissionRequest) -> bool:
    """Tell whether no webhook and no policy sees a request."""
    return request.resource.group == CONFIGURATION_GROUP


def _labels(obj: Object) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _among(value: str | Operation, allowed: list[str] | None) -> bool:
    return allowed is not None and (ANY in allowed or value in allowed)
