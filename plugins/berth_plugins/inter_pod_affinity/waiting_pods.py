"""Finding the waiting pods that a pod which came, changed or went may help."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

from berth.kube.objects.pod import Pod
from berth.scheduler.framework.affinity_terms import AffinityTerm, compile_terms, terms_of
from berth.scheduler.framework.events import HintIndex
from berth.scheduler.framework.key_index import NOWHERE, Choices
from berth.scheduler.framework.pod_info import PodInfo
from berth_plugins.shared.pod_keys import choices_for, has_place, keys_of


def _of_all(terms: Sequence[AffinityTerm]) -> Choices:
    """Return how to file what looks for pods that all *terms* match; nothing does if none are."""
    choices = [
        keys
        for term in terms
        for keys in choices_for(
            term.namespaces if term.namespace_selector.is_nothing else None, term.selector
        )
    ]
    return choices if terms else NOWHERE


def _affinity(pod: PodInfo) -> Choices:
    return _of_all(terms_of(pod.template).required_affinity)


def _anti_affinity(pod: PodInfo) -> Choices:
    return _of_all(terms_of(pod.template).required_anti_affinity)


def _came(_old: Pod | None, new: Pod | None) -> Iterable[Hashable]:
    return keys_of(new) if new is not None and has_place(new) else ()


def _went(old: Pod | None, new: Pod | None) -> Iterable[Hashable]:
    """Return the keys of the pod as it was; whether it has a place is asked of it as it is."""
    changed = new if new is not None else old
    return keys_of(old) if old is not None and changed is not None and has_place(changed) else ()


def _own_keys(pod: PodInfo) -> Choices:
    return [tuple(keys_of(pod.pod))]


def _kept_off(old: Pod | None, new: Pod | None) -> Iterable[Hashable] | None:
    """Return where pods are that the anti-affinity of a deleted pod may have kept off."""
    if new is not None or old is None or not has_place(old):
        return ()
    choices = _of_all(compile_terms(old).required_anti_affinity)
    return choices[0] if choices else None


POD_INDEXES: Final = (
    HintIndex(_affinity, _came),
    HintIndex(_anti_affinity, _went),
    HintIndex(_own_keys, _kept_off),
)
"""Finds the pods that look for one that came, that keep off one that went, and that one kept off
that is deleted (spec §3.9)."""
