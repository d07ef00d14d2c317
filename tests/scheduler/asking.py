"""Harnesses with extenders, for tests."""

from collections.abc import Mapping
from typing import Any

from tests.harness import Harness
from tests.scheduler.extender.fakes import FakeNetwork

URL = "http://one"


def entry(url: str = URL, **fields: Any) -> dict[str, Any]:
    """Configure an extender with a cache of nodes."""
    return {"urlPrefix": url, "nodeCacheCapable": True, **fields}


def harness(
    answers: Mapping[str, Any], *extenders: dict[str, Any], **config: Any
) -> tuple[Harness, FakeNetwork]:
    """Make a scheduler with *extenders*; *answers* are by path."""
    network = FakeNetwork(answers)
    made = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
        **config,
    }
    return Harness(config=made, network=network), network


def everybody(asked: Any) -> Any:
    """Leave all nodes."""
    return {"NodeNames": asked["NodeNames"]}


def message(made: Harness, name: str = "p") -> str:
    """Return what is told of a pod that was not scheduled."""
    return made.cluster.conditions[f"default/{name}"].message
