"""A tenant who takes what he can get, in a process of his own: ``python -m tests.tools.up.greedy``.

Says ``ready`` when an attack is under way, and goes on until his standard input ends; then says
which answers he got, as JSON.
"""

import asyncio
import json
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from tests.hostile_requests import CORE, DEVICES, JSON, NAMESPACE, RBAC, exactly, pod

BODIES: Final = 205
"""Requests without an end: more than there are slots for requests that change something."""
WATCHES: Final = 1_005
"""More than there are connections."""
AT_ONCE: Final = 15
"""Of them, how many are asked for together."""
ACCOUNTS: Final = 30
LARGE: Final = 2_800_000
"""Bytes of an object: nearly as many as a request may have."""
UPDATES: Final = 40
YAML: Final = b"\n".join(b"k%d: [1, {a: b}]" % n for n in range(50_000))
CRON_JOBS: Final = 45
"""Requests a second."""
SECONDS_FOR_EVER: Final = 999_999_999

Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Tenant:
    """Speaks to the API server as service accounts of one namespace."""

    def __init__(self, url: str, token: str, authority: str) -> None:
        self._url = url
        self._token = token
        self._trusted = ssl.create_default_context(cafile=authority)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._peers: list[Peer | None] = []
        self.answers: Counter[int] = Counter()

    async def client(self, token: str = "") -> httpx.AsyncClient:
        made = httpx.AsyncClient(
            base_url=self._url,
            verify=self._trusted,
            headers={"Authorization": f"Bearer {token or self._token}"},
            timeout=60,
            limits=httpx.Limits(max_connections=20),
        )
        return await self._stack.enter_async_context(made)

    async def accounts(self, count: int) -> list[str]:
        """Return the tokens of new service accounts, which may do all in the namespace."""
        client = await self.client()
        tokens = []
        for number in range(count):
            name = f"greedy-{number}"
            await client.post(f"{CORE}/serviceaccounts", json={"metadata": {"name": name}})
            answer = await client.post(f"{CORE}/serviceaccounts/{name}/token", json={"spec": {}})
            tokens.append(answer.json()["status"]["token"])
        group = {
            "kind": "Group",
            "apiGroup": "rbac.authorization.k8s.io",
            "name": f"system:serviceaccounts:{NAMESPACE}",
        }
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
        body = {"metadata": {"name": "greedy"}, "subjects": [group], "roleRef": role}
        await client.post(f"{RBAC}/rolebindings", json=body)
        return tokens

    async def connect(self, head: str, headers: Mapping[str, str] = {}) -> Peer | None:
        """Send the head of a request on a connection of its own; None: it was refused."""
        host = urlsplit(self._url)
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(
                host.hostname, host.port, ssl=self._trusted, limit=1 << 16
            )
            lines = [f"{head} HTTP/1.1", "Host: x", f"Authorization: Bearer {self._token}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            return reader, writer
        return None

    async def until_answered(self) -> None:
        """Wait for one more answer: the attack is under way."""
        before = self.answers.total()
        while self.answers.total() == before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)

    def keep(self, peer: Peer | None) -> None:
        """Leave a connection open."""
        self._peers.append(peer)

    def go_on(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do *work* again and again."""

        async def for_ever() -> None:
            while True:
                with suppress(httpx.HTTPError, OSError):
                    await work()
                await asyncio.sleep(0.01)

        self._tasks.append(asyncio.create_task(for_ever(), name="attack"))

    async def ask(self, client: httpx.AsyncClient, method: str, path: str, **more: Any) -> None:
        answer = await client.request(method, path, **more)
        self.answers[answer.status_code] += 1

    async def end(self) -> None:
        """End the attacks; raise what one of them died of."""
        for task in self._tasks:
            task.cancel()
        for found in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(found, Exception):
                raise found
        await self._stack.aclose()


async def bodies_without_end(tenant: Tenant) -> None:
    path = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    headers = {"Content-Type": JSON, "Content-Length": "1000"}

    async def one() -> None:
        peer = await tenant.connect(path, headers)
        if peer is not None:
            peer[1].write(b"{")
            await peer[0].read()
            peer[1].close()

    for _ in range(BODIES):
        tenant.go_on(one)
    await asyncio.sleep(2)


async def many_watches(tenant: Tenant) -> None:
    path = f"GET {CORE}/configmaps?watch=1&timeoutSeconds={SECONDS_FOR_EVER}"
    for _ in range(WATCHES // AT_ONCE):
        asking = (tenant.connect(path) for _ in range(AT_ONCE))
        for peer in await asyncio.gather(*asking):
            tenant.keep(peer)
    tenant.answers[0] += WATCHES


async def costly_expressions(tenant: Tenant) -> None:
    for number, token in enumerate(await tenant.accounts(ACCOUNTS)):
        client = await tenant.client(token)
        made = iter(range(10**9))

        async def one(
            client: httpx.AsyncClient = client, number: int = number, made: Any = made
        ) -> None:
            name = f"cel-{number}-{next(made)}"
            terms = [f'device.driver == "{name}-{n}"' for n in range(240)]
            requests = [
                exactly(f"r{n}", cel=" || ".join([f'"{n}" == "x"', *terms])) for n in range(4)
            ]
            claim = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
            await tenant.ask(client, "POST", f"{DEVICES}/resourceclaims", json=claim)
            await asyncio.sleep(1)

        tenant.go_on(one)
    await tenant.until_answered()


async def large_watched(tenant: Tenant) -> None:
    client = await tenant.client()
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    body = {"metadata": {"name": "large"}, "rules": [{**rule, "resourceNames": ["x" * LARGE]}]}
    await tenant.ask(client, "POST", f"{RBAC}/roles", json=body)
    tenant.keep(await tenant.connect(f"GET {RBAC}/roles?watch=1"))  # and nothing is read
    for number in range(UPDATES):
        patch = {"metadata": {"annotations": {"n": f"{number}"}}}
        await tenant.ask(
            client, "PATCH", f"{RBAC}/roles/large", json=patch,
            headers={"Content-Type": "application/merge-patch+json"},
        )  # fmt: skip


async def long_yaml(tenant: Tenant) -> None:
    client = await tenant.client()

    async def one() -> None:
        await tenant.ask(
            client, "POST", f"{CORE}/configmaps", content=YAML,
            headers={"Content-Type": "application/yaml"},
        )  # fmt: skip

    for _ in range(8):
        tenant.go_on(one)
    await tenant.until_answered()


async def schedules_that_never_come(tenant: Tenant) -> None:
    client = await tenant.client()
    template = {"spec": {"template": {"spec": pod("x", restartPolicy="Never")["spec"]}}}
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs"
    body = {
        "metadata": {"name": "never"},
        "spec": {"schedule": "0 0 30 2 *", "jobTemplate": template},
    }
    await tenant.ask(client, "POST", path, json=body)
    numbers = iter(range(10**9))

    async def one() -> None:
        patch = {"metadata": {"annotations": {"n": f"{next(numbers)}"}}}
        await tenant.ask(
            client, "PATCH", f"{path}/never", json=patch,
            headers={"Content-Type": "application/merge-patch+json"},
        )  # fmt: skip
        await asyncio.sleep(4 / CRON_JOBS)

    for _ in range(4):
        tenant.go_on(one)
    await asyncio.sleep(1)


ATTACKS: Final[Mapping[str, Callable[[Tenant], Awaitable[None]]]] = {
    each.__name__: each
    for each in (
        bodies_without_end,
        many_watches,
        large_watched,
        costly_expressions,
        long_yaml,
        schedules_that_never_come,
    )
}


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(names: list[str], url: str, token: str, authority: str) -> None:
    tenant = Tenant(url, token, authority)
    for name in names:
        await ATTACKS[name](tenant)
    say("ready")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await tenant.end()
    say(json.dumps(tenant.answers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1].split(","), *sys.argv[2:5]))
