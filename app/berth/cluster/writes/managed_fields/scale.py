"""Managers of ``scale``: who manages the number of replicas does so in the object and in its Scale.

The Scale shows the managers of the replicas as managers of its ``spec.replicas``. What a write to
it makes of them goes back to the object (``ScaleHandler`` of the API server's ``managedfields``).
"""

from collections.abc import Sequence
from typing import Final

from berth.cluster.writes.managed_fields.entries import (
    Entry,
    Manager,
    entry,
    in_order,
    manager_of,
    with_fields,
)
from berth.cluster.writes.managed_fields.field_sets import (
    FieldSet,
    Path,
    difference,
    has,
    of_paths,
    union,
)

SCALE_VERSION: Final = "autoscaling/v1"
SCALE_REPLICAS: Final[Path] = ("f:spec", "f:replicas")
OF_SCALE: Final[FieldSet] = of_paths(SCALE_REPLICAS)


def to_scale(entries: Sequence[Entry], api_version: str, replicas: Path) -> list[Entry]:
    """Return the managers of *replicas* as a Scale has them."""
    return in_order(
        {**each, "apiVersion": SCALE_VERSION, "fieldsV1": OF_SCALE}
        for each in entries
        if each["apiVersion"] == api_version and has(each["fieldsV1"], replicas)
    )


def to_object(
    scaled: Sequence[Entry], entries: Sequence[Entry], api_version: str, replicas: Path
) -> list[Entry]:
    """Return *entries* of an object with the managers of *replicas* that its Scale has now.

    As in the API server, new ones have no time.
    """
    left = {
        _renamed(manager_of(each), api_version): each
        for each in scaled
        if has(each["fieldsV1"], SCALE_REPLICAS)
    }
    of_object = of_paths(replicas)
    kept: dict[Manager, Entry] = {}
    for each in entries:
        manager, fields = manager_of(each), each["fieldsV1"]
        manages = each["apiVersion"] == api_version and has(fields, replicas)
        if manages and left.pop(manager, None) is None:
            fields = difference(fields, of_object)
        if fields:
            kept[manager] = with_fields(each, fields)
    for manager in left:
        known = kept.get(manager)
        fields = union(known["fieldsV1"], of_object) if known else of_object
        kept[manager] = entry(manager, api_version, fields, (known or {}).get("time") or "")
    return in_order(kept.values())


def _renamed(manager: Manager, api_version: str) -> Manager:
    return manager._replace(api_version=api_version) if manager.api_version else manager
