"""Terms of pod affinity and anti-affinity, compiled from what users write (spec §5.11)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

from berth.kube.objects.pod import Affinity, Pod, PodAffinity, PodAffinityTerm
from berth.kube.objects.selectors import Selector, compile_selector
from berth.scheduler.framework.pod_info import PodTemplate


class AffinityTerm(msgspec.Struct, frozen=True):
    """Pods by namespace and label, and the node label that says how near they are."""

    topology_key: str
    namespaces: frozenset[str]
    """Namespaces by name; the pod's own if the term says nothing of namespaces."""
    namespace_selector: Selector
    """Namespaces by label, beside ``namespaces``."""
    selector: Selector

    def matches(
        self, namespace: str, labels: Mapping[str, str], *, namespace_labels: Mapping[str, str]
    ) -> bool:
        """Whether the term is about a pod with *labels* in *namespace*."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)


class TermKind(StrEnum):
    """What a pod wants of the pods that a term is about."""

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED = "preferred affinity or anti-affinity"


@dataclass(frozen=True, slots=True)
class HeldTerm:
    """A term as pods have it. Equal content is equal, so one stands for all pods that have it."""

    kind: TermKind
    term: AffinityTerm
    weight: int
    """Of a preference, negative for anti-affinity; else how often the pod repeats the term."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.kind, self.term, self.weight)))

    def __hash__(self) -> int:
        return self._hash


Weighted = tuple[tuple[int, AffinityTerm], ...]


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All terms of one pod."""

    required_affinity: tuple[AffinityTerm, ...] = ()
    required_anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: Weighted = ()
    """With weights, those of anti-affinity negative."""
    held: tuple[HeldTerm, ...] = ()
    """The same, each distinct term once."""
    error: str = ""
    """What is wrong with a term as written; the list that it is in counts as empty."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = self.required_affinity, self.required_anti_affinity, self.preferred, self.error
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash


NO_TERMS: Final = PodTerms()

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Affinity).decode


def terms_of(template: PodTemplate) -> PodTerms:
    """Return the terms of the pods of *template*."""
    return template.memo("affinity_terms", lambda: compile_terms(template.pod))


def compile_terms(pod: Pod) -> PodTerms:
    """Return the terms of *pod*; what was compiled before is looked up by content."""
    affinity = pod.spec.affinity
    if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
        return NO_TERMS
    of_pods = Affinity(
        pod_affinity=affinity.pod_affinity, pod_anti_affinity=affinity.pod_anti_affinity
    )
    return _compile(pod.metadata.namespace, _encode(of_pods))


@lru_cache(maxsize=4096)
def _compile(namespace: str, written: bytes) -> PodTerms:
    """Compile msgpack-encoded terms: bytes can be a key, what they encode cannot."""
    affinity: Affinity = _decode(written)
    towards = affinity.pod_affinity or PodAffinity()
    away = affinity.pod_anti_affinity or PodAffinity()
    errors: list[str] = []

    def compiled(written_terms: Iterable[tuple[int, PodAffinityTerm]]) -> Weighted:
        try:
            return tuple((weight, _compile_term(term, namespace)) for weight, term in written_terms)
        except ValueError as exc:
            errors.append(str(exc))
            return ()

    required = compiled((1, term) for term in towards.required)
    required_anti = compiled((1, term) for term in away.required)
    preferred = (
        *compiled((wanted.weight, wanted.pod_affinity_term) for wanted in towards.preferred),
        *compiled((-wanted.weight, wanted.pod_affinity_term) for wanted in away.preferred),
    )
    held: dict[tuple[TermKind, AffinityTerm], int] = {}
    for kind, terms in (
        (TermKind.REQUIRED_AFFINITY, required),
        (TermKind.REQUIRED_ANTI_AFFINITY, required_anti),
        (TermKind.PREFERRED, preferred),
    ):
        for weight, term in terms:
            held[kind, term] = held.get((kind, term), 0) + weight
    return PodTerms(
        required_affinity=tuple(term for _, term in required),
        required_anti_affinity=tuple(term for _, term in required_anti),
        preferred=preferred,
        held=tuple(HeldTerm(kind, term, weight) for (kind, term), weight in held.items()),
        error="; ".join(errors),
    )


def _compile_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """Compile one term of a pod in *namespace*; ``ValueError`` names the part that is wrong."""
    own = not term.namespaces and term.namespace_selector is None
    return AffinityTerm(
        topology_key=term.topology_key,
        namespaces=frozenset((namespace,) if own else term.namespaces),
        namespace_selector=compile_selector(term.namespace_selector),
        selector=compile_selector(term.label_selector),
    )
