"""A configuration as the API writes it: for /configz and ``--write-config-to``."""

from typing import Any

import yaml

from app.config.types import KubeSchedulerConfiguration


def to_configz(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return the body of /configz (spec §7.3), in the order and with the omissions of the API.

    As with kube-scheduler it has everything, also the keys of extenders: not for the public.
    """
    return {"componentconfig": to_object(config)}


def to_object(config: KubeSchedulerConfiguration) -> dict[str, Any]:
    """Return the configuration as an object that can be loaded again."""
    return config.model_dump(mode="json", by_alias=True)


def to_yaml(config: KubeSchedulerConfiguration) -> str:
    """Return the configuration as a file that can be loaded again: for ``--write-config-to``."""
    text: str = yaml.safe_dump(to_object(config), default_flow_style=False)
    return text
