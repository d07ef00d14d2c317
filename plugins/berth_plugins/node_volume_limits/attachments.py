"""Volumes attached to nodes."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from berth.kube.objects.storage import VolumeAttachment
from berth.scheduler.framework.listers import Listers
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Ints, Rows
from berth_plugins.node_volume_limits.volume_names import CSIVolume

_MOST_GONE: Final = 1_024
"""So many nodes that are gone, or as many as there are, may have numbers."""


class Attachments:
    """The volumes that VolumeAttachments say are attached, by node."""

    def __init__(self, listers: Listers) -> None:
        self._volumes = listers.persistent_volumes
        self._by_node: dict[str, dict[str, VolumeAttachment]] = {}
        self._numbers: dict[str, int] = {}
        """By name of a node, where ``_counts`` has how many are attached to it."""
        self._counts: Ints = np.zeros(1, np.int64)
        self._numbered = 0
        """How often numbers were given anew."""
        listers.volume_attachments.follow(self._change)

    def to(self, node_name: str) -> set[CSIVolume]:
        """Return the volumes that are attached to a node."""
        attached = set()
        for attachment in self._by_node.get(node_name, {}).values():
            name = attachment.spec.source.persistent_volume_name
            volume = None if name is None else self._volumes.get("", name)
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                attached.add(CSIVolume(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return attached

    def volume_names(self, node_name: str) -> Iterator[str]:
        """Yield the names of the PersistentVolumes that are attached to a node, known or not."""
        for attachment in self._by_node.get(node_name, {}).values():
            name = attachment.spec.source.persistent_volume_name
            if name is not None:
                yield name

    def counts(self, nodes: NodeTable) -> Ints:
        """Return per row at least as many as are attached."""
        if not self._by_node:
            return np.zeros(nodes.size, np.int64)
        if len(self._numbers) > 2 * (len(self._by_node) + nodes.size) + _MOST_GONE:
            self._number_anew()
        numbers = nodes.kept((self, self._numbered), lambda: self._numbers_of(nodes))
        counts: Ints = self._counts[numbers]
        return counts

    def _numbers_of(self, nodes: NodeTable) -> Rows:
        """Return per row the number of its node; that of no node where there is none."""
        numbers = np.full(nodes.size, self._number(""))
        for name, row in nodes.row_of.items():
            numbers[row] = self._number(name)
        return numbers

    def _number(self, node_name: str) -> int:
        """Return where ``_counts`` has the node, now at least."""
        number = self._numbers.setdefault(node_name, len(self._numbers))
        if number >= len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(number + 1, np.int64)])
        return number

    def _number_anew(self) -> None:
        """Forget the numbers of nodes that are gone."""
        self._numbered += 1
        self._numbers.clear()
        self._counts = np.zeros(1, np.int64)
        for name, attachments in self._by_node.items():
            number = self._number(name)
            self._counts[number] = len(attachments)

    def _change(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        if old is not None:
            attachments = self._by_node[old.spec.node_name]
            del attachments[old.metadata.name]
            number = self._number(old.spec.node_name)
            self._counts[number] -= 1
            if not attachments:
                del self._by_node[old.spec.node_name]
        if new is not None:
            self._by_node.setdefault(new.spec.node_name, {})[new.metadata.name] = new
            number = self._number(new.spec.node_name)
            self._counts[number] += 1
