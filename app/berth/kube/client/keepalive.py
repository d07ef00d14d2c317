"""Has the system find out by itself when the other side of a connection is gone."""

import socket
import sys
from typing import Final

IDLE: Final = 30
INTERVAL: Final = 10
PROBES: Final = 3
"""A peer that vanished without a word is noticed after idle + interval * probes = 60 seconds."""


def keep_alive(connection: socket.socket) -> None:
    """Probe the peer of *connection* while it is silent.

    A watch may be silent for minutes, so without probes a dead load balancer leaves us blind until
    the watch's own timeout.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, INTERVAL)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, PROBES)
