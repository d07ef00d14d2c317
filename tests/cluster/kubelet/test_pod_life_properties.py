"""Whatever containers do and whatever is done to them, some things hold."""

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kubelet.admission import Rejection
from berth.cluster.kubelet.container_plan import ContainerPlan, Pull
from berth.cluster.kubelet.pod_life import MINIMUM_GRACE_SECONDS
from tests.cluster.kubelet.lives import T0, Life, Script, a_pod

SECONDS = st.sampled_from([0.0, 0.5, 3.0, 40.0])
PULLS = st.builds(Pull, seconds=SECONDS, error=st.sampled_from(["", "", "no route"]))
PLANS = st.builds(
    ContainerPlan,
    pull=st.none() | PULLS,
    create_seconds=SECONDS,
    ready_seconds=st.none() | SECONDS,
    run_seconds=st.none() | SECONDS,
    exit_code=st.sampled_from([0, 0, 1, 137]),
    stop_seconds=st.none() | SECONDS,
    ignores_sigterm=st.booleans(),
    hangs=st.sampled_from([False, False, False, True]),
)
NAMES = ("one", "two", "side", "a", "b")
SCRIPTS = st.builds(
    Script, st.fixed_dictionaries({name: st.lists(PLANS, min_size=1, max_size=3) for name in NAMES})
)
CONTAINERS = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2, unique=True)
INITS = st.lists(st.sampled_from(["one", "side*", "two"]), max_size=3, unique=True)
POLICIES = st.sampled_from(["Always", "OnFailure", "Never"])
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "wait", "stop", "fail", "kill", "reboot"]),
        st.sampled_from([0, 1, 10, 30, 300]),
    ),
    max_size=8,
)


@given(SCRIPTS, CONTAINERS, INITS, POLICIES, ACTS)
def test_what_always_holds(
    script: Script,
    containers: list[str],
    inits: list[str],
    policy: str,
    acts: list[tuple[str, int]],
) -> None:
    pod = a_pod(*containers, inits=inits, restartPolicy=policy)
    life, now, ends_by = Life(pod, script), 0.0, float("inf")
    restarts = dict.fromkeys([*containers, *inits], 0)
    finished = ""
    for act, number in [*acts, ("wait", 10_000), ("stop", 30), ("wait", 10_000)]:
        match act:
            case "wait":
                now += number
                life.at(now)
            case "stop":
                life.stop(number)
                ends_by = min(ends_by, now + number)
            case "fail":
                life.life.fail(Rejection("Evicted", ""), T0 + now, number)
                ends_by = min(ends_by, now + number)
                life.at(now)
            case "kill":
                life.life.kill(containers[0], T0 + now, exit_code=137, reason="OOMKilled")
                life.at(now)
            case "reboot":
                life.life.lose_machine(T0 + now)
                life.at(now)

        phase = life.status["phase"]
        assert not finished or phase == finished, "what has finished stays so"
        finished = phase if phase in ("Succeeded", "Failed") else ""
        assert bool(finished) is life.life.is_over
        hangs = any(container.plan.hangs for container in life.life.containers)
        if now > ends_by + MINIMUM_GRACE_SECONDS and not hangs:
            assert life.life.is_over, "what is stopped ends within its grace period"
        for container in life.life.containers:
            name = container.container.name
            assert container.restarts >= restarts.get(name, 0), "restarts only grow"
            restarts[name] = container.restarts
            if policy == "Never" and container.container.restart_policy != "Always":
                assert container.restarts == 0, "not even once"
        if life.life.is_over:
            assert life.life.next_due() == float("inf")
