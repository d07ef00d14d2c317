"""Extended resources that devices stand for: which class, and which requests."""

from collections.abc import Sequence

import pytest

from berth.kube.objects.devices import DeviceClass
from berth.kube.objects.pod import Container, Pod
from berth.scheduler.framework.listers import Listers
from berth_plugins.dynamic_resources.extended_resources import RequestMapping, device_requests
from berth_plugins.shared.device_classes import DeviceClassResolver, may_be_device
from tests.builders import container, pod, sidecar
from tests.device_builders import device_class, listers

GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("classes", "resource", "want"),
    [
        pytest.param(
            [device_class("a", extended_resource=GPU)], GPU, "a", id="the name that it gives"
        ),
        pytest.param(
            [device_class("a")], "deviceclass.resource.kubernetes.io/a", "a", id="its own name"
        ),
        pytest.param([device_class("a")], GPU, None, id="not this one"),
        pytest.param(
            [
                device_class("a", extended_resource=GPU, created="2026-01-01T00:00:00Z"),
                device_class("b", extended_resource=GPU, created="2026-02-01T00:00:00Z"),
            ],
            GPU,
            "b",
            id="the newest of two",
        ),
        pytest.param(
            [device_class("b", extended_resource=GPU), device_class("a", extended_resource=GPU)],
            GPU,
            "a",
            id="of two equally old ones the first by name",
        ),
    ],
)
def test_the_class_for_a_resource(
    classes: Sequence[DeviceClass], resource: str, want: str | None
) -> None:
    found = DeviceClassResolver(listers(*classes)).get_device_class(resource)
    assert (None if found is None else found.metadata.name) == want


def test_classes_follow_changes() -> None:
    known = Listers()
    classes = DeviceClassResolver(known)
    before = device_class("a", extended_resource=GPU)
    known.device_classes.on_add(before)
    known.device_classes.on_update(before, device_class("a"))
    assert classes.get_device_class(GPU) is None
    assert classes.get("a") is not None
    known.device_classes.on_delete(before)
    assert classes.get("a") is None
    assert classes.version == 3


def test_which_names_may_be_devices() -> None:
    names = [GPU, "deviceclass.resource.kubernetes.io/a", "cpu", "hugepages-2Mi"]
    assert [may_be_device(name) for name in names] == [True, True, False, False]


def wanting(name: str, amount: int, **more: str) -> Container:
    return container(name, requests={GPU: amount, "cpu": "1", **more})


def requests_and_users(a_pod: Pod) -> tuple[list[tuple[str, int]], list[RequestMapping]]:
    classes = DeviceClassResolver(listers(device_class("gpu", extended_resource=GPU)))
    requests, mappings = device_requests(a_pod, {GPU, "example.com/other"}, classes)
    counts = [(one.name, one.exactly.count) for one in requests if one.exactly]
    return counts, list(mappings)


def test_a_request_for_each_container() -> None:
    a_pod = pod(containers=[wanting("x", 2, **{"a.com/b": "1"}), container("y"), wanting("z", 1)])
    counts, mappings = requests_and_users(a_pod)
    assert counts == [("container-0-request-2", 2), ("container-2-request-1", 1)]
    assert mappings == [
        RequestMapping("x", GPU, "container-0-request-2"),
        RequestMapping("z", GPU, "container-2-request-1"),
    ]


@pytest.mark.parametrize(
    ("init", "want", "users"),
    [
        pytest.param(
            [wanting("i", 1)],
            [("container-1-request-1", 2)],
            [("main", "container-1-request-1"), ("i", "container-1-request-1")],
            id="one that ends uses the devices of those that come after",
        ),
        pytest.param(
            [wanting("i", 3)],
            [("container-0-request-1", 1), ("container-1-request-1", 2)],
            [
                ("main", "container-1-request-1"),
                ("i", "container-1-request-1"),
                ("i", "container-0-request-1"),
            ],
            id="what it needs beyond is requested",
        ),
        pytest.param(
            [wanting("i", 3), wanting("j", 5)],
            [("container-1-request-1", 3), ("container-2-request-1", 2)],
            [
                ("main", "container-2-request-1"),
                ("i", "container-2-request-1"),
                ("i", "container-1-request-1"),
                ("j", "container-2-request-1"),
                ("j", "container-1-request-1"),
            ],
            id="of several only the most that one needs beyond",
        ),
        pytest.param(
            [sidecar("s", cpu="1", requests={GPU: 1})],
            [("container-0-request-1", 1), ("container-1-request-1", 2)],
            [("s", "container-0-request-1"), ("main", "container-1-request-1")],
            id="one that stays has devices of its own",
        ),
    ],
)
def test_init_containers(
    init: Sequence[Container], want: list[tuple[str, int]], users: list[tuple[str, str]]
) -> None:
    counts, mappings = requests_and_users(
        pod(init_containers=init, containers=[wanting("main", 2)])
    )
    assert counts == want
    assert [(one.container_name, one.request_name) for one in mappings] == users
