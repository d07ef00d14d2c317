"""Which Jobs get a Workload and a PodGroup, and what these are."""

from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Create, Patch
from berth.cluster.controllers.controller import Outcome
from berth.cluster.controllers.job_pods import JobView
from berth.cluster.controllers.job_workload import (
    JobWorkloads,
    _hash,
    pod_group_name,
    workload_name,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.resources import Object
from berth.cluster.strategies.job import is_gang
from berth.kube.client.errors import ForbiddenError
from tests.cluster.controllers.jobs import KEY, STAMP, World, job, pod

GANG: Object = {"completionMode": "Indexed", "completions": 4, "parallelism": 4}
API = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default"
POLICY: Object = {"gang": {"minCount": 4}}
OWNER: Object = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
OURS: Object = {**OWNER, "uid": "uid-j", "blockOwnerDeletion": True}
EARLIER: Object = {**OWNER, "uid": "uid-earlier"}
NAME = workload_name(JobView.decoder()(msgspec.json.encode(job())))
GROUP = pod_group_name(NAME, "j-pgt-0")


def workload(name: str = NAME, *, owner: Object | None = OURS, templates: int = 1) -> Object:
    reference = {"apiGroup": "batch", "kind": "Job", "name": "j"}
    template = {"name": "j-pgt-0", "schedulingPolicy": POLICY}
    spec = {"controllerRef": reference, "podGroupTemplates": [template] * templates}
    return of(name, owner, spec)


def group(name: str = GROUP, *, owner: Object | None = OURS) -> Object:
    reference = {"workloadName": NAME, "podGroupTemplateName": "j-pgt-0"}
    return of(name, owner, {"podGroupTemplateRef": {"workload": reference}})


def of(name: str, owner: Object | None, spec: Object) -> Object:
    owners = [] if owner is None else [owner]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"metadata": {**metadata, "ownerReferences": owners}, "spec": spec}


class GangWorld(World):
    """Jobs whose pods belong together, with Workloads and groups that are there."""

    def __init__(
        self,
        obj: Object,
        *pods: Object,
        there: tuple[Object, ...] = (),
        version: str = "v1alpha2",
    ) -> None:
        self.workloads: Table[ResourceView] = Table()
        self.groups: Table[ResourceView] = Table()
        super().__init__(
            obj,
            *pods,
            workloads=JobWorkloads(
                self.workloads, self.groups, api_version=f"scheduling.k8s.io/{version}"
            ),
        )
        for each in there:
            is_workload = "podGroupTemplates" in each["spec"]
            table = self.workloads if is_workload else self.groups
            table.on_add(msgspec.convert(each, ResourceView))

    def creates(self) -> list[Create]:
        return [action for action in self.plan().actions if isinstance(action, Create)]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(GANG, True, id="all at once"),
        pytest.param({**GANG, "completions": 8}, False, id="half at a time"),
        pytest.param({**GANG, "completions": 1, "parallelism": 1}, False, id="one is no gang"),
        pytest.param({**GANG, "completionMode": "NonIndexed"}, False, id="without indexes"),
        pytest.param({"parallelism": 4}, False, id="a queue"),
        pytest.param(
            {**GANG, "template": {"spec": {"schedulingGroup": {"podGroupName": "mine"}}}}, False,
            id="it says its group itself",
        ),
    ],
)  # fmt: skip
def test_which_jobs_are_gangs(spec: dict[str, Any], want: bool) -> None:
    assert is_gang(job(**spec)["spec"]) is want


def test_first_there_is_a_workload() -> None:
    world = GangWorld(job(**GANG))
    [create] = world.plan().actions
    assert create == Create(
        f"{API}/workloads",
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "Workload",
            "metadata": {"name": NAME, "namespace": "default", "ownerReferences": [OURS]},
            "spec": {
                "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "j"},
                "podGroupTemplates": [{"name": "j-pgt-0", "schedulingPolicy": POLICY}],
            },
        },
    )
    world.controller.finished(KEY, Outcome(create))
    assert [(each.reason, each.message) for each in world.recorded] == [
        ("WorkloadCreated", f"Created Workload {NAME} for Job j")
    ]


def test_then_a_group() -> None:
    world = GangWorld(job(**GANG), there=(workload(),))
    [create] = world.plan().actions
    of_workload = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload"}
    assert create == Create(
        f"{API}/podgroups",
        {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {
                "name": GROUP,
                "namespace": "default",
                "ownerReferences": [OURS, {**of_workload, "name": NAME, "uid": f"uid-{NAME}"}],
            },
            "spec": {
                "podGroupTemplateRef": {
                    "workload": {"workloadName": NAME, "podGroupTemplateName": "j-pgt-0"}
                },
                "schedulingPolicy": POLICY,
            },
        },
    )
    world.controller.finished(KEY, Outcome(create, error=ForbiddenError(403, "Forbidden", "no")))
    assert world.recorded == []


def test_then_pods_that_name_it() -> None:
    world = GangWorld(job(**GANG), there=(workload(), group()))
    status, *creates = world.plan().actions
    assert isinstance(status, Patch)
    assert status.body["status"]["startTime"] == STAMP
    specs = [create.body["spec"] for create in creates if isinstance(create, Create)]
    assert [spec["schedulingGroup"] for spec in specs] == [{"podGroupName": GROUP}] * 4


ALONE: list[str] = ["Pod"] * 4
SUSPENDED: Object = {"conditions": [{"type": "Suspended", "status": "False"}]}


@pytest.mark.parametrize(
    ("status", "there", "want"),
    [
        pytest.param({"startTime": STAMP}, (), ALONE, id="it has begun without"),
        pytest.param({"failed": 1}, (), ALONE, id="a pod of it has failed"),
        pytest.param(SUSPENDED, (), ALONE, id="it has been suspended"),
        pytest.param({"startTime": STAMP}, (workload(),), ["PodGroup"], id="it has begun with one"),
        pytest.param({}, (workload("mine", owner=None),), ALONE, id="somebody made a Workload"),
        pytest.param({}, (workload(), workload("b")), ALONE, id="there are two"),
        pytest.param({}, (workload(templates=2),), ALONE, id="one of another shape"),
        pytest.param({}, (workload(), group("mine", owner=None)), ALONE, id="somebody's group"),
        pytest.param({}, (workload(), group(), group("b")), ALONE, id="there are two groups"),
        pytest.param({}, (workload("old", owner=EARLIER),), ["Workload"],
            id="that of an earlier Job of the name"),
    ],
)  # fmt: skip
def test_what_is_made_for_a_gang(
    status: Object, there: tuple[Object, ...], want: list[str]
) -> None:
    world = GangWorld(job(status=status, **GANG), there=there)
    creates = world.creates()
    assert [create.body["kind"] for create in creates] == want
    assert not any("schedulingGroup" in create.body["spec"] for create in creates)


def test_a_job_with_pods_stays_as_it_is() -> None:
    creates = GangWorld(job(**GANG), pod("a", index=0)).creates()
    assert [create.body["kind"] for create in creates] == ["Pod"] * 3


def test_the_job_hears_of_its_workload_and_group() -> None:
    world = GangWorld(job(**GANG), there=(workload(), group("g"), workload("b", owner=None)))
    assert world.enqueued == [KEY] * 3


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", 0x811C9DC5, id="nothing"),
        pytest.param("a", 0xE40C292C, id="a letter"),
        pytest.param("foobar", 0xBF9CF968, id="a word"),
    ],
)
def test_hashes_are_those_of_fnv_1a(text: str, want: int) -> None:
    letters = "bcdfghjklmnpqrstvwxz2456789"
    assert _hash(text) == "".join(letters[ord(each) % 27] for each in str(want))


@pytest.mark.parametrize(
    ("workload", "template"),
    [
        pytest.param("w", "t", id="short ones"),
        pytest.param("w" * 250, "t", id="a long Workload"),
        pytest.param("w", "t" * 250, id="a long template"),
        pytest.param("w" * 200, "t" * 200, id="both"),
    ],
)
def test_names_are_never_too_long(workload: str, template: str) -> None:
    name = pod_group_name(workload, template)
    first, second, suffix = name.split("-")
    assert len(name) <= 253
    assert (workload.startswith(first), template.startswith(second)) == (True, True)
    assert suffix == _hash(workload + template)
    if len(workload) == len(template):
        assert len(first) - len(second) in (0, 1)


@pytest.mark.parametrize(
    ("scheduling", "want"),
    [
        pytest.param({}, {"schedulingPolicy": POLICY}, id="a Job that says nothing of it"),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}}, {"schedulingPolicy": POLICY}, id="all of its pods"
        ),
        pytest.param(
            {
                "schedulingPolicy": {"gang": {"minCount": 2}},
                "disruptionMode": {"all": {}},
                "schedulingConstraints": {"topology": [{"key": "zone"}]},
            },
            {
                "schedulingPolicy": {"gang": {"minCount": 2}},
                "disruptionMode": {"all": {}},
                "schedulingConstraints": {"topology": [{"key": "zone"}]},
            },
            id="some of them, in one zone",
        ),
    ],
)
def test_what_a_job_of_1_37_says_of_its_group(scheduling: Object, want: Object) -> None:
    obj = job(**GANG, scheduling=scheduling)
    [create] = GangWorld(obj, version="v1beta1").creates()
    [template] = create.body["spec"]["podGroupTemplates"]
    assert create.path.startswith("/apis/scheduling.k8s.io/v1beta1/")
    assert template == {"name": "j-pgt-0", **want}

    there = workload()
    there["spec"]["podGroupTemplates"] = [template]
    [create] = GangWorld(obj, there=(there,), version="v1beta1").creates()
    reference = {"workloadName": NAME, "templateName": "j-pgt-0"}
    assert create.body["spec"] == {"workloadRef": reference, **want}


def test_a_queue_that_says_that_it_is_a_group_is_one() -> None:
    scheduling: Object = {"schedulingPolicy": {"gang": {}}}
    [create] = GangWorld(job(parallelism=3, scheduling=scheduling), version="v1beta1").creates()
    [template] = create.body["spec"]["podGroupTemplates"]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 3}}
