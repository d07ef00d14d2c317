"""An object of each kind that is stored, valid and with many of its fields.

For tests that change every part of every kind.
"""

from collections.abc import Mapping
from typing import Final

from berth.cluster.resources import Object
from tests.cluster.every_kind_parts import (
    DEVICES,
    JOB,
    MATCH,
    METRIC,
    POD_SPEC,
    RULE,
    SELECTOR,
    SUBJECTS,
    TEMPLATE,
    TIME,
    VOLUME_SELECTOR,
    WEBHOOK,
    signing_request,
    timed,
)

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
            "conditions": [timed("Ready", lastHeartbeatTime=TIME)],
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
            "nodeAffinity": VOLUME_SELECTOR,
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
            "type": "LoadBalancer",
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
                {"type": "Resource", "resource": {"name": "cpu", "target": METRIC}},
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
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": JOB},
        }
    },
    "batch/v1/jobs": {"spec": JOB},
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
        "subjects": SUBJECTS,
    },
    "rbac.authorization.k8s.io/v1/clusterroles": {
        "rules": [RULE, {"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "aggregationRule": {"clusterRoleSelectors": [SELECTOR]},
    },
    "rbac.authorization.k8s.io/v1/rolebindings": {
        "roleRef": {"kind": "Role", "name": "x"},
        "subjects": SUBJECTS,
    },
    "rbac.authorization.k8s.io/v1/roles": {"rules": [RULE, RULE]},
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
            "matchConstraints": MATCH,
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
        "spec": {"policyName": "x", "matchResources": MATCH}
    },
    "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": {"webhooks": [WEBHOOK]},
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies": {
        "spec": {
            "matchConstraints": MATCH,
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
            "matchResources": MATCH,
        }
    },
    "admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {"webhooks": [WEBHOOK]},
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
    "resource.k8s.io/v1/resourceclaims": {"spec": {"devices": DEVICES}},
    "resource.k8s.io/v1/resourceclaimtemplates": {
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": {"devices": DEVICES}}
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
    "resource.k8s.io/v1/devicetaintrules": {
        "spec": {
            "deviceSelector": {"driver": "a.b", "pool": "p", "device": "d"},
            "taint": {"key": "k", "value": "v", "effect": "NoSchedule"},
        }
    },
    "certificates.k8s.io/v1/clustertrustbundles": {"spec": {"trustBundle": "PEM"}},
    "certificates.k8s.io/v1/podcertificaterequests": {
        "spec": {
            "signerName": "a.b/c",
            "podName": "p",
            "podUID": "u",
            "serviceAccountName": "default",
            "serviceAccountUID": "u",
            "nodeName": "n",
            "nodeUID": "u",
            "stubPKCS10Request": "AAAA",
            "unverifiedUserAnnotations": {"a.b/c": "d"},
        }
    },
    "storagemigration.k8s.io/v1/storageversionmigrations": {
        "spec": {"resource": {"group": "apps", "resource": "deployments"}}
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


def named(key: str) -> Object:
    """Return a copy of the object of a kind with its name."""
    obj = EVERY_KIND[key]
    return {**obj, "metadata": {"name": "x", **obj.get("metadata", {}), **META}}


META: Final = {"labels": {"app": "web"}, "annotations": {"a": "b"}, "finalizers": ["a.b/c"]}
