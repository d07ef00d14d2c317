"""Kinds that nothing acts on here, or that act without being looked at: their cells, in brief."""

from berth.cluster.columns.cells import (
    NONE,
    UNSET,
    Cells,
    count,
    dig,
    labels_text,
    length,
    listed,
    text,
)
from berth.cluster.resources import Object
from berth.runtime.duration import human_duration

SHOWN = 3
"""Endpoints, ports and addresses that are shown; of more, how many there are."""


def param_kind(obj: Object) -> str:
    """Return ``apps/v1/Deployment``: what an admission policy takes its parameters from."""
    kind = dig(obj, "spec.paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else UNSET


def param_ref(obj: Object) -> str:
    """Return ``namespace/name`` of an admission policy's parameters, or that a selector says."""
    ref = dig(obj, "spec.paramRef")
    if not ref:
        return UNSET
    if not ref.get("name"):
        return "*" if ref.get("selector") is not None else UNSET
    return f"{ref['namespace']}/{ref['name']}" if ref.get("namespace") else str(ref["name"])


def service_of(obj: Object) -> str:
    """Return who serves an APIService: a service, or the API server itself."""
    service = dig(obj, "spec.service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def available(obj: Object) -> str:
    """Return whether an APIService can be reached, and why not."""
    for condition in listed(obj, "status.conditions"):
        if condition.get("type") == "Available":
            status, reason = condition.get("status", ""), condition.get("reason", "")
            return status if status == "True" else f"{status} ({reason})"
    return "Unknown"


def controller_of(obj: Object) -> str:
    """Return ``statefulset.apps/web``: what controls the object."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = owner["kind"].lower()
            return f"{kind}.{group}/{owner['name']}" if group else f"{kind}/{owner['name']}"
    return NONE


def requested_duration(obj: Object) -> str:
    """Return how long a certificate shall be good for."""
    seconds = dig(obj, "spec.expirationSeconds")
    return NONE if seconds is None else human_duration(seconds)


def request_condition(obj: Object) -> str:
    """Return ``Approved,Issued``: what has become of a request for a certificate."""
    types = {each.get("type") for each in listed(obj, "status.conditions")}
    found = [each for each in ("Approved", "Denied", "Failed") if each in types]
    text = ",".join(found) or "Pending"
    return f"{text},Issued" if dig(obj, "status.certificate") else text


def some_of(items: list[str], more: str = "{} more...") -> str:
    """Return the first items, and how many there are beside them."""
    if not items:
        return NONE
    shown = ",".join(items[:SHOWN])
    return f"{shown} + {more.format(len(items) - SHOWN)}" if len(items) > SHOWN else shown


def slice_ports(obj: Object) -> str:
    ports = listed(obj, "ports")
    if not ports:
        return UNSET
    return some_of([str(port.get("port") or "*") for port in ports])


def slice_endpoints(obj: Object) -> str:
    endpoints = listed(obj, "endpoints")
    if not endpoints:
        return UNSET
    return some_of([address for one in endpoints for address in one.get("addresses") or ()])


def endpoints(obj: Object) -> str:
    """Return ``10.0.0.1:80,10.0.0.2:80``: who is behind a service."""
    found: list[str] = []
    for subset in listed(obj, "subsets"):
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = [each.get("port", "") for each in subset.get("ports") or ()]
        found += [f"{ip}:{port}" for port in ports for ip in addresses] if ports else addresses
    return some_of(found)


def missing_priority_level(obj: Object) -> str:
    for condition in listed(obj, "status.conditions"):
        if condition.get("type") == "Dangling":
            return str(condition.get("status", "?"))
    return "?"


def parameters_of(obj: Object) -> str:
    """Return ``kind.group/name`` of an ingress class's parameters."""
    parameters = dig(obj, "spec.parameters")
    if not parameters:
        return NONE
    kind = parameters.get("kind", "")
    if parameters.get("apiGroup"):
        kind = f"{kind}.{parameters['apiGroup']}"
    return f"{kind}/{parameters.get('name', '')}"


def hosts(obj: Object) -> str:
    found = [each["host"] for each in listed(obj, "spec.rules") if each.get("host")]
    return some_of(found) if found else "*"


def ingress_addresses(obj: Object) -> str:
    points = listed(obj, "status.loadBalancer.ingress")
    return ",".join(point.get("ip") or point.get("hostname") or "" for point in points)


def parent_of(obj: Object) -> str:
    """Return ``services/default/web``: what has the address."""
    ref = dig(obj, "spec.parentRef") or {}
    steps = (ref.get("group"), ref.get("resource"), ref.get("namespace"), ref.get("name"))
    return "/".join(step for step in steps if step)


def health(obj: Object) -> Object:
    """Return the condition of a component that says whether it is healthy."""
    found = (
        condition for condition in obj.get("conditions") or () if condition.get("type") == "Healthy"
    )
    return next(found, {})


def healthy(obj: Object) -> str:
    return {"True": "Healthy", "False": "Unhealthy"}.get(health(obj).get("status", ""), "Unknown")


def quota(obj: Object, prefix: str) -> str:
    """Return ``pods: 1/10, …``: what is used of what there is; or of limits only."""
    hard, used = dig(obj, "status.hard") or {}, dig(obj, "status.used") or {}
    limits = prefix == "limits."
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard[name]}"
        for name in sorted(hard)
        if name.startswith("limits.") is limits
    )


def true_condition(obj: Object, *types: str) -> str:
    """Return the first of *types* that is a true condition; "" if none is."""
    found = {
        each.get("type") for each in listed(obj, "status.conditions") if each["status"] == "True"
    }
    return next((type_ for type_ in types if type_ in found), "")


def user_annotations(obj: Object) -> str:
    annotations = dig(obj, "spec.unverifiedUserAnnotations") or {}
    return ",".join(f"{key}={annotations[key]}" for key in sorted(annotations))


def migrated_resource(obj: Object) -> str:
    """Return ``deployments.apps``: what a migration writes anew."""
    resource = dig(obj, "spec.resource") or {}
    return ".".join(filter(None, (resource.get("resource"), resource.get("group"))))


def served_versions(obj: Object) -> str:
    return ",".join(each["name"] for each in listed(obj, "spec.versions") if each.get("served"))


def of_template(obj: Object, key: str) -> str:
    return ",".join(each.get(key, "") for each in listed(obj, "template.spec.containers"))


POLICY_BINDING: Cells = {"PolicyName": text("spec.policyName"), "ParamRef": param_ref}
WEBHOOKS: Cells = {"Webhooks": length("webhooks")}
NOTHING_MORE: Cells = {}
LEVEL = "spec.limited.limitResponse.queuing."

CELLS: dict[str, Cells] = {
    "mutatingadmissionpolicies": {"Mutations": length("spec.mutations"), "ParamKind": param_kind},
    "mutatingadmissionpolicybindings": POLICY_BINDING,
    "mutatingwebhookconfigurations": WEBHOOKS,
    "validatingadmissionpolicies": {
        "Validations": length("spec.validations"),
        "ParamKind": param_kind,
    },
    "validatingadmissionpolicybindings": POLICY_BINDING,
    "validatingwebhookconfigurations": WEBHOOKS,
    "customresourcedefinitions": {
        "Scope": text("spec.scope"),
        "Versions": served_versions,
        "Group": text("spec.group"),
        "Kind": text("spec.names.kind"),
        "ShortNames": lambda obj: ",".join(listed(obj, "spec.names.shortNames")),
        "Established": lambda obj: true_condition(obj, "Established") != "",
    },
    "apiservices": {"Service": service_of, "Available": available},
    "controllerrevisions": {"Controller": controller_of, "Revision": count("revision")},
    "certificatesigningrequests": {
        "SignerName": text("spec.signerName", empty=NONE),
        "Requestor": text("spec.username"),
        "RequestedDuration": requested_duration,
        "Condition": request_condition,
    },
    "clustertrustbundles": {"SignerName": text("spec.signerName", empty=NONE)},
    "podcertificaterequests": {
        "PodName": text("spec.podName"),
        "ServiceAccountName": text("spec.serviceAccountName"),
        "NodeName": text("spec.nodeName"),
        "SignerName": text("spec.signerName"),
        "State": lambda obj: true_condition(obj, "Issued", "Denied", "Failed") or "Pending",
        "UnverifiedUserAnnotations": user_annotations,
    },
    "devicetaintrules": {
        "Key": text("spec.taint.key"),
        "Value": text("spec.taint.value"),
        "Effect": text("spec.taint.effect"),
        "TimeAdded": text("spec.taint.timeAdded"),
    },
    "storageversionmigrations": {
        "Resource": migrated_resource,
        "Status": lambda obj: true_condition(obj, "Running", "Succeeded", "Failed"),
    },
    "endpointslices": {
        "AddressType": text("addressType"),
        "Ports": slice_ports,
        "Endpoints": slice_endpoints,
    },
    "flowschemas": {
        "PriorityLevel": text("spec.priorityLevelConfiguration.name"),
        "MatchingPrecedence": count("spec.matchingPrecedence"),
        "DistinguisherMethod": text("spec.distinguisherMethod.type", empty=NONE),
        "MissingPL": missing_priority_level,
    },
    "prioritylevelconfigurations": {
        "Type": text("spec.type"),
        "NominalConcurrencyShares": text("spec.limited.nominalConcurrencyShares", empty=NONE),
        "Queues": text(LEVEL + "queues", empty=NONE),
        "HandSize": text(LEVEL + "handSize", empty=NONE),
        "QueueLengthLimit": text(LEVEL + "queueLengthLimit", empty=NONE),
    },
    "ingressclasses": {"Controller": text("spec.controller"), "Parameters": parameters_of},
    "ingresses": {
        "Class": text("spec.ingressClassName", empty=NONE),
        "Hosts": hosts,
        "Address": ingress_addresses,
        "Ports": lambda obj: "80, 443" if listed(obj, "spec.tls") else "80",
    },
    "ipaddresses": {"ParentRef": parent_of},
    "servicecidrs": {"CIDRs": lambda obj: ",".join(listed(obj, "spec.cidrs"))},
    "runtimeclasses": {"Handler": text("handler")},
    "volumeattributesclasses": {"DriverName": text("driverName")},
    "componentstatuses": {
        "Status": healthy,
        "Message": lambda obj: health(obj).get("message", ""),
        "Error": lambda obj: health(obj).get("error", ""),
    },
    "endpoints": {"Endpoints": endpoints},
    "limitranges": NOTHING_MORE,
    "podtemplates": {
        "Containers": lambda obj: of_template(obj, "name"),
        "Images": lambda obj: of_template(obj, "image"),
        "Pod Labels": lambda obj: labels_text(dig(obj, "template.metadata.labels")) or NONE,
    },
    "resourcequotas": {
        "Request": lambda obj: quota(obj, ""),
        "Limit": lambda obj: quota(obj, "limits."),
    },
}
"""By plural."""
