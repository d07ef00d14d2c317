"""Parts that controllers are made of."""

import random
from collections.abc import Collection
from dataclasses import dataclass

from berth.cluster.access.signing_key import SigningKey
from berth.cluster.controllers.informers import SharedInformers, T
from berth.cluster.controllers.options import ControllerOptions
from berth.cluster.controllers.table import Table
from berth.cluster.events.recorder import EventBroadcaster, EventRecorder
from berth.cluster.kinds.registry import Registry
from berth.runtime.certificates import KeyPair
from berth.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """Handed to the ``new_controller`` of each controller's module."""

    informers: SharedInformers
    registry: Registry
    """The kinds that are served at present."""
    clock: Clock
    rng: random.Random
    certificate: str
    """What clients are to trust, in PEM; empty: there is none to publish."""
    signing_key: SigningKey | None
    """That of the API server for service account tokens; None: Secrets get none."""
    events: EventBroadcaster
    options: ControllerOptions
    authority: KeyPair | None = None
    """What signs certificates; None: none are signed."""
    features: Collection[str] = ()
    """The feature gates that are on."""

    def table(self, storage_key: str, view: type[T]) -> Table[T]:
        """Return the objects of a kind, such as ``deployments.apps``, read as *view*."""
        return self.informers.table(storage_key, view)

    def recorder(self, component: str) -> EventRecorder:
        """Return what events are recorded with, in the name of *component*."""
        return self.events.recorder(component)
