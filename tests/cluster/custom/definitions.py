"""CustomResourceDefinitions for tests, and a server that has them."""

from typing import Any

from berth.cluster.kinds.builtin import RESOURCES
from berth.cluster.resources import Object
from berth.cluster.storage.store import Store
from tests.cluster.serving import Serving

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def version(name: str = "v1", *, spec: Object | None = None, **more: Any) -> Object:
    """Return a version whose objects have *spec*, and a status that may be anything."""
    schema = {
        "type": "object",
        "properties": {
            "spec": spec or {"type": "object"},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **more,
    }


def definition(
    kind: str = "Widget",
    *versions: Object,
    group: str = "example.com",
    scope: str = "Namespaced",
    **names: Any,
) -> Object:
    """Return a definition of *kind*, with one plain version if none is given."""
    plural = names.pop("plural", f"{kind.lower()}s")
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions) or [version()],
        },
    }


def widget(name: str = "w", *, api_version: str = "example.com/v1", **parts: Any) -> Object:
    """Return an object of the plain definition."""
    return {
        "apiVersion": api_version,
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {},
        **parts,
    }


def widgets(namespace: str = "default", *, at: str = "v1") -> str:
    """Return the URL of widgets."""
    return f"/apis/example.com/{at}/namespaces/{namespace}/widgets"


def serving(store: Store | None = None) -> Serving:
    """Return a server with all kinds."""
    return Serving(resources=RESOURCES, store=store)


async def defined(*definitions: Object) -> Serving:
    """Return a server that has *definitions*."""
    server = serving()
    for each in definitions:
        await server.post(DEFINITIONS, each)
    return server


async def status_of(server: Serving, name: str = "widgets.example.com") -> dict[str, Object]:
    """Return the conditions of a definition by their types."""
    found = await server.get(f"{DEFINITIONS}/{name}")
    return {condition["type"]: condition for condition in found["status"]["conditions"]}
