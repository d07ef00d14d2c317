"""Scenarios of pod groups for tests: the parts that they are made of, and how they are run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.tools.up.scenario.running import run_file

Object = dict[str, Any]

GANGS: Final = ("GenericWorkload", "GangScheduling")
TOPOLOGY: Final = (*GANGS, "TopologyAwareWorkloadScheduling")
API_VERSION: Final = "scheduling.k8s.io/v1beta1"
LONG: Final = "5m"


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
    path = f'.status.conditions[?(@.type=="PodGroupScheduled")].{field}'
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
    configuration: Object = {
        "emulatedVersion": "1.36",
        "featureGates": dict.fromkeys(gates, True),
    }
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


def check(case: Object, folder: Path) -> None:
    """Run a scenario on a clock that does not wait; its expectations must be met."""
    path = folder / "scenario.json"
    path.write_text(json.dumps(case))
    result, lines = run_file(path)
    assert not result.failure, "\n".join(lines)
