"""The registry: kinds come and go, and everything that is computed from them follows."""

from dataclasses import replace

import pytest

from berth.cluster.kinds.builtin import RESOURCES, find, resources
from berth.cluster.kinds.registry import Registry, by_group, by_path
from berth.cluster.kinds.resource_metrics import MEASURED
from berth.cluster.schemas import builtin
from tests.cluster.serving import Serving

CONFIG_MAPS = find("", "v1", "configmaps")
TEAPOTS = replace(
    CONFIG_MAPS, group="example.com", kind="Teapot", plural="teapots", singular="teapot"
)


def test_a_kind_is_found_by_its_url() -> None:
    registry = Registry([CONFIG_MAPS])
    assert registry.find("", "v1", "configmaps") is CONFIG_MAPS
    assert registry.find("", "v2", "configmaps") is None
    assert [*registry] == [CONFIG_MAPS]


def test_every_change_is_a_revision() -> None:
    registry = Registry([CONFIG_MAPS])
    revisions = [registry.revision]
    registry.add(TEAPOTS)
    revisions.append(registry.revision)
    registry.remove(TEAPOTS)
    revisions.append(registry.revision)
    assert revisions == [1, 2, 3]
    assert len(registry) == 1
    with pytest.raises(KeyError):
        registry.remove(TEAPOTS)


async def test_what_is_added_while_the_server_runs_is_served_and_announced() -> None:
    serving = Serving()
    path = "/apis/example.com/v1/namespaces/default/teapots"
    discovery = "/apis/example.com/v1"
    assert (await serving.request("GET", path))[0] == 404
    assert (await serving.request("GET", discovery))[0] == 404
    serving.registry.add(TEAPOTS)
    assert (await serving.request("POST", path, {"metadata": {"name": "t"}}))[0] == 201
    code, found = await serving.request("GET", discovery)
    assert (code, [resource["name"] for resource in found["resources"]]) == (200, ["teapots"])
    code, _ = await serving.request("GET", "/openapi/v3/apis/example.com/v1")
    assert code == 200
    serving.registry.remove(TEAPOTS)
    assert (await serving.request("GET", path))[0] == 404
    assert (await serving.request("GET", discovery))[0] == 404


@pytest.mark.parametrize(("release", "count"), [("1.36", 68), ("1.37", 72)])
def test_all_that_a_server_serves_by_default_is_served(release: str, count: int) -> None:
    registry = Registry(resources(release))
    assert len(registry) - len(MEASURED) == len(builtin.kinds(release)) == count
    for data in builtin.kinds(release):
        resource = registry.find(data.group, data.version, data.plural)
        assert resource is not None
        assert (resource.kind, resource.verbs) == (data.kind, data.verbs)
        shown = [
            (column.name, column.type, column.format, column.priority, column.description)
            for column in resource.columns
        ]
        assert shown == [*data.columns]


def test_the_preferred_version_of_a_group_comes_first() -> None:
    autoscaling = by_group(RESOURCES)["autoscaling"]
    assert [each.version for each in autoscaling] == ["v2", "v1"]
    assert [*by_path(autoscaling)] == ["/apis/autoscaling/v2", "/apis/autoscaling/v1"]
