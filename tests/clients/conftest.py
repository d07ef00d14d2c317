"""One ``berth up`` for all clients; each has a namespace of its own."""

import gc
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.cluster import kubectl, running_cluster

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the kubeconfig of a running cluster of three hollow nodes with a scheduler."""
    with running_cluster(tmp_path_factory.mktemp("cluster")) as (path, _output):
        yield path


@pytest.fixture(autouse=True)
def leftovers() -> Iterator[None]:
    """Collect what a client leaves open within its own test, which does not mind."""
    yield
    gc.collect()


@pytest.fixture
def namespace(kubeconfig: Path) -> str:
    """Return the name of a new namespace."""
    name = f"client-{next(_numbers)}"
    kubectl(kubeconfig, "create", "namespace", name)
    return name
