"""What the server itself sets or drops when it writes objects of kinds with few other rules."""

from berth.cluster.resources import Object
from berth.cluster.strategies import metadata


def endpoint_slice(new: Object, old: Object | None) -> None:
    """Count the changes, also those of the labels."""
    changed = old is not None and _counted(new) != _counted(old)
    metadata.set_generation(new, old, changed=changed)


def _counted(obj: Object) -> Object:
    return {**obj, "metadata": obj["metadata"].get("labels") or {}}


def node(new: Object, _old: Object | None) -> None:
    """Drop what configured kubelets dynamically, when there was such a thing."""
    (new.get("spec") or {}).pop("configSource", None)
    (new.get("status") or {}).pop("config", None)


def service_account(new: Object, _old: Object | None) -> None:
    """Keep of references to Secrets the names."""
    if secrets := new.get("secrets"):
        new["secrets"] = [{"name": each["name"]} if "name" in each else {} for each in secrets]
