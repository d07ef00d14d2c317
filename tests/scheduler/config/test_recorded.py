"""What kube-scheduler 1.36.2 wrote and accepted: its /configz, and the configurations of the
golden scenarios (each once, with the id of the first scenario that has it)."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from berth.scheduler.config.configz import to_configz, to_object
from berth.scheduler.config.load import emulating, from_object, load
from berth.scheduler.config.plugin_sets import expand_profiles
from berth.scheduler.config.types import API_VERSION, KIND
from tests.scheduler.config.plugin_args import IMPLEMENTS, MODELS

RECORDED = Path(__file__).parent / "recorded"
CONFIGZ = json.loads((RECORDED / "configz.json").read_text())


def scenarios() -> list[Any]:
    lines = gzip.decompress((RECORDED / "configurations.jsonl.gz").read_bytes()).splitlines()
    return [
        pytest.param(scenario["config"], id=scenario["id"]) for scenario in map(json.loads, lines)
    ]


def test_configz() -> None:
    config = from_object(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "clientConnection": {"kubeconfig": "kubeconfig", "contentType": "application/json"},
        },
        source="x",
        args_models=MODELS,
        adjust=emulating("1.36"),
    )
    assert json.dumps(to_configz(config)) == json.dumps(CONFIGZ)  # the order too


@pytest.mark.parametrize("config", scenarios())
def test_configurations_of_scenarios(config: dict[str, Any]) -> None:
    loaded = from_object(config, source="scenario", args_models=MODELS)
    assert list(expand_profiles(loaded.profiles, IMPLEMENTS)) == [
        profile["schedulerName"] for profile in config["profiles"]
    ]
    written = to_object(loaded)
    for was, profile in zip(config["profiles"], loaded.profiles, strict=True):
        for plugin_config in was.get("pluginConfig", []):
            args = plugin_config["args"]
            read = profile.args(plugin_config["name"])
            given = {field for field, value in args.items() if value != []}
            assert {field: read[field] for field in given} == {f: args[f] for f in given}
    # Writing merges and completes, and doing so again changes nothing.
    again = load(json.dumps(written), source="written", args_models=MODELS)
    assert to_object(again) == written


def test_what_is_written_of_an_extender() -> None:
    config = load(
        f"""
apiVersion: {API_VERSION}
kind: {KIND}
clientConnection: {{qps: 0.5}}
delayCacheUntilActive: true
extenders:
- urlPrefix: http://x
- {{urlPrefix: https://y, enableHTTPS: true, tlsConfig: {{keyData: YWJj}}, httpTimeout: 90s,
   prioritizeVerb: p, weight: 2, managedResources: [{{name: example.com/gpu}}], ignorable: true}}
profiles:
- percentageOfNodesToScore: 0
""",
        source="x",
        args_models={},
    )
    written = to_object(config)
    assert written["extenders"] == [
        {"urlPrefix": "http://x", "httpTimeout": "5s"},
        {
            "urlPrefix": "https://y",
            "prioritizeVerb": "p",
            "weight": 2,
            "enableHTTPS": True,
            "tlsConfig": {"keyData": "YWJj"},
            "httpTimeout": "1m30s",
            "managedResources": [{"name": "example.com/gpu"}],
            "ignorable": True,
        },
    ]
    assert written["delayCacheUntilActive"] is True
    assert written["clientConnection"]["qps"] == 0.5
    assert written["profiles"][0]["percentageOfNodesToScore"] == 0
