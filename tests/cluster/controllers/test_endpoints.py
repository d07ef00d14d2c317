"""What Endpoints and EndpointSlices say of the pods behind a Service."""

import random
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Action, Create, Delete, Patch
from berth.cluster.controllers.endpoint_slice import EndpointSliceController
from berth.cluster.controllers.endpoints import MANAGED_BY, EndpointsController
from berth.cluster.controllers.owned_slices import MOST_ENDPOINTS
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import EndpointSliceView, EndpointsView, NodeView, ResourceView
from berth.cluster.pods.controllers import PodView
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock

KEY = "default/web"
decode_pod = PodView.decoder()
PORT = {"port": 80, "targetPort": 8080, "protocol": "TCP"}
NAMED = {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}


def pod(
    name: str,
    ip: str = "10.0.0.1",
    *,
    app: str = "web",
    ready: bool = True,
    deleted: bool = False,
    phase: str = "Running",
    ports: tuple[Object, ...] = (),
    **spec: Any,
) -> PodView:
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": {"app": app},
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "c", "ports": list(ports)}
    body = {
        "metadata": metadata,
        "spec": {"nodeName": "n", "containers": [container], **spec},
        "status": {
            "phase": phase,
            "podIP": ip,
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }
    return decode_pod(msgspec.json.encode(body))


def service(**spec: Any) -> ResourceView:
    body = {
        "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "labels": {"a": "b"}},
        "spec": {"selector": {"app": "web"}, "ports": [PORT], "clusterIP": "10.96.0.9", **spec},
    }
    return msgspec.convert(body, ResourceView)


class World:
    def __init__(self, *pods: PodView, of: ResourceView | None) -> None:
        self.services: Table[ResourceView] = Table()
        self.pods: Table[PodView] = Table()
        self.nodes: Table[NodeView] = Table()
        self.endpoints: Table[EndpointsView] = Table()
        self.slices: Table[EndpointSliceView] = Table()
        self.clock = FakeClock()
        self.whole = EndpointsController(self.services, self.pods, self.endpoints)
        self.sliced = EndpointSliceController(
            self.services,
            self.pods,
            self.nodes,
            self.slices,
            clock=self.clock,
            rng=random.Random(1),
        )
        self.enqueued: list[str] = []
        self.whole.subscribe(self.enqueued.append)
        self.sliced.subscribe(lambda _key: None)
        labels = {"topology.kubernetes.io/zone": "z"}
        node = {"metadata": {"name": "n", "uid": "uid-n", "labels": labels}}
        self.nodes.on_add(msgspec.convert(node, NodeView))
        if of is not None:
            self.services.on_add(of)
        for each in pods:
            self.pods.on_add(each)

    def subsets(self) -> list[Object]:
        [create] = self.whole.plan(KEY).actions
        assert isinstance(create, Create)
        subsets: list[Object] = create.body.get("subsets") or []
        return subsets

    def slice_actions(self) -> list[Action]:
        """Return what is done, and do it."""
        actions = self.sliced.plan(KEY).actions
        for action in actions:
            self._apply(action)
        return actions

    def contents(self) -> list[int]:
        return sorted(len(each.endpoints or ()) for each in self.slices.values())

    def _apply(self, action: Action) -> None:
        match action:
            case Create(_, body):
                body["metadata"]["uid"] = f"uid-{body['metadata']['name']}"
                self.slices.on_add(msgspec.convert(body, EndpointSliceView))
            case Patch(path, body):
                old = self._slice(path)
                ports = body.get("ports", old.ports)
                new = msgspec.structs.replace(old, endpoints=body["endpoints"], ports=ports)
                self.slices.on_update(old, new)
            case Delete(path):
                self.slices.on_delete(self._slice(path))

    def _slice(self, path: str) -> EndpointSliceView:
        found = self.slices.get(f"default/{path.rpartition('/')[2]}")
        assert found is not None
        return found


def addresses(subset: Object, field: str = "addresses") -> list[str]:
    return [each["ip"] for each in subset.get(field) or ()]


def test_the_endpoints_of_a_service() -> None:
    world = World(pod("a"), of=service())
    [create] = world.whole.plan(KEY).actions
    assert isinstance(create, Create)
    assert create.body == {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default", "labels": {"a": "b", **MANAGED_BY}},
        "subsets": [
            {
                "addresses": [
                    {
                        "ip": "10.0.0.1",
                        "nodeName": "n",
                        "targetRef": {
                            "kind": "Pod",
                            "namespace": "default",
                            "name": "a",
                            "uid": "uid-a",
                        },
                    }
                ],
                "ports": [{"port": 8080, "protocol": "TCP"}],
            }
        ],
    }


WEB_PORT = {"name": "web", "containerPort": 9090, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("of", "pods", "ready", "waiting"),
    [
        pytest.param(service(), [pod("a", ready=False)], [], ["10.0.0.1"], id="not ready"),
        pytest.param(
            service(publishNotReadyAddresses=True), [pod("a", ready=False)], ["10.0.0.1"], [],
            id="not ready, and published all the same",
        ),
        pytest.param(service(), [pod("a", deleted=True)], [], [], id="on its way out"),
        pytest.param(service(), [pod("a", phase="Succeeded")], [], [], id="ended"),
        pytest.param(service(), [pod("a", "")], [], [], id="without an address"),
        pytest.param(service(), [pod("a", app="db")], [], [], id="of somebody else"),
        pytest.param(service(ports=[NAMED]), [pod("a")], [], [], id="without the named port"),
        pytest.param(
            service(ports=[NAMED]), [pod("a", ports=(WEB_PORT,))], ["10.0.0.1"], [],
            id="with the named port",
        ),
        pytest.param(
            service(clusterIP="None", ports=[]), [pod("a")], ["10.0.0.1"], [],
            id="headless, without ports",
        ),
    ],
)  # fmt: skip
def test_which_addresses_there_are(
    of: ResourceView, pods: list[PodView], ready: list[str], waiting: list[str]
) -> None:
    subsets = World(*pods, of=of).subsets()
    assert [ip for subset in subsets for ip in addresses(subset)] == ready
    assert [ip for each in subsets for ip in addresses(each, "notReadyAddresses")] == waiting


def test_addresses_with_other_ports_are_apart() -> None:
    other = {**WEB_PORT, "containerPort": 7070}
    pods = [
        pod("a", "10.0.0.1", ports=(WEB_PORT,)),
        pod("b", "10.0.0.2", ports=(other,)),
        pod("c", "10.0.0.3", ports=(WEB_PORT,)),
    ]
    world = World(*pods, of=service(ports=[NAMED]))
    shown = [(addresses(subset), subset["ports"][0]["port"]) for subset in world.subsets()]
    assert shown == [(["10.0.0.2"], 7070), (["10.0.0.1", "10.0.0.3"], 9090)]
    world.slice_actions()
    assert world.contents() == [1, 2]


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(service(selector=None), id="without a selector"),
        pytest.param(service(type="ExternalName"), id="of an external name"),
    ],
)
def test_others_are_made_by_hand(of: ResourceView) -> None:
    world = World(pod("a"), of=of)
    assert world.whole.plan(KEY).actions == []
    assert world.sliced.plan(KEY).actions == []


def test_endpoints_go_with_their_service() -> None:
    meta = {"name": "web", "namespace": "default", "uid": "u"}
    world = World(of=None)
    by_hand = msgspec.convert({"metadata": meta}, EndpointsView)
    world.endpoints.on_add(by_hand)
    assert world.whole.plan(KEY).actions == []
    ours = msgspec.convert({"metadata": {**meta, "labels": MANAGED_BY}}, EndpointsView)
    world.endpoints.on_update(by_hand, ours)
    [delete] = world.whole.plan(KEY).actions
    assert isinstance(delete, Delete)


def test_a_slice_tells_more_of_an_endpoint() -> None:
    world = World(pod("a", hostname="a-0", subdomain="web"), of=service())
    [create] = world.slice_actions()
    assert isinstance(create, Create)
    assert create.body["metadata"]["labels"] == {
        "a": "b",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert create.body["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert create.body["endpoints"] == [
        {
            "addresses": ["10.0.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "a", "uid": "uid-a"},
            "hostname": "a-0",
            "nodeName": "n",
            "zone": "z",
        }
    ]


@pytest.mark.parametrize(
    ("each", "want"),
    [
        pytest.param(pod("a"), (True, True, False), id="ready"),
        pytest.param(pod("a", ready=False), (False, False, False), id="not ready"),
        pytest.param(pod("a", deleted=True), (False, True, True), id="leaving, but serving"),
    ],
)
def test_the_conditions_of_an_endpoint(each: PodView, want: tuple[bool, bool, bool]) -> None:
    world = World(each, of=service())
    world.slice_actions()
    [found] = [one for each in world.slices.values() for one in each.endpoints or ()]
    conditions = found["conditions"]
    assert (conditions["ready"], conditions["serving"], conditions["terminating"]) == want


def test_a_service_without_pods_has_an_empty_slice() -> None:
    world = World(of=service(clusterIP="None"))
    [create] = world.slice_actions()
    assert isinstance(create, Create)
    assert (create.body["endpoints"], create.body["ports"]) == ([], [])
    assert "service.kubernetes.io/headless" in create.body["metadata"]["labels"]
    assert world.slice_actions() == []

    world.pods.on_add(pod("a"))
    world.slice_actions()
    assert world.contents() == [1]
    assert world.slice_actions() == []
    world.pods.on_delete(pod("a"))
    world.slice_actions()
    assert world.contents() == [0]
    assert world.slice_actions() == []


def test_an_empty_slice_takes_the_ports_of_the_first_pod() -> None:
    world = World(of=service())
    [empty] = world.slice_actions()
    assert isinstance(empty, Create)

    world.pods.on_add(pod("a"))
    [change] = world.slice_actions()  # nobody sees two slices
    assert isinstance(change, Patch)
    assert change.path.endswith(empty.body["metadata"]["name"])
    assert [port["port"] for port in change.body["ports"]] == [8080]
    assert world.contents() == [1]
    assert world.slice_actions() == []


def test_slices_hold_a_hundred() -> None:
    pods = [pod(f"p{number:03}", f"10.0.0.{number}") for number in range(2 * MOST_ENDPOINTS + 1)]
    world = World(*pods, of=service())
    assert len(world.slice_actions()) == 3
    assert world.contents() == [1, 100, 100]

    world.pods.on_delete(pods[0])
    assert len(world.slice_actions()) == 1  # the others stay as they are
    assert sum(world.contents()) == 200


def test_slices_are_asked_for_once() -> None:
    world = World(pod("a"), of=service())
    assert len(world.sliced.plan(KEY).actions) == 1
    assert world.sliced.plan(KEY).actions == []


def test_only_what_shows_wakes_it() -> None:
    world = World(pod("a"), pod("b", app="db"), of=service())
    world.enqueued.clear()
    world.pods.on_update(pod("a"), pod("a"))
    world.pods.on_update(pod("b", app="db"), pod("b", app="db", ready=False))
    assert world.enqueued == []
    world.pods.on_update(pod("a"), pod("a", ready=False))
    assert world.enqueued == [KEY]
