"""Values that the chart is rendered with: each mode with each preset, and what can be switched."""

from typing import Any, Final

from tests.helm.rendering import Values, merge

MODES: Final = ("second-scheduler", "scheduler", "extender", "simulator", "shadow")
PRESETS: Final = ("default", "binpack", "spread")

NEEDED: Final[dict[str, Values]] = {"extender": {"extender": {"clientCA": {"secretName": "ca"}}}}
"""What a mode cannot do without."""

WITH_EXTENDERS: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: {{ include "berth.schedulerName" . }}
extenders:
  - urlPrefix: https://one.example.com:8443/api
    filterVerb: filter
  - urlPrefix: http://two.example.com
    filterVerb: filter
"""

EVERYTHING: Final[Values] = {
    "config": WITH_EXTENDERS,
    "replicaCount": 3,
    "plugins": {
        "files": {"my_plugin.py": '"""A plugin."""\n\nNAME = "{{ not a template }}"\n'},
        "configMaps": ["more-plugins"],
        "pip": {"requirements": ["one==1.0", "two==2.0"]},
    },
    "imagePullSecrets": [{"name": "registry"}],
    "commonLabels": {"team": "platform"},
    "serviceAccount": {"annotations": {"example.com/role": "scheduler"}},
    "rbac": {
        "metricsReaders": [
            {"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}
        ],
        "users": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "platform"}],
    },
    "ui": {"enabled": True},
    "recording": {
        "enabled": True,
        "volume": {"persistentVolumeClaim": {"claimName": "recordings"}},
    },
    "tls": {"source": "secret", "secretName": "serving"},
    "service": {"clusterIP": "10.96.0.77", "annotations": {"a": "b"}},
    "serviceMonitor": {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "tlsConfig": {"insecureSkipVerify": True},
        "relabelings": [{"sourceLabels": ["__meta_x"], "targetLabel": "x"}],
        "metricRelabelings": [{"action": "drop", "regex": "go_.*", "sourceLabels": ["__name__"]}],
    },
    "prometheusRule": {
        "enabled": True,
        "runbookUrl": "https://docs.example.com/operations.html",
        "labels": {"release": "prometheus"},
    },
    "dashboard": {"enabled": True, "annotations": {"folder": "berth"}},
    "networkPolicy": {
        "from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "apiServer": {"cidrs": ["10.0.0.1/32", "fd00::1/128"]},
        "extraEgress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}],
    },
    "priorityClassName": "high",
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}},
    "dnsPolicy": "Default",
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "podLabels": {"pod": "label"},
    "podAnnotations": {"pod": "annotation"},
    "deploymentAnnotations": {"deployment": "annotation"},
    "verbosity": 4,
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "volumes": [{"name": "extra", "emptyDir": {}}],
    "volumeMounts": [{"name": "extra", "mountPath": "/extra"}],
}
CERT_MANAGER: Final[Values] = {
    "tls": {"source": "cert-manager", "certManager": {"issuerRef": {"name": "issuer"}}},
    "serviceMonitor": {"enabled": True, "tlsConfig": {}},
}
MINIMAL: Final[Values] = {
    "replicaCount": 1,
    "leaderElection": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "rbac": {"create": False},
    "serviceAccount": {"create": False, "name": "made-by-hand"},
}


def of_mode(mode: str, values: Values | None = None) -> dict[str, Any]:
    return merge(merge({"mode": mode}, NEEDED.get(mode, {})), values or {})


CASES: Final[dict[str, Values]] = {
    **{
        f"{mode}, preset {preset}": of_mode(mode, {"preset": preset})
        for mode in MODES
        for preset in PRESETS
    },
    **{f"{mode}, everything": of_mode(mode, EVERYTHING) for mode in MODES},
    **{f"{mode}, minimal": of_mode(mode, MINIMAL) for mode in MODES},
    "cert-manager": of_mode("scheduler", CERT_MANAGER),
    "extender, cert-manager": of_mode("extender", {"tls": CERT_MANAGER["tls"]}),
    "extender, tokens": {
        "mode": "extender",
        "extender": {"tokens": True},
        "rbac": EVERYTHING["rbac"]
        | {"extenderClients": [{"kind": "ServiceAccount", "name": "x", "namespace": "y"}]},
        "serviceMonitor": {"enabled": True, "tlsConfig": {"insecureSkipVerify": True}},
    },
    "extender, open": {
        "mode": "extender",
        "extender": {"allowUnauthenticated": True, "bind": False},
        "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}},
    },
    "monitored unverified": {
        "serviceMonitor": {"enabled": True, "tlsConfig": {"insecureSkipVerify": True}}
    },
    "shards": {"shards": 64, "replicaCount": 4},
    "shards by pool": {
        "shards": 64,
        "shardLabel": "pool",
        "shardPools": ["canary", "gpu"],
        "shardPool": "canary",
    },
    "an image by digest": {"image": {"digest": f"sha256:{'0' * 64}"}},
}
"""By what they are."""
