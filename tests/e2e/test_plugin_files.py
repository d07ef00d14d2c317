"""``berth run`` with a mounted folder of plugins: what is in force follows the files."""

from pathlib import Path

import pytest

from tests.e2e.replicas import cluster, until

pytestmark = [pytest.mark.wall, pytest.mark.slow]

PLUGIN = """
from berth.plugin import ScalarFilter
from berth.plugin import Status

class Curfew(ScalarFilter):
    NAME = "Curfew"

    def filter_node(self, state, pod, node_info):
        {body}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Curfew}]}}
"""


async def test_a_plugin_is_changed_while_it_decides(tmp_path: Path) -> None:
    folder, config = tmp_path / "plugins", tmp_path / "config.yaml"
    folder.mkdir()
    file = folder / "curfew.py"
    file.write_text(PLUGIN.format(body='raise ValueError("at first")'))
    config.write_text(CONFIG)
    async with cluster(tmp_path, nodes=2, cpu="8") as made:
        flags = [f"--config={config}", f"--plugin-dir={folder}", "--leader-elect=false"]
        process = (await made.replica("scheduler", flags)).process

        def said(words: str) -> bool:
            return words in process.output

        await made.create_pods(["early"], cpu="100m")
        await until(lambda: said("ValueError: at first"), "the plugin is asked, and fails")

        file.write_text(PLUGIN.format(body='raise ValueError("and then")'))
        await until(lambda: said("ValueError: and then"), "the changed one is asked")
        assert process.output.count("configuration replaced") == 1

        file.write_text("import no_such_module\n")
        await until(lambda: said("cannot be imported: ModuleNotFoundError"), "it is refused")
        assert process.output.count("configuration replaced") == 1
        assert made.bound == 0

        file.write_text(PLUGIN.format(body="return None"))
        await until(lambda: made.bound == 1, "the waiting pod is tried by the mended plugin")
