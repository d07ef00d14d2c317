"""Bodies as users send them, in one line, for tests of the embedded cluster."""

import copy
from collections.abc import Mapping
from typing import Any

from berth.cluster.resources import Object, Strategy

CONTAINER = {"name": "c", "image": "nginx"}


def pod(name: str = "p", *, namespace: str = "default", **spec: Any) -> Object:
    """A pod of one container; *spec* adds to its spec."""
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [dict(CONTAINER)], **spec},
    }


def workload(name: str = "web", **spec: Any) -> Object:
    """A Deployment or ReplicaSet of pods labelled ``app: web``."""
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [dict(CONTAINER)]},
            },
            **spec,
        },
    }


def node(name: str = "n1", *, allocatable: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    status = {} if allocatable is None else {"allocatable": dict(allocatable)}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def stored(strategy: Strategy, obj: Object, old: Object | None = None) -> Object:
    """Return what the server would keep of *obj*: defaulted and prepared."""
    obj = copy.deepcopy(obj)
    strategy.default(obj)
    strategy.prepare(obj, copy.deepcopy(old))
    return obj


def complaints(strategy: Strategy, obj: Object, old: Object | None = None) -> list[str]:
    """Return what the server would say against *obj*, as ``field: message``."""
    new = stored(strategy, obj, old)
    return [f"{error.field}: {error.message}" for error in strategy.validate(new, old)]
