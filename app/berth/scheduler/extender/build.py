"""From configuration to extenders."""

import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from berth.kube.field_errors import join
from berth.runtime.clock import Clock
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.types import Extender as Config
from berth.scheduler.extender.extender import Extender
from berth.scheduler.extender.extenders import Extenders

if TYPE_CHECKING:
    import httpx

    from berth.scheduler.extender.client import Observer


def build_extenders(
    configs: Sequence[Config],
    *,
    clock: Clock,
    observer: "Observer",
    may_write: Callable[[], bool] = lambda: True,
    transport: "httpx.AsyncBaseTransport | None" = None,
) -> Extenders:
    """Make all extenders of a configuration; :meth:`Extenders.close` them in the end.

    *may_write* says whether this replica may have pods bound at the moment it is asked;
    *transport* takes the place of the network. Raises ConfigError when a TLS configuration cannot
    be used.
    """
    if not configs:
        return Extenders()
    # Here, for httpx takes 0.15 s to load, and most schedulers have no extenders.
    from berth.scheduler.extender.client import ExtenderClient

    made = []
    for i, config in enumerate(configs):
        try:
            client = ExtenderClient(config, clock=clock, observer=observer, transport=transport)
        except (OSError, ValueError, ssl.SSLError) as exc:
            path = join("extenders", i, "tlsConfig")
            raise ConfigError("extenders", [f"{path}: cannot be used: {exc}"]) from exc
        made.append(Extender(config, client, may_write=may_write))
    return Extenders(made)
