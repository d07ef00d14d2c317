"""``pods/eviction``: a DELETE that PodDisruptionBudgets may refuse (API-initiated eviction).

Source: ``pkg/registry/core/pod/storage/eviction.go``.
"""

import logging
from dataclasses import replace
from typing import Final

import msgspec

from berth.cluster import errors, options, views
from berth.cluster.access.users import API_SERVER
from berth.cluster.disruption_budgets import (
    SYNC_FAILED,
    disruption_allowed,
    set_disruption_allowed,
    usual_reason,
)
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.options import DeleteOptions
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin
from berth.cluster.storage.store import NotFoundError, Store
from berth.cluster.storage.stored import Stored
from berth.cluster.strategies.selectors import LabelSelector, matches
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.deletion import Deletions, check_preconditions
from berth.cluster.writes.pipeline import Writes
from berth.cluster.writes.subresources.action import Outcome
from berth.runtime.clock import Clock, rfc3339

log = logging.getLogger(__name__)

EVICTION: Final = ResourceType(
    group="policy",
    version="v1",
    kind="Eviction",
    plural="evictions",
    singular="eviction",
    namespaced=True,
    schema=builtin.schema("io.k8s.api.policy.v1.Eviction"),
    also_read=("policy/v1beta1",),
)
BUDGETS: Final = find("policy", "v1", "poddisruptionbudgets")
STATUS: Final = builtin.meta("Status")

MAX_DISRUPTED_PODS: Final = 2_000
"""Evictions that the disruption controller has yet to see before more are refused
(``MaxDisruptedPodSize``)."""

RETRY_AFTER: Final = 10
"""Seconds after which a client is to ask again about a budget that the controller has yet to see.
"""

TARGET: Final = "DisruptionTarget"
"""The condition of a pod that is about to be terminated by somebody else."""

SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


class Eviction:
    """Deletes a pod, if its budget allows that, and charges the budget.

    A pod that has finished, is being deleted or was never started (``Pending``) disrupts nobody:
    no budget is asked.
    """

    name = "eviction"
    kind = EVICTION

    def __init__(self, store: Store, deletions: Deletions, writes: Writes, *, clock: Clock) -> None:
        self._store = store
        self._deletions = deletions
        self._writes = writes
        self._clock = clock

    async def act(
        self, resource: ResourceType, namespace: str, name: str, body: Object, context: WriteContext
    ) -> Outcome:
        """Evict a pod.

        429 while its budget allows no disruption, or is not yet known to the controller; 500 when
        several budgets select it; 409 when a precondition of ``deleteOptions`` fails.
        """
        how = _delete_options(body, namespace, name, context)
        stored = self._pod(resource, namespace, name)
        pod = views.as_object(resource, stored)
        if not _can_ignore_budgets(pod):
            budget = self._budget_of(stored)
            if budget is not None and not _is_spare(pod, budget):
                await self._charge(budget, name, dry_run=how.dry_run)
                stored = self._pod(resource, namespace, name)
        self._delete(resource, stored, how)
        return Outcome(errors.success(code=201), STATUS)

    def _pod(self, resource: ResourceType, namespace: str, name: str) -> Stored:
        try:
            return self._store.get(resource.storage_key, namespace, name)
        except NotFoundError:
            raise errors.not_found(resource, name) from None

    def _budget_of(self, pod: Stored) -> Object | None:
        """Return the one budget that selects *pod*; None when there is none, 500 for several."""
        namespace, _ = pod.key
        budgets = [
            budget
            for each in self._store.list(BUDGETS.storage_key, namespace)
            if _selects(budget := views.as_object(BUDGETS, each), pod)
        ]
        if len(budgets) > 1:
            raise StatusError(500, "", SEVERAL_BUDGETS)
        return budgets[0] if budgets else None

    async def _charge(self, budget: Object, pod: str, *, dry_run: bool) -> None:
        """Take one disruption from a budget and note for whom, in one write; raise if it has none.

        The pod no longer counts as healthy from now on, though it may still be there: the
        controller waits two minutes for its end.
        """

        def charged(current: Object) -> Object:
            _check_allows(current)
            now = rfc3339(self._clock.now())
            status = {
                **current["status"],
                "disruptionsAllowed": current["status"]["disruptionsAllowed"] - 1,
                "disruptedPods": {**(current["status"].get("disruptedPods") or {}), pod: now},
            }
            if not status["disruptionsAllowed"]:
                set_disruption_allowed(status, reason=usual_reason(status), now=now)
            return {**current, "status": status}

        if dry_run:
            _check_allows(budget)
            return
        metadata = budget["metadata"]
        context = WriteContext(API_SERVER, "kube-apiserver")
        # It starts over, and may refuse then, when somebody else has written in the meantime.
        await self._writes.update(
            BUDGETS, metadata["namespace"], metadata["name"], charged, context, subresource="status"
        )

    def _delete(self, resource: ResourceType, stored: Stored, how: DeleteOptions) -> None:
        """Say why in the pod's status, and delete it."""
        check_preconditions(resource, stored, how)
        if not how.dry_run:
            pod = views.as_object(resource, stored)
            _add_condition(pod, rfc3339(self._clock.now()))
            stored = self._store.update(resource.storage_key, resource.to_storage(pod))
            how = replace(how, resource_version="")  # it was that one before the condition
        self._deletions.delete(resource, stored, how)


def _delete_options(
    body: Object, namespace: str, name: str, context: WriteContext
) -> DeleteOptions:
    """Read how to delete the pod; 400 when *body* means another one."""
    metadata, given = body["metadata"], body.get("deleteOptions") or {}
    if metadata.get("name") != name:
        raise errors.bad_request("name in URL does not match name in Eviction object")
    if (metadata.get("namespace") or namespace) != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    how = options.delete_options({}, given)
    if context.dry_run and how.dry_run and len(given["dryRun"]) > 1:
        raise StatusError(
            500,
            "",
            "Non-matching dry-run options in request and content: "
            f"[All] and [{' '.join(given['dryRun'])}]",
        )
    return replace(how, dry_run=how.dry_run or context.dry_run)


def _can_ignore_budgets(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _selects(budget: Object, pod: Stored) -> bool:
    """Whether a budget is about the pod: an empty selector is, a missing one is not."""
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    try:
        return matches(msgspec.convert(selector, LabelSelector), pod.labels)
    except msgspec.ValidationError as exc:  # as the API server: it selects nothing
        extra = {"budget": budget["metadata"]["name"], "error": str(exc)}
        log.warning("selector of a budget cannot be read", extra=extra)
        return False


def _is_spare(pod: Object, budget: Object) -> bool:
    """Whether a pod is not ready, and its end takes nothing from what the budget protects.

    With ``IfHealthyBudget``, the default, that is so while enough others are healthy.
    """
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    ):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy") or 0
    return 0 < desired <= (status.get("currentHealthy") or 0)


def _check_allows(budget: Object) -> None:
    """Raise unless the budget allows one more disruption."""
    metadata, status = budget["metadata"], budget.get("status") or {}
    if (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0):
        why = f"The disruption budget {metadata['name']} is still being processed by the server."
        raise _too_many_requests(why, retry_after=RETRY_AFTER)
    allowed = status.get("disruptionsAllowed") or 0
    if allowed < 0:
        raise _forbidden(metadata["name"], "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED_PODS:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(metadata["name"], why)
    if not allowed:
        raise _too_many_requests(_why_none(metadata["name"], status))


def _why_none(name: str, status: Object) -> str:
    """Return why a budget allows nothing. Its numbers are of no use when they could not be told."""
    condition = disruption_allowed(status) or {}
    message = condition.get("message") if condition.get("status") == "False" else ""
    nothing = f"The disruption budget {name} does not allow evicting pods currently"
    if message and condition["reason"] == SYNC_FAILED:
        return f"{nothing} because it failed sync: {message}"
    desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return f"{nothing} ({condition['reason']}): {message}" if message else nothing


def _too_many_requests(why: str, *, retry_after: int = 0) -> StatusError:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return StatusError(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details=details,
        headers={"Retry-After": str(retry_after)} if retry_after else None,
    )


def _forbidden(name: str, why: str) -> StatusError:
    """A 403 which, unlike others, names the resource in the singular."""
    return StatusError(
        403,
        "Forbidden",
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudget"},
    )


def _add_condition(pod: Object, now: str) -> None:
    """Say in a pod's status that it is evicted; the time is kept if that was said before."""
    status = pod.setdefault("status", {})
    conditions = status.get("conditions") or []
    before = next((each for each in conditions if each["type"] == TARGET), None)
    since = before["lastTransitionTime"] if before and before["status"] == "True" else now
    condition = {
        "type": TARGET,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    if status.get("observedGeneration"):  # by a kubelet that tracks it
        condition["observedGeneration"] = pod["metadata"]["generation"]
    if before is None:
        status["conditions"] = [*conditions, condition]
    else:
        status["conditions"] = [condition if each is before else each for each in conditions]
