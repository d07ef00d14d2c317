"""``/debug/tasks`` and ``/debug/config``."""

import asyncio

from berth.scheduler.config.load import default_configuration, from_object
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE
from tests.harness import Harness
from tests.service.server.scheduler.debug.world import START, all_pages, get


async def wait_for_ever() -> None:
    await inner()


async def inner() -> None:
    await asyncio.Event().wait()


async def test_a_task_is_told_with_the_lines_it_waits_at() -> None:
    tasks = [asyncio.create_task(wait_for_ever(), name=f"eternal {i}") for i in range(2)]
    await asyncio.sleep(0)
    try:
        told = await all_pages(Harness(), "/debug/tasks?name=eternal", limit=1)
    finally:
        for task in tasks:
            task.cancel()

    assert [(each["name"], each["coroutine"]) for each in told] == [
        ("eternal 0", "wait_for_ever"),
        ("eternal 1", "wait_for_ever"),
    ]
    where = [line.rpartition(":")[0] for line in told[0]["where"]]
    assert where == [f"{__name__}.wait_for_ever", f"{__name__}.inner", "asyncio.locks.Event.wait"]


async def test_the_configuration_with_its_defaults() -> None:
    told = await get(Harness(), "/debug/config")

    assert (told["generation"], told["loadedAt"]) == (1, START)
    assert told["configuration"]["podMaxBackoffSeconds"] == 10
    models = args_models(IN_TREE)
    reread = from_object(told["configuration"], source="told", args_models=models)
    assert reread == default_configuration(models)
