"""Reading the configuration file again: when, and what happens if it is wrong."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from berth.runtime.clock import FakeClock
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import load
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import args_models
from berth.service.reload import LOOK_EVERY, Reloader
from berth_plugins.registry import IN_TREE

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def with_backoff(seconds: int) -> str:
    return f"{HEADER}podMaxBackoffSeconds: {seconds}\n"


class Scene:
    """A mounted ConfigMap: the file is a link to a link that is swapped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._versions = 0
        self.path = folder / "config.yaml"
        self.write(with_backoff(10))
        self.path.symlink_to(folder / "data" / "config.yaml")
        self.clock = FakeClock()
        self.backoffs: list[int] = []
        self.counts: Counter[str] = Counter()
        self.refusal: ConfigError | None = None
        self.broken: ConfigError | None = None
        self.also: list[Path] = []
        self.reloader = Reloader(
            self.path,
            load=self._load,
            replace=self._replace,
            also=lambda: self.also,
            count=lambda result: self.counts.update([result]),
            clock=self.clock,
        )

    def _load(self, text: bytes) -> KubeSchedulerConfiguration:
        if self.broken is not None:
            raise self.broken
        return load(text, source=str(self.path), args_models=args_models(IN_TREE))

    def _replace(self, config: KubeSchedulerConfiguration) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.backoffs.append(config.pod_max_backoff_seconds)

    def write(self, text: str) -> None:
        self._versions += 1
        version = self._folder / f"version-{self._versions}"
        version.mkdir()
        (version / "config.yaml").write_text(text)
        link = self._folder / "new"
        link.symlink_to(version)
        os.replace(link, self._folder / "data")

    async def look(self) -> None:
        self.clock.advance(LOOK_EVERY)
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path)
    running = asyncio.create_task(made.reloader.run(), name="reloader")
    await asyncio.sleep(0)
    yield made
    running.cancel()
    await asyncio.wait([running])


async def test_an_unchanged_file_is_left_alone(scene: Scene) -> None:
    await scene.look()
    scene.write(with_backoff(10))
    await scene.look()
    assert scene.counts == {}


async def test_a_changed_file_is_read(scene: Scene) -> None:
    scene.write(with_backoff(20))
    await scene.look()
    await scene.look()
    assert scene.backoffs == [20]
    assert scene.counts == {"success": 1}


async def test_the_log_names_the_file_that_changed(
    scene: Scene, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    plugin = tmp_path / "plugin.py"
    scene.also.append(plugin)
    plugin.write_text("A = 1")
    await scene.reloader.reload()
    plugin.write_text("A = 2")
    await scene.look()
    told = [vars(r)["file"] for r in caplog.records if r.message == "configuration changed"]
    assert told == [plugin]


async def test_the_log_names_the_file_that_is_wrong(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.broken = ConfigError("plugins/mine.py", ["cannot be imported: SyntaxError"])
    assert not await scene.reloader.reload()
    assert [vars(r)["file"] for r in caplog.records] == ["plugins/mine.py"]


async def test_a_signal_has_the_file_read_though_it_is_the_same(scene: Scene) -> None:
    scene.reloader.ask()
    await scene.look()
    assert scene.backoffs == [10]
    await scene.look()
    assert scene.counts == {"success": 1}


async def test_others_have_their_turn_between_reading_and_going_on(scene: Scene) -> None:
    began: list[list[int]] = []
    asyncio.get_running_loop().call_soon(lambda: began.append([*scene.backoffs]))
    assert await scene.reloader.reload()
    assert (began, scene.backoffs) == ([[]], [10])


async def test_every_problem_of_a_wrong_file_is_told_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.write(f"{HEADER}parallelism: -1\npodMaxBackoffSeconds: -1\n")
    await scene.look()
    await scene.look()
    errors = [vars(r)["error"] for r in caplog.records if r.levelno == logging.ERROR]
    assert [error.partition(":")[0] for error in errors] == [
        "parallelism", "podMaxBackoffSeconds",
    ]  # fmt: skip
    assert (scene.backoffs, scene.counts) == ([], {"failure": 1})

    scene.write(with_backoff(30))
    await scene.look()
    assert (scene.backoffs, scene.counts) == ([30], {"failure": 1, "success": 1})


async def test_a_file_that_is_gone_changes_nothing(scene: Scene) -> None:
    scene.path.unlink()
    await scene.look()
    await scene.look()
    assert (scene.backoffs, scene.counts) == ([], {"failure": 1})


async def test_what_the_scheduler_refuses_counts_as_a_failure(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.refusal = ConfigError("reload", ["extenders: Forbidden: restart"])
    assert not await scene.reloader.reload()
    assert scene.counts == {"failure": 1}
    told = [(vars(r)["file"], vars(r)["error"]) for r in caplog.records]
    assert told == [(scene.path, "extenders: Forbidden: restart")]
