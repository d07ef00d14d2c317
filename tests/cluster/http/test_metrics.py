"""What Prometheus scrapes of the API server: names, labels and counts, by request."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cluster.serving import Serving, pod

PODS = "/api/v1/namespaces/default/pods"
MERGE = {"content_type": "application/merge-patch+json"}


@pytest.fixture
def serving() -> Serving:
    return Serving(log_capacity=2)


async def scraped(serving: Serving) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Return all samples, by name and labels that are not empty."""
    answer = await serving.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            labels = frozenset((k, v) for k, v in sample.labels.items() if v)
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def labels(**said: str) -> frozenset[tuple[str, str]]:
    return frozenset(said.items())


POD = {"version": "v1", "resource": "pods", "component": "apiserver"}


async def test_requests_are_counted_by_what_they_are(serving: Serving) -> None:
    await serving.pods("a", "b")
    await serving.request("POST", f"{PODS}?dryRun=All", pod("c"))
    await serving.request("GET", f"{PODS}/a")
    await serving.request("GET", f"{PODS}/none")
    await serving.request("GET", PODS)
    await serving.request("GET", "/api/v1/pods?limit=1")
    await serving.request("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, **MERGE)
    await serving.request("DELETE", f"{PODS}/a")
    await serving.request("DELETE", PODS)
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    await serving.request("GET", deployments)
    await serving.request("GET", "/api/v1/namespaces/default/teapots")

    found = await scraped(serving)
    apps = {**POD, "group": "apps", "resource": "deployments"}
    assert found["apiserver_request_total"] == {
        labels(**POD, verb="POST", scope="resource", code="201"): 2,
        labels(**POD, verb="POST", scope="resource", dry_run="All", code="201"): 1,
        labels(**POD, verb="GET", scope="resource", code="200"): 1,
        labels(**POD, verb="GET", scope="resource", code="404"): 1,
        labels(**POD, verb="LIST", scope="namespace", code="200"): 1,
        labels(**POD, verb="LIST", scope="cluster", code="200"): 1,
        labels(**POD, verb="PATCH", scope="resource", subresource="status", code="200"): 1,
        labels(**POD, verb="DELETE", scope="resource", code="200"): 1,
        labels(**POD, verb="DELETECOLLECTION", scope="namespace", code="200"): 1,
        labels(**apps, verb="LIST", scope="namespace", code="200"): 1,
    }
    got = labels(**POD, verb="GET", scope="resource")
    assert found["apiserver_request_duration_seconds_count"][got] == 2
    assert found["apiserver_request_sli_duration_seconds_count"][got] == 2
    assert found["apiserver_response_sizes_count"][got] == 2
    assert found["apiserver_response_sizes_sum"][got] > 200
    created = labels(**POD, verb="POST", scope="resource")
    assert created not in found["apiserver_response_sizes_count"]


async def test_lists_say_how_much_they_read(serving: Serving) -> None:
    for name in "abcd":
        await serving.post(PODS, pod(name, labels={"app": name}))
    for query in ("", "labelSelector=app%3Db", "labelSelector=app%3Db&limit=1", "limit=2"):
        await serving.get(f"{PODS}?{query}")
    await serving.get(f"{PODS}?limit=1&labelSelector=app+in+(a,b)")

    found = await scraped(serving)
    assert found["apiserver_cache_list_total"] == {labels(resource="pods"): 5}
    assert found["apiserver_cache_list_returned_objects_total"] == {labels(resource="pods"): 9}
    # 4 and 4, 4 to see that there is no second, 2, and 2 to see that there is one
    assert found["apiserver_cache_list_fetched_objects_total"] == {labels(resource="pods"): 16}


async def test_objects_are_counted_once_for_all_their_views(serving: Serving) -> None:
    await serving.pods("a", "b")
    found = await scraped(serving)
    assert found["apiserver_storage_objects"][labels(resource="pods")] == 2
    assert found["apiserver_storage_objects"][labels(resource="deployments.apps")] == 0
    by_resource = found["apiserver_resource_objects"]
    assert by_resource[labels(resource="pods")] == 2
    assert by_resource[labels(group="apps", resource="deployments")] == 0


async def test_watches_are_counted_while_they_last_and_by_event(serving: Serving) -> None:
    running: list[float] = []

    async def during() -> None:
        await serving.pods("b")
        await serving.settle()
        found = await scraped(serving)
        running.extend(found["apiserver_longrunning_requests"].values())

    await serving.pods("a")
    path = f"{PODS}?watch=1&timeoutSeconds=10&allowWatchBookmarks=true"
    events = await serving.watch(path, during, seconds=10)
    found = await scraped(serving)
    kind = labels(version="v1", resource="pods")
    assert found["apiserver_watch_events_total"] == {kind: len(events)}
    assert found["apiserver_watch_events_sizes_count"] == {kind: len(events)}
    watched = labels(**POD, verb="WATCH", scope="namespace")
    assert (running, found["apiserver_longrunning_requests"]) == ([1], {watched: 0})
    assert found["apiserver_request_total"][watched | {("code", "200")}] == 1
    assert watched not in found["apiserver_request_sli_duration_seconds_count"]


async def test_a_watcher_that_falls_behind_is_counted(serving: Serving) -> None:
    def burst() -> None:
        for name in "abcdef":
            serving.store.create("pods", pod(name, namespace="default"))

    await serving.watch(f"{PODS}?watch=1", burst, seconds=0)
    found = await scraped(serving)
    assert found["apiserver_terminated_watchers_total"] == {labels(resource="pods"): 1}


async def test_the_process_is_measured_too(serving: Serving) -> None:
    assert "process_resident_memory_bytes" in await scraped(serving)
