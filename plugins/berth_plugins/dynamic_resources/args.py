"""The arguments of DynamicResources."""

from pydantic import field_validator

from berth.duration import Duration
from berth.framework.interface import PluginArgs


class DynamicResourcesArgs(PluginArgs):
    """How long to search on one node, and to wait for devices to get ready.

    Beside it all searches of one attempt have a second together, see
    :data:`~berth_plugins.dynamic_resources.node_search.MAX_TIME`.
    """

    filter_timeout: Duration = Duration.of(10)
    """Maximum time to search for devices on one node; 0 disables the limit."""
    binding_timeout: Duration = Duration.of(600)
    """Maximum time to wait for the binding conditions of devices."""

    @field_validator("filter_timeout")
    @classmethod
    def _check_filter_timeout(cls, timeout: Duration) -> Duration:
        if timeout.nanoseconds < 0:
            raise ValueError(f"filterTimeout: Invalid value: {timeout}: must be zero or positive")
        return timeout

    @field_validator("binding_timeout")
    @classmethod
    def _check_binding_timeout(cls, timeout: Duration) -> Duration:
        if timeout < Duration.of(1):
            raise ValueError(f"bindingTimeout: Invalid value: {timeout}: must be at least 1 second")
        return timeout
