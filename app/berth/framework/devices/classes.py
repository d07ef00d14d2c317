"""DeviceClasses, also by the extended resources that they stand for (spec §5.17)."""

from collections.abc import Iterable
from typing import Final

from berth.objects.devices import DeviceClass
from berth.objects.resources import is_extended

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Followed by the name of a class it is the name of an extended resource, too."""


class DeviceClasses:
    """All device classes. Has the shape of an informer's handler."""

    def __init__(self, classes: Iterable[DeviceClass] = ()) -> None:
        self.version = 0
        """Changes with every change."""
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, DeviceClass] = {}
        for device_class in classes:
            self.on_add(device_class)

    def get(self, name: str) -> DeviceClass | None:
        return self._classes.get(name)

    def for_resource(self, name: str) -> DeviceClass | None:
        """Return the class that gives the extended resource *name*.

        Of several that claim it, the newest does; of equally old ones, the first by name.
        """
        return self._by_resource.get(name)

    def on_add(self, device_class: DeviceClass) -> None:
        self._classes[device_class.metadata.name] = device_class
        self._rebuild()

    def on_update(self, _old: DeviceClass, new: DeviceClass) -> None:
        self.on_add(new)

    def on_delete(self, device_class: DeviceClass) -> None:
        self._classes.pop(device_class.metadata.name, None)
        self._rebuild()

    def _rebuild(self) -> None:
        """Oldest first, so that the newest has the last word; there are few classes."""
        self.version += 1
        by_name = sorted(self._classes.values(), key=lambda found: found.metadata.name)
        by_name.reverse()
        self._by_resource = {
            name: found
            for found in sorted(by_name, key=lambda f: f.metadata.creation_timestamp or "")
            for name in resource_names(found)
        }


def resource_names(device_class: DeviceClass) -> list[str]:
    """Return the extended resources that *device_class* stands for."""
    names = [IMPLICIT_PREFIX + device_class.metadata.name]
    if device_class.spec.extended_resource_name:
        names.append(device_class.spec.extended_resource_name)
    return names


def may_be_device(resource: str) -> bool:
    """Whether a device class may stand for the resource of this name."""
    return is_extended(resource) or resource.startswith(IMPLICIT_PREFIX)
