"""An operator as people write them: for every Garden so many ConfigMaps, one per plant.

Run by ``kopf run``; it installs its definition itself, as many do.
"""

from typing import Any

import kopf

GARDENS = ("gardens.example.com", "v1", "gardens")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = True
    settings.persistence.finalizer = "gardens.example.com/operator"
    settings.watching.server_timeout = 30


@kopf.on.create(*GARDENS)
def plant(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> dict[str, Any]:
    patch.status["planted"] = len(spec["plants"])
    return {"first": spec["plants"][0]}


@kopf.on.field(*GARDENS, field="spec.plants")
def replant(new: Any, old: Any, patch: kopf.Patch, **_: Any) -> None:
    if old is not None:
        patch.status["planted"] = len(new or [])
        patch.status["replanted"] = True


@kopf.on.delete(*GARDENS)
def clear(name: str, logger: kopf.Logger, **_: Any) -> None:
    logger.info("cleared %s", name)
