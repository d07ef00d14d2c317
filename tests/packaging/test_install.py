"""The wheel in an environment of its own, beside a project with packages `app` and `plugins`."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.docs.pages import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.wall]

PROJECT: Final = {
    "app/__init__.py": "",
    "app/settings.py": 'ALLOWED_BY_DEFAULT = "node-1"\n',
    "plugins/__init__.py": "",
    "plugins/one_node.py": '''
from app.settings import ALLOWED_BY_DEFAULT
from berth.plugin import CycleState, NodeInfo, PluginArgs, PodInfo, ScalarFilter, Status

NOT_ALLOWED = Status.unresolvable("node(s) were not the one")


class OneNodeArgs(PluginArgs):
    allowed: str = ALLOWED_BY_DEFAULT


class OneNode(ScalarFilter):
    """Lets pods on one node only."""

    NAME = "OneNode"
    ARGS = OneNodeArgs

    def filter_node(self, state: CycleState, pod: PodInfo, node_info: NodeInfo) -> Status | None:
        return None if node_info.name == self.args.allowed else NOT_ALLOWED
''',
    "tests/test_one_node.py": """
from berth.testing import node, pod, run_filter, schedule
from plugins.one_node import OneNode

NODES = [node("node-0"), node("node-1")]


def test_one_node_alone():
    reasons = run_filter(OneNode, pod("web"), objects=NODES)
    assert reasons == {"node-0": ("node(s) were not the one",), "node-1": ()}


def test_with_all_plugins():
    assert schedule([pod("web")], objects=NODES, plugins=[OneNode])["default/web"].node == "node-1"
""",
    "config.yaml": """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: OneNode}]}}
""",
    "nowhere.yaml": """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: OneNode}]}}
  pluginConfig: [{name: OneNode, args: {allowed: nowhere}}]
""",
    "pod.yaml": """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: web}]}
""",
}


class Installed(NamedTuple):
    """A virtual environment with berth, and a project that uses it."""

    wheel: Path
    bin: Path
    project: Path

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {"PATH": path, "PYTHONPATH": ".", "NO_COLOR": "1"}

    def run(self, *command: str, status: int = 0) -> str:
        """Run a command in the project; return all that it says."""
        done = subprocess.run(
            [shutil.which(command[0], path=self.environment["PATH"]) or "", *command[1:]],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build the wheel and install it; what it depends on is borrowed from this environment."""
    folder = tmp_path_factory.mktemp("install")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("berth_scheduler-*.whl")
    home = folder / "env"
    venv.create(home, with_pip=False)
    variables = {"base": str(home), "platbase": str(home)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    # Its .pth files are not read there, so our own editable install stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    python = Path(sysconfig.get_path("scripts", "venv", variables)) / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run(
        [*pip, "install", "--no-index", "--no-deps", "--ignore-installed", str(wheel)],
        check=True,
        capture_output=True,
    )
    project = folder / "project"
    for name, text in PROJECT.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Installed(wheel, python.parent, project)


def test_the_wheel_takes_no_other_names(installed: Installed) -> None:
    files = zipfile.ZipFile(installed.wheel).namelist()
    assert {name.partition("/")[0] for name in files if ".dist-info/" not in name} == {
        "berth",
        "berth_plugins",
    }
    programs = {path.name for path in installed.bin.glob("*berth*")}
    assert programs == {"berth", "kubectl-berth", "kubectl_complete-berth"}


def test_berth_is_the_installed_one(installed: Installed) -> None:
    where = installed.run("python", "-c", "import app, berth; print(app.__file__, berth.__file__)")
    of_app, of_berth = map(Path, where.split())
    assert of_app.is_relative_to(installed.project)
    assert of_berth.is_relative_to(installed.bin.parent)


def test_the_project_tests_its_plugin(installed: Installed) -> None:
    assert "2 passed" in installed.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_the_plugin_is_listed(installed: Installed) -> None:
    flags = ("--plugin", "plugins.one_node:OneNode", "--config", "config.yaml")
    listed = installed.run("berth", "plugin", "list", *flags)
    assert re.search("OneNode .*plugins.one_node:OneNode", listed)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_finds_it(installed: Installed) -> None:
    flags = ["--nodes", "2", "--load", "pod.yaml", "--port", "0", "--debug-port", "0"]
    flags += ["--config", "nowhere.yaml", "--plugin", "plugins.one_node:OneNode"]
    with subprocess.Popen(
        [installed.bin / "berth", "up", *flags],
        cwd=installed.project,
        env=installed.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as up:
        try:
            assert up.stdout is not None
            output = ""
            while "fits nowhere" not in output:
                line = up.stdout.readline()
                assert line, output
                output += line
            where = ["--kubeconfig", "berth.kubeconfig"]  # which names the scheduler, too
            explained = installed.run("kubectl", "berth", "explain", "web", *where)
        finally:
            up.terminate()
    assert "2 node(s) were not the one" in explained


@pytest.mark.parametrize(
    ("config", "status", "words"),
    [
        pytest.param("config.yaml", 0, "1 pod placed", id="the plugin lets the pod on a node"),
        pytest.param("nowhere.yaml", 1, "2 node(s) were not the one", id="the plugin refuses all"),
    ],
)
def test_the_plugin_decides(config: str, status: int, words: str, installed: Installed) -> None:
    flags = ["--nodes", "2", "--load", "pod.yaml", "--exit-when-idle", "--port", "0"]
    flags += ["--debug-port", "0", "--config", config, "--plugin", "plugins.one_node:OneNode"]
    assert words in installed.run("berth", "up", *flags, status=status)
