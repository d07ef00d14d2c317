"""Scenarios of pod groups for tests: the parts that they are made of, and how they are run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from berth.runtime.release import RELEASES
from tests.tools.up.scenario.running import run_file

Object = dict[str, Any]

GANGS: Final = ("GenericWorkload", "GangScheduling")
TOPOLOGY: Final = (*GANGS, "TopologyAwareWorkloadScheduling")
API_VERSION: Final = "scheduling.k8s.io/v1beta1"
CONDITION: Final = "PodGroupInitiallyScheduled"
IN_WORDS_OF: Final[dict[str, dict[str, str]]] = {
    "1.36": {
        API_VERSION: "scheduling.k8s.io/v1alpha2",
        CONDITION: "PodGroupScheduled",
        '"disruptionMode": {"single": {}}': '"disruptionMode": "Pod"',
        '"disruptionMode": {"all": {}}': '"disruptionMode": "PodGroup"',
    },
    "1.37": {},
}
"""What a scenario calls by the words of the newest release is called otherwise by others."""
LONG: Final = "5m"
Cases = dict[str, Object]


def group(name: str = "g", *, min_count: int | None = None, topology: str = "") -> Object:
    """Make a gang; without *min_count* the policy is ``basic``."""
    spec: Object = {
        "schedulingPolicy": {"basic": {}}
        if min_count is None
        else {"gang": {"minCount": min_count}}
    }
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    return {"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def pod(name: str, *, cpu: str = "1", of: str = "g", **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    if of:
        spec["schedulingGroup"] = {"podGroupName": of}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"group": of or "none"}},
        "spec": {"containers": [container], **spec},
    }


def pods(*names: str, **more: Any) -> list[Object]:
    return [pod(name, **more) for name in names]


def nodes(name: str, count: int, cpu: str, **labels: str) -> Object:
    return {"name": name, "count": count, "labels": labels, "allocatable": {"cpu": cpu}}


def create(*objects: Object) -> Object:
    return {"create": list(objects)}


def bound(count: int | Object, of: str = "g", **more: Any) -> Object:
    """So many pods of a group have nodes."""
    return {"pods": {"selector": f"group={of}", "scheduled": True, "count": count, **more}}


def told(name: str, message: str, **more: Any) -> Object:
    """A pod's condition has this in its message."""
    return {"pods": {"name": name, "scheduled": False, "message": message}, **more}


def condition(field: str, value: str, of: str = "g", **more: Any) -> Object:
    """A field of the group's condition is this."""
    path = f'.status.conditions[?(@.type=="{CONDITION}")].{field}'
    return {"objects": {"kind": "PodGroup", "name": of, "path": path, "equals": value}, **more}


def step(name: str, *actions: Object, expect: list[Object], **more: Any) -> Object:
    return {"name": name, "do": list(actions), "expect": expect, **more}


def never(reason: str) -> Object:
    return {"event": {"reason": reason}, "never": LONG}


def scenario(
    *groups_of_nodes: Object,
    gates: tuple[str, ...] = GANGS,
    profiles: list[Object] | None = None,
    objects: Sequence[Object] = (),
    steps: list[Object],
) -> Object:
    configuration: Object = {"featureGates": dict.fromkeys(gates, True)}
    if profiles is not None:
        configuration["profiles"] = profiles
    return {
        "apiVersion": "berth.dev/v1alpha1",
        "kind": "Scenario",
        "cluster": {
            "nodes": list(groups_of_nodes),
            "schedulerConfiguration": configuration,
            "objects": list(objects),
        },
        "steps": steps,
    }


def by_release(cases: Cases, **more: Cases) -> pytest.MarkDecorator:
    """Parametrize a test by *cases*, under each release, and by those of one release, such as
    ``of_1_37``.
    """
    return pytest.mark.parametrize(
        ("case", "release"),
        [
            pytest.param(case, release, id=f"{release}: {name}")
            for release in RELEASES
            for name, case in {**cases, **more.get(f"of_{release.replace('.', '_')}", {})}.items()
        ],
    )


def check(case: Object, release: str, folder: Path) -> None:
    """Run a scenario on a clock that does not wait; its expectations must be met.

    The scheduler is that of *release*, and so are the cluster and the objects, unless the scenario
    says which release the cluster serves.
    """
    cluster = case["cluster"]
    configuration = cluster["schedulerConfiguration"] | {"emulatedVersion": release}
    text = json.dumps(case | {"cluster": {**cluster, "schedulerConfiguration": configuration}})
    for word, other in IN_WORDS_OF[cluster.get("kubernetesVersion", release)].items():
        text = text.replace(word, other)
    path = folder / "scenario.json"
    path.write_text(text)
    result, lines = run_file(path)
    assert not result.failure, "\n".join(lines)
