"""NetworkPolicies: no traffic flows here, but what users apply is taken."""

from berth.cluster.resources import Object


def default(obj: Object) -> None:
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in (rule or {}).get("ports") or ():
            port.setdefault("protocol", "TCP")
