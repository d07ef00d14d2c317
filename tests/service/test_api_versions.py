"""API servers of other releases: in which versions kinds are read, and what is off without them."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import msgspec
import pytest

from berth.kube.client.contact import Contact
from berth.kube.client.errors import NotFoundError
from berth.runtime.clock import FakeClock
from berth.service.watches import Watches
from tests.harness import Harness
from tests.kube.informer.scripted import initial_end, line, obj

Object = dict[str, Any]

DEVICES: Final = "resource.k8s.io"
GROUPS: Final = "scheduling.k8s.io"
CLAIMS: Final = {
    "deviceclasses": "DeviceClass",
    "resourceclaims": "ResourceClaim",
    "resourceslices": "ResourceSlice",
}
RULES: Final = {"devicetaintrules": "DeviceTaintRule"}
POD_GROUPS: Final = {"podgroups": "PodGroup"}

Served = Mapping[str, Mapping[str, str]]
"""Group and version → plural → kind."""

BY_DEFAULT: Final[Mapping[str, Served]] = {
    "1.35": {f"{DEVICES}/v1": CLAIMS},
    "1.36": {f"{DEVICES}/v1": CLAIMS},
    "1.37": {f"{DEVICES}/v1": CLAIMS | RULES},
}
"""What API servers serve of the groups whose versions change, by their release."""
WITH_GATES: Final[Mapping[str, Served]] = {
    "1.35": {f"{DEVICES}/v1": CLAIMS, f"{DEVICES}/v1alpha3": RULES},
    "1.36": {
        f"{DEVICES}/v1": CLAIMS,
        f"{DEVICES}/v1beta2": CLAIMS | RULES,
        f"{DEVICES}/v1alpha3": RULES,
        f"{GROUPS}/v1alpha2": POD_GROUPS,
    },
    "1.37": {
        f"{DEVICES}/v1": CLAIMS | RULES,
        f"{DEVICES}/v1beta2": CLAIMS | RULES,
        f"{GROUPS}/v1beta1": POD_GROUPS,
        f"{GROUPS}/v1alpha3": POD_GROUPS,
    },
}
"""The same with the gates on, and all versions switched on."""


class Api:
    """Serves the kinds that every release has, and *served*."""

    def __init__(self, served: Served, objects: Mapping[str, Object] = {}) -> None:
        """*objects* has one by path, for some; other kinds have none."""
        self._served, self._objects = served, objects
        self.watched: set[str] = set()

    async def request(self, *args: Any, **_more: Any) -> bytes:
        group_version = str(args[1]).removeprefix("/apis/")
        if group_version.startswith((DEVICES, GROUPS)) and group_version not in self._served:
            raise NotFoundError(404, "NotFound", "the server could not find the requested resource")
        kinds = self._served.get(group_version, {})
        resources = [{"name": plural, "kind": kind} for plural, kind in kinds.items()]
        return msgspec.json.encode({"resources": resources})

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        self.watched.add(path)
        if path in self._objects:
            yield line("ADDED", self._objects[path])
        yield initial_end(2)
        await asyncio.get_running_loop().create_future()


async def watched(served: Served, *, emulated: str) -> set[str]:
    """Return the paths of those groups that a scheduler with gang scheduling watches."""
    api = Api(served)
    await synced(api, emulated=emulated)
    found = {path.removeprefix("/apis/") for path in api.watched}
    return {path for path in found if path.startswith((DEVICES, GROUPS))}


async def synced(api: Api, *, emulated: str) -> Harness:
    """Return a scheduler that has heard of all that *api* has."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "emulatedVersion": emulated,
        "featureGates": {"GenericWorkload": True, "DRADeviceTaintRules": True},
    }
    harness, clock = Harness(config=config), FakeClock()
    may_schedule = asyncio.Event()
    watches = Watches(
        api,
        harness.core.handlers,
        known_pods={},
        contact=Contact(clock),
        extenders=harness.extenders,
        clock=clock,
        rng=random.Random(0),
    )

    async def schedule() -> None:
        may_schedule.set()
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(watches.run(then=schedule), name="watches")
    await may_schedule.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return harness


REQUEST: Final[Object] = {"deviceClassName": "gpu"}
DEVICE: Final[Object] = {"attributes": {"model": {"string": "a"}}}
IN_VERSION: Final = {
    "v1": ({"name": "r", "exactly": REQUEST}, {"name": "d", **DEVICE}),
    "v1beta2": ({"name": "r", "exactly": REQUEST}, {"name": "d", **DEVICE}),
    "v1beta1": ({"name": "r", **REQUEST}, {"name": "d", "basic": DEVICE}),
}
"""A request and a device, as each version has them."""


@pytest.mark.parametrize("version", IN_VERSION)
async def test_devices_are_read_in_the_version_that_is_served(version: str) -> None:
    request, device = IN_VERSION[version]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.example.com", "pool": pool, "nodeName": "n", "devices": [device]}
    path = f"/apis/{DEVICES}/{version}"
    api = Api(
        {f"{DEVICES}/{version}": CLAIMS},
        {
            f"{path}/resourceclaims": obj("c", 1, spec={"devices": {"requests": [request]}}),
            f"{path}/resourceslices": obj("s", 1, spec=spec),
        },
    )
    listers = (await synced(api, emulated="1.37")).listers
    (claim,), (resource_slice,) = listers.resource_claims, listers.resource_slices

    assert claim.spec.devices.requests[0].exactly is not None
    assert claim.spec.devices.requests[0].exactly.device_class_name == "gpu"
    assert resource_slice.spec.devices[0].attributes["model"].string == "a"
    # What is written back is v1's, until it is sent.
    assert msgspec.json.decode(claim.raw)["spec"]["devices"]["requests"] == [IN_VERSION["v1"][0]]


def of(version: str, *plurals: str) -> set[str]:
    return {f"{version}/{plural}" for plural in plurals}


IN_V1: Final = of(f"{DEVICES}/v1", *CLAIMS)


@pytest.mark.parametrize("emulated", ["1.36", "1.37"])
@pytest.mark.parametrize(
    ("served", "want"),
    [
        pytest.param(BY_DEFAULT["1.35"], IN_V1, id="1.35"),
        pytest.param(BY_DEFAULT["1.36"], IN_V1, id="1.36"),
        pytest.param(BY_DEFAULT["1.37"], IN_V1 | of(f"{DEVICES}/v1", *RULES), id="1.37"),
        pytest.param(
            WITH_GATES["1.35"], IN_V1 | of(f"{DEVICES}/v1alpha3", *RULES), id="1.35 with gates"
        ),
        pytest.param(
            WITH_GATES["1.36"],
            IN_V1 | of(f"{DEVICES}/v1beta2", *RULES) | of(f"{GROUPS}/v1alpha2", *POD_GROUPS),
            id="1.36 with gates",
        ),
        pytest.param(
            WITH_GATES["1.37"],
            IN_V1 | of(f"{DEVICES}/v1", *RULES) | of(f"{GROUPS}/v1beta1", *POD_GROUPS),
            id="1.37 with gates",
        ),
        pytest.param(
            {f"{DEVICES}/v1beta2": CLAIMS},
            of(f"{DEVICES}/v1beta2", *CLAIMS),
            id="one that has v1 of devices switched off",
        ),
        pytest.param(
            {f"{DEVICES}/v1beta1": CLAIMS},
            of(f"{DEVICES}/v1beta1", *CLAIMS),
            id="one that has no newer version of devices",
        ),
        pytest.param({}, set(), id="one without devices and groups"),
    ],
)
async def test_the_server_decides_which_version_is_read(
    served: Served, want: set[str], emulated: str
) -> None:
    assert await watched(served, emulated=emulated) == want


async def test_what_is_not_served_is_said_once_with_what_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "berth.service.watches")
    await watched({}, emulated="1.37")
    said = [record.__dict__ for record in caplog.records]
    of_gates = {each["kind"]: each for each in said if "kind" in each}
    assert of_gates["PodGroup"]["until_then"] == "pods that name a PodGroup wait"
    assert of_gates["DeviceTaintRule"]["runtime_config"] == (
        "--runtime-config=resource.k8s.io/v1=true or --runtime-config=resource.k8s.io/v1beta2=true"
        " or --runtime-config=resource.k8s.io/v1alpha3=true"
    )
    without = {each["path"]: each["therefore"] for each in said if "therefore" in each}
    assert without["/apis/resource.k8s.io/v1/resourceclaims"] == "pods with ResourceClaims wait"
    assert len(said) == len(of_gates) + len({each["path"] for each in said if "path" in each})
