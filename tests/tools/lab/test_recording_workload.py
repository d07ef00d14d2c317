"""Recordings as workloads: what comes and goes as recorded, and what policies decide anew."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from berth.insight.recording import lines
from berth.insight.recording.kinds import kind_name
from berth.insight.recording.writer import RecordingWriter
from berth.kube.objects.meta import OwnerReference
from berth.runtime.errors import UserError
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import ReservePlugin
from berth.scheduler.framework.listers import KINDS
from berth.scheduler.framework.pod_info import PodInfo
from berth.tools.lab.chance import PythonChance
from berth.tools.lab.curves import RunResult
from berth.tools.lab.errors import LabError
from berth.tools.lab.recording_workload import RecordingWorkload
from berth.tools.lab.run import Policy, Terms, run
from berth.tools.lab.types import RecordingSource
from berth.tools.lab.workload import WHOLE, Arrival, Part
from berth_plugins.registry import IN_TREE
from tests.builders import claim_volume, node, pod
from tests.insight.recording.world import RecordedWorld, config, sealed
from tests.tools.lab.test_run import lab_file, results
from tests.volume_builders import claim, storage_class, volume

BEGIN = 1_000_000_000.0
KIND_NAMES = {kind.type: kind_name(kind) for kind in KINDS.values()}
HEADER = lines.Header(api_version=lines.API_VERSION, kind=lines.KIND, version="0.1.0", config={})


def put(obj: Any, at: float = 0.0) -> lines.Line:
    return lines.Updated(BEGIN + at, KIND_NAMES[type(obj)], obj)


def gone(obj: Any, at: float) -> lines.Line:
    return lines.Deleted(BEGIN + at, KIND_NAMES[type(obj)], obj)


def tried(at: float = 0.0) -> lines.Line:
    return lines.Attempt(BEGIN + at, 1, "default/x", "x")


def write(folder: Path, *steps: lines.Line) -> Path:
    return write_lines(folder, [lines.encode(each) for each in (HEADER, *steps)])


def write_lines(folder: Path, data: Sequence[bytes]) -> Path:
    path = folder / "day.json"
    path.write_bytes(sealed(*data))
    return path


def workload(path: Path, part: Part = WHOLE) -> RecordingWorkload:
    return RecordingWorkload(RecordingSource(files=(path.name,)), path.parent, part)


def arrivals(path: Path, part: Part = WHOLE) -> Sequence[Arrival]:
    return workload(path, part).arrivals(PythonChance(1))


Told = tuple[str, str, float, float | None, float | None]
PENDING, BOUND = pod("p", uid="1"), pod("p", uid="1", node="n")
AGAIN = pod("p", uid="2")
OTHERS = pod("p", scheduler="other")


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        pytest.param(
            [put(PENDING, 10), put(BOUND, 15), gone(BOUND, 40)],
            [("p", "", 10.0, 25.0, None)],
            id="a pod runs as long as it ran, however long it waited",
        ),
        pytest.param(
            [put(PENDING, 10), put(BOUND, 15)],
            [("p", "", 10.0, None, None)],
            id="a pod that still runs at the end runs for ever",
        ),
        pytest.param(
            [put(PENDING, 10), gone(PENDING, 40)],
            [("p", "", 10.0, None, 40.0)],
            id="a pod that was deleted while it was pending is deleted then",
        ),
        pytest.param(
            [put(PENDING, 10), put(BOUND, 15), put(pod("p", uid="1", phase="Succeeded"), 30)],
            [("p", "", 10.0, 15.0, None)],
            id="a pod that has finished has ended",
        ),
        pytest.param(
            [put(BOUND, 10), gone(BOUND, 40)],
            [("p", "n", 10.0, 30.0, None)],
            id="a pod that comes with a node runs there",
        ),
        pytest.param(
            [put(PENDING, 10), put(BOUND, 15), gone(BOUND, 40), put(AGAIN, 41), gone(AGAIN, 50)],
            [("p", "", 10.0, 25.0, None), ("p-again-1", "", 41.0, None, 50.0)],
            id="a pod of the same name is another one",
        ),
        pytest.param(
            [put(PENDING, 10), put(BOUND, 15), put(AGAIN, 40)],
            [("p", "", 10.0, 25.0, None), ("p-again-1", "", 40.0, None, None)],
            id="that a pod is gone is seen from another UID",
        ),
        pytest.param(
            [put(OTHERS, 10), put(OTHERS.assigned_to("n"), 15), gone(OTHERS, 40)],
            [("p", "n", 15.0, 25.0, None)],
            id="a pod of another scheduler comes when it has a node",
        ),
        pytest.param(
            [put(OTHERS, 10), gone(OTHERS, 40)], [], id="a pod of another scheduler is not tried"
        ),
    ],
)
def test_pods_come_and_go(steps: list[lines.Line], want: list[Told], tmp_path: Path) -> None:
    always = pod("always")
    path = write(tmp_path, put(node("n"), -5), put(always, -4), tried(), *steps)

    first, *others = arrivals(path)

    assert first == Arrival(first.pod)
    told = [(a.pod.metadata.name, a.pod.spec.node_name, a.at, a.lifetime, a.until) for a in others]
    assert told == want


def test_what_there_is_at_the_first_attempt_is_there_from_the_begin(tmp_path: Path) -> None:
    runs, waits, left = pod("runs", node="n"), pod("waits"), pod("left", node="n")
    path = write(
        tmp_path,
        put(node("n", cpu="2"), -50),
        put(node("gone"), -50),
        put(runs, -40),
        put(left, -40),
        put(waits, -30),
        put(pod("runs", node="n", labels={"a": "b"}), -25),
        put(pod("placed"), -25),
        put(pod("placed", node="n"), -20),
        gone(node("gone"), -20),
        gone(left, -20),
        put(node("n", cpu="4"), -10),
        tried(0),
        gone(runs, 60),
    )
    made = workload(path)

    assert [each.status.allocatable["cpu"] for each in made.nodes] == ["4"]
    assert made.changes == []
    came = made.arrivals(PythonChance(1))
    assert [(a.pod.metadata.name, a.pod.spec.node_name, a.at, a.lifetime) for a in came] == [
        ("runs", "n", 0.0, 60.0),
        ("waits", "", 0.0, None),
        ("placed", "n", 0.0, None),
    ]
    assert came[0].pod.metadata.labels == {"a": "b"}
    assert made.length == 60.0


def test_what_a_scheduler_decided_is_no_part_of_the_workload(tmp_path: Path) -> None:
    """A claim that waits for a pod gets no volume; another one gets its own."""
    soon = storage_class("soon", mode="Immediate")
    waits, bound = claim("waits"), claim("bound", storage_class="soon")
    path = write(
        tmp_path,
        put(waits, -2),  # before its class
        put(storage_class("local"), -1),
        put(soon, -1),
        put(node("n")),
        put(volume("pv")),
        put(pod("p", volumes=[claim_volume("waits")], nominated="n")),
        put(bound),
        tried(),
        put(claim("waits", selected="n"), 1),
        put(volume("pv", claim=waits), 2),
        put(volume("made", claim=waits), 3),
        put(claim("waits", bound_to="pv"), 4),
        put(volume("own", storage_class="soon", claim=bound), 5),
        put(claim("bound", storage_class="soon", bound_to="own"), 6),
        put(pod("p", volumes=[claim_volume("waits")], node="n"), 7),
        put(pod("p", volumes=[claim_volume("waits")], node="n", phase="Running"), 8),
        put(pod("p", volumes=[claim_volume("waits")], node="n", labels={"a": "b"}), 9),
    )
    made = workload(path)

    told = [(change.at, change.obj.metadata.name) for change in made.changes]
    assert told == [(5.0, "own"), (6.0, "bound"), (9.0, "p")]
    assert [
        arrival.pod.status.nominated_node_name for arrival in made.arrivals(PythonChance(1))
    ] == [""]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param(b"garbage", "day.json: line 3: no line of a recording", id="garbage"),
        pytest.param(
            b'{"op":"add","t":1,"kind":"nodes","object":{"metadata":3}}',
            "day.json: line 3: Expected `object",
            id="an object that cannot be read",
        ),
        pytest.param(b'{"op":"flush","t":1e300}', "line 3: t: 1e+300: must be", id="no time"),
        pytest.param(
            b'{"op":"config","t":1,"config":{"profiles":3}}',
            "line 3: Expected `array`",
            id="config",
        ),
        pytest.param(b'{"op":"flush","t":1}', "day.json: no pods", id="nobody comes"),
    ],
)
def test_a_recording_that_cannot_be_used_is_an_error(
    line: bytes, want: str, tmp_path: Path
) -> None:
    path = write_lines(tmp_path, [lines.encode(HEADER), lines.encode(put(node("n"))), line])
    with pytest.raises(UserError) as caught:
        workload(path)

    assert want in str(caught.value)


def test_files_of_one_recording_are_read_in_their_order(tmp_path: Path) -> None:
    world = RecordedWorld(seed=8)
    asyncio.run(world.live(attempts=60))
    path = write_lines(tmp_path, world.lines)
    writer = RecordingWriter(tmp_path / "parts.gz", most_bytes=2_000, keep=99)
    for number, line in enumerate(world.lines, start=1):
        writer.write(line)
        if number % 50 == 0:
            writer.flush()
    writer.close()
    files = tuple(sorted(each.name for each in tmp_path.glob("parts.gz*")))  # the last one first

    parts = RecordingWorkload(RecordingSource(files=files), tmp_path)

    assert len(files) > 2
    assert parts.arrivals(PythonChance(1)) == arrivals(path)
    assert parts.changes == workload(path).changes


# Runs.


class Notes(ReservePlugin):
    """Notes who gets which node, and when."""

    NAME = "Notes"
    placed: ClassVar[dict[str, str]] = {}

    def reserve(self, _state: CycleState, pod: PodInfo, node_name: str) -> None:
        self.placed[pod.name] = node_name

    def unreserve(self, _state: CycleState, pod: PodInfo, _node_name: str) -> None:
        self.placed.pop(pod.name, None)


def run_noted(path: Path) -> tuple[RunResult, dict[str, str]]:
    """Run the default policy on a recording; return also where pods went."""
    noted = config(profiles=[{"plugins": {"multiPoint": {"enabled": [{"name": "Notes"}]}}}])
    Notes.placed.clear()
    policy = Policy("noted", noted, {**IN_TREE, "Notes": Notes})
    result = run(policy, workload(path), PythonChance(1), Terms(), seed=1)
    return result, dict(Notes.placed)


async def test_the_recorded_policy_places_pods_as_recorded(tmp_path: Path) -> None:
    """No node equals another one here, so that chance decides nothing."""
    world = RecordedWorld(nodes=0, faults=0)
    for name, cpu in (("a", "4"), ("b", "7"), ("c", "13")):
        world.api.put(node(name, cpu=cpu, memory="64Gi"))
    world.api.put(pod("running", cpu="3", memory="1Gi", node="c"))
    scheduling = asyncio.create_task(world.core.run())
    for i in range(16):
        world.api.put(pod(f"p{i}", cpu=f"{1100 + 71 * i}m", memory="512Mi"))
        for _ in range(30):
            await asyncio.sleep(0)
        world.clock.advance(0.5)
    scheduling.cancel()
    await asyncio.gather(scheduling, return_exceptions=True)
    attempts = [each for each in map(lines.decode, world.lines) if isinstance(each, lines.Attempt)]
    decided = [decision for attempt in attempts for decision in attempt.decisions]
    assert not any(each.equals for each in decided)

    result, placed = await asyncio.to_thread(run_noted, write_lines(tmp_path, world.lines))

    recorded = {each.pod.partition("/")[2]: each.node for each in decided if each.node}
    assert placed == recorded
    assert len(set(recorded.values())) == 3
    assert result.unplaced == 16 - len(recorded) > 0


async def test_times_are_those_of_a_day_in_which_much_goes_wrong(tmp_path: Path) -> None:
    """The oracle reads the lines as JSON. Pods of the day have names and UIDs of their own."""
    world = RecordedWorld(seed=3)
    await world.live(attempts=150)
    told = [json.loads(line) for line in world.lines]
    begin = next(each["t"] for each in told if each["op"] == "attempt")
    came: dict[str, float] = {}
    bound: dict[str, float] = {}
    ended: dict[str, float] = {}
    for each in told:
        if each.get("kind") != "pods":
            continue
        name = each["object"]["metadata"]["name"]
        t = max(each["t"] - begin, 0)
        came.setdefault(name, t)
        if each["object"]["spec"].get("nodeName"):
            bound.setdefault(name, t)
        if each["op"] == "delete":
            ended[name] = t

    found = {a.pod.metadata.name: a for a in arrivals(write_lines(tmp_path, world.lines))}

    assert found.keys() == came.keys()
    assert len(bound.keys() & ended.keys()) > 20
    assert ended.keys() - bound.keys()
    for name, arrival in found.items():
        assert arrival.at == pytest.approx(came[name], abs=0.01)
        ran = name in bound and name in ended
        want = ended[name] - bound[name] if ran else None
        assert arrival.lifetime == (want if want is None else pytest.approx(want, abs=0.01))
        gave_up = name in ended and name not in bound
        assert arrival.until == (pytest.approx(ended[name], abs=0.01) if gave_up else None)


async def test_a_day_in_which_much_goes_wrong_can_be_run(tmp_path: Path) -> None:
    world = RecordedWorld(seed=4)
    await world.live(attempts=100)
    world.remove_node()
    await world.live(attempts=150)
    path = write_lines(tmp_path, world.lines)
    made = workload(path)
    assert any(change.is_gone for change in made.changes)
    assert made.objects

    result, placed = await asyncio.to_thread(run_noted, path)

    assert result.pods == len(made.pods)
    assert 0 < len(placed) <= result.pods
    assert max(result.curves["waiting pods"]) >= 0.9 * made.length


def test_the_shortest_recording_is_measured(tmp_path: Path) -> None:
    path = write(tmp_path, put(node("n", cpu="4"), -1), put(pod("p", cpu="2")), tried(), tried(0.2))
    policies = [{"name": "default", "preset": "default"}]
    source = {"recording": {"files": [path.name]}}
    (ran,) = results(lab_file(tmp_path, workload=source, policies=policies))

    assert ran.curves["allocation of cpu"] == {1: 50.0}


def test_two_policies_run_a_recording(tmp_path: Path) -> None:
    """A large pod comes when two small ones run: it waits unless they are on the same node."""
    small = [pod(f"small-{i}", cpu="2") for i in range(2)]
    large = pod("large", cpu="4")
    path = write(
        tmp_path,
        *(put(node(name, cpu="4", memory="8Gi"), -1) for name in "ab"),
        *(put(each) for each in small),
        tried(),
        *(put(each.assigned_to(name), 0) for each, name in zip(small, "ab", strict=True)),
        put(large, 100),
        *(gone(each.assigned_to("a"), 400) for each in small),
        put(large.assigned_to("b"), 400),
        gone(large.assigned_to("b"), 1000),
    )
    policies = [{"name": each, "preset": each} for each in ("spread", "binpack")]
    source = {"recording": {"files": [path.name]}}
    spread, packed = results(lab_file(tmp_path, workload=source, policies=policies))

    assert (spread.waited[-1], packed.waited[-1]) == (300.0, 0.0)
    # Packed, the large pod runs from 100 to 700; spread, from 400 to 1000, as it did.
    assert packed.curves["allocation of cpu"][690] == 50.0
    assert packed.curves["allocation of cpu"][710] == 0.0
    assert spread.curves["allocation of cpu"][710] == 50.0
    assert (spread.pods, spread.unplaced, spread.preempted) == (3, 0, 0)


def test_pods_end_with_their_node_and_claims_with_their_pod(tmp_path: Path) -> None:
    """The only node goes at 50, where the pod was to run for 100 s; another comes at 80."""
    owner = OwnerReference(kind="Pod", name="p", uid="1")
    mine = msgspec.structs.replace(
        claim("mine"),
        metadata=msgspec.structs.replace(claim("mine").metadata, owner_references=(owner,)),
    )
    first = pod("p", uid="1", cpu="1", volumes=[claim_volume("mine")])
    late = pod("q", cpu="1")
    path = write(
        tmp_path,
        put(storage_class("local")),
        put(volume("pv", hosts=["a"])),
        put(mine),
        put(node("a", cpu="1")),
        put(first),
        tried(),
        put(first.assigned_to("a")),
        gone(mine, 10),
        put(late, 20),
        gone(node("a"), 50),
        put(node("b", cpu="1"), 80),
        put(late.assigned_to("b"), 80),
        gone(late.assigned_to("b"), 90),
        gone(first.assigned_to("a"), 100),
    )
    result, placed = run_noted(path)

    assert placed == {"p": "a", "q": "b"}
    assert result.waited == [0.0, 60.0, 60.0, 60.0]
    assert not any(isinstance(change.obj, type(mine)) for change in workload(path).changes)


def test_a_part_begins_with_what_runs_then_and_knows_when_its_pods_end(tmp_path: Path) -> None:
    steps = [put(node("n"), -5)]
    for number in range(6):
        name, at = f"p{number}", 10.0 * number
        steps += [put(pod(name), at), tried(at), put(pod(name, node="n"), at + 1)]
    steps += [gone(pod(f"p{number}", node="n"), 100.0 + number) for number in range(6)]
    path = write(tmp_path, *steps)

    def told(number: int) -> list[tuple[str, str, float, float | None]]:
        return [
            (each.pod.metadata.name, each.pod.spec.node_name, each.at, each.lifetime)
            for each in arrivals(path, Part(number, 3))
        ]

    assert told(0) == [("p0", "", 0, 99), ("p1", "", 10, 90)]
    assert told(1) == [
        ("p0", "n", 0, 80),
        ("p1", "n", 0, 81),
        ("p2", "", 0, 81),
        ("p3", "", 10, 72),
    ]
    assert [name for name, *_ in told(2)] == ["p0", "p1", "p2", "p3", "p4", "p5"]


def test_more_parts_than_pods_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, put(node("n"), -5), put(pod("p")), tried())

    with pytest.raises(LabError, match="1 pods come: 2 or more are needed"):
        workload(path, Part(0, 2))
