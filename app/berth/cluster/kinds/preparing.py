"""What the server itself sets or drops when it writes objects of kinds with few other rules."""

from berth.cluster.resources import Object


def endpoint_slice(new: Object, old: Object | None) -> None:
    """Count a change of the labels, too."""
    after, before = new["metadata"], (old or new)["metadata"]
    is_counted = after["generation"] != before["generation"]
    if not is_counted and (after.get("labels") or {}) != (before.get("labels") or {}):
        after["generation"] += 1


def node(new: Object, _old: Object | None) -> None:
    """Drop what configured kubelets dynamically, when there was such a thing."""
    (new.get("spec") or {}).pop("configSource", None)
    (new.get("status") or {}).pop("config", None)


def service_account(new: Object, _old: Object | None) -> None:
    """Keep of references to Secrets the names."""
    if secrets := new.get("secrets"):
        new["secrets"] = [{"name": each["name"]} if "name" in each else {} for each in secrets]
