"""The pytest plugin, in a pytest of its own."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

pytestmark = pytest.mark.wall

CONFTEST: Final = """
    import pytest

    @pytest.fixture(scope="session")
    def kubernetes_cluster_options():
        return {"nodes": 2}
"""
TESTS: Final = """
    import pytest
    from kubernetes import client, config

    def nodes(cluster):
        api = client.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))
        return len(api.list_node().items)

    addresses = []

    @pytest.mark.parametrize("time", range(2))
    def test_options(kubernetes_cluster, time):
        assert nodes(kubernetes_cluster) == 2
        assert kubernetes_cluster.kubeconfig not in addresses
        addresses.append(kubernetes_cluster.kubeconfig)

    @pytest.mark.kubernetes_cluster(nodes=1)
    def test_marker(kubernetes_cluster):
        assert nodes(kubernetes_cluster) == 1

    shared = []

    @pytest.mark.parametrize("time", range(2))
    def test_one_for_all(kubernetes_session_cluster, time):
        assert nodes(kubernetes_session_cluster) == 2
        shared.append(kubernetes_session_cluster)
        assert shared == [kubernetes_session_cluster] * (time + 1)

    @pytest.mark.kubernetes_cluster(load={"kind": "Pod"})
    @pytest.mark.xfail(raises=Exception, strict=True)
    def test_refused(kubernetes_cluster):
        pass

    @pytest.mark.kubernetes_cluster(1)
    @pytest.mark.xfail(raises=pytest.UsageError, strict=True)
    def test_without_a_name(kubernetes_cluster):
        pass
"""


def test_fixtures_options_and_marker(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(dedent(CONFTEST))
    (tmp_path / "test_it.py").write_text(dedent(TESTS))
    flags = (
        "-q",
        "--strict-markers",
        "-p",
        "berth.cluster.pytest_plugin",
        "-p",
        "no:cacheprovider",
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *flags],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "5 passed, 2 xfailed" in ran.stdout, ran.stdout + ran.stderr
