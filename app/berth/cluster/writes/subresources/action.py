"""A subresource that is only posted to: a body of a kind of its own makes something happen."""

from typing import NamedTuple, Protocol

from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.types import Schema
from berth.cluster.writes.context import WriteContext


class Outcome(NamedTuple):
    """What is answered, and what describes it."""

    obj: Object
    schema: Schema


class Action(Protocol):
    """What a POST below an object does, once admission let it pass."""

    @property
    def name(self) -> str:
        """What it is called in the URL."""
        ...

    @property
    def kind(self) -> ResourceType:
        """The kind of the body."""
        ...

    async def act(
        self, resource: ResourceType, namespace: str, name: str, body: Object, context: WriteContext
    ) -> Outcome:
        """Do it to the object of that name, which may not be there: a 404.

        It suspends between reading and writing an object only if it starts over on a conflict.
        """
        ...
