"""What an API in memory does with what a scheduler writes."""

import pytest

from berth.kube.objects.meta import Condition
from berth.kube.objects.pod import Pod
from berth.runtime.clock import FakeClock
from berth.scheduler.core.in_memory_api import InMemoryApi
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.pod_info import PodInfo
from tests.builders import disruption_budget, node, pod, selector

TARGETED = Condition(type="DisruptionTarget", status="True")
WEB = {"app": "web"}


class Heard:
    """Writes down what it is told of pods."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_add(self, obj: Pod) -> None:
        self.told.append(f"added on {obj.spec.node_name or 'no node'}")

    def on_update(self, old: Pod, new: Pod) -> None:
        leaving = ", leaving" if new.metadata.deletion_timestamp else ""
        self.told.append(f"changed on {new.spec.node_name or 'no node'}{leaving}")

    def on_delete(self, obj: Pod) -> None:
        self.told.append("deleted")


def made(*pods: Pod) -> tuple[InMemoryApi, Heard]:
    api, heard = InMemoryApi(FakeClock(), Listers()), Heard()
    lister_of = {kind.type: lister for kind, lister in api.listers.by_kind().items()}
    api.connect({**lister_of, Pod: heard})
    for each in pods:
        api.put(each)
    heard.told.clear()
    return api, heard


async def test_a_binding_is_heard_of_at_once() -> None:
    api, heard = made(pod("p"))
    await api.bind(PodInfo(api.pods["default/p"]), "n1")
    assert api.pods["default/p"].spec.node_name == "n1"
    assert (heard.told, api.changes) == (["changed on n1"], 1)


async def test_a_victim_is_told_and_goes() -> None:
    api, heard = made(pod("p", node="n1"))
    assert await api.evict(api.pods["default/p"], TARGETED)
    assert heard.told == ["changed on n1, leaving", "deleted"]
    assert api.pods == {}


@pytest.mark.parametrize(
    "there",
    [
        pytest.param([], id="it is gone"),
        pytest.param([pod("p", node="n1", uid="another")], id="another has its name"),
    ],
)
async def test_who_is_not_there_is_not_evicted(there: list[Pod]) -> None:
    api, heard = made(*there)
    assert not await api.evict(pod("p", node="n1", uid="old"), TARGETED)
    assert (heard.told, api.changes) == ([], 0)


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        pytest.param(disruption_budget(selects=selector(WEB), allows=2), 1, id="its own"),
        pytest.param(disruption_budget(selects=selector(WEB)), 0, id="never less than none"),
        pytest.param(disruption_budget(selects=selector({"app": "db"}), allows=2), 2, id="others'"),
        pytest.param(disruption_budget(selects=selector(), allows=2), 2, id="that of nobody"),
        pytest.param(
            disruption_budget(selects=selector(WEB), allows=2, granted=["p"]),
            2,
            id="one that has granted it",
        ),
        pytest.param(
            disruption_budget(ns="shop", selects=selector(WEB), allows=2),
            2,
            id="of another namespace",
        ),
    ],
)
async def test_an_eviction_is_charged_to_disruption_budgets(budget: object, left: int) -> None:
    api, _ = made(pod("p", node="n1", labels=WEB))
    api.put(budget)
    await api.evict(api.pods["default/p"], TARGETED)
    (found,) = api.listers.pod_disruption_budgets
    assert found.status.disruptions_allowed == left


def test_a_nomination_is_in_the_status_and_a_condition_beside_it() -> None:
    api, heard = made(pod("p"))
    condition = Condition(type="PodScheduled", status="False", message="no room")
    api.status(api.pods["default/p"], condition=condition, nominated_node_name="n1")
    assert api.pods["default/p"].status.nominated_node_name == "n1"
    assert api.conditions == {"default/p": condition}
    api.status(api.pods["default/p"], condition=condition, nominated_node_name="n1")
    api.status(api.pods["default/p"], condition=condition, nominated_node_name=None)
    assert heard.told == ["changed on no node"]


def test_what_is_not_there_cannot_be_deleted() -> None:
    api, _ = made()
    with pytest.raises(KeyError):
        api.delete(node("n1"))
