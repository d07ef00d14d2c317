"""NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE, and the selector with ``-o wide``."""

from berth.cluster.columns.cells import AGE, NAME, NONE, UNKNOWN, dig, labels_text, listed
from berth.cluster.resources import Column, Object


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


COLUMNS = (
    NAME,
    Column(
        "Type",
        "string",
        lambda service: dig(service, "spec.type") or "",
        "How the service is offered: ClusterIP, NodePort, LoadBalancer or ExternalName.",
    ),
    Column("Cluster-IP", "string", cluster_ip, "The virtual address inside the cluster."),
    Column("External-IP", "string", external_ip, "The addresses seen from outside."),
    Column("Port(s)", "string", ports, "The ports, with the nodes' own after a colon."),
    AGE,
    Column(
        "Selector",
        "string",
        lambda service: labels_text(dig(service, "spec.selector")) or NONE,
        "The labels of the pods behind the service.",
        priority=1,
    ),
)
