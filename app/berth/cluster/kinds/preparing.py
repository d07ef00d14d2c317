"""What the server itself sets or drops when it writes objects of kinds with few other rules."""

from typing import Final

from berth.cluster.resources import Object
from berth.cluster.strategies import metadata

SOURCES: Final = (
    ("", "PersistentVolumeClaim"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"),
)
"""What the older field of a claim's source may name: API group and kind."""


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


def persistent_volume_claim(new: Object, old: Object | None) -> None:
    """Say the source in both fields (KEP-1495).

    Where the claim had none, the older field is only for what Kubernetes itself knows.
    """
    spec, before = new["spec"], {} if old is None else old["spec"]
    old_form, new_form = spec.get("dataSource"), spec.get("dataSourceRef")
    if old_form and not new_form:
        source = (old_form.get("apiGroup") or "", old_form.get("kind"))
        if source in SOURCES or before.get("dataSource") or before.get("dataSourceRef"):
            spec["dataSourceRef"] = dict(old_form)
        else:
            del spec["dataSource"]
    elif new_form and not old_form and not new_form.get("namespace"):
        spec["dataSource"] = {key: new_form[key] for key in new_form if key != "namespace"}


def service_account(new: Object, _old: Object | None) -> None:
    """Keep of references to Secrets the names."""
    if secrets := new.get("secrets"):
        new["secrets"] = [{"name": each["name"]} if "name" in each else {} for each in secrets]
