"""Changes objects as MutatingAdmissionPolicies say (MutatingAdmissionPolicy).

Source: ``k8s.io/apiserver/pkg/admission/plugin/policy/mutating``. Expressions give plain JSON here,
whose types are seen when it is merged.
"""

from typing import Any

from berth.cluster.access.rbac import Authorizer
from berth.cluster.dynamic_admission.changed import completed
from berth.cluster.dynamic_admission.matching import converted
from berth.cluster.dynamic_admission.policies import MUTATING, Mutation
from berth.cluster.dynamic_admission.policy_evaluation import (
    Bound,
    Evaluation,
    Policies,
    PolicyError,
    is_met,
)
from berth.cluster.errors import forbidden
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.request import AdmissionRequest
from berth.cluster.writes.managed_fields.checks import problems
from berth.cluster.writes.managed_fields.compile import node_of
from berth.cluster.writes.patch import (
    PatchError,
    PatchMismatchError,
    PatchTooLargeError,
    json_patch,
)
from berth.kube.cel.literals import as_maps


class MutatingPolicies:
    """An :class:`~berth.cluster.writes.admission.step.AsyncStep` that never waits."""

    def __init__(self, store: Store, registry: Registry, authorizer: Authorizer) -> None:
        """*authorizer* answers what expressions ask of ``authorizer``."""
        self._policies = Policies(store, registry, authorizer, MUTATING)

    def concerns(self, request: AdmissionRequest) -> bool:
        """Tell whether a policy is about the request."""
        return next(self._policies.about(request), None) is not None

    async def mutate(self, request: AdmissionRequest) -> None:
        """Let the policies change the object, one after the other.

        Those that ask for it come once more if a later one has changed the object.
        """
        called: list[tuple[int, Bound]] = []
        last_change = -1
        for number, bound in enumerate(self._policies.about(request)):
            called.append((number, bound))
            if self._mutated(bound, request):
                last_change = number
        for number, bound in called:
            if bound.policy.spec.reinvocation_policy == "IfNeeded" and number < last_change:
                self._mutated(bound, request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Mutating policies refuse nothing."""

    def _mutated(self, bound: Bound, request: AdmissionRequest) -> bool:
        """Let one policy change the object; tell whether it did."""
        with self._policies.answering(request):
            return self._changed_by(bound, request)

    def _changed_by(self, bound: Bound, request: AdmissionRequest) -> bool:
        before = request.object
        policy = bound.policy.spec
        try:
            for values in self._policies.values(bound, request):
                if not is_met(policy, values):
                    continue
                for mutation in policy.mutations or ():
                    shown = converted(request.object, request.resource, bound.resource)
                    changed = _changed(
                        mutation,
                        Evaluation(policy, {**values, "object": shown}),
                        shown,
                        bound.resource,
                    )
                    new = completed(changed, bound.resource, request.resource)
                    if new != request.object:
                        request.object = new
        except PolicyError as exc:
            if policy.fails_closed:
                name = f"MutatingAdmissionPolicy '{bound.policy.name}'"
                why = f"{name} with binding '{bound.binding}' denied request: {exc}"
                raise forbidden(request.resource, request.name, why) from exc
        return request.object is not before


def _changed(
    mutation: Mutation, evaluation: Evaluation, obj: Object | None, resource: ResourceType
) -> Any:
    """Return what a mutation makes of an object; raise PolicyError."""
    if mutation.patch_type == "JSONPatch" and mutation.json_patch is not None:
        operations = evaluation.evaluate(as_maps(mutation.json_patch.expression))
        try:
            changed = json_patch(obj, operations)
        except (PatchError, PatchMismatchError, PatchTooLargeError) as exc:
            raise PolicyError(f"JSON Patch: {exc}") from exc
    else:
        source = (
            ""
            if mutation.apply_configuration is None
            else (mutation.apply_configuration.expression)
        )
        changed = _applied(evaluation.evaluate(as_maps(source)), obj, resource)
    return changed


def _applied(configuration: Any, obj: Object | None, resource: ResourceType) -> Any:
    """Merge *configuration* into an object, as server-side apply does."""
    node = node_of(resource)
    if not isinstance(configuration, dict):
        raise PolicyError("the apply configuration is no object")
    if found := problems(node, configuration):
        raise PolicyError(found)
    return node.merge(obj, configuration)
