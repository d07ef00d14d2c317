"""``/debug/podgroups``."""

from tests.builders import node
from tests.harness import Harness
from tests.scheduler.pod_group.building import composite, group, group_harness, members
from tests.service.server.scheduler.debug.world import application, client


async def test_groups_with_an_object_or_a_pod() -> None:
    harness = group_harness()
    harness.put(node("n", cpu="2"), group("empty"), group("fits", min_count=2))
    harness.put(group("large", min_count=3), *members("a", "b", of="fits", cpu="1"))
    harness.put(*members("c", "d", "e", of="large", cpu="1"), *members("f", of="nobody"))
    await harness.until_idle()
    async with client(application(harness)) as asking:
        everything = (await asking.get("/debug/podgroups")).json()["items"]
        page = (await asking.get("/debug/podgroups?limit=3")).json()
        rest = (await asking.get("/debug/podgroups", params={"continue": page["continue"]})).json()
        named = (await asking.get("/debug/podgroups?name=lt/em")).json()["items"]
        elsewhere = (await asking.get("/debug/podgroups?namespace=x")).json()["items"]

    told = {
        each["podGroup"]: (
            each["exists"], each["policy"], each["minCount"], each["numPods"],
            each["numScheduled"], each["numGated"], (each["status"] or {}).get("reason"),
        )
        for each in everything
    }  # fmt: skip
    assert told == {
        "default/empty": (True, "basic", None, 0, 0, 0, None),
        "default/fits": (True, "gang", 2, 2, 2, 0, "Scheduled"),
        "default/large": (True, "gang", 3, 3, 0, 0, "Unschedulable"),
        "default/nobody": (False, "", None, 1, 0, 1, None),
    }
    assert [*page["items"], *rest["items"]] == everything
    assert [each["podGroup"] for each in named] == ["default/empty"]
    assert elsewhere == []


async def test_without_the_gate_there_are_none() -> None:
    async with client(application(Harness())) as asking:
        assert (await asking.get("/debug/podgroups")).json() == {"items": [], "continue": ""}


async def test_groups_that_are_parts_of_others() -> None:
    harness = group_harness("TopologyAwareWorkloadScheduling", "CompositePodGroup", release="1.37")
    harness.put(composite("top"), composite("mid", parent="top"))
    harness.put(group("g", parent="mid"), group("h"))
    async with client(application(harness)) as asking:
        items = (await asking.get("/debug/podgroups")).json()["items"]
    told = {each["podGroup"]: each["partOf"] for each in items}
    assert told == {"default/g": "default/top", "default/h": ""}
