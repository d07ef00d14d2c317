"""What the API server asks kubelets that run in its process: the way to containers."""

from collections.abc import Callable
from typing import Protocol

from berth.cluster.kubelet.processes.process import Log
from berth.cluster.kubelet.processes.sandbox import Sandbox
from berth.cluster.resources import Object

Find = Callable[[str, str], Object | None]
"""Returns an object that a pod names, by plural and name; None: it is not there."""


class Containers(Protocol):
    """Containers of pods, which are as the API has them."""

    def log(self, pod: Object, container: str, *, previous: bool) -> Log | None:
        """Return what a container has written, or did before its last start; None: nobody knows."""
        ...

    def sandbox(self, pod: Object, container: str, find: Find) -> Sandbox | None:
        """Return what a container sees that runs; None: no such container does."""
        ...

    def changed(self, pod: Object) -> None:
        """Look again at a pod after something has run in its containers, or has come to them."""
        ...
