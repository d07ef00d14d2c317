"""The status of the autoscaler, as cluster-autoscaler writes it into a ConfigMap."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import yaml

from berth.autoscaler.cluster_view import ClusterView, is_ready
from berth.autoscaler.node_groups import group_of
from berth.autoscaler.scale_up import GroupState
from berth.clock import rfc3339

NAMESPACE: Final = "kube-system"
CONFIG_MAP: Final = "cluster-autoscaler-status"
LAST_UPDATED: Final = "cluster-autoscaler.kubernetes.io/last-updated"
INITIALIZING: Final = "Initializing"
RUNNING: Final = "Running"

Written = dict[str, Any]

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times as fast, if it is there


@dataclass
class StatusWriter:
    """Makes the text of each scan; keeps when each condition last changed."""

    _since: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    """By group (empty: the cluster) and condition: its status, and when it became that."""

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
        counts = {
            each.group.name: _counts(view, each.group.name, leaving, each.upcoming)
            for each in groups
        }
        all_counts = _counts(view, None, leaving, sum(each.upcoming for each in groups))
        is_growing = any(each.upcoming for each in groups)
        scale_up = "InProgress" if is_growing else "Needed" if pending else "NoActivity"
        status: Written = {
            "time": _time(now),
            "autoscalerStatus": RUNNING,
            "clusterWide": {
                "health": {
                    **self._status("", "health", "Healthy", now),
                    "nodeCounts": all_counts,
                    **self._times("", "health", now),
                },
                "scaleUp": {
                    **self._status("", "scaleUp", scale_up, now),
                    **self._times("", "scaleUp", now),
                },
                "scaleDown": self._scale_down("", candidates.total(), now),
            },
            "nodeGroups": [
                self._group(each, counts[each.group.name], candidates[each.group.name], now)
                for each in groups
            ],
        }
        return _dumped(status)

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
                **self._times(name, "health", now),
            },
            "scaleUp": {**scale_up, **self._times(name, "scaleUp", now)},
            "scaleDown": self._scale_down(name, candidates, now),
        }

    def _scale_down(self, group: str, candidates: int, now: float) -> Written:
        found = "CandidatesPresent" if candidates else "NoCandidates"
        status = self._status(group, "scaleDown", found, now)
        if candidates:
            status["candidates"] = candidates
        return {**status, **self._times(group, "scaleDown", now)}

    def _status(self, group: str, condition: str, status: str, now: float) -> Written:
        if self._since.get((group, condition), ("", ""))[0] != status:
            self._since[group, condition] = (status, rfc3339(now))
        return {"status": status}

    def _times(self, group: str, condition: str, now: float) -> Written:
        _, since = self._since[group, condition]
        return {"lastProbeTime": rfc3339(now), "lastTransitionTime": since}


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


def _counts(view: ClusterView, group: str | None, leaving: set[str], upcoming: int) -> Written:
    """Count the nodes of *group*, None: of all groups and none."""
    nodes = [node for node in view.nodes.values() if group in (None, group_of(node.labels))]
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
