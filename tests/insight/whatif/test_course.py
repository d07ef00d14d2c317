"""A simulation that is given less time than it needs: what it tells then, and what it advises."""

from typing import Any

import pytest

from berth.insight.whatif.answer import Answer
from berth.insight.whatif.course import Course, each_second
from berth.insight.whatif.engine import answer
from berth.insight.whatif.question import Question
from berth.insight.whatif.tables import render
from berth.kube.objects.meta import KubeStruct
from berth.runtime.clock import FakeClock
from berth.runtime.tables import as_text
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot

NODES = [node(f"n{i}", cpu="4") for i in range(4)]
WAITING = [pod(f"w{i}", cpu="1") for i in range(6)]
RUNNING = [pod(f"r{i}", cpu="1", node=f"n{i % 4}", owner="web") for i in range(6)]


def budget(attempts: int) -> Course:
    """A course that is over after so many attempts, or looks at the time."""
    looks = 0

    def used() -> float:
        nonlocal looks
        looks += 1
        return (looks - 1) / attempts

    return Course(used)


def cut(course: Course, *objects: KubeStruct, **question: Any) -> Answer:
    return answer(Question.model_validate(question), snapshot(*objects), IN_TREE, course=course)


def test_who_has_a_node_has_the_same_as_with_all_the_time() -> None:
    whole = ask(snapshot(*NODES, *WAITING))
    assert whole.partial is None
    for attempts in range(1, 20):
        found = cut(budget(attempts), *NODES, *WAITING)
        assert found.placements.items() <= whole.placements.items()
        if found.partial is None:
            assert found == whole
            continue
        assert found.partial.done + len(found.partial.undecided) == found.partial.of == 6
        assert found.partial.done == len(found.placements)
        assert found.unplaced == ()
        assert not found.fits
    assert found == whole


ASKED = {"templates": [{"manifest": deployment(), "replicas": 9}]}
MORE = {"templates": [{"manifest": deployment(), "replicas": 2}]}
LARGE = manifest(node("large", cpu="8"))


@pytest.mark.parametrize(
    ("question", "attempts", "stage", "advice"),
    [
        pytest.param(ASKED, 2, "placing", "ask for fewer pods", id="pods of the question"),
        pytest.param(
            MORE,
            2,
            "placing",
            "set includePending to false (--no-pending): 6 of the 8 pods wait in the cluster",
            id="pods that wait",
        ),
        pytest.param(
            {"removeNodes": {"names": ["n0", "n1", "n2", "n3"]}, "includePending": False},
            2,
            "placing",
            "remove fewer nodes: 6 of the 6 pods are theirs",
            id="pods of nodes that go",
        ),
        pytest.param(
            {"repack": True},
            2,
            "placing",
            "repack places 6 pods anew: leave it out",
            id="all pods",
        ),
        pytest.param(
            {
                "findNodes": {"manifest": LARGE},
                "templates": [{"manifest": deployment(cpu="3"), "replicas": 12}],
                "includePending": False,
            },
            30,
            "findNodes",
            "lower findNodes.most",
            id="how many nodes",
        ),
        pytest.param(
            {"findRemovable": {}, "includePending": False},
            4,
            "findRemovable",
            "name fewer nodes in findRemovable",
            id="which nodes can go",
        ),
        pytest.param(
            {"compareWeights": {"default-scheduler": {"NodeResourcesFit": 9}}},
            10,
            "comparing",
            "ask about one configuration at a time",
            id="two configurations",
        ),
    ],
)
def test_the_advice_is_about_what_took_the_time(
    question: dict[str, Any], attempts: int, stage: str, advice: str
) -> None:
    found = cut(budget(attempts), *NODES, *WAITING, *RUNNING, **question)
    assert found.partial is not None
    assert found.partial.stage == stage
    assert found.partial.advice.startswith(advice)
    assert found.partial.advice.endswith("; `berth simulate --snapshot` has no limit")
    assert found.partial.done <= found.partial.of
    assert found.compared is None
    assert "the CPU time was over when" in as_text(render(found), width=200)


def test_a_search_leaves_time_to_place_what_it_found() -> None:
    pods = [pod(f"r{i}", cpu="1", node=f"n{i}", owner="web") for i in range(4)]
    course = budget(20)
    found = cut(course, *NODES, *pods, findRemovable={})
    assert found.removable is not None
    assert found.partial is not None
    assert found.removable.nodes
    [why] = [stay.why for stay in found.removable.stays if stay.why.startswith("not tried")]
    assert why == "not tried: half of the CPU time was used up for the others"


def test_the_progress_is_told_each_second() -> None:
    clock, told = FakeClock(), list[Any]()
    hear = each_second(told.append, clock)

    def tell(course: Course) -> None:
        clock.advance(0.4)
        hear(course)

    cut(Course(tell=tell), *NODES, *WAITING)
    assert 0 < len(told) < 6
    assert told == [{"stage": "placing", "done": each["done"], "of": 6} for each in told]
    assert [each["done"] for each in told] == sorted(each["done"] for each in told)
