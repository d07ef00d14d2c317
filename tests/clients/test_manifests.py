"""Manifests in the manner of popular charts: all of them load, and their workloads run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients import FOREIGN_AND_SLOW
from tests.clients.cluster import kubectl, running_cluster, until_nothing

pytestmark = FOREIGN_AND_SLOW

MANIFESTS: Final = Path(__file__).parent / "manifests"
SETS: Final = sorted(path.name for path in MANIFESTS.iterdir())
UNREACHABLE: Final = "no endpoints available for service"
"""What is said of a webhook that the hollow pods of its set would serve."""
WORKLOADS: Final = "deployments,statefulsets,daemonsets,jobs,persistentvolumeclaims"


@pytest.mark.parametrize("name", SETS)
def test_a_set_of_manifests_loads_and_runs(name: str, tmp_path: Path) -> None:
    folder = MANIFESTS / name
    with running_cluster(tmp_path, f"--load={folder}") as (kubeconfig, output):
        until_nothing(lambda: _missing(kubeconfig, folder))
        until_nothing(lambda: list(_unsettled(kubeconfig)))
        assert "not loaded" not in output.read_text()

        # Whoever applies the same from elsewhere, by force because lists may have been defaulted,
        # finds nothing to change after that.
        server_side = ("--server-side", "--force-conflicts", f"--filename={folder}")
        applied = kubectl(kubeconfig, "apply", *server_side, statuses=(0, 1))
        said = applied.stderr.splitlines()
        refused = [line for line in said if not line.startswith("Warning: ")]
        assert [line for line in refused if UNREACHABLE not in line] == []
        if not refused:
            assert kubectl(kubeconfig, "diff", *server_side).stdout == ""


def _missing(kubeconfig: Path, folder: Path) -> str:
    """Return what kubectl says of those manifests in *folder* that are not there."""
    return kubectl(kubeconfig, "get", f"--filename={folder}", "-o", "name", statuses=(0, 1)).stderr


def _unsettled(kubeconfig: Path) -> Iterator[str]:
    """Yield what does not do yet what it is for."""
    found = json.loads(
        kubectl(kubeconfig, "get", WORKLOADS, "--all-namespaces", "-o", "json").stdout
    )
    for item in found["items"]:
        if not _is_settled(item["kind"], item["spec"], item.get("status") or {}):
            yield f"{item['kind']} {item['metadata']['name']}: {item.get('status')}"


def _is_settled(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> bool:
    match kind:
        case "Deployment":
            return bool(status.get("availableReplicas") == spec["replicas"])
        case "StatefulSet":
            return bool(status.get("readyReplicas") == spec["replicas"])
        case "DaemonSet":
            return bool(0 < status.get("desiredNumberScheduled", 0) == status.get("numberReady"))
        case "Job":
            conditions = {
                condition["type"]
                for condition in status.get("conditions") or ()
                if condition["status"] == "True"
            }
            return bool(conditions & {"Complete", "Suspended"})
        case _:
            return bool(status.get("phase") == "Bound")
