"""Clusters that are listed for a snapshot."""

import asyncio
import os
import signal

import pytest

from berth.runtime.terminal import TERMINATED
from berth.service import listed_snapshot


def test_a_signal_ends_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never_connects(**_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    monkeypatch.setattr(listed_snapshot, "connect", never_connects)
    with pytest.raises(SystemExit) as ended:
        listed_snapshot.list_cluster("kubeconfig")
    assert ended.value.code == TERMINATED
