"""Filter, as far as it looks for devices: on which rows there are some (spec §5.17)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Code
from berth.scheduler.framework.verdict import Mask
from berth_plugins.dynamic_resources.extended_resources import RequestMapping
from berth_plugins.dynamic_resources.known_rows import CachedRows
from berth_plugins.dynamic_resources.node_search import AttemptTimeoutError, NodeSearch
from berth_plugins.dynamic_resources.requests import AllocationError, ClaimRequests
from berth_plugins.dynamic_resources.row_rejections import RowRejections
from berth_plugins.dynamic_resources.search_result import InvalidPoolsError, SearchTimeoutError
from berth_plugins.dynamic_resources.state import DevicesOfPod, ExtendedResources

CANNOT_ALLOCATE: Final = "cannot allocate all claims"
INVALID_POOLS: Final = "invalid resource pools were encountered"


class _Asked(NamedTuple):
    """Rows that are asked the same question."""

    where: Mask
    claims: tuple[ClaimRequests, ...]
    mappings: tuple[RequestMapping, ...]
    known: CachedRows


def search_rows(
    search: NodeSearch, devices: DevicesOfPod, pod: PodInfo, rejections: RowRejections
) -> str:
    """Look for devices on every row that is left; remember what was found.

    Return what to say if the time for the attempt was over before all rows were searched, else "".
    One of them is rejected then, which fails the attempt: had there been time, the pod might go
    there. What was found is known to the next attempt, which comes further.
    """
    nodes = rejections.nodes
    groups = []
    for lacking, where in _by_lacking(devices.extended, nodes, rejections.left):
        try:
            claims, mappings = search.claims_for(devices, pod.pod, lacking)
        except AllocationError as exc:
            rejections.reject(str(exc), where, Code.ERROR)
            continue
        if claims:
            groups.append(_Asked(where, claims, mappings, search.known_rows(claims, nodes)))
    for group in groups:
        rejections.reject(CANNOT_ALLOCATE, group.where & group.known.refused)
    late: int | None = None
    for row, asked in _unknown(groups):
        node = nodes.nodes[row]
        assert node is not None, f"row {row} is empty"
        try:
            picks = search.on_node(devices, asked.claims, node)
        except AllocationError as exc:
            rejections.reject_row(row, str(exc), Code.ERROR)
        except InvalidPoolsError:
            rejections.reject_row(row, INVALID_POOLS)
        except AttemptTimeoutError:
            if late is None:  # go on: what is known of others takes no time
                late = row
        except SearchTimeoutError:
            # The attempt has failed; other nodes would only take as long.
            rejections.reject_row(row, _timed_out(node.name), Code.ERROR)
            return ""
        else:
            asked.known.note(row, node.name, picks)
            if picks is None:
                rejections.reject_row(row, CANNOT_ALLOCATE)
    for where, claims, mappings, known in groups:
        if len(groups) == 1:
            devices.found.add_all(claims, mappings, known.picks)
        else:
            fits = np.flatnonzero(where & known.fits)
            some = {name: known.picks[name] for name in nodes.names(fits)}
            devices.found.add_all(claims, mappings, some)
    if late is None:
        return ""
    text = _timed_out(nodes.name(late))
    rejections.reject_row(late, text, Code.ERROR)
    return text


def _unknown(groups: list[_Asked]) -> list[tuple[int, _Asked]]:
    """Return the rows that are to be searched, in their order."""
    rows = [
        (row, group)
        for group in groups
        for row in np.flatnonzero(group.where & ~group.known.known).tolist()
    ]
    rows.sort(key=lambda pair: pair[0])
    return rows


def _by_lacking(
    extended: ExtendedResources | None, nodes: NodeTable, where: Mask
) -> Iterator[tuple[frozenset[str], Mask]]:
    """Yield rows *where* by the extended resources that they offer by devices only."""
    parts = [(frozenset[str](), where)]
    for name in extended.amounts if extended is not None else ():
        column = nodes.resource_rows(name)
        lacks = nodes.exists if column is None else column[0] == 0
        parts = [
            part
            for names, rows in parts
            for part in ((names, rows & ~lacks), (names | {name}, rows & lacks))
        ]
    yield from (part for part in parts if part[1].any())


def _timed_out(node_name: str) -> str:
    return f"node {node_name}: timed out trying to allocate devices"
