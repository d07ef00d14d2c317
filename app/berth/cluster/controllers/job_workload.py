"""The Workload and the PodGroup of a Job whose pods are a gang (KEP-5547, spec G2.4).

An Indexed Job that runs all its pods at once gets both before its first pod, and its pods name the
group. As ``job_scheduling_manager.go`` upstream, with two differences. Those of an earlier Job of
the same name, which are on their way out, are passed over. And the group does not own the pods: it
stays until they have ended, and they would stay with it when their Job is deleted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from berth.cluster.actions import Create
from berth.cluster.controllers.claims import owner_reference
from berth.cluster.controllers.job_pods import JobView
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import ResourceView
from berth.cluster.kinds.builtin import find
from berth.cluster.kinds.gates import SCHEDULING
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.cluster.strategies.job import is_gang
from berth.cluster.writes.identities import SUFFIX_ALPHABET

JOBS: Final = find("batch", "v1", "jobs")
ALPHA: Final = f"{SCHEDULING}/v1alpha2"
"""The version of Kubernetes 1.36, where a group names its template in another field."""
WORKLOADS: Final = "workloads"
POD_GROUPS: Final = "podgroups"

SCHEDULING_FIELDS: Final[Sequence[str]] = (
    "schedulingPolicy",
    "schedulingConstraints",
    "disruptionMode",
    "resourceClaims",
)
"""Those that a Job, the template of a group and the group have in common, since 1.37."""

LONGEST_NAME: Final = 253
FNV_OFFSET, FNV_PRIME = 0x811C9DC5, 0x01000193


class Gang(NamedTuple):
    """How the pods of a Job are scheduled."""

    group: str = ""
    """The PodGroup that they name; empty: none."""
    create: Create | None = None
    """What has to be there before any pod."""


ALONE: Final = Gang()


class JobWorkloads:
    """Finds the Workload and the PodGroup of each Job, or what creates them. Writes nothing."""

    def __init__(
        self, workloads: Table[ResourceView], groups: Table[ResourceView], *, api_version: str
    ) -> None:
        """Of the objects *api_version* is served."""
        self._api_version = api_version
        self._workloads = workloads
        self._groups = groups
        self._of_job = workloads.index(_job_of)
        self._of_workload = groups.index(_workload_of)

    def subscribe(self, enqueue: Callable[[str], None]) -> None:
        def changed(old: ResourceView | None, new: ResourceView | None) -> None:
            for each in (old, new):
                owner = each.metadata.controller if each is not None else None
                if (
                    each is not None
                    and owner is not None
                    and _is_job(owner.api_version, owner.kind)
                ):
                    enqueue(f"{each.metadata.namespace}/{owner.name}")

        self._workloads.listen(changed)
        self._groups.listen(changed)

    def of(self, job: JobView, pods: Sequence[PodView]) -> Gang:
        """Return how the *pods* of *job*, those that it has and those to come, are scheduled."""
        scheduling = _scheduling_of(job)
        if scheduling is None:
            return ALONE
        meta = job.metadata
        workloads = list(_relevant(job, self._of_job.get(meta.key).values()))
        if not workloads:
            return Gang(create=self._new_workload(job, scheduling)) if _is_new(job, pods) else ALONE
        workload = workloads[0]
        templates = workload.spec.get("podGroupTemplates") or []
        if len(workloads) > 1 or not _is_controlled(workload, job) or len(templates) != 1:
            return ALONE
        key = f"{meta.namespace}/{workload.metadata.name}"
        groups = list(_relevant(job, self._of_workload.get(key).values()))
        if not groups:
            return Gang(create=self._new_pod_group(job, workload, templates[0]))
        if len(groups) > 1 or not _is_controlled(groups[0], job):
            return ALONE
        return Gang(groups[0].metadata.name)

    def _new_workload(self, job: JobView, scheduling: Object) -> Create:
        name = job.metadata.name
        spec = {
            "controllerRef": {"apiGroup": JOBS.group, "kind": JOBS.kind, "name": name},
            "podGroupTemplates": [{"name": f"{name}-pgt-0", **scheduling}],
        }
        owners = [owner_reference(job, JOBS)]
        return self._create(job, WORKLOADS, "Workload", workload_name(job), owners, spec)

    def _new_pod_group(self, job: JobView, workload: ResourceView, template: Object) -> Create:
        meta = workload.metadata
        of_workload = {
            "apiVersion": self._api_version,
            "kind": "Workload",
            "name": meta.name,
            "uid": meta.uid,
        }
        spec = {
            **self._reference(meta.name, template["name"]),
            **{name: template[name] for name in SCHEDULING_FIELDS if name in template},
        }
        name = pod_group_name(meta.name, template["name"])
        owners = [owner_reference(job, JOBS), of_workload]
        return self._create(job, POD_GROUPS, "PodGroup", name, owners, spec)

    def _reference(self, workload: str, template: str) -> Object:
        """Return the field of a group that says which template it was made from."""
        if self._api_version == ALPHA:
            names = {"workloadName": workload, "podGroupTemplateName": template}
            return {"podGroupTemplateRef": {"workload": names}}
        return {"workloadRef": {"workloadName": workload, "templateName": template}}

    def _create(
        self,
        job: JobView,
        plural: str,
        kind: str,
        name: str,
        owners: Sequence[Object],
        spec: Object,
    ) -> Create:
        namespace = job.metadata.namespace
        metadata = {"name": name, "namespace": namespace, "ownerReferences": owners}
        body = {"apiVersion": self._api_version, "kind": kind, "metadata": metadata, "spec": spec}
        return Create(f"/apis/{self._api_version}/namespaces/{namespace}/{plural}", body)


def _scheduling_of(job: JobView) -> Object | None:
    """Return how the pods of *job* are scheduled as a group; None: they are none.

    A Job may say so itself since 1.37. That a gang without a count is all of its pods, and that the
    rule for Jobs that say nothing is that of 1.36, are guesses (1.37 spec N14).
    """
    said: Object = job.spec.get("scheduling") or {}
    template: Object = (job.spec.get("template") or {}).get("spec") or {}
    policy: Object | None = said.get("schedulingPolicy")
    if policy is None or template.get("schedulingGroup") is not None:
        gang = {"schedulingPolicy": {"gang": {"minCount": job.parallelism}}}
        return gang if is_gang(job.spec) else None
    if policy.get("gang") is not None:
        policy = {"gang": {"minCount": policy["gang"].get("minCount") or job.parallelism}}
    rest = {name: said[name] for name in SCHEDULING_FIELDS[1:] if name in said}
    return {"schedulingPolicy": policy, **rest}


def workload_name(job: JobView) -> str:
    """Return the name of the Workload of *job*: that of the Job, and a hash of its uid."""
    # What Go's spew, configured as in pkg/util/hash, writes for a types.UID.
    suffix = _hash(f"(types.UID){job.metadata.uid}")
    return f"{job.metadata.name[: LONGEST_NAME - len(suffix) - 1]}-{suffix}"


def pod_group_name(workload: str, template: str) -> str:
    """Return the name of the group of a *template* of *workload*: both names, and their hash."""
    suffix = _hash(workload + template)
    room = LONGEST_NAME - len(suffix) - 2
    if len(workload) + len(template) > room:
        half = room // 2
        if len(workload) <= half:
            template = template[: room - len(workload)]
        elif len(template) <= half:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - half], template[:half]
    return f"{workload}-{template}-{suffix}"


def _hash(text: str) -> str:
    """Return the FNV-1a hash of *text* in 32 bits, in letters that make no words."""
    value = FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFF
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(value))


def _is_new(job: JobView, pods: Sequence[PodView]) -> bool:
    """Whether *job* has never begun: those that have stay as they are when the gate is turned on.

    A Job that was suspended at some time may have begun.
    """
    known = {condition.get("type") for condition in job.status.get("conditions") or ()}
    return not (
        pods
        or job.metadata.deletion_timestamp
        or job.status.get("startTime")
        or job.count("succeeded")
        or job.count("failed")
        or "Suspended" in known
    )


def _relevant(job: JobView, found: Iterable[ResourceView]) -> Iterator[ResourceView]:
    """Yield those that do not belong to another Job, which had the same name."""
    for each in found:
        owner = each.metadata.controller
        is_of_a_job = owner is not None and _is_job(owner.api_version, owner.kind)
        if not is_of_a_job or _is_controlled(each, job):
            yield each


def _is_controlled(obj: ResourceView, job: JobView) -> bool:
    owner = obj.metadata.controller
    return owner is not None and owner.uid == job.metadata.uid


def _is_job(api_version: str, kind: str) -> bool:
    return (api_version, kind) == (JOBS.group_version, JOBS.kind)


def _job_of(workload: ResourceView) -> str:
    """Return the key of the Job that *workload* says it is for; empty: it is for no Job."""
    reference: Object = workload.spec.get("controllerRef") or {}
    if (reference.get("apiGroup"), reference.get("kind")) != (JOBS.group, JOBS.kind):
        return ""
    name = reference.get("name")
    return f"{workload.metadata.namespace}/{name}" if name else ""


def _workload_of(group: ResourceView) -> str:
    """Return the key of the Workload that *group* was made from; empty: from none."""
    in_alpha: Object = (group.spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    name = (group.spec.get("workloadRef") or in_alpha).get("workloadName")
    return f"{group.metadata.namespace}/{name}" if name else ""
