"""Who is told of all that a core hears and does."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from berth.kube.informer.store import ResourceEventHandler
from berth.runtime.clock import Clock
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.core.outside import Outside
from berth.scheduler.framework.kind import Kind
from berth.scheduler.journal import Journal

if TYPE_CHECKING:
    from berth.scheduler.core.scheduler_core import SchedulerCore

Handlers = dict[Kind[Any], ResourceEventHandler[Any]]


class CoreJournal(Journal, Protocol):
    """A :class:`~berth.scheduler.journal.Journal` that also stands between a core and the world."""

    clock: Clock
    """What decisions go by: stands still during a step, so that each step has one time."""

    def outside(self, outside: Outside) -> Outside:
        """Return what the core is to use in place of *outside*."""

    def handlers(self, handlers: Mapping[Kind[Any], ResourceEventHandler[Any]]) -> Handlers:
        """Return what watches are to call in place of *handlers*."""

    def begins(self, core: "SchedulerCore") -> None:
        """*core* is made, and has heard of nothing yet."""

    def reconfigured(self, config: KubeSchedulerConfiguration) -> None:
        """The core is about to schedule by *config*."""
