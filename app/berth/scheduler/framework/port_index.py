"""Host ports that are taken on nodes (spec §4.5)."""

from collections.abc import Iterable, Set
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.kube.objects.host_ports import ANY_IP, HostPort
from berth.scheduler.framework.verdict import Mask

MOST_KEPT: Final = 64
"""Ports of which it is kept where they are taken; at 50,000 nodes 50 KB each."""


class PortIndex:
    """``(protocol, port)`` to the rows that use it and the addresses they use it on.

    Set semantics, without a count, as in kube-scheduler: removing one of two pods that hold the
    same port frees it.
    """

    __slots__ = ("_taken", "_users")

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], dict[int, set[str]]] = {}
        self._taken: dict[HostPort, Mask] = {}
        """What :meth:`taken` said, kept true."""

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        for port in ports:
            rows = self._users.setdefault((port.protocol, port.port), {})
            rows.setdefault(row, set()).add(port.ip)
            self._changed(row, port)

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
            self._changed(row, port)

    def _changed(self, row: int, port: HostPort) -> None:
        """Follow a change of one port of *row*. Masks that were handed out stay as they are."""
        for wanted, taken in self._taken.items():
            if wanted.port == port.port and wanted.protocol == port.protocol and row < len(taken):
                used = self.users(port.protocol, port.port).get(row, set())
                is_taken = _is_taken(wanted.ip, used)
                if is_taken != taken[row]:
                    self._taken[wanted] = taken = taken.copy()
                    taken[row] = is_taken

    def taken(self, wanted: HostPort, size: int) -> Mask | None:
        """Return which of the first *size* rows use what *wanted* conflicts with; None: no row.

        Not to be changed.
        """
        users = self.users(wanted.protocol, wanted.port)
        if not users:
            return None
        taken = self._taken.get(wanted)
        if taken is None or len(taken) != size:
            if len(self._taken) >= MOST_KEPT:
                self._taken.clear()
            taken = self._taken[wanted] = np.zeros(size, bool)
            taken[[row for row, used in users.items() if _is_taken(wanted.ip, used)]] = True
        return taken

    def users(self, protocol: str, port: int) -> dict[int, set[str]]:
        """Return row to addresses for one port; not to be changed."""
        return self._users.get((protocol, port), {})

    def copy(self) -> "PortIndex":
        """Return the same index, to be changed apart from this one."""
        twin = PortIndex()
        for port, users in self._users.items():
            twin._users[port] = {row: set(used) for row, used in users.items()}
        return twin

    def take(self, rows: NDArray[np.intp]) -> "PortIndex":
        """Return an independent index of *rows*, renumbered from 0."""
        part = PortIndex()
        if not self._users:
            return part
        renumbered = {row: i for i, row in enumerate(rows.tolist())}
        for key, users in self._users.items():
            common = users.keys() & renumbered.keys()
            users_of_rows = {renumbered[row]: set(users[row]) for row in common}
            if users_of_rows:
                part._users[key] = users_of_rows
        return part


def _is_taken(ip: str, used: Set[str]) -> bool:
    """Whether a port on *ip* conflicts with the same on one of the addresses that are *used*."""
    return bool(used) and (ip == ANY_IP or ip in used or ANY_IP in used)
