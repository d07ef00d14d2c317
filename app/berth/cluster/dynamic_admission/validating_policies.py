"""Refuses what ValidatingAdmissionPolicies forbid (ValidatingAdmissionPolicy).

Source: ``k8s.io/apiserver/pkg/admission/plugin/policy/validating``.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from berth.cluster.access.rbac import Authorizer
from berth.cluster.dynamic_admission.policies import VALIDATING, PolicySpec, Validation
from berth.cluster.dynamic_admission.policy_evaluation import (
    Bound,
    Evaluation,
    Policies,
    PolicyError,
    is_met,
)
from berth.cluster.errors import StatusError, forbidden
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.request import AdmissionRequest

CODES: Final[Mapping[str, int]] = {
    "Forbidden": 403,
    "Invalid": 422,
    "RequestEntityTooLarge": 413,
    "Unauthorized": 401,
}
"""By reason."""
DEFAULT_REASON: Final = "Invalid"


class _Failure(NamedTuple):
    """A condition of a policy that a request does not meet."""

    message: str
    reason: str = DEFAULT_REASON


class ValidatingPolicies:
    """An :class:`~berth.cluster.writes.admission.step.AsyncStep` that never waits."""

    def __init__(self, store: Store, registry: Registry, authorizer: Authorizer) -> None:
        """*authorizer* answers what expressions ask of ``authorizer``."""
        self._policies = Policies(store, registry, authorizer, VALIDATING)

    def concerns(self, request: AdmissionRequest) -> bool:
        """Tell whether a policy is about the request."""
        return next(self._policies.about(request), None) is not None

    async def mutate(self, request: AdmissionRequest) -> None:
        """Validating policies change nothing."""

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse the request if a policy with the action ``Deny`` fails, and add warnings."""
        for bound in self._policies.about(request):
            failures = list(self._failures(bound, request))
            actions = bound.spec.validation_actions or ()
            policy = f"ValidatingAdmissionPolicy '{bound.policy.name}'"
            name = f"{policy} with binding '{bound.binding}'"
            if "Warn" in actions:
                request.context.warnings.extend(
                    f"Validation failed for {name}: {failure.message}" for failure in failures
                )
            if "Deny" in actions and failures:
                raise _denied(request, name, failures[0])

    def _failures(self, bound: Bound, request: AdmissionRequest) -> Iterator[_Failure]:
        policy = bound.policy.spec
        try:
            for values in self._policies.values(bound, request):
                with self._policies.answering(request):
                    found = list(_evaluated(policy, values))
                yield from found
        except PolicyError as exc:
            if policy.fails_closed:
                yield _Failure(str(exc))


def _evaluated(policy: PolicySpec, values: Object) -> Iterator[_Failure]:
    """Yield what the validations of *policy* find."""
    if not is_met(policy, values):
        return
    evaluation = Evaluation(policy, values)
    for validation in policy.validations or ():
        try:
            answer = evaluation.evaluate(validation.expression)
        except PolicyError as exc:
            if policy.fails_closed:
                yield _Failure(str(exc))
            continue
        if answer is not True:
            reason = validation.reason or DEFAULT_REASON
            yield _Failure(_message(validation, evaluation), reason)


def _message(validation: Validation, evaluation: Evaluation) -> str:
    if validation.message_expression:
        try:
            text = evaluation.evaluate(validation.message_expression)
        except PolicyError:
            text = ""
        if isinstance(text, str) and text.strip() and "\n" not in text.strip():
            return text.strip()
    said = (validation.message or "").strip()
    return said or f"failed expression: {validation.expression.strip()}"


def _denied(request: AdmissionRequest, name: str, failure: _Failure) -> StatusError:
    message = f"{name} denied request: {failure.message}"
    refused = forbidden(request.resource, request.name, message)
    details = {**(refused.details or {}), "causes": [{"message": message}]}
    code = CODES.get(failure.reason, CODES["Invalid"])
    return StatusError(code, failure.reason, refused.message, details=details)
