"""Terms of affinity and anti-affinity: the pods they are about, as far as namespaces are known."""

from functools import lru_cache, reduce
from typing import Final

import msgspec

from berth.kube.objects.cluster import Namespace
from berth.kube.objects.pod import Pod
from berth.kube.objects.selectors import Selector
from berth.scheduler.framework.affinity_terms import NO_TERMS, AffinityTerm, PodTerms
from berth.scheduler.framework.listers import Lister
from berth.scheduler.framework.pod_counters import PodMatcher


class RequiredTerms(msgspec.Struct, frozen=True):
    """The required terms of the pod that is being scheduled; a pod must match all of affinity."""

    affinity: PodMatcher | None
    affinity_keys: frozenset[str]
    anti_affinity: tuple[tuple[str, PodMatcher], ...]
    """With topology keys."""


class Terms(msgspec.Struct, frozen=True):
    """The terms of the pod that is being scheduled."""

    required: RequiredTerms
    preferred: tuple[tuple[int, str, PodMatcher], ...]
    """With weights, those of anti-affinity negative, and topology keys."""


NO_REQUIRED: Final = RequiredTerms(None, frozenset(), ())
NONE: Final = Terms(NO_REQUIRED, ())

MOST_KEPT: Final = 1024
"""Terms as written, of which it is known which pods they are about."""


class TermReader:
    """Says which pods terms are about, and keeps that while namespaces stay as they are."""

    def __init__(self, namespaces: Lister[Namespace]) -> None:
        self._namespaces = namespaces
        self._names_selected = lru_cache(maxsize=256)(self._select_names)
        self._kept: dict[PodTerms, Terms] = {}
        self._version = -1
        """That of namespaces which ``_kept`` is for."""

    def read(self, written: PodTerms) -> Terms:
        """Return which pods *written*, the terms of the pod to be scheduled, are about."""
        if written is NO_TERMS:
            return NONE
        if self._version != self._namespaces.version or len(self._kept) >= MOST_KEPT:
            self._version = self._namespaces.version
            self._kept.clear()
        terms = self._kept.get(written)
        if terms is None:
            terms = self._kept[written] = self._read(written)
        return terms

    def _read(self, written: PodTerms) -> Terms:
        affinity = written.required_affinity
        anti_affinity = written.required_anti_affinity
        required = NO_REQUIRED
        if affinity or anti_affinity:
            matchers = [self.matcher(term) for term in affinity]
            required = RequiredTerms(
                affinity=reduce(PodMatcher.and_also, matchers) if matchers else None,
                affinity_keys=frozenset(term.topology_key for term in affinity),
                anti_affinity=tuple(
                    (term.topology_key, self.matcher(term)) for term in anti_affinity
                ),
            )
        preferred = tuple(
            (weight, term.topology_key, self.matcher(term)) for weight, term in written.preferred
        )
        return Terms(required, preferred)

    def matcher(self, term: AffinityTerm) -> PodMatcher:
        """Return the pods that a term of the pod to be scheduled is about.

        kube-scheduler lists the namespaces that the selector matches, and then tries the selector
        again without any labels: one that asks only for the absence of labels matches everywhere.
        """
        selector, names = term.namespace_selector, term.namespaces
        if selector.matches({}):
            return PodMatcher(None, term.selector, skip_terminating=False)
        if not selector.is_nothing:
            names = self._names_selected(names, selector, self._namespaces.version)
        return PodMatcher(names, term.selector, skip_terminating=False)

    def _select_names(
        self, names: frozenset[str], selector: Selector, _version: int
    ) -> frozenset[str]:
        """Return *names* and those of the namespaces that *selector* matches now."""
        every = self._namespaces.in_namespace().items()
        return names.union(
            name for name, namespace in every if selector.matches(namespace.metadata.labels)
        )

    def is_about(self, term: AffinityTerm, pod: Pod) -> bool:
        """Whether a term of a running pod matches *pod*."""
        meta = pod.metadata
        return term.matches(
            meta.namespace, meta.labels, namespace_labels=self.labels_of(meta.namespace)
        )

    def labels_of(self, namespace: str) -> dict[str, str]:
        """Return the labels of *namespace*, none if it is not known."""
        known = self._namespaces.get("", namespace)
        return known.metadata.labels if known is not None else {}
