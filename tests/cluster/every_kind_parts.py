"""What objects of several kinds have in common, for :mod:`tests.cluster.every_kind`."""

from base64 import b64encode
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
TERM: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
POD_TERM: Final = {
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
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": TERM}],
        },
        "podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": POD_TERM}
            ]
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM]},
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
JOB_POD: Final = {**POD_SPEC, "restartPolicy": "Never"}
TEMPLATE: Final = {"metadata": {"labels": SELECTED, "annotations": {"a": "b"}}, "spec": POD_SPEC}
JOB: Final = {
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
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": JOB_POD},
}
METRIC: Final = {"type": "Utilization", "averageUtilization": 50}
DEVICES: Final = {
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
VOLUME_SELECTOR: Final = {
    "required": {"nodeSelectorTerms": [TERM]},
}
RULE: Final = {
    "verbs": ["get", "list"],
    "apiGroups": [""],
    "resources": ["pods"],
    "resourceNames": ["a"],
}
SUBJECTS: Final = [
    {"kind": "User", "name": "alice"},
    {"kind": "ServiceAccount", "name": "a", "namespace": "default"},
]
WEBHOOK: Final = {
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
MATCH: Final = {
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


def condition(type_: str = "Available", **more: Any) -> Object:
    return {"type": type_, "status": "True", "reason": "R", "message": "m", **more}


def timed(type_: str = "Available", **more: Any) -> Object:
    return condition(type_, lastTransitionTime=TIME, **more)
