"""What is left out of objects before they are recorded.

Objects have only the fields that berth reads, so that there are no environment variables, commands
or configuration in them, and berth does not watch Secrets or ConfigMaps. Annotations may hold
anything: only those are kept that a decision of berth depends on. A plugin of somebody else that
reads others may decide differently in a replay.
"""

from typing import Any, Final

import msgspec

from berth.framework.kind import Kind
from berth.framework.pod_group_sources import VOLCANO_ANNOTATIONS
from berth.objects.devices import EXTENDED_RESOURCE_CLAIM
from berth.objects.node_pods import MIRROR
from berth.objects.storage import (
    BETA_CLASS,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
)

KEPT_ANNOTATIONS: Final = frozenset(
    {
        *VOLCANO_ANNOTATIONS,
        BETA_CLASS,
        BIND_COMPLETED,
        BOUND_BY_CONTROLLER,
        EXTENDED_RESOURCE_CLAIM,
        MIGRATED_PLUGINS,
        MIRROR,
        SELECTED_NODE,
    }
)

_replace: Final = msgspec.structs.replace


def stripped(kind: Kind[Any], obj: Any) -> Any:
    """Return *obj* as it may be recorded."""
    meta = obj.metadata
    if meta.annotations:
        kept = {key: meta.annotations[key] for key in meta.annotations if key in KEPT_ANNOTATIONS}
        obj = _replace(obj, metadata=_replace(meta, annotations=kept))
    return kind.without_raw(obj)
