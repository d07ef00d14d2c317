"""The arguments of DynamicResources."""

from pydantic import Field, ValidationInfo, field_validator

from berth.runtime.duration import Duration
from berth.scheduler.framework.interface import PluginArgs
from berth_plugins.dynamic_resources.features import (
    BINDING_CONDITIONS,
    DEVICE_STATUS,
    FILTER_TIMEOUT,
)


class DynamicResourcesArgs(PluginArgs):
    """How long to search on one node, and to wait for devices to get ready.

    Beside it all searches of one attempt have a second together, see
    :data:`~berth_plugins.dynamic_resources.node_search.MAX_TIME`.
    """

    filter_timeout: Duration | None = Field(default=None, validate_default=True)
    """Maximum time to search for devices on one node; 0 disables the limit. 10s unless given; only
    with the feature gate DRASchedulerFilterTimeout."""
    binding_timeout: Duration | None = Field(default=None, validate_default=True)
    """Maximum time to wait for the binding conditions of devices. 10m unless given; only with the
    feature gates DRADeviceBindingConditions and DRAResourceClaimDeviceStatus."""

    @field_validator("filter_timeout")
    @classmethod
    def _check_filter_timeout(
        cls, timeout: Duration | None, info: ValidationInfo
    ) -> Duration | None:
        if timeout is None:
            return Duration.of(10) if _are_on(info, FILTER_TIMEOUT) else None
        if not _are_on(info, FILTER_TIMEOUT):
            # As in kube-scheduler, though the gate is DRASchedulerFilterTimeout.
            raise ValueError(
                "filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"
            )
        if timeout.nanoseconds < 0:
            raise ValueError(f"filterTimeout: Invalid value: {timeout}: must be zero or positive")
        return timeout

    @field_validator("binding_timeout")
    @classmethod
    def _check_binding_timeout(
        cls, timeout: Duration | None, info: ValidationInfo
    ) -> Duration | None:
        is_on = _are_on(info, BINDING_CONDITIONS, DEVICE_STATUS)
        if timeout is None:
            return Duration.of(600) if is_on else None
        if not is_on:
            raise ValueError(
                "bindingTimeout: Forbidden: DRADeviceBindingConditions or"
                " DRAResourceClaimDeviceStatus feature gate is disabled"
            )
        if timeout < Duration.of(1):
            raise ValueError(f"bindingTimeout: Invalid value: {timeout}: must be at least 1 second")
        return timeout


def _are_on(info: ValidationInfo, *gates: str) -> bool:
    """Whether the feature gates are on; where nobody says which are, they are as by default."""
    return not info.context or all(gate in info.context for gate in gates)
