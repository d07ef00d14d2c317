"""Asks webhooks about requests (MutatingAdmissionWebhook, ValidatingAdmissionWebhook)."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from berth.cluster import errors
from berth.cluster.access.rbac import Authorizer
from berth.cluster.dynamic_admission.authorizing import authorizer_of, decides
from berth.cluster.dynamic_admission.changed import completed
from berth.cluster.dynamic_admission.client import CallError, WebhookClient
from berth.cluster.dynamic_admission.conditions import are_met
from berth.cluster.dynamic_admission.latest import Latest
from berth.cluster.dynamic_admission.matching import Matcher, converted, is_exempt
from berth.cluster.dynamic_admission.review import (
    Response,
    ReviewError,
    attributes_of,
    read_response,
    review_of,
    version_for,
)
from berth.cluster.dynamic_admission.webhooks import MUTATING, VALIDATING, Webhook, read_webhooks
from berth.cluster.errors import StatusError
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object, ResourceType
from berth.cluster.storage.store import Store
from berth.cluster.writes.admission.request import AdmissionRequest
from berth.cluster.writes.identities import Identities
from berth.cluster.writes.patch import (
    PatchError,
    PatchMismatchError,
    PatchTooLargeError,
    json_patch,
)
from berth.kube.cel.authorization import answering
from berth.kube.cel.failures import EvaluationError

log = logging.getLogger(__name__)

WITHOUT_SIDE_EFFECTS: Final = frozenset({"None", "NoneOnDryRun"})
BAD_REQUEST: Final = 400

Concerned = tuple[Webhook, ResourceType]
"""A webhook, and as which resource it sees the request."""


class WebhookAdmission:
    """An :class:`~berth.cluster.writes.admission.step.AsyncStep`: the webhooks in *store*."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        client: WebhookClient,
        authorizer: Authorizer,
        *,
        identities: Identities,
    ) -> None:
        """*authorizer* answers what match conditions ask of ``authorizer``."""
        self._mutating = Latest(store, [MUTATING], read_webhooks)
        self._validating = Latest(store, [VALIDATING], read_webhooks)
        self._matcher = Matcher(store, registry)
        self._client = client
        self._authorizer = authorizer
        self._identities = identities

    def concerns(self, request: AdmissionRequest) -> bool:
        """Tell whether any webhook wants to see the request."""
        if not self._mutating.get() and not self._validating.get():
            return False
        return any(
            True
            for hooks in (self._mutating, self._validating)
            for _ in self._concerned(hooks, request)
        )

    async def mutate(self, request: AdmissionRequest) -> None:
        """Let the mutating webhooks change the object, one after the other.

        Those that ask for it are called once more if a later one has changed the object.
        """
        last_change = -1
        called: list[tuple[int, Concerned]] = []
        for number, concerned in enumerate(self._concerned(self._mutating, request)):
            called.append((number, concerned))
            if await self._mutated(request, *concerned):
                last_change = number
        for number, (hook, resource) in called:
            if hook.reinvocation_policy == "IfNeeded" and number < last_change:
                await self._mutated(request, hook, resource)

    async def validate(self, request: AdmissionRequest) -> None:
        """Let the validating webhooks refuse the request; they are asked at the same time."""
        calls = [
            self._reviewed(request, hook, resource, may_patch=False)
            for hook, resource in self._concerned(self._validating, request)
        ]
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _concerned(
        self, hooks: Latest[list[Webhook]], request: AdmissionRequest
    ) -> Iterator[Concerned]:
        if is_exempt(request):
            return
        for hook in hooks.get():
            resource = self._matcher.resource_of(hook.rules or (), hook.match_policy, request)
            if resource is not None and self._matcher.selects(
                hook.namespace_selector, hook.object_selector, request
            ):
                yield hook, resource

    async def _mutated(
        self, request: AdmissionRequest, hook: Webhook, resource: ResourceType
    ) -> bool:
        """Ask one mutating webhook; tell whether it changed the object."""
        response = await self._reviewed(request, hook, resource, may_patch=True)
        if response is None or not response.patch or request.object is None:
            return False
        shown = converted(request.object, request.resource, resource)
        try:
            patched = json_patch(shown, response.patch)
        except (PatchError, PatchMismatchError, PatchTooLargeError) as exc:
            raise errors.internal(str(exc)) from exc
        new = completed(patched, resource, request.resource)
        if new == request.object:
            return False
        request.object = new
        return True

    async def _reviewed(
        self, request: AdmissionRequest, hook: Webhook, resource: ResourceType, *, may_patch: bool
    ) -> Response | None:
        """Ask a webhook; return its answer, or None if it need not be asked, or failed in vain."""
        if hook.match_conditions and not self._meets_conditions(request, hook, resource):
            return None
        if request.context.dry_run and hook.side_effects not in WITHOUT_SIDE_EFFECTS:
            raise errors.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        version = version_for(hook.admission_review_versions or ())
        review = review_of(request, resource, self._identities.uid(), version)
        try:
            content = await self._client.post(hook, review)
            response = read_response(content, review, may_patch=may_patch)
        except (CallError, ReviewError) as exc:
            why = f'failed calling webhook "{hook.name}": {exc}'
            if hook.fails_closed:
                raise errors.internal(why) from exc
            log.warning("webhook failed and is ignored", extra={"error": why})
            return None
        request.context.warnings.extend(response.warnings)
        if not response.allowed:
            raise _denied(hook.name, response.status)
        return response

    def _meets_conditions(
        self, request: AdmissionRequest, hook: Webhook, resource: ResourceType
    ) -> bool:
        """Tell whether *hook* is to be asked; what fails counts by its failure policy."""
        values = {
            "object": converted(request.object, request.resource, resource),
            "oldObject": converted(request.old_object, request.resource, resource),
            "request": attributes_of(request, resource),
            "authorizer": authorizer_of(request),
        }
        try:
            with answering(decides(self._authorizer, request.context.user)):
                return are_met(hook.match_conditions or (), values)
        except EvaluationError as exc:
            if hook.fails_closed:
                raise errors.forbidden(request.resource, request.name, str(exc)) from exc
            return False


def _denied(name: str, status: Object) -> StatusError:
    """Return a refusal in the words of the webhook."""
    code, reason, message = status.get("code"), status.get("reason"), status.get("message")
    why = f'admission webhook "{name}" denied the request'
    said = message or reason
    why = f"{why}: {said}" if said else f"{why} without explanation"
    details = status.get("details")
    return StatusError(
        code if isinstance(code, int) and BAD_REQUEST <= code <= 599 else BAD_REQUEST,
        reason if isinstance(reason, str) else "",
        why,
        details=details if isinstance(details, dict) else None,
    )
