"""The authority of the API server in every namespace: what its controller plans."""

import msgspec
import pytest

from berth.cluster.actions import STRATEGIC_MERGE, Create, Patch
from berth.cluster.controllers.root_ca import (
    NAME,
    ConfigMapView,
    RootCAController,
)
from berth.cluster.controllers.table import Table
from berth.cluster.controllers.views import NamespaceView
from berth.cluster.object_views import Meta
from berth.cluster.resources import Object

PATH = "/api/v1/namespaces/web/configmaps"


class World:
    def __init__(self) -> None:
        self.namespaces: Table[NamespaceView] = Table()
        self.config_maps: Table[ConfigMapView] = Table()
        self.controller = RootCAController(self.namespaces, self.config_maps, certificate="PEM")
        self.enqueued: list[str] = []
        self.controller.subscribe(self.enqueued.append)


@pytest.fixture
def world() -> World:
    return World()


def config_map(name: str = NAME, **data: str) -> ConfigMapView:
    body: Object = {"metadata": {"name": name, "namespace": "web", "uid": "u"}, "data": data}
    return ConfigMapView.decoder()(msgspec.json.encode(body))


def test_a_new_namespace_gets_it(world: World) -> None:
    world.namespaces.on_add(NamespaceView(Meta("web", "u")))
    assert world.enqueued == ["web"]
    [action] = world.controller.plan("web").actions
    assert isinstance(action, Create)
    assert (action.path, action.body["data"]) == (PATH, {"ca.crt": "PEM"})
    world.config_maps.on_add(config_map(**{"ca.crt": "PEM"}))
    assert world.controller.plan("web").actions == []


def test_what_somebody_changed_is_put_right(world: World) -> None:
    world.namespaces.on_add(NamespaceView(Meta("web", "u")))
    world.config_maps.on_add(config_map(**{"ca.crt": "other", "more": "x"}))
    assert world.enqueued == ["web", "web"]
    body = {"data": {"$patch": "replace", "ca.crt": "PEM"}}
    assert world.controller.plan("web").actions == [Patch(f"{PATH}/{NAME}", body, STRATEGIC_MERGE)]


def test_a_namespace_on_its_way_out_gets_nothing(world: World) -> None:
    leaving = Meta("web", "u", deletion_timestamp="2026-11-22T09:00:00Z")
    world.namespaces.on_add(NamespaceView(leaving))
    assert world.controller.plan("web").actions == []


def test_of_other_maps_only_the_metadata_are_kept(world: World) -> None:
    other = config_map("big", a="x" * 1000)
    assert other.data == {}
    world.config_maps.on_add(other)
    assert world.enqueued == []
