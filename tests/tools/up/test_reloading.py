"""``berth up`` reads its files again, as ``berth run`` does."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

pytestmark = [pytest.mark.wall, pytest.mark.slow]

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podMaxBackoffSeconds: {seconds}
"""
PLUGIN = """
from berth.scheduler.framework.interface import PreEnqueuePlugin

class Mine(PreEnqueuePlugin):
    NAME = "Mine"

    def pre_enqueue(self, pod):
        return None
"""


@asynccontextmanager
async def running(tmp_path: Path, *more: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``berth up`` until its scheduler runs; its standard error is a pipe."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "berth", "up", "--nodes=1", "--port=0", "--debug-port=0"),
        *(f"--kubeconfig-out={tmp_path / 'kubeconfig'}", *more),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            assert process.stdout is not None
            async for line in process.stdout:
                if b"no pods" in line:  # the first line of progress
                    break
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def told(process: asyncio.subprocess.Process, what: str) -> str:
    """Return the next line of the log that says *what*."""
    assert process.stderr is not None
    async for line in process.stderr:
        if what in line.decode():
            return line.decode()
    raise AssertionError(f"{what!r} was not said")


async def test_a_signal_has_the_files_read_again(tmp_path: Path) -> None:
    config, folder = tmp_path / "config.yaml", tmp_path / "plugins"
    config.write_text(CONFIG.format(seconds=10))
    folder.mkdir()
    plugin = folder / "mine.py"
    plugin.write_text(PLUGIN)
    async with running(tmp_path, f"--config={config}", f"--plugin-dir={folder}") as process:
        config.write_text(CONFIG.format(seconds=20))
        process.send_signal(signal.SIGHUP)
        assert "generation=2" in await told(process, "configuration replaced")

        plugin.write_text("import no_such")
        process.send_signal(signal.SIGHUP)
        line = await told(process, "configuration not reloaded")
        assert f"file={plugin}" in line
        assert "no_such" in line


async def test_it_is_told_that_there_is_no_file(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        os.kill(process.pid, signal.SIGHUP)
        assert "flag=--config" in await told(process, "no configuration file to read again")
