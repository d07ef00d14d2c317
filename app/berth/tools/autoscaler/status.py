"""The status of the autoscaler, as cluster-autoscaler writes it into a ConfigMap."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from berth.kube.objects.node import Node
from berth.runtime.clock import rfc3339
from berth.tools.autoscaler.cluster_view import ClusterView, is_ready
from berth.tools.autoscaler.node_groups import group_of
from berth.tools.autoscaler.scale_up import GroupState

NAMESPACE: Final = "kube-system"
CONFIG_MAP: Final = "cluster-autoscaler-status"
LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"
INITIALIZING: Final = "Initializing"
RUNNING: Final = "Running"

TIME: Final = "0001-01-01 00:00:00 +0000 UTC"
PROBE_TIME: Final = "0001-01-01T00:00:00Z"
"""Stand for the time of the scan, with which alone the status changes most of the time."""

Written = dict[str, Any]

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, if it is there


@dataclass
class StatusWriter:
    """Makes the text of each scan; keeps when each condition last changed."""

    _since: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By group (empty: the cluster) and condition: its status, and when it became that."""
    _last: tuple[Written, str] | None = None
    """What was written last, and its text, both without the time of the scan."""

    def text(
        self,
        view: ClusterView,
        groups: Sequence[GroupState],
        *,
        unneeded: Iterable[str],
        being_deleted: Iterable[str],
        pending: bool,
        now: float,
    ) -> str:
        """Return ``data.status``. *now* is in seconds since 1970."""
        candidates = Counter(
            group_of(view.nodes[name].labels) for name in unneeded if name in view.nodes
        )
        leaving = set(being_deleted)
        nodes: dict[str, list[Node]] = {}
        for node in view.nodes.values():
            nodes.setdefault(group_of(node.labels), []).append(node)
        counts = {
            group.group.name: _counts(nodes.get(group.group.name, ()), leaving, group.upcoming)
            for group in groups
        }
        all_counts = _counts(view.nodes.values(), leaving, sum(group.upcoming for group in groups))
        is_growing = any(group.upcoming for group in groups)
        scale_up = "InProgress" if is_growing else "Needed" if pending else "NoActivity"
        status: Written = {
            "time": TIME,
            "autoscalerStatus": RUNNING,
            "clusterWide": {
                "health": {
                    **self._status("", "health", "Healthy", now),
                    "nodeCounts": all_counts,
                    **self._times("", "health"),
                },
                "scaleUp": {
                    **self._status("", "scaleUp", scale_up, now),
                    **self._times("", "scaleUp"),
                },
                "scaleDown": self._scale_down("", candidates.total(), now),
            },
            "nodeGroups": [
                self._group(group, counts[group.group.name], candidates[group.group.name], now)
                for group in groups
            ],
        }
        if self._last is None or self._last[0] != status:
            self._last = status, _dumped(status)
        return self._last[1].replace(TIME, _time(now)).replace(PROBE_TIME, rfc3339(now))

    def _group(
        self, state: GroupState, counts: Mapping[str, Any], candidates: int, now: float
    ) -> Written:
        name, group, backoff = state.group.name, state.group, state.backoff
        growing = "Backoff" if backoff else "InProgress" if state.upcoming else "NoActivity"
        scale_up = self._status(name, "scaleUp", growing, now)
        if backoff is not None:
            scale_up["backoffInfo"] = {
                "errorCode": backoff.code,
                "errorMessage": backoff.message,
            }
        health = "Unhealthy" if backoff is not None else "Healthy"
        return {
            "name": name,
            "health": {
                **self._status(name, "health", health, now),
                "nodeCounts": counts,
                "cloudProviderTarget": state.target_size,
                "minSize": group.min_size,
                "maxSize": group.max_size,
                **self._times(name, "health"),
            },
            "scaleUp": {**scale_up, **self._times(name, "scaleUp")},
            "scaleDown": self._scale_down(name, candidates, now),
        }

    def _scale_down(self, group: str, candidates: int, now: float) -> Written:
        state = "CandidatesPresent" if candidates else "NoCandidates"
        status = self._status(group, "scaleDown", state, now)
        if candidates:
            status["candidates"] = candidates
        return {**status, **self._times(group, "scaleDown")}

    def _status(self, group: str, condition: str, status: str, now: float) -> Written:
        if self._since.get((group, condition), ("", ""))[0] != status:
            self._since[group, condition] = (status, rfc3339(now))
        return {"status": status}

    def _times(self, group: str, condition: str) -> Written:
        _, since = self._since[group, condition]
        return {"lastProbeTime": PROBE_TIME, "lastTransitionTime": since}


def initializing(now: float) -> str:
    """Return ``data.status`` before the first scan."""
    status = {"time": _time(now), "autoscalerStatus": INITIALIZING}
    return _dumped(status)


def config_map(text: str, *, now: float) -> Written:
    """Return the ConfigMap with the status *text*."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": CONFIG_MAP,
            "namespace": NAMESPACE,
            "annotations": {LAST_UPDATED: _time(now)},
        },
        "data": {"status": text},
    }


def _dumped(status: Written) -> str:
    text: str = yaml.dump(status, Dumper=_DUMPER, sort_keys=False)
    return text


def _counts(nodes: Collection[Node], leaving: set[str], upcoming: int) -> Written:
    ready = sum(is_ready(node) and node.name not in leaving for node in nodes)
    deleted = sum(node.name in leaving for node in nodes)
    registered: Written = {"total": len(nodes), "ready": ready, "notStarted": 0}
    if deleted:
        registered["beingDeleted"] = deleted
    registered["unready"] = {"total": len(nodes) - ready - deleted, "resourceUnready": 0}
    return {"registered": registered, "longUnregistered": 0, "unregistered": upcoming}


def _time(now: float) -> str:
    """Format a time as Go prints one, in UTC: ``2026-01-01 00:00:00.5 +0000 UTC``."""
    moment = datetime.fromtimestamp(now, UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"
