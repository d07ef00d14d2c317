"""How long a Job waits after failed pods, and from when on."""

from typing import Any

import msgspec
import pytest

from berth.cluster.controllers.job_backoff import BackoffRecord, backoff_of_index, finish_time
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.times import seconds_of
from tests.cluster.controllers.jobs import NOW, World, decode_pod, job, pod

CREATED, READY, DELETED = "2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z", "2026-01-01T03:00:30Z"


def view(obj: Object) -> PodView:
    return decode_pod(msgspec.json.encode(obj))


def ended_at(name: str, phase: str, second: int) -> PodView:
    return view(pod(name, phase, ended=f"2026-01-01T00:00:{second:02}Z"))


def container(name: str, finished: str | None) -> Object:
    state = {"running": {}} if finished is None else {"terminated": {"finishedAt": finished}}
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({}, CREATED, id="nothing is known but its birth"),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "False",
                                        "lastTransitionTime": READY}]}},
            READY, id="when it became unready",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "True",
                                        "lastTransitionTime": READY}]}},
            CREATED, id="it is ready still",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 30}},
            "2026-01-01T03:00:00Z", id="when it was asked to go, not when it has to be gone",
        ),
        pytest.param(
            {"status": {"containerStatuses": [container("a", "2026-01-01T04:00:00Z"),
                                              container("b", "2026-01-01T05:00:00Z")]}},
            "2026-01-01T05:00:00Z", id="when the last container ended",
        ),
        pytest.param(
            {"status": {"containerStatuses": [container("a", "2026-01-01T04:00:00Z"),
                                              container("b", None)]}},
            CREATED, id="one runs still",
        ),
        pytest.param(
            {"spec": {"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]},
             "status": {"containerStatuses": [container("a", "2026-01-01T04:00:00Z")],
                        "initContainerStatuses": [container("i", "2026-01-01T07:00:00Z"),
                                                  container("s", "2026-01-01T06:00:00Z")]}},
            "2026-01-01T06:00:00Z", id="sidecars end with the pod, init containers before it",
        ),
    ],
)  # fmt: skip
def test_when_a_pod_ended(change: dict[str, Any], want: str) -> None:
    metadata = {**pod()["metadata"], "creationTimestamp": CREATED}
    obj = {"metadata": metadata | change.pop("metadata", {}), **change}
    assert finish_time(view(obj)) == seconds_of(want)


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        pytest.param([], 0, id="nothing has failed"),
        pytest.param([("a", "Failed", 5)], 15, id="ten seconds after the first failure"),
        pytest.param([("a", "Failed", 5), ("b", "Failed", 7)], 27, id="twenty after the second"),
        pytest.param(
            [("a", "Failed", 5), ("b", "Succeeded", 7)], 0, id="a success makes up for it"
        ),
        pytest.param(
            [("a", "Failed", 5), ("b", "Succeeded", 7), ("c", "Failed", 9)],
            19,
            id="failures count from the last success on",
        ),
    ],
)
def test_failures_in_a_row_are_counted_one_by_one(
    steps: list[tuple[str, str, int]], want: float
) -> None:
    record = BackoffRecord()
    for step in steps:
        found = ended_at(*step)
        good, bad = ([found], []) if step[1] == "Succeeded" else ([], [found])
        record = record.with_ended(good, bad)
        assert record.with_ended(good, bad) == record  # each once
    assert record.wait(NOW) == want


def test_of_pods_that_ended_together_those_before_a_success_do_not_count() -> None:
    good = [ended_at("g", "Succeeded", 10)]
    bad = [ended_at(each, "Failed", second) for each, second in (("a", 9), ("b", 10), ("c", 11))]
    record = BackoffRecord().with_ended(good, bad)
    assert (record.failures, record.wait(NOW)) == (1, 21)


def test_the_wait_is_never_longer_than_ten_minutes() -> None:
    record = BackoffRecord().with_ended([], [ended_at(f"p{n}", "Failed", 0) for n in range(9)])
    assert record.wait(NOW) == 600


def test_an_index_waits_for_its_own_failures() -> None:
    failed = view(pod("a", "Failed", index=0, failures=2))
    assert backoff_of_index(None, NOW) == 0
    assert backoff_of_index(failed, NOW) == 40


def test_a_pod_that_was_deleted_is_waited_for_when_it_is_gone() -> None:
    world = World(job(), pod("a", deleted=True))
    assert world.writes() == []
    for each in list(world.pods.values()):
        world.pods.on_delete(each)
    assert world.writes() == []
    assert world.plan().again == 10.0
    world.clock.advance(10)
    assert world.writes() == ["create j-"]


def test_pods_that_went_with_a_suspension_are_not_waited_for() -> None:
    suspended = {"conditions": [{"type": "Suspended", "status": "True"}]}
    world = World(job(status=suspended), pod("a", deleted=True, held=False))
    assert world.writes() == ["create j-"]
