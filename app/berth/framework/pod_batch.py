"""Pods that are added or removed together."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from berth.framework.pod_info import PodInfo, PodTemplate
from berth.framework.verdict import Ints, Mask


class PodBatch(Sequence[PodInfo]):
    """A sequence of pods that is asked once per template what it must know of each pod.

    Of thousands of pods few differ in more than their names. :meth:`take` gives a batch of some of
    them at the cost of a few array operations; a pod is looked at only when somebody asks for it.
    """

    __slots__ = ("_index", "_pods", "_template_of", "_templates")

    def __init__(self, pods: Sequence[PodInfo]) -> None:
        number: dict[PodTemplate, int] = {}
        self._pods = pods
        self._index: NDArray[np.intp] | None = None
        """Which of ``_pods`` are in the batch; None: all of them."""
        self._template_of = np.array(
            [number.setdefault(pod.template, len(number)) for pod in pods], np.intp
        )
        self._templates = _Templates(tuple(number))

    @classmethod
    def of(cls, pods: Sequence[PodInfo]) -> "PodBatch":
        return pods if isinstance(pods, PodBatch) else cls(pods)

    def take(self, index: NDArray[np.intp] | Mask) -> "PodBatch":
        """Return the batch of the pods at *index*, in that order."""
        part = object.__new__(PodBatch)
        part._pods, part._templates = self._pods, self._templates
        part._template_of = self._template_of[index]
        if self._index is not None:
            part._index = self._index[index]
        else:
            part._index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp)
        return part

    @property
    def templates(self) -> list[PodTemplate]:
        """The templates of the pods, each once."""
        return self._templates.some(self._template_of)

    def per_template(self, ask: Callable[[PodTemplate], int]) -> Ints:
        """Return what *ask* says of the template of each pod; it is asked once per template."""
        return self._templates.per_template(ask, self._template_of)

    @property
    def native_requests(self) -> Ints:
        """Return the requests for CPU, memory and ephemeral storage; shape (pods, 3)."""
        return self._templates.native[self._template_of]

    @property
    def non_zero_requests(self) -> Ints:
        """CPU and memory with defaults for pods that request none; shape (pods, 2)."""
        return self._templates.non_zero[self._template_of]

    @property
    def is_special(self) -> Mask:
        """Which pods have host ports, or request other resources than the native ones."""
        return self._templates.special[self._template_of]

    def __len__(self) -> int:
        return len(self._template_of)

    def __iter__(self) -> Iterator[PodInfo]:
        if self._index is None:
            return iter(self._pods)
        return map(self._pods.__getitem__, self._index.tolist())

    @overload
    def __getitem__(self, at: int) -> PodInfo: ...
    @overload
    def __getitem__(self, at: slice) -> "PodBatch": ...
    def __getitem__(self, at: int | slice) -> "PodInfo | PodBatch":
        if isinstance(at, slice):
            return self.take(np.arange(len(self))[at])
        return self._pods[at if self._index is None else int(self._index[at])]


class _Templates:
    """The templates of a batch, with what a table counts of each as columns."""

    def __init__(self, templates: tuple[PodTemplate, ...]) -> None:
        self._templates = templates

    @cached_property
    def native(self) -> Ints:
        columns = [template.columns[0] for template in self._templates]
        return np.array(columns, np.int64).reshape(-1, 3)

    @cached_property
    def non_zero(self) -> Ints:
        columns = [template.columns[1] for template in self._templates]
        return np.array(columns, np.int64).reshape(-1, 2)

    @cached_property
    def special(self) -> Mask:
        return np.array([bool(t.requested.scalars or t.host_ports) for t in self._templates], bool)

    def some(self, template_of: NDArray[np.intp]) -> list[PodTemplate]:
        return [self._templates[i] for i in _distinct(template_of)]

    def per_template(
        self, ask: Callable[[PodTemplate], int], template_of: NDArray[np.intp]
    ) -> Ints:
        answers = np.zeros(len(self._templates), np.int64)
        for i in _distinct(template_of):
            answers[i] = ask(self._templates[i])
        return answers[template_of]


def _distinct(numbers: NDArray[np.intp]) -> list[int]:
    return np.flatnonzero(np.bincount(numbers)).tolist()
