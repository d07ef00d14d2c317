"""Rules that choose pods, the outcomes that they draw, and files that cannot be."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.kubelet.container_plan import COMPLETES, RUNS, ContainerPlan, PodPlan, Role
from berth.cluster.kubelet.pod_life import MINIMUM_GRACE_SECONDS
from berth.cluster.kubelet.stages.load import PROFILES, StagesError, from_object, load
from berth.cluster.kubelet.stages.plans import plans_by
from berth.cluster.pods.kubelet import KubeletContainer, KubeletPod
from tests.cluster.kubelet.lives import Life, a_pod


def a_named_pod(uid: str = "u", **metadata: Any) -> KubeletPod:
    body = msgspec.to_builtins(a_pod())
    body["metadata"] |= {"uid": uid, **metadata}
    return msgspec.convert(body, KubeletPod)


def plan(pod: KubeletPod, *rules: Any, seed: int = 1, **more: Any) -> PodPlan:
    stages = from_object({"rules": list(rules), "seed": seed, **more}, source="test")
    return plans_by(stages, random.Random(0))(pod)


def main(pod: KubeletPod, *rules: Any, image: str = "i", restarts: int = 0) -> ContainerPlan:
    """Return how the only container of *pod* lives by *rules*."""
    container = KubeletContainer(name="c", image=image)
    return plan(pod, *rules).container(container, Role.MAIN, restarts=restarts)


ENDS = {"outcomes": [{"runDuration": "5s"}]}


def rule(**match: Any) -> dict[str, Any]:
    return {"match": match, **ENDS}


JOB = {"kind": "Job", "name": "j", "uid": "j", "controller": True}


@pytest.mark.parametrize(
    ("pod", "a_rule", "matches"),
    [
        pytest.param(a_named_pod(), ENDS, True, id="a rule without match"),
        pytest.param(a_named_pod(), rule(namespaces=["default"]), True, id="its namespace"),
        pytest.param(a_named_pod(), rule(namespaces=["kube-*"]), False, id="another namespace"),
        pytest.param(
            a_named_pod(labels={"app": "web"}),
            rule(labelSelector={"matchLabels": {"app": "web"}}),
            True,
            id="its labels",
        ),
        pytest.param(
            a_named_pod(labels={"app": "web"}),
            rule(labelSelector={"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
            False,
            id="labels that it must not have",
        ),
        pytest.param(
            a_named_pod(annotations={"a": "b"}), rule(annotations={"a": "b"}), True, id="annotation"
        ),
        pytest.param(a_named_pod(), rule(annotations={"a": "b"}), False, id="no such annotation"),
        pytest.param(a_named_pod(ownerReferences=[JOB]), rule(owners=["Job"]), True, id="of a Job"),
        pytest.param(a_named_pod(), rule(owners=["Job"]), False, id="of nobody"),
        pytest.param(a_named_pod(), rule(images=["i*"]), True, id="its image"),
        pytest.param(a_named_pod(), rule(images=["web:*"]), False, id="another image"),
        pytest.param(a_named_pod(), rule(containers=["c"]), True, id="its container"),
        pytest.param(a_named_pod(), rule(containers=["d"]), False, id="another container"),
        pytest.param(a_named_pod(), rule(roles=["Init"]), False, id="init containers only"),
        pytest.param(
            a_named_pod(), rule(namespaces=["default"], images=["x"]), False, id="all must match"
        ),
    ],
)
def test_what_a_rule_is_about(pod: KubeletPod, a_rule: Any, matches: bool) -> None:
    assert (main(pod, a_rule).run_seconds == 5.0) is matches


@pytest.mark.parametrize(
    ("outcome", "want"),
    [
        pytest.param({}, RUNS, id="nothing is said"),
        pytest.param(
            {"exitCode": 3},
            ContainerPlan(run_seconds=1.0, exit_code=3, runs_command=False),
            id="it fails soon",
        ),
        pytest.param(
            {"runDuration": "1m", "oomKilled": True},
            ContainerPlan(run_seconds=60.0, exit_code=137, reason="OOMKilled", runs_command=False),
            id="out of memory",
        ),
        pytest.param(
            {"readyDelay": "never", "stopDuration": "never"},
            ContainerPlan(ready_seconds=None, ignores_sigterm=True),
            id="never ready, never stopped",
        ),
        pytest.param({"stopDuration": "hangs"}, ContainerPlan(hangs=True), id="it hangs"),
        pytest.param(
            {"createDelay": "1s", "readyDelay": "2s", "stopDuration": "3s"},
            ContainerPlan(create_seconds=1.0, ready_seconds=2.0, stop_seconds=3.0),
            id="all takes time",
        ),
        pytest.param(
            {"runDuration": "9s", "livenessFails": True},
            ContainerPlan(run_seconds=9.0, exit_code=137, fails_liveness=True, runs_command=False),
            id="its liveness probe fails",
        ),
    ],
)
def test_outcomes(outcome: Any, want: ContainerPlan) -> None:
    assert main(a_named_pod(), {"outcomes": [outcome]}) == want


def test_an_image_has_a_size_and_comes_at_a_rate() -> None:
    found = main(a_named_pod(), {"outcomes": [{"pull": {"size": "100M", "rate": "50M"}}]})
    assert found.pull is not None
    assert (found.pull.seconds, found.pull.size_bytes) == (2.0, 10**8)


def test_all_nodes_draw_the_same_size_for_an_image() -> None:
    size = {"distribution": "uniform", "min": "1M", "max": "1G"}
    pulls = [
        main(a_named_pod(uid), {"outcomes": [{"pull": {"size": size}}]}, image=image).pull
        for uid, image in (("a", "one"), ("b", "one"), ("b", "two"))
    ]
    sizes = [pull.size_bytes for pull in pulls if pull is not None]
    assert sizes[0] == sizes[1] != sizes[2]


def test_later_rules_win_and_annotations_win_over_them() -> None:
    first = {"outcomes": [{"runDuration": "5s", "readyDelay": "1s"}]}
    second = {"outcomes": [{"runDuration": "forever"}]}
    assert main(a_named_pod(), first, second) == ContainerPlan(
        ready_seconds=1.0, runs_command=False
    )
    told = a_named_pod(annotations={"berth.dev/run-seconds": "7"})
    assert main(told, first, second).run_seconds == 7.0


def test_failures_are_over_some_time() -> None:
    flaky = {"outcomes": [{"failures": 2, "exitCode": 1}]}
    codes = [main(a_named_pod(), flaky, restarts=number).exit_code for number in range(4)]
    assert codes == [1, 1, 0, 0]


def test_weights_are_shares() -> None:
    rules = {
        "outcomes": [{"weight": 3}, {"weight": 1, "exitCode": 1}, {"weight": 0, "exitCode": 2}]
    }
    found = Counter(main(a_named_pod(str(number)), rules).exit_code for number in range(2000))
    assert found.keys() == {0, 1}
    assert 0.22 < found[1] / 2000 < 0.28


def test_the_same_seed_gives_the_same_lives() -> None:
    rules = {"outcomes": [{"runDuration": {"distribution": "exponential", "mean": "1m"}}]}

    def lives(seed: int) -> list[float | None]:
        container = KubeletContainer(name="c")
        plans = [plan(a_named_pod(str(number)), rules, seed=seed) for number in range(5)]
        return [each.container(container, Role.MAIN, restarts=0).run_seconds for each in plans]

    assert lives(1) == lives(1) != lives(2)


def test_usage_is_noted_on_the_pod_unless_it_says_so_itself() -> None:
    usage = {"cpu": "250m", "memory": "1Gi"}
    told = a_named_pod(annotations={"berth.dev/usage-cpu": "1"})
    assert plan(a_named_pod(), {"outcomes": [{"usage": usage}]}).annotations == {
        "berth.dev/usage-cpu": "250m",
        "berth.dev/usage-memory": str(2**30),
    }
    assert plan(told, {"outcomes": [{"usage": usage}]}).annotations == {
        "berth.dev/usage-memory": str(2**30)
    }


def test_without_rules_all_is_plain() -> None:
    fast = plans_by(load("fast"), random.Random(1))(a_named_pod())
    container = KubeletContainer(name="c")
    assert fast.container(container, Role.MAIN, restarts=0) == RUNS
    assert fast.container(container, Role.INIT, restarts=0) == COMPLETES


@pytest.mark.parametrize("profile", PROFILES)
@given(seed=st.integers(0, 10**6))
def test_pods_of_every_profile_end_when_they_are_deleted(profile: str, seed: int) -> None:
    stages = load(profile).model_copy(update={"seed": seed})
    plan_of = plans_by(stages, random.Random(1))
    pod = a_pod("a", "b", inits=["one", "side*"])
    life = Life(pod, plan=plan_of(pod)).at(600).stop(30).at(600 + 30 + MINIMUM_GRACE_SECONDS)
    assert life.life.is_over or any(container.plan.hangs for container in life.life.containers)


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        pytest.param({"rules": [{}]}, "rules[0].outcomes: Required value", id="no outcomes"),
        pytest.param(
            {"rules": [{"outcomes": []}]}, "rules[0]: Invalid value: {'outcomes': []}", id="none"
        ),
        pytest.param({"rulez": []}, "rulez: unknown field", id="an unknown field"),
        pytest.param(
            {"profile": "slow"}, "profile: Invalid value: 'slow': input should be", id="no profile"
        ),
        pytest.param(
            {"rules": [{"outcomes": [{"exitCode": 256}]}]},
            "rules[0].outcomes[0].exitCode: Invalid value: 256",
            id="no exit code",
        ),
        pytest.param(
            {"rules": [{"outcomes": [{"runDuration": "never"}]}]},
            "rules[0].outcomes[0].runDuration: Invalid value: 'never': must be a duration",
            id="a word of another field",
        ),
        pytest.param(
            {"rules": [{"outcomes": [{"usage": {"gpu": "1"}}]}]},
            "rules[0].outcomes[0].usage: Unsupported value: 'gpu': supported values: cpu, memory",
            id="a resource that nobody uses",
        ),
        pytest.param(
            {"rules": [{"outcomes": [{"usage": {"cpu": "much"}}]}]},
            "rules[0].outcomes[0].usage.cpu: Invalid value: 'much': must be a quantity",
            id="no quantity",
        ),
        pytest.param(
            {"rules": [{"outcomes": [{"oomKilled": True, "exitCode": 1}]}]},
            "oomKilled has an exit code of its own: 137",
            id="two exit codes",
        ),
        pytest.param(
            {
                "rules": [
                    {"match": {"labelSelector": {"matchLabels": {"a": "/"}}}, "outcomes": [{}]}
                ]
            },
            "rules[0].match.labelSelector: Invalid value: ",
            id="no label",
        ),
    ],
)
def test_what_is_refused(obj: Any, why: str) -> None:
    with pytest.raises(StagesError) as caught:
        from_object(obj, source="s.yaml")
    assert f"s.yaml: {why}" in str(caught.value) or why in str(caught.value)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stages.yaml"
    body = {"apiVersion": "berth.dev/v1alpha1", "kind": "Stages", "rules": [ENDS]}
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
    assert len(load(str(path)).rules) == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(None, "; profiles are fast, realistic, chaotic", id="it is not there"),
        pytest.param(
            "", "exactly one berth.dev/v1alpha1 Stages is needed, got nothing", id="empty"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n",
            "exactly one berth.dev/v1alpha1 Stages is needed, got v1 Pod",
            id="something else",
        ),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "stages.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(StagesError, match=why):
        load(str(path))
