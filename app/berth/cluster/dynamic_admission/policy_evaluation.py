"""Policies about a request, and the variables of their expressions.

Source: ``k8s.io/apiserver/pkg/admission/plugin/policy/generic``.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from berth.cluster import views
from berth.cluster.access.rbac import Authorizer
from berth.cluster.dynamic_admission.authorizing import authorizer_of, decides
from berth.cluster.dynamic_admission.conditions import are_met
from berth.cluster.dynamic_admission.latest import Latest
from berth.cluster.dynamic_admission.matching import Matcher, converted, is_exempt
from berth.cluster.dynamic_admission.policies import (
    BindingSpec,
    MatchResources,
    Policy,
    PolicySpec,
    read_policies,
)
from berth.cluster.dynamic_admission.review import attributes_of
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.strategies.expressions import compiled, environment
from berth.cluster.strategies.selectors import matches
from berth.cluster.writes.admission.request import AdmissionRequest
from berth.kube.cel.authorization import answering
from berth.kube.cel.failures import EvaluationError


class PolicyError(Exception):
    """A policy cannot be evaluated; what that means is for its failure policy to say."""


class Bound(NamedTuple):
    """A policy that is about a request, by one of its bindings."""

    policy: Policy
    binding: str
    spec: BindingSpec
    resource: ResourceType
    """As which resource it sees the request."""


class Policies:
    """The policies of one kind that are there."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        authorizer: Authorizer,
        storage_keys: Sequence[str],
    ) -> None:
        self._store = store
        self._authorizer = authorizer
        self._registry = registry
        self._latest = Latest(store, storage_keys, read_policies)
        self._matcher = Matcher(store, registry)

    def about(self, request: AdmissionRequest) -> Iterator[Bound]:
        """Return the policies that are about a request, once for each binding."""
        policies = self._latest.get()
        return self._bound(policies, request) if policies else iter(())

    def _bound(self, policies: Sequence[Policy], request: AdmissionRequest) -> Iterator[Bound]:
        if is_exempt(request):
            return
        for policy in policies:
            resource = self._matched(policy.spec.match_constraints, request)
            if resource is None:
                continue
            for name, spec in policy.bindings:
                match = spec.match_resources
                if match is None or self._matched(match, request) is not None:
                    yield Bound(policy, name, spec, resource)

    def answering(self, request: AdmissionRequest) -> AbstractContextManager[None]:
        """Let expressions in the block ask what who makes the request may do."""
        return answering(decides(self._authorizer, request.context.user))

    def values(self, bound: Bound, request: AdmissionRequest) -> Iterator[Object]:
        """Yield what expressions are evaluated with, once for each object of parameters.

        PolicyError when these are missing and must not be.
        """
        values: Object = {
            "object": converted(request.object, request.resource, bound.resource),
            "oldObject": converted(request.old_object, request.resource, bound.resource),
            "request": attributes_of(request, bound.resource),
            "namespaceObject": self._namespace(request),
            "authorizer": authorizer_of(request),
        }
        for params in self._params(bound.policy.spec, bound.spec, request):
            yield {**values, "params": params}

    def _matched(self, match: MatchResources, request: AdmissionRequest) -> ResourceType | None:
        """Return as which resource *match* is about the request; None if it is not."""
        policy = match.match_policy
        if not self._matcher.selects(match.namespace_selector, match.object_selector, request):
            return None
        excluded = match.exclude_resource_rules or ()
        if excluded and self._matcher.resource_of(excluded, policy, request) is not None:
            return None
        if not match.resource_rules:
            return request.resource
        return self._matcher.resource_of(match.resource_rules, policy, request)

    def _params(
        self, policy: PolicySpec, binding: BindingSpec, request: AdmissionRequest
    ) -> list[Object | None]:
        """Return the parameters that a binding evaluates a policy with, one after the other."""
        kind, reference = policy.param_kind, binding.param_ref
        if kind is None or reference is None:
            return [None]
        found = self._of_kind(kind.api_version, kind.kind)
        if found is None:
            raise PolicyError(f"no matches for kind {kind.kind} in version {kind.api_version}")
        namespace = ""
        if found.namespaced:
            namespace = reference.namespace or request.namespace
            if not namespace:
                raise PolicyError(
                    "cannot use namespaced paramRef in policy binding that "
                    "matches cluster-scoped resources"
                )
        params: list[Object | None] = [
            views.as_object(found, stored)
            for stored in self._store.list(found.storage_key, namespace)
            if (
                stored.name == reference.name
                if reference.name
                else reference.selector is not None and matches(reference.selector, stored.labels)
            )
        ]
        if not params and reference.parameter_not_found_action == "Deny":
            raise PolicyError(
                "no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return params

    def _of_kind(self, api_version: str, kind: str) -> ResourceType | None:
        for each in self._registry:
            if (each.group_version, each.kind) == (api_version, kind) and each.is_stored:
                return each
        return None

    def _namespace(self, request: AdmissionRequest) -> Object | None:
        if not request.namespace:
            return None
        try:
            return self._store.get("namespaces", "", request.namespace).decode()
        except NotFoundError:
            return None


def is_met(policy: PolicySpec, values: Object) -> bool:
    """Tell whether the match conditions are met; raise PolicyError when one fails."""
    try:
        return are_met(policy.match_conditions or (), values)
    except EvaluationError as exc:
        raise PolicyError(f"match condition failed: {exc}") from exc


class Evaluation:
    """The expressions of a policy, with its variables."""

    def __init__(self, policy: PolicySpec, values: Object) -> None:
        self._failed: dict[str, str] = {}
        """By variable: why it failed. Nobody may need it."""
        variables: Object = {}
        self._bound = environment().bind({**values, "variables": variables})
        for variable in policy.variables or ():
            try:
                variables[variable.name] = compiled(variable.expression).evaluate(self._bound)
            except EvaluationError as exc:
                why = f'composited variable "{variable.name}" fails to evaluate: {exc}'
                self._failed[variable.name] = why
            else:
                self._bound = environment().bind({**values, "variables": variables})

    def evaluate(self, source: str) -> Any:
        """Return what an expression gives; raise PolicyError."""
        try:
            return compiled(source).evaluate(self._bound)
        except EvaluationError as exc:
            why = next(
                (self._failed[name] for name in self._failed if f"variables.{name}" in source),
                str(exc),
            )
            raise PolicyError(f"expression '{source}' resulted in error: {why}") from exc
