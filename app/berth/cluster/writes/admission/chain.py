"""Admission: the steps, one after the other."""

from collections.abc import Callable, Sequence
from typing import Final

from berth.cluster.resources import ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import AsyncStep, Step

Call = Callable[[AdmissionRequest], None]

MOST_KNOWN: Final = 10_000
"""Kinds of requests of which it is remembered who handles them."""


class Admission:
    """Asks the steps that handle a request, in their order.

    The phases are those of a real server: ``admit`` of all steps, ``mutate`` of the async ones;
    then, when the strategy has found the object valid, ``validate`` of the steps, of the async
    ones, and of the *last* steps, which see what will be stored.
    """

    def __init__(
        self,
        steps: Sequence[Step] = (),
        *,
        async_steps: Sequence[AsyncStep] = (),
        last: Sequence[Step] = (),
    ) -> None:
        self._steps = tuple(steps)
        self._async_steps = tuple(async_steps)
        self._last = tuple(last)
        self._known: dict[tuple[Operation, str, str, str, bool, str], _Calls] = {}

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        """Tell whether any step may want to see such a request."""
        calls = self._calls(operation, resource, subresource)
        return bool(self._async_steps or calls.admit or calls.validate or calls.last)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Let the steps change the object. Suspends only if an async step is concerned.

        What an async step has replaced is shown to the others again: it may lack what they fill in.
        """
        calls = self._calls(request.operation, request.resource, request.subresource)
        for admit in calls.admit:
            admit(request)
        for step in self._async_steps:
            if not step.concerns(request):
                continue
            request.awaits = True
            before = request.object
            await step.mutate(request)
            if request.object is not before:
                for admit in calls.admit:
                    admit(request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Let the steps refuse the request. Suspends only if an async step is concerned."""
        calls = self._calls(request.operation, request.resource, request.subresource)
        for validate in calls.validate:
            validate(request)
        if request.awaits:
            for step in self._async_steps:
                if step.concerns(request):
                    await step.validate(request)
        for validate in calls.last:
            validate(request)

    def _calls(self, operation: Operation, resource: ResourceType, subresource: str) -> "_Calls":
        # A custom resource may come back with another scope, on which it depends who handles it.
        kind = resource.group, resource.version, resource.plural, resource.namespaced
        key = (operation, *kind, subresource)
        calls = self._known.get(key)
        if calls is None:
            if len(self._known) >= MOST_KNOWN:  # of custom resources that are gone, too
                self._known.clear()
            calls = self._known[key] = _Calls(
                *(
                    [step for step in steps if step.handles(operation, resource, subresource)]
                    for steps in (self._steps, self._last)
                )
            )
        return calls


class _Calls:
    """What to call for one kind of request."""

    __slots__ = ("admit", "last", "validate")

    def __init__(self, steps: Sequence[Step], last: Sequence[Step]) -> None:
        self.admit: tuple[Call, ...] = tuple(
            step.admit for step in steps if type(step).admit is not Step.admit
        )
        self.validate: tuple[Call, ...] = tuple(
            step.validate for step in steps if type(step).validate is not Step.validate
        )
        self.last: tuple[Call, ...] = tuple(each.validate for each in last)
