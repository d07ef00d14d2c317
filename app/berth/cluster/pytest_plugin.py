"""The pytest plugin: fixtures that are a Kubernetes cluster.

Nothing of the cluster is imported before a test asks for one.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from berth.cluster import Cluster

MARKER: Final = "kubernetes_cluster"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(nodes=0, load=(), scheduler=False): the cluster of the fixture {MARKER}",
    )


@pytest.fixture(scope="session")
def kubernetes_cluster_options() -> Mapping[str, Any]:
    """Return the arguments of every cluster; override it in ``conftest.py``."""
    return {}


@pytest.fixture
def kubernetes_cluster(
    request: pytest.FixtureRequest, kubernetes_cluster_options: Mapping[str, Any]
) -> "Iterator[Cluster]":
    """Yield a cluster of the test's own. Arguments of the marker of that name win over options."""
    from berth.cluster import Cluster

    marker = request.node.get_closest_marker(MARKER)
    if marker and marker.args:
        raise pytest.UsageError(f"{MARKER}: {marker.args[0]!r}: its arguments have names")
    with Cluster(**{**kubernetes_cluster_options, **(marker.kwargs if marker else {})}) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubernetes_session_cluster(
    kubernetes_cluster_options: Mapping[str, Any],
) -> "Iterator[Cluster]":
    """Yield one cluster for all tests, which keep apart by namespaces of their own."""
    from berth.cluster import Cluster

    with Cluster(**kubernetes_cluster_options) as cluster:
        yield cluster
