"""Placements of a group: what became of each, and why one of them is taken."""

from berth.insight.explain.explanation import PluginScore
from berth.insight.explain.groups.explanation import PlacementVerdict
from berth.insight.explain.groups.trial import GroupTrial, Tried


def verdicts(trial: GroupTrial) -> tuple[PlacementVerdict, ...]:
    """Tell about every placement, the best first."""
    scored = _scored(trial)
    told = [
        PlacementVerdict(
            placement=tried.placement.name,
            nodes=tried.num_nodes,
            num_fit=len(tried.fitting),
            can_start=tried.can_start,
            message="" if tried.can_start else tried.status.message,
            free=tried.free,
            allocatable=tried.allocatable,
            total=total,
            plugins=plugins,
            is_chosen=tried is trial.best and tried.can_start,
        )
        for tried, total, plugins in scored
    ]
    told.sort(key=lambda verdict: (not verdict.is_chosen, -(verdict.total or 0), -verdict.num_fit))
    return tuple(told)


def choice_of(trial: GroupTrial, key: str) -> str:
    """Say why the best placement is taken; empty if none can hold the group."""
    best = trial.best
    if best is None or not best.can_start or best.placement.rows is None:
        return ""
    name = f"{key}={best.placement.name}"
    if trial.scores is None:
        return f"{name}, the only one of {len(trial.tried)} that holds the group"
    rivals = [scored for scored in _scored(trial) if scored[1] is not None]
    (chosen,) = (rival for rival in rivals if rival[0] is best)
    second = max(
        (rival for rival in rivals if rival is not chosen), key=lambda rival: rival[1] or 0
    )
    assert chosen[1] is not None
    assert second[1] is not None
    head = f"{name} ({chosen[1]}) before {second[0].placement.name} ({second[1]})"
    if chosen[1] == second[1]:
        equals = sum(1 for rival in rivals if rival[1] == chosen[1])
        return f"{head}: chance decides between {equals} with the same total"
    gains = {
        plugin: score.weighted - second[2][plugin].weighted for plugin, score in chosen[2].items()
    }
    plugin = max(gains, key=lambda plugin: gains[plugin])
    why = f"{plugin} makes the largest difference ({gains[plugin]:+})"
    reason = trial.preferences.get(plugin, "")
    return f"{head}: {why}" + (f", which prefers {reason}" if reason else "")


def _scored(trial: GroupTrial) -> list[tuple[Tried, int | None, dict[str, PluginScore]]]:
    """Return each placement with its total and its scores by plugin, if it has been scored."""
    scores = trial.scores
    if scores is None:
        return [(tried, None, {}) for tried in trial.tried]
    able = [tried for tried in trial.tried if tried.can_start]
    scored: list[tuple[Tried, int | None, dict[str, PluginScore]]] = []
    for tried in trial.tried:
        if not tried.can_start:
            scored.append((tried, None, {}))
            continue
        at = able.index(tried)
        plugins = {
            plugin: PluginScore(
                raw=scores.raw[plugin][at],
                normalized=normalized[at],
                weight=scores.weights[plugin],
                weighted=normalized[at] * scores.weights[plugin],
            )
            for plugin, normalized in scores.normalized.items()
        }
        scored.append((tried, scores.totals[at], plugins))
    return scored
