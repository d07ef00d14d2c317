"""The shape of an admission step."""

from typing import Protocol

from berth.cluster.resources import ResourceType
from berth.cluster.writes.admission.request import AdmissionRequest, Operation


class Step:
    """Evaluates writes: overrides :meth:`admit`, :meth:`validate`, or both.

    Synchronous: what a step sees in the store is still there when the object is stored, unless an
    :class:`AsyncStep` comes in between. A refusal is a
    :class:`~berth.cluster.errors.StatusError`.
    """

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        """Tell whether the step wants to see such requests: all, unless it says otherwise.

        Asked once for each such triple.
        """
        return True

    def admit(self, request: AdmissionRequest) -> None:
        """Change ``request.object``, or refuse the request. Before the strategy's validation."""

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse the request, or let it pass. After the strategy's validation."""


class AsyncStep(Protocol):
    """A step that must wait for others: a webhook.

    A write that one of them concerns is stored only if the object is still what it was when it was
    read; else it starts over.
    """

    def concerns(self, request: AdmissionRequest) -> bool:
        """Tell whether the step wants to see the request, to change or to validate it.

        Cheap: asked of every write. Where no step says so, none is asked again.
        """
        ...

    async def mutate(self, request: AdmissionRequest) -> None:
        """Replace ``request.object``, or refuse the request, after all steps' ``admit``."""
        ...

    async def validate(self, request: AdmissionRequest) -> None:
        """Refuse the request, or let it pass, after all steps' ``validate`` but the last ones'."""
        ...
