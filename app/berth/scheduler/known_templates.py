"""The next of many replicas: the same decision as for any pod, from what is known of the others.

Decision (2026-11): pods of one template share the answers of plugins, as far as
:mod:`berth.profile.known_template` can keep them true. Node, ties, order and metrics are those of
:func:`berth.scheduler.schedule_pod.schedule_pod`, which decides whatever this leaves to it: pods
with a nominated node or beside nominated pods of no lower priority, pods that fit nowhere, profiles
that sample nodes, and every error.
"""

from typing import Final

from berth.framework.placement import Placement
from berth.framework.pod_info import PodTemplate
from berth.profile.known_template import KnownTemplate, NotKnownError
from berth.profile.nominated_pods import nominated_to
from berth.profile.profile import Profile
from berth.scheduler.cycle import Cycle
from berth.scheduler.known_decision import Decider
from berth.scheduler.outcome import Placed
from berth.scheduler.schedule_pod import Select

KEPT: Final = 16
"""Templates that are known at once; at 5,000 nodes each takes a fifth of a megabyte."""
SEEN: Final = KEPT
"""Templates that are remembered to have been tried. If more come in turns than can be kept, none is
worth knowing."""

_Key = tuple[Profile, PodTemplate, Placement]


class KnownTemplates:
    """Decides about replicas; keeps what is known of the templates that were tried last."""

    def __init__(self) -> None:
        self._known: dict[_Key, Decider] = {}
        self._seen: dict[_Key, int] = {}
        """When templates were tried last, and are not known: the generation of the table if they
        cannot be known before it changes, else -1."""

    def schedule(self, cycle: Cycle, *, select: Select, is_one_of_many: bool) -> Placed | None:
        """Decide where the pod of *cycle* goes; None if that takes asking everybody.

        From the second pod of a template on, or from the first if it *is_one_of_many*.
        """
        profile, pod, nodes = cycle.profile, cycle.pod, cycle.nodes
        if (
            profile.percentage_of_nodes_to_score
            or nominated_to(cycle.nominated_pods, pod, nodes)
            or pod.pod.status.nominated_node_name
        ):
            return None
        key = (profile, pod.template, cycle.placement)
        decider = self._known.pop(key, None)
        try:
            if decider is not None:
                try:
                    decider.known.catch_up()
                except NotKnownError:
                    decider = None
            elif not self._is_worth_knowing(key, nodes.last_generation, at_once=is_one_of_many):
                return None
            if decider is None:
                eligible = cycle.placement.rows_of(nodes)
                decider = Decider(KnownTemplate(profile, pod, nodes, eligible))
            placed = decider.decide(cycle, select)
        except NotKnownError:
            self._saw(key, nodes.last_generation)
            return None
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        self._known[key] = decider
        return placed

    def _is_worth_knowing(self, key: _Key, generation: int, *, at_once: bool) -> bool:
        """Whether a template that is not known was tried not long ago."""
        seen = self._seen.pop(key, None)
        if seen == generation or (seen is None and not at_once):
            self._saw(key, -1 if seen is None else generation)
            return False
        return True

    def _saw(self, key: _Key, generation: int) -> None:
        if len(self._seen) >= SEEN:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = generation
