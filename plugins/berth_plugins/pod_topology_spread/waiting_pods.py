"""Finding the waiting pods that spread a pod which came, changed or went."""

from collections.abc import Hashable, Iterable
from itertools import chain, product
from typing import Final

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.events import HintIndex
from berth.scheduler.framework.key_index import ANYWHERE, Choices
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.pod_topology_spread.constraints import own_constraints
from berth_plugins.shared.pod_keys import choices_for, has_place, keys_of


def _spread(pod: PodInfo) -> Choices:
    """Return how to file what looks for a pod that any hard constraint of *pod* itself spreads.

    Default constraints go by services and controllers, which may change.
    """
    if not pod.pod.spec.topology_spread_constraints:
        return ANYWHERE
    constraints = own_constraints(pod.template)
    if constraints.error:
        return ANYWHERE
    spread = dict.fromkeys(constraint.counted for constraint in constraints.hard)
    each = [choices_for(counted.namespaces, counted.selector) for counted in spread]
    return [tuple(chain.from_iterable(one_of_each)) for one_of_each in product(*each)]


def _before_and_after(old: Pod | None, new: Pod | None) -> Iterable[Hashable]:
    versions = [version for version in (old, new) if version is not None]
    return chain.from_iterable(map(keys_of, versions)) if all(map(has_place, versions)) else ()


POD_INDEX: Final = HintIndex(_spread, _before_and_after)
