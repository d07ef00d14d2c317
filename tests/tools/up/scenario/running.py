"""Runs scenario files on a clock that does not wait."""

import asyncio
import random
from pathlib import Path

from berth.cluster.embedded_cluster import EmbeddedCluster
from berth.runtime.clock import RealClock
from berth.runtime.event_loop import sparing_survivors
from berth.runtime.virtual_time import VirtualClock, VirtualTimeLoop
from berth.service.plugin_sources import KnownPlugins
from berth.tools.up.scenario.load import ScenarioFile
from berth.tools.up.scenario.runner import Result
from berth.tools.up.scenario.up import run_scenario

HEAD = "apiVersion: berth.dev/v1alpha1\nkind: Scenario\n"


def run_file(path: Path) -> tuple[Result, list[str]]:
    """Run a file; return what came of it, and what was said."""
    file = ScenarioFile(path)
    clock, rng = VirtualClock(), random.Random(file.scenario.seed)
    lines: list[str] = []

    async def run() -> Result:
        cluster = EmbeddedCluster(
            clock=clock,
            rng=rng,
            insecure=True,
            controller_options=file.controller_options(),
            features=file.features.gates,
            release=file.release,
        )
        return await run_scenario(
            file, cluster, plugins=KnownPlugins(), clock=clock, rng=rng, say=lines.append
        )

    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
        return runner.run(sparing_survivors(run(), RealClock())), lines


def run_text(text: str, folder: Path) -> tuple[Result, list[str]]:
    """Run a file of this text, without its first two lines."""
    path = folder / "test.yaml"
    path.write_text(HEAD + text)
    return run_file(path)
