"""The addresses and node ports of Services: each has its own, as ``registry/core/service`` has it.

Not a plugin of a real server, but what its storage of Services does after all of them.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import chain
from typing import Final
from zlib import crc32

from berth.cluster.errors import invalid
from berth.cluster.kinds.builtin import find
from berth.cluster.reading import objects
from berth.cluster.resources import Object, ResourceType, section
from berth.cluster.storage.log import Change
from berth.cluster.storage.store import Store
from berth.cluster.strategies.service import has_node_ports
from berth.cluster.writes.admission.request import AdmissionRequest, Operation
from berth.cluster.writes.admission.step import Step
from berth.kube import field_errors
from berth.kube.field_errors import FieldError

RESOURCE: Final = find("", "v1", "services")
SERVICES: Final = RESOURCE.storage_key
ADDRESSES: Final = IPv4Network("10.96.0.0/16")
NODE_PORTS: Final = range(30000, 32768)


class ServiceAllocation(Step):
    """Gives what is free, and refuses what another Service has."""

    def __init__(self, store: Store) -> None:
        self._owners: dict[str | int, str] = {}
        """By address or node port: the namespace/name of the Service that has it."""
        for service in objects(RESOURCE, store.list(SERVICES)):
            self._take(service)
        store.follow(SERVICES, self._follow)

    def handles(self, operation: Operation, resource: ResourceType, subresource: str) -> bool:
        is_write = operation in (Operation.CREATE, Operation.UPDATE)
        return is_write and not subresource and resource.storage_key == SERVICES

    def admit(self, request: AdmissionRequest) -> None:
        if request.object is None:
            return
        spec = section(request.object, "spec")
        if spec.get("type") == "ExternalName":
            return
        key = f"{request.namespace}/{request.name}"
        before: Object = (request.old_object or {}).get("spec") or {}
        errors = list(self._address(key, spec, before))
        if has_node_ports(spec):
            errors += self._node_ports(key, spec, before)
        if errors:
            raise invalid(request.resource, request.name, errors)

    def _address(self, key: str, spec: Object, before: Object) -> Iterator[FieldError]:
        if spec.get("clusterIPs") and not spec.get("clusterIP"):
            return  # which validation refuses
        address = spec.get("clusterIP") or before.get("clusterIP")
        if not address:
            number = 2 + crc32(key.encode()) % (ADDRESSES.num_addresses - 4)
            candidates = chain(range(number, ADDRESSES.num_addresses - 2), range(2, number))
            address = next(
                text
                for text in (str(ADDRESSES[candidate]) for candidate in candidates)
                if text not in self._owners
            )
        elif self._owners.get(address, key) != key:
            detail = f"failed to allocate IP {address}: provided IP is already allocated"
            yield field_errors.invalid("spec.clusterIPs", [address], detail)
        spec["clusterIP"] = address

    def _node_ports(self, key: str, spec: Object, before: Object) -> Iterator[FieldError]:
        earlier = {
            (each.get("protocol"), each.get("port")): each.get("nodePort")
            for each in before.get("ports") or ()
        }
        own = {each.get("nodePort") for each in spec.get("ports") or ()}
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort")
            path = f"spec.ports[{index}].nodePort"
            if not number:
                place = (port.get("protocol"), port.get("port"))
                port["nodePort"] = earlier.get(place) or self._free_port(f"{key}/{index}", own)
                own.add(port["nodePort"])
            elif number not in NODE_PORTS:
                valid = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
                detail = (
                    f"provided port is not in the valid range. The range of valid ports is {valid}"
                )
                yield field_errors.invalid(path, number, detail)
            elif self._owners.get(number, key) != key:
                yield field_errors.invalid(path, number, "provided port is already allocated")

    def _free_port(self, seed: str, own: set[int | None]) -> int:
        first = crc32(seed.encode()) % len(NODE_PORTS)
        for port in chain(NODE_PORTS[first:], NODE_PORTS[:first]):
            if port not in self._owners and port not in own:
                return port
        return NODE_PORTS[first]  # all are taken: two Services share one

    def _follow(self, change: Change) -> None:
        if change.old is not None:
            for service in objects(RESOURCE, [change.old]):
                self._release(service)
        if change.type != "DELETED":
            for service in objects(RESOURCE, [change.stored]):
                self._take(service)

    def _take(self, service: Object) -> None:
        key = _key(service)
        for each in _allocated(service):
            self._owners.setdefault(each, key)

    def _release(self, service: Object) -> None:
        key = _key(service)
        for each in _allocated(service):
            if self._owners.get(each) == key:
                del self._owners[each]


def _key(service: Object) -> str:
    meta = service["metadata"]
    return f"{meta.get('namespace')}/{meta.get('name')}"


def _allocated(service: Object) -> Iterator[str | int]:
    spec = service.get("spec") or {}
    if spec.get("clusterIP") not in (None, "", "None"):
        yield spec["clusterIP"]
    for port in spec.get("ports") or ():
        if port.get("nodePort"):
            yield port["nodePort"]
