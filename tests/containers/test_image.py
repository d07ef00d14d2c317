"""The image as an engine has it: what is in it, what is not, how it starts and how it ends."""

import json

import pytest

from berth import cli
from berth.runtime.release import version
from berth.runtime.terminal import TERMINATED
from tests.containers.docker import DockerError, container, docker, inspect

pytestmark = [pytest.mark.containers, pytest.mark.slow, pytest.mark.wall, pytest.mark.timeout(1800)]

ADDED_BYTES = 300_000_000
"""What the image may add to its base; NumPy, CEL and kubernetes_asyncio are two thirds of it."""
HARDENED = (
    "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--security-opt=no-new-privileges",
    "--network=none",
)  # fmt: skip
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "tcc", "ld", "as", "make", "go", "rustc", "cargo")


def shell(image: str, script: str) -> str:
    return docker("run", "--rm", *HARDENED, "--entrypoint=sh", image, "-c", script)


def test_size(image: str, base: str) -> None:
    assert inspect(image)["Size"] - inspect(base)["Size"] < ADDED_BYTES


def test_configuration(image: str) -> None:
    config = inspect(image)["Config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["berth"]
    assert config["Healthcheck"]["Test"] == ["CMD", "berth", "health"]
    assert config["Labels"]["org.opencontainers.image.version"] == version()


def test_it_is_the_version_that_it_says(image: str) -> None:
    assert version() in docker("run", "--rm", *HARDENED, image, "--version")


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_each_command_loads_with_a_root_that_cannot_be_written(image: str, command: str) -> None:
    assert "usage" in docker("run", "--rm", *HARDENED, image, command, "--help")


def test_nobody_in_particular_with_no_capabilities(image: str) -> None:
    assert shell(image, "id -u; id -g; grep CapEff /proc/self/status").split() == [
        "65532", "65532", "CapEff:", "0000000000000000",
    ]  # fmt: skip


def test_any_other_user_may_run_it(image: str) -> None:
    """Some clusters choose the users of their pods."""
    said = docker("run", "--rm", *HARDENED, "--user=1000660000:0", image, "--version")
    assert version() in said


def test_the_user_may_write_to_its_own_folders_only(image: str) -> None:
    """Also where the root could be written."""
    found = docker(
        "run", "--rm", "--network=none", "--entrypoint=sh", image, "-c",
        "find / -xdev -writable -not -type l -not -path '/proc/*' 2>/dev/null; true",
    ).splitlines()  # fmt: skip
    shared = ("/tmp", "/var/tmp", "/dev", "/run/lock", "/var/lock")
    ours = "/var/lib/berth"
    assert [path for path in found if not path.startswith((ours, *shared))] == []


def test_nothing_compiles(image: str) -> None:
    script = f"for tool in {' '.join(COMPILERS)}; do command -v $tool; done; command -v python"
    assert shell(image, script) == "/opt/berth/bin/python"


def test_dependencies_are_whole_and_what_built_them_is_gone(image: str) -> None:
    script = (
        "import importlib.metadata as m, json;"
        "print(json.dumps(sorted(d.metadata['Name'].lower() for d in m.distributions(path=["
        "__import__('sysconfig').get_path('purelib')]))))"
    )
    names = json.loads(docker("run", "--rm", *HARDENED, "--entrypoint=python", image, "-c", script))
    assert {"berth-scheduler", "numpy", "wsproto", "uvicorn"} <= set(names)
    assert not {"hatchling", "pip", "setuptools", "pytest"} & set(names)


@pytest.mark.parametrize("init", [True, False], ids=["init", "PID 1"])
def test_sigterm_ends_a_cluster_in_time(image: str, *, init: bool) -> None:
    """The engine would kill it after ten seconds, and say 137.

    Its scheduler serves where the health check of the image looks.
    """
    with container(
        *HARDENED,
        f"--init={str(init).lower()}",
        image,
        "up",
        "--debug-port=10259",
        "--kubeconfig-out=/tmp/kubeconfig",
    ) as name:
        until_healthy(name)
        docker("stop", "--time=10", name)
        assert inspect(name)["State"]["ExitCode"] == TERMINATED, docker("logs", name)


def until_healthy(name: str) -> None:
    """Run the health check of the image in container *name* until it succeeds."""
    while True:
        state = inspect(name)["State"]
        assert state["Running"], docker("logs", name)
        try:
            docker("exec", name, *inspect(name)["Config"]["Healthcheck"]["Test"][1:])
        except DockerError:
            continue
        return
