"""What docs/extender.md has one write down, beside what the chart makes."""

import yaml

from berth.scheduler.config.load import load
from berth.scheduler.profile.build import args_models
from berth_plugins.registry import IN_TREE
from tests.docs.pages import DOCS, Page
from tests.helm.rendering import notes, of_kind, render

VALUES = {
    "mode": "extender",
    "extender": {"clientCA": {"secretName": "scheduler-ca"}},
    "tls": {"source": "secret", "secretName": "berth-tls"},
}
"""Those of the page's ``helm install``."""


def file(name: str) -> str:
    (block,) = (each for each in Page(DOCS / "extender.md").blocks() if each.file == name)
    return block.text


def test_the_rights_are_those_that_the_chart_grants() -> None:
    (page,) = of_kind(list(yaml.safe_load_all(file("rights.yaml"))), "ClusterRole")
    (chart,) = of_kind(render(VALUES), "ClusterRole")
    assert page["rules"] == chart["rules"]


def test_the_extenders_are_those_of_the_charts_notes_but_for_the_profile() -> None:
    models = args_models(IN_TREE)
    (page,) = load(file("scheduler.yaml"), source="page", args_models=models).extenders
    said = notes(VALUES)
    start = said.index("  extenders:\n")
    block = yaml.safe_load(said[start : said.index("\n\n", start)])
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    text = yaml.safe_dump({**header, **block})
    (chart,) = load(text, source="notes", args_models=models).extenders
    assert page.tls_config is not None
    assert chart.tls_config is not None
    of_release = {
        "url_prefix": page.url_prefix,
        "weight": page.weight,
        "tls_config": chart.tls_config.model_copy(update={"server_name": ""}),
    }
    assert page == chart.model_copy(update=of_release)
    named = chart.tls_config.server_name.replace("release-berth.berth-system", "berth.berth")
    assert f"DNS:{named}," in Page(DOCS / "extender.md").text
    assert f"//{named}:" in page.url_prefix
