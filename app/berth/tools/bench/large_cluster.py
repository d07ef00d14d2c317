"""A cluster of any size as JSON that is made when it is asked for, so that nobody has to hold it.

Objects are as large and as different from each other as those of real clusters: a pod has 5 to 8
kB, of which it shares most with the other pods of its Deployment; a node has 17 kB, most of it 50
images.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

REPLICAS: Final = 30
"""Pods of one Deployment."""
DEPLOYMENTS_IN_NAMESPACE: Final = 20
NODES_IN_ZONE: Final = 1_000
IMAGES: Final = 400
"""Distinct images in the cluster; a node has 50 of them."""
IMAGES_ON_NODE: Final = 50
_DIGITS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of which Kubernetes makes random suffixes."""
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class LargeCluster:
    """*nodes* nodes, and *pods* running pods, spread over them evenly."""

    nodes: int
    pods: int

    def node(self, index: int, *, version: int = 1, heartbeat: int = 0) -> bytes:
        """Return the JSON of a Node. *heartbeat* are seconds by which its conditions are newer."""
        name = node_name(index)
        beat = _time(_DAY + heartbeat)
        return _node_form() % {
            b"name": name.encode(),
            b"uid": _uid(0, index),
            b"version": b"%d" % version,
            b"ip": _address(10, index),
            b"zone": b"zone-%d" % (index // NODES_IN_ZONE % 10),
            b"pool": b"pool-%d" % (index % 7),
            b"type": b"m%d.4xlarge" % (index % 5),
            b"number": b"%d" % index,
            b"heartbeat": beat,
            b"images": b",".join(
                _image(number % IMAGES)
                for number in range(index % IMAGES, index % IMAGES + IMAGES_ON_NODE)
            ),
        }

    def pod(self, index: int, *, version: int = 1, generation: int = 0, node: str = "") -> bytes:
        """Return the JSON of the *index*-th running Pod.

        With another *generation* it is another pod of the same Deployment, and on another node,
        which *node* names.
        """
        deployment, replica = divmod(index, REPLICAS)
        started = index * 37 % _DAY
        unique = index + generation * self.pods
        pod_hash = _word(deployment * 7919, 10)
        return _pod_form(deployment % 4) % {
            b"namespace": b"team-%05d" % (deployment // DEPLOYMENTS_IN_NAMESPACE),
            b"app": b"service-%06d" % deployment,
            b"hash": pod_hash,
            b"suffix": _word(replica * 104_729 + generation * 31, 5),
            b"token": _word(unique * 15_485_863, 5),
            b"uid": _uid(1, unique),
            b"owner": _uid(2, deployment),
            b"version": b"%d" % version,
            b"node": (node or self.node_of(index + generation)).encode(),
            b"host_ip": _address(10, index % self.nodes),
            b"pod_ip": _address(100, unique),
            b"created": _time(started),
            b"ready": _time(started + 3 + replica % 5),
            b"container": b"%064x" % (unique * 0x9E3779B97F4A7C15F39CC0605CEDC835),
        }

    def node_of(self, index: int) -> str:
        """Return the name of the node that the *index*-th pod runs on."""
        return node_name(index * 7919 % self.nodes)

    def all_nodes(self) -> Iterator[bytes]:
        return (self.node(index) for index in range(self.nodes))

    def all_pods(self) -> Iterator[bytes]:
        """In the order of their keys, in which an API server lists."""
        return (self.pod(index) for index in range(self.pods))


def node_name(index: int) -> str:
    return f"ip-10-{index >> 16 & 255}-{index >> 8 & 255}-{index & 255}.eu-central-1.compute"


def _word(number: int, length: int) -> bytes:
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_DIGITS))
        letters.append(_DIGITS[digit])
        number = number * 31 + digit
    return "".join(letters).encode()


def _uid(kind: int, index: int) -> bytes:
    mixed = index * 0x9E3779B97F4A7C15 & (1 << 64) - 1
    return b"%08x-%04x-4000-8%03x-%012x" % (mixed >> 32, mixed & 0xFFFF, kind, index)


def _address(net: int, index: int) -> bytes:
    return b"%d.%d.%d.%d" % (net, index >> 16 & 255, index >> 8 & 255, index & 255)


def _time(seconds: int) -> bytes:
    """Return a time of the second week of 2026."""
    days, rest = divmod(seconds, _DAY)
    minutes, second = divmod(rest, 60)
    return b"2026-01-%02dT%02d:%02d:%02dZ" % (8 + days, *divmod(minutes, 60), second)


@lru_cache(maxsize=IMAGES)
def _image(number: int) -> bytes:
    repository = f"registry.example.com/platform/team-{number % 30}/service-{number:04d}"
    digest = uuid.uuid5(uuid.NAMESPACE_OID, repository).hex * 2
    names = [f"{repository}@sha256:{digest}", f"{repository}:v1.{number % 40}.0"]
    return json.dumps({"names": names, "sizeBytes": 10**7 + number * 123_457}).encode()


def _form(obj: dict[str, Any]) -> bytes:
    """Return the JSON of *obj*, to be filled in: ``<name>`` in it is a place for *name*."""
    text = json.dumps(obj, separators=(",", ":")).replace("%", "%%")
    return text.replace('"<images>"', "%(images)b").replace("<", "%(").replace(">", ")b").encode()


def _managed(manager: str, fields: dict[str, Any], *, status: bool = False) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "<created>" if manager != "cloud" else "2026-01-08T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **({"subresource": "status"} if status else {}),
    }


def _set(*names: str) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


@lru_cache
def _pod_form(kind: int) -> bytes:
    """Return the form of one of four kinds of pods; they differ in requests and containers."""
    names = ["main", *(["sidecar"] if kind % 2 else [])]
    labels = {
        "app.kubernetes.io/name": "<app>",
        "app.kubernetes.io/part-of": "shop",
        "app.kubernetes.io/managed-by": "Helm",
        "team": "<namespace>",
        "tier": "backend",
        "pod-template-hash": "<hash>",
    }
    containers: list[dict[str, Any]] = [
        {
            "name": name,
            "image": f"registry.example.com/platform/{name}:v1.{kind}.0",
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [
                {"name": f"SETTING_{n}", "value": f"value of setting {n}"} for n in range(6)
            ]
            + [
                {
                    "name": "POD_NAME",
                    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
                }
            ],
            "resources": {
                "limits": {"memory": f"{256 << kind}Mi"},
                "requests": {"cpu": f"{50 + 50 * kind}m", "memory": f"{128 << kind}Mi"},
            },
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/service"},
                {
                    "name": "kube-api-access-<token>",
                    "readOnly": True,
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                },
            ],
            "readinessProbe": {
                "httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"},
                "timeoutSeconds": 1, "periodSeconds": 10,
                "successThreshold": 1, "failureThreshold": 3,
            },
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
        for name in names
    ]  # fmt: skip
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": time}
        for kind, time in (
            ("PodReadyToStartContainers", "<ready>"),
            ("Initialized", "<created>"),
            ("Ready", "<ready>"),
            ("ContainersReady", "<ready>"),
            ("PodScheduled", "<created>"),
        )
    ]
    return _form({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "<app>-<hash>-<suffix>",
            "generateName": "<app>-<hash>-",
            "namespace": "<namespace>",
            "uid": "<uid>",
            "resourceVersion": "<version>",
            "generation": 1,
            "creationTimestamp": "<created>",
            "labels": labels,
            "annotations": {
                "checksum/config": "<owner>",
                "prometheus.io/scrape": "true",
                "kubectl.kubernetes.io/restartedAt": "2026-01-07T10:00:00Z",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "<app>-<hash>",
                "uid": "<owner>", "controller": True, "blockOwnerDeletion": True,
            }],
            "managedFields": [
                _managed("kube-controller-manager", {
                    "f:metadata": {
                        "f:annotations": {".": {}, **_set("checksum/config")},
                        "f:generateName": {},
                        "f:labels": {".": {}, **_set(*labels)},
                        "f:ownerReferences": {".": {}, 'k:{"uid":"(owner)"}': {}},
                    },
                    "f:spec": {
                        "f:containers": {
                            f"k:(name {name})": _set(
                                ".", "name", "image", "imagePullPolicy", "env", "resources"
                            )
                            for name in names
                        },
                        **_set("dnsPolicy", "enableServiceLinks", "restartPolicy"),
                    },
                }),
                _managed("kubelet", {"f:status": {
                    "f:conditions": {
                        f"k:(type {one['type']})": _set("lastTransitionTime", "status", "type")
                        for one in conditions
                    },
                    **_set("containerStatuses", "hostIP", "phase", "podIP", "startTime"),
                }}, status=True),
            ],
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": "<app>", "defaultMode": 420}},
                {"name": "kube-api-access-<token>", "projected": {"sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt",
                                   "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ], "defaultMode": 420}},
            ],
            "containers": containers,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "nodeName": "<node>",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": f"node.kubernetes.io/{state}", "operator": "Exists",
                 "effect": "NoExecute", "tolerationSeconds": 300}
                for state in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            **({"topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "<app>"}},
            }]} if kind == 1 else {}),
        },
        "status": {
            "observedGeneration": 1,
            "phase": "Running",
            "conditions": conditions,
            "hostIP": "<host_ip>",
            "hostIPs": [{"ip": "<host_ip>"}],
            "podIP": "<pod_ip>",
            "podIPs": [{"ip": "<pod_ip>"}],
            "startTime": "<created>",
            "containerStatuses": [
                {
                    "name": container["name"],
                    "state": {"running": {"startedAt": "<ready>"}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": container["image"],
                    "imageID": "registry.example.com/platform/service@sha256:<container>",
                    "containerID": "containerd://<container>",
                    "started": True,
                    "allocatedResources": container["resources"]["requests"],
                    "resources": container["resources"],
                    "volumeMounts": container["volumeMounts"],
                }
                for container in containers
            ],
            "qosClass": "Burstable",
        },
    })  # fmt: skip


@lru_cache
def _node_form() -> bytes:
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": "<type>",
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": "eu-central-1",
        "failure-domain.beta.kubernetes.io/zone": "<zone>",
        "k8s.io/cloud-provider-aws": "5553ae84a0d29114870f67bbabd07d44",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": "<name>",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "<type>",
        "node.example.com/pool": "<pool>",
        "node.example.com/number": "n-<number>",
        "topology.ebs.csi.aws.com/zone": "<zone>",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": "<zone>",
        **{f"feature.node.kubernetes.io/cpu-cpuid.{n}": "true" for n in range(15)},
    }
    conditions = [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": "<heartbeat>",
            "lastTransitionTime": "2026-01-08T01:00:00Z",
            "reason": reason,
            "message": f"kubelet says {reason}",
        }
        for kind, status, reason in (
            ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID"),
            ("NetworkUnavailable", "False", "RouteCreated"),
            ("KernelDeadlock", "False", "KernelHasNoDeadlock"),
            ("Ready", "True", "KubeletReady"),
        )
    ]
    amounts = {
        "cpu": "16",
        "ephemeral-storage": "104845292Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": "64938268Ki",
        "pods": "110",
    }
    return _form({
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": "<name>",
            "uid": "<uid>",
            "resourceVersion": "<version>",
            "creationTimestamp": "2026-01-08T00:00:00Z",
            "labels": labels,
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": "<ip>",
                "csi.volume.kubernetes.io/nodeid": '(ebs.csi.aws.com: i-0<number>)',
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "managedFields": [
                _managed("cloud", {
                    "f:metadata": {"f:labels": {".": {}, **_set(*labels)}},
                    "f:status": {"f:conditions": {
                        f"k:(type {one['type']})": _set(*one) for one in conditions
                    }, "f:images": {}},
                }),
            ],
        },
        "spec": {"providerID": "aws:///eu-central-1/i-0<number>", "podCIDR": "<ip>/24"},
        "status": {
            "capacity": amounts,
            "allocatable": {**amounts, "cpu": "15890m", "memory": "61000000Ki"},
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": "<ip>"}, {"type": "Hostname", "address": "<name>"}
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "<uid>", "systemUUID": "<uid>", "bootID": "<uid>",
                "kernelVersion": "6.1.141", "osImage": "Linux", "architecture": "amd64",
                "containerRuntimeVersion": "containerd://1.7.27", "kubeletVersion": "v1.36.2",
                "kubeProxyVersion": "", "operatingSystem": "linux",
            },
            "images": ["<images>"],
        },
    })  # fmt: skip
