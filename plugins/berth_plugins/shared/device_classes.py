"""DeviceClasses, also by the extended resources that they stand for (spec §5.17)."""

from collections.abc import Iterable
from typing import ClassVar, Final

from berth.kube.objects.devices import DeviceClass
from berth.kube.objects.resources import is_extended
from berth.scheduler.framework.handle import Handle
from berth.scheduler.framework.listers import Listers

EXTENDED_RESOURCE: Final = "DRAExtendedResource"
"""The feature gate with which classes stand for extended resources."""

IMPLICIT_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""Followed by the name of a class it is the name of an extended resource, too."""


class DeviceClassResolver:
    """DeviceClasses by name, and by the extended resources that they stand for.

    All profiles share one, in ``Listers.shared``.
    """

    gives_extended_resources: ClassVar[bool] = True
    """Whether classes stand for extended resources at all."""

    def __init__(self, listers: Listers) -> None:
        self._classes = listers.device_classes
        self._by_resource: dict[str, DeviceClass] = {}
        self._classes.follow(self._on_change)

    @property
    def version(self) -> int:
        """Changes with every change."""
        return self._classes.version

    def get(self, name: str) -> DeviceClass | None:
        return self._classes.get("", name)

    def get_device_class(self, resource_name: str) -> DeviceClass | None:
        """Return the class that gives an extended resource.

        Of several that claim it, the newest does; of equally old ones, the first by name.
        """
        return self._by_resource.get(resource_name)

    def stands_for_none(self, resource_names: Iterable[str]) -> tuple[bool, ...] | None:
        """Return that no class gives any of the resources, as a value; None if one does.

        For :meth:`berth.scheduler.framework.interface.Plugin.sign_pod`.
        """
        given = tuple(self.get_device_class(name) is not None for name in resource_names)
        return None if any(given) else given

    def _on_change(self, _old: DeviceClass | None, _new: DeviceClass | None) -> None:
        """Sort oldest first, so that the newest has the last word; there are few classes."""
        by_name = sorted(self._classes, key=lambda found: found.metadata.name, reverse=True)
        self._by_resource = {
            name: device_class
            for device_class in sorted(by_name, key=lambda f: f.metadata.creation_timestamp or "")
            for name in resource_names(device_class)
        }


class _WithoutExtendedResources(DeviceClassResolver):
    """The same with DRAExtendedResource off: no class stands for a resource."""

    gives_extended_resources: ClassVar[bool] = False

    def get_device_class(self, resource_name: str) -> DeviceClass | None:
        return None


def device_classes(handle: Handle) -> DeviceClassResolver:
    """Return the resolver that all profiles share."""
    is_on = EXTENDED_RESOURCE in handle.features
    return handle.listers.shared(DeviceClassResolver if is_on else _WithoutExtendedResources)


def resource_names(device_class: DeviceClass) -> list[str]:
    """Return the extended resources that *device_class* stands for."""
    names = [IMPLICIT_PREFIX + device_class.metadata.name]
    if device_class.spec.extended_resource_name:
        names.append(device_class.spec.extended_resource_name)
    return names


def may_be_device(resource: str) -> bool:
    """Whether a device class may stand for the resource of this name."""
    return is_extended(resource) or resource.startswith(IMPLICIT_PREFIX)
