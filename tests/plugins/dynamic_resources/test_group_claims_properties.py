"""Whatever happens to groups that share claims: who is bound has devices, and nothing leaks."""

import asyncio
import random
from collections.abc import Iterator

import msgspec
import pytest

from berth.kube.objects.pod import Pod
from tests.device_builders import claim, with_claims
from tests.harness import Harness
from tests.plugins.dynamic_resources.group_world import (
    check_devices,
    check_reservations,
    devices_of,
    group_with,
    users,
    world,
)
from tests.scheduler.pod_group.building import member


class Story:
    """Groups come and go while binds and writes fail; claims are freed as their controller does."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.harness: Harness = world("n1", "n2", devices=self.rng.randint(1, 2))
        self.server = self.harness.cluster.resource_claims
        self.server.turns = self.rng.randint(0, 3)
        self.server.faults = self.faults()
        self.server.losses = self.losses()
        self.is_calm = False
        self.claims_of: dict[str, str] = {}
        self.made = 0
        names = [f"c{number}" for number in range(3)]
        self.harness.put(*map(claim, names))

    def faults(self) -> Iterator[Exception | None]:
        while True:
            is_fault = not self.is_calm and self.rng.random() < 0.3
            yield OSError("no route") if is_fault else None

    def losses(self) -> Iterator[bool]:
        while True:
            yield not self.is_calm and self.rng.random() < 0.15

    async def run(self) -> None:
        for _ in range(12):
            await self.deed()
            await self.bind()
            if self.rng.random() < 0.5:
                self.free()
            self.harness.clock.advance(self.rng.choice([0, 1, 3]))
            self.harness.queue.flush_backoff_completed()
        self.calm()
        for _ in range(40):
            self.free()
            self.harness.clock.advance(10)
            self.harness.queue.flush_backoff_completed()
            self.harness.queue.flush_unschedulable_pods_leftover()
            await self.bind()
        check_devices(self.harness)
        check_reservations(self.harness, self.claims_of)
        self.check_consumers_exist()
        for pod in list(self.harness.cluster.pods.values()):
            self.harness.delete(pod)
        for group in list(self.harness.listers.pod_groups):
            self.harness.delete(group)
        self.free()
        await self.bind()
        check_devices(self.harness)
        for name in self.server.names():
            assert (devices_of(self.harness, name), users(self.harness, name)) == ([], [])

    def calm(self) -> None:
        self.is_calm = True
        self.harness.cluster.bind_errors.clear()

    async def deed(self) -> None:
        match self.rng.randrange(5):
            case 0 | 1:
                self.make_group()
            case 2:
                self.join()
            case 3:
                self.delete_pod()
            case 4:
                self.delete_group()

    def make_group(self) -> None:
        self.made += 1
        name, size = f"g{self.rng.randrange(3)}", self.rng.randint(1, 4)
        if self.harness.listers.pod_groups.get("default", name) is not None:
            return
        shared = f"c{self.rng.randrange(3)}"
        min_count = self.rng.choice([None, size, 1])
        self.harness.put(
            group_with(shared, name=name, min_count=min_count, uid=f"uid-{name}-{self.made}")
        )
        for _ in range(size):
            self.add(name, shared)

    def add(self, group: str, shared: str) -> None:
        self.made += 1
        name = f"{group}-p{self.made}"
        self.claims_of[name] = shared
        cpu = self.rng.choice(["500m", "1", "2"])
        self.harness.put(with_claims(member(name, group, cpu=cpu), shared))
        if self.rng.random() < 0.2:
            self.harness.cluster.bind_errors[name] = OSError("no route")

    def join(self) -> None:
        for group in self.harness.listers.pod_groups:
            self.add(group.metadata.name, group.spec.resource_claims[0].name)
            return

    def pods_of(self, group: str) -> list[Pod]:
        return [
            pod
            for pod in self.harness.cluster.pods.values()
            if pod.spec.scheduling_group is not None
            and pod.spec.scheduling_group.pod_group_name == group
        ]

    def delete_pod(self) -> None:
        pods = list(self.harness.cluster.pods.values())
        if pods:
            self.harness.delete(self.rng.choice(pods))

    def delete_group(self) -> None:
        """Delete a group with its pods; the finalizer has it go last."""
        groups = list(self.harness.listers.pod_groups)
        if groups:
            group = self.rng.choice(groups)
            for pod in self.pods_of(group.metadata.name):
                self.harness.delete(pod)
            self.harness.delete(group)

    async def bind(self) -> None:
        """Do all that can be done now; attempts go on while bindings are under way."""
        core = self.harness.core
        work: list[asyncio.Task[None]] = []
        for _ in range(200):
            bindings = await core.schedule_next()
            if bindings is None:
                break
            work += [
                asyncio.create_task(core.scheduler.binding_cycle.run(binding))
                for binding in bindings
            ]
            if not self.is_calm and self.rng.random() < 0.2:
                work.append(asyncio.create_task(self.meanwhile()))
            for _ in range(self.rng.randint(0, 4)):
                await asyncio.sleep(0)
        work.append(asyncio.create_task(self.harness.until_idle()))
        while not all(task.done() for task in work):
            await asyncio.sleep(0)
            self.harness.clock.advance(0.001)  # conflicts are tried again after a pause
        await asyncio.gather(*work)

    async def meanwhile(self) -> None:
        for _ in range(self.rng.randint(0, 3)):
            await asyncio.sleep(0)
        self.delete_pod()

    def free(self) -> None:
        """Take reservations away from pods and groups that are gone, and then the devices."""
        alive = self.alive()
        for name in self.server.names():
            stored = self.server.claim(name)
            reserved = stored.status.reserved_for
            kept = tuple(each for each in reserved if each.uid in alive)
            if len(kept) < len(reserved):
                status = msgspec.structs.replace(
                    stored.status,
                    reserved_for=kept,
                    allocation=stored.status.allocation if kept else None,
                )
                self.server.put(msgspec.structs.replace(stored, status=status))

    def alive(self) -> set[str]:
        """Return the UIDs of all pods and groups."""
        pods = self.harness.cluster.pods.values()
        groups = self.harness.listers.pod_groups
        return {each.metadata.uid for each in (*pods, *groups)}

    def check_consumers_exist(self) -> None:
        alive = self.alive()
        for name in self.server.names():
            assert {uid for _, uid in users(self.harness, name)} <= alive


async def check(seed: int) -> None:
    try:
        await Story(seed).run()
    except AssertionError as exc:
        raise AssertionError(f"seed {seed}: {exc}") from exc


async def test_claims_of_groups_are_kept_and_freed() -> None:
    for seed in range(25):
        await check(seed)


@pytest.mark.slow
async def test_claims_of_groups_are_kept_and_freed_in_many_stories() -> None:
    for seed in range(100, 140):
        await check(seed)
