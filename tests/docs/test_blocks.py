"""The code, manifests and data that the pages show."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from berth.cluster.kubelet import configuration as kubelet_configuration
from berth.cluster.kubelet.stages import types as stages
from berth.cluster.kubelet.stages.load import from_object as stages_from
from berth.insight.whatif.question import Question
from berth.kube import manifests
from berth.scheduler.config.load import load
from berth.scheduler.profile.build import args_models, check_profiles
from berth.tools.autoscaler import node_groups
from berth.tools.lab import types as lab
from berth.tools.lab.load import LabFile
from berth.tools.up.scenario.load import ScenarioFile
from berth_plugins.registry import IN_TREE
from tests.docs.pages import ROOT, Block, blocks, pages
from tests.kubernetes_schemas import validate

SCHEDULER = "KubeSchedulerConfiguration"
SCENARIO = "Scenario"
RELEASE = "1.37"
KNOWN = {"console", "yaml", "python", "json", "text", "toml", "csv", "{include}", "{toctree}"}


def test_every_block_is_of_a_language_that_is_checked() -> None:
    assert {
        b.where: b.language for p in pages() for b in p.blocks() if b.language not in KNOWN
    } == {}


NODE_GROUP_KINDS = {
    node_groups.NODE_GROUP: node_groups.node_group,
    node_groups.CLUSTER_AUTOSCALER: node_groups.autoscaling_options,
}


def objects(block: Block) -> list[dict[str, Any]]:
    return list(manifests.parse(block.text, source=block.where))


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.where)
def test_yaml(block: Block, tmp_path: Path) -> None:
    if "values" in block.options:
        schema = json.loads((ROOT / "helm/berth/values.schema.json").read_text("utf-8"))
        jsonschema.validate(yaml.safe_load(block.text), schema)
        return
    found = objects(block)
    assert found
    if found[0]["kind"] == SCENARIO:
        path = tmp_path / "scenario.yaml"
        path.write_text(block.text, "utf-8")
        assert ScenarioFile(path).scenario.steps
        return
    if found[0]["kind"] == lab.KIND:
        path = tmp_path / "lab.yaml"
        path.write_text(block.text, "utf-8")
        assert LabFile(path).policies()
        return
    for obj in found:
        if obj["kind"] == stages.KIND:
            assert stages_from(obj, source=block.where).rules
        elif obj["apiVersion"] == node_groups.API_VERSION:
            read = NODE_GROUP_KINDS[obj["kind"]]
            assert read(obj, source=block.where)
        elif obj["kind"] == kubelet_configuration.KIND:
            assert kubelet_configuration.from_object(obj, source=block.where).thresholds
        elif obj["kind"] != SCHEDULER:
            validate(obj, RELEASE)
        elif "foreign-plugins" not in block.options:
            check_profiles(
                load(block.text, source=block.where, args_models=args_models(IN_TREE)), IN_TREE
            )


@pytest.mark.parametrize("block", blocks("python"), ids=lambda block: block.where)
def test_python(block: Block) -> None:
    code = compile(block.text, block.where, "exec")
    exec(code, {"__name__": Path(block.file or "page").stem})


@pytest.mark.parametrize("block", blocks("json"), ids=lambda block: block.where)
def test_json(block: Block) -> None:
    found = json.loads(block.text)
    if "templates" in found:
        Question.model_validate(found)
