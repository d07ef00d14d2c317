"""What EndpointSlices say of Endpoints that somebody wrote."""

import random
from typing import Any

import msgspec
import pytest

from berth.cluster.actions import Create, Delete, Patch
from berth.cluster.controllers.endpoint_slice_mirroring import EndpointSliceMirroringController
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import EndpointSliceView, EndpointsView, ResourceView
from berth.cluster.resources import Object
from berth.runtime.clock import FakeClock

KEY = "default/web"
PORT = {"name": "http", "port": 80, "protocol": "TCP"}
SUBSET = {"addresses": [{"ip": "10.1.2.3"}], "ports": [PORT]}


class World:
    def __init__(
        self,
        *subsets: Object,
        selector: Object | None = None,
        has_service: bool = True,
        **metadata: Any,
    ) -> None:
        self.endpoints: Table[EndpointsView] = Table()
        self.services: Table[ResourceView] = Table()
        self.slices: Table[EndpointSliceView] = Table()
        self.controller = EndpointSliceMirroringController(
            self.endpoints, self.services, self.slices, clock=FakeClock(), rng=random.Random(1)
        )
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)
        self.metadata = {"name": "web", "namespace": "default", "uid": "e", **metadata}
        self.subsets: tuple[Object, ...] = ()
        self.write(*subsets)
        if has_service:
            spec = {"selector": selector} if selector else {}
            body = {"metadata": {**self.metadata, "uid": "s"}, "spec": spec}
            self.services.on_add(msgspec.convert(body, ResourceView))

    def write(self, *subsets: Object) -> None:
        body = {"metadata": self.metadata, "subsets": list(subsets)}
        new, old = msgspec.convert(body, EndpointsView), self.endpoints.get(KEY)
        if old is None:
            self.endpoints.on_add(new)
        else:
            self.endpoints.on_update(old, new)

    def carry_out(self) -> list[str]:
        """Do what is planned; return it in short."""
        done = []
        for action in self.controller.plan(KEY).actions:
            match action:
                case Create(_, body):
                    done.append(f"create {body['addressType']}")
                    metadata = {**body["metadata"], "uid": body["metadata"]["name"]}
                    made = msgspec.convert({**body, "metadata": metadata}, EndpointSliceView)
                    self.slices.on_add(made)
                case Patch(path, body):
                    old = self.slices.get(f"default/{path.rpartition('/')[2]}")
                    assert old is not None
                    done.append("patch")
                    changed = {
                        "endpoints": body["endpoints"],
                        "ports": body.get("ports", old.ports),
                    }
                    self.slices.on_update(old, msgspec.structs.replace(old, **changed))
                case Delete(path, _):
                    old = self.slices.get(f"default/{path.rpartition('/')[2]}")
                    assert old is not None
                    done.append("delete")
                    self.slices.on_delete(old)
        assert self.controller.plan(KEY).actions == []
        return done


def test_endpoints_without_a_selector_are_mirrored() -> None:
    kubectl = "kubectl.kubernetes.io/last-applied-configuration"
    world = World(
        {**SUBSET, "notReadyAddresses": [{"ip": "10.1.2.4", "nodeName": "n", "hostname": "h"}]},
        labels={"a": "b"},
        annotations={"c": "d", kubectl: "{}"},
    )
    (create,) = world.controller.plan(KEY).actions
    assert isinstance(create, Create)
    metadata = create.body["metadata"]
    assert metadata["labels"] == {
        "a": "b",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert metadata["annotations"] == {"c": "d"}
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Endpoints", "e", True)
    assert create.body["addressType"] == "IPv4"
    assert create.body["ports"] == [PORT]
    assert create.body["endpoints"] == [
        {"addresses": ["10.1.2.3"], "conditions": {"ready": True}},
        {
            "addresses": ["10.1.2.4"],
            "conditions": {"ready": False},
            "hostname": "h",
            "nodeName": "n",
        },
    ]


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(SUBSET, selector={"a": "b"}), id="of a Service with a selector"),
        pytest.param(World(SUBSET, has_service=False), id="of no Service"),
        pytest.param(
            World(SUBSET, labels={"endpointslice.kubernetes.io/skip-mirror": "true"}),
            id="that are not to be",
        ),
        pytest.param(
            World(SUBSET, annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}),
            id="that are a lock",
        ),
        pytest.param(World(), id="without addresses"),
    ],
)
def test_endpoints_that_are_not_mirrored(world: World) -> None:
    assert world.carry_out() == []


def test_slices_follow_their_endpoints() -> None:
    world = World(SUBSET)
    assert world.carry_out() == ["create IPv4"]
    world.write({**SUBSET, "addresses": [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}]})
    assert world.carry_out() == ["create IPv6"]
    world.write({**SUBSET, "addresses": [{"ip": "10.1.2.4"}]})
    assert world.carry_out() == ["patch", "delete"]
    world.write({**SUBSET, "ports": [{**PORT, "port": 81}]})
    assert world.carry_out() == ["create IPv4", "delete"]
    world.write()
    assert world.carry_out() == ["delete"]
    assert world.enqueued.count(KEY) > len("abcde")


def test_a_slice_that_somebody_changes_is_looked_at() -> None:
    world = World(SUBSET)
    world.carry_out()
    world.enqueued.clear()
    (found,) = world.slices.controlled("e")
    world.slices.on_update(found, msgspec.structs.replace(found, endpoints=[]))
    assert {*world.enqueued} == {KEY}
    assert world.carry_out() == ["patch"]
