"""Kinds that nothing acts on here: what the API server fills in when they are stored."""

import msgspec

from berth.cluster.resources import Object
from berth.cluster.strategies.shape import section
from berth.cluster.strategies.workload import PodTemplate, validate_template
from berth.kube.field_errors import FieldError
from berth.kube.objects import pod_defaults


def default_endpoints(obj: Object) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def default_endpoint_slice(obj: Object) -> None:
    for endpoint in obj.get("endpoints") or ():
        endpoint.setdefault("conditions", {})
    for port in obj.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def default_ingress_class(obj: Object) -> None:
    parameters = obj["spec"].get("parameters")
    if parameters is not None and parameters.get("scope") is None:
        parameters["scope"] = "Cluster"


def prepare_lease(new: Object, _old: Object | None) -> None:
    """Drop what only coordinated leader election has, which is switched off."""
    for field in ("preferredHolder", "strategy"):
        new["spec"].pop(field, None)


def default_pod_template(obj: Object) -> None:
    pod_defaults.default_template(section(obj, "template", "spec"))
    section(obj, "template", "metadata")


def default_flow_schema(obj: Object) -> None:
    spec = section(obj, "spec")
    if not spec.get("matchingPrecedence"):
        spec["matchingPrecedence"] = 1000


def default_priority_level(obj: Object) -> None:
    spec = section(obj, "spec")
    if spec.get("type") != "Limited":
        return
    limited = section(spec, "limited")
    if limited.get("nominalConcurrencyShares") is None:
        limited["nominalConcurrencyShares"] = 30
    limited.setdefault("lendablePercent", 0)
    response = section(limited, "limitResponse")
    response.setdefault("type", "Reject")
    if response["type"] == "Queue":
        queuing = section(response, "queuing")
        for key, value in (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)):
            if not queuing.get(key):
                queuing[key] = value


def check_pod_template(obj: Object) -> list[FieldError]:
    template = msgspec.convert(obj.get("template") or {}, PodTemplate)
    return validate_template(template, "template")
