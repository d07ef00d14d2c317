"""Exports of objects: what of one may leave the process, in recordings and snapshots.

Objects are decoded into the fields that berth, or the plugin that declares their kind, reads, and
these are the allow list: environment variables, commands and the contents of volumes are in none
that berth declares. What is left out beside:

- the JSON that an object was decoded from, wherever it is kept (for extenders, and to write back);
- annotations, which may hold anything, but for :data:`DECIDING_ANNOTATIONS` and those that plugins
  declare as :attr:`~berth.scheduler.framework.interface.Plugin.ANNOTATIONS`;
- what is passed on to drivers unread, which a :class:`~berth.scheduler.framework.kind.Kind` tells
by
  ``without_opaque``.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec

from berth.kube.objects.devices import EXTENDED_RESOURCE_CLAIM
from berth.kube.objects.node_pods import MIRROR
from berth.kube.objects.storage import (
    BETA_CLASS,
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    DEFAULT_CLASS,
    MIGRATED_PLUGINS,
    SELECTED_NODE,
)
from berth.scheduler.framework.interface import Plugin
from berth.scheduler.framework.kind import Kind
from berth.scheduler.framework.pod_group_sources import VOLCANO_ANNOTATIONS

DECIDING_ANNOTATIONS: Final = frozenset(
    {
        *VOLCANO_ANNOTATIONS,
        BETA_CLASS,
        BIND_COMPLETED,
        BOUND_BY_CONTROLLER,
        DEFAULT_CLASS,
        EXTENDED_RESOURCE_CLAIM,
        MIGRATED_PLUGINS,
        MIRROR,
        SELECTED_NODE,
    }
)
"""All that berth and its in-tree plugins read."""

_RAW: Final = "raw"
_replace: Final = msgspec.structs.replace


def deciding_annotations(plugins: Iterable[type[Plugin]]) -> frozenset[str]:
    """Return the annotations that are read by berth or one of *plugins*."""
    return DECIDING_ANNOTATIONS.union(*(plugin.ANNOTATIONS for plugin in plugins))


def exported(
    kind: Kind[Any], obj: Any, *, annotations: Collection[str] = DECIDING_ANNOTATIONS
) -> Any:
    """Return *obj*, of *kind* or a subclass of its type, as it may leave the process.

    It is *obj* itself if there is nothing to leave out. *annotations* are those to be kept.
    """
    if type(obj) is not kind.type or kind.keeps_raw:
        names = (name for name in kind.type.__struct_fields__ if name != _RAW)
        obj = kind.type(**{name: getattr(obj, name) for name in names})
    meta = obj.metadata
    if meta.annotations and not meta.annotations.keys() <= annotations:
        kept = {key: value for key, value in meta.annotations.items() if key in annotations}
        obj = _replace(obj, metadata=_replace(meta, annotations=kept))
    return obj if kind.without_opaque is None else kind.without_opaque(obj)
