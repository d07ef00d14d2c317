"""Values: each is documented, and what makes no sense is refused by the name of the field."""

import re
from typing import Final

import pytest

from tests.helm.cases import CASES, of_mode
from tests.helm.rendering import (
    CHART,
    Object,
    RenderError,
    Values,
    default_values,
    render,
    schema,
    schema_problem,
)

COMMENT: Final = re.compile(r"^ *# -- ")


def test_defaults_fit_the_schema() -> None:
    assert schema_problem(default_values()) == ""


def fields_of(part: Object) -> Object:
    """Return the fields that part of the schema has, by name; none where anything goes."""
    fields: Object = part.get("properties", {})
    return fields


def test_schema_and_values_have_the_same_fields() -> None:
    def compare(path: str, part: Object, value: object) -> None:
        fields = fields_of(part)
        if not fields:
            return
        assert part["additionalProperties"] is False, path
        assert isinstance(value, dict), path
        assert fields.keys() == value.keys(), path
        for name, field in fields.items():
            compare(f"{path}.{name}", field, value[name])

    compare("", schema(), {**default_values(), "global": {}})


def test_every_value_is_described() -> None:
    lines = (CHART / "values.yaml").read_text(encoding="utf-8").splitlines()
    described = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if COMMENT.match(line):
            described = True
        elif re.match(r" *\w+:", line):
            inner = len(following) - len(following.lstrip())
            is_group = line.endswith(":") and inner > len(line) - len(line.lstrip())
            assert described or is_group or _is_part_of_described(line), line
            described = False


def _is_part_of_described(line: str) -> bool:
    """Whether it is inside a value that is described as a whole."""
    name = line.split(":")[0].strip()
    whole = ("dashboard.labels", "podSecurityContext", "resources", "securityContext",
             "tls.certManager.issuerRef")  # fmt: skip
    values = default_values()
    for path in whole:
        part = values
        for step in path.split("."):
            part = part[step]
        if name in part:
            return True
    return False


def test_the_readme_names_every_group_of_values() -> None:
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    missing = [name for name in default_values() if f"`{name}" not in readme]
    assert missing == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        pytest.param({"mode": "second"}, "mode", id="no such mode"),
        pytest.param({"preset": "dense"}, "preset", id="no such preset"),
        pytest.param({"modes": "extender"}, "modes", id="a field that is not there"),
        pytest.param({"tls": {"secret": "x"}}, "tls", id="a field inside that is not there"),
        pytest.param({"replicaCount": "2"}, "replicaCount", id="a text for a number"),
        pytest.param({"leaderElection": {"leaseDuration": "15"}}, "leaderElection.leaseDuration",
                     id="a duration without a unit"),
        pytest.param({"plugins": {"files": {"my-plugin.py": ""}}}, "plugins.files",
                     id="a file that is no module"),
        pytest.param({"image": {"digest": "abc"}}, "image.digest", id="no digest"),
        pytest.param({"strategy": {"type": "Rolling"}}, "strategy.type", id="no such strategy"),
        pytest.param({"dnsPolicy": "Cluster"}, "dnsPolicy", id="no such policy"),
        pytest.param({"prometheusRule": {"runbookUrl": "docs/operations.md"}},
                     "prometheusRule.runbookUrl", id="a link that leads nowhere"),
        pytest.param({"networkPolicy": {"apiServer": {"cidrs": ["10.0.0.1"]}}},
                     "networkPolicy.apiServer.cidrs.0", id="an address that is no CIDR"),
        pytest.param({"rbac": {"users": [{"name": "x"}]}}, "rbac.users.0",
                     id="a subject without a kind"),
        pytest.param({"extraArgs": ["v=4"]}, "extraArgs.0", id="an argument that is no flag"),
        pytest.param({"podDisruptionBudget": {"maxUnavailable": 0}},
                     "podDisruptionBudget.maxUnavailable", id="a budget that blocks every drain"),
    ],
)  # fmt: skip
def test_values_that_the_schema_refuses(values: Values, field: str) -> None:
    with pytest.raises(RenderError) as caught:
        render(values)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"schedulerName": "default-scheduler"}, "schedulerName: default-scheduler is",
                     id="two schedulers of one name"),
        pytest.param({"config": "x: y", "preset": "spread"}, "preset: spread has no effect",
                     id="a preset and a configuration"),
        pytest.param({"leaderElection": {"enabled": False}}, "replicaCount: 2 replicas would all",
                     id="two schedulers at once"),
        pytest.param({"mode": "extender"}, "extender.clientCA.secretName: mode extender needs",
                     id="an extender for everybody"),
        pytest.param(of_mode("extender", {"serviceMonitor": {"enabled": True}}),
                     "serviceMonitor.tlsConfig: with extender.clientCA",
                     id="a monitor that would be turned away"),
        pytest.param({"mode": "extender", "extender": {"allowUnauthenticated": True}},
                     "networkPolicy.from: with extender.allowUnauthenticated whoever",
                     id="an extender that anybody reaches"),
        pytest.param({"serviceMonitor": {"enabled": True}},
                     "serviceMonitor.tlsConfig: Prometheus would show its token to whoever",
                     id="a token for whoever answers"),
        pytest.param({"mode": "extender", "extender": {"tokens": True},
                      "serviceMonitor": {"enabled": True}},
                     "serviceMonitor.tlsConfig: Prometheus would show its token to whoever",
                     id="the same of an extender"),
        pytest.param({"image": {"repository": ""}}, "image.repository: the image is published",
                     id="an image that is nowhere"),
        pytest.param({"replicaCount": 1, "leaderElection": {"enabled": False},
                      "strategy": {"type": "RollingUpdate"}}, "strategy.type: RollingUpdate runs",
                     id="an old and a new scheduler at once"),
        pytest.param({"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
                     "strategy.rollingUpdate: has no effect", id="details of another strategy"),
        pytest.param({"tls": {"source": "cert-manager"}}, "tls.certManager.issuerRef.name: who",
                     id="a certificate of nobody"),
        pytest.param({"tls": {"source": "secret"}}, "tls.secretName: which one",
                     id="a Secret without a name"),
        pytest.param({"serviceAccount": {"create": False}}, "serviceAccount.name: which one",
                     id="a service account without a name"),
    ],
)  # fmt: skip
def test_values_that_contradict_each_other(values: Values, message: str) -> None:
    with pytest.raises(RenderError) as caught:
        render(values)
    assert message in str(caught.value)


def test_commands_that_install_say_where_the_image_is() -> None:
    root = CHART.parents[1]
    pages = [root / "README.md", CHART / "README.md", *sorted((root / "docs").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    commands = re.findall(r"helm install \S+ helm/berth[^`\n]*", text)
    assert len(commands) > 5
    assert [command for command in commands if "--set image.repository=" not in command] == []


def test_it_is_told_how_the_image_is_made() -> None:
    with pytest.raises(RenderError) as caught:
        render({"image": {"repository": "", "tag": "2.0"}})
    assert "docker build --tag REGISTRY/berth:2.0 . && docker push" in str(caught.value)
    assert "--set image.repository=REGISTRY/berth" in str(caught.value)


def test_all_cases_are_right() -> None:
    for values in CASES.values():
        assert schema_problem({**default_values(), **values}) == ""
