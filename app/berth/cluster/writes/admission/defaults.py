"""The class that an annotation makes the default one."""

from berth.cluster.storage.store import Store


def newest_default(store: Store, storage_key: str, annotation: str) -> str | None:
    """Return the name of the default class: of several the newest, then the first by name."""
    defaults = [
        metadata
        for metadata in (each.decode()["metadata"] for each in store.list(storage_key))
        if (metadata.get("annotations") or {}).get(annotation) == "true"
    ]
    newest = max(defaults, key=lambda each: str(each["creationTimestamp"]), default=None)
    return None if newest is None else str(newest["name"])
