"""A configuration as the API writes it: for /configz and ``--write-config-to``."""

from typing import Any

import yaml

from berth.runtime.redaction import redacted_object
from berth.runtime.release import RELEASES
from berth.scheduler.config.types import KubeSchedulerConfiguration


def to_configz(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return the body of /configz (spec §7.3), in the order and with the omissions of the API.

    Unlike kube-scheduler's it has no secrets: see :func:`to_shown`. It says which release is
    emulated; not of the first, though, whose page it is to the last byte.
    """
    shown = to_shown(config)
    if shown.get("emulatedVersion") == RELEASES[0]:
        del shown["emulatedVersion"]
    return {"componentconfig": shown}


def to_shown(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return the configuration for people to see: without keys of extenders, passwords in URLs, and
    the like. It can be loaded, but not be used where a secret is needed.
    """
    shown: dict[str, Any] = redacted_object(to_object(config))
    return shown


def to_object(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return the configuration as an object that can be loaded again, secrets included."""
    return config.model_dump(mode="json", by_alias=True)


def to_yaml(config: KubeSchedulerConfiguration) -> str:
    """Return the configuration as a file that can be loaded again, secrets included: for
    ``--write-config-to``.
    """
    text: str = yaml.safe_dump(to_object(config), default_flow_style=False)
    return text
