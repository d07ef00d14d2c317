"""What containers of one pod do in time: start, fail, pause, restart, get ready, end."""

from typing import Any

import msgspec
import pytest

from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.container_plan import ContainerPlan, Pull
from berth.cluster.pods.kubelet import KubeletPod
from berth.cluster.resources import Object
from tests.cluster.kubelet.lives import T0, Life, Script, a_pod, events

ENDS = ContainerPlan(run_seconds=2.0)
FAILS = ContainerPlan(run_seconds=2.0, exit_code=3)
RUNS = ContainerPlan()


@pytest.mark.parametrize(
    ("life", "want"),
    [
        pytest.param(Life(a_pod()), [(0, "1/1 Running 0")], id="one container"),
        pytest.param(
            Life(a_pod(inits=["one", "two"]), Script({"one": [ENDS], "two": [ENDS]})),
            [(0, "0/1 Init:0/2 0"), (2, "0/1 Init:1/2 0"), (4, "1/1 Running 0")],
            id="init containers run one after the other",
        ),
        pytest.param(
            Life(a_pod(inits=["one", "side*", "two"]), Script({"one": [ENDS], "two": [ENDS]})),
            [(0, "0/2 Init:0/3 0"), (2, "1/2 Init:2/3 0"), (4, "2/2 Running 0")],
            id="a sidecar starts when its turn has come, and stays",
        ),
        pytest.param(
            Life(a_pod(inits=["one"]), Script({"one": [FAILS, ENDS]})),
            [(0, "0/1 Init:0/1 0"), (2, "0/1 Init:0/1 1"), (4, "1/1 Running 0")],
            id="an init container that fails is restarted",
        ),
        pytest.param(
            Life(a_pod(inits=["one"], restartPolicy="Never"), Script({"one": [FAILS]})),
            [(0, "0/1 Init:0/1 0"), (2, "0/1 Init:Error 0")],
            id="an init container that fails ends a pod that is never restarted",
        ),
        pytest.param(
            Life(a_pod(), Script({"c": [FAILS]})),
            [
                (0, "1/1 Running 0"),
                (2, "1/1 Running 1"),
                (4, "0/1 CrashLoopBackOff 1"),
                (14, "1/1 Running 2"),
                (16, "0/1 CrashLoopBackOff 2"),
                (36, "1/1 Running 3"),
                (38, "0/1 CrashLoopBackOff 3"),
                (78, "1/1 Running 4"),
                (80, "0/1 CrashLoopBackOff 4"),
            ],
            id="a crash loop: at once, after 10 s, 20 s, 40 s",
        ),
        pytest.param(
            Life(
                a_pod(),
                Script({"c": [FAILS, FAILS, ContainerPlan(run_seconds=601.0, exit_code=1), RUNS]}),
            ),
            [
                (0, "1/1 Running 0"),
                (2, "1/1 Running 1"),
                (4, "0/1 CrashLoopBackOff 1"),
                (14, "1/1 Running 2"),
                (615, "1/1 Running 3"),
            ],
            id="ten minutes later it is restarted at once again",
        ),
        pytest.param(
            Life(a_pod(restartPolicy="Never"), Script({"c": [ENDS]})),
            [(0, "1/1 Running 0"), (2, "0/1 Completed 0")],
            id="it ends well",
        ),
        pytest.param(
            Life(a_pod(restartPolicy="Never"), Script({"c": [FAILS]})),
            [(0, "1/1 Running 0"), (2, "0/1 Error 0")],
            id="it ends badly",
        ),
        pytest.param(
            Life(a_pod(restartPolicy="OnFailure"), Script({"c": [FAILS, ENDS]})),
            [(0, "1/1 Running 0"), (2, "1/1 Running 1"), (4, "0/1 Completed 1")],
            id="only failures are restarted",
        ),
        pytest.param(
            Life(a_pod("a", "b", restartPolicy="Never"), Script({"a": [ENDS], "b": [FAILS]})),
            [(0, "2/2 Running 0"), (2, "0/2 Completed 0")],
            id="two containers end, and the first is shown, as by kubectl",
        ),
        pytest.param(
            Life(
                a_pod("c", inits=["one*", "two*"], restartPolicy="Never"),
                Script({"c": [ENDS]}),
            ),
            [
                (0, "3/3 Running 0"),
                (2, "2/3 Completed 0"),
                (3, "1/3 Completed 0"),
                (4, "0/3 Completed 0"),
            ],
            id="sidecars end after the others, the last one first",
        ),
        pytest.param(
            Life(a_pod(inits=["side*"]), Script({"side": [FAILS, RUNS]})),
            [(0, "2/2 Running 0"), (2, "2/2 Running 1")],
            id="a sidecar that ends is restarted",
        ),
        pytest.param(
            Life(a_pod(), Script({"c": [ContainerPlan(create_seconds=3.0, ready_seconds=2.0)]})),
            [(0, "0/1 ContainerCreating 0"), (3, "0/1 Running 0"), (5, "1/1 Running 0")],
            id="it takes time to be created, and to be ready",
        ),
        pytest.param(
            Life(a_pod(), Script({"c": [ContainerPlan(ready_seconds=None)]})),
            [(0, "0/1 Running 0")],
            id="never ready",
        ),
        pytest.param(
            Life(
                a_pod(),
                Script(
                    {"c": [ContainerPlan(run_seconds=1, exit_code=137, reason="OOMKilled"), RUNS]}
                ),
            ),
            [(0, "1/1 Running 0"), (1, "1/1 Running 1")],
            id="out of memory",
        ),
        pytest.param(
            Life(a_pod(), Script({"c": [ContainerPlan(pull=Pull(4.0, 10**6))]})),
            [(0, "0/1 ContainerCreating 0"), (4, "1/1 Running 0")],
            id="its image is pulled",
        ),
        pytest.param(
            Life(a_pod("a", "b"), Script({name: [ContainerPlan(pull=Pull(4.0))] for name in "ab"})),
            [(0, "0/2 ContainerCreating 0"), (4, "2/2 Running 0")],
            id="the second of the same image finds it there",
        ),
        pytest.param(
            Life(a_pod(), Script({"c": [ContainerPlan(pull=Pull(1.0, error="not found"))]})),
            [(0, "0/1 ContainerCreating 0"), (1, "0/1 ImagePullBackOff 0")],
            id="its image does not come",
        ),
        pytest.param(
            Life(
                a_pod({"name": "c", "imagePullPolicy": "Never"}),
                Script({"c": [ContainerPlan(pull=Pull(1.0))]}),
            ),
            [(0, "0/1 ErrImageNeverPull 0")],
            id="its image may not be pulled",
        ),
        pytest.param(
            Life(a_pod(activeDeadlineSeconds=5)),
            [(0, "1/1 Running 0"), (6, "0/1 Error 0")],
            id="it has no more time",
        ),
    ],
)
def test_what_is_shown(life: Life, want: list[tuple[float, str]]) -> None:
    assert life.timeline(100 if want[-1][0] < 100 else 700) == want


@pytest.mark.parametrize(
    ("container", "ready_at"),
    [
        pytest.param({"readinessProbe": {"initialDelaySeconds": 7}}, 7, id="an initial delay"),
        pytest.param(
            {"readinessProbe": {"successThreshold": 3, "periodSeconds": 5}},
            10,
            id="several successes",
        ),
        pytest.param({"startupProbe": {"initialDelaySeconds": 4}}, 4, id="a startup probe"),
        pytest.param(
            {
                "startupProbe": {"initialDelaySeconds": 4},
                "readinessProbe": {"initialDelaySeconds": 1},
            },
            4,
            id="readiness is not probed before it has started",
        ),
        pytest.param(
            {"livenessProbe": {"initialDelaySeconds": 9}}, 0, id="liveness delays nothing"
        ),
    ],
)
def test_when_a_container_is_ready(container: Object, ready_at: float) -> None:
    life = Life(a_pod({"name": "c", **container}))
    (first, _), *rest = life.timeline(100)
    times = [first, *(at for at, _ in rest)]
    assert (times[-1], life.shown) == (ready_at, "1/1 Running 0")


@pytest.mark.parametrize(
    ("container", "plan", "grace", "ends_at", "exit_code"),
    [
        pytest.param({}, RUNS, 30, 1, 143, id="it ends on SIGTERM"),
        pytest.param({}, RUNS, 0, 0, 137, id="without grace it is killed"),
        pytest.param(
            {}, ContainerPlan(stop_seconds=12.0), 30, 12, 143, id="it takes its time to end"
        ),
        pytest.param(
            {}, ContainerPlan(stop_seconds=31.0), 30, 30, 137, id="it takes more than it has"
        ),
        pytest.param({}, ContainerPlan(ignores_sigterm=True), 30, 30, 137, id="it ignores SIGTERM"),
        pytest.param(
            {"lifecycle": {"preStop": {"sleep": {"seconds": 20}}}},
            RUNS,
            30,
            21,
            143,
            id="it sleeps before",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"sleep": {"seconds": 40}}}},
            RUNS,
            30,
            31,
            143,
            id="it would sleep for longer than it has: then there are two seconds left",
        ),
        pytest.param(
            {"lifecycle": {"preStop": {"sleep": {"seconds": 40}}}},
            ContainerPlan(ignores_sigterm=True),
            30,
            32,
            137,
            id="it sleeps for too long and ignores SIGTERM",
        ),
        pytest.param(
            {}, ContainerPlan(run_seconds=10.5), 30, 0.5, 0, id="it would have ended anyway"
        ),
    ],
)
def test_termination(
    container: Object, plan: ContainerPlan, grace: float, ends_at: float, exit_code: int
) -> None:
    life = Life(a_pod({"name": "c", **container}), Script({"c": [plan]})).at(10)
    life.stop(grace)
    before = life.at(10 + ends_at - 0.1).life.is_over if ends_at else False
    after = life.at(10 + ends_at).life.is_over

    assert (before, after) == (False, True)
    assert life.exit_codes() == {"c": exit_code}


def test_what_hangs_is_never_over() -> None:
    life = Life(a_pod(), Script({"c": [ContainerPlan(hangs=True)]})).at(1).stop(30)
    assert not life.at(10_000).life.is_over


def test_a_second_deletion_can_shorten_the_grace_period() -> None:
    life = Life(a_pod(), Script({"c": [ContainerPlan(ignores_sigterm=True)]})).at(0).stop(30)
    life.at(3).stop(2)
    assert (life.at(4.9).life.is_over, life.at(5).life.is_over) == (False, True)


def test_sidecars_get_what_is_left_of_the_grace_period() -> None:
    stubborn = ContainerPlan(ignores_sigterm=True)
    pod = a_pod("c", inits=["side*"])
    life = Life(pod, Script({"c": [stubborn], "side": [stubborn]})).at(0).stop(10)
    assert life.at(9.9).states() == {"c": "running", "side": "running"}
    assert life.at(10).exit_codes() == {"c": 137, "side": 137}


def test_what_has_not_started_is_over_at_once() -> None:
    life = Life(a_pod(inits=["one"]), Script({"one": [ContainerPlan(create_seconds=9.0)]})).at(1)
    assert life.stop(30).life.is_over
    assert (life.status["phase"], life.at(100).states()) == (
        "Failed",
        {"one": "waiting", "c": "waiting"},
    )


def test_the_message_of_a_crash_loop() -> None:
    life = Life(a_pod(), Script({"c": [FAILS]})).at(5)
    (container,) = life.status["containerStatuses"]
    assert container["state"]["waiting"] == {
        "reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container=c pod=p_default(u)",
    }
    assert container["lastState"]["terminated"] == {
        "exitCode": 3,
        "reason": "Error",
        "startedAt": "2026-01-01T00:00:02Z",
        "finishedAt": "2026-01-01T00:00:04Z",
    }


RULE = {"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}
OTHERS = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [3]}}


@pytest.mark.parametrize(
    ("container", "policy", "restarts"),
    [
        pytest.param({}, "Never", 0, id="the pod says no"),
        pytest.param({"restartPolicy": "OnFailure"}, "Never", 1, id="the container says yes"),
        pytest.param({"restartPolicy": "Never"}, "Always", 0, id="the container says no"),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": [RULE]},
            "Never",
            1,
            id="a rule matches",
        ),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": [OTHERS]},
            "Never",
            0,
            id="no rule does",
        ),
    ],
)
def test_restart_policies_of_containers(container: Object, policy: str, restarts: int) -> None:
    pod = a_pod({"name": "c", **container}, restartPolicy=policy)
    life = Life(pod, Script({"c": [FAILS, RUNS]})).at(50)
    (status,) = life.status["containerStatuses"]
    assert status["restartCount"] == restarts


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        pytest.param(
            [],
            'corresponding condition of pod readiness gate "example.com/x" does not exist.',
            id="nobody has said anything",
        ),
        pytest.param(
            [{"type": "example.com/x", "status": "False"}],
            'the status of pod readiness gate "example.com/x" is not "True", but False',
            id="somebody has said no",
        ),
        pytest.param([{"type": "example.com/x", "status": "True"}], "", id="it is ready"),
    ],
)
def test_readiness_gates(conditions: list[Object], want: str) -> None:
    body: dict[str, Any] = msgspec.to_builtins(
        a_pod(readinessGates=[{"conditionType": "example.com/x"}])
    )
    body["status"]["conditions"] = [*body["status"]["conditions"], *conditions]
    life = Life(msgspec.convert(body, type(a_pod()))).at(0)
    ready = life.conditions["Ready"]
    assert (ready.status, ready.reason, ready.message) == (
        ("False", "ReadinessGatesNotReady", want) if want else ("True", "", "")
    )
    assert life.conditions["ContainersReady"].status == "True"


def test_conditions_name_the_containers_that_are_not_there_yet() -> None:
    life = Life(a_pod("a", "b", inits=["one"]), Script({"one": [ENDS]})).at(1)
    assert {type_: tuple(each) for type_, each in life.conditions.items()} == {
        "PodReadyToStartContainers": ("True", "", ""),
        "Initialized": (
            "False",
            "ContainersNotInitialized",
            "containers with incomplete status: [one]",
        ),
        "Ready": ("False", "ContainersNotReady", "containers with unready status: [a b]"),
        "ContainersReady": ("False", "ContainersNotReady", "containers with unready status: [a b]"),
    }


def test_a_pod_without_time_says_so() -> None:
    life = Life(a_pod(activeDeadlineSeconds=5)).at(6)
    assert (life.status["phase"], life.status["reason"], life.status["message"]) == (
        "Failed",
        "DeadlineExceeded",
        "Pod was active on the node longer than the specified deadline",
    )
    assert "DisruptionTarget" not in life.conditions


def test_events_of_pulls_that_fail() -> None:
    life = Life(a_pod(), Script({"c": [ContainerPlan(pull=Pull(1.0, error="no route"))]})).at(5)
    assert events(life) == [
        'Pulling Pulling image "i"',
        'Failed Failed to pull image "i": no route',
        "Failed Error: ErrImagePull",
        'BackOff Back-off pulling image "i"',
        "Failed Error: ImagePullBackOff",
    ]


def test_events_of_a_container_that_fails_its_liveness_probe() -> None:
    fails = ContainerPlan(run_seconds=5.0, exit_code=137, fails_liveness=True)
    life = Life(a_pod({"name": "c", "livenessProbe": {}}), Script({"c": [fails, RUNS]})).at(5)
    assert [event.split(maxsplit=1)[0] for event in events(life)] == [
        *("Pulled", "Created", "Started", "Unhealthy", "Killing"),
        *("Pulled", "Created", "Started"),
    ]


def test_an_image_that_was_pulled_is_on_the_node() -> None:
    life = Life(a_pod(), Script({"c": [ContainerPlan(pull=Pull(4.0, 10**6))]})).at(5)
    assert life.node.images == {"i": 10**6}
    assert events(life)[:2] == [
        'Pulling Pulling image "i"',
        'Pulled Successfully pulled image "i" in 4s (4s including waiting). '
        "Image size: 1000000 bytes.",
    ]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            a_pod(inits=["one", "side*"]),
            [(10, "0/2 PodInitializing 1"), (12, "2/2 Running 2")],
            id="init containers run again first",
        ),
        pytest.param(
            a_pod(inits=["one"], restartPolicy="Never"),
            [(10, "0/1 Unknown 0")],
            id="what is never restarted has failed",
        ),
    ],
)
def test_a_machine_was_down(pod: KubeletPod, want: list[tuple[float, str]]) -> None:
    life = Life(pod, Script({"one": [ENDS]})).at(10)
    life.life.lose_machine(T0 + 10)
    assert [(10, life.shown), *life.timeline(100)] == want


@pytest.mark.parametrize(
    ("life", "shown", "want"),
    [
        pytest.param(
            Life(a_pod(), Script({"c": [FAILS]})).at(5),
            "0/1 Error 1",
            {"exitCode": 3, "reason": "Error"},
            id="it has failed before, and waited",
        ),
        pytest.param(
            Life(a_pod(), Script({"c": [ContainerPlan(create_seconds=9.0)]})).at(5),
            "0/1 ContainerStatusUnknown 0",
            {"exitCode": 137, "reason": "ContainerStatusUnknown"},
            id="it has never run",
        ),
    ],
)
def test_a_pod_ends_while_a_container_waits(life: Life, shown: str, want: Object) -> None:
    life.life.fail(Rejection("Evicted", "too much"), T0 + 5, 30)
    (status,) = life.status["containerStatuses"]
    ended = status["state"]["terminated"]
    assert (life.life.is_over, life.shown) == (True, shown)
    assert {key: ended[key] for key in want} == want
