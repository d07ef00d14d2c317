"""What the server warns of when it writes an object: odd, but valid (``WarningsOnCreate``).

Each function yields the warnings about a new object, or about one that replaces *old*. Pods and
templates follow Kubernetes' ``pkg/api/pod/warnings.go``; of its rules, those about addresses in a
non-standard notation and about volumes whose paths overlap are left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from berth.cluster.resources import Object
from berth.cluster.strategies import syntax
from berth.cluster.warnings import quoted
from berth.kube.objects.quantity import canonical_text, milli_value, parse

Warnings = Callable[[Object, Object | None], Iterator[str]]

NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
}
ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
BYTES: Final = ("memory", "ephemeral-storage")
"""Resources that come in whole bytes."""

FRACTION: Final = re.compile(r"[.mun]|[eE]-")
"""What only quantities have that may be no whole number."""

POD_NAME: Final = "this is used in the Pod's hostname, which can result in surprising behavior"
PODS_NAME: Final = (
    "this is used in Pod names and hostnames, which can result in surprising behavior"
)
INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"


def of_pod(new: Object, old: Object | None) -> Iterator[str]:
    """An update is not looked at: most are controllers'."""
    if old is None:
        yield from _of_name(new, POD_NAME)
        yield from _of_pods(new, "")


def of_template(path: str, *, names_pods: bool = False) -> Warnings:
    """Return the warnings of a kind with a template of pods at *path*.

    With *names_pods* its name becomes part of theirs. Updates that change nothing that is wanted
    are not looked at.
    """

    def found(new: Object, old: Object | None) -> Iterator[str]:
        if old is None and names_pods:
            yield from _of_name(new, PODS_NAME)
        generation = new["metadata"].get("generation")
        if old is not None and generation and generation == old["metadata"].get("generation"):
            return
        template: Any = new
        for step in path.split("."):
            template = (template or {}).get(step)
        if template:
            yield from _of_pods(template, f"{path}.")

    return found


def of_node(new: Object, _old: Object | None) -> Iterator[str]:
    spec = new.get("spec") or {}
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def of_csi_driver(new: Object, _old: Object | None) -> Iterator[str]:
    spec = new.get("spec") or {}
    if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to "
            "true to prevent possible logging of tokens in volume attributes"
        )


def of_claim(new: Object, _old: Object | None) -> Iterator[str]:
    requests = ((new.get("spec") or {}).get("resources") or {}).get("requests") or {}
    yield from _fractions(requests, "spec.resources.requests", ("storage",))


def of_volume(new: Object, _old: Object | None) -> Iterator[str]:
    annotations, spec = new["metadata"].get("annotations") or {}, new.get("spec") or {}
    if "volume.beta.kubernetes.io/storage-class" in annotations:
        yield (
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; "
            'use "storageClassName" attribute instead'
        )
    if "volume.beta.kubernetes.io/mount-options" in annotations:
        yield (
            "metadata.annotations[volume.beta.kubernetes.io/mount-options]: deprecated since "
            'v1.31; use "mountOptions" attribute instead'
        )
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        path = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
        yield from _of_term(term, path)
    for source, why in VOLUMES.items():
        if source in spec:
            yield f"spec.{source}: {why}"


def of_service(new: Object, _old: Object | None) -> Iterator[str]:
    spec = new.get("spec") or {}
    if TOPOLOGY_HINTS in (new["metadata"].get("annotations") or {}):
        yield (
            f"annotation {TOPOLOGY_HINTS} is deprecated, please use "
            "service.kubernetes.io/topology-mode instead"
        )
    if spec.get("type") != "ExternalName" and spec.get("clusterIP") == "None":
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.get("externalIPs"):
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"


def of_ingress(new: Object, old: Object | None) -> Iterator[str]:
    if old is None and INGRESS_CLASS in (new["metadata"].get("annotations") or {}):
        yield (
            f"annotation {quoted(INGRESS_CLASS)} is deprecated, "
            "please use 'spec.ingressClassName' instead"
        )


def of_runtime_class(new: Object, _old: Object | None) -> Iterator[str]:
    selector = (new.get("scheduling") or {}).get("nodeSelector") or {}
    yield from _deprecated(selector, "scheduling.nodeSelector", NODE_LABELS)


def _of_name(obj: Object, why: str) -> Iterator[str]:
    if found := syntax.dns1123_label(obj["metadata"].get("name") or ""):
        yield f"metadata.name: {why}; a DNS label is recommended: [{' '.join(found)}]"


def _of_pods(template: Object, path: str) -> Iterator[str]:
    """Yield what is odd about a pod, or a template of pods, whose fields begin with *path*."""
    spec: Object = template.get("spec") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    here = f"{path}spec"
    yield from _of_placement(spec, here)
    if annotations:
        yield from _deprecated(annotations, f"{path}metadata.annotations", ANNOTATIONS)
    for index, volume in enumerate(spec.get("volumes") or ()):
        for source in volume.keys() & VOLUMES.keys():
            yield f"{here}.volumes[{index}].{source}: {VOLUMES[source]}"
    if aliases := spec.get("hostAliases"):
        yield from _duplicates(aliases, f"{here}.hostAliases", "ip")
    if secrets := spec.get("imagePullSecrets"):
        yield from _duplicates(secrets, f"{here}.imagePullSecrets", "name")
        for index, secret in enumerate(secrets):
            if not secret.get("name"):
                yield f'{here}.imagePullSecrets[{index}].name: invalid empty name ""'
    if overhead := spec.get("overhead"):
        yield from _fractions(overhead, f"{here}.overhead", BYTES)
    containers = list(_containers(spec, here))
    for at, container in containers:
        for kind, amounts in (container.get("resources") or {}).items():
            if kind in ("limits", "requests"):
                yield from _fractions(amounts or {}, f"{at}.resources.{kind}", BYTES)
        if len(variables := container.get("env") or ()) > 1:
            yield from _of_environment(variables, f"{at}.env")
    ports = [
        (f"{at}.ports[{index}]", port)
        for at, container in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    if len(ports) > 1:
        yield from _of_ports(ports)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        yield (
            f"{here}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
            "will be treated as 1"
        )


def _containers(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield f"{path}.{kind}[{index}]", container


def _of_placement(spec: Object, path: str) -> Iterator[str]:
    """Yield what is odd about where pods go."""
    yield from _deprecated(spec.get("nodeSelector") or {}, f"{path}.nodeSelector", NODE_LABELS)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at = f"{path}.topologySpreadConstraints[{index}]"
        key = constraint.get("topologyKey") or ""
        if key in NODE_LABELS:
            yield f"{at}.topologyKey: {key} is {NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at}.labelSelector: a null labelSelector results in matching no pod"
    affinity = spec.get("affinity") or {}
    if nodes := affinity.get("nodeAffinity"):
        yield from _of_node_affinity(nodes, f"{path}.affinity.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(kind):
            yield from _of_pod_affinity(pods, f"{path}.affinity.{kind}")


def _of_node_affinity(affinity: Object, at: str) -> Iterator[str]:
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        below = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        yield from _of_term(term, f"{at}.{below}[{index}]")
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    for index, each in enumerate(preferred):
        below = f"preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        yield from _of_term(each.get("preference") or {}, f"{at}.{below}")


def _of_pod_affinity(affinity: Object, path: str) -> Iterator[str]:
    terms = [
        (f"requiredDuringSchedulingIgnoredDuringExecution[{index}]", term)
        for index, term in enumerate(
            affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        )
    ]
    terms += [
        (
            f"preferredDuringSchedulingIgnoredDuringExecution[{index}].podAffinityTerm",
            each.get("podAffinityTerm") or {},
        )
        for index, each in enumerate(
            affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        )
    ]
    for at, term in terms:
        if term.get("labelSelector") is None:
            yield f"{path}.{at}.labelSelector: a null labelSelector results in matching no pod"


def _of_term(term: Object, path: str) -> Iterator[str]:
    """Yield the deprecated labels that a term of a node selector asks for."""
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key") or ""
        if key in NODE_LABELS:
            yield f"{path}.matchExpressions[{index}].key: {key} is {NODE_LABELS[key]}"


def _deprecated(keys: Iterable[str], path: str, known: dict[str, str]) -> Iterator[str]:
    for key in keys:
        if key in known:
            yield f"{path}[{key}]: {known[key]}"


def _duplicates(items: Iterable[Object], path: str, key: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items):
        value = item.get(key) or ""
        if value in seen:
            yield f"{path}[{index}].{key}: duplicate {key} {quoted(value)}"
        seen.add(value)


def _fractions(amounts: Object, path: str, names: Iterable[str]) -> Iterator[str]:
    """Yield the quantities of bytes with a fraction."""
    for name in names:
        amount = amounts.get(name)
        if amount is None or type(amount) is int or not FRACTION.search(str(amount)):
            continue
        if milli_value(parse(amount)) % 1000:
            said = quoted(canonical_text(amount))
            yield f"{path}[{name}]: fractional byte value {said} is invalid, must be an integer"


def _of_environment(variables: Iterable[Object], path: str) -> Iterator[str]:
    seen = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        hides = "valueFrom" in variable or value == reference or reference not in value
        if name in seen and hides:
            yield (
                f"{path}[{index}]: hides previous definition of {quoted(name)}, "
                "which may be dropped when using apply"
            )
        seen.add(name)


def _of_ports(ports: Sequence[tuple[str, Object]]) -> Iterator[str]:
    """Yield the ports of all containers of a pod that are in each other's way."""
    known: dict[tuple[Any, Any], list[tuple[str, Object]]] = {}
    for at, port in ports:
        same = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for before, other in same:
            if how := _overlap(port, other):
                yield f"{at}: {how} port definition with {before}"
        same.append((at, port))
    names: dict[str, str] = {}
    for at, port in ports:
        name = port.get("name") or ""
        if name and (first := names.setdefault(name, at)) != at:
            yield (
                f"{at}: duplicate port name {quoted(name)} with {first}, services and probes that "
                f"select ports by name will use {first}"
            )


def _overlap(one: Object, other: Object) -> str:
    """Return how two definitions of one port of a pod overlap; empty: they do not."""
    ip, other_ip = one.get("hostIP") or "", other.get("hostIP") or ""
    port, other_port = one.get("hostPort") or 0, other.get("hostPort") or 0
    if (ip, port) == (other_ip, other_port):
        return "duplicate"
    if not port or not other_port:
        return "overlapping"
    if port == other_port and bool(ip) != bool(other_ip):
        return "dangerously ambiguous"
    return ""


WARNINGS: Final[Mapping[str, Warnings]] = {
    "v1/nodes": of_node,
    "v1/persistentvolumeclaims": of_claim,
    "v1/persistentvolumes": of_volume,
    "v1/pods": of_pod,
    "v1/podtemplates": of_template("template"),
    "v1/replicationcontrollers": of_template("spec.template", names_pods=True),
    "v1/services": of_service,
    "apps/v1/daemonsets": of_template("spec.template"),
    "apps/v1/deployments": of_template("spec.template", names_pods=True),
    "apps/v1/replicasets": of_template("spec.template", names_pods=True),
    "apps/v1/statefulsets": of_template("spec.template"),
    "batch/v1/cronjobs": of_template("spec.jobTemplate.spec.template", names_pods=True),
    "batch/v1/jobs": of_template("spec.template", names_pods=True),
    "networking.k8s.io/v1/ingresses": of_ingress,
    "node.k8s.io/v1/runtimeclasses": of_runtime_class,
    "storage.k8s.io/v1/csidrivers": of_csi_driver,
}
"""By group, version and plural of the kind."""
