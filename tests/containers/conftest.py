"""The image that all tests here use, built once from a clone of what is committed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.runtime.release import version
from tests.containers.docker import BUILD_SECONDS, DockerError, docker, run, succeeds
from tests.packaging.dockerfile import stages

REPOSITORY = Path(__file__).parents[2]
BASE = "python:3.13-slim"


@pytest.fixture(scope="session")
def engine() -> None:
    """Skip where no container engine answers."""
    if not succeeds("version"):
        pytest.skip("NO CONTAINER ENGINE: `docker version` fails, so no container was tried")


@pytest.fixture(scope="session")
def clone(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a stranger has: the last commit, and nothing else."""
    folder = tmp_path_factory.mktemp("clone") / "berth"
    run("git", "clone", "--quiet", "--depth=1", REPOSITORY.as_uri(), str(folder))
    return folder


@pytest.fixture(scope="session")
def base(engine: None) -> str:
    """The base of the image: that of the registry, else one of Debian's packages."""
    if not succeeds("image", "inspect", BASE) and not succeeds("pull", "--quiet", BASE):
        script = Path(__file__).parent / "base_image.sh"
        try:
            run(str(script), BASE, seconds=BUILD_SECONDS)
        except (DockerError, OSError) as exc:
            pytest.fail(f"no registry has {BASE}, and {script.name} cannot make it: {exc}")
    return BASE


@pytest.fixture(scope="session")
def image(clone: Path, base: str) -> str:
    """The name of the image that the Dockerfile makes. It stays, so that its layers are cached."""
    assert all(stage.base == "${PYTHON}" for stage in stages(clone / "Dockerfile"))
    name = f"berth:{version()}"
    # The network of the host: what this machine reaches a package index by, the build does too.
    docker("build", "--network=host", f"--tag={name}", str(clone), seconds=BUILD_SECONDS)
    return name


@pytest.fixture(scope="session")
def next_image(image: str) -> Iterator[str]:
    """A release after *image*: another image by its id and its tag, with the same program."""
    name = f"{image}-next"
    docker("build", f"--tag={name}", "-", text=f'FROM {image}\nLABEL next="true"\n')
    yield name
    docker("rmi", name)
