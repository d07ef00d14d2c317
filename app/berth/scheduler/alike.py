"""Pods that need no attempt, since another of their class has just shown what it would come to.

Decision (2026-11): an attempt answers for all pods of its class (:mod:`berth.framework.pod_class`)
until something happens that may help them; instead of one attempt each, as in kube-scheduler, where
ten thousand pods that fit nowhere hold up those that do. The outcome is the same: each pod has its
own turn, count of attempts, condition, event and place in the queue. "May help" is what the queue
takes it for, so what moves one pod of the class, and besides, because a fresh attempt would see it
at once: pods given a node in memory, if their arrival would move it or they could be evicted for
it. What no plugin registers (labels of a namespace, the services behind default spread constraints)
a class hears of as late as kube-scheduler's waiting pods do, after five minutes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.framework.pod_class import judge_templates
from berth.profile.profile import Profile
from berth.scheduler.decision import Decision
from berth.scheduler.decisions import DecisionRecord


@dataclass(frozen=True, slots=True)
class Answer:
    """What an attempt came to, for all pods that are like the one it was made for."""

    record: DecisionRecord
    rejectors: frozenset[str]
    """The plugins that rejected the pod."""


def alike_profiles(profiles: Mapping[str, Profile]) -> frozenset[str]:
    """Return the names of the profiles for which pods of one class are alike."""
    return frozenset(name for name, p in profiles.items() if judge_templates(p.plugins))


def answer_of(
    decision: Decision, record: DecisionRecord, profile: Profile, *, has_nominations: bool
) -> Answer | None:
    """Return what *decision* says about pods of the same class; None if nothing for sure.

    *has_nominations*: others were nominated to nodes, which they may give up without an event.
    """
    status, helped, diagnosis = decision.status, decision.post_filter, decision.diagnosis
    if (
        has_nominations
        or status is None
        or not status.is_rejected
        or diagnosis.pending_plugins
        or diagnosis.statuses  # judged one by one, so not by plugins alone
        or not diagnosis.unschedulable_plugins <= {plugin.NAME for plugin in profile.plugins}
        or (helped is not None and (helped.status is None or not helped.status.is_rejected))
        # Such an attempt moves the rotation on, and the next would begin elsewhere (spec §2.5).
        or (profile.percentage_of_nodes_to_score and decision.pre_filter.node_names is not None)
    ):
        return None
    return Answer(record, frozenset(diagnosis.unschedulable_plugins))
