"""The nodes that a question is about, as rows of a table (see the decisions in the package)."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.node import ContainerImage, Node
from berth.runtime.errors import UNREADABLE
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.verdict import Mask
from berth.service.extender_server.wire import ExtenderArgsError, read_names

AT_ONCE: Final = 250
"""So many node objects are read before other work gets its turn: at most 10 µs each."""
LISTS_KEPT: Final = 4
"""The other scheduler looks for one node at a time. More would not stay in the CPU's caches."""
MANY: Final = 100
"""So many names are worth a dictionary of their own."""
MORE: Final = 10_000
"""So many nodes more than twice ours may be asked about: the other scheduler may be ahead of us,
but a question must not cost much more than an honest one."""
NO_ROW: Final = -1


class CandidateNodes(NamedTuple):
    """Nodes in the order of the question, and where they are in *table*."""

    table: NodeTable
    """Everything that is known; not to be kept across an await."""
    names: Sequence[str]
    rows: NDArray[np.intp]
    """:data:`NO_ROW` for nodes that nothing is known of."""

    @property
    def mask(self) -> Mask:
        """Which rows of the table were asked about."""
        mask = self.table.no_rows()
        mask[self.rows[self.rows != NO_ROW]] = True
        return mask


class _Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    resource_version: str = ""


class _Version(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta = _Meta()


_decode_version = msgspec.json.Decoder(_Version).decode
_decode_node = msgspec.json.Decoder(Node).decode


class SentNodes(NamedTuple):
    """Node objects that were sent: all names, and those that differ from what was known then."""

    names: list[str]
    different: dict[str, Node]


def named(nodes: NodeTable, names: Sequence[str]) -> CandidateNodes:
    """Find the nodes of these names in *nodes*."""
    row_of = nodes.row_of if len(names) < MANY else _row_of(nodes)
    rows = map(row_of.get, names, repeat(NO_ROW))
    return CandidateNodes(nodes, names, np.fromiter(rows, np.intp, len(names)))


def _row_of(nodes: NodeTable) -> dict[str, int]:
    """Return the rows by name, with copies of the names that lie side by side in memory.

    Those of the table lie each in its node, all over the memory, and every look at one waits for
    it: 0.5 ms for 5,000 of them when other work has had the CPU's caches.
    """
    return nodes.kept(
        "rows by the names that extenders are asked about",
        lambda: {name.encode().decode(): row for name, row in nodes.row_of.items()},
    )


def listed(nodes: NodeTable, names: bytes) -> CandidateNodes:
    """Find the nodes of a JSON array of names in *nodes*. Raises ExtenderArgsError."""
    candidates = _lists(nodes).get(names)
    return (
        named(nodes, read_names(names, most=most_nodes(nodes)))
        if candidates is None
        else candidates
    )


def most_nodes(known: NodeTable) -> int:
    """Return how many nodes one question may be about."""
    return 2 * len(known) + MORE


def remember(asked: CandidateNodes, names: bytes) -> None:
    """Have *asked* found at once when its *names*, a JSON array, come again.

    What prioritize is asked about is mostly what filter has just left; to find 5,000 nodes anew
    takes 0.5 ms.
    """
    lists = _lists(asked.table)
    if len(lists) >= LISTS_KEPT:
        del lists[next(iter(lists))]
    lists[names] = asked


def _lists(nodes: NodeTable) -> dict[bytes, CandidateNodes]:
    """Return the lists of names that are known until a node comes, goes or changes."""
    return nodes.kept("lists of names that extenders are asked about", dict)


async def read_nodes(known: NodeTable, sent: Sequence[msgspec.Raw]) -> SentNodes:
    """Read node objects, whole only those of another version than in *known*.

    Lets other work run in between. Raises ExtenderArgsError.
    """
    most = most_nodes(known)
    if len(sent) > most:
        raise ExtenderArgsError(f"Nodes.items: more than {most} nodes")
    names: list[str] = []
    different: dict[str, Node] = {}
    for start in range(0, len(sent), AT_ONCE):
        for i, raw in enumerate(sent[start : start + AT_ONCE], start):
            try:
                meta = _decode_version(raw).metadata
                if not meta.name:
                    raise ExtenderArgsError(f"Nodes.items[{i}].metadata.name is missing")
                names.append(meta.name)
                if not _is_known(known, meta):
                    different[meta.name] = _decode_node(raw)
            except UNREADABLE as exc:
                raise ExtenderArgsError(f"Nodes.items[{i}]: {exc}") from exc
        await asyncio.sleep(0)
    return SentNodes(names, different)


def _is_known(known: NodeTable, meta: _Meta) -> bool:
    row = known.row_of.get(meta.name)
    node = None if row is None else known.nodes[row]
    return node is not None and node.metadata.resource_version == meta.resource_version


def overlaid(nodes: NodeTable, sent: SentNodes) -> CandidateNodes:
    """Find nodes that were sent, in *nodes* or, if some differ from these, in a copy with them."""
    if sent.different:
        nodes = _copy_with(nodes, sent.different.values())
    return named(nodes, sent.names)


def _copy_with(nodes: NodeTable, different: Iterable[Node]) -> NodeTable:
    """Return a copy of *nodes* with other versions of some, and with some more."""
    copy = nodes.detached() if len(nodes) else NodeTable()
    # Images are still those of the whole table, seen through the rows of the copy: left alone.
    for node in different:
        row = copy.row_of.get(node.metadata.name)
        known = None if row is None else copy.nodes[row]
        images = () if known is None else known.status.images
        node = _with_images(node, images)
        if row is None:
            copy.add_node(node)
        else:
            copy.set_node(row, node)
    copy.order = np.flatnonzero(copy.exists)
    return copy


def _with_images(node: Node, images: tuple[ContainerImage, ...]) -> Node:
    replace = msgspec.structs.replace
    return replace(node, status=replace(node.status, images=images))
