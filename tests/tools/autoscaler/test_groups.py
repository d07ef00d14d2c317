"""Nodes for a gang: as many as let all of it start, at once."""

from pathlib import Path

from tests.tools.up.scenario.running import HEAD, run_file

GROUP = """\
apiVersion: berth/v1
kind: NodeGroup
metadata: {{name: {name}}}
spec:
  maxSize: {most}
  provisionTime: 5s
  template:
    metadata: {{labels: {{example.com/rack: {name}}}}}
    status: {{allocatable: {{cpu: "2", memory: 16Gi, pods: "110"}}}}
"""
SCENARIO = """\
cluster:
  nodes: [{name: other, allocatable: {cpu: "1"}}]
  nodeGroups: [racks.yaml]
  schedulerConfiguration:
    featureGates:
      GenericWorkload: true
      GangScheduling: true
      TopologyAwareWorkloadScheduling: true
steps:
- name: a gang of six, of which no rack holds any yet
  do:
  - create:
    - apiVersion: scheduling.k8s.io/v1beta1
      kind: PodGroup
      metadata: {name: train}
      spec:
        schedulingPolicy: {gang: {minCount: 6}}
        schedulingConstraints: {topology: [{key: example.com/rack}]}
    - apiVersion: apps/v1
      kind: Deployment
      metadata: {name: train}
      spec:
        replicas: 6
        selector: {matchLabels: {app: train}}
        template:
          metadata: {labels: {app: train}}
          spec:
            schedulingGroup: {podGroupName: train}
            containers: [{name: worker, image: i, resources: {requests: {cpu: "1"}}}]
  expect:
  - pods: {selector: app=train, phase: Running, count: 6, nodes: 3}
    within: 1m
  - event: {reason: TriggeredScaleUp, message: "large 0->3"}
  - objects: {kind: Node, name: small-*, count: 0}
"""


def test_the_one_group_that_can_hold_the_gang_grows_for_all_of_it(tmp_path: Path) -> None:
    racks = [GROUP.format(name="small", most=2), GROUP.format(name="large", most=8)]
    (tmp_path / "racks.yaml").write_text("---\n".join(racks), encoding="utf-8")
    path = tmp_path / "gang.yaml"
    path.write_text(HEAD + SCENARIO, encoding="utf-8")

    result, lines = run_file(path)

    assert not result.failure, "\n".join(lines)
