"""The lines of a recording: a header, then steps in the order in which they were made.

Each line is a JSON object whose field ``op`` says what it is. ``t`` is the time of the step in
seconds since 1970. Fields that have their usual value are left out. What ``line`` and ``chain`` are
for is told in :mod:`berth.insight.recording.chain`.
"""

from typing import Any, Final

import msgspec

from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.outcome import Outcome, Placed, Unschedulable

API_VERSION: Final = "berth/v2"
UNCHECKED_VERSION: Final = "berth/v1"
"""Of older recordings, which are read, too. Their lines are not tied together."""
KIND: Final = "Recording"


class Line(
    msgspec.Struct, frozen=True, gc=False, tag_field="op", omit_defaults=True, rename="camel"
):
    """A step, or something to know before the first one."""


class Header(Line, frozen=True, gc=False, tag="header"):
    """Who decides, and by what. Each file of a recording begins with it."""

    api_version: str
    kind: str
    version: str
    """Of berth."""
    config: dict[str, Any]
    """A KubeSchedulerConfiguration, without secrets."""
    t: float = 0.0
    seed: int = 0
    """Chance begins anew at each attempt, with this plus the number of the attempt."""
    max_in_unschedulable: float = 300.0
    plugins: tuple[str, ...] = ()
    """The plugins that are not in-tree: names, and where they came from."""
    segment: int = 0
    """Counts the files of the recording."""
    previous: str = ""
    """In a file that continues another one: the digest of the last line of that one."""


class Added(Line, frozen=True, gc=False, tag="add"):
    """A watch told of an object."""

    t: float
    kind: str
    """Resource and group, such as ``pods`` and ``storageclasses.storage.k8s.io``."""
    object: msgspec.Raw


class Updated(Line, frozen=True, gc=False, tag="update"):
    """A watch told of a change; the object before is known by its name."""

    t: float
    kind: str
    object: msgspec.Raw


class Deleted(Line, frozen=True, gc=False, tag="delete"):
    """A watch told that an object is gone; this was its last state."""

    t: float
    kind: str
    object: msgspec.Raw


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """What an attempt came to for one pod."""

    pod: str
    """``namespace/name``."""
    uid: str
    result: str
    attempt: int = 1
    node: str = ""
    refused: str = ""
    """The node that was chosen before Reserve or Permit refused it."""
    message: str = ""
    plugins: tuple[str, ...] = ()
    """Who rejected the pod."""
    pending: tuple[str, ...] = ()
    """Those of them that wait for something outside the cluster."""
    nominated: str | None = None
    """The node that the pod is nominated to; empty: its nomination ends, none: it stays."""
    victims: tuple[str, ...] = ()
    num_nodes: int = 0
    num_feasible: int = 0
    equals: int = 0
    """How many other nodes had the same total as the chosen one."""
    score: int | None = None
    """The total of the chosen node; none: it was the only one."""
    gang: str = ""
    answered_by: str = ""
    """The pod whose failure stood for an attempt of this one."""

    @classmethod
    def of(cls, record: DecisionRecord, outcome: Outcome | None) -> "Decision":
        """Read the decision off *record* and the *outcome* that it was made from, if any."""
        if isinstance(outcome, Placed):  # the common case, and the cheap one
            return cls(
                pod=record.pod,
                uid=record.uid,
                result=record.result.value,
                attempt=record.attempt,
                node=record.node,
                num_nodes=record.num_nodes,
                num_feasible=record.num_feasible,
                equals=record.equals,
                score=_score(outcome),
                gang=record.gang,
            )
        refused = outcome.refused if outcome is not None else None
        pending: tuple[str, ...] = ()
        nominated = "" if outcome is None else None
        if outcome is not None:
            pending = tuple(sorted(outcome.diagnosis.pending_plugins))
            nominated = outcome.nomination.override
        return cls(
            pod=record.pod,
            uid=record.uid,
            result=record.result.value,
            attempt=record.attempt,
            refused=refused.node_name if refused is not None else "",
            message=record.message,
            plugins=record.plugins,
            pending=pending,
            nominated=nominated,
            victims=victims_of(outcome),
            num_nodes=record.num_nodes,
            num_feasible=record.num_feasible,
            equals=record.equals,
            score=_score(refused) if refused is not None else None,
            gang=record.gang,
            answered_by=record.answered_by,
        )


def _score(placed: Placed) -> int | None:
    """Return the highest total; None where nothing was scored."""
    if placed.scores is None:
        return None
    total = placed.scores.total
    return int(total[total.argmax()])


def victims_of(outcome: Outcome | None) -> tuple[str, ...]:
    """Return the pods, by ``namespace/name``, that are to be evicted, the most important first."""
    result = outcome.post_filter if isinstance(outcome, Unschedulable) else None
    if result is None or result.status is not None or result.preemption is None:
        return ()
    chosen = result.preemption.chosen
    return () if chosen is None else tuple(victim.key for victim in chosen.victims)


class Attempt(Line, frozen=True, gc=False, tag="attempt"):
    """A pod was taken from the queue and tried, and others with it if it is of a group."""

    t: float
    number: int
    pod: str
    uid: str
    start: int = 0
    """Where the rotation over the nodes stood (spec §2.5)."""
    decisions: tuple[Decision, ...] = ()
    """None: the pod was not tried after all, since it is leaving or has a node already."""


class Bound(Line, frozen=True, gc=False, tag="bound"):
    """The binding of a pod has succeeded, or failed with a status."""

    t: float
    uid: str
    code: int = 0
    reasons: tuple[str, ...] = ()
    plugin: str = ""


class Preempt(Line, frozen=True, gc=False, tag="preempt"):
    """The eviction of victims has begun, for a pod or a group."""

    t: float
    uid: str


class Evicted(Line, frozen=True, gc=False, tag="evicted"):
    """All requests to evict victims of a pod or group were answered."""

    t: float
    uid: str


class Job(Line, frozen=True, gc=False, tag="job"):
    """Work that a plugin had started has begun."""

    t: float
    name: str


class Answer(Line, frozen=True, gc=False, tag="answer"):
    """The API server, or an extender, has answered a request that waited for it."""

    t: float
    call: str
    key: str
    """What the call is about: a UID, a name, or the number of the attempt."""
    nth: int = 1
    """Counts the calls of this kind about it; a later one may be answered first."""
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    """The class of the error; empty: there was none."""
    status: int = 0
    message: str = ""


class Woke(Line, frozen=True, gc=False, tag="woke"):
    """A pause has ended; they are counted from 1 as they begin."""

    t: float
    sleep: int


class Flush(Line, frozen=True, gc=False, tag="flush"):
    """The queue has looked for pods whose backoff is over, or that waited too long."""

    t: float
    leftovers: bool = False


class Configured(Line, frozen=True, gc=False, tag="config"):
    """Another configuration is in force."""

    t: float
    config: dict[str, Any]


class End(Line, frozen=True, gc=False, tag="end"):
    """The process has stopped, and nothing is missing."""


Step = (
    Header
    | Added
    | Updated
    | Deleted
    | Attempt
    | Bound
    | Preempt
    | Evicted
    | Job
    | Answer
    | Woke
    | Flush
    | Configured
)
"""What is read of a file."""

encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Step | End).decode


def next_header(header: bytes, previous: str) -> bytes:
    """Return the first line of the file that continues one whose first line is *header*.

    *previous* is the digest of its last one.
    """
    first = decode(header)
    assert isinstance(first, Header)
    return encode(msgspec.structs.replace(first, segment=first.segment + 1, previous=previous))
