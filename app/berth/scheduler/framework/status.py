"""The status of a plugin's refusal. ``None`` in place of a Status means Success."""

from enum import IntEnum

import msgspec


class Code(IntEnum):
    """Outcome of a plugin call; names and order are kube-scheduler's (spec, Conventions)."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The name on the wire and in metrics: ``UnschedulableAndUnresolvable``."""
        return _LABELS[self]

    @property
    def is_rejected(self) -> bool:
        """Whether the pod was refused, as opposed to an error or no answer."""
        return self in _REJECTED


_LABELS = {code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code}
_REJECTED = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING},
)


class Status(msgspec.Struct, frozen=True):
    """A code, the reasons for people, and the plugin that said it (filled in by the runtime)."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @classmethod
    def unschedulable(cls, *reasons: str) -> "Status":
        """The pod does not fit as things are; evicting pods may help."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> "Status":
        """The pod does not fit, and no eviction can change that."""
        return cls(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)

    @classmethod
    def error(cls, *reasons: str) -> "Status":
        """The plugin could not tell; the pod is retried with error backoff."""
        return cls(Code.ERROR, reasons)

    @property
    def is_rejected(self) -> bool:
        """Whether the pod was refused; see :attr:`Code.is_rejected`."""
        return self.code.is_rejected

    @property
    def message(self) -> str:
        """The reasons joined by a comma, as kube-scheduler's ``Status.Message`` (spec §2.8)."""
        return ", ".join(self.reasons)

    def of(self, plugin: str) -> "Status":
        """Return the same status with *plugin* as its author, unless it already has one."""
        return self if self.plugin else Status(self.code, self.reasons, plugin)


class GatedUntilTold(Status, frozen=True):
    """A refusal of PreEnqueue that stands until the plugin calls ``Handle.gate_may_open``.

    With any other refusal, the plugin is asked again about the pod at every event that may help it.
    """


SKIP = Status(Code.SKIP)
"""What PreFilter and PreScore return when the plugin has nothing to say about this pod."""
WAIT = Status(Code.WAIT)
"""What Permit returns when the pod must wait."""
