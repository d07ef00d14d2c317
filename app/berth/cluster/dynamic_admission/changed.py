"""Objects that a webhook or a policy has changed, on their way back."""

from typing import Any

from berth.cluster import errors
from berth.cluster.dynamic_admission.matching import converted
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas import builtin, checks
from berth.cluster.schemas.presence import complete


def completed(changed: Any, shown: ResourceType, resource: ResourceType) -> Object:
    """Return what was changed as *shown* as an object of *resource*, with its defaults.

    It must still be one: else this is a 500, as it is not its author's fault.
    """
    if not isinstance(changed, dict) or not isinstance(changed.get("metadata"), dict):
        raise errors.internal("what admission leaves is no object")
    obj = converted(changed, shown, resource) or {}
    schema, part = resource.schema, obj
    if resource.structural is not None:  # which says itself what may be null
        schema, part = builtin.meta("ObjectMeta"), obj["metadata"]
    if misfit := checks.misfit(schema, part):
        raise errors.internal(f"what admission leaves is no {resource.kind}: {misfit}")
    complete(schema, part)
    resource.strategy.default(obj)
    return obj
