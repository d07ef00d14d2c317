"""PodGroups and Workloads of Kubernetes 1.36: what is refused, dropped and held."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.kinds.gates import GENERIC_WORKLOAD
from berth.cluster.resources import Object
from berth.cluster.strategies.pod_groups import prepare_pod_group
from tests.cluster.writes.booted import Booted

RELEASE = "1.36"
PODS = find("", "v1", "pods")
JOBS = find("batch", "v1", "jobs")
GATES = (GENERIC_WORKLOAD, "DRAWorkloadResourceClaims")
POD_GROUPS, WORKLOADS = gated_kinds(GATES, RELEASE)
GANG: Object = {"gang": {"minCount": 2}}


@pytest.fixture
def cluster() -> Booted:
    return Booted(*GATES, release=RELEASE)


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


def with_claims(*claims: Object) -> Object:
    return group(resourceClaims=list(claims))


ONE = {"name": "gpu", "resourceClaimName": "c"}
EITHER = "`resourceClaimName`, `resourceClaimTemplateName`"
CLAIMS = [
    pytest.param(
        with_claims(*({**ONE, "name": f"c{number}"} for number in range(5))),
        "spec.resourceClaims: Too many: 5: must have at most 4 items",
        id="too many claims",
    ),
    pytest.param(
        with_claims(ONE, ONE),
        'spec.resourceClaims[1]: Duplicate value: {"name":"gpu"}',
        id="two claims of one name",
    ),
    pytest.param(
        with_claims({**ONE, "name": "GPU"}),
        'spec.resourceClaims[0].name: Invalid value: "GPU"',
        id="a claim with a name that is no label",
    ),
    pytest.param(
        with_claims({"name": "gpu"}),
        f'spec.resourceClaims[0]: Invalid value: "": must specify one of: {EITHER}',
        id="a claim of nothing",
    ),
    pytest.param(
        with_claims({**ONE, "resourceClaimTemplateName": "t"}),
        'spec.resourceClaims[0]: Invalid value: "{resourceClaimName, resourceClaimTemplateName}":'
        f" must specify exactly one of: {EITHER}",
        id="a claim and its template",
    ),
    pytest.param(
        with_claims({"name": "gpu", "resourceClaimTemplateName": "T"}),
        'spec.resourceClaims[0].resourceClaimTemplateName: Invalid value: "T"',
        id="of a template that cannot be",
    ),
]


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
        *CLAIMS,
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


def test_what_is_evicted_at_a_time_is_a_pod_by_default() -> None:
    features = (GENERIC_WORKLOAD, "GangScheduling", "WorkloadAwarePreemption")
    cluster, (groups, workloads) = (
        Booted(*features, release=RELEASE),
        gated_kinds(features, RELEASE),
    )
    assert cluster.create(groups, group())["spec"]["disruptionMode"] == "Pod"
    stored = cluster.create(workloads, workload(template("t")))
    assert stored["spec"]["podGroupTemplates"] == [template("t", disruptionMode="Pod")]
    whole = cluster.create(groups, group("whole", disruptionMode="PodGroup"))
    assert whole["spec"]["disruptionMode"] == "PodGroup"


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        pytest.param(
            "disruptionMode",
            "Node",
            'spec.disruptionMode: Unsupported value: "Node": supported values: "Pod", "PodGroup"',
            id="no mode",
        ),
        pytest.param(
            "priority",
            1_000_000_001,
            "spec.priority: Invalid value: 1000000001: must be less than or equal to 1000000000",
            id="a priority of the system",
        ),
        pytest.param(
            "priorityClassName",
            "No Name",
            'spec.priorityClassName: Invalid value: "No Name"',
            id="no name of a class",
        ),
    ],
)
def test_refused_fields_of_preemption(field: str, value: object, why: str) -> None:
    obj = group()
    obj["spec"][field] = value
    problems = POD_GROUPS.strategy.validate(obj, None)
    assert why in "; ".join(f"{problem.field}: {problem.message}" for problem in problems)


def test_fields_that_were_stored_before_the_gate_was_turned_on_do_not_change() -> None:
    prepare = prepare_pod_group(("WorkloadAwarePreemption",))
    old, new = group(), group()
    prepare(new, old)
    assert new == old


def test_a_group_does_not_change(cluster: Booted) -> None:
    cluster.create(POD_GROUPS, group())

    def grow(obj: Object) -> Object:
        obj["spec"]["schedulingPolicy"] = {"gang": {"minCount": 3}}
        return obj

    with pytest.raises(Exception, match="field is immutable"):
        cluster.update(POD_GROUPS, "default/g", grow)


@pytest.mark.parametrize("features", [(), (GENERIC_WORKLOAD,)], ids=["off", "on"])
def test_pods_have_a_group_only_with_the_gate(features: tuple[str, ...]) -> None:
    cluster = Booted(*features, release=RELEASE)
    assert ("schedulingGroup" in cluster.create(PODS, pod())["spec"]) is bool(features)
    job = {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}},
    }
    stored = cluster.create(JOBS, job)["spec"]["template"]["spec"]
    assert ("schedulingGroup" in stored) is bool(features)


def test_groups_have_claims_only_with_the_gate(cluster: Booted) -> None:
    assert cluster.create(POD_GROUPS, with_claims(ONE))["spec"]["resourceClaims"] == [ONE]
    without, _ = gated_kinds((GENERIC_WORKLOAD,), RELEASE)
    stored = Booted(GENERIC_WORKLOAD, release=RELEASE).create(without, with_claims(ONE))
    assert "resourceClaims" not in stored["spec"]


@pytest.mark.parametrize(
    ("status", "why"),
    [
        pytest.param(
            {"name": "gpu", "resourceClaimName": "made"}, "", id="of a claim of the group"
        ),
        pytest.param(
            {"name": "nic", "resourceClaimName": "made"},
            'status.resourceClaimStatuses[0].name: Invalid value: "nic": must match the name of an'
            " entry in `spec.resourceClaims`",
            id="of no claim of the group",
        ),
        pytest.param(
            {"name": "gpu", "resourceClaimName": "Made"},
            'status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "Made"',
            id="of a claim that cannot be",
        ),
    ],
)
def test_the_names_of_claims_of_a_group(status: Object, why: str) -> None:
    group = with_claims(ONE) | {"status": {"resourceClaimStatuses": [status]}}
    errors = list(map(str, POD_GROUPS.strategy.validate_status(group, {})))
    assert [error.startswith(why) for error in errors] == ([True] if why else [])
