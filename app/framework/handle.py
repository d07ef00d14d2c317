"""What a plugin may ask of the scheduler it runs in."""

from random import Random
from typing import Protocol

from app.clock import Clock
from app.framework.listers import Listers
from app.framework.node_table import NodeTable
from app.framework.pod_info import PodInfo


class Handle(Protocol):
    """Given to every plugin when it is made."""

    @property
    def clock(self) -> Clock: ...

    @property
    def rng(self) -> Random: ...

    @property
    def nodes(self) -> NodeTable:
        """The live table. A Filter judges the table it is given instead."""
        ...

    @property
    def listers(self) -> Listers:
        """Namespaces, services and workload owners as the watches last told."""
        ...

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """Write the binding to the API; raises OSError-like errors of the client."""
        ...
