"""The rights that the chart grants are those that berth uses: none is missing, none is for nothing.

Each mode runs as the chart's service account on an embedded cluster with RBAC.
"""

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from berth.cluster.access import policy
from berth.insight.whatif import admission
from berth.scheduler.framework import kind as kinds
from berth.scheduler.framework.listers import KINDS
from berth.tools.up import access_rights
from tests.helm.cases import of_mode
from tests.helm.installation import (
    PODS,
    Installation,
    Observed,
    installed,
    passes_helm_test,
)
from tests.helm.rendering import Object, of_kind, render
from tests.tools.up.test_scenarios import (
    CLAIMS,
    DEVICE_CLASSES,
    PRIORITIES,
    SLICES,
    STORAGE_CLASSES,
    TEMPLATE,
    TEMPLATES,
    VOLUME_CLAIMS,
    VOLUMES,
    device_slice,
    priority,
    storage_class,
    volume_claim,
    with_device,
    with_volume,
)
from tests.tools.up.world import pod

pytestmark = [pytest.mark.wall, pytest.mark.slow]


class Right(NamedTuple):
    verb: str
    group: str
    resource: str


LOST_ANSWER: Final = "asks whether a pod was bound when the answer to that was lost"
ADMISSION: Final = "no request is about it: plugins of the API server's admission look for it"
BUILT_IN: Final = "part of a role that every cluster has, and that extension API servers share"

LISTED: Final = {
    Right("list", kind.group, kind.resource)
    for kind in KINDS.values()
    if kind not in (kinds.NODES, kinds.PODS)
}
"""What an API server that does not send the state with a watch would be asked for."""

NO_STREAM: Final = "asked for where a watch does not begin with the state, as it does here"
READS: Final = dict.fromkeys(LISTED, NO_STREAM)
REVIEWS: Final = {
    Right("list", "", "configmaps"): BUILT_IN,
    Right("watch", "", "configmaps"): BUILT_IN,
}

GATED: Final = "with a feature gate that is off here"
OTHERS: Final = "with the feature gate for that scheduler's groups, which is off here"
READS_GATED: Final = {
    Right("watch", "scheduling.k8s.io", "podgroups"): GATED,
    Right("watch", "scheduling.k8s.io", "compositepodgroups"): GATED,
    Right("list", "scheduling.x-k8s.io", "podgroups"): OTHERS,
    Right("watch", "scheduling.x-k8s.io", "podgroups"): OTHERS,
    Right("list", "scheduling.volcano.sh", "podgroups"): OTHERS,
    Right("watch", "scheduling.volcano.sh", "podgroups"): OTHERS,
}
ASKED: Final = "asked for when somebody asks why a workload has no pods, or what if"
WORKLOADS: Final = {
    Right("list", group, resource): ASKED
    for group, resources in access_rights.LISTED
    for resource in resources
    if resource not in {kind.resource for kind in admission.KINDS.values()}
}
EXPLAINED: Final = {
    **WORKLOADS,
    **{
        Right("list", kind.group, kind.resource): ASKED  # by GET /snapshot, where that is tried
        for kind in admission.KINDS.values()
    },
}
UNUSED: Final[Mapping[str, Mapping[Right, str]]] = {
    "scheduler": {
        **READS,
        **WORKLOADS,
        **REVIEWS,
        **READS_GATED,
        Right("patch", "scheduling.k8s.io", "podgroups/status"): GATED,
        Right("patch", "resource.k8s.io", "resourceclaims/binding"): ADMISSION,
        Right("update", "resource.k8s.io", "resourceclaims/binding"): ADMISSION,
        Right("update", "", "pods/finalizers"): ADMISSION,
    },
    "extender": {
        **READS,
        **EXPLAINED,
        **READS_GATED,
        Right("list", "", "nodes"): NO_STREAM,
        Right("list", "", "pods"): NO_STREAM,
        Right("get", "", "pods"): LOST_ANSWER,
    },
    "simulator": {**READS, **REVIEWS, **READS_GATED, **WORKLOADS},
    "shadow": {
        **READS,
        **EXPLAINED,
        **REVIEWS,
        **READS_GATED,
        Right("list", "", "nodes"): NO_STREAM,
        Right("list", "", "pods"): NO_STREAM,
    },
}
"""By mode: what is granted and not used here, and why it is granted all the same."""

PUBLIC: Final = ("/healthz", "/livez", "/readyz")
FOR_ADMINISTRATORS: Final = {
    "/configz",
    "/debug/flags",
    "/debug/flags/v",
    "/debug/pprof",
    "/debug/pprof/",
    "/debug/pprof/cmdline",
    "/debug/pprof/goroutine",
    "/debug/pprof/profile",
}
"""What is served, and no role of the chart gives: it costs time, or changes how much is logged."""

NOT_OK: Final = {
    "/debug/cluster/filters": 422,  # of which pod?
    "/debug/shadow": 404,  # it is none
    "/debug/shards": 404,  # there are none
}
"""By path, what those answer that may be read and have no answer."""

ENDLESS: Final = {"/debug/overview/stream"}
"""What may be read and has no end, so that no answer is awaited."""

METRICS_READER: Final = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}
READERS: Final = {"rbac": {"metricsReaders": [METRICS_READER], "users": [METRICS_READER]}}


def granted(objects: list[Object]) -> set[Right]:
    """Return all rights that the release gives to its service account."""
    rules: list[Mapping[str, Any]] = []
    roles = {(r["kind"], r["metadata"]["name"]): r["rules"] for r in rolelike(objects)}
    for kind, built_in in (("ClusterRole", policy.cluster_roles(())), ("Role", policy.roles())):
        roles |= {(kind, role["metadata"]["name"]): role["rules"] for role in built_in}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for binding in of_kind(objects, kind):
            if binding["subjects"][0]["namespace"] != METRICS_READER["namespace"]:
                rules += roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
    return {
        Right(verb, group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rolelike(objects: list[Object]) -> list[Object]:
    return of_kind(objects, "ClusterRole") + of_kind(objects, "Role")


def used(observed: Observed) -> set[Right]:
    """Return what was used, but for discovery, which is everybody's."""
    return {
        Right(each.verb, each.group, each.full_resource) for each in observed.used if each.resource
    }


def check(mode: str, objects: list[Object], observed: Observed) -> None:
    assert observed.refused == []
    unused = granted(objects) - used(observed)
    assert unused == UNUSED[mode].keys()
    assert used(observed) <= granted(objects)


def readable(objects: list[Object]) -> set[str]:
    """Return the paths of berth that others may read, but for those with names in them."""
    urls = {
        url
        for role in of_kind(objects, "ClusterRole")
        for rule in role["rules"]
        if "get" in rule["verbs"]
        for url in rule.get("nonResourceURLs", ())
    }
    return urls - {"/explain/pods/*", "/explain/podgroups/*"}


# What a scheduler does.


LOCAL_CLASS: Final = {
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
GPU_CLASS: Final = {
    "metadata": {"name": "gpu"},
    "spec": {
        "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
        "extendedResourceName": "example.com/gpu",
    },
}


def local_volume(node: str) -> Object:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    terms = [{"matchExpressions": [expression]}]
    return {
        "metadata": {"name": "local"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }


def claim_of(name: str, storage_class_name: str) -> Object:
    claim = volume_claim(name)
    claim["spec"]["storageClassName"] = storage_class_name
    return claim


def wants_gpu(made: Object) -> Object:
    """Add a device to *made* by the way of extended resources."""
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"]["example.com/gpu"] = "1"
    resources["limits"] = {"example.com/gpu": "1"}
    return made


async def bind_and_preempt(release: Installation) -> None:
    await release.create(PRIORITIES, priority("high", 1000))
    await release.create(PODS, pod("low-0", cpu="3"), pod("low-1", cpu="3"))
    await release.create(PODS, pod("too-large", cpu="100"))
    await release.until_bound("low-0", "low-1")
    await release.create(PODS, pod("high", cpu="3", priorityClassName="high"))
    await release.until_bound("high")
    for name in ("low-0", "low-1", "high"):
        if name in await release.items(PODS):
            await release.ask("DELETE", f"{PODS}/{name}")
    await release.until_used("patch", "events")  # too-large is tried again


async def bind_volumes(release: Installation, node: str) -> None:
    await release.create(STORAGE_CLASSES, storage_class("WaitForFirstConsumer"), LOCAL_CLASS)
    await release.create(VOLUMES, local_volume(node))
    await release.create(VOLUME_CLAIMS, volume_claim("made"), claim_of("found", "local"))
    await release.create(PODS, with_volume("made", "made"), with_volume("found", "found"))
    await release.until_bound("made", "found")


async def allocate_devices(release: Installation, node: str) -> None:
    await release.create(DEVICE_CLASSES, GPU_CLASS)
    await release.create(SLICES, device_slice(node, 4))
    await release.create(TEMPLATES, TEMPLATE)
    await release.create(PODS, with_device("by-claim"), wants_gpu(pod("by-name")))
    await release.until_bound("by-claim", "by-name")


async def fail_to_bind(release: Installation) -> None:
    """A pod is deleted, and held, while its volume is made: its devices are given back."""
    await release.create(VOLUME_CLAIMS, volume_claim("late"))
    await release.create(CLAIMS, {"metadata": {"name": "given-back"}, **TEMPLATE["spec"]})
    late = wants_gpu(with_volume("late", "late"))
    late["metadata"]["finalizers"] = ["example.com/held"]
    late["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "given-back"}]
    await release.create(PODS, late)
    await release.until(VOLUME_CLAIMS, lambda claims: "annotations" in claims["late"]["metadata"])
    await release.ask("DELETE", f"{PODS}/late")
    await release.until_used("delete", "resourceclaims")
    await release.until_used("patch", "resourceclaims/status")


async def ask_it(release: Installation) -> None:
    """Its port knows who asks and whether they may: the API server tells it."""
    await release.create(
        "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "prometheus"}}
    )
    token = await release.token_of("default", "prometheus")
    assert (await release.serving("GET", "/metrics")).status_code == 403
    for path in sorted(readable(render(of_mode("scheduler", READERS))) - ENDLESS):
        answer = await release.serving("GET", path, token=token)
        assert answer.status_code == NOT_OK.get(path, 200), (path, answer.text)
    question = {"pods": [{**pod("new"), "kind": "Pod", "apiVersion": "v1"}]}
    answer = await release.serving("POST", "/simulate", token=token, json=question)
    assert answer.status_code == 200, answer.text


async def test_a_scheduler_needs_what_it_has(tmp_path: Path) -> None:
    values = of_mode("scheduler", READERS)
    async with installed(values, tmp_path, nodes=2) as release:
        assert await passes_helm_test(release, render(values))
        node, _ = sorted(await release.items("/api/v1/nodes"))
        await bind_and_preempt(release)
        await bind_volumes(release, node)
        await allocate_devices(release, node)
        await fail_to_bind(release)
        await ask_it(release)
        release.process.send(signal.SIGHUP)
        await release.until_replaced()
        release.process.send(signal.SIGTERM)
        assert await release.process.exit_status() == 0
    assert "forbidden" not in release.process.output
    check("scheduler", render(values), release.observed)


async def test_an_extender_needs_what_it_has(tmp_path: Path) -> None:
    account = {**METRICS_READER, "name": "asker"}
    values = {
        "mode": "extender",
        "extender": {"tokens": True},
        "rbac": {"extenderClients": [account], "metricsReaders": [METRICS_READER]},
    }
    async with installed(values, tmp_path, nodes=2) as release:
        assert await passes_helm_test(release, render(values))
        await release.create(
            "/api/v1/namespaces/default/serviceaccounts",
            {"metadata": {"name": "asker"}},
            {"metadata": {"name": "prometheus"}},
        )
        token = await release.token_of("default", "asker")
        reader = await release.token_of("default", "prometheus")
        assert (await release.serving("GET", "/metrics", token=reader)).status_code == 200
        assert (await release.serving("POST", "/extender/filter", token=reader)).status_code == 403
        nodes = sorted(await release.items("/api/v1/nodes"))
        made = await release.ask("POST", PODS, pod("asked"))
        question = {"Pod": made, "Nodes": None, "NodeNames": nodes}
        for verb in ("filter", "prioritize"):
            answer = await release.serving("POST", f"/extender/{verb}", token=token, json=question)
            assert answer.status_code == 200, answer.text
        names = {"PodName": "asked", "PodNamespace": "default", "PodUID": made["metadata"]["uid"]}
        answer = await release.serving(
            "POST", "/extender/bind", token=token, json={**names, "Node": nodes[0]}
        )
        assert answer.json() == {"Error": ""}
        await release.until_bound("asked")
        release.process.send(signal.SIGHUP)
        await release.until_replaced()
        release.process.send(signal.SIGTERM)
        assert await release.process.exit_status() == 0
    check("extender", render(values), release.observed)


async def test_a_simulator_needs_what_it_has_and_schedules_nothing(tmp_path: Path) -> None:
    values = of_mode("simulator", READERS)
    async with installed(values, tmp_path, nodes=2) as release:
        await release.create(PODS, pod("waits"))
        await ask_it(release)
        token = await release.token_of("default", "prometheus")
        served = (await release.serving("GET", "/", token=token)).json()["paths"]
        hidden = set(served) - readable(render(values)) - {"/simulate"}
        assert {path for path in hidden if not path.startswith(PUBLIC)} == FOR_ADMINISTRATORS
        # Nor does it with a profile that comes with a reload.
        config = release.config.read_text(encoding="utf-8")
        await release.create(PODS, {**pod("other", schedulerName="other")})
        release.config.write_text(config.replace("default-scheduler", "other"), encoding="utf-8")
        release.process.send(signal.SIGHUP)
        await release.until_replaced()
        assert (await release.serving("GET", "/readyz")).status_code == 200
        pods = await release.items(PODS)
        release.process.send(signal.SIGTERM)
        assert await release.process.exit_status() == 0
    assert not any("nodeName" in each["spec"] for each in pods.values())
    check("simulator", render(values), release.observed)


async def test_a_shadow_needs_what_it_has_and_writes_nothing(tmp_path: Path) -> None:
    """Somebody else binds the pods: one to a node that fits, and one to a node that does not."""
    values = of_mode("shadow", READERS)
    async with installed(values, tmp_path, nodes=2) as release:
        await release.create(
            "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "prometheus"}}
        )
        token = await release.token_of("default", "prometheus")
        node, _ = sorted(await release.items("/api/v1/nodes"))
        await release.create(PODS, pod("fits"), pod("too-large", cpu="100"))
        await release.until_shadowed(token, waiting=2)
        for name in ("fits", "too-large"):
            target = {"kind": "Node", "name": node}
            await release.ask(
                "POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target}
            )
        found = await release.until_shadowed(token, waiting=0)
        release.process.send(signal.SIGTERM)
        assert await release.process.exit_status() == 0
    assert {each["pod"]: each["result"] for each in found} == {
        "default/fits": "tie",
        "default/too-large": "refused",
    }
    check("shadow", render(values), release.observed)
