"""Everything that a scheduler serves, asked all kinds of things, answers as it says it does.

Whatever router is included in the service's application is covered: each operation in
``/openapi.json`` is asked many times over, with parameters and bodies made from its schema, on a
scheduler with nodes and pods. Left out is what takes long by its nature.
"""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from berth.runtime.addresses import LOOPBACK
from berth.runtime.http_server import HttpServer
from berth.service.applications import scheduler_application
from tests.tools.up.world import PODS, pod, running_world

pytestmark = [pytest.mark.slow, pytest.mark.wall, pytest.mark.timeout(400)]

TAKES_LONG: Final = frozenset(
    {"/debug/overview/stream", "/debug/pprof/profile", "/debug/pprof/trace"}
)
"""As long as it is asked to, or until the scheduler ends."""
CHECKS: Final[list[CheckFunction]] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES: Final = 10
STARTS_PROCESS: Final = "/simulate"
"""Takes a second for each question: it gets fewer."""
FEWER_EXAMPLES: Final = 3
SECONDS: Final = 380


def operations(url: str) -> Iterator[Any]:
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        if found.ok().path not in TAKES_LONG:
            yield found.ok()


def ask(operation: Any, url: str) -> None:
    """Ask *operation* for EXAMPLES things and check each answer."""
    examples = FEWER_EXAMPLES if operation.path == STARTS_PROCESS else EXAMPLES

    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def one(case: Any) -> None:
        case.validate_response(case.call(base_url=url), checks=CHECKS)

    one()


def ask_all(url: str) -> list[str]:
    """Return what was asked; raise an ExceptionGroup of what was answered wrongly."""
    asked, wrong = [], []
    for operation in operations(url):
        asked.append(operation.label)
        try:
            ask(operation, url)
        except BaseException as exc:  # noqa: BLE001 - schemathesis raises groups of any kind
            wrong.append(AssertionError(f"{operation.label}: {_words(exc)}"))
    if wrong:
        raise ExceptionGroup("answers are not as described", wrong)
    return asked


def explain_known_pods(url: str) -> None:
    """Check the answers about pods that there are, whose names nobody would guess."""
    path = "/explain/pods/{namespace}/{name}"
    (operation,) = (each for each in operations(url) if each.path == path)
    for name in ("small", "big"):
        case = operation.Case(path_parameters={"namespace": "default", "name": name})
        answer = case.call(base_url=url)
        assert answer.status_code == 200
        case.validate_response(answer, checks=CHECKS)


def _words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(_words, error.exceptions))
    return str(error)


async def test_answers_are_as_described() -> None:
    async with running_world(nodes=3, cpu="2", limit=SECONDS) as world:
        await world.create(PODS, pod("small"), pod("big", cpu="9"))
        await world.until_running("small")
        server = HttpServer(scheduler_application(world.service))
        await server.start(LOOPBACK, 0)
        try:
            asked = await asyncio.to_thread(ask_all, server.url)
            await asyncio.to_thread(explain_known_pods, server.url)
        finally:
            await server.stop()

    assert {"GET /debug/queue", "GET /debug/cache", "GET /explain/pods/{namespace}/{name}"} <= {
        *asked
    }
