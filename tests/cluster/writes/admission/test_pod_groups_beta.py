"""PodGroups, Workloads and CompositePodGroups of Kubernetes 1.37 (1.37 spec N7.2, N11, N14)."""

from typing import Any, Final

import pytest

from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gated import gated_kinds
from berth.cluster.resources import Object, ResourceType
from tests.cluster.writes.booted import Booted

GROUPS: Final = ("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption")
ALL: Final = (
    *GROUPS,
    "CompositePodGroup",
    "DRAWorkloadResourceClaims",
    "PodGroupPreemptionPolicy",
    "TopologyAwareWorkloadScheduling",
)
POD_GROUPS, WORKLOADS, COMPOSITES, ALPHA_GROUPS, ALPHA_WORKLOADS = gated_kinds(ALL)
PRIORITY_CLASSES: Final = find("scheduling.k8s.io", "v1", "priorityclasses")
GANG: Final[Object] = {"gang": {"minCount": 2}}
WORKLOAD: Final[Object] = {"workloadName": "w", "templateName": "t"}
TOPOLOGY: Final[Object] = {"topology": [{"key": "zone"}]}
FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"


def obj(**spec: Any) -> Object:
    return {"metadata": {"name": "g", "namespace": "default"}, "spec": spec}


def group(**spec: Any) -> Object:
    return obj(**{"schedulingPolicy": GANG, **spec})


def composite(**spec: Any) -> Object:
    policy = {"gang": {"minGroupCount": 2}}
    return obj(**{"schedulingPolicy": policy, "workloadRef": WORKLOAD, **spec})


def template(name: str = "t", **more: Any) -> Object:
    return {"name": name, "schedulingPolicy": GANG, **more}


def nested(levels: int) -> Object:
    """A template of groups in groups, so many levels in all."""
    inner = template()
    field = "podGroupTemplates"
    for level in range(levels - 1):
        policy = {"gang": {"minGroupCount": 1}}
        inner = {"name": f"c{level}", "schedulingPolicy": policy, field: [inner]}
        field = "compositePodGroupTemplates"
    return inner


def test_a_new_group_is_held_and_has_its_defaults() -> None:
    kind, _ = gated_kinds(GROUPS)
    stored = Booted(*GROUPS).create(kind, {**group(), "status": {"conditions": []}})
    assert kind.group_version == "scheduling.k8s.io/v1beta1"
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert stored["status"] == {}
    assert stored["spec"] == {
        "schedulingPolicy": GANG,
        "disruptionMode": {"single": {}},
        "priority": 0,
    }


def test_the_defaults_of_two_groups_are_not_one_object() -> None:
    first, second = group(), group()
    for made in (first, second):
        POD_GROUPS.strategy.default(made)
    first["spec"]["disruptionMode"]["all"] = {}
    assert second["spec"]["disruptionMode"] == {"single": {}}


def test_a_workload_need_not_exist() -> None:
    stored = Booted(*GROUPS).create(POD_GROUPS, group(workloadRef=WORKLOAD))
    assert stored["spec"]["workloadRef"] == WORKLOAD


def test_with_its_gate_a_group_has_the_usual_preemption_policy() -> None:
    for kind, made in ((POD_GROUPS, group()), (COMPOSITES, composite())):
        stored = Booted(*ALL).create(kind, made)["spec"]
        assert stored["preemptionPolicy"] == "PreemptLowerPriority"


def test_a_composite_group_gets_its_priority_and_no_finalizer() -> None:
    cluster = Booted(*ALL)
    cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7})
    stored = cluster.create(COMPOSITES, composite(priorityClassName="high"))
    assert stored["spec"]["priority"] == 7
    assert stored["spec"]["disruptionMode"] == {"single": {}}
    assert "finalizers" not in stored["metadata"]


ONE_MODE: Final = "must specify one of: `single`, `all`"
ONE_LIST: Final = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"


@pytest.mark.parametrize(
    ("kind", "made", "why"),
    [
        pytest.param(
            POD_GROUPS,
            obj(),
            'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`',
            id="a group without a policy",
        ),
        pytest.param(
            POD_GROUPS,
            group(schedulingPolicy={"basic": {}, **GANG}),
            'spec.schedulingPolicy: Invalid value: "{basic, gang}"',
            id="two policies",
        ),
        pytest.param(
            POD_GROUPS,
            group(schedulingPolicy={"gang": {"minCount": -1}}),
            "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal"
            " to 1",
            id="a gang of less than one",
        ),
        pytest.param(
            POD_GROUPS,
            group(workloadRef={"workloadName": "W"}),
            'spec.workloadRef.workloadName: Invalid value: "W"',
            id="a Workload that cannot be",
        ),
        pytest.param(
            POD_GROUPS,
            group(workloadRef={"workloadName": "w"}),
            "spec.workloadRef.templateName: Required value",
            id="no template of a Workload",
        ),
        pytest.param(
            POD_GROUPS,
            group(parentCompositePodGroupName="c"),
            "spec.workloadRef: Required value",
            id="a parent without a Workload",
        ),
        pytest.param(
            POD_GROUPS,
            group(disruptionMode={}),
            f'spec.disruptionMode: Invalid value: "": {ONE_MODE}',
            id="no mode",
        ),
        pytest.param(
            POD_GROUPS,
            group(preemptionPolicy="Sometimes"),
            'spec.preemptionPolicy: Unsupported value: "Sometimes": supported values: "Never",'
            ' "PreemptLowerPriority"',
            id="no policy of preemption",
        ),
        pytest.param(
            COMPOSITES,
            obj(schedulingPolicy={"basic": {}}),
            "spec.workloadRef: Required value",
            id="a composite group of no Workload",
        ),
        pytest.param(
            COMPOSITES,
            composite(schedulingPolicy={"gang": {"minGroupCount": -1}}),
            "spec.schedulingPolicy.gang.minGroupCount: Invalid value: -1",
            id="a composite gang of less than one",
        ),
        pytest.param(WORKLOADS, obj(), f'spec: Invalid value: "": {ONE_LIST}', id="no templates"),
        pytest.param(
            WORKLOADS,
            obj(podGroupTemplates=[template(f"t{number}") for number in range(9)]),
            "spec.podGroupTemplates: Too many: 9: must have at most 8 items",
            id="too many templates",
        ),
        pytest.param(
            WORKLOADS,
            obj(podGroupTemplates=[template(), template()]),
            'spec.podGroupTemplates[1]: Duplicate value: {"name":"t"}',
            id="two templates of one name",
        ),
        pytest.param(
            WORKLOADS,
            obj(compositePodGroupTemplates=[nested(5)]),
            "must not be deeper than 4 levels",
            id="five levels",
        ),
        pytest.param(
            WORKLOADS,
            obj(compositePodGroupTemplates=[{"name": "c", "schedulingPolicy": {"basic": {}}}]),
            f'spec.compositePodGroupTemplates[0]: Invalid value: "": {ONE_LIST}',
            id="a composite template of nothing",
        ),
    ],
)
def test_refused(kind: ResourceType, made: Object, why: str) -> None:
    code, message = Booted(*ALL).refused(kind, made)
    assert code == 422
    assert why in message


def test_four_levels_are_taken() -> None:
    Booted(*ALL).create(WORKLOADS, obj(compositePodGroupTemplates=[nested(4)]))


@pytest.mark.parametrize(
    ("gate", "field", "value"),
    [
        ("CompositePodGroup", "parentCompositePodGroupName", "c"),
        ("PodGroupPreemptionPolicy", "preemptionPolicy", "Never"),
        ("TopologyAwareWorkloadScheduling", "schedulingConstraints", TOPOLOGY),
    ],
)
def test_fields_that_only_a_gate_allows(gate: str, field: str, value: Any) -> None:
    more = {field: value, "workloadRef": WORKLOAD}
    with_gate, without = (gated_kinds(gates)[0] for gates in ((*GROUPS, gate), GROUPS))
    assert Booted(*GROUPS, gate).create(with_gate, group(**more))["spec"][field] == value
    code, message = Booted(*GROUPS).refused(without, group(**more))
    assert code == 422
    assert f"spec.{field}: Forbidden: requires the feature gate {gate}" in message


def test_claims_are_dropped_without_their_gate() -> None:
    claims = [{"name": "gpu", "resourceClaimName": "c"}]
    for gates in (GROUPS, (*GROUPS, "DRAWorkloadResourceClaims")):
        groups, workloads = gated_kinds(gates)
        cluster = Booted(*gates)
        is_kept = "DRAWorkloadResourceClaims" in gates
        stored = cluster.create(groups, group(resourceClaims=claims))["spec"]
        assert ("resourceClaims" in stored) is is_kept
        made = obj(podGroupTemplates=[template(resourceClaims=claims)])
        [kept] = cluster.create(workloads, made)["spec"]["podGroupTemplates"]
        assert ("resourceClaims" in kept) is is_kept


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 3}}}, "", id="how many it needs"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}}}, "field is immutable", id="whether it is a gang"
        ),
        pytest.param({"disruptionMode": {"all": {}}}, "field is immutable", id="its mode"),
        pytest.param({"workloadRef": WORKLOAD}, "field is immutable", id="its Workload"),
        pytest.param({"priority": 3}, "field is immutable", id="its priority"),
    ],
)
def test_what_may_change_of_a_group(change: Object, why: str) -> None:
    cluster = Booted(*ALL)
    cluster.create(POD_GROUPS, group())

    def changed(stored: Object) -> Object:
        return {**stored, "spec": {**stored["spec"], **change}}

    if why:
        with pytest.raises(StatusError, match=why):
            cluster.update(POD_GROUPS, "default/g", changed)
        return
    stored = cluster.update(POD_GROUPS, "default/g", changed)
    assert stored["spec"].items() >= change.items()
    assert stored["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("templates", "why"),
    [
        pytest.param([template(schedulingPolicy={"gang": {"minCount": 3}})], "", id="a count"),
        pytest.param(
            [template(priority=1)],
            r"spec.podGroupTemplates\[0\].priority: Invalid value: 1: field is immutable",
            id="a priority",
        ),
        pytest.param(
            [template(), template("another")],
            "spec.podGroupTemplates: Invalid value: .*: field is immutable",
            id="one more template",
        ),
    ],
)
def test_what_may_change_of_a_workload(templates: list[Object], why: str) -> None:
    cluster = Booted(*ALL)
    cluster.create(WORKLOADS, obj(podGroupTemplates=[template()]))

    def changed(stored: Object) -> Object:
        return {**stored, "spec": {"podGroupTemplates": templates}}

    if why:
        with pytest.raises(StatusError, match=why):
            cluster.update(WORKLOADS, "default/g", changed)
        return
    cluster.update(WORKLOADS, "default/g", changed)


def test_both_versions_show_the_same_groups() -> None:
    cluster = Booted(*ALL)
    made = cluster.create(ALPHA_GROUPS, group())
    assert ALPHA_GROUPS.is_view
    assert cluster.get(POD_GROUPS, "default/g") == made
    assert ALPHA_GROUPS.storage_key == POD_GROUPS.storage_key
    assert ALPHA_WORKLOADS.group_version == "scheduling.k8s.io/v1alpha3"


def test_what_is_served_with_which_gates() -> None:
    def names(*gates: str) -> set[str]:
        return {f"{kind.version}/{kind.plural}" for kind in gated_kinds(gates)}

    assert names() == set()
    assert names(*GROUPS) == {"v1beta1/podgroups", "v1beta1/workloads"}
    assert names(*ALL) == {
        "v1beta1/podgroups",
        "v1beta1/workloads",
        "v1alpha3/compositepodgroups",
        "v1alpha3/podgroups",
        "v1alpha3/workloads",
    }
