"""Expectations of a scenario, as types."""

from typing import Annotated, Any, Final, Self

from pydantic import Field, model_validator

from berth.runtime.duration import Duration
from berth.scheduler.config.types import ConfigModel
from berth.tools.up.scenario.one_of import exactly_one
from berth.tools.up.scenario.references import KindName, LabelSelector, Path

DEFAULT_WITHIN: Final = Duration.of(30)

Number = Annotated[int, Field(ge=0)]
Texts = Annotated[tuple[str, ...], Field(min_length=1)]


class Count(ConfigModel):
    """How many: a range."""

    at_least: Number | None = None
    """Not fewer."""
    at_most: Number | None = None
    """Not more."""

    def takes(self, number: int) -> bool:
        """Whether *number* is in the range."""
        return (self.at_least is None or number >= self.at_least) and (
            self.at_most is None or number <= self.at_most
        )

    def __str__(self) -> str:
        least = [] if self.at_least is None else [f"at least {self.at_least}"]
        most = [] if self.at_most is None else [f"at most {self.at_most}"]
        return " and ".join(least + most)


class Spread(ConfigModel):
    """How evenly pods are spread over the domains of a node label."""

    topology_key: str
    """The label; nodes without it do not count."""
    max_skew: Number | None = None
    """By how many the fullest domain may be above the emptiest."""
    domains: int | Count | None = None
    """In how many domains there are any."""


class Pods(ConfigModel):
    """How many pods there are of which all that is said here is true."""

    namespace: str = "default"
    """Their namespace; empty: any."""
    name: str = ""
    """Their name, where `*` is any text."""
    selector: LabelSelector = ""
    """Their labels."""
    phase: str = ""
    """Their phase, such as `Running`."""
    terminating: bool = False
    """Whether they are being deleted."""
    ready: bool | None = None
    """Whether they are ready."""
    scheduled: bool | None = None
    """Whether they have a node."""
    node: str = ""
    """The name of their node, where `*` is any text."""
    node_selector: LabelSelector = ""
    """The labels of their node."""
    nominated_node: str = ""
    """The name of the node that preemption makes room on for them, where `*` is any text."""
    reason: str = ""
    """The reason in their status, such as `Evicted`, or of the condition `PodScheduled`, such as
    `Unschedulable` or `SchedulingGated`."""
    message: str = ""
    """Part of the message in their status, or of the condition `PodScheduled`."""
    restarts: Number | None = None
    """The least number of restarts of a container."""
    count: int | Count | None = None
    """How many there are; at least one if nothing else is said."""
    nodes: int | Count | None = None
    """On how many nodes they are."""
    per_node: int | Count | None = None
    """How many are on each node that has any."""
    spread: Spread | None = None
    """How evenly they are spread."""


class Objects(ConfigModel):
    """How many objects there are of a kind of which all that is said here is true."""

    kind: KindName
    """A built-in kind."""
    namespace: str = "default"
    """Of kinds in namespaces; empty: any."""
    name: str = ""
    """Their name, where `*` is any text."""
    selector: LabelSelector = ""
    """Their labels."""
    path: Path = ""
    """Where to look in them; all that follow are about what is there. Of several places, one is
    enough."""
    equals: Any = None
    """It is this. Numbers and quantities are compared as such."""
    contains: str = ""
    """It is a text that has this part."""
    at_least: float | str | None = None
    """It is a number or quantity, and not smaller."""
    at_most: float | str | None = None
    """It is a number or quantity, and not larger."""
    count: int | Count | None = None
    """How many there are; at least one if nothing is said."""

    @model_validator(mode="after")
    def _compares_somewhere(self) -> Self:
        compared = {"equals", "contains", "at_least", "at_most"} & self.model_fields_set
        if compared and not self.path:
            raise ValueError("path is needed for equals, contains, atLeast and atMost")
        return self


class Event(ConfigModel):
    """How often it was reported that something happened."""

    reason: str
    """The reason of the event, such as `FailedScheduling`."""
    kind: str = ""
    """The kind of what it is about."""
    name: str = ""
    """The name of what it is about, where `*` is any text."""
    namespace: str = ""
    """The namespace of what it is about; empty: any."""
    message: str = ""
    """Part of its message."""
    count: int | Count | None = None
    """How many events; repetitions of one count as one. At least one if nothing is said."""


class Explain(ConfigModel):
    """What `berth explain` says of a pod."""

    namespace: str = "default"
    """Its namespace."""
    pod: str
    """Its name."""
    contains: Texts
    """Parts of what is said."""


class Statement(ConfigModel):
    """What may be so or not: exactly one field."""

    pods: Pods | None = None
    """About pods."""
    objects: Objects | None = None
    """About objects of any built-in kind."""
    event: Event | None = None
    """About events."""
    explain: Explain | None = None
    """About what the scheduler says."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        exactly_one(self, Statement.model_fields)
        return self


class Expectation(Statement):
    """A statement, or several, and when it must be true."""

    pods: Pods | None = None
    objects: Objects | None = None
    event: Event | None = None
    explain: Explain | None = None
    order: Annotated[tuple[Statement, ...], Field(min_length=2)] | None = None
    """These come true one after the other, counted from when the step begins, all of them in the
    time of `within`."""
    within: Duration = DEFAULT_WITHIN
    """It is true now, or becomes so in this time."""
    always: Duration | None = None
    """It is true now, and stays so for this time."""
    never: Duration | None = None
    """It is not true now, and does not become so in this time."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        exactly_one(self, (*Statement.model_fields, "order"))
        exactly_one(self, ("within", "always", "never"), or_none=True)
        if self.order is not None and (self.always is not None or self.never is not None):
            raise ValueError("order cannot be combined with always and never")
        return self
