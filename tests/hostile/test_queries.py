"""No query brings an endpoint to anything but an answer or a refusal."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from fastapi import FastAPI

from tests.builders import node, pod
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import application, client

HOSTILE: Final = (
    *("", "\0", "\u2028", "\ud7ff", "%", "'", '"', "{}", "[]", "null", "-1", "1e999", "nan"),
    *("9" * 5_000, "a" * 5_000, " " * 5_000, "+" * 5_000, "a," * 2_500, "(" * 5_000, "a/" * 2_500),
    *("/", "a/b/c", "a=b,c in (", "!", "i>x", "OTk5OTk5", "=" * 99, "\x1b[31m", "../../etc"),
)


def parameters(serving: FastAPI) -> Iterator[tuple[str, str]]:
    """Yield path and name of every query parameter that a GET takes."""
    paths: dict[str, Any] = serving.openapi()["paths"]
    for path, methods in paths.items():
        for parameter in methods.get("get", {}).get("parameters", ()):
            if parameter["in"] == "query":
                yield path, parameter["name"]


@pytest.fixture(scope="module")
def serving() -> FastAPI:
    """Everything below /debug and /explain, over one node and one waiting pod."""
    harness = Harness()
    harness.put(node("n1", labels={"zone": "a"}), pod("p"))
    return application(harness)


async def test_queries_are_answered_or_refused(serving: FastAPI) -> None:
    asked = list(parameters(serving))
    assert {"labelSelector", "continue", "limit", "pod"} <= {name for _, name in asked}
    failed = []
    async with client(serving) as asking:
        for path, name in asked:
            for text in HOSTILE:
                answer = await asking.get(
                    path.format(namespace="default", name="p"), params={name: text}
                )
                if answer.status_code >= 500 or len(answer.content) > 40_000:
                    failed.append((path, name, text[:20], answer.status_code))
    assert failed == []
