"""The configuration and the flags that the chart renders are those that berth understands."""

import logging
from pathlib import Path

import pytest
import yaml

from berth import cli
from berth.kube.client.connect import ConnectError
from berth.runtime.errors import UserError
from berth.scheduler.config.load import load
from berth.scheduler.profile.build import args_models, check_profiles
from berth_plugins.registry import IN_TREE
from tests.builders import node, pod, service
from tests.harness import Harness
from tests.helm.cases import CASES, EVERYTHING, of_mode
from tests.helm.rendering import Values, deployment, notes, of_kind, render, walk

all_cases = pytest.mark.parametrize(
    "values", [pytest.param(values, id=name) for name, values in CASES.items()]
)


def configuration(values: Values) -> str:
    [found] = [
        each for each in of_kind(render(values), "ConfigMap") if "config.yaml" in each["data"]
    ]
    text: str = found["data"]["config.yaml"]
    return text


@all_cases
def test_berth_reads_the_configuration(values: Values) -> None:
    config = load(configuration(values), source="config.yaml", args_models=args_models(IN_TREE))
    check_profiles(config, IN_TREE)
    second = values.get("mode", "second-scheduler") == "second-scheduler"
    assert [p.scheduler_name for p in config.profiles] == [
        "berth" if second else "default-scheduler"
    ]


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "profiles: [{schedulerName: {{ .Release.Name }}-own}]",
            id="a text with templates",
        ),
        pytest.param(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"schedulerName": "{{ .Release.Name }}-own"}],
            },
            id="YAML with templates",
        ),
    ],
)
def test_a_configuration_of_ones_own(config: object) -> None:
    text = configuration({"config": config})
    assert yaml.safe_load(text)["profiles"] == [{"schedulerName": "release-own"}]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(values, id=name)
        for name, values in CASES.items()
        if values.get("preset", "default") == "default"
    ],
)
def test_berth_understands_the_flags(
    values: Values, tmp_path: Path, root_logger: logging.Logger
) -> None:
    """It gets as far as looking for the API server of the cluster, which is not there."""
    [container] = deployment(render(values))["spec"]["template"]["spec"]["containers"]
    files = {"/etc/berth/config/config.yaml": configuration(values)}
    command, *flags = container["args"]
    for folder in ("config", "plugins"):
        (tmp_path / "etc/berth" / folder).mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / name.removeprefix("/")).write_text(text, encoding="utf-8")
    with pytest.raises(ConnectError, match="this is not a pod of a cluster"):
        cli.execute(command, [flag.replace("=/etc/", f"={tmp_path}/etc/") for flag in flags])


async def placed_by(preset: str) -> list[str]:
    """Place three pods of a service on two nodes, one of which has a pod of it already."""
    text = configuration(of_mode("scheduler", {"preset": preset}))
    harness = Harness(config=yaml.safe_load(text))
    harness.put(node("n0", cpu="16", zone="a"), node("n1", cpu="16", zone="b"))
    harness.cluster.listers.services.on_add(service("web", selects={"app": "web"}))
    harness.put(pod("old", cpu="1", labels={"app": "web"}, node="n0"))
    harness.put(*(pod(f"new-{i}", cpu="1", labels={"app": "web"}) for i in range(3)))
    await harness.until_idle()
    return sorted(node for name, node in harness.placements().items() if name != "old")


@pytest.mark.parametrize(
    ("preset", "nodes"),
    [
        pytest.param("binpack", ["n0", "n0", "n0"], id="binpack fills the node that is in use"),
        pytest.param("spread", ["n0", "n1", "n1"], id="spread has two on each in the end"),
    ],
)
async def test_presets_do_what_they_say(preset: str, nodes: list[str]) -> None:
    assert await placed_by(preset) == nodes


@pytest.mark.parametrize("mode", ["second-scheduler", "scheduler", "simulator", "shadow"])
def test_commands_in_the_notes_are_understood(mode: str) -> None:
    """They get as far as reading files, which are not there."""
    commands = [line.split() for line in notes(of_mode(mode)).splitlines() if "berth " in line]
    commands = [words for words in commands if words[0] == "berth"]
    assert len(commands) == (3 if mode in ("simulator", "shadow") else 2)
    for _, command, *arguments in commands:
        arguments[arguments.index("--kubeconfig") + 1] = "/nowhere/config"
        with pytest.raises(UserError, match=r"(?i)no such file"):
            cli.execute(command, arguments)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(of_mode("extender"), id="a client CA, and a self-signed certificate"),
        pytest.param(of_mode("extender", EVERYTHING), id="everything"),
        pytest.param(CASES["extender, open"], id="open, and without binding"),
    ],
)
def test_the_block_in_the_notes_is_one_for_kube_scheduler(values: Values) -> None:
    said = notes(values)
    start = said.index("  extenders:\n")
    block = yaml.safe_load(said[start : said.index("\n\n", start)])
    text = yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **block,
        }
    )
    [found] = load(text, source="notes", args_models=args_models(IN_TREE)).extenders
    [berth] = of_kind(render(values), "Service")
    [port] = berth["spec"]["ports"]
    host = berth["spec"].get("clusterIP", "release-berth.berth-system.svc")
    assert found.url_prefix == f"{port['name']}://{host}:{port['port']}/extender"
    binds = any(
        "pods/binding" in value
        for role in of_kind(render(values), "ClusterRole")
        for _, value in walk(role["rules"])
        if isinstance(value, list)
    )
    assert bool(found.bind_verb) is binds
