"""READY, STATUS and RESTARTS of pods, and the wide columns."""

from typing import Any

import pytest

from berth.cluster.columns.cells import Since
from berth.cluster.columns.pod import Summary, summarise
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object

COLUMNS = find("", "v1", "pods").columns
ENDED = "2026-11-20T13:06:10Z"
EARLIER = "2026-11-20T13:01:00Z"
RUNNING = {"running": {"startedAt": ENDED}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}


def container(name: str = "c", **status: Any) -> Object:
    return {"name": name, **status}


def running(name: str = "c", **status: Any) -> Object:
    return container(name, state=RUNNING, ready=True, **status)


def pod(
    *statuses: Object,
    phase: str = "Running",
    conditions: tuple[tuple[str, str], ...] = (),
    init: tuple[Object, ...] = (),
    sidecars: tuple[str, ...] = (),
    **status: Any,
) -> Object:
    """A pod with these container statuses; *init* are those of its init containers."""
    names = [each["name"] for each in init] or list(sidecars)
    return {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": each["name"]} for each in statuses] or [{"name": "c"}],
            "initContainers": [
                {"name": name, **({"restartPolicy": "Always"} if name in sidecars else {})}
                for name in names
            ],
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": kind, "status": value} for kind, value in conditions],
            "containerStatuses": list(statuses),
            "initContainerStatuses": list(init),
            **status,
        },
    }


def deleted(a_pod: Object) -> Object:
    return {**a_pod, "metadata": {"name": "p", "deletionTimestamp": ENDED}}


GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
CREATING = container(state={"waiting": {"reason": "ContainerCreating"}})
KILLED = container(state={"terminated": {"exitCode": 137, "signal": 9}})
OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": EARLIER}}
CRASHING = container(
    state={"waiting": {"reason": "CrashLoopBackOff"}},
    restartCount=3,
    lastState={"terminated": {"exitCode": 1, "finishedAt": ENDED}},
)
READY = (("Ready", "True"),)


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(pod(phase="Pending"), Summary("Pending", 0, 1, 0), id="not yet scheduled"),
        pytest.param(
            {**pod(), "status": {"phase": "Pending", "conditions": GATED}},
            Summary("SchedulingGated", 0, 1, 0),
            id="held back by a scheduling gate",
        ),
        pytest.param(
            pod(CREATING, phase="Pending"),
            Summary("ContainerCreating", 0, 1, 0),
            id="the container waits for its image",
        ),
        pytest.param(
            pod(running("a"), running("b")), Summary("Running", 2, 2, 0), id="all containers run"
        ),
        pytest.param(
            pod(running("a"), container("b", state=RUNNING, ready=False)),
            Summary("Running", 1, 2, 0),
            id="one container runs but is not ready",
        ),
        pytest.param(CRASHING, Summary("CrashLoopBackOff", 0, 1, 3, ENDED), id="a crash loop"),
        pytest.param(
            pod(container(state=DONE), phase="Succeeded"),
            Summary("Completed", 0, 1, 0),
            id="done",
        ),
        pytest.param(
            pod(container(state={"terminated": {"exitCode": 1, "reason": "Error"}})),
            Summary("Error", 0, 1, 0),
            id="failed",
        ),
        pytest.param(pod(KILLED), Summary("Signal:9", 0, 1, 0), id="killed for no reason given"),
        pytest.param(
            pod(container(state={"terminated": {"exitCode": 3}})),
            Summary("ExitCode:3", 0, 1, 0),
            id="failed for no reason given",
        ),
        pytest.param(
            pod(container("a", state=DONE), running("b"), conditions=READY),
            Summary("Running", 1, 2, 0),
            id="one is done and the other runs",
        ),
        pytest.param(
            pod(container("a", state=DONE), running("b")),
            Summary("NotReady", 1, 2, 0),
            id="one is done and the pod is not ready",
        ),
        pytest.param(
            pod(CREATING | {"name": "a"}, KILLED | {"name": "b"}),
            Summary("ContainerCreating", 0, 2, 0),
            id="the first container has the last word",
        ),
        pytest.param(
            pod(phase="Failed", reason="Evicted"), Summary("Evicted", 0, 1, 0), id="evicted"
        ),
        pytest.param(deleted(pod(running())), Summary("Terminating", 1, 1, 0), id="being deleted"),
        pytest.param(
            deleted(pod(container(state=DONE), phase="Succeeded")),
            Summary("Completed", 0, 1, 0),
            id="deleted when done already",
        ),
        pytest.param(
            deleted(pod(reason="NodeLost")), Summary("Unknown", 0, 1, 0), id="lost with its node"
        ),
        pytest.param(
            pod(running(restartCount=2, lastState=OOM), running("b", restartCount=1)),
            Summary("Running", 2, 2, 3, EARLIER),
            id="restarts add up",
        ),
    ],
)
def test_summary(a_pod: Object, want: Summary) -> None:
    assert summarise(a_pod if "metadata" in a_pod else pod(a_pod)) == want


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(
            pod(init=(container("i", state=RUNNING), container("j"))),
            Summary("Init:0/2", 0, 1, 0),
            id="the first init container runs",
        ),
        pytest.param(
            pod(init=(container("i", state=DONE), container("j"))),
            Summary("Init:1/2", 0, 1, 0),
            id="the first is done",
        ),
        pytest.param(
            pod(init=(container("i", state={"waiting": {"reason": "PodInitializing"}}),)),
            Summary("Init:0/1", 0, 1, 0),
            id="waiting for the pod is no reason of its own",
        ),
        pytest.param(
            pod(init=(container("i", state={"waiting": {"reason": "ErrImagePull"}}),)),
            Summary("Init:ErrImagePull", 0, 1, 0),
            id="an init container cannot start",
        ),
        pytest.param(
            pod(
                init=(
                    container("i", state={"terminated": {"exitCode": 2}}, restartCount=4),
                    container("j"),
                )
            ),
            Summary("Init:ExitCode:2", 0, 1, 4),
            id="an init container failed, and its restarts count",
        ),
        pytest.param(
            pod(running(), init=(container("i", state=DONE, restartCount=4),)),
            Summary("Running", 1, 1, 0),
            id="afterwards restarts of init containers are forgotten",
        ),
        pytest.param(
            pod(
                running(),
                init=(running("s", started=True, restartCount=2, lastState=OOM),),
                sidecars=("s",),
            ),
            Summary("Running", 2, 2, 2, EARLIER),
            id="a sidecar counts as a container",
        ),
        pytest.param(
            pod(init=(container("s", started=False, state=RUNNING),), sidecars=("s",)),
            Summary("Init:0/1", 0, 2, 0),
            id="a sidecar that has not started holds up the pod",
        ),
        pytest.param(
            pod(
                running(),
                init=(container("i", state={"terminated": {"exitCode": 2}}),),
                conditions=(("Initialized", "True"),),
            ),
            Summary("Init:ExitCode:2", 1, 1, 0),
            id="an initialized pod that restarts shows both",
        ),
    ],
)
def test_summary_of_pods_with_init_containers(a_pod: Object, want: Summary) -> None:
    assert summarise(a_pod) == want


WIDE = pod(running(), podIPs=[{"ip": "10.0.0.7"}, {"ip": "fd00::7"}], nominatedNodeName="n2")
WIDE["spec"] |= {
    "nodeName": "n1",
    "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}],
}
WIDE["status"]["conditions"] = [{"type": "b", "status": "True"}]


@pytest.mark.parametrize(
    ("a_pod", "want"),
    [
        pytest.param(
            pod(phase="Pending"),
            ["p", "0/1", "Pending", "0", Since(None), "<none>", "<none>", "<none>", "<none>"],
            id="a pod that is nowhere",
        ),
        pytest.param(
            WIDE,
            ["p", "1/1", "Running", "0", Since(None), "10.0.0.7", "n1", "n2", "1/2"],
            id="a pod with everything",
        ),
    ],
)
def test_cells(a_pod: Object, want: list[Any]) -> None:
    assert [column.value(a_pod) for column in COLUMNS] == want


def test_restarts_say_when() -> None:
    [restarts] = [each for each in COLUMNS if each.name == "Restarts"]
    assert restarts.value(pod(CRASHING)) == Since(ENDED, "3 ({} ago)")
