"""The page with answers that tests make up: no scheduler runs."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from playwright.async_api import Page, Route
from pydantic.alias_generators import to_camel

from berth.scheduler.metrics.overview import NAMES
from berth.service.ui.files import INDEX, MEDIA_TYPES
from berth.service.ui.headers import SECURITY_HEADERS
from tests.service.ui.chromium import chromium

ORIGIN: Final = "http://berth.test/"
STATIC: Final = resources.files("berth.service.ui") / "static"

NUMBERS: Final = [to_camel(name) for name in NAMES]
START: Final = 1_700_000_000
AT: Final = "2023-11-14T22:13:20Z"
ANSWERS: Final[dict[str, Any]] = {
    "debug/overview": {
        "now": {
            "number": 1,
            "time": START,
            "numbers": dict.fromkeys(NUMBERS, 0) | {"leading": 1, "nodes": 1},
            "oldest": [],
            "leader": "",
            "configurationLoadedAt": AT,
            "problems": [],
        },
        "series": {
            "stepSeconds": 1,
            "times": [START - 1, START],
            "numbers": {name: [0, 1] for name in NUMBERS},
        },
    },
    "debug/cluster": {
        "version": "1", "names": ["n"], "groupBy": "", "groups": [None], "group": [0],
        "taintSets": [[]], "taintSet": [0], "unschedulable": [], "resources": ["cpu"],
    },
    "debug/cluster/labels": {"items": []},
    "debug/cluster/use": {"version": "1", "resource": "cpu", "allocatable": [1], "requested": [0]},
    "debug/cluster/filters": {
        "version": "1", "pod": "a", "pluginSets": [[]], "pluginSet": [0], "message": "",
        "numFeasible": 1,
    },
    "debug/cache": {
        "items": [], "counts": {"nodes": 0, "pods": 0, "assumedPods": 0}, "unknownNodes": {},
        "unreadable": [],
    },
    "debug/queue": {"items": [], "counts": {}},
    "debug/queue/groups": {"at": AT, "numPods": 0, "numGroups": 0, "items": []},
    "debug/podgroups": {"items": []},
    "debug/devices": {"items": [], "counts": {"devices": 0, "slices": 0, "allocated": 0}},
    "debug/config": {
        "presets": {}, "scoreWeights": {}, "configuration": {}, "generation": 1, "loadedAt": AT,
    },
    "debug/decisions": {"items": []},
    "debug/shards": {
        "identity": "here-0", "slots": 4, "deciding": [0, 1], "leaving": [], "free": [3],
        "label": "", "offersUnderWay": 0, "changes": [],
        "members": [{"identity": "here-0", "slots": [0, 1, 2], "pool": "", "silentSeconds": 0}],
    },
}  # fmt: skip
"""What a scheduler without pods answers, of one node."""


class StaticPage:
    """Answers what a page of ORIGIN asks: its files, and *answers* by path.

    What has no answer is never answered; None is a lost connection.
    """

    def __init__(self, page: Page, answers: Mapping[str, Any]) -> None:
        self.page = page
        self.answers = dict(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []
        """The endpoints that were asked, with their parameters."""
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def open(self, address: str = "") -> Page:
        await self.page.goto(f"{ORIGIN}ui/{address}")
        return self.page

    async def handle(self, route: Route) -> None:
        parts = urlsplit(route.request.url)
        if parts.path.startswith("/ui/"):
            name = parts.path.removeprefix("/ui/") or INDEX
            headers = {**SECURITY_HEADERS, "Content-Type": MEDIA_TYPES[name.rpartition(".")[2]]}
            await route.fulfill(body=STATIC.joinpath(name).read_bytes(), headers=headers)
            return
        path = parts.path.removeprefix("/")
        self.asked.append((path, dict(parse_qsl(parts.query))))
        if path not in self.answers:
            return
        answer = self.answers[path]
        if answer is None:
            await route.abort()
        elif isinstance(answer, int):
            await route.fulfill(status=answer, body="refused")
        else:
            await route.fulfill(body=json.dumps(answer), content_type="application/json")


@asynccontextmanager
async def static_page(
    answers: Mapping[str, Any], *, width: int = 1440, height: int = 900
) -> AsyncIterator[StaticPage]:
    """Yield a tab of a new browser; an exception in it fails the test at its end."""
    async with chromium() as browser:
        context = await browser.new_context(
            locale="en-GB", timezone_id="UTC", viewport={"width": width, "height": height}
        )
        tab = StaticPage(await context.new_page(), answers)
        await context.route(f"{ORIGIN}**", tab.handle)
        yield tab
        await context.close()
        assert not tab.errors
