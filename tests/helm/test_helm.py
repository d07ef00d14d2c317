"""The chart as a person installs it: by helm itself, where that is, in an embedded cluster."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from berth.cluster import Cluster
from tests.clients.cluster import kubectl
from tests.helm.cases import CASES, MODES, of_mode
from tests.helm.rendering import (
    CHART,
    HELM,
    NAMESPACE,
    RELEASE,
    REQUIRED,
    Object,
    Values,
    merge,
    render,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.wall,
    pytest.mark.skipif(HELM is None, reason="helm is not installed here"),
]

NAME: Final = f"{RELEASE}-berth"
WAIT: Final = ("--wait", "--timeout=60s")
KINDS: Final = (
    "deployments,replicasets,services,configmaps,serviceaccounts,roles,rolebindings,"
    "clusterroles,clusterrolebindings,poddisruptionbudgets"
)


def helm(*arguments: str, values: Values | None = None, kubeconfig: Path | None = None) -> str:
    """Return what helm writes; it gets *values* from its standard input."""
    assert HELM is not None
    command = [HELM, *arguments, f"--namespace={NAMESPACE}"]
    command += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    text = None
    if values is not None:
        command.append("--values=-")
        text = msgspec.json.encode(merge(REQUIRED, values)).decode()
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def keyed(objects: list[Object]) -> Mapping[tuple[Any, ...], Object]:
    return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]): o for o in objects}


@pytest.mark.parametrize("name", CASES)
def test_helm_renders_the_same(name: str) -> None:
    text = helm("template", RELEASE, str(CHART), values=CASES[name])
    objects = [document for document in yaml.safe_load_all(text) if document is not None]
    assert keyed(objects) == keyed(render(CASES[name]))


@pytest.mark.parametrize("mode", MODES)
def test_helm_has_nothing_against_the_chart(mode: str) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), values=of_mode(mode))


def test_helm_installs_upgrades_rolls_back_and_removes_it() -> None:
    with Cluster(nodes=2, scheduler=True) as cluster:
        config = cluster.kubeconfig

        def revision() -> tuple[int, int, str]:
            """Return the number of the release, its replicas and their image."""
            [release] = msgspec.json.decode(helm("list", "-ojson", kubeconfig=config))
            assert release["status"] == "deployed"
            spec = look("deployment", NAME)["spec"]
            [container] = spec["template"]["spec"]["containers"]
            return int(release["revision"]), spec["replicas"], container["image"]

        def look(*what: str) -> Object:
            said = kubectl(config, "get", *what, f"--namespace={NAMESPACE}", "-ojson").stdout
            answer: Object = msgspec.json.decode(said)
            return answer

        install = ("install", RELEASE, str(CHART), "--create-namespace", *WAIT)
        said = helm(*install, values={"image": {"tag": "1"}}, kubeconfig=config)
        assert f"kubectl -n {NAMESPACE} rollout status deployment/{NAME}" in said
        assert revision() == (1, 2, "registry.example.com/berth:1")
        more: Values = {"image": {"tag": "2"}, "replicaCount": 3}
        helm("upgrade", RELEASE, str(CHART), *WAIT, values=more, kubeconfig=config)
        assert revision() == (2, 3, "registry.example.com/berth:2")
        helm("rollback", RELEASE, *WAIT, kubeconfig=config)
        assert revision() == (3, 2, "registry.example.com/berth:1")
        helm("uninstall", RELEASE, *WAIT, kubeconfig=config)
        names = [item["metadata"]["name"] for item in look(KINDS)["items"]]
        assert [name for name in names if name.startswith(RELEASE)] == []
