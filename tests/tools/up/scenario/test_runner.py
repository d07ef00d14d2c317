"""Whole scenarios: actions, expectations, and what is said when one is not met."""

from pathlib import Path

import pytest

from tests.tools.up.scenario.running import run_text

WEB = """
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          replicas: 4
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
"""
POD = """
    - create:
      - apiVersion: v1
        kind: Pod
        metadata: {name: p, labels: {app: p}}
        spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
CREATED = f"cluster:\n  nodes: [{{name: n-, count: 2}}]\n  objects: {WEB}"
RUNS = (
    "steps:\n- name: It runs\n  expect:\n  - pods: {selector: app=web, phase: Running, count: 4}\n"
)


def outcome(text: str, folder: Path) -> str:
    """Return why a scenario failed, "" if it did not."""
    return run_text(text, folder)[0].failure


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(
            """
- name: Nothing new comes to a cordoned node
  do:
  - cordon: [n-1]
  - scale: {kind: Deployment, name: web, replicas: 6}
  expect:
  - pods: {selector: app=web, node: n-2, phase: Running, count: 4}
- name: Until it is uncordoned
  do:
  - uncordon: [n-1]
  - scale: {kind: Deployment, name: web, replicas: 8}
  expect:
  - pods: {selector: app=web, phase: Running, count: 8, nodes: 2, perNode: 4}
""",
            marks=pytest.mark.slow,
            id="cordon, scale and uncordon",
        ),
        pytest.param(
            """
- name: A drained node has no pods
  do:
  - drain: {node: n-1}
  expect:
  - pods: {node: n-1, count: 0}
  - pods: {selector: app=web, node: n-2, phase: Running, count: 4}
  - objects: {kind: Node, name: n-1, path: .spec.unschedulable, equals: true}
""",
            marks=pytest.mark.slow,
            id="drain",
        ),
        pytest.param(
            """
- name: A budget refuses
  do:
  - create:
    - apiVersion: policy/v1
      kind: PodDisruptionBudget
      metadata: {name: web}
      spec: {minAvailable: 4, selector: {matchLabels: {app: web}}}
  expect:
  - objects: {kind: PodDisruptionBudget, path: .status.currentHealthy, equals: 4}
- name: An eviction is refused, and a drain that waits goes on when it is allowed
  do:
  - evict: {selector: app=web}
    refused: violate the pod's disruption budget
  - drain: {node: n-1, inBackground: true}
  expect:
  - pods: {node: n-1, phase: Running, count: 2}
    always: 1m
- name: The budget goes
  do:
  - delete: {kind: PodDisruptionBudget, name: web}
  expect:
  - pods: {node: n-1, count: 0}
""",
            marks=pytest.mark.slow,
            id="evict and drain against a budget",
        ),
        pytest.param(
            """
- name: A taint keeps pods away
  do:
  - taint: {nodes: [n-1], taints: ["broken=disk:NoSchedule"]}
  - scale: {kind: Deployment, name: web, replicas: 6}
  expect:
  - pods: {selector: app=web, node: n-2, phase: Running, count: 4}
- name: It goes
  do:
  - taint: {nodes: [n-1], taints: ["broken-"]}
  expect:
  - objects: {kind: Node, name: n-1, path: .spec.taints, count: 0}
""",
            marks=pytest.mark.slow,
            id="taint",
        ),
        pytest.param(
            """
- name: Labels and annotations
  do:
  - label: {kind: Node, name: n-1, labels: {disk: ssd}}
  - annotate: {kind: Pod, selector: app=web, annotations: {a: b}}
  - use: {kind: Node, name: n-2, memory: 1Gi, ephemeralStorage: 2Gi}
  expect:
  - objects: {kind: Node, selector: disk=ssd, count: 1}
  - objects: {kind: Pod, path: .metadata.annotations.a, equals: b, count: 4}
  - objects:
      kind: Node
      path: .metadata.annotations['berth\\.dev/usage-memory']
      equals: 1024Mi
      count: 1
- name: They go
  do:
  - label: {kind: Node, name: n-1, labels: {disk: null}}
  expect:
  - objects: {kind: Node, selector: disk, count: 0}
""",
            marks=pytest.mark.slow,
            id="label, annotate and use",
        ),
        pytest.param(
            """
- name: Without a scheduler nothing is scheduled
  do:
  - scheduler: stop
  - scale: {kind: Deployment, name: web, replicas: 6}
  expect:
  - pods: {selector: app=web, scheduled: false, count: 2}
  - pods: {selector: app=web, phase: Running, count: {atLeast: 5}}
    never: 5m
- name: With a new one it is
  do:
  - scheduler: start
  expect:
  - pods: {selector: app=web, phase: Running, count: 6}
- name: One that is killed comes back
  do:
  - scheduler: restart
  - scale: {kind: Deployment, name: web, replicas: 8}
  expect:
  - pods: {selector: app=web, phase: Running, count: 8}
""",
            marks=pytest.mark.slow,
            id="stop, start and restart the scheduler",
        ),
        pytest.param(
            """
- name: The scheduler packs from now on
  do:
  - scale: {kind: Deployment, name: web, replicas: 0}
  - configureScheduler:
      profiles:
      - pluginConfig:
        - name: NodeResourcesFit
          args:
            scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
        plugins:
          score:
            disabled: [{name: PodTopologySpread}, {name: NodeResourcesBalancedAllocation}]
  expect:
  - pods: {selector: app=web, count: 0}
  - pods: {selector: app=web, terminating: true, count: 0}
- name: New pods go to one node
  do:
  - scale: {kind: Deployment, name: web, replicas: 4}
  expect:
  - pods: {selector: app=web, phase: Running, count: 4, nodes: 1}
""",
            marks=pytest.mark.slow,
            id="configure the scheduler",
        ),
        pytest.param(
            """
- name: Machines come
  do:
  - addNodes: {name: big, labels: {size: big}, allocatable: {cpu: "32"}}
  - apply:
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: web, namespace: default}
      spec:
        replicas: 8
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            nodeSelector: {size: big}
            containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
  expect:
  - pods: {selector: app=web, node: big, nodeSelector: size=big, phase: Running, count: 8}
- name: And go
  do:
  - removeNodes: [big]
  expect:
  - objects: {kind: Node, count: 2}
""",
            marks=pytest.mark.slow,
            id="add and remove nodes, apply",
        ),
        pytest.param(
            """
- name: A patch, by a selector and by a subresource
  do:
  - patch: {kind: Deployment, name: web, patch: {spec: {template: {spec: {priority: null}}}}}
  - patch:
      kind: Node
      name: n-1
      subresource: status
      type: json
      patch: [{op: add, path: /status/capacity/example.com~1gpu, value: "4"}]
  expect:
  - objects: {kind: Node, path: ".status.capacity['example\\\\.com/gpu']", atLeast: 4, count: 1}
""",
            marks=pytest.mark.slow,
            id="patch",
        ),
        pytest.param(
            """
- name: A pod that does not fit is explained
  do:
  - create:
    - apiVersion: v1
      kind: Pod
      metadata: {name: large}
      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "64"}}}]}
  expect:
  - pods: {name: large, reason: Unschedulable, message: 2 Insufficient cpu}
  - event: {reason: FailedScheduling, name: large, kind: Pod, message: Insufficient cpu, count: 1}
  - explain: {pod: large, contains: [fits nowhere, 2 Insufficient cpu]}
- name: The pod goes
  after: {event: {reason: FailedScheduling}}
  do:
  - delete: {kind: Pod, name: large, gracePeriodSeconds: 0}
  expect:
  - pods: {name: large, count: 0}
""",
            id="messages, events, explain and after",
        ),
        pytest.param(
            """
- name: The order of things
  do:
  - delete: {kind: Pod, selector: app=web}
  expect:
  - order:
    - pods: {selector: app=web, terminating: true}
    - pods: {selector: app=web, phase: Running, count: 4}
    - pods: {selector: app=web, terminating: true, count: 0}
    within: 2m
""",
            id="order",
        ),
    ],
)  # fmt: skip
def test_a_scenario_passes(steps: str, tmp_path: Path) -> None:
    assert not outcome(CREATED + RUNS + steps, tmp_path)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        pytest.param(
            "- name: s\n  expect:\n  - pods: {selector: app=web, count: 5}\n    within: 3s\n",
            "expected pods: selector app=web, count 5, within 3s\nseen instead: 4 of 4; web-",
            id="what never comes true",
        ),
        pytest.param(
            "- name: s\n  expect:\n  - pods: {selector: app=web}\n    never: 3s\n",
            "expected pods: selector app=web, never in 3s\nseen instead: 4 of 4; web-",
            id="what must not be, and is",
        ),
        pytest.param(
            "- name: s\n  do: [{drain: {node: n-1, inBackground: true}}]\n"
            "  expect:\n  - pods: {node: n-1, count: 2}\n    always: 1m\n",
            "expected pods: node n-1, count 2, for 1m0s\nseen instead: ",
            id="what does not stay so",
        ),
        pytest.param(
            "- name: s\n  do: [{cordon: [n-3]}]\n",
            'cordon: nodes "n-3" not found',
            marks=pytest.mark.slow,
            id="an action on what there is not",
        ),
        pytest.param(
            "- name: s\n  do: [{delete: {kind: Job, selector: a=b}}]\n",
            "delete: there is no Job with the labels 'a=b'",
            marks=pytest.mark.slow,
            id="an action on what no selector takes",
        ),
        pytest.param(
            "- name: s\n  do: [{evict: {selector: app=web}, refused: budget}]\n",
            "evict: it was to be refused: 'budget', and was not",
            marks=pytest.mark.slow,
            id="an action that was to be refused",
        ),
        pytest.param(
            "- name: s\n  do: [{create: [{apiVersion: v1, kind: Pod, metadata: {name: p}}]}]\n",
            "Pod 'p': Pod \"p\" is invalid: spec.containers: Required value",
            id="an object that the API refuses",
        ),
        pytest.param(
            "- name: s\n  do: [{configureScheduler: {delayCacheUntilActive: true}}]\n",
            "configureScheduler: ",
            id="a configuration that cannot be had now",
        ),
        pytest.param(
            "- name: s\n  expect: [{explain: {pod: gone, contains: [x]}, within: 0s}]\n",
            "seen instead: the scheduler knows no pod default/gone",
            marks=pytest.mark.slow,
            id="a pod that cannot be explained",
        ),
        pytest.param(
            "- name: s\n  do: [{cordon: [n-1]}]\n  expect:\n  - order:\n"
            "    - pods: {node: n-3}\n    - objects: {kind: Node, path: .spec.unschedulable}\n"
            "    within: 1s\n",
            "pods: node n-3: not yet; objects: kind Node, path .spec.unschedulable: after 0.0s",
            id="another order",
        ),
    ],
)
def test_a_scenario_fails(steps: str, why: str, tmp_path: Path) -> None:
    assert why in outcome(CREATED + RUNS + steps, tmp_path)


def test_a_broken_invariant_fails_the_scenario_though_it_holds_again(tmp_path: Path) -> None:
    why = outcome(
        CREATED
        + "invariants:\n- objects: {kind: Node, path: .spec.unschedulable, count: 0}\n"
        + RUNS
        + "- name: s\n  do: [{cordon: [n-1]}]\n- name: t\n  wait: 1s\n  do: [{uncordon: [n-1]}]\n",
        tmp_path,
    )
    assert "expected objects: kind Node, path .spec.unschedulable, count 0, always" in why


GROUPS = """\
apiVersion: berth/v1
kind: ClusterAutoscaler
args: {scan-interval: 5s, scale-down-unneeded-time: 1m, scale-down-delay-after-add: 1m}
---
apiVersion: berth/v1
kind: NodeGroup
metadata: {name: burst}
spec:
  maxSize: 2
  provisionTime: 20s
  template: {status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}}
"""


@pytest.mark.slow
def test_an_autoscaler_scales_node_groups_and_survives_a_restart_of_the_scheduler(
    tmp_path: Path,
) -> None:
    (tmp_path / "groups.yaml").write_text(GROUPS)
    steps = """
- name: More pods than there is room for
  do: [{scale: {kind: Deployment, name: web, replicas: 12}}]
  expect:
  - pods: {selector: app=web, phase: Running, count: 12}
    within: 2m
  - objects: {kind: Node, selector: berth.dev/node-group=burst, count: 1}
- name: The scheduler is killed, and the group shrinks all the same
  do:
  - scheduler: restart
  - scale: {kind: Deployment, name: web, replicas: 4}
  expect:
  - objects: {kind: Node, selector: berth.dev/node-group=burst, count: 0}
    within: 10m
  - pods: {selector: app=web, phase: Running, count: 4}
    within: 1m
"""
    given = CREATED.replace("cluster:\n", "cluster:\n  nodeGroups: [groups.yaml]\n")
    assert not outcome(given + RUNS + steps, tmp_path)


def test_it_is_told_when_what_was_done_and_what_came_of_it(tmp_path: Path) -> None:
    _, lines = run_text(
        "description: |\n  Nothing\n  much.\n"
        + CREATED
        + RUNS
        + "- name: A minute passes\n  at: 1m\n  expect:\n"
        "  - objects: {kind: Node, count: 2}\n    always: 5s\n",
        tmp_path,
    )
    assert lines[:-1] == [
        "scenario test: Nothing much.",
        "      0.0s  step 1: It runs",
        "      0.0s    ok: pods: selector app=web, phase Running, count 4",
        "     60.0s  step 2: A minute passes",
        "     65.0s    ok: objects: kind Node, count 2; for 5s",
    ]
    assert lines[-1].startswith("passed: 2 of 2 steps, 2 expectations met; 1m5s passed in ")


def test_a_failure_shows_the_last_events(tmp_path: Path) -> None:
    _, lines = run_text(
        CREATED + RUNS + "- name: s\n  expect: [{pods: {name: x}, within: 1s}]\n", tmp_path
    )
    begin = lines.index("      1.0s    the last events:")
    assert lines[begin - 2] == "      1.0s    FAILED: expected pods: name x, within 1s"
    assert "Started Pod/web-" in lines[-2]
    assert lines[-1].startswith("failed: 1 of 2 steps, 1 expectations met; 1s passed in ")


def test_the_same_seed_decides_the_same(tmp_path: Path) -> None:
    """Names, nodes and times of all pods are in what is seen by an expectation that fails."""
    steps = "- name: s\n  do: [{drain: {node: n-1}}]\n  expect: [{pods: {count: 0}, within: 0s}]\n"
    first, second = (run_text(CREATED + RUNS + steps, tmp_path) for _ in range(2))
    other = run_text("seed: 2\n" + CREATED + RUNS + steps, tmp_path)
    assert "Running on n-2" in first[0].failure
    assert first[0] == second[0]
    assert first[1][:-1] == second[1][:-1]
    assert other[0].failure != first[0].failure
