"""LoadAware: pods prefer nodes that do little, by what metrics-server measures."""

import logging
import ssl
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from berth.plugin import (
    CPU,
    MAX_NODE_SCORE,
    MEMORY,
    CycleState,
    Handle,
    Ints,
    NodeTable,
    PluginArgs,
    PodInfo,
    PreScorePlugin,
    ScorePlugin,
    Scores,
    Status,
    quantity,
)

log = logging.getLogger(__name__)

RESOURCES: Final = [CPU, MEMORY]
"""The rows of all columns here; milli-CPU and bytes."""


class Weights(PluginArgs):
    """How much each resource counts."""

    cpu: int = Field(default=1, ge=0, le=100)
    memory: int = Field(default=1, ge=0, le=100)


class LoadAwareArgs(PluginArgs):
    """Where measurements come from, and how long they are good for."""

    url: str = Field(pattern="^https?://")
    """Answers a NodeMetricsList of metrics.k8s.io: an API server with metrics-server behind it, or
    ``kubectl proxy`` before one."""
    token_file: str = ""
    """A bearer token to send, read each time since it is renewed."""
    ca_file: str = ""
    """Whom to trust; by default who the system trusts."""
    refresh_seconds: float = Field(default=15, gt=0)
    """Asked so often at most, and only while pods are scheduled."""
    stale_seconds: float = Field(default=120, gt=0)
    """What was measured longer ago is not believed."""
    timeout_seconds: float = Field(default=5, gt=0)
    weights: Weights = Weights()


class NodeMetricsMeta(msgspec.Struct):
    name: str


class NodeMetrics(msgspec.Struct):
    """One item, as far as it is read."""

    metadata: NodeMetricsMeta
    timestamp: str
    usage: dict[str, str]


class NodeMetricsList(msgspec.Struct):
    items: list[NodeMetrics]


class Measurement(NamedTuple):
    """What a node was seen to use, and what its pods requested when that became known."""

    at: float
    used: tuple[int, int]
    requested: tuple[int, int]


class Columns(NamedTuple):
    """Measurements by row; where there is none, long ago."""

    at: NDArray[np.float64]
    used: Ints
    requested: Ints


class LoadAware(PreScorePlugin, ScorePlugin):
    """Scores nodes by the share that would be free with the pod, the weighted mean of resources.

    Free is what is allocatable less what was measured and what pods have requested since. A node
    without a measurement that is fresh is taken to use what its pods request. Nothing waits for a
    measurement: the first attempts after a pause are made without.
    """

    NAME = "LoadAware"
    ARGS = LoadAwareArgs

    def __init__(self, args: LoadAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args
        self._scheduler = handle
        self._measured: Mapping[str, Measurement] = {}
        self._version = 0
        self._is_asking = False
        self._due = -np.inf

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Status | None:
        """Have the measurements read again, if it is time; nobody waits for that."""
        now = self._scheduler.clock.monotonic()
        if now >= self._due and not self._is_asking:
            self._due = now + self._args.refresh_seconds
            self._is_asking = True
            self._scheduler.writes.start("read node metrics", self._refresh)
        return None

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        known = nodes.kept((self.NAME, id(self), self._version), lambda: self._columns(nodes))
        is_fresh = self._scheduler.clock.now() - known.at <= self._args.stale_seconds
        since = np.maximum(nodes.non_zero_requested - known.requested, 0)
        used = np.where(is_fresh, known.used + since, nodes.non_zero_requested)
        asked = np.array(pod.template.non_zero_requested, np.int64)[:, np.newaxis]
        allocatable = nodes.allocatable[RESOURCES]
        free = np.clip(allocatable - used - asked, 0, None)
        shares = free * MAX_NODE_SCORE // np.maximum(allocatable, 1)
        weights = np.array([[self._args.weights.cpu], [self._args.weights.memory]])
        scores: Scores = (shares * weights).sum(axis=0) // max(int(weights.sum()), 1)
        return scores

    def _columns(self, nodes: NodeTable) -> Columns:
        columns = Columns(
            np.full(nodes.size, -np.inf),
            np.zeros((len(RESOURCES), nodes.size), np.int64),
            np.zeros((len(RESOURCES), nodes.size), np.int64),
        )
        for name, measured in self._measured.items():
            row = nodes.row_of.get(name)
            if row is not None:
                columns.at[row] = measured.at
                columns.used[:, row] = measured.used
                columns.requested[:, row] = measured.requested
        return columns

    async def _refresh(self) -> None:
        try:
            found = msgspec.json.decode(await self.fetch(), type=NodeMetricsList)
            self._measured = dict(self._read(item) for item in found.items)
            self._version += 1
        except (httpx.HTTPError, OSError, ValueError) as exc:
            # ValueError: also what is no JSON, no NodeMetricsList, no quantity or no time.
            log.warning("node metrics not read", extra={"url": self._args.url, "error": repr(exc)})
        finally:
            self._is_asking = False

    def _read(self, item: NodeMetrics) -> tuple[str, Measurement]:
        nodes = self._scheduler.nodes
        row = nodes.row_of.get(item.metadata.name)
        requested = (0, 0) if row is None else tuple(nodes.non_zero_requested[:, row].tolist())
        return item.metadata.name, Measurement(
            datetime.fromisoformat(item.timestamp).timestamp(),
            (
                quantity.milli_value(quantity.parse(item.usage.get("cpu", "0"))),
                quantity.value(quantity.parse(item.usage.get("memory", "0"))),
            ),
            requested,
        )

    async def fetch(self) -> bytes:
        """Return the NodeMetricsList as JSON; raises httpx.HTTPError and OSError."""
        args = self._args
        token = _content(args.token_file)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        trust = ssl.create_default_context(cafile=args.ca_file) if args.ca_file else True
        async with httpx.AsyncClient(verify=trust, timeout=args.timeout_seconds) as client:
            answer = await client.get(args.url, headers=headers)
        answer.raise_for_status()
        return answer.content


def _content(file: str) -> str:
    return Path(file).read_text(encoding="utf-8").strip() if file else ""
