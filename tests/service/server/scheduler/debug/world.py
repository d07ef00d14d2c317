"""The debug endpoints of a scheduler in process."""

from collections.abc import AsyncGenerator, Mapping
from functools import lru_cache
from typing import Any

import httpx
import msgspec
from fastapi import FastAPI

from berth.insight.shadow.shadow import Shadow
from berth.scheduler.binding import Binding
from berth.scheduler.config.load import default_configuration
from berth.scheduler.framework.cycle_state import CycleState
from berth.scheduler.framework.interface import PermitPlugin
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import WAIT, Status
from berth.scheduler.profile.build import args_models
from berth.service.server.application import Application
from berth.service.server.scheduler.debug.comparison import ClusterComparison
from berth.service.server.scheduler.debug.configuration import Configurations
from berth.service.server.scheduler.debug.devices import Devices
from berth.service.server.scheduler.debug.endpoints import DebugState, debug_endpoints
from berth.service.server.scheduler.explain import explain_endpoints
from berth_plugins.dynamic_resources.claim_tracker import ResourceClaimTracker
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod
from tests.harness import Harness, with_plugins
from tests.insight.explain.asking import explainer

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
START = "2001-09-09T01:46:40Z"
"""What the clock of the harness shows at first."""

Object = dict[str, Any]


class Hesitant(PermitPlugin):
    """Has every pod wait for a minute."""

    NAME = "Hesitant"

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, float]:
        return WAIT, 60.0


def permitted(*names: str) -> tuple[Harness, list[Binding]]:
    """Return a scheduler whose pods of *names* have room on n1 and wait for Permit."""
    harness = with_plugins(Hesitant)
    harness.put(node("n1"), *map(pod, names))
    bindings = []
    while (queued := harness.queue.pop()) is not None:
        (binding,) = harness.scheduler.scheduling_cycle(queued)
        bindings.append(binding)
    return harness, bindings


class Lists:
    """An API server that has nothing but lists, of *page* objects at a time."""

    def __init__(self, objects: Mapping[str, list[Any]], *, page: int = 2) -> None:
        self.objects = dict(objects)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.error: Exception | None = None
        self._page = page

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        if self.error is not None:
            raise self.error
        assert method == "GET"
        asked = dict(params or {})
        self.asked.append((path, asked))
        first = int(asked.get("continue", "0"))
        end = first + self._page
        found = self.objects[path]
        more = str(end) if end < len(found) else ""
        return msgspec.json.encode({"metadata": {"continue": more}, "items": found[first:end]})

    def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        raise AssertionError("nothing is watched")


def application(harness: Harness, *, lists: Lists | None = None, is_ready: bool = True) -> FastAPI:
    """Return what a scheduler serves of /debug and /explain."""
    app = Application()
    app.include_router(explain_endpoints(explainer(harness)))
    app.include_router(debug_endpoints(state(harness, lists=lists, is_ready=is_ready)))
    return app


def state(
    harness: Harness,
    *,
    lists: Lists | None = None,
    is_ready: bool = True,
    shadow: Shadow | None = None,
) -> DebugState:
    """Return what the endpoints below /debug look at."""
    return DebugState(
        view=harness.view,
        explainer=explainer(harness),
        comparison=ClusterComparison(
            lists or Lists({NODES: [], PODS: []}),
            harness.cache,
            clock=harness.clock,
        ),
        devices=Devices(
            slices=lambda: harness.listers.resource_slices,
            claims=lambda: harness.listers.shared(ResourceClaimTracker),
        ),
        configuration=lambda: Configurations().effective(
            default_configuration(args_models(IN_TREE)),
            IN_TREE,
            generation=1,
            loaded_at=harness.clock.now(),
        ),
        reflectors={},
        is_ready=lambda: is_ready,
        shadow=shadow,
    )


def client(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://berth")


@lru_cache(maxsize=1)
def _application(harness: Harness) -> FastAPI:
    """Return the application of *harness*, which takes longer to put together than to ask."""
    return application(harness)


async def get(harness: Harness, path: str) -> Object:
    """Return what is at *path*, which must be there."""
    async with client(_application(harness)) as asking:
        answer = await asking.get(path)
    assert answer.status_code == 200, answer.text
    told: Object = answer.json()
    return told


async def all_pages(harness: Harness, path: str, *, limit: int) -> list[Object]:
    """Return the items of all pages of *path*, each of at most *limit*."""
    found: list[Object] = []
    token, joint = "", "&" if "?" in path else "?"
    while True:
        page = await get(harness, f"{path}{joint}limit={limit}&continue={token}")
        assert len(page["items"]) <= limit
        found += page["items"]
        token = page["continue"]
        if not token:
            return found
