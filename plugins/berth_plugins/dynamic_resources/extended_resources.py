"""Extended resources that devices stand for: the requests that a pod's containers come to."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from berth.kube.objects.devices import DeviceRequest, ExactDeviceRequest
from berth.kube.objects.pod import Container, Pod
from berth.kube.objects.quantity import parse, value
from berth_plugins.shared.device_classes import DeviceClassResolver


class RequestMapping(msgspec.Struct, frozen=True):
    """Which request gives a container its extended resource."""

    container_name: str
    resource_name: str
    request_name: str


class _Need(msgspec.Struct, frozen=True):
    """A request that one container makes, of ``count`` devices."""

    name: str
    count: int


class _Place(msgspec.Struct, frozen=True):
    """A container, where it stands among all: first the init containers, then the others."""

    index: int
    container: Container

    def count(self, resource: str) -> int:
        written = self.container.resources.requests.get(resource)
        return 0 if written is None else value(parse(written))

    def request_name(self, resource: str) -> str:
        """Name the request after the container and the place of *resource* in its requests."""
        position = sorted(self.container.resources.requests).index(resource)
        return f"container-{self.index}-request-{position}"


def device_requests(
    pod: Pod, resources: Collection[str], classes: DeviceClassResolver
) -> tuple[tuple[DeviceRequest, ...], tuple[RequestMapping, ...]]:
    """Return requests for the *resources* of the containers of *pod*, and what each is for.

    Resources that no class stands for are left out. Init containers that end before the others
    start use the devices of those; only the most that one of them needs beyond is requested.
    """
    places = [
        _Place(index, container)
        for index, container in enumerate((*pod.spec.init_containers, *pod.spec.containers))
    ]
    passing = [
        place
        for place in places[: len(pod.spec.init_containers)]
        if place.container.restart_policy != "Always"
    ]
    staying = [place for place in places if place not in passing]
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        device_class = classes.get_device_class(resource)
        if device_class is None:
            continue
        needs = {
            place.index: _Need(place.request_name(resource), place.count(resource))
            for place in staying
            if place.count(resource)
        }
        mappings += [
            RequestMapping(places[index].container.name, resource, need.name)
            for index, need in needs.items()
        ]
        extra, reused = _of_passing(passing, resource, needs)
        mappings += reused
        requests += [
            DeviceRequest(
                name=need.name,
                exactly=ExactDeviceRequest(
                    device_class_name=device_class.metadata.name, count=need.count
                ),
            )
            for need in (*extra, *needs.values())
        ]
    requests.sort(key=lambda request: request.name)
    return tuple(requests), tuple(mappings)


def _of_passing(
    passing: Sequence[_Place], resource: str, needs: Mapping[int, _Need]
) -> tuple[list[_Need], list[RequestMapping]]:
    """Return what the *passing* containers need beyond the devices of those that come after."""
    own: list[_Need] = []
    used: list[tuple[_Place, str]] = []
    for place in passing:
        missing = place.count(resource)
        for need in _later(needs, place.index):
            if missing <= 0:
                break
            used.append((place, need.name))
            missing -= need.count
        if missing > 0:
            own.append(_Need(place.request_name(resource), missing))
            used.append((place, own[-1].name))
    most = max(own, key=lambda need: need.count, default=None)
    names = {need.name for need in own}
    mappings = [
        RequestMapping(
            place.container.name, resource, most.name if most and name in names else name
        )
        for place, name in used
    ]
    return [most] if most else [], mappings


def _later(needs: Mapping[int, _Need], index: int) -> Iterator[_Need]:
    return (need for other, need in sorted(needs.items()) if other > index)
