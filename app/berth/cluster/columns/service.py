"""NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE, and the selector with ``-o wide``."""

from berth.cluster.columns.cells import NONE, UNKNOWN, Cells, dig, labels_text, listed
from berth.cluster.resources import Object


def cluster_ip(service: Object) -> str:
    """Return the first virtual address; ``None`` (the word) for headless services."""
    return next(iter(listed(service, "spec.clusterIPs")), dig(service, "spec.clusterIP")) or NONE


def external_ip(service: Object) -> str:
    """Return where the outside world reaches the service, which depends on its type."""
    external = [str(each) for each in listed(service, "spec.externalIPs")]
    match dig(service, "spec.type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            ingress = listed(service, "status.loadBalancer.ingress")
            balanced = sorted({each.get("ip") or each.get("hostname", "") for each in ingress})
            return ",".join(balanced + external) or "<pending>"
        case "ExternalName":
            return dig(service, "spec.externalName") or ""
        case _:
            return UNKNOWN


def ports(service: Object) -> str:
    """Return ``80/TCP`` for each port, ``80:30080/TCP`` when nodes listen too."""
    texts = []
    for port in listed(service, "spec.ports"):
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or NONE


CELLS: Cells = {
    "Type": lambda service: dig(service, "spec.type") or "",
    "Cluster-IP": cluster_ip,
    "External-IP": external_ip,
    "Port(s)": ports,
    "Selector": lambda service: labels_text(dig(service, "spec.selector")) or NONE,
}
