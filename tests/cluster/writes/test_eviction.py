"""Evictions through the API: which are granted, what is answered, and what is written."""

import itertools
from typing import Any

import pytest

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.resources import Object
from berth.cluster.schemas import builtin, protobuf
from tests.cluster.serving import NOW_TEXT, Serving, status, unmanaged

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
GRANTED = (
    201,
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
)
EVICTING = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "lastTransitionTime": NOW_TEXT,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
READY = {"type": "Ready", "status": "True", "lastTransitionTime": NOW_TEXT}


@pytest.fixture
def serving() -> Serving:
    return Serving(resources=RESOURCES)


def put_pod(
    serving: Serving, name: str = "p", *, phase: str = "Running", ready: bool = True, **more: Any
) -> None:
    """Store a pod on a node, as its kubelet has reported it."""
    obj = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "generation": 1,
            "labels": {"app": "web"},
            **more,
        },
        "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30, "containers": []},
        "status": {"phase": phase, "conditions": [READY] if ready else []},
    }
    serving.store.create("pods", obj)


def put_budget(
    serving: Serving,
    name: str = "web",
    *,
    allowed: int = 1,
    healthy: int = 3,
    desired: int = 2,
    generation: int = 1,
    observed: int = 1,
    policy: str | None = None,
    selector: Object | None = None,
    **status: Any,
) -> None:
    """Store a budget with what the controller has reported of it."""
    spec = {"selector": selector if selector is not None else {"matchLabels": {"app": "web"}}}
    obj = {
        "metadata": {"name": name, "namespace": "default", "generation": generation},
        "spec": spec | ({"unhealthyPodEvictionPolicy": policy} if policy else {}),
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": 3,
            "observedGeneration": observed,
            **status,
        },
    }
    serving.store.create("poddisruptionbudgets.policy", obj)


async def evict(serving: Serving, name: str = "p", *, query: str = "", **options: Any) -> Any:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if options:
        body["deleteOptions"] = options
    return await serving.request("POST", f"{PODS}/{name}/eviction{query}", body)


def refusal(cause: str, **details: Any) -> Any:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    return status(429, "TooManyRequests", message, {"causes": causes, **details})


async def test_what_an_eviction_writes(serving: Serving) -> None:
    put_pod(serving)
    put_budget(serving, allowed=1, disruptedPods={"q": "2000-01-01T00:00:00Z"})
    assert await evict(serving) == GRANTED
    pod = await serving.get(f"{PODS}/p")
    assert pod["status"] == {"phase": "Running", "conditions": [READY, EVICTING]}
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    budget = await serving.get(f"{BUDGETS}/web")
    [manager] = budget["metadata"]["managedFields"]
    assert (manager["manager"], manager["subresource"]) == ("kube-apiserver", "status")
    assert unmanaged(budget)["status"] == {
        "disruptionsAllowed": 0,
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "expectedPods": 3,
        "observedGeneration": 1,
        "disruptedPods": {"q": "2000-01-01T00:00:00Z", "p": NOW_TEXT},
        "conditions": [
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "observedGeneration": 1,
                "lastTransitionTime": NOW_TEXT,
                "reason": "InsufficientPods",
                "message": "",
            }
        ],
    }


async def test_a_dry_run_writes_nothing(serving: Serving) -> None:
    put_pod(serving)
    put_budget(serving)
    before = serving.store.version
    for how in ({"query": "?dryRun=All"}, {"dryRun": ["All"]}):
        assert await evict(serving, **how) == GRANTED
    assert serving.store.version == before
    put_budget(serving, "other", selector={"matchLabels": {"app": "db"}})
    put_pod(serving, "q", labels={"app": "db"})
    code, _ = await evict(serving, "q", query="?dryRun=All", dryRun=["All", "All"])
    assert code == 500


async def test_a_dry_run_hears_of_the_budget(serving: Serving) -> None:
    put_pod(serving)
    put_budget(serving, allowed=0)
    assert (await evict(serving, query="?dryRun=All"))[0] == 429


@pytest.mark.parametrize(
    ("budget", "want"),
    [
        pytest.param(
            {"allowed": 0, "healthy": 3, "desired": 3},
            refusal("The disruption budget web needs 3 healthy pods and has 3 currently"),
            id="nothing is allowed",
        ),
        pytest.param(
            {"allowed": 0, "healthy": 3, "desired": 2},
            refusal("The disruption budget web does not allow evicting pods currently"),
            id="nothing is allowed, whatever the numbers say",
        ),
        pytest.param(
            {
                "allowed": 0,
                "healthy": 0,
                "desired": 0,
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "SyncFailed",
                        "message": 'found no controllers for pod "p"',
                        "lastTransitionTime": NOW_TEXT,
                    }
                ],
            },
            refusal(
                "The disruption budget web does not allow evicting pods currently because it "
                'failed sync: found no controllers for pod "p"'
            ),
            id="the controller cannot count",
        ),
        pytest.param(
            {"generation": 2},
            refusal(
                "The disruption budget web is still being processed by the server.",
                retryAfterSeconds=10,
            ),
            id="the controller has not seen the budget yet",
        ),
        pytest.param(
            {"allowed": -1},
            status(
                403,
                "Forbidden",
                'poddisruptionbudget.policy "web" is forbidden: '
                "pdb disruptions allowed is negative",
                {"name": "web", "group": "policy", "kind": "poddisruptionbudget"},
            ),
            id="less than nothing is allowed",
        ),
        pytest.param(
            {"disruptedPods": {f"p-{i}": NOW_TEXT for i in range(2001)}},
            status(
                403,
                "Forbidden",
                'poddisruptionbudget.policy "web" is forbidden: DisruptedPods map too big - '
                "too many evictions not confirmed by PDB controller",
                {"name": "web", "group": "policy", "kind": "poddisruptionbudget"},
            ),
            id="more than 2000 evictions that the controller has not seen",
        ),
    ],
)
async def test_refusals(serving: Serving, budget: Any, want: Any) -> None:
    put_pod(serving)
    put_budget(serving, **budget)
    before = serving.store.version
    assert await evict(serving) == want
    assert serving.store.version == before


async def test_when_to_ask_again_is_a_header_too(serving: Serving) -> None:
    put_pod(serving)
    put_budget(serving, observed=0)
    body = {"metadata": {"name": "p"}}
    response = await serving.http.post(f"{PODS}/p/eviction", json=body)
    assert (response.status_code, response.headers["retry-after"]) == (429, "10")


async def test_a_budget_that_allows_nothing_does_not_say_when_it_will(serving: Serving) -> None:
    put_pod(serving)
    put_budget(serving, allowed=0)
    response = await serving.http.post(f"{PODS}/p/eviction", json={"metadata": {"name": "p"}})
    assert "retry-after" not in response.headers


async def test_two_budgets_are_one_too_many(serving: Serving) -> None:
    put_pod(serving)
    put_budget(serving, "a")
    put_budget(serving, "b", selector={})
    code, answer = await evict(serving)
    assert (code, answer) == (
        500,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "This pod has more than one PodDisruptionBudget, "
            "which the eviction subresource does not support.",
            "code": 500,
        },
    )


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {"app": "db"}}, id="others"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
            id="all but this one",
        ),
        pytest.param({"matchLabels": ["app"]}, id="none, as it cannot be read"),
    ],
)
async def test_budgets_of_others(serving: Serving, selector: Object) -> None:
    put_pod(serving)
    put_budget(serving, allowed=0, selector=selector)
    assert await evict(serving) == GRANTED


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(
            {"preconditions": {"uid": "other"}},
            "the UID in the precondition (other) does not match the UID in record (uid-p). "
            "The object might have been deleted and then recreated",
            id="another pod of the same name",
        ),
        pytest.param(
            {"preconditions": {"resourceVersion": "1"}},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in "
            "record ({version}). The object might have been modified",
            id="the pod as it was",
        ),
    ],
)
async def test_preconditions_that_fail(serving: Serving, options: Any, why: str) -> None:
    put_pod(serving)
    why = why.format(version=serving.store.version)
    message = f'Operation cannot be fulfilled on Pod "p": {why}'
    want = status(409, "Conflict", message, {"name": "p", "kind": "Pod"})
    assert await evict(serving, **options) == want


async def test_preconditions_that_hold(serving: Serving) -> None:
    put_pod(serving)
    conditions = {"uid": "uid-p", "resourceVersion": str(serving.store.version)}
    assert await evict(serving, preconditions=conditions, gracePeriodSeconds=5) == GRANTED
    assert (await serving.get(f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 5


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(
            {"metadata": {"name": "q"}},
            400,
            "name in URL does not match name in Eviction object",
            id="another name",
        ),
        pytest.param(
            {}, 400, "name in URL does not match name in Eviction object", id="no name at all"
        ),
        pytest.param(
            {"metadata": {"name": "p", "namespace": "kube-system"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            {"kind": "Pod", "metadata": {"name": "p"}},
            400,
            'Pod in version "v1" cannot be handled as a Eviction: no kind "Pod" is registered for '
            'version "policy/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
            id="no Eviction",
        ),
        pytest.param(
            {"apiVersion": "policy/v2", "metadata": {"name": "p"}},
            400,
            'Eviction in version "v2" cannot be handled as a Eviction: no kind "Eviction" is '
            'registered for version "policy/v2" in scheme "pkg/api/legacyscheme/scheme.go:30"',
            id="of a version to come",
        ),
    ],
)
async def test_bad_bodies(serving: Serving, body: Any, code: int, message: str) -> None:
    put_pod(serving)
    got, answer = await serving.request("POST", f"{PODS}/p/eviction", body)
    assert (got, answer["message"]) == (code, message)


async def test_the_old_version_is_read_too(serving: Serving) -> None:
    put_pod(serving)
    body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert await serving.request("POST", f"{PODS}/p/eviction", body) == GRANTED


async def test_protobuf(serving: Serving) -> None:
    put_pod(serving)
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "default"},
        "deleteOptions": {"gracePeriodSeconds": 7, "preconditions": {"uid": "uid-p"}},
    }
    encoded = protobuf.encode(body, builtin.schema("io.k8s.api.policy.v1.Eviction"))
    kind = {"content_type": protobuf.MEDIA_TYPE}
    assert await serving.request("POST", f"{PODS}/p/eviction", encoded, **kind) == GRANTED
    assert (await serving.get(f"{PODS}/p"))["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_what_is_not_there(serving: Serving) -> None:
    want = status(404, "NotFound", 'pods "p" not found', {"name": "p", "kind": "pods"})
    assert await evict(serving) == want


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_an_eviction_can_only_be_created(serving: Serving, method: str) -> None:
    put_pod(serving)
    assert (await serving.request(method, f"{PODS}/p/eviction"))[0] == 405


async def test_only_pods_can_be_evicted(serving: Serving) -> None:
    assert (await serving.request("POST", "/api/v1/nodes/n/eviction", {}))[0] == 404


async def test_a_condition_is_of_the_generation_that_a_kubelet_reports(serving: Serving) -> None:
    put_pod(serving)
    patch = {"status": {"observedGeneration": 1}}
    kind = {"content_type": "application/merge-patch+json"}
    await serving.request("PATCH", f"{PODS}/p/status", patch, **kind)
    assert await evict(serving) == GRANTED
    [*_, condition] = (await serving.get(f"{PODS}/p"))["status"]["conditions"]
    assert condition == {**EVICTING, "observedGeneration": 1}


async def test_a_pod_that_says_already_that_it_is_a_target_keeps_the_time(
    serving: Serving,
) -> None:
    put_pod(serving)
    earlier = {**EVICTING, "reason": "Preempted", "lastTransitionTime": "2000-01-01T00:00:00Z"}
    patch = {"status": {"conditions": [earlier]}}
    kind = {"content_type": "application/merge-patch+json"}
    await serving.request("PATCH", f"{PODS}/p/status", patch, **kind)
    assert await evict(serving) == GRANTED
    pod = await serving.get(f"{PODS}/p")
    want = {**EVICTING, "lastTransitionTime": "2000-01-01T00:00:00Z"}
    assert pod["status"]["conditions"] == [want]


# Every combination, against what the documentation says.

STATES = ("Pending", "Running", "Succeeded", "Failed", "Terminating", "Unknown")
POLICIES = (None, "IfHealthyBudget", "AlwaysAllow")
NUMBERS = (
    # allowed, currentHealthy, desiredHealthy
    (1, 3, 2),
    (0, 2, 2),
    (0, 1, 2),
    (0, 0, 0),
    (2, 2, 0),
)


def granted(
    state: str, *, ready: bool, policy: str | None, allowed: int, healthy: int, desired: int
) -> tuple[bool, bool]:
    """Return whether an eviction is granted, and whether it is charged.

    By the section on unhealthy pods of the documentation: "IfHealthyBudget: Running pods that are
    not yet healthy can be evicted only if the guarded application is not disrupted (currentHealthy
    is at least equal to desiredHealthy). AlwaysAllow: ... considered disrupted and can be evicted
    regardless of whether the criteria in a PDB is met." Pods in other phases disrupt nobody.
    """
    if state not in ("Running", "Unknown"):
        return True, False
    is_guarded = ready or (policy != "AlwaysAllow" and (desired == 0 or healthy < desired))
    return (allowed > 0, allowed > 0) if is_guarded else (True, False)


async def test_every_combination() -> None:
    serving = Serving(resources=RESOURCES)
    got, want = {}, {}
    for number, case in enumerate(itertools.product(STATES, (True, False), POLICIES, NUMBERS)):
        state, ready, policy, (allowed, healthy, desired) = case
        name, labels = f"p-{number}", {"app": f"a-{number}"}
        more: dict[str, Any] = {"labels": labels}
        if state == "Terminating":
            more |= {"deletionTimestamp": NOW_TEXT, "deletionGracePeriodSeconds": 30}
        phase = "Running" if state == "Terminating" else state
        put_pod(serving, name, phase=phase, ready=ready, **more)
        numbers = {"allowed": allowed, "healthy": healthy, "desired": desired}
        put_budget(serving, name, policy=policy, selector={"matchLabels": labels}, **numbers)
        code, _ = await evict(serving, name)
        left = (await serving.get(f"{BUDGETS}/{name}"))["status"]["disruptionsAllowed"]
        got[case] = (code == 201, left < allowed)
        want[case] = granted(state, ready=ready, policy=policy, **numbers)
    assert got == want
