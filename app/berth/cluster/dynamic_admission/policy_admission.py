"""Evaluates ValidatingAdmissionPolicies (ValidatingAdmissionPolicy)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from berth.cel.failures import EvaluationError
from berth.cluster import views
from berth.cluster.dynamic_admission.conditions import are_met
from berth.cluster.dynamic_admission.latest import Latest
from berth.cluster.dynamic_admission.matching import Matcher, converted, is_exempt
from berth.cluster.dynamic_admission.policies import (
    BINDINGS,
    POLICIES,
    BindingSpec,
    MatchResources,
    Policy,
    Validation,
    read_policies,
)
from berth.cluster.dynamic_admission.review import attributes_of
from berth.cluster.errors import StatusError, forbidden
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.strategies.expressions import environment
from berth.cluster.strategies.selectors import matches
from berth.cluster.writes.admission.request import AdmissionRequest

CODES: Final[Mapping[str, int]] = {
    "Forbidden": 403,
    "Invalid": 422,
    "RequestEntityTooLarge": 413,
    "Unauthorized": 401,
}
"""By reason."""


class _NoParamsError(Exception):
    """The parameters that a binding names are not there, and that is an error."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A condition of a policy that a request does not meet."""

    message: str
    reason: str = "Invalid"


class PolicyAdmission:
    """An :class:`~berth.cluster.writes.admission.step.AsyncStep` that never waits."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._policies = Latest(store, [POLICIES, BINDINGS], read_policies)
        self._matcher = Matcher(store, registry)

    def concerns(self, request: AdmissionRequest) -> bool:
        """Tell whether a policy is about the request."""
        policies = self._policies.get()
        return bool(policies) and any(True for _ in self._concerned(policies, request))

    async def mutate(self, request: AdmissionRequest) -> None:
        """Validating policies change nothing."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse the request if a policy with the action ``Deny`` fails, and add warnings."""
        for policy, binding, spec, resource in self._concerned(self._policies.get(), request):
            failures = list(self._failures(policy, spec, resource, request))
            actions = spec.validation_actions or ()
            name = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding}'"
            if "Warn" in actions:
                request.context.warnings.extend(
                    f"Validation failed for {name}: {each.message}" for each in failures
                )
            if "Deny" in actions and failures:
                raise _denied(request, name, failures[0])

    def _concerned(
        self, policies: Sequence[Policy], request: AdmissionRequest
    ) -> Iterator[tuple[Policy, str, BindingSpec, ResourceType]]:
        if is_exempt(request):
            return
        for policy in policies:
            resource = self._matched(policy.match, request)
            if resource is None:
                continue
            for name, spec in policy.bindings:
                match = spec.match_resources
                if match is None or self._matched(match, request) is not None:
                    yield policy, name, spec, resource

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

    def _failures(
        self,
        policy: Policy,
        binding: BindingSpec,
        resource: ResourceType,
        request: AdmissionRequest,
    ) -> Iterator[_Failure]:
        try:
            all_params = self._params(policy, binding, request)
        except _NoParamsError as exc:
            if policy.fails_closed:
                yield _Failure(f"failed to configure binding: {exc}")
            return
        values: Object = {
            "object": converted(request.object, request.resource, resource),
            "oldObject": converted(request.old_object, request.resource, resource),
            "request": attributes_of(request, resource),
            "namespaceObject": self._namespace(request),
        }
        for params in all_params:
            yield from _evaluated(policy, {**values, "params": params})

    def _params(
        self, policy: Policy, binding: BindingSpec, request: AdmissionRequest
    ) -> list[Object | None]:
        """Return the parameters that a binding evaluates a policy with, one after the other."""
        kind, reference = policy.param_kind, binding.param_ref
        if kind is None or reference is None:
            return [None]
        found = self._of_kind(kind.api_version, kind.kind)
        if found is None:
            raise _NoParamsError(f"no matches for kind {kind.kind} in version {kind.api_version}")
        namespace = ""
        if found.namespaced:
            namespace = reference.namespace or request.namespace
            if not namespace:
                raise _NoParamsError(
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
            raise _NoParamsError(
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


def _evaluated(policy: Policy, values: Object) -> Iterator[_Failure]:
    """Yield what the validations of *policy* find."""
    try:
        if not are_met(policy.match_conditions, values):
            return
    except EvaluationError as exc:
        if policy.fails_closed:
            yield _Failure(f"match condition failed: {exc}")
        return
    variables, failed = _variables(policy, values)
    bound = environment().bind({**values, "variables": variables})
    for validation in policy.validations:
        source = validation.expression.source
        try:
            if not validation.expression.is_true(bound):
                yield _Failure(_message(validation, bound), validation.reason)
        except EvaluationError as exc:
            why = next((failed[name] for name in failed if f"variables.{name}" in source), str(exc))
            if policy.fails_closed:
                yield _Failure(f"expression '{source}' resulted in error: {why}")


def _variables(policy: Policy, values: Object) -> tuple[Object, dict[str, str]]:
    """Return the variables, and why those are missing that failed: nobody may need them."""
    variables: Object = {}
    failed: dict[str, str] = {}
    for name, expression in policy.variables:
        bound = environment().bind({**values, "variables": variables})
        try:
            variables[name] = expression.evaluate(bound)
        except EvaluationError as exc:
            failed[name] = f'composited variable "{name}" fails to evaluate: {exc}'
    return variables, failed


def _message(validation: Validation, bound: Any) -> str:
    if validation.message_expression is not None:
        try:
            text = validation.message_expression.evaluate(bound)
        except EvaluationError:
            text = ""
        if isinstance(text, str) and text.strip() and "\n" not in text.strip():
            return text.strip()
    return (
        validation.message.strip() or f"failed expression: {validation.expression.source.strip()}"
    )


def _denied(request: AdmissionRequest, name: str, failure: _Failure) -> StatusError:
    message = f"{name} denied request: {failure.message}"
    refused = forbidden(request.resource, request.name, message)
    details = {**(refused.details or {}), "causes": [{"message": message}]}
    code = CODES.get(failure.reason, CODES["Invalid"])
    return StatusError(code, failure.reason, refused.message, details=details)
