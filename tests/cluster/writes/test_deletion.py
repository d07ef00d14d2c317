"""Deleting: at once, with a grace period, held by finalizers, many at a time."""

from typing import Any

import pytest

from berth.cluster.kinds.builtin import RESOURCES, STORED
from berth.cluster.resources import ResourceType
from tests.cluster.serving import NOW, NOW_TEXT, Serving, pod

PODS = "/api/v1/namespaces/default/pods"
WEB = "/apis/apps/v1/namespaces/default/deployments"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def serving() -> Serving:
    return Serving()


async def bound(serving: Serving, name: str, **metadata: Any) -> None:
    await serving.post(PODS, pod(name, **metadata))
    await serving.post(f"{PODS}/{name}/binding", {"target": {"kind": "Node", "name": "n"}})


def deletion(answer: Any) -> tuple[Any, ...]:
    keys = ("deletionTimestamp", "deletionGracePeriodSeconds", "generation")
    return tuple(answer["metadata"].get(key) for key in keys)


async def test_what_nothing_holds_is_gone_at_once(serving: Serving) -> None:
    web = await serving.post(WEB, {"metadata": {"name": "web"}})
    body = {"propagationPolicy": "Background"}
    details = {
        "name": "web",
        "group": "apps",
        "kind": "deployments",
        "uid": web["metadata"]["uid"],
    }
    assert await serving.request("DELETE", f"{WEB}/web", body) == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        },
    )
    assert (await serving.request("GET", f"{WEB}/web"))[0] == 404


async def test_a_pod_without_a_node_is_gone_at_once(serving: Serving) -> None:
    await serving.pods("p")
    code, answer = await serving.request("DELETE", f"{PODS}/p?gracePeriodSeconds=30")
    assert (code, answer["kind"], deletion(answer)) == (200, "Pod", (NOW_TEXT, 0, 2))
    assert (await serving.request("GET", f"{PODS}/p"))[0] == 404


async def test_a_pod_on_a_node_lives_on_until_its_kubelet_says(serving: Serving) -> None:
    await bound(serving, "p")
    _, answer = await serving.request("DELETE", f"{PODS}/p")
    assert deletion(answer) == ("2023-11-14T22:13:50Z", 30, 2)
    assert deletion(await serving.get(f"{PODS}/p")) == ("2023-11-14T22:13:50Z", 30, 2)
    _, answer = await serving.request("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (await serving.request("GET", f"{PODS}/p"))[0] == 404


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param(None, None, ("2023-11-14T22:13:50Z", 30), id="the pod's own period"),
        pytest.param(60, None, ("2023-11-14T22:14:20Z", 60), id="a longer one on request"),
        pytest.param(60, 90, ("2023-11-14T22:14:20Z", 60), id="never longer afterwards"),
        pytest.param(60, 10, ("2023-11-14T22:13:30Z", 10), id="shorter, counted from the first"),
    ],
)
async def test_grace_periods(
    serving: Serving, first: int | None, second: int | None, want: tuple[str, int]
) -> None:
    await bound(serving, "p")
    for seconds in (first, second):
        body = {} if seconds is None else {"gracePeriodSeconds": seconds}
        await serving.request("DELETE", f"{PODS}/p", body)
        serving.clock.advance(5)
    assert deletion(await serving.get(f"{PODS}/p"))[:2] == want


async def test_finalizers_hold_an_object_back(serving: Serving) -> None:
    await serving.post(PODS, pod("p", finalizers=["example.com/a", "example.com/b"]))
    for _ in range(2):
        _, answer = await serving.request("DELETE", f"{PODS}/p")
        assert deletion(answer) == (NOW_TEXT, 0, 2)
    await serving.request(
        "PATCH", f"{PODS}/p", {"metadata": {"finalizers": ["example.com/b"]}}, **MERGE
    )
    assert (await serving.get(f"{PODS}/p"))["metadata"]["finalizers"] == ["example.com/b"]
    last = {"metadata": {"finalizers": None, "labels": {"a": "1"}}}
    _, answer = await serving.request("PATCH", f"{PODS}/p", last, **MERGE)
    assert "finalizers" not in answer["metadata"]
    assert answer["metadata"]["labels"] == {"a": "1"}
    assert (await serving.request("GET", f"{PODS}/p"))[0] == 404


async def test_a_pod_that_ends_can_still_be_held(serving: Serving) -> None:
    await bound(serving, "p", finalizers=["a"])
    await serving.request("DELETE", f"{PODS}/p")
    serving.clock.advance(30)
    await serving.request("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert deletion(await serving.get(f"{PODS}/p")) == (NOW_TEXT, 0, 2)
    await serving.request("PATCH", f"{PODS}/p", {"metadata": {"finalizers": []}}, **MERGE)
    assert (await serving.request("GET", f"{PODS}/p"))[0] == 404


async def test_a_name_is_taken_until_the_object_is_gone(serving: Serving) -> None:
    await serving.post(PODS, pod("p", finalizers=["a"]))
    await serving.request("DELETE", f"{PODS}/p")
    code, answer = await serving.request("POST", PODS, pod("p"))
    message = 'object is being deleted: pods "p" already exists'
    assert (code, answer["message"]) == (409, message)


async def test_a_namespace_is_finalized(serving: Serving) -> None:
    body = {"metadata": {"name": "demo"}, "spec": {"finalizers": ["kubernetes"]}}
    await serving.post("/api/v1/namespaces", body)
    _, answer = await serving.request("DELETE", "/api/v1/namespaces/demo")
    assert (answer["metadata"]["deletionTimestamp"], answer["status"]) == (
        NOW_TEXT,
        {"phase": "Terminating"},
    )
    answer["spec"]["finalizers"] = []
    code, _ = await serving.request("PUT", "/api/v1/namespaces/demo/finalize", answer)
    assert code == 200
    assert (await serving.request("GET", "/api/v1/namespaces/demo"))[0] == 404


@pytest.mark.parametrize(
    ("preconditions", "code"),
    [
        pytest.param({"uid": "other"}, 409, id="another object"),
        pytest.param({"resourceVersion": "1"}, 409, id="another version"),
        pytest.param({"resourceVersion": "2"}, 200, id="the very one"),
    ],
)
async def test_preconditions(serving: Serving, preconditions: Any, code: int) -> None:
    await serving.pods("p")
    body = {"kind": "DeleteOptions", "preconditions": preconditions}
    got, answer = await serving.request("DELETE", f"{PODS}/p", body)
    assert got == code
    if code == 409:
        assert answer["message"].startswith('Operation cannot be fulfilled on Pod "p": the ')
        assert answer["details"]["kind"] == "Pod"


async def test_preconditions_say_what_was_found(serving: Serving) -> None:
    web = await serving.post(WEB, {"metadata": {"name": "web"}})
    uid, version = web["metadata"]["uid"], web["metadata"]["resourceVersion"]
    head = 'Operation cannot be fulfilled on Deployment.apps "web": the '
    _, answer = await serving.request("DELETE", f"{WEB}/web", {"preconditions": {"uid": "u"}})
    assert answer["message"] == (
        f"{head}UID in the precondition (u) does not match the UID in record ({uid}). "
        "The object might have been deleted and then recreated"
    )
    body = {"preconditions": {"uid": uid, "resourceVersion": "1"}}
    _, answer = await serving.request("DELETE", f"{WEB}/web", body)
    assert answer["message"] == (
        f"{head}ResourceVersion in the precondition (1) does not match the ResourceVersion in "
        f"record ({version}). The object might have been modified"
    )


async def test_orphaning_is_the_collectors_task(serving: Serving) -> None:
    await serving.post(WEB, {"metadata": {"name": "web"}})
    _, answer = await serving.request("DELETE", f"{WEB}/web", {"propagationPolicy": "Orphan"})
    assert answer["metadata"]["finalizers"] == ["orphan"]
    _, answer = await serving.request("DELETE", f"{WEB}/web?propagationPolicy=Background")
    assert answer["status"] == "Success"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"gracePeriodSeconds": "x"}, id="a period that is no number"),
        pytest.param({"kind": "Pod"}, id="another kind"),
        pytest.param({"preconditions": [1]}, id="preconditions that are no object"),
        pytest.param({"dryRun": 1}, id="a dry run that is no list"),
    ],
)
async def test_bad_options(serving: Serving, body: Any) -> None:
    await serving.pods("p")
    assert (await serving.request("DELETE", f"{PODS}/p", body))[0] == 400


UNSAFE = "ignoreStoreReadErrorWithClusterBreakingPotential"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(
            {"propagationPolicy": "Sideways"},
            'propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", '
            '"Background", "Orphan", "nil"',
            id="an unknown policy",
        ),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and '
            "deletionPropagation cannot be both set",
            id="the old and the new way to say it",
        ),
        pytest.param(
            {UNSAFE: True},
            f"{UNSAFE}: Forbidden: the feature gate AllowUnsafeMalformedObjectDeletion is disabled",
            id="deleting what cannot be read",
        ),
    ],
)
async def test_options_that_cannot_be(serving: Serving, options: Any, why: str) -> None:
    await serving.pods("p")
    code, answer = await serving.request("DELETE", f"{PODS}/p", options)
    assert (code, answer["message"]) == (
        422,
        f'DeleteOptions.meta.k8s.io "" is invalid: {why}',
    )
    await serving.get(f"{PODS}/p")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        pytest.param({"propagationPolicy": "Foreground"}, 200, id="in the foreground"),
        pytest.param({"orphanDependents": False}, 202, id="in the old way"),
        pytest.param({"propagationPolicy": "Background"}, 200, id="in the background"),
        pytest.param({}, 200, id="nothing said"),
    ],
)
async def test_who_asks_for_the_dependents_hears_that_it_takes_time(
    serving: Serving, options: Any, code: int
) -> None:
    await serving.post(WEB, {"metadata": {"name": "web", "finalizers": ["example.com/held"]}})
    got, _ = await serving.request("DELETE", f"{WEB}/web", options)
    assert got == code


@pytest.mark.parametrize(
    ("deleted", "metadata", "why"),
    [
        pytest.param(
            False, {"deletionTimestamp": NOW_TEXT}, "metadata.deletionTimestamp", id="not by update"
        ),
        pytest.param(
            False,
            {"deletionGracePeriodSeconds": 3},
            "metadata.deletionGracePeriodSeconds",
            id="no grace period by update",
        ),
        pytest.param(
            True,
            {"deletionGracePeriodSeconds": 3},
            "metadata.deletionGracePeriodSeconds",
            id="no other grace period",
        ),
        pytest.param(True, {"deletionTimestamp": "2030-01-01T00:00:00Z"}, "", id="ignored later"),
        pytest.param(True, {"deletionTimestamp": None}, "", id="not taken back"),
    ],
)
async def test_only_a_delete_deletes(
    serving: Serving, deleted: bool, metadata: Any, why: str
) -> None:
    await serving.post(WEB, {"metadata": {"name": "web", "finalizers": ["example.com/held"]}})
    if deleted:
        await serving.request("DELETE", f"{WEB}/web")
    before = await serving.get(f"{WEB}/web")
    code, answer = await serving.request("PATCH", f"{WEB}/web", {"metadata": metadata}, **MERGE)
    assert code == (422 if why else 200)
    if why:
        first, again = answer["details"]["causes"]  # of each update, and of this kind
        assert first == again
        assert (first["field"], first["message"].endswith(": field is immutable")) == (why, True)
    assert deletion(await serving.get(f"{WEB}/web")) == deletion(before)


async def test_a_dry_run_deletes_nothing(serving: Serving) -> None:
    await serving.pods("p", "q")
    code, answer = await serving.request("DELETE", f"{PODS}/p", {"dryRun": ["All"]})
    assert (code, answer["metadata"]["name"]) == (200, "p")
    code, answer = await serving.request("DELETE", f"{PODS}?dryRun=All")
    assert (code, len(answer["items"])) == (200, 2)
    assert len((await serving.get(PODS))["items"]) == 2


async def test_a_selection_is_deleted(serving: Serving) -> None:
    await serving.post(PODS, pod("a", labels={"app": "x"}))
    await serving.post(PODS, pod("b", labels={"app": "y"}))
    code, answer = await serving.request("DELETE", f"{PODS}?labelSelector=app%3Dx")
    assert (code, answer["kind"], [i["metadata"]["name"] for i in answer["items"]]) == (
        200,
        "PodList",
        ["a"],
    )
    assert [i["metadata"]["name"] for i in (await serving.get(PODS))["items"]] == ["b"]
    assert serving.clock.now() == NOW


async def test_not_all_namespaces_at_once(serving: Serving) -> None:
    code, answer = await serving.request("DELETE", "/api/v1/namespaces")
    assert (code, answer["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("before", "options", "after"),
    [
        pytest.param([], {"propagationPolicy": "Foreground"}, ["foregroundDeletion"], id="first"),
        pytest.param([], {"orphanDependents": True}, ["orphan"], id="in the old way"),
        pytest.param(["a", "orphan"], {}, ["a", "orphan"], id="as the object says"),
        pytest.param(["a", "foregroundDeletion"], {"propagationPolicy": "Orphan"}, ["a", "orphan"],
                     id="the request says more"),
        pytest.param(["a", "orphan"], {"propagationPolicy": "Background"}, ["a"], id="taken back"),
        pytest.param(["a", "orphan"], {"orphanDependents": False}, ["a"], id="in the old way too"),
    ],
)  # fmt: skip
async def test_what_becomes_of_what_is_owned(
    serving: Serving, before: list[str], options: Any, after: list[str]
) -> None:
    await serving.post(WEB, {"metadata": {"name": "web", "finalizers": before}})
    _, answer = await serving.request("DELETE", f"{WEB}/web", options)
    assert answer["metadata"]["finalizers"] == after


@pytest.mark.parametrize(
    "resource", [each for each in STORED if not each.is_view], ids=lambda each: each.kind
)
def test_what_becomes_of_it_when_nobody_says(resource: ResourceType) -> None:
    orphans = resource.default_propagation == "Orphan"
    assert orphans is (resource.kind in ("Job", "ReplicationController"))
    assert resource.garbage_collected is (resource.kind != "Event")


@pytest.mark.parametrize(
    ("query", "left"),
    [pytest.param("", [], id="gone"), pytest.param("?dryRun=All", ["web"], id="not if only asked")],
)
async def test_endpoints_go_with_their_service(query: str, left: list[str]) -> None:
    serving = Serving(resources=RESOURCES)
    in_default = "/api/v1/namespaces/default"
    await serving.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    await serving.post(f"{in_default}/services", service)
    await serving.post(f"{in_default}/endpoints", {"metadata": {"name": "web"}})
    await serving.request("DELETE", f"{in_default}/services/web{query}")
    listed = await serving.get(f"{in_default}/endpoints")
    assert [each["metadata"]["name"] for each in listed["items"]] == left
