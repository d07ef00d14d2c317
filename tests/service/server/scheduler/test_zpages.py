"""What the process tells of itself."""

import json
import platform
from typing import Any

import httpx
import pytest
import yaml

from berth.runtime.clock import FakeClock
from berth.runtime.duration import Duration
from berth.runtime.release import version
from berth.scheduler.config.configz import to_configz
from berth.scheduler.config.load import default_configuration
from berth.scheduler.config.options import Options
from berth.scheduler.profile.build import args_models
from berth.service.server.application import Application
from berth.service.server.scheduler.zpages import WARNING, flag_values, zpages
from berth_plugins.registry import IN_TREE

CONFIG = default_configuration(args_models(IN_TREE))
STARTED = 1_700_000_000.0
FLAGS = {"leader-elect": "true", "v": "2"}


@pytest.fixture
def client() -> httpx.AsyncClient:
    clock, app = FakeClock(STARTED), Application()
    router = zpages(
        configuration=lambda: CONFIG, flags=FLAGS, paths=lambda: sorted(app.paths), clock=clock
    )
    app.include_router(router)
    clock.advance(2 * 3600 + 3 * 60 + 4.5)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://berth")


async def test_configz(client: httpx.AsyncClient) -> None:
    answer = await client.get("/configz")
    assert answer.headers["content-type"] == "application/json"
    assert answer.text == json.dumps(to_configz(CONFIG), ensure_ascii=False)


async def test_the_root_lists_what_there_is(client: httpx.AsyncClient) -> None:
    assert (await client.get("/")).json() == {
        "paths": ["/configz", "/flagz", "/openapi.json", "/statusz"]
    }


FLAGZ = f"""
kube-scheduler flags
{WARNING}

leader-elect=true
v=2
"""
STATUSZ = f"""
kube-scheduler statusz
{WARNING}

Started: Tue Nov 14 22:13:20 UTC 2023
Up: 2 hr 03 min 04 sec
Python version: {platform.python_version()}
Binary version: {version()}
Emulation version: 1.37
Paths: /configz /flagz /statusz
"""


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("*/*", id="anything"),
        pytest.param("text/plain", id="text"),
        pytest.param("application/json, text/*;q=0.5", id="text, if there is no JSON"),
    ],
)
async def test_as_text(client: httpx.AsyncClient, accept: str) -> None:
    for path, want in (("/flagz", FLAGZ), ("/statusz", STATUSZ)):
        answer = await client.get(path, headers={"Accept": accept})
        assert (answer.status_code, answer.text) == (200, want)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def page(kind: str, wanted: str, **facts: Any) -> Any:
    return {
        "kind": kind,
        "apiVersion": f"config.k8s.io/{wanted}",
        "metadata": {"name": "kube-scheduler"},
        **facts,
    }


@pytest.mark.parametrize("wanted", ["v1beta1", "v1alpha1"])
@pytest.mark.parametrize("form", ["json", "yaml"])
async def test_as_objects(client: httpx.AsyncClient, form: str, wanted: str) -> None:
    params = f"g=config.k8s.io;v={wanted}"
    for path, want in (
        ("/flagz", page("Flagz", wanted, flags=FLAGS)),
        (
            "/statusz",
            page(
                "Statusz",
                wanted,
                startTime="2023-11-14T22:13:20Z",
                uptimeSeconds=7384,
                pythonVersion=platform.python_version(),
                binaryVersion=version(),
                emulationVersion="1.37",
                paths=["/configz", "/flagz", "/statusz"],
            ),
        ),
    ):
        accept = f"text/plain;q=0.1, application/{form}; as={want['kind']}; {params}"
        answer = await client.get(path, headers={"Accept": accept})
        assert answer.headers["content-type"] == f"application/{form}"
        assert yaml.safe_load(answer.content) == want


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json;as=Statusz;g=config.k8s.io;v=v1beta1",
        "application/json;as=Flagz;g=config.k8s.io;v=v2",
        "application/cbor;as=Flagz;g=config.k8s.io;v=v1beta1",
        "image/png;q=x",
    ],
)
async def test_forms_that_there_are_not(client: httpx.AsyncClient, accept: str) -> None:
    answer = await client.get("/flagz", headers={"Accept": accept})
    assert answer.status_code == 406
    assert "application/json;as=Flagz;g=config.k8s.io;v=v1beta1" in answer.text


def test_flags_are_told_as_they_are_written() -> None:
    told = flag_values(
        Options.of(
            {
                "leader_elect": False,
                "kube_api_qps": 12.5,
                "leader_elect_lease_duration": Duration.of(90),
                "requestheader_allowed_names": ("a", "b"),
                "feature_gates": {"B": True, "A": False},
            }
        )
    )
    assert list(told) == sorted(told)
    assert {
        name: told[name]
        for name in (
            "leader-elect",
            "kube-api-qps",
            "leader-elect-lease-duration",
            "requestheader-allowed-names",
            "feature-gates",
            "secure-port",
            "config",
        )
    } == {
        "leader-elect": "false",
        "kube-api-qps": "12.5",
        "leader-elect-lease-duration": "1m30s",
        "requestheader-allowed-names": "[a,b]",
        "feature-gates": "A=false,B=true",
        "secure-port": "10259",
        "config": "",
    }
    assert "explicit" not in told
