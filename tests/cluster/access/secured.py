"""An API server that asks everybody who he is, without sockets, on a store with the first roles."""

import random
from collections.abc import Collection
from typing import Any

import httpx
import msgspec

from berth.cluster.access.attributes import Attributes
from berth.cluster.access.rbac import Decision
from berth.cluster.access.signing_key import SigningKey, new_signing_key
from berth.cluster.access.tokens import Tokens
from berth.cluster.access.users import ADMIN, AUTHENTICATED, User
from berth.cluster.features import DEFAULT_FEATURES
from berth.cluster.http.in_flight import DEFAULT, InFlightLimits
from berth.cluster.http.server import ApiServer
from berth.cluster.kinds.gated import served
from berth.cluster.kinds.registry import Registry
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock
from tests.cluster.first_start import store_after_first_start

NOW = 1_700_000_000.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"
IN_DEFAULT = f"{RBAC}/namespaces/default"

ALICE = User("alice", (AUTHENTICATED,))


class Secured:
    """The server, and users who ask it: each gets a token when he first speaks."""

    def __init__(
        self, *, limits: InFlightLimits = DEFAULT, features: Collection[str] = DEFAULT_FEATURES
    ) -> None:
        self.clock = FakeClock(NOW)
        self.store = store_after_first_start(features)
        self.tokens = Tokens()
        self.key = SigningKey(new_signing_key())
        self.decisions: list[tuple[str, Attributes, Decision]] = []
        self.server = ApiServer(
            Registry(served(features)),
            self.store,
            clock=self.clock,
            rng=random.Random(1),
            tokens=self.tokens,
            signing_key=self.key,
            observer=self._observe,
            limits=limits,
            features=features,
        )
        transport = httpx.ASGITransport(app=self.server.app)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://cluster")

    def _observe(self, user: User, wanted: Attributes, decision: Decision) -> None:
        self.decisions.append((user.name, wanted, decision))

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: User = ADMIN,
        token: str | None = None,
        headers: list[tuple[str, str]] | None = None,
    ) -> tuple[int, Any]:
        """Return status code and answer; *token* "" means none is sent."""
        if token is None:
            token = self.tokens.issue(user)
        sent = [*(headers or ())]
        if "content-type" not in dict(sent):
            sent.append(("content-type", "application/json"))
        if token:
            sent.append(("authorization", f"Bearer {token}"))
        content = None if body is None else msgspec.json.encode(body)
        response = await self.http.request(method, path, content=content, headers=sent)
        if response.headers.get("content-type", "text/plain").startswith("text/plain"):
            return response.status_code, response.text
        return response.status_code, msgspec.json.decode(response.content)

    async def create(self, path: str, body: Object) -> Any:
        """Create as the administrator, which must work."""
        code, answer = await self.ask("POST", path, body)
        assert code == 201, answer
        return answer

    async def grant(self, user: str, *rules: Object, namespace: str = "") -> None:
        """Give a user rules of his own, everywhere or in one namespace."""
        where = f"{RBAC}/namespaces/{namespace}" if namespace else RBAC
        kind = "Role" if namespace else "ClusterRole"
        prefix = "" if namespace else "cluster"
        name = f"of-{user}"
        await self.create(
            f"{where}/{prefix}roles", {"metadata": {"name": name}, "rules": list(rules)}
        )
        await self.create(
            f"{where}/{prefix}rolebindings",
            {
                "metadata": {"name": name},
                "roleRef": {"kind": kind, "name": name},
                "subjects": [{"kind": "User", "name": user}],
            },
        )


def rule(resources: str, verbs: str, *, group: str = "", names: str = "") -> Object:
    """Write a PolicyRule; words in strings."""
    written: Object = {
        "apiGroups": [group],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    return {**written, "resourceNames": names.split()} if names else written


def status(code: int, reason: str, message: str, **details: str) -> Object:
    """Return the Status of a refusal."""
    body: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return {**body, "details": details} if code == 403 else body
