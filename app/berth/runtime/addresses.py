"""Default addresses and paths, agreed on by those who listen or write and those who ask."""

from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"

THIS_MACHINE: Final = ("localhost", LOOPBACK, "::1")
"""Names by which a machine calls itself."""

RUN_PORT: Final = 10259
"""Of ``berth run``, as of kube-scheduler, unless --secure-port moves it."""

UP_PORT: Final = 10261
"""Of the scheduler of ``berth up``: beside kube-scheduler's 10259, so that both can run at once."""

EXTENDER_PORT: Final = 10262
"""Of ``berth extender``."""

UI_PORT: Final = 10263
"""Of the page, as ``berth up`` and ``berth ui`` serve it."""

KUBECONFIG: Final = Path("berth.kubeconfig")
"""Where ``berth up`` and ``berth cluster`` write one, and other commands look for it."""
