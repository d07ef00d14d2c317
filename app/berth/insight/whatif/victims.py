"""What becomes of pods that are evicted: whether those that replace them find a node."""

from typing import Final

from berth.insight.whatif.answer import Victim
from berth.insight.whatif.placing import Placed, Placing
from berth.insight.whatif.world import unplaced
from berth.scheduler.framework.pod_info import PodInfo

NO_CONTROLLER: Final = "lost, because no controller replaces it"
NOT_TRIED: Final = "not tried: the time was over"


async def victims_then(placed: Placed, placing: Placing) -> tuple[Victim, ...]:
    """Return the victims of *placed* with where the pods would go that replace them.

    They are placed after everybody else, on the cluster as it is then, and stay there.
    """
    replaced = [
        PodInfo(unplaced(placed.evicted[victim.pod]))
        for victim in placed.victims
        if placed.evicted[victim.pod].metadata.controller is not None
    ]
    then = await placing.place_anew(replaced) if replaced else Placed()
    return tuple(
        victim.model_copy(
            update={
                "target": then.nodes.get(victim.pod, ""),
                "why": _why(victim.pod, then),
            }
        )
        for victim in placed.victims
    )


def _why(pod: str, then: Placed) -> str:
    if pod in then.nodes:
        return ""
    return NOT_TRIED if pod in then.undecided else then.refusals.get(pod, NO_CONTROLLER)
