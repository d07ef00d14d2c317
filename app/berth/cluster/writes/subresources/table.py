"""The parts of objects that are read and written below a URL of their own."""

from collections.abc import Mapping
from typing import Final

from berth.cluster.writes.subresources.finalize import Finalize
from berth.cluster.writes.subresources.part import MAIN, Part
from berth.cluster.writes.subresources.pod_parts import EphemeralContainers, Resize
from berth.cluster.writes.subresources.scale import Scale
from berth.cluster.writes.subresources.status import Approval, Status

PARTS: Final[Mapping[str, Part]] = {
    each.name: each
    for each in (
        MAIN,
        Approval(),
        EphemeralContainers(),
        Finalize(),
        Resize(),
        Scale(),
        Status(),
    )
}
"""By name; the object itself is ""."""
