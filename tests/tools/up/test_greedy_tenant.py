"""A tenant who takes all that one can get is served last; others hardly notice.

He is another process (``tests/tools/up/greedy.py``), so that only what he has the server do counts.
"""

import asyncio
import sys
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest
import yaml

from tests.tools.up.greedy import ATTACKS
from tests.tools.up.guest import PODS, World, ordinary, world_with_guest
from tests.tools.up.test_hostile_user import resident

pytestmark = [
    pytest.mark.wall,
    pytest.mark.slow,
    pytest.mark.usefixtures("root_logger"),
]

OTHER: Final = "other"
"""The namespace of another tenant."""
WRITES: Final = 20
BINDS: Final = 10
SLOWER: Final = 3
"""How many times longer than when it is calm others may wait."""
LEAST_SECONDS: Final = 0.05
"""What is shorter is no wait."""
LOOK_SECONDS: Final = 0.002
MOST_GROWTH: Final = 5 << 27
"""Bytes; a thousand connections over TLS take nearly half of that."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What another tenant and the operator see."""

    writes: Sequence[float]
    """Seconds until each was answered."""
    binds: Sequence[float]
    """Seconds from the creation of a pod until it was bound, as a watch tells."""
    resident: int

    def line(self) -> str:
        return (
            f"writes p50 {at(self.writes, 0.5):.3f} max {max(self.writes):.3f}, "
            f"binds p50 {at(self.binds, 0.5):.3f} p99 {at(self.binds, 0.99):.3f}, "
            f"{self.resident >> 20} MiB"
        )


def at(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


async def tenant_of(world: World, name: str) -> str:
    """Return the token of somebody who may do everything in a namespace of his own."""
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}"
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    subject = {"kind": "ServiceAccount", "name": "x", "namespace": name}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": name}}),
        (f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "x"}}),
        (f"{rbac}/roles", {"metadata": {"name": "all"}, "rules": [rule]}),
        (
            f"{rbac}/rolebindings",
            {"metadata": {"name": "all"}, "subjects": [subject], "roleRef": role},
        ),
    ):
        assert (await world.admin.post(path, json=body)).is_success
    path = f"/api/v1/namespaces/{name}/serviceaccounts/x/token"
    token = (await world.admin.post(path, json={"spec": {}})).json()["status"]["token"]
    return str(token)


async def look(world: World, other: httpx.AsyncClient) -> Seen:
    """Write as another tenant, and place pods as the operator."""
    writes = []
    for number in range(WRITES):
        body = {"metadata": {"generateName": "w-"}, "data": {"n": f"{number}"}}
        started = time.monotonic()
        answer = await other.post(f"/api/v1/namespaces/{OTHER}/configmaps", json=body)
        writes.append(time.monotonic() - started)
        assert answer.status_code == 201, answer.text
    binds = []
    for number in range(BINDS):
        name = f"bound-{number}"
        started = time.monotonic()
        answer = await world.admin.post(PODS, json=ordinary(name))
        assert answer.is_success, answer.text
        await world.until_bound(name, every=LOOK_SECONDS)
        binds.append(time.monotonic() - started)
        await world.admin.delete(f"{PODS}/{name}?gracePeriodSeconds=0")
    return Seen(writes, binds, resident())


@asynccontextmanager
async def attacked(world: World, folder: Path, *names: str) -> AsyncIterator[dict[str, int]]:
    """Attack while the block runs; afterwards what is yielded counts the answers by status."""
    config = yaml.safe_load((folder / "kubeconfig").read_text(encoding="utf-8"))
    cluster = config["clusters"][0]["cluster"]
    authority = folder / "ca.crt"
    authority.write_bytes(b64decode(cluster["certificate-authority-data"]))
    token = world.guest.headers["authorization"].removeprefix("Bearer ")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.tools.up.greedy", ",".join(names),
        cluster["server"], token, str(authority),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    answers: dict[str, int] = {}
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield answers
        said, _ = await process.communicate(b"")
        answers |= msgspec.json.decode(said)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.timeout(400)
async def test_others_hardly_notice(tmp_path: Path) -> None:
    async with world_with_guest(tmp_path) as world:
        token = await tenant_of(world, OTHER)
        async with httpx.AsyncClient(
            base_url=world.admin.base_url,
            verify=world.trusted,
            headers={"authorization": f"Bearer {token}"},
            timeout=30,
        ) as other:
            await look(world, other)
            calm = await look(world, other)
            async with attacked(world, tmp_path, *ATTACKS) as answers:
                seen = await look(world, other)
            await world.until_probed()
            again = await look(world, other)  # what else the machine does may have begun meanwhile
        shown = f"{seen.line()}, answers {answers}, calm {calm.line()}, then {again.line()}"
        for others, before, after in (
            (seen.writes, calm.writes, again.writes),
            (seen.binds, calm.binds, again.binds),
        ):
            longest = max(at(before, 0.99), at(after, 0.99), LEAST_SECONDS)
            assert at(others, 0.5) <= SLOWER * longest, shown
        assert seen.resident <= calm.resident + MOST_GROWTH, shown
        assert not [code for code in answers if code.startswith("5")], shown
        assert set(world.probes) == {200}
