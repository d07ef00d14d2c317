"""What the chart renders is right by the schemas of Kubernetes, and fits together."""

import json
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.helm.cases import CASES, CERT_MANAGER, EVERYTHING, MODES, of_mode
from tests.helm.rendering import (
    CHART,
    Object,
    Values,
    default_values,
    deployment,
    merge,
    notes,
    of_kind,
    render,
    render_texts,
    walk,
)
from tests.kubernetes_schemas import validate

RELEASE: Final = "1.36"
"""The Kubernetes that berth follows."""
OLDEST: Final = "1.34"
"""What the chart says it needs."""
CUSTOM: Final = {
    "Certificate": {"secretName", "dnsNames", "issuerRef"},
    "PrometheusRule": {"groups"},
    "ServiceMonitor": {"endpoints", "selector"},
}
"""Kinds that Kubernetes has no schemas of, and what their specs need."""
IN_CLUSTERS: Final = {
    "Secret": {"ca", "registry", "serving", "release-berth-tls"},
    "ConfigMap": {"more-plugins"},
}
"""What the values of the cases name and other parties make."""

all_cases = pytest.mark.parametrize(
    "values",
    [pytest.param(values, id=name) for name, values in CASES.items()],
    scope="module",  # so that all tests of a case, which is rendered once, follow each other
)


@all_cases
def test_every_object_has_the_shape_that_kubernetes_wants(values: Values) -> None:
    for obj in render(values):
        if obj["kind"] in CUSTOM:
            assert CUSTOM[obj["kind"]] <= obj["spec"].keys()
        else:
            validate(obj, RELEASE)


@pytest.mark.parametrize("mode", MODES)
def test_the_oldest_kubernetes_knows_all_of_it(mode: str) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["kubeVersion"] == f">={OLDEST}.0-0"
    for obj in render(of_mode(mode, EVERYTHING)):
        if obj["kind"] not in CUSTOM:
            validate(obj, OLDEST)


@all_cases
def test_objects_have_names_of_their_own_and_the_labels(values: Values) -> None:
    objects = render(values)
    keys = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects]
    assert len(set(keys)) == len(keys)
    for obj in objects:
        labels = obj["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "berth"
        assert labels["app.kubernetes.io/instance"] == "release"
        assert labels.items() >= values.get("commonLabels", {}).items() or obj["kind"] == "Pod"
        is_global = obj["kind"].startswith("Cluster")
        assert ("namespace" in obj["metadata"]) is not is_global


@all_cases
def test_selectors_find_the_pods_of_berth_and_not_the_test(values: Values) -> None:
    objects = render(values)
    labels = deployment(objects)["spec"]["template"]["metadata"]["labels"]
    [test] = of_kind(objects, "Pod")
    selectors = [deployment(objects)["spec"]["selector"]["matchLabels"]]
    selectors += [each["spec"]["selector"] for each in of_kind(objects, "Service")]
    selectors += [
        each["spec"][field]["matchLabels"]
        for kind, field in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector"))
        for each in of_kind(objects, kind)
    ]
    for selector in selectors:
        assert selector.items() <= labels.items()
        assert not selector.items() <= test["metadata"]["labels"].items()
    [service] = of_kind(objects, "Service")
    for monitor in of_kind(objects, "ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= service["metadata"]["labels"].items()
        [endpoint] = monitor["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


@all_cases
def test_ports_lead_to_where_berth_listens(values: Values) -> None:
    objects = render(values)
    [container] = deployment(objects)["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    [service] = of_kind(objects, "Service")
    for port in service["spec"]["ports"]:
        assert ports[port["targetPort"]] == port["port"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["port"] in ports
        assert asked["scheme"].lower() == service["spec"]["ports"][0]["name"]
    for policy in of_kind(objects, "NetworkPolicy"):
        assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == ["serving"]
    flag = "--port" if values.get("mode") == "extender" else "--secure-port"
    assert f"{flag}={ports['serving']}" in container["args"]


@all_cases
def test_what_is_referred_to_is_there(values: Values) -> None:
    objects = render(values)
    spec = deployment(objects)["spec"]["template"]["spec"]
    made = {
        kind: {each["metadata"]["name"] for each in of_kind(objects, kind)}
        | IN_CLUSTERS.get(kind, set())
        for kind in ("ConfigMap", "Secret", "ServiceAccount")
    }
    for _, value in walk(spec):
        if isinstance(value, dict):
            if "configMap" in value:
                assert value["configMap"]["name"] in made["ConfigMap"]
            if "secret" in value:
                assert value["secret"]["secretName"] in made["Secret"]
    assert {secret["name"] for secret in spec.get("imagePullSecrets", [])} <= made["Secret"]
    account = merge(default_values(), values)["serviceAccount"]
    assert spec["serviceAccountName"] in (made["ServiceAccount"] or {account["name"]})
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        mounted = [mount["name"] for mount in container["volumeMounts"]]
        assert set(mounted) <= volumes
        assert len(set(mounted)) == len(mounted)
    folders = {m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    for argument in spec["containers"][0]["args"]:
        _, _, value = argument.partition("=")
        if value.startswith("/"):
            assert any(value == folder or value.startswith(f"{folder}/") for folder in folders)


def allowed_by_restricted(spec: Object) -> None:
    """Fail unless the Pod Security Standard "restricted" lets this pod run."""
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] != 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for volume in spec.get("volumes", ()):
        [kind] = volume.keys() - {"name"}
        assert kind in ("configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret")
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "procMount", "runAsUser", "seccompProfile"} & context.keys()
        assert not any("hostPort" in port for port in container.get("ports", ()))
        # More than the standard asks:
        assert context["readOnlyRootFilesystem"] is True


@all_cases
def test_pods_are_restricted_and_scheduled_by_default_scheduler(values: Values) -> None:
    objects = render(values)
    template = deployment(objects)["spec"]["template"]
    [test] = of_kind(objects, "Pod")
    for spec in (template["spec"], test["spec"]):
        allowed_by_restricted(spec)
        assert spec["schedulerName"] == "default-scheduler"
    assert test["spec"]["automountServiceAccountToken"] is False


def test_versions_are_those_of_the_project() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    [container] = deployment(render())["spec"]["template"]["spec"]["containers"]
    assert chart["appVersion"] == project["version"]
    assert container["image"] == f"registry.example.com/berth:{project['version']}"
    assert project["scripts"].keys() >= set(container["command"])


def test_pods_run_as_the_user_of_the_image() -> None:
    context = deployment(render())["spec"]["template"]["spec"]["securityContext"]
    user = f"USER {context['runAsUser']}:{context['runAsGroup']}"
    assert user in Path("Dockerfile").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("mode", "asked", "replicas", "budgets"),
    [("scheduler", 1, 1, 0), ("scheduler", 2, 2, 1), ("shadow", 2, 1, 0)],
)
def test_a_disruption_budget_needs_several_replicas(
    mode: str, asked: int, replicas: int, budgets: int
) -> None:
    objects = render(of_mode(mode, {"replicaCount": asked}))
    assert deployment(objects)["spec"]["replicas"] == replicas
    assert len(of_kind(objects, "PodDisruptionBudget")) == budgets


def test_extenders_of_the_configuration_can_be_reached() -> None:
    [policy] = of_kind(render(of_mode("scheduler", EVERYTHING)), "NetworkPolicy")
    ports = [
        (sorted({port["port"] for port in rule.get("ports", ())}), "to" in rule)
        for rule in policy["spec"]["egress"]
    ]
    assert ports == [
        ([53], False),
        ([443, 6443, 8443], True),
        ([8443], False),
        ([80], False),
        ([443], False),  # package indexes
        ([], True),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"preset": "spread"}, id="configuration"),
        pytest.param({"plugins": {"files": {"a.py": "# changed"}}}, id="plugins"),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_pods_stay_for_berth_reads_its_files_again(mode: str, changed: Values) -> None:
    values = of_mode(mode, {"plugins": {"files": {"a.py": ""}}})
    before, after = (
        deployment(render(each))["spec"]["template"] for each in (values, merge(values, changed))
    )
    assert before == after


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param({}, {"bearerTokenFile"}, id="its own token"),
        pytest.param(
            {"serviceMonitor": {"authorization": {"credentials": {"name": "t", "key": "token"}}}},
            {"authorization"},
            id="the token of a Secret",
        ),
        pytest.param(CASES["extender, open"], set(), id="nobody is asked who he is"),
        pytest.param(CASES["extender, tokens"], {"bearerTokenFile"}, id="tokens of an extender"),
    ],
)
def test_how_prometheus_says_who_it_is(values: Values, want: set[str]) -> None:
    [monitor] = of_kind(render(merge(CASES["monitored unverified"], values)), "ServiceMonitor")
    [endpoint] = monitor["spec"]["endpoints"]
    assert {"authorization", "bearerTokenFile"} & endpoint.keys() == want


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(
            CERT_MANAGER,
            {
                "serverName": "release-berth.berth-system.svc",
                "ca": {"secret": {"name": "release-berth-tls", "key": "ca.crt"}},
            },
            id="the authority is in the Secret",
        ),
        pytest.param({"serviceMonitor": {"tlsConfig": {"x": "y"}}}, {"x": "y"}, id="as given"),
    ],
)
def test_how_prometheus_trusts(values: Values, want: Object) -> None:
    [monitor] = of_kind(
        render(merge({"serviceMonitor": {"enabled": True}}, values)), "ServiceMonitor"
    )
    assert monitor["spec"]["endpoints"][0]["tlsConfig"] == want


NAMED: Final = {
    "metricsReaders": [
        {"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"},
        {"kind": "User", "name": "jane"},
    ],
    "users": [
        {"kind": "Group", "name": "system:serviceaccounts:platform"},
        {"kind": "ServiceAccount", "name": "other", "namespace": "monitoring"},
    ],
    "extenderClients": [{"kind": "ServiceAccount", "name": "x", "namespace": "schedulers"}],
}
OWN_NAMESPACE: Final[Object] = {"podSelector": {}}


def of_namespace(name: str) -> Object:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param({}, [OWN_NAMESPACE], id="nobody is named"),
        pytest.param(
            {"rbac": NAMED},
            [OWN_NAMESPACE, of_namespace("monitoring"), of_namespace("platform")],
            id="the namespaces of who may ask",
        ),
        pytest.param(
            {"rbac": NAMED, "networkPolicy": {"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}},
            [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
            id="who is given, and nobody else",
        ),
        pytest.param(of_mode("extender", {"rbac": NAMED}), None, id="it is not known where from"),
        pytest.param(
            of_mode(
                "extender",
                {"rbac": NAMED, "networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1/32"]}}},
            ),
            [
                OWN_NAMESPACE,
                of_namespace("monitoring"),
                of_namespace("schedulers"),
                {"ipBlock": {"cidr": "10.0.0.1/32"}},
            ],
            id="kube-scheduler is where the API server is",
        ),
    ],
)
def test_who_may_come_in(values: Values, want: list[Object] | None) -> None:
    objects = render(values)
    [policy] = of_kind(objects, "NetworkPolicy")
    [rule] = policy["spec"]["ingress"]
    [test] = of_kind(objects, "Pod")
    if want is None:
        assert "from" not in rule
        return
    *found, test_peer = rule["from"]
    assert found == want
    assert test_peer["podSelector"]["matchLabels"].items() <= test["metadata"]["labels"].items()


def test_no_manifest_has_the_password_of_an_extender_but_its_configuration() -> None:
    config = "extenders: [{urlPrefix: 'https://me:hunter2@one.example.com:8443/x'}]"
    text = render_texts({"config": config})
    assert "# https://one.example.com:8443" in text["networkpolicy.yaml"]
    assert {name for name, each in text.items() if "hunter2" in each} == {"configmap.yaml"}


def test_a_digest_wins_over_a_tag() -> None:
    digest = f"sha256:{'0' * 64}"
    objects = render(
        {"image": {"repository": "registry.example.com/b", "tag": "x", "digest": digest}}
    )
    [test] = of_kind(objects, "Pod")
    for spec in (deployment(objects)["spec"]["template"]["spec"], test["spec"]):
        assert [container["image"] for container in spec["containers"]] == [
            f"registry.example.com/b@{digest}"
        ]


@pytest.mark.parametrize("url", ["", "https://docs.example.com/operations.html"])
def test_alerts_are_passed_on_with_links_that_lead_somewhere(url: str) -> None:
    [rule] = of_kind(
        render({"prometheusRule": {"enabled": True, "runbookUrl": url}}), "PrometheusRule"
    )
    wanted = yaml.safe_load((CHART / "rules/alerts.yaml").read_text(encoding="utf-8"))
    for alert in (each for group in wanted["groups"] for each in group["rules"]):
        link = alert["annotations"].pop("runbook_url")
        if url:
            alert["annotations"]["runbook_url"] = f"{url}#{link.partition('#')[2]}"
    assert rule["spec"] == wanted


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(
            {},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            id="a standby is there all the time",
        ),
        pytest.param(
            {"hostNetwork": True},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            id="a new one needs the port of an old one",
        ),
        pytest.param(
            {"replicaCount": 1, "leaderElection": {"enabled": False}},
            {"type": "Recreate"},
            id="two would schedule at once",
        ),
        pytest.param(
            of_mode("simulator", {"leaderElection": {"enabled": False}}),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            id="two may answer at once",
        ),
        pytest.param(
            {"strategy": {"rollingUpdate": {"maxSurge": "25%"}}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            id="as the values say",
        ),
        pytest.param({"strategy": {"type": "Recreate"}}, {"type": "Recreate"}, id="by choice"),
    ],
)
def test_how_pods_are_replaced(values: Values, want: Object) -> None:
    found = deployment(render(values))
    validate(found, RELEASE)
    assert found["spec"]["strategy"] == want


@pytest.mark.parametrize(
    ("values", "is_on_host", "dns"),
    [
        ({}, False, "ClusterFirst"),
        ({"hostNetwork": True}, True, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, True, "Default"),
    ],
)
def test_the_network_of_pods(values: Values, is_on_host: bool, dns: str) -> None:
    found = deployment(render(values))
    validate(found, RELEASE)
    spec = found["spec"]["template"]["spec"]
    assert (spec.get("hostNetwork", False), spec["dnsPolicy"]) == (is_on_host, dns)


@pytest.mark.parametrize("volume", [{}, {"persistentVolumeClaim": {"claimName": "recordings"}}])
def test_where_a_scheduler_is_recorded(volume: Object) -> None:
    recording = {"enabled": True, "volume": volume, "keep": 2}
    found = deployment(render({"recording": recording}))
    validate(found, RELEASE)
    spec = found["spec"]["template"]["spec"]
    assert {"name": "recordings", **(volume or {"emptyDir": {}})} in spec["volumes"]
    [berth] = spec["containers"]
    [mount] = [
        volume_mount
        for volume_mount in berth["volumeMounts"]
        if volume_mount["name"] == "recordings"
    ]
    assert f"--record={mount['mountPath']}/$(POD_NAME).json.gz" in berth["args"]
    assert "--record-keep=2" in berth["args"]
    assert [each["name"] for each in berth["env"]] == ["POD_NAME"]


def test_every_container_has_a_limit_of_memory() -> None:
    objects = render(EVERYTHING)
    [test] = of_kind(objects, "Pod")
    for spec in (deployment(objects)["spec"]["template"]["spec"], test["spec"]):
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            assert "memory" in container["resources"]["limits"]
        in_memory = [v for v in spec.get("volumes", ()) if v.get("emptyDir", {}).get("medium")]
        assert all("sizeLimit" in volume["emptyDir"] for volume in in_memory)


def test_labels_of_targets_and_samples_can_be_changed() -> None:
    [monitor] = of_kind(render(EVERYTHING), "ServiceMonitor")
    [endpoint] = monitor["spec"]["endpoints"]
    for name in ("relabelings", "metricRelabelings"):
        assert endpoint[name] == EVERYTHING["serviceMonitor"][name]
    [plain] = of_kind(render(CERT_MANAGER), "ServiceMonitor")
    assert not {"relabelings", "metricRelabelings"} & plain["spec"]["endpoints"][0].keys()


def test_the_dashboard_is_passed_on_as_it_is() -> None:
    objects = render(EVERYTHING)
    [dashboard] = [each for each in of_kind(objects, "ConfigMap") if "berth.json" in each["data"]]
    wanted = (CHART / "dashboards/berth.json").read_text(encoding="utf-8")
    assert json.loads(dashboard["data"]["berth.json"]) == json.loads(wanted)
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


@pytest.mark.parametrize("mode", MODES)
def test_notes_name_what_is_there(mode: str) -> None:
    values = of_mode(mode)
    said = notes(values)
    names = {obj["metadata"]["name"] for obj in render(values)}
    for kind_and_name in re.findall(r"(?:deployment|service)/(\S+)", said):
        assert kind_and_name in names
    assert "helm test release -n berth-system" in said
    assert "{{" not in said


@pytest.mark.parametrize("digest", ["", f"sha256:{'0' * 64}"], ids=["tag", "digest"])
def test_notes_warn_of_an_image_that_can_move(digest: str) -> None:
    said = notes({"image": {"repository": "registry.example.com/b", "digest": digest}})
    assert ("Pin it with image.digest" in said) is (not digest)
