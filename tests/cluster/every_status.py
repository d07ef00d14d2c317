"""What a controller might write as the status of each kind that has one."""

from collections.abc import Mapping
from typing import Final

from berth.cluster.resources import Object
from tests.cluster.every_kind import EVERY_KIND
from tests.cluster.every_kind_parts import TERM, TIME, timed

STATUSES: Final[Mapping[str, Object]] = {
    "v1/namespaces": {"phase": "Active", "conditions": [timed("C")]},
    "v1/nodes": EVERY_KIND["v1/nodes"]["status"],
    "v1/persistentvolumeclaims": {
        "phase": "Pending",
        "capacity": {"storage": "1Gi"},
        "conditions": [timed("Resizing")],
    },
    "v1/persistentvolumes": {"phase": "Available"},
    "v1/pods": {
        "phase": "Running",
        "conditions": [timed("Ready"), timed("PodScheduled", lastProbeTime=None)],
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
    "v1/replicationcontrollers": {"replicas": 1, "conditions": [timed("ReplicaFailure")]},
    "v1/resourcequotas": {"hard": {"pods": "1000"}, "used": {"pods": "1"}},
    "v1/services": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}, "conditions": [timed("C")]},
    "apiregistration.k8s.io/v1/apiservices": {"conditions": [timed()]},
    "apps/v1/daemonsets": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
        "conditions": [timed("C")],
    },
    "apps/v1/deployments": {"replicas": 1, "conditions": [timed(), timed("Progressing")]},
    "apps/v1/replicasets": {"replicas": 1, "conditions": [timed("ReplicaFailure")]},
    "apps/v1/statefulsets": {"replicas": 1, "conditions": [timed("C")]},
    "autoscaling/v2/horizontalpodautoscalers": {
        "desiredReplicas": 1,
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}
        ],
        "conditions": [timed("AbleToScale")],
    },
    "autoscaling/v1/horizontalpodautoscalers": {"currentReplicas": 1, "desiredReplicas": 1},
    "batch/v1/cronjobs": {
        "active": [{"kind": "Job", "name": "j", "namespace": "default", "uid": "u"}],
        "lastScheduleTime": TIME,
    },
    "batch/v1/jobs": {
        "active": 1,
        "startTime": TIME,
        "conditions": [timed("Suspended", lastProbeTime=TIME)],
        "uncountedTerminatedPods": {"succeeded": ["u"]},
    },
    "certificates.k8s.io/v1/certificatesigningrequests": {"conditions": [timed("Failed")]},
    "certificates.k8s.io/v1/podcertificaterequests": {"conditions": [timed("Issued")]},
    "resource.k8s.io/v1/devicetaintrules": {"conditions": [timed("EvictionInProgress")]},
    "storagemigration.k8s.io/v1/storageversionmigrations": {"conditions": [timed("Running")]},
    "networking.k8s.io/v1/ingresses": {
        "loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ports": [{"port": 1, "protocol": "TCP"}]}]}
    },
    "networking.k8s.io/v1/servicecidrs": {"conditions": [timed("Ready")]},
    "policy/v1/poddisruptionbudgets": {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
        "disruptedPods": {"p": TIME},
        "conditions": [timed("DisruptionAllowed", observedGeneration=1)],
    },
    "storage.k8s.io/v1/volumeattachments": {
        "attached": True,
        "attachmentMetadata": {"a": "b"},
        "attachError": {"message": "m", "time": TIME},
    },
    "admissionregistration.k8s.io/v1/validatingadmissionpolicies": {
        "observedGeneration": 1,
        "conditions": [timed("C")],
        "typeChecking": {"expressionWarnings": [{"fieldRef": "f", "warning": "w"}]},
    },
    "apiextensions.k8s.io/v1/customresourcedefinitions": {
        "storedVersions": ["v1"],
        "acceptedNames": {"plural": "xs", "kind": "X"},
        "conditions": [timed("Established")],
    },
    "resource.k8s.io/v1/resourceclaims": {
        "allocation": {
            "devices": {
                "results": [{"request": "r", "driver": "a.b", "pool": "p", "device": "d"}],
                "config": [{"source": "FromClaim", "requests": ["r"],
                            "opaque": {"driver": "a.b", "parameters": {"a": 1}}}],
            },
            "nodeSelector": {"nodeSelectorTerms": [TERM]},
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        "devices": [
            {"driver": "a.b", "pool": "p", "device": "d", "conditions": [timed("Ready")]}
        ],
    },
    "flowcontrol.apiserver.k8s.io/v1/flowschemas": {"conditions": [timed("Dangling")]},
    "flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": {"conditions": [timed("C")]},
}  # fmt: skip
"""By group version and plural."""
