"""Nodes that fail, from the first missing heartbeat to the last pod elsewhere."""

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
          spec: {containers: [{name: main, image: web}]}
"""

STOPS = f"""
cluster:
  nodes:
  - {{name: a, labels: {{topology.kubernetes.io/zone: east}}}}
  - {{name: b, labels: {{topology.kubernetes.io/zone: west}}}}
  - {{name: c, labels: {{topology.kubernetes.io/zone: north}}}}
steps:
- name: a workload, of which a daemon and a job for one node
  do:
  - create: {WEB}
    - apiVersion: apps/v1
      kind: DaemonSet
      metadata: {{name: agent}}
      spec:
        selector: {{matchLabels: {{app: agent}}}}
        template:
          metadata: {{labels: {{app: agent}}}}
          spec: {{containers: [{{name: main, image: agent}}]}}
    - apiVersion: v1
      kind: Pod
      metadata: {{name: hasty, labels: {{app: hasty}}}}
      spec:
        nodeName: a
        containers: [{{name: main, image: hasty}}]
        tolerations:
        - {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute,
           tolerationSeconds: 10}}
  expect:
  - pods: {{selector: app=web, ready: true, count: 4, nodes: 3}}
  - pods: {{selector: app=agent, ready: true, count: 3}}
  - pods: {{name: hasty, ready: true}}
- name: it stops
  do: [{{stopNodes: [a]}}]
  expect:
  - objects: {{kind: Node, name: a, path: '.status.conditions[?(@.type=="Ready")].status',
               equals: "True"}}
    always: 39s
  - objects: {{kind: Node, name: a, path: '.status.conditions[?(@.type=="Ready")].status',
               equals: Unknown}}
    within: 20s
  - event: {{reason: NodeNotReady, kind: Node, name: a,
             message: "Node a status is now: NodeNotReady"}}
  - pods: {{selector: app=web, ready: true, nodes: 2}}
  - pods: {{selector: app=agent, ready: true, count: 2}}
  - event: {{reason: TaintManagerEviction, name: hasty,
             message: Marking for deletion Pod default/hasty}}
    within: 17s
- name: its pods are replaced after five minutes
  expect:
  - pods: {{selector: app=web, terminating: false, ready: true, count: 4, nodes: 2}}
    within: 6m
  - pods: {{selector: app=agent, node: a, count: 1}}
- name: it comes back, and its old pods go
  do: [{{healNodes: [a]}}]
  expect:
  - objects: {{kind: Node, name: a, path: '.status.conditions[?(@.type=="Ready")].status',
               equals: "True"}}
  - pods: {{selector: app=web, terminating: true, count: 0}}
  - pods: {{selector: app=agent, ready: true, count: 3}}
"""

HEALS = f"""
cluster:
  nodes: [{{name: a}}, {{name: b}}]
steps:
- name: a workload
  do:
  - create: {WEB}
  expect:
  - pods: {{selector: app=web, ready: true, count: 4, nodes: 2}}
- name: the network of a node is cut, but not for long
  do: [{{disconnectNodes: [a]}}]
  expect:
  - pods: {{selector: app=web, node: a, ready: false}}
    within: 70s
- name: it is back before its pods are to go
  wait: 3m
  do: [{{healNodes: [a]}}]
  expect:
  - pods: {{selector: app=web, ready: true, count: 4, nodes: 2}}
  - event: {{reason: TaintManagerEviction, message: Cancelling deletion of Pod default/web-}}
  - pods: {{selector: app=web, ready: true, count: 4, nodes: 2}}
    always: 5m
"""

GONE = f"""
cluster:
  nodes: [{{name: a}}, {{name: b}}]
steps:
- name: a workload
  do:
  - create: {WEB}
  expect:
  - pods: {{selector: app=web, ready: true, count: 4, nodes: 2}}
- name: somebody deletes a node; its kubelet does not register it again
  do: [{{delete: {{kind: Node, name: a}}}}]
  expect:
  - pods: {{selector: app=web, node: a, count: 2}}
    always: 39s
  - pods: {{selector: app=web, node: a, count: 0}}
    within: 25s
  - pods: {{selector: app=web, ready: true, count: 4, node: b}}
  - event: {{reason: RemovingNode, name: a}}
  - objects: {{kind: Lease, namespace: kube-node-lease, count: 1}}
    always: 1m
  - objects: {{kind: Node, count: 1}}
    always: 5m
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(STOPS, id="a machine stops, and comes back"),
        pytest.param(HEALS, id="a network that is cut for a while"),
        pytest.param(GONE, id="a node is deleted"),
    ],
)
def test_the_life_of_a_node(text: str, tmp_path: Path) -> None:
    result, lines = run_text(text, tmp_path)
    assert result.failure == "", lines
