"""PodGroups and Workloads: what is refused, dropped and held."""

from typing import Any

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gated import GENERIC_WORKLOAD, gated_kinds
from berth.cluster.resources import Object
from tests.cluster.writes.booted import Booted

PODS = find("", "v1", "pods")
JOBS = find("batch", "v1", "jobs")
POD_GROUPS, WORKLOADS = gated_kinds((GENERIC_WORKLOAD,))
GANG: Object = {"gang": {"minCount": 2}}


@pytest.fixture
def cluster() -> Booted:
    return Booted(GENERIC_WORKLOAD)


def group(name: str = "g", **spec: object) -> Object:
    meta = {"name": name, "namespace": "default"}
    return {"metadata": meta, "spec": {"schedulingPolicy": GANG, **spec}}


def workload(*templates: Object) -> Object:
    return {
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"podGroupTemplates": list(templates)},
    }


def template(name: str, **more: object) -> Object:
    return {"name": name, "schedulingPolicy": GANG, **more}


def pod() -> Object:
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "schedulingGroup": {"podGroupName": "g"},
        },
    }


def of_template(workload: str, name: str) -> Object:
    return {"workload": {"workloadName": workload, "podGroupTemplateName": name}}


def test_a_new_group_is_held(cluster: Booted) -> None:
    stored = cluster.create(POD_GROUPS, {**group(), "status": {"conditions": []}})
    assert stored["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    assert stored["metadata"]["generation"] == 1
    assert stored["status"] == {}


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        pytest.param(
            group(schedulingPolicy=None), "spec.schedulingPolicy: Required value", id="no policy"
        ),
        pytest.param(
            group(schedulingPolicy={}),
            'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`',
            id="an empty policy",
        ),
        pytest.param(
            group(schedulingPolicy={"basic": {}, **GANG}),
            'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of:'
            " `basic`, `gang`",
            id="two policies",
        ),
        pytest.param(
            group(schedulingPolicy={"gang": {"minCount": 0}}),
            "spec.schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal"
            " to 1",
            id="a gang of nobody",
        ),
        pytest.param(
            group(podGroupTemplateRef=of_template("w", "t")),
            'podgroups.scheduling.k8s.io "g" is forbidden: PodGroup rejected: Workload "w" not'
            " found",
            id="of a workload that is not there",
        ),
    ],
)
def test_refused_groups(cluster: Booted, obj: Object, why: str) -> None:
    assert why in cluster.refused(POD_GROUPS, obj)[1]


def test_a_group_refers_to_a_template_that_is_there(cluster: Booted) -> None:
    cluster.create(WORKLOADS, workload(template("t")))
    cluster.create(POD_GROUPS, group(podGroupTemplateRef=of_template("w", "t")))
    _, why = cluster.refused(POD_GROUPS, group("h", podGroupTemplateRef=of_template("w", "u")))
    assert why.endswith('PodGroup rejected: PodGroupTemplate "u" not found in Workload "w"')


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        pytest.param(
            workload(),
            "spec.podGroupTemplates: Required value: must have at least one item",
            id="without templates",
        ),
        pytest.param(
            workload(*(template(f"t{i}") for i in range(9))),
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            id="too many templates",
        ),
        pytest.param(
            workload(template("t"), template("t")),
            "spec.podGroupTemplates[1]: Duplicate value",
            id="two of one name",
        ),
    ],
)
def test_refused_workloads(cluster: Booted, obj: Object, why: str) -> None:
    assert why in cluster.refused(WORKLOADS, obj)[1]


def test_fields_of_other_gates_are_dropped(cluster: Booted) -> None:
    more: dict[str, Any] = {
        "disruptionMode": "PodGroup",
        "priority": 3,
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
    }
    assert cluster.create(POD_GROUPS, group(**more))["spec"] == {"schedulingPolicy": GANG}
    stored = cluster.create(WORKLOADS, workload(template("t", **more)))
    assert stored["spec"]["podGroupTemplates"] == [template("t")]


def test_a_group_does_not_change(cluster: Booted) -> None:
    cluster.create(POD_GROUPS, group())

    def grow(obj: Object) -> Object:
        obj["spec"]["schedulingPolicy"] = {"gang": {"minCount": 3}}
        return obj

    with pytest.raises(Exception, match="field is immutable"):
        cluster.update(POD_GROUPS, "default/g", grow)


@pytest.mark.parametrize("features", [(), (GENERIC_WORKLOAD,)], ids=["off", "on"])
def test_pods_have_a_group_only_with_the_gate(features: tuple[str, ...]) -> None:
    cluster = Booted(*features)
    assert ("schedulingGroup" in cluster.create(PODS, pod())["spec"]) is bool(features)
    job = {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}},
    }
    stored = cluster.create(JOBS, job)["spec"]["template"]["spec"]
    assert ("schedulingGroup" in stored) is bool(features)


PRIORITY_CLASSES = find("scheduling.k8s.io", "v1", "priorityclasses")
PREEMPTION = (GENERIC_WORKLOAD, "GangScheduling", "WorkloadAwarePreemption")
PREEMPTING_GROUPS, _ = gated_kinds(PREEMPTION)


def priority_class(name: str, value: int, *, is_default: bool = False) -> Object:
    return {"metadata": {"name": name}, "value": value, "globalDefault": is_default}


@pytest.fixture
def preempting() -> Booted:
    cluster = Booted(*PREEMPTION)
    cluster.create(PRIORITY_CLASSES, priority_class("high", 1000))
    return cluster


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({}, (None, 0), id="it says nothing"),
        pytest.param({"priorityClassName": "high"}, ("high", 1000), id="it names a class"),
        pytest.param(
            {"priorityClassName": "high", "priority": 1000}, ("high", 1000), id="and its priority"
        ),
    ],
)
def test_a_group_gets_the_priority_of_its_class(
    preempting: Booted, spec: Object, want: tuple[str | None, int]
) -> None:
    stored = preempting.create(PREEMPTING_GROUPS, group(**spec))["spec"]
    assert (stored.get("priorityClassName"), stored["priority"]) == want


def test_a_group_without_a_class_is_of_the_default_one(preempting: Booted) -> None:
    preempting.create(PRIORITY_CLASSES, priority_class("usual", 7, is_default=True))
    stored = preempting.create(PREEMPTING_GROUPS, group())["spec"]
    assert (stored["priorityClassName"], stored["priority"]) == ("usual", 7)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"priorityClassName": "none"}, "no PriorityClass with name none was found",
            id="no such class",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 9999},
            r"the integer value of priority \(9999\) must not be provided in pod group spec; "
            "priority admission controller computed 1000 from the given PriorityClass name",
            id="another priority",
        ),
    ],
)  # fmt: skip
def test_a_priority_that_no_class_has_is_refused(
    preempting: Booted, spec: Object, why: str
) -> None:
    with pytest.raises(StatusError, match=why):
        preempting.create(PREEMPTING_GROUPS, group(**spec))


def test_without_the_gate_groups_have_no_priorities(cluster: Booted) -> None:
    stored = cluster.create(POD_GROUPS, group(priorityClassName="none", priority=9))["spec"]
    assert "priority" not in stored
    assert "priorityClassName" not in stored
