"""An object of each kind that is stored, valid and with many of its fields; and the same as status.

For tests that change every part of every kind. All of them are named ``x``.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from berth.cluster.resources import Object

SELECTOR: Final = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
}
SELECTED: Final = {"app": "web", "tier": "a"}
TIME: Final = "2023-11-14T22:13:20Z"

CONTAINER: Final = {
    "name": "c",
    "image": "nginx",
    "command": ["sh", "-c"],
    "args": ["true"],
    "env": [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
    "resources": {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "1"},
    },
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
    "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True},
}
_TERM: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
_POD_TERM: Final = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": SELECTOR,
    "namespaces": ["default"],
}
POD_SPEC: Final = {
    "containers": [CONTAINER],
    "initContainers": [{"name": "i", "image": "nginx", "restartPolicy": "Always"}],
    "volumes": [
        {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "x"}},
        {
            "name": "made",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            },
        },
    ],
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _TERM}],
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": _POD_TERM}
            ]
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM]},
    },
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
        }
    ],
    "overhead": {},
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "x"}],
    "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}],
    "imagePullSecrets": [{"name": "s"}],
    "readinessGates": [{"conditionType": "a.b/c"}],
    "dnsConfig": {"options": [{"name": "ndots", "value": "2"}], "searches": ["a"]},
    "securityContext": {"sysctls": [], "supplementalGroups": [1]},
}
_JOB_POD: Final = {**POD_SPEC, "restartPolicy": "Never"}
TEMPLATE: Final = {"metadata": {"labels": SELECTED, "annotations": {"a": "b"}}, "spec": POD_SPEC}
_JOB: Final = {
    "parallelism": 2,
    "completions": 2,
    "backoffLimit": 3,
    "completionMode": "Indexed",
    "podFailurePolicy": {
        "rules": [
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": "c", "operator": "In", "values": [1]},
            },
            {"action": "Ignore", "onPodConditions": [{"type": "A", "status": "True"}]},
        ]
    },
    "successPolicy": {"rules": [{"succeededIndexes": "0", "succeededCount": 1}]},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": _JOB_POD},
}
_METRIC: Final = {"type": "Utilization", "averageUtilization": 50}
_DEVICES: Final = {
    "requests": [
        {
            "name": "r",
            "exactly": {
                "deviceClassName": "x",
                "count": 1,
                "selectors": [{"cel": {"expression": "true"}}],
                "tolerations": [{"key": "k", "operator": "Exists"}],
            },
        },
        {"name": "s", "firstAvailable": [{"name": "a", "deviceClassName": "x"}]},
    ],
    "constraints": [{"requests": ["r"], "matchAttribute": "a.b/c"}],
    "config": [{"requests": ["r"], "opaque": {"driver": "a.b", "parameters": {"a": None}}}],
}
_VOLUME_SELECTOR: Final = {
    "required": {"nodeSelectorTerms": [_TERM]},
}
_RULE: Final = {
    "verbs": ["get", "list"],
    "apiGroups": [""],
    "resources": ["pods"],
    "resourceNames": ["a"],
}
_SUBJECTS: Final = [
    {"kind": "User", "name": "alice"},
    {"kind": "ServiceAccount", "name": "a", "namespace": "default"},
]
_WEBHOOK: Final = {
    "name": "a.example.com",
    "clientConfig": {"service": {"namespace": "default", "name": "s", "path": "/x"}},
    "rules": [
        {
            "operations": ["CREATE"],
            "apiGroups": ["none.example.com"],
            "apiVersions": ["v1"],
            "resources": ["nones"],
        }
    ],
    "namespaceSelector": SELECTOR,
    "objectSelector": SELECTOR,
    "failurePolicy": "Ignore",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "matchConditions": [{"name": "m", "expression": "true"}],
}
_MATCH: Final = {
    "resourceRules": [
        {
            "apiGroups": ["none.example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["nones"],
        }
    ],
    "namespaceSelector": SELECTOR,
}


def signing_request() -> str:
    """Return a request for a certificate as the API has it: PEM in base64."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    made = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def _condition(type_: str = "Available", **more: Any) -> Object:
    return {"type": type_, "status": "True", "reason": "R", "message": "m", **more}


def _timed(type_: str = "Available", **more: Any) -> Object:
    return _condition(type_, lastTransitionTime=TIME, **more)


EVERY_KIND: Final[Mapping[str, Object]] = {
    "v1/configmaps": {"data": {"a": "b"}, "binaryData": {"c": "YQ=="}},
    "v1/endpoints": {
        "subsets": [
            {
                "addresses": [{"ip": "10.0.0.1", "targetRef": {"kind": "Pod", "name": "p"}}],
                "ports": [{"name": "http", "port": 80}],
            }
        ]
    },
    "v1/events": {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested",
        "message": "m",
        "type": "Normal",
        "source": {"component": "test"},
        "firstTimestamp": TIME,
        "count": 1,
    },
    "v1/limitranges": {
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "max": {"cpu": "8"},
                    "default": {"cpu": "2"},
                    "defaultRequest": {"cpu": "100m"},
                }
            ]
        }
    },
    "v1/namespaces": {"spec": {"finalizers": ["kubernetes"]}},
    "v1/nodes": {
        "spec": {
            "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            "podCIDRs": ["10.0.0.0/24"],
        },
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [_timed("Ready", lastHeartbeatTime=TIME)],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "images": [{"names": ["nginx"], "sizeBytes": 1}],
            "nodeInfo": {"kubeletVersion": "v1.36.0"},
        },
    },
    "v1/persistentvolumeclaims": {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "slow",
            "selector": SELECTOR,
        }
    },
    "v1/persistentvolumes": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/x"},
            "nodeAffinity": _VOLUME_SELECTOR,
            "claimRef": {"namespace": "default", "name": "x"},
            "mountOptions": ["ro"],
        }
    },
    "v1/pods": {"spec": POD_SPEC},
    "v1/podtemplates": {"template": TEMPLATE},
    "v1/replicationcontrollers": {
        "spec": {"replicas": 1, "selector": {"app": "web"}, "template": TEMPLATE}
    },
    "v1/resourcequotas": {
        "spec": {
            "hard": {"pods": "1000", "requests.cpu": "1000"},
            "scopes": ["NotTerminating"],
            "scopeSelector": {
                "matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["a"]}
                ]
            },
        }
    },
    "v1/secrets": {"type": "Opaque", "data": {"a": "YQ=="}},
    "v1/serviceaccounts": {"secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]},
    "v1/services": {
        "spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
            "externalIPs": ["1.2.3.4"],
            "sessionAffinityConfig": {},
        }
    },
    "apiregistration.k8s.io/v1/apiservices": {
        "metadata": {"name": "v1.none.example.com"},
        "spec": {
            "group": "none.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1,
            "versionPriority": 1,
        },
    },
    "apps/v1/controllerrevisions": {"revision": 1, "data": {"a": {"b": None}}},
    "apps/v1/daemonsets": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "apps/v1/deployments": {
        "spec": {
            "replicas": 2,
            "selector": SELECTOR,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"},
            },
            "template": TEMPLATE,
        }
    },
    "apps/v1/replicasets": {"spec": {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}},
    "apps/v1/statefulsets": {
        "spec": {
            "replicas": 1,
            "serviceName": "s",
            "selector": SELECTOR,
            "template": TEMPLATE,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "data"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                }
            ],
        }
    },
    "events.k8s.io/v1/events": {
        "metadata": {"name": "y"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested",
        "action": "Test",
        "type": "Normal",
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "a.b/c",
        "reportingInstance": "i",
        "note": "n",
        "series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:20.000000Z"},
    },
    "autoscaling/v2/horizontalpodautoscalers": {
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": _METRIC}},
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": "rps", "selector": SELECTOR},
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                },
            ],
            "behavior": {
                "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
            },
        }
    },
    "autoscaling/v1/horizontalpodautoscalers": {
        "metadata": {"name": "y"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 50,
        },
    },
    "batch/v1/cronjobs": {
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": _JOB},
        }
    },
    "batch/v1/jobs": {"spec": _JOB},
    "certificates.k8s.io/v1/certificatesigningrequests": {
        "spec": {
            "request": signing_request(),
            "signerName": "example.com/s",
            "usages": ["client auth"],
        }
    },
    "networking.k8s.io/v1/ingressclasses": {
        "spec": {"controller": "a.b/c", "parameters": {"kind": "K", "name": "n"}}
    },
    "networking.k8s.io/v1/ingresses": {
        "spec": {
            "rules": [
                {
                    "host": "a.b",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
            "tls": [{"hosts": ["a.b"], "secretName": "s"}],
        }
    },
    "networking.k8s.io/v1/ipaddresses": {
        "metadata": {"name": "10.1.2.3"},
        "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}},
    },
    "networking.k8s.io/v1/networkpolicies": {
        "spec": {
            "podSelector": SELECTOR,
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"podSelector": SELECTOR}, {"ipBlock": {"cidr": "10.0.0.0/8"}}],
                    "ports": [{"port": 80, "protocol": "TCP"}],
                }
            ],
        }
    },
    "networking.k8s.io/v1/servicecidrs": {"spec": {"cidrs": ["10.99.0.0/16"]}},
    "policy/v1/poddisruptionbudgets": {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    "rbac.authorization.k8s.io/v1/clusterrolebindings": {
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": _SUBJECTS,
    },
    "rbac.authorization.k8s.io/v1/clusterroles": {
        "rules": [_RULE, {"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "aggregationRule": {"clusterRoleSelectors": [SELECTOR]},
    },
    "rbac.authorization.k8s.io/v1/rolebindings": {
        "roleRef": {"kind": "Role", "name": "x"},
        "subjects": _SUBJECTS,
    },
    "rbac.authorization.k8s.io/v1/roles": {"rules": [_RULE, _RULE]},
    "storage.k8s.io/v1/csidrivers": {
        "spec": {"tokenRequests": [{"audience": "a"}], "volumeLifecycleModes": ["Persistent"]}
    },
    "storage.k8s.io/v1/csinodes": {
        "spec": {
            "drivers": [
                {
                    "name": "a.b",
                    "nodeID": "n",
                    "topologyKeys": ["k"],
                    "allocatable": {"count": 3},
                }
            ]
        }
    },
    "storage.k8s.io/v1/csistoragecapacities": {
        "storageClassName": "s",
        "capacity": "1Gi",
        "nodeTopology": SELECTOR,
    },
    "storage.k8s.io/v1/storageclasses": {
        "provisioner": "a.b/c",
        "parameters": {"a": "b"},
        "mountOptions": ["ro"],
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "storage.k8s.io/v1/volumeattachments": {
        "spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "x"}}
    },
    "storage.k8s.io/v1/volumeattributesclasses": {
        "driverName": "a.b",
        "parameters": {"a": "b"},
    },
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicies": {
        "spec": {
            "matchConstraints": _MATCH,
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": "Object{}"},
                }
            ],
            "variables": [{"name": "v", "expression": "1"}],
            "reinvocationPolicy": "Never",
            "failurePolicy": "Ignore",
        }
    },
    "admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings": {
        "spec": {"policyName": "x", "matchResources": _MATCH}
    },
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": {"webhooks": [_WEBHOOK]},
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies": {
        "spec": {
            "matchConstraints": _MATCH,
            "validations": [{"expression": "true", "message": "m"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "'a'"}],
            "matchConditions": [{"name": "m", "expression": "true"}],
            "variables": [{"name": "v", "expression": "1"}],
            "failurePolicy": "Ignore",
        }
    },
    "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings": {
        "spec": {
            "policyName": "x",
            "validationActions": ["Deny"],
            "matchResources": _MATCH,
        }
    },
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {"webhooks": [_WEBHOOK]},
    "apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "xs.none.example.com"},
        "spec": {
            "group": "none.example.com",
            "names": {"plural": "xs", "kind": "X", "listKind": "XList", "shortNames": ["y"]},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {
                                        "n": {"type": "integer", "default": 3, "nullable": True},
                                        "e": {"type": "string", "enum": ["a", "b"]},
                                    },
                                    "required": ["n"],
                                }
                            },
                        }
                    },
                    "additionalPrinterColumns": [
                        {"name": "N", "type": "integer", "jsonPath": ".spec.n"}
                    ],
                    "subresources": {"status": {}},
                }
            ],
        },
    },
    "scheduling.k8s.io/v1/priorityclasses": {"value": 1, "description": "d"},
    "coordination.k8s.io/v1/leases": {
        "spec": {
            "holderIdentity": "h",
            "leaseDurationSeconds": 15,
            "renewTime": "2023-11-14T22:13:20.000000Z",
        }
    },
    "node.k8s.io/v1/runtimeclasses": {
        "handler": "runc",
        "overhead": {"podFixed": {"cpu": "1m"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]},
    },
    "discovery.k8s.io/v1/endpointslices": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "nodeName": "n"}],
        "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    },
    "resource.k8s.io/v1/deviceclasses": {
        "spec": {
            "selectors": [{"cel": {"expression": "true"}}],
            "config": [{"opaque": {"driver": "a.b", "parameters": {"a": 1}}}],
        }
    },
    "resource.k8s.io/v1/resourceclaims": {"spec": {"devices": _DEVICES}},
    "resource.k8s.io/v1/resourceclaimtemplates": {
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": _DEVICES}}
    },
    "resource.k8s.io/v1/resourceslices": {
        "spec": {
            "driver": "a.b",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "d",
                    "attributes": {"model": {"string": "m"}},
                    "capacity": {"memory": {"value": "1Gi"}},
                    "taints": [{"key": "k", "effect": "NoSchedule"}],
                }
            ],
        }
    },
    "flowcontrol.apiserver.k8s.io/v1/flowschemas": {
        "spec": {
            "priorityLevelConfiguration": {"name": "global-default"},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "u"}}],
                    "resourceRules": [
                        {
                            "verbs": ["get"],
                            "apiGroups": [""],
                            "resources": ["pods"],
                            "namespaces": ["default"],
                        }
                    ],
                }
            ],
        }
    },
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": {
        "spec": {
            "type": "Limited",
            "limited": {
                "limitResponse": {
                    "type": "Queue",
                    "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
                }
            },
        }
    },
}
"""By group version and plural, without type, and without name where it is ``x``."""

STATUSES: Final[Mapping[str, Object]] = {
    "v1/namespaces": {"phase": "Active", "conditions": [_timed("C")]},
    "v1/nodes": EVERY_KIND["v1/nodes"]["status"],
    "v1/persistentvolumeclaims": {
        "phase": "Pending",
        "capacity": {"storage": "1Gi"},
        "conditions": [_timed("Resizing")],
    },
    "v1/persistentvolumes": {"phase": "Available"},
    "v1/pods": {
        "phase": "Running",
        "conditions": [_timed("Ready"), _timed("PodScheduled", lastProbeTime=None)],
        "containerStatuses": [
            {
                "name": "c",
                "ready": True,
                "restartCount": 1,
                "image": "nginx",
                "imageID": "",
                "state": {"running": {"startedAt": TIME}},
                "lastState": {"terminated": {"exitCode": 1, "finishedAt": TIME}},
            }
        ],
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "g"}],
    },
    "v1/replicationcontrollers": {"replicas": 1, "conditions": [_timed("ReplicaFailure")]},
    "v1/resourcequotas": {"hard": {"pods": "1000"}, "used": {"pods": "1"}},
    "v1/services": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}, "conditions": [_timed("C")]},
    "apiregistration.k8s.io/v1/apiservices": {"conditions": [_timed()]},
    "apps/v1/daemonsets": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
        "conditions": [_timed("C")],
    },
    "apps/v1/deployments": {"replicas": 1, "conditions": [_timed(), _timed("Progressing")]},
    "apps/v1/replicasets": {"replicas": 1, "conditions": [_timed("ReplicaFailure")]},
    "apps/v1/statefulsets": {"replicas": 1, "conditions": [_timed("C")]},
    "autoscaling/v2/horizontalpodautoscalers": {
        "desiredReplicas": 1,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}
        ],
        "conditions": [_timed("AbleToScale")],
    },
    "autoscaling/v1/horizontalpodautoscalers": {"currentReplicas": 1, "desiredReplicas": 1},
    "batch/v1/cronjobs": {
        "active": [{"kind": "Job", "name": "j", "namespace": "default", "uid": "u"}],
        "lastScheduleTime": TIME,
    },
    "batch/v1/jobs": {
        "active": 1,
        "startTime": TIME,
        "conditions": [_timed("Suspended", lastProbeTime=TIME)],
        "uncountedTerminatedPods": {"succeeded": ["u"]},
    },
    "certificates.k8s.io/v1/certificatesigningrequests": {"conditions": [_timed("Failed")]},
    "networking.k8s.io/v1/ingresses": {
        "loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ports": [{"port": 1, "protocol": "TCP"}]}]}
    },
    "networking.k8s.io/v1/servicecidrs": {"conditions": [_timed("Ready")]},
    "policy/v1/poddisruptionbudgets": {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
        "disruptedPods": {"p": TIME},
        "conditions": [_timed("DisruptionAllowed", observedGeneration=1)],
    },
    "storage.k8s.io/v1/volumeattachments": {
        "attached": True,
        "attachmentMetadata": {"a": "b"},
        "attachError": {"message": "m", "time": TIME},
    },
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies": {
        "observedGeneration": 1,
        "conditions": [_timed("C")],
        "typeChecking": {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]},
    },
    "apiextensions.k8s.io/v1/customresourcedefinitions": {
        "storedVersions": ["v1"],
        "acceptedNames": {"plural": "xs", "kind": "X"},
        "conditions": [_timed("Established")],
    },
    "resource.k8s.io/v1/resourceclaims": {
        "allocation": {
            "devices": {
                "results": [{"request": "r", "driver": "a.b", "pool": "p", "device": "d"}],
                "config": [{"source": "FromClaim", "requests": ["r"],
                            "opaque": {"driver": "a.b", "parameters": {"a": 1}}}],
            },
            "nodeSelector": {"nodeSelectorTerms": [_TERM]},
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {"driver": "a.b", "pool": "p", "device": "d", "conditions": [_timed("Ready")]}
        ],
    },
    "flowcontrol.apiserver.k8s.io/v1/flowschemas": {"conditions": [_timed("Dangling")]},
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": {"conditions": [_timed("C")]},
}  # fmt: skip
"""What a controller might write as the status of those kinds that have one."""


def named(key: str) -> Object:
    """Return a copy of the object of a kind with its name."""
    obj = EVERY_KIND[key]
    return {**obj, "metadata": {"name": "x", **obj.get("metadata", {}), **META}}


META: Final = {"labels": {"app": "web"}, "annotations": {"a": "b"}, "finalizers": ["a.b/c"]}
