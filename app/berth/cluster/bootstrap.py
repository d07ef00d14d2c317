"""Objects that a cluster has before anyone creates anything."""

from collections.abc import Iterable, Sequence
from functools import partial
from ipaddress import ip_address

from berth.cluster import flow_control
from berth.cluster.access import policy
from berth.cluster.access.users import ADMIN
from berth.cluster.errors import StatusError
from berth.cluster.kinds.builtin import find
from berth.cluster.resources import Object, ResourceType
from berth.cluster.schemas.presence import complete
from berth.cluster.strategies.kind_constraints import SYSTEM_CLASSES
from berth.cluster.strategies.service import KUBERNETES_IP
from berth.cluster.writes.admission.default_storage_class import DEFAULT_CLASS
from berth.cluster.writes.admission.service_allocation import ADDRESSES
from berth.cluster.writes.context import WriteContext
from berth.cluster.writes.pipeline import Writes

NAMESPACES = find("", "v1", "namespaces")
SERVICE_CIDRS = find("networking.k8s.io", "v1", "servicecidrs")
PRIORITY_CLASSES = find("scheduling.k8s.io", "v1", "priorityclasses")

RBAC = "rbac.authorization.k8s.io"
FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


API_SERVER = WriteContext(ADMIN, "kube-apiserver")
"""Whose objects they are: the API server's, which makes them when it starts."""
FLOW_PRODUCER = WriteContext(ADMIN, flow_control.PRODUCER)


async def bootstrap(
    writes: Writes,
    more: Sequence[tuple[ResourceType, Object]] = (),
    *,
    served: Iterable[ResourceType] = (),
) -> None:
    """Create what is missing; for a cluster that was kept from an earlier run, that is nothing.

    *more* comes after :func:`bootstrap_objects`, which some of the kinds *served* have rules in.
    """
    for resource, obj in (*bootstrap_objects(served), *more):
        complete(resource.schema, obj)
        context = FLOW_PRODUCER if resource.group == FLOW_CONTROL else API_SERVER
        try:
            await writes.create(resource, obj["metadata"].get("namespace", ""), obj, context)
        except StatusError as exc:
            if exc.reason != "AlreadyExists":
                raise


async def publish(writes: Writes, address: str, port: int, *, now: str) -> None:
    """Say what kube-apiserver itself says: where it is, and that Services can have addresses.

    The Service ``default/kubernetes`` leads to *address*.
    """
    is_v6 = ip_address(address).version == 6
    metadata: Object = {"name": "kubernetes", "namespace": "default"}
    at = {"name": "https", "port": port, "protocol": "TCP"}
    whole = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**metadata, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": [at]}],
    }
    sliced = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv6" if is_v6 else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [at],
    }
    for resource, obj in (
        (find("", "v1", "endpoints"), whole),
        (find("discovery.k8s.io", "v1", "endpointslices"), sliced),
    ):
        wanted = {key: value for key, value in obj.items() if key != "metadata"}
        complete(resource.schema, obj)
        try:
            await writes.create(resource, "default", obj, API_SERVER)
        except StatusError as exc:
            if exc.reason != "AlreadyExists":
                raise
            change = partial(_with, wanted)
            await writes.update(resource, "default", "kubernetes", change, API_SERVER)
    if not writes.get(SERVICE_CIDRS, "", "kubernetes").decode().get("status"):
        ready = {
            "apiVersion": SERVICE_CIDRS.group_version,
            "kind": SERVICE_CIDRS.kind,
            "metadata": {"name": "kubernetes"},
            "status": {
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "",
                        "message": "Kubernetes default Service CIDR is ready",
                        "lastTransitionTime": now,
                    }
                ]
            },
        }
        await writes.apply(
            SERVICE_CIDRS, "", "kubernetes", ready, API_SERVER, force=True, subresource="status"
        )


def _with(wanted: Object, current: Object) -> Object:
    return current | wanted


def default_storage_class() -> tuple[ResourceType, Object]:
    """Return the StorageClass of claims that name none, as clusters for a laptop have one."""
    metadata = {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}}
    return find("storage.k8s.io", "v1", "storageclasses"), {
        "metadata": metadata,
        "provisioner": "berth.dev/hollow",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def bootstrap_objects(served: Iterable[ResourceType]) -> list[tuple[ResourceType, Object]]:
    """Return the objects to create at first start, in this order, as a user would write them."""
    storage_keys = {resource.storage_key for resource in served}
    objects: list[tuple[ResourceType, Object]] = [
        (NAMESPACES, {"metadata": {"name": name}}) for name in SYSTEM_NAMESPACES
    ]
    for name, (value, description) in SYSTEM_CLASSES.items():
        objects.append(
            (
                PRIORITY_CLASSES,
                {"metadata": {"name": name}, "value": value, "description": description},
            )
        )
    more = (
        ("", "serviceaccounts", [_default_account(each) for each in SYSTEM_NAMESPACES]),
        ("networking.k8s.io", "servicecidrs", [_service_addresses()]),
        ("", "services", [_kubernetes_service()]),
        ("", "configmaps", [_authentication_map()]),
        (RBAC, "clusterroles", policy.cluster_roles(storage_keys)),
        (RBAC, "roles", policy.roles()),
        (RBAC, "clusterrolebindings", policy.cluster_role_bindings()),
        (RBAC, "rolebindings", policy.role_bindings()),
        ("", "componentstatuses", _component_statuses()),
        (FLOW_CONTROL, "prioritylevelconfigurations", flow_control.priority_levels()),
        (FLOW_CONTROL, "flowschemas", flow_control.flow_schemas()),
    )
    for group, plural, found in more:
        objects += [(find(group, "v1", plural), each) for each in found]
    return objects


def _default_account(namespace: str) -> Object:
    """Return what a controller would make, so that no pod has to wait for it."""
    return {"metadata": {"name": "default", "namespace": namespace}}


def _component_statuses() -> list[Object]:
    """Return the components that old clients ask about; all of them are this process."""
    healthy = {"type": "Healthy", "status": "True", "message": "ok"}
    return [
        {"metadata": {"name": name}, "conditions": [dict(healthy)]}
        for name in ("scheduler", "controller-manager", "etcd-0")
    ]


def _authentication_map() -> Object:
    """Return what tells delegates how requests are authenticated here.

    There are no client certificates and no proxy in front, so no authority of either is named:
    who delegates must ask by TokenReview.
    """
    metadata = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    return {"metadata": metadata, "data": {}}


def _service_addresses() -> Object:
    """Return the range that Services without an address get theirs from."""
    return {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [str(ADDRESSES)]}}


def _kubernetes_service() -> Object:
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": KUBERNETES_IP,
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        },
    }
