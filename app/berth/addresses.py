"""Where things answer by default, agreed on by those who listen and those who ask."""

from typing import Final

LOOPBACK: Final = "127.0.0.1"

THIS_MACHINE: Final = ("localhost", LOOPBACK, "::1")
"""Names by which a machine calls itself."""

UP_PORT: Final = 10261
"""Of the scheduler of ``berth up``: beside kube-scheduler's 10259, so that both can run at once."""
