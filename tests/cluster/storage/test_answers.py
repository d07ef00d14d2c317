"""An API server on a store that is kept: when it answers."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.cluster.serving import Serving, pod
from tests.cluster.storage.keeping import Kept

PODS = "/api/v1/namespaces/default/pods"
A_POD = msgspec.json.encode(pod("a"))


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        pytest.param("POST", PODS, A_POD, 201, id="a write"),
        pytest.param("GET", f"{PODS}/there", None, 200, id="a read of what is not durable yet"),
        pytest.param("GET", PODS, None, 200, id="a list with it"),
        pytest.param(
            "POST", PODS, msgspec.json.encode(pod("there")), 409, id="a refusal because of it"
        ),
    ],
)
async def test_an_answer_waits_for_what_it_shows(
    tmp_path: Path, method: str, path: str, body: bytes | None, code: int
) -> None:
    async with Kept(tmp_path) as kept:
        serving = Serving(store=kept.store)
        kept.database.stop()
        creating = asyncio.create_task(serving.pods("there"))
        await serving.settle()
        asking = asyncio.create_task(serving.request(method, path, body))
        await serving.settle()
        assert (creating.done(), asking.done()) == (False, False)
        kept.database.go_on()
        assert (await asking)[0] == code
        await creating


async def test_a_watch_shows_what_is_durable(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        serving = Serving(store=kept.store)

        async def write() -> None:
            kept.database.stop()
            creating = asyncio.create_task(serving.pods("a"))
            await serving.settle()
            kept.database.go_on()
            await creating

        events = await serving.watch(f"{PODS}?watch=1&timeoutSeconds=5", write, seconds=10)
        assert [event["object"]["metadata"]["name"] for event in events] == ["a"]


async def test_what_cannot_be_kept_is_not_acknowledged(tmp_path: Path) -> None:
    async with Kept(tmp_path) as kept:
        serving = Serving(store=kept.store)
        kept.database.fail()
        code, said = await serving.request("POST", PODS, A_POD)
        assert (code, said["reason"]) == (500, "InternalError")
        assert said["message"].endswith("berth.db: disk I/O error")
