"""Which nodes have which host ports taken (spec §4.5)."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from berth.objects.host_ports import HostPort


class PortIndex:
    """``(protocol, port)`` to the rows that use it and the addresses they use it on.

    Set semantics, without a count, as in kube-scheduler: removing one of two pods that hold the
    same port frees it.
    """

    __slots__ = ("_users",)

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[int, set[str]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            rows = self._users.setdefault((port.protocol, port.port), {})
            rows.setdefault(row, set()).add(port.ip)

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            rows = self._users.get((port.protocol, port.port), {})
            addresses = rows.get(row)
            if addresses is None:
                continue
            addresses.discard(port.ip)
            if not addresses:
                del rows[row]
                if not rows:
                    del self._users[port.protocol, port.port]

    def users(self, protocol: str, port: int) -> dict[int, set[str]]:
        """Return row to addresses for one port; not to be changed."""
        return self._users.get((protocol, port), {})

    def take(self, rows: NDArray[np.intp]) -> "PortIndex":
        """Return an independent index of *rows*, renumbered from 0."""
        part = PortIndex()
        if not self._users:
            return part
        renumbered = {row: i for i, row in enumerate(rows.tolist())}
        for key, users in self._users.items():
            common = users.keys() & renumbered.keys()
            found = {renumbered[row]: set(users[row]) for row in common}
            if found:
                part._users[key] = found
        return part
