"""What is written to claims: allocation, reservation, release, deallocation, deletion."""

import asyncio
from typing import Any

import msgspec
import pytest

from berth.kube.objects.devices import (
    EXTENDED_RESOURCE_CLAIM,
    ResourceClaim,
    claim_body,
    decode_claim,
)
from berth.runtime.clock import FakeClock
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.writes import ConflictError
from berth_plugins.dynamic_resources.claim_writes import (
    ClaimWriteError,
    ClaimWrites,
    may_be_deallocated,
)
from berth_plugins.dynamic_resources.group_claims import consumer_of
from tests.builders import pod
from tests.device_builders import allocation, claim, said
from tests.fake_claims import FakeClaims, Write

POD = pod("p", uid="me")
ME = consumer_of(POD)
DEVICES = allocation("a", since="2026-01-01T00:00:00Z")


class World:
    """A server with one claim, and what writes to it."""

    def __init__(self, stored: ResourceClaim) -> None:
        self.clock = FakeClock()
        self.server = FakeClaims.known_to(Lister())
        self.claim = self.server.put(stored)
        self.claim_writes = ClaimWrites(self.server, self.clock)

    async def do(self, work: Any) -> Any:
        """Let *work* end, moving the clock whenever it sleeps."""
        task = asyncio.ensure_future(work)
        for _ in range(100):
            await asyncio.sleep(0)
            if task.done():
                break
            self.clock.advance(0.01)
        return task.result()


async def test_a_claim_is_protected_then_allocated_and_reserved() -> None:
    world = World(claim("c"))
    written = await world.claim_writes.reserve(world.claim, ME, DEVICES)
    assert world.server.writes == [Write("update", "c"), Write("update status", "c")]
    body = claim_body(written)
    assert body["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert body["status"] == {
        "allocation": msgspec.json.decode(msgspec.json.encode(DEVICES)),
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "me"}],
    }


async def test_an_allocated_claim_is_reserved_for_one_more() -> None:
    world = World(claim("c", allocated=DEVICES, users=["other"]))
    written = await world.claim_writes.reserve(world.claim, ME, None)
    assert world.server.writes == [Write("update status", "c")]
    assert [user.uid for user in written.status.reserved_for] == ["other", "me"]
    assert written.status.allocation == DEVICES


async def test_fields_that_we_do_not_know_are_kept() -> None:
    world = World(claim("c"))
    body = claim_body(world.claim)
    body["spec"]["novelty"] = 1
    body["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    stored = await world.server.update(body)
    written = claim_body(await world.claim_writes.reserve(stored, ME, DEVICES))
    assert written["spec"]["novelty"] == 1
    assert written["metadata"]["managedFields"] == [{"manager": "kubectl"}]


@pytest.mark.parametrize("conflicts", [1, 4])
async def test_a_claim_that_was_changed_is_read_again(conflicts: int) -> None:
    world = World(claim("c"))
    world.server.conflicts = conflicts
    written = await world.do(world.claim_writes.reserve(world.claim, ME, DEVICES))
    assert written.is_reserved_for("me")
    assert written.status.allocation == DEVICES


async def test_five_conflicts_are_too_many() -> None:
    world = World(claim("c"))
    world.server.conflicts = 5
    with pytest.raises(ConflictError):
        await world.do(world.claim_writes.reserve(world.claim, ME, DEVICES))


@pytest.mark.parametrize(
    ("meanwhile", "want"),
    [
        pytest.param(
            claim("c", allocated=allocation("b")),
            "claim default/c got allocated elsewhere in the meantime",
            id="somebody else was faster",
        ),
        pytest.param(
            claim("c", deleted="2026-01-01T00:00:00Z"),
            "claim default/c got deleted in the meantime",
            id="it is going away",
        ),
    ],
)
async def test_a_claim_that_is_lost(meanwhile: ResourceClaim, want: str) -> None:
    world = World(claim("c"))
    world.server.put(meanwhile)
    with pytest.raises(ClaimWriteError) as failure:
        await world.do(world.claim_writes.reserve(world.claim, ME, DEVICES))
    assert str(failure.value) == want


async def test_a_claim_that_lost_its_devices_is_not_reserved() -> None:
    world = World(claim("c", allocated=DEVICES))
    world.server.put(claim("c"))
    with pytest.raises(ClaimWriteError) as failure:
        await world.do(world.claim_writes.reserve(world.claim, ME, None))
    assert str(failure.value) == "claim default/c got deallocated elsewhere in the meantime"


async def test_a_reservation_is_released() -> None:
    world = World(claim("c", allocated=DEVICES, users=["other", "me"]))
    await world.claim_writes.release(world.claim, ME)
    assert [user.uid for user in world.server.claim("c").status.reserved_for] == ["other"]


async def test_deallocation_leaves_what_drivers_say_without_the_gate_for_it() -> None:
    world = World(claim("c", allocated=DEVICES, users=["me"], devices=[said("a", "Up")]))
    writes = ClaimWrites(world.server, world.clock, has_status=False)
    await writes.deallocate(world.claim, POD)
    assert list(claim_body(world.server.claim("c"))["status"]) == ["devices"]


@pytest.mark.parametrize(
    ("users", "allowed"),
    [
        pytest.param([], True, id="nobody uses it"),
        pytest.param(["me"], True, id="only this pod does"),
        pytest.param(["me", "other"], False, id="others do"),
    ],
)
async def test_deallocation(users: list[str], allowed: bool) -> None:
    world = World(claim("c", allocated=DEVICES, users=users, devices=[said("a", "Up")]))
    assert may_be_deallocated(world.claim, POD) is allowed
    await world.claim_writes.deallocate(world.claim, POD)
    status = claim_body(world.server.claim("c")).get("status", {})
    assert (status == {}) is allowed


async def test_a_claim_that_is_used_by_now_is_not_deallocated() -> None:
    world = World(claim("c", allocated=DEVICES))
    world.server.put(claim("c", allocated=DEVICES, users=["other"]))
    await world.do(world.claim_writes.deallocate(world.claim, POD))
    assert world.server.claim("c").status.allocation == DEVICES


@pytest.mark.parametrize("conflicts", [0, 1])
async def test_a_claim_is_deleted_with_its_protection(conflicts: int) -> None:
    world = World(claim("c"))
    protected = await world.claim_writes.reserve(world.claim, ME, DEVICES)
    world.server.conflicts = conflicts
    await world.do(world.claim_writes.delete(protected))
    assert world.server.names() == []


async def test_a_claim_for_extended_resources_is_created() -> None:
    world = World(claim("c"))
    marked = {EXTENDED_RESOURCE_CLAIM: "true"}
    wanted = claim("<extended-resources>", owner="me", annotations=marked)
    created = await world.claim_writes.create(wanted, POD)
    assert created.metadata.name.startswith("p-extended-resources-")
    assert created.metadata.controller is not None
    assert created.metadata.controller.uid == "me"
    assert created.metadata.annotations == marked
    assert created.spec == wanted.spec


def test_a_claim_must_come_from_the_api_to_be_written() -> None:
    with pytest.raises(ValueError, match="ResourceClaim default/c: not decoded from the API"):
        claim_body(claim("c"))


def test_what_was_decoded_comes_with_its_bytes() -> None:
    data = b'{"metadata":{"name":"c"},"spec":{},"novelty":1}'
    assert decode_claim(data).raw == data
