"""Renders of many objects, as ``helm template`` prints them."""

from typing import Any

import pytest

from berth.insight.whatif.manifests import QuestionError, companion
from tests.builders import node
from tests.insight.whatif.asking import ask, deployment, manifest, snapshot

ONE = node("one", cpu="8", memory="32Gi")


def thing(kind: str, name: str = "x", version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}


def template(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], **spec}}


CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly", "namespace": "jobs"},
    "spec": {
        "schedule": "0 3 * * *",
        "jobTemplate": {"spec": {"parallelism": 2, "completions": 5, "template": template()}},
    },
}


def render(*things: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"manifest": each} for each in things]


def test_what_has_a_template_of_pods_is_placed() -> None:
    bare_pod = thing("Pod", "hook", spec=template()["spec"])
    controller = thing("ReplicationController", "rc", spec={"template": template()})
    job = thing("Job", version="batch/v1", spec={"template": template()})
    del job["metadata"]["name"]
    job["metadata"]["generateName"] = "migrate-"
    found = ask(
        snapshot(ONE),
        templates=render(
            deployment("web"), deployment("db", kind="StatefulSet"), CRON_JOB, bare_pod,
            controller, job, deployment("agent", kind="DaemonSet"),
        ),
    )  # fmt: skip
    assert found.fits
    assert sorted(found.placements) == [
        "default/hook-0", "default/migrate-0", "default/rc-0", "jobs/nightly-0", "jobs/nightly-1",
        "shop/agent-one", "shop/db-0", "shop/web-0",
    ]  # fmt: skip
    assert found.notes == ()


def test_what_makes_no_pods_is_noted() -> None:
    found = ask(
        snapshot(ONE),
        templates=render(
            thing("Namespace", "shop"),
            thing("ServiceAccount"),
            thing("ConfigMap", "a"),
            thing("ConfigMap", "b"),
            thing("Service", spec={"selector": {"app": "web"}}),
            thing("CustomResourceDefinition", version="apiextensions.k8s.io/v1", spec={}),
            thing("Job", version="batch.volcano.sh/v1alpha1", spec={"tasks": []}),
            thing("Service", version="serving.knative.dev/v1", spec={"template": {}}),
            deployment(),
        ),
    )
    assert list(found.placements) == ["shop/web-0"]
    assert found.notes == (
        "taken into account: 1 Namespace, 1 Service",
        "ignored, because they create no pods: 2 ConfigMap, 1 CustomResourceDefinition, 1 Job,"
        " 1 Service, 1 ServiceAccount",
    )


def test_tests_of_a_chart_are_not_installed() -> None:
    test = thing("Pod", "test", spec=template()["spec"])
    test["metadata"]["annotations"] = {"helm.sh/hook": "test"}
    upgrade = thing("Pod", "upgrade", spec=template()["spec"])
    upgrade["metadata"]["annotations"] = {"helm.sh/hook": "pre-install,pre-upgrade"}
    found = ask(snapshot(ONE), templates=render(test, upgrade))
    assert list(found.placements) == ["default/upgrade-0"]
    assert found.notes == ("ignored, because they create no pods: 1 Pod of a helm test",)


def test_priority_classes_come_along_in_any_order() -> None:
    gold = thing("PriorityClass", "gold", "scheduling.k8s.io/v1", value=9)
    first = deployment("first", cpu="8", priorityClassName="gold")
    found = ask(snapshot(ONE), templates=render(deployment("web", cpu="8"), first, gold))
    assert list(found.placements) == ["shop/first-0"]


def test_claims_come_along() -> None:
    claim = thing(
        "PersistentVolumeClaim",
        "data",
        spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    )
    claim["metadata"]["namespace"] = "shop"
    late = thing("StorageClass", "late", "storage.k8s.io/v1", provisioner="x")
    late["volumeBindingMode"] = "WaitForFirstConsumer"
    late["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    user = deployment(volumes=[volume])
    assert ask(snapshot(ONE), templates=render(user, late, claim)).fits
    assert not ask(snapshot(ONE), templates=render(user)).fits


def test_what_is_of_the_whole_cluster_has_no_namespace() -> None:
    for kind, key in (("StorageClass", "x"), ("Service", "apart/x")):
        written = {"kind": kind, "metadata": {"name": "x", "namespace": "apart"}}
        made: Any = companion(written, at="t")
        assert made.metadata.key == key


@pytest.mark.parametrize(
    ("things", "says"),
    [
        pytest.param(
            [thing("Service"), thing("Secret")],
            None,
            id="something that matters",
        ),
        pytest.param(
            [thing("ConfigMap"), manifest(ONE)],
            "templates: none of them creates pods: 1 ConfigMap, 1 Node",
            id="nothing that matters",
        ),
        pytest.param([{"metadata": {}}], "templates[0].manifest.kind: None: needed", id="no kind"),
        pytest.param(
            [thing("PriorityClass", value="high")], "Expected `int`, got `str`", id="a value"
        ),
        pytest.param(
            [{**CRON_JOB, "spec": {"jobTemplate": {"spec": 7}}}],
            "templates[0].manifest.spec.jobTemplate.spec: an object is needed, got 7",
            id="no template in a CronJob",
        ),
    ],
)
def test_what_is_wrong_is_named(things: list[dict[str, Any]], says: str | None) -> None:
    if says is None:
        ask(snapshot(ONE), templates=render(*things))
        return
    with pytest.raises(QuestionError) as caught:
        ask(snapshot(ONE), templates=render(*things))
    assert says in str(caught.value)
