"""Placement plugins of a profile, and what they say together (spec G10)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from berth.kube.objects.pod_group import PodGroup
from berth.scheduler.framework.interface import MAX_NODE_SCORE
from berth.scheduler.framework.node_table import NodeTable
from berth.scheduler.framework.placement import EVERYWHERE, Placement, PodGroupPlacement
from berth.scheduler.framework.pod_info import PodInfo
from berth.scheduler.framework.status import Status
from berth.scheduler.profile.profile import Profile


class PlacementScores(NamedTuple):
    """What PlacementScore plugins say of some candidates, in their order."""

    totals: list[int]
    """The higher the better."""
    raw: dict[str, list[int]]
    """By plugin, as it gave them."""
    normalized: dict[str, list[int]]
    """By plugin, before its weight."""
    weights: dict[str, int]


NOWHERE = "no feasible placements found"


def run_placement_generate(
    profile: Profile,
    group: PodGroup,
    scheduled: Iterable[PodInfo],
    nodes: NodeTable,
    parent: Placement = EVERYWHERE,
) -> Sequence[Placement] | Status:
    """Return where in *parent* the group may go, at least one placement; or why nowhere."""
    for plugin in profile.placement_generates:
        placements = plugin.placement_generate(group, scheduled, parent, nodes)
        if isinstance(placements, Status):
            return placements.of(plugin.NAME)
        return placements or Status.unschedulable(NOWHERE).of(plugin.NAME)
    return [parent]


def run_placement_scores(
    profile: Profile, candidates: Sequence[PodGroupPlacement], nodes: NodeTable
) -> list[int] | Status:
    """Return the total of each candidate, the higher the better."""
    scores = score_placements(profile, candidates, nodes)
    return scores if isinstance(scores, Status) else scores.totals


def score_placements(
    profile: Profile, candidates: Sequence[PodGroupPlacement], nodes: NodeTable
) -> PlacementScores | Status:
    """Return what each plugin thinks of each candidate."""
    scores = PlacementScores([0] * len(candidates), {}, {}, {})
    for plugin in profile.placement_scores:
        name, raw = plugin.NAME, []
        for candidate in candidates:
            score = plugin.placement_score(candidate, nodes)
            if isinstance(score, Status):
                return _failed("running PlacementScore plugins", name, score.message)
            raw.append(score)
        normalized = plugin.normalize_placement_scores(raw)
        if isinstance(normalized, Status):
            what = "running NormalizePlacementScore on PlacementScore plugins"
            return _failed(what, name, normalized.message)
        weight = profile.placement_weights.get(name, 1)
        for index, score in enumerate(normalized):
            if not 0 <= score <= MAX_NODE_SCORE:
                return Status.error(
                    "applying score defaultWeights on PlacementScore plugins: plugin"
                    f' "{name}" returns an invalid score {score}, it should in the range of'
                    f" [0, {MAX_NODE_SCORE}] after normalizing"
                )
            scores.totals[index] += weight * score
        scores.raw[name], scores.normalized[name] = raw, list(normalized)
        scores.weights[name] = weight
    return scores


def _failed(what: str, plugin: str, message: str) -> Status:
    return Status.error(f'{what}: plugin "{plugin}" failed with: {message}')
