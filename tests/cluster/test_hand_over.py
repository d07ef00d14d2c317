"""Work handed to several takers: nothing is lost, in order, and nobody is woken for nothing."""

import asyncio

from berth.cluster.kubelet.hollow_kubelets import HandOver


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_items_come_in_order_to_whoever_takes_them() -> None:
    items: HandOver[int] = HandOver()
    items.put(range(3))
    assert [await items.take() for _ in range(3)] == [0, 1, 2]


async def test_one_taker_does_what_needs_no_waiting_and_the_others_help_when_it_does() -> None:
    items: HandOver[int] = HandOver()
    done: list[tuple[str, int]] = []
    gate = asyncio.Event()

    async def work(name: str) -> None:
        while True:
            item = await items.take()
            if item == 2:
                await gate.wait()
            done.append((name, item))

    takers = [asyncio.create_task(work(name)) for name in "abc"]
    await settle()
    items.put(range(4))
    await settle()
    assert done == [("a", 0), ("a", 1), ("b", 3)]
    gate.set()
    await settle()
    assert done[-1] == ("a", 2)
    for taker in takers:
        taker.cancel()
    await asyncio.wait(takers)


async def test_an_item_is_not_lost_with_the_taker_that_was_woken_for_it() -> None:
    items: HandOver[int] = HandOver()
    first, second = (asyncio.create_task(items.take()) for _ in range(2))
    await settle()
    items.put([1])
    first.cancel()
    await settle()
    assert first.cancelled()
    assert second.result() == 1


async def test_a_taker_that_was_cancelled_is_not_woken() -> None:
    items: HandOver[int] = HandOver()
    first, second = (asyncio.create_task(items.take()) for _ in range(2))
    await settle()
    first.cancel()
    items.put([1])
    await settle()
    assert second.result() == 1
