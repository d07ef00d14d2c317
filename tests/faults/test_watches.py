"""Faults of listing and watching: what the scheduler believes is what the API server has."""

import copy
from collections.abc import Callable

import pytest

from tests.faults.proxy import Answer, Fault, Lines
from tests.faults.world import World, world

pytestmark = pytest.mark.wall

WATCH = r"/(pods|nodes)\?.*watch=true"
WATCH_PODS = r"/pods\?.*watch=true"
INITIAL = r"/pods\?.*sendInitialEvents"
LIST_PODS = r"^/api/v1/pods\?.*limit="
EXPIRED = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}'
EXPIRED_EVENT = b'{"type":"ERROR","object":%b}\n' % EXPIRED


def once(act: Callable[[bytes], list[bytes] | None]) -> Lines:
    """Do something to the first line that there is and let all others pass."""
    done: list[bytes] = []

    def change(line: bytes) -> list[bytes] | None:
        if done:
            return [line]
        done.append(line)
        return act(line)

    return change


def break_off(after: int) -> Lines:
    """Break the connection after so many lines."""
    seen: list[bytes] = []

    def change(line: bytes) -> list[bytes] | None:
        seen.append(line)
        return None if len(seen) % (after + 1) == 0 else [line]

    return change


async def live_on(cluster: World, name: str) -> None:
    """Have things happen: pods come, one goes and comes again, a node comes and another goes."""
    doomed = f"/api/v1/namespaces/default/pods/{name}-doomed"
    await cluster.create_pods(*(f"{name}-{i}" for i in range(8)))
    await cluster.create(
        "namespaces/default/pods",
        {
            "metadata": {"name": f"{name}-doomed"},
            "spec": {
                "schedulingGates": [{"name": "g"}],
                "containers": [{"name": "c", "image": "i"}],
            },
        },
    )
    await cluster.create_nodes(f"{name}-new")
    await cluster.create(
        "nodes", {"metadata": {"name": f"{name}-gone"}, "spec": {"unschedulable": True}}
    )
    await cluster.direct.request("DELETE", doomed)
    await cluster.direct.request("DELETE", f"/api/v1/nodes/{name}-gone")
    await cluster.create_pods(f"{name}-doomed")


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            Fault("GET", WATCH, times=6, forwarded=False, reset=True), id="reset when connecting"
        ),
        pytest.param(
            Fault("GET", WATCH, times=8, lines=break_off(after=3)), id="reset in mid-stream"
        ),
        pytest.param(
            Fault("GET", WATCH, times=2, forwarded=False, answer=Answer(410, body=EXPIRED)),
            id="410 as the answer",
        ),
        pytest.param(
            Fault("GET", WATCH, times=2, lines=once(lambda line: [line, EXPIRED_EVENT])),
            id="410 in mid-stream",
        ),
        pytest.param(
            Fault("GET", WATCH, times=4, forwarded=False, answer=Answer(429, {"Retry-After": "1"})),
            id="429, come again",
        ),
        pytest.param(
            Fault("GET", WATCH, times=4, forwarded=False, answer=Answer(500)), id="internal errors"
        ),
        pytest.param(
            Fault("GET", WATCH, times=4, forwarded=False, answer=Answer(200, body=b"{nonsense}\n")),
            id="garbled",
        ),
        pytest.param(
            Fault("GET", WATCH, times=4, forwarded=False, answer=Answer(200)), id="ends at once"
        ),
        pytest.param(Fault("GET", WATCH, times=2, delay=2.0), id="slow answers"),
        pytest.param(
            Fault("GET", WATCH, times=50, lines=lambda line: [line, line]), id="everything twice"
        ),
    ],
)
async def test_a_watch_that_fails(fault: Fault) -> None:
    async with world("n1", "n2") as cluster:
        await cluster.create_pods("before-0", "before-1")
        cluster.proxy.faults = [fault]
        cluster.proxy.reset_all()

        await live_on(cluster, "during")
        await cluster.check()
        await live_on(cluster, "after")
        await cluster.check()

        assert fault.hits > 0


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            Fault("GET", LIST_PODS, times=3, forwarded=False, reset=True),
            id="reset before it arrives",
        ),
        pytest.param(Fault("GET", LIST_PODS, times=3, reset=True), id="the answer is lost"),
        pytest.param(
            Fault(
                "GET", LIST_PODS + ".*continue", forwarded=False, answer=Answer(410, body=EXPIRED)
            ),
            id="the second page has expired",
        ),
        pytest.param(
            Fault(
                "GET", LIST_PODS, times=2, forwarded=False, answer=Answer(429, {"Retry-After": "1"})
            ),
            id="429, come again",
        ),
        pytest.param(
            Fault("GET", LIST_PODS, times=3, forwarded=False, answer=Answer(500)),
            id="internal errors",
        ),
        pytest.param(Fault("GET", LIST_PODS, delay=2.0), id="a slow answer"),
    ],
)
async def test_a_list_that_fails(fault: Fault) -> None:
    """A server that does not stream lists forgets the version of the watch."""
    async with world("n1", "n2") as cluster:
        cluster.proxy.page_size = 5
        await cluster.create_pods("before-0", "before-1")
        expired = Fault("GET", WATCH_PODS, forwarded=False, answer=Answer(410, body=EXPIRED))
        unable = Fault("GET", INITIAL, times=1_000, forwarded=False, answer=Answer(422))
        cluster.proxy.faults = [unable, expired, fault]
        cluster.proxy.reset_all()

        await live_on(cluster, "during")
        await cluster.check()
        await live_on(cluster, "after")
        await cluster.check()

        assert (expired.hits, fault.hits) == (1, fault.times)


async def test_a_watch_that_is_told_when_to_come_again_does_not_come_sooner() -> None:
    async with world("n1") as cluster:
        busy = Fault("GET", WATCH_PODS, forwarded=False, answer=Answer(429, {"Retry-After": "10"}))
        again = Fault("GET", WATCH_PODS)
        cluster.proxy.faults = [busy, again]
        started = cluster.clock.monotonic()
        cluster.proxy.reset_all()
        await cluster.until(lambda: again.hits == 1)

        assert cluster.clock.monotonic() - started >= 10.0
        await live_on(cluster, "after")
        await cluster.check()


async def test_a_streamed_list_that_breaks_off() -> None:
    async with world("n1", "n2") as cluster:
        await cluster.create_pods(*(f"before-{i}" for i in range(5)))
        await cluster.check()
        expired = Fault("GET", WATCH_PODS, forwarded=False, answer=Answer(410, body=EXPIRED))
        broken = Fault("GET", INITIAL, times=3, lines=break_off(after=2))
        cluster.proxy.faults = [expired, broken]
        cluster.proxy.reset_all()

        await live_on(cluster, "during")
        await cluster.check()

        assert (expired.hits, broken.hits) == (1, 3)


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(lambda said: said, id="in order"),
        pytest.param(
            lambda said: said[: next(i for i, each in enumerate(said) if b'"DELETED"' in each) + 1],
            id="up to the deletion of a pod that has come again",
        ),
        pytest.param(lambda said: said[::-1], id="backwards"),
    ],
)
async def test_old_events_after_a_new_list(again: Callable[[list[bytes]], list[bytes]]) -> None:
    """What a watch said comes once more, after the state that it led to."""
    said: list[bytes] = []
    repeated: list[bytes] = []

    def remember(line: bytes) -> list[bytes]:
        if b'"BOOKMARK"' not in line:
            said.append(line)
        return [line]

    def repeat(line: bytes) -> list[bytes]:
        if b'"BOOKMARK"' not in line:
            return [line]
        repeated.extend(again(said))
        return [line, *repeated]

    async with world("n1", "n2") as cluster:
        hearing = Fault("GET", WATCH_PODS, lines=remember)
        cluster.proxy.faults = [hearing]
        cluster.proxy.reset_all()
        await cluster.until(lambda: hearing.hits == 1)
        await live_on(cluster, "before")
        await cluster.check()
        expired = Fault("GET", WATCH_PODS, forwarded=False, answer=Answer(410, body=EXPIRED))
        cluster.proxy.faults = [expired, Fault("GET", INITIAL, lines=repeat)]
        cluster.proxy.reset_all()
        await cluster.until(lambda: bool(repeated))

        await live_on(cluster, "after")
        await cluster.check()

        assert b'"type":"DELETED"' in b"".join(repeated)


async def test_a_server_that_restarts_and_has_forgotten_the_past() -> None:
    async with world("n1", "n2") as cluster:
        await live_on(cluster, "before")
        await cluster.check()
        lists = cluster.service.pods.lists

        await cluster.stop_server()
        await cluster.start_server()
        cluster.proxy.server_port, port = 0, cluster.proxy.server_port
        for i in range(100):  # twice as many changes as the server remembers
            await cluster.create_pods("brief")
            await cluster.direct.request("DELETE", "/api/v1/namespaces/default/pods/brief")
            await cluster.create_nodes(f"brief-{i % 2}")
            await cluster.direct.request("DELETE", f"/api/v1/nodes/brief-{i % 2}")
        cluster.pods.remove("/api/v1/namespaces/default/pods/brief")
        await live_on(cluster, "meanwhile")
        cluster.proxy.server_port = port

        await cluster.check()
        assert cluster.service.pods.lists > lists


async def test_a_server_that_comes_back_from_a_backup_in_which_nothing_was_bound() -> None:
    async with world("n1", "n2") as cluster:
        unable = Fault("POST", "/binding$", times=1_000, forwarded=False, answer=Answer(500))
        cluster.proxy.faults = [unable]
        await cluster.create_pods(*(f"p{i}" for i in range(5)))
        await cluster.stop_server()
        backup = copy.deepcopy(cluster.store)
        await cluster.start_server()
        cluster.proxy.faults = []
        await cluster.create_pods(*(f"lost-{i}" for i in range(5)))
        await cluster.check()

        await cluster.stop_server()
        cluster.store = backup
        cluster.pods = {path for path in cluster.pods if "lost" not in path}
        cluster.proxy.bound.clear()
        await cluster.start_server()

        await cluster.check()
        assert cluster.service.cache.counts() == {"nodes": 2, "pods": 5, "assumed_pods": 0}


async def test_an_outage_is_told_while_it_lasts_and_ends_for_all_watches_at_once() -> None:
    async with world("n1", "n2") as cluster:
        await live_on(cluster, "before")
        await cluster.check()
        service, port = cluster.service, cluster.proxy.server_port
        cluster.proxy.server_port = 0
        cluster.proxy.reset_all()
        await cluster.until(lambda: "/api/v1/pods" in service.staleness())
        assert service.client.contact.recoveries == 0

        cluster.proxy.server_port = port
        await service.client.request("GET", "/api/v1/nodes")  # as a renewal of the lease might be
        assert service.client.contact.recoveries == 1
        await cluster.until(lambda: not service.staleness())
        await live_on(cluster, "after")
        await cluster.check()
