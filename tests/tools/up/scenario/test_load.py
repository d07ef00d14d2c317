"""What is wrong with a scenario file is said with file, line, field and value."""

from pathlib import Path

import pytest

from berth.tools.up.scenario.load import ScenarioError, ScenarioFile
from tests.tools.up.scenario.running import HEAD

STEP = "steps:\n- name: s\n"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param(
            "kind: Pod\napiVersion: v1\n",
            ["line 1: apiVersion berth.dev/v1alpha1 and kind Scenario are needed,"
             " got apiVersion 'v1' and kind 'Pod'"],
            id="another kind",
        ),
        pytest.param(
            HEAD + "steps: []\n",
            ["line 3: steps: tuple should have at least 1 item after validation, not 0"],
            id="no steps",
        ),
        pytest.param(
            HEAD + STEP + "speed: fast\n",
            ['line 5: speed: Invalid value: "fast": input should be a valid number'],
            id="a value of the wrong type",
        ),
        pytest.param(
            HEAD + STEP + "  unless: x\n",
            ['line 5: strict decoding error: unknown field "steps[0].unless"'],
            id="a field that there is not",
        ),
        pytest.param(
            HEAD + "steps:\n- do: []\n",
            ["line 4: steps[0].name: Required value"],
            id="a field that is missing",
        ),
        pytest.param(
            HEAD + STEP + "  at: 1s\n  wait: 1s\n",
            ["line 4: steps[0]: at most one of at, wait, after is needed, got at and wait"],
            id="two times",
        ),
        pytest.param(
            HEAD + STEP + "  at: 5 seconds\n",
            ['line 5: steps[0].at: Invalid value: "5 seconds":'
             ' time: unknown unit " seconds" in duration "5 seconds"'],
            id="a time without a unit that there is",
        ),
        pytest.param(
            HEAD + STEP + "  do:\n  - scheduler: kill\n",
            ['line 6: steps[0].do[0].scheduler: Unsupported value: "kill":'
             ' supported: "stop", "start" or "restart"'],
            id="one of a few values",
        ),
        pytest.param(
            HEAD + STEP + "  do:\n  - delete: {kind: Pood, name: x}\n",
            ['line 6: steps[0].do[0].delete.kind: Invalid value: "Pood":'
             " kind 'Pood' is not built in; kinds are written as in manifests"],
            id="a kind that there is not",
        ),
        pytest.param(
            HEAD + STEP + "  do:\n  - delete: {kind: Pod}\n",
            ["line 6: steps[0].do[0].delete: name or selector is needed, and not both"],
            id="no object is named",
        ),
        pytest.param(
            HEAD + STEP + "  expect:\n  - pods: {selector: 'a=b=c'}\n",
            ['line 6: steps[0].expect[0].pods.selector: Invalid value: "a=b=c":'
             " labelSelector 'a=b=c': found '=', expected: ',' or 'end of string'"],
            id="a selector that cannot be read",
        ),
        pytest.param(
            HEAD + STEP + "  expect:\n  - objects: {kind: Node, equals: 3}\n",
            ["line 6: steps[0].expect[0].objects:"
             " path is needed for equals, contains, atLeast and atMost"],
            id="a comparison without a path",
        ),
        pytest.param(
            HEAD + STEP + "  expect:\n  - pods: {}\n    never: 1s\n    always: 1s\n",
            ["line 6: steps[0].expect[0]: at most one of within, always, never is needed,"
             " got always and never"],
            id="two ways to wait",
        ),
        pytest.param(
            HEAD + STEP + "cluster:\n  schedulerConfiguration: {profles: []}\n",
            ["line 6: cluster.schedulerConfiguration:"
             ' strict decoding error: unknown field "profles"'],
            id="a scheduler configuration that is wrong",
        ),
        pytest.param(
            HEAD + STEP + "cluster:\n  stages: {profile: slow}\n",
            ["line 6: cluster.stages: {folder}/file.yaml: profile: Invalid value: 'slow':"
             " input should be 'fast', 'realistic' or 'chaotic'"],
            id="stages that are wrong",
        ),
        pytest.param(
            HEAD + STEP + "cluster:\n  kubeletConfiguration: {evictionHrd: {}}\n",
            [
                "line 6: cluster.kubeletConfiguration: {folder}/file.yaml:"
                ' strict decoding error: unknown field "evictionHrd"'
            ],
            id="a kubelet configuration that is wrong",
        ),
        pytest.param(
            HEAD + STEP + "cluster:\n  nodeGroups: [gone.yaml]\n",
            ["line 6: cluster.nodeGroups: {folder}/gone.yaml: No such file or directory"],
            id="node groups that are not there",
        ),
        pytest.param(
            HEAD + STEP + "  do:\n  - apply: [gone.yaml]\n",
            ["line 6: steps[0].do[0].apply[0]: {folder}/gone.yaml: No such file or directory"],
            id="a file that is not there",
        ),
        pytest.param(
            HEAD + STEP + "  do:\n  - apply:\n    - kind: Pod\n",
            ["line 7: steps[0].do[0].apply[0]: manifest, document 1:"
             " apiVersion: needed, got None"],
            id="a manifest that is none",
        ),
        pytest.param(HEAD + STEP + "seed: 1\nseed: 2\n",
            ['strict decoding error: duplicate field "seed"'],
            id="a field twice",
        ),
        pytest.param(
            HEAD + "cluster:\n  nodes:\n  - count: 0\nsteps:\n- name: s\n  do:\n  - {}\n",
            ["line 5: cluster.nodes[0].count: Invalid value: 0:"
             " input should be greater than or equal to 1",
             "line 9: steps[0].do[0]: exactly one of create, apply, delete, patch, label, annotate,"
             " scale, taint, cordon, uncordon, drain, evict, use, stopNodes, disconnectNodes,"
             " healNodes, addNodes, removeNodes, scheduler, configureScheduler is needed,"
             " got none"],
            id="all problems at once",
        ),
    ],
)  # fmt: skip
def test_problems_are_located(text: str, problems: list[str], tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as raised:
        ScenarioFile(path)
    assert [line.removeprefix(f"{path}: ") for line in str(raised.value).splitlines()] == [
        problem.format(folder=tmp_path) if "{folder}" in problem else problem
        for problem in problems
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.yaml: No such file or directory"):
        ScenarioFile(tmp_path / "none.yaml")


def test_it_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "quiet-day.yaml"
    path.write_text(HEAD + STEP)
    assert ScenarioFile(path).name == "quiet-day"


def test_configurations_and_manifests_may_be_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "scheduler.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "percentageOfNodesToScore: 7\n"
    )
    (tmp_path / "pods.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\n"
    )
    path = tmp_path / "file.yaml"
    path.write_text(HEAD + STEP + "cluster:\n  schedulerConfiguration: {file: scheduler.yaml}\n")
    file = ScenarioFile(path)
    config = file.configuration(file.scenario.cluster.scheduler_configuration)
    assert config.percentage_of_nodes_to_score == 7
    assert [obj["metadata"]["name"] for _, obj in file.objects(("pods.yaml",))] == ["a", "b"]
