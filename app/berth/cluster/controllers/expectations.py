"""Pods that a controller asked for, or asked to go, and that no watch has shown yet.

Without these a slow watch would have a controller create too many, or delete too many.
"""

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from berth.cluster.actions import Create, Delete
from berth.cluster.controllers.controller import Outcome
from berth.cluster.object_views import ObjectView
from berth.cluster.pods.controllers import PodView
from berth.cluster.writes.identities import MAX_NAME, SUFFIX_ALPHABET, SUFFIX_LENGTH
from berth.kube.client.errors import AlreadyExistsError, UnavailableError
from berth.runtime.clock import Clock

UNSEEN_SECONDS: Final = 30.0
"""How long a pod counts that was created, or may have been, and that no watch has shown yet."""

PREFIX_LENGTH: Final = MAX_NAME - SUFFIX_LENGTH


class Expectations:
    """What is expected to be seen, by the key of the owner, until the time to give up on it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unseen: dict[str, dict[str, tuple[float, str]]] = {}
        """Names of pods that are being created, with what they are for."""
        self._doomed: dict[str, dict[str, float]] = {}
        """Uids of pods that are being deleted."""

    def create(self, owner: str, names: Mapping[str, str] | Iterable[str]) -> None:
        """Expect pods of these names; a mapping says what each is for, such as a node."""
        deadline = self._clock.monotonic() + UNSEEN_SECONDS
        unseen = self._unseen.setdefault(owner, {})
        uses = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
        unseen.update((name, (deadline, use)) for name, use in uses.items())

    def delete(self, owner: str, pods: Iterable[PodView]) -> None:
        """Expect that *pods* go."""
        deadline = self._clock.monotonic() + UNSEEN_SECONDS
        doomed = self._doomed.setdefault(owner, {})
        doomed.update({pod.metadata.uid: deadline for pod in pods})

    def unseen(self, owner: str) -> dict[str, str]:
        """Return the names of the pods that are being created, with what they are for."""
        now = self._clock.monotonic()
        entries = self._unseen.get(owner)
        if not entries:
            return {}
        kept = {name: entry for name, entry in entries.items() if entry[0] > now}
        self._unseen[owner] = kept
        return {name: use for name, (_deadline, use) in kept.items()}

    def remaining(self, owner: str, active: Collection[PodView]) -> list[PodView]:
        """Return those of the *active* pods that are not being deleted."""
        doomed = self._doomed.get(owner)
        if not doomed:
            return list(active)
        now, uids = self._clock.monotonic(), {pod.metadata.uid for pod in active}
        kept = {uid: deadline for uid, deadline in doomed.items() if deadline > now and uid in uids}
        self._doomed[owner] = kept
        return [pod for pod in active if pod.metadata.uid not in kept]

    def see(self, obj: ObjectView) -> None:
        """Note that a watch has shown *obj*; from now on the table counts it."""
        controller = obj.metadata.controller
        if controller is not None:
            unseen = self._unseen.get(f"{obj.metadata.namespace}/{controller.name}", {})
            unseen.pop(obj.metadata.name, None)

    def finished(self, owner: str, outcome: Outcome) -> None:
        """Forget what was asked for if it certainly did not happen."""
        if outcome.error is None and not outcome.skipped:
            return
        if isinstance(outcome.action, Create):
            # A pod of that name may be ours, from a request whose answer was lost.
            may_exist = isinstance(outcome.error, AlreadyExistsError) or (
                isinstance(outcome.error, UnavailableError) and outcome.error.sent is not False
            )
            if not may_exist:
                self._unseen.get(owner, {}).pop(outcome.action.body["metadata"]["name"], None)
        elif isinstance(outcome.action, Delete):
            self._doomed.get(owner, {}).pop(outcome.action.uid, None)

    def forget(self, owner: str) -> None:
        self._unseen.pop(owner, None)
        self._doomed.pop(owner, None)

    def wait(self, owner: str) -> float | None:
        """Return the seconds until the first thing asked for is given up on."""
        deadlines = [
            *(deadline for deadline, _use in self._unseen.get(owner, {}).values()),
            *self._doomed.get(owner, {}).values(),
        ]
        if not deadlines:
            return None
        return max(min(deadlines) - self._clock.monotonic(), 0.0)


def new_name(rng: random.Random, prefix: str, is_taken: Callable[[str], bool]) -> str:
    """Draw a name with *prefix*; thousands of pods do draw the same five letters twice."""
    while True:
        suffix = "".join(rng.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))
        name = prefix[:PREFIX_LENGTH] + suffix
        if not is_taken(name):
            return name


def sooner(*waits: float | None) -> float | None:
    """Return the shortest of *waits*, of which None is the longest."""
    return min((wait for wait in waits if wait is not None), default=None)
