"""Pods that need no attempt, because one of the same signature has just failed.

Decision (2026-11): a failed attempt stands for all pods of its signature
(:mod:`berth.scheduler.framework.pod_signature`) until something happens that may help them; instead
of one attempt each, as in kube-scheduler, where ten thousand pods that fit nowhere hold up those
that do. The outcome is the same: each pod has its own turn, count of attempts, condition, event and
place in the queue. "May help" is what the queue takes it for, so what moves one pod of the
signature, and besides, because a fresh attempt would see it at once: pods given a node in memory,
if their arrival would move it or they could be evicted for it. What no plugin registers (labels of
a namespace, the services behind default spread constraints) a signature hears of as late as
kube-scheduler's waiting pods do, after five minutes.
"""

from collections.abc import Mapping

from berth.scheduler.decisions import DecisionRecord
from berth.scheduler.framework.interface import Input
from berth.scheduler.outcome import Unschedulable
from berth.scheduler.profile.profile import Profile
from berth.scheduler.queue.failure_cache import CachedFailure


def signature_profiles(profiles: Mapping[str, Profile]) -> dict[str, frozenset[str]]:
    """Return, by name, of profiles whose plugins decide by signature those that go by volumes.

    Plugins by others may look at volumes, too: they promise nothing about pods that have some.
    """
    return {
        name: profile.plugins_by_others.union(
            p.NAME for p in profile.plugins if Input.VOLUMES in p.INPUTS
        )
        for name, profile in profiles.items()
        if profile.decides_by_signature
    }


def cached_failure_of(
    outcome: Unschedulable, record: DecisionRecord, profile: Profile
) -> CachedFailure | None:
    """Return what *outcome* says about pods of the same signature; None if nothing for sure."""
    helped, diagnosis = outcome.post_filter, outcome.diagnosis
    plugins = {plugin.NAME for plugin in profile.plugins}
    if (
        diagnosis.pending_plugins
        # Extenders have rejected it, too.
        or any(status.plugin not in plugins for status in diagnosis.statuses.values())
        or not diagnosis.unschedulable_plugins <= plugins
        or (helped is not None and (helped.status is None or not helped.status.is_rejected))
        # Such an attempt moves the rotation on, and the next would begin elsewhere (spec §2.5).
        or (
            profile.percentage_of_nodes_to_score and outcome.found.pre_filter.node_names is not None
        )
    ):
        return None
    return CachedFailure(
        pod=record.pod,
        rejectors=frozenset(diagnosis.unschedulable_plugins),
        message=record.message,
        num_nodes=record.num_nodes,
        reasons=record.reasons,
        # Of what comes with berth only NodeResourcesFit minds requests when it filters.
        holds_for_more=not profile.plugins_by_others,
    )
