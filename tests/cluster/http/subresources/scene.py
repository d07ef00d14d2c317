"""A cluster with a hollow node and one that no kubelet runs, and pods on both."""

from typing import Any

import httpx

from berth.cluster.access.users import ADMIN, User
from berth.cluster.resources import Object
from tests.cluster.access.secured import Secured

CORE = "/api/v1/namespaces/default"
STARTED = "2023-11-14T22:13:10Z"
ENDED = "2023-11-14T22:13:15Z"
RUNNING: Object = {"running": {"startedAt": STARTED}}


def node(name: str, address: str, *, runtime: str) -> Object:
    return {
        "metadata": {"name": name},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "nodeInfo": {"containerRuntimeVersion": runtime},
        },
    }


class Scene:
    def __init__(self) -> None:
        self.secured = Secured()

    async def create_nodes(self) -> None:
        nodes = "/api/v1/nodes"
        await self.secured.create(nodes, node("hollow", "172.18.0.0", runtime="hollow://1"))
        await self.secured.create(nodes, node("other", "10.0.0.9", runtime="containerd://2"))

    async def create_pod(
        self, name: str = "p", *containers: str, node: str = "hollow", **spec: Any
    ) -> None:
        """Create a pod; with no *node* it waits for the scheduler."""
        spec["containers"] = [
            {"name": container, "image": "nginx"} for container in containers or ("c",)
        ]
        if node:
            spec["nodeName"] = node
        await self.secured.create(f"{CORE}/pods", {"metadata": {"name": name}, "spec": spec})

    async def report(self, name: str, phase: str = "Running", /, **states: Object) -> None:
        """Say as a kubelet what the containers do."""
        status = {
            "phase": phase,
            "podIP": "10.64.0.2",
            "containerStatuses": [
                {
                    "name": container,
                    "image": "nginx",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "state": state,
                }
                for container, state in states.items()
            ],
        }
        path = f"{CORE}/pods/{name}/status"
        body = {"metadata": {"name": name}, "status": status}
        code, answer = await self.secured.ask("PUT", path, body)
        assert code == 200, answer

    async def refused(
        self, path: str, *, method: str = "GET", user: User = ADMIN
    ) -> tuple[int, str, str]:
        """Return code, reason and message of a refusal."""
        code, status = await self.secured.ask(method, path, user=user)
        assert status["kind"] == "Status", status
        return code, status.get("reason", ""), status["message"]

    async def text(self, path: str) -> str:
        headers = {"authorization": f"Bearer {self.secured.tokens.issue(ADMIN)}"}
        answer: httpx.Response = await self.secured.http.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/plain")
        return answer.text
