"""Names of kinds in recordings: resource and group, as kubectl has them."""

from collections.abc import Mapping
from typing import Any

from berth.scheduler.framework.kind import Kind


def kind_name(kind: Kind[Any]) -> str:
    """Return ``pods``, ``storageclasses.storage.k8s.io`` and the like."""
    return f"{kind.resource}.{kind.group}" if kind.group else kind.resource


def by_name(kinds: Mapping[Kind[Any], Any]) -> dict[str, Kind[Any]]:
    return {kind_name(kind): kind for kind in kinds}
