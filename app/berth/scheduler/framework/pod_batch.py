"""Pods that are added or removed together."""

from collections.abc import Callable, Iterator, Sequence
from typing import overload

import numpy as np

from berth.scheduler.framework.pod_info import PodInfo, PodTemplate
from berth.scheduler.framework.verdict import Ints, Mask, Rows


class PodBatch(Sequence[PodInfo]):
    """A sequence of pods that is asked once per template what it must know of each pod.

    Of thousands of pods few differ in more than their names. :meth:`take` gives a batch of some of
    them at the cost of a few array operations; a pod is looked at only when somebody asks for it.
    """

    __slots__ = ("_index", "_pods", "_template_of", "_templates")

    def __init__(self, pods: Sequence[PodInfo]) -> None:
        self._pods = pods
        self._index: Rows | None = None
        """Which of ``_pods`` are in the batch; None: all of them."""
        self._templates = Templates()
        self._template_of = self._templates.numbers(pods)

    @classmethod
    def of(cls, pods: Sequence[PodInfo]) -> "PodBatch":
        """Return *pods* as a batch; themselves if they are one."""
        return pods if isinstance(pods, PodBatch) else cls(pods)

    @classmethod
    def some_of(
        cls, pods: Sequence[PodInfo], index: Rows, *, templates: "Templates", template_of: Rows
    ) -> "PodBatch":
        """Return the batch of the *pods* at *index*, which have the numbers *template_of*."""
        batch = object.__new__(cls)
        batch._pods, batch._index = pods, index
        batch._templates, batch._template_of = templates, template_of
        return batch

    def take(self, index: Rows | Mask) -> "PodBatch":
        """Return the batch of the pods at *index*, in that order."""
        at: Rows = (
            np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp, copy=False)
        )
        return PodBatch.some_of(
            self._pods,
            at if self._index is None else self._index[at],
            templates=self._templates,
            template_of=self._template_of[at],
        )

    @property
    def templates(self) -> list[PodTemplate]:
        """The templates of the pods, each once."""
        return [self._templates.all[i] for i in _distinct(self._template_of)]

    def per_template(self, ask: Callable[[PodTemplate], int]) -> Ints:
        """Return what *ask* says of the template of each pod; it is asked once per template."""
        answers = np.zeros(len(self._templates.all), np.int64)
        for i in _distinct(self._template_of):
            answers[i] = ask(self._templates.all[i])
        return answers[self._template_of]

    @property
    def native_requests(self) -> Ints:
        """The requests for CPU, memory and ephemeral storage; shape (3, pods)."""
        return self._templates.native_requests[:, self._template_of]

    @property
    def non_zero_requests(self) -> Ints:
        """CPU and memory with defaults for pods that request none; shape (2, pods)."""
        return self._templates.non_zero_requests[:, self._template_of]

    @property
    def is_special(self) -> Mask:
        """Which pods have host ports, or request other resources than the native ones."""
        return self._templates.is_special[self._template_of]

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


class Templates:
    """Templates by number, with what a table counts of each as columns."""

    def __init__(self) -> None:
        self.all: list[PodTemplate] = []
        self._number: dict[PodTemplate, int] = {}
        self._native_requests: Ints = np.empty((3, 0), np.int64)
        self._non_zero_requests: Ints = np.empty((2, 0), np.int64)
        self._is_special: Mask = np.empty(0, bool)

    def numbers(self, pods: Sequence[PodInfo]) -> Rows:
        """Return the number of the template of each pod; new ones get one."""
        templates = [pod.template for pod in pods]
        for template in dict.fromkeys(templates):
            if template not in self._number:
                self._number[template] = len(self.all)
                self.all.append(template)
        return np.fromiter(map(self._number.__getitem__, templates), np.intp, len(templates))

    @property
    def native_requests(self) -> Ints:
        self._catch_up()
        return self._native_requests

    @property
    def non_zero_requests(self) -> Ints:
        self._catch_up()
        return self._non_zero_requests

    @property
    def is_special(self) -> Mask:
        self._catch_up()
        return self._is_special

    def _catch_up(self) -> None:
        """Fill in the columns of templates that are new."""
        new = self.all[len(self._is_special) :]
        if not new:
            return
        native = np.array([template.columns[0] for template in new]).T
        non_zero = np.array([template.columns[1] for template in new]).T
        special = [bool(t.requested.scalars or t.host_ports) for t in new]
        self._native_requests = np.concatenate([self._native_requests, native], axis=1)
        self._non_zero_requests = np.concatenate([self._non_zero_requests, non_zero], axis=1)
        self._is_special = np.concatenate([self._is_special, special])


def _distinct(numbers: Rows) -> list[int]:
    return np.flatnonzero(np.bincount(numbers)).tolist()
