"""Nothing that is shown has credentials in it: everywhere by one function."""

import copy
import json
from typing import Any, Final

import httpx
import pytest

from berth.insight.whatif.snapshot import Snapshot
from berth.runtime.clock import FakeClock
from berth.runtime.redaction import REDACTED, redacted_object
from berth.scheduler.config.configz import to_configz, to_object, to_shown
from berth.scheduler.config.errors import ConfigError
from berth.scheduler.config.load import from_object
from berth.scheduler.config.options import Options
from berth.scheduler.config.types import KubeSchedulerConfiguration
from berth.scheduler.profile.build import args_models
from berth.service.server.application import Application
from berth.service.server.scheduler.debug.configuration import Configurations
from berth.service.server.scheduler.snapshot import snapshot_endpoints
from berth.service.server.scheduler.zpages import flag_values, zpages
from berth_plugins.registry import IN_TREE

SECRETS: Final = ("c2VjcmV0LWtleQ", "hunter2", "s3cr3t-t0ken", "only-a-user")

CONFIG: Final = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "extenders": [
        {
            "urlPrefix": "https://me:hunter2@e.example/x",
            "filterVerb": "filter",
            "enableHTTPS": True,
            "tlsConfig": {
                "certData": "Y2VydA==",
                "keyData": "c2VjcmV0LWtleQ==",
                "caData": "Y2E=",
                "keyFile": "/etc/key.pem",
            },
        },
        {"urlPrefix": "http://only-a-user@e.example"},
    ],
}
"""With a secret wherever one can be; plugins by others have args of their own."""

ARGS: Final = {
    "address": "https://prometheus:hunter2@metrics.example",
    "bearerToken": "s3cr3t-t0ken",
    "auth": {
        "password": "hunter2",
        "user": "me",
        "credentials": ["s3cr3t-t0ken", {"x": "hunter2"}],
    },
    "tokenSeconds": 5,
    "secretName": "metrics",
    "password": "",
}


@pytest.fixture
def config() -> KubeSchedulerConfiguration:
    read = from_object(copy.deepcopy(CONFIG), source="test", args_models=args_models(IN_TREE))
    profile = read.profiles[0]
    entry = profile.plugin_config[0].model_copy(update={"args": ARGS})
    profile = profile.model_copy(update={"plugin_config": (entry,)})
    return read.model_copy(update={"profiles": (profile,)})


def secrets_in(shown: object) -> list[str]:
    text = shown if isinstance(shown, str) else json.dumps(shown)
    return [secret for secret in SECRETS if secret in text]


def test_secrets_are_replaced_and_nothing_else(config: KubeSchedulerConfiguration) -> None:
    whole, shown = to_object(config), to_shown(config)
    assert secrets_in(whole) == list(SECRETS)
    assert secrets_in(shown) == []
    first, second = shown["extenders"]
    assert first["urlPrefix"] == f"https://{REDACTED}@e.example/x"
    assert first["tlsConfig"] == CONFIG["extenders"][0]["tlsConfig"] | {"keyData": REDACTED}  # type: ignore[index]  # is a list
    assert second["urlPrefix"] == f"http://{REDACTED}@e.example"
    assert shown["profiles"][0]["pluginConfig"][0]["args"] == {
        "address": f"https://{REDACTED}@metrics.example",
        "bearerToken": REDACTED,
        "auth": {"password": REDACTED, "user": "me", "credentials": [REDACTED, {"x": REDACTED}]},
        "tokenSeconds": 5,
        "secretName": "metrics",
        "password": "",
    }
    unchanged = whole.keys() - {"extenders", "profiles"}
    assert {key: shown[key] for key in unchanged} == {key: whole[key] for key in unchanged}


def test_what_is_shown_can_be_read_as_a_configuration(config: KubeSchedulerConfiguration) -> None:
    shown = to_shown(config)
    shown["profiles"] = []
    again = from_object(shown, source="shown", args_models=args_models(IN_TREE))
    assert to_object(again)["extenders"] == shown["extenders"]


async def test_no_endpoint_shows_them(config: KubeSchedulerConfiguration) -> None:
    app = Application()
    app.include_router(
        zpages(
            configuration=lambda: config,
            flags=flag_values(Options(master="https://me:hunter2@api.example")),
            paths=list,
            clock=FakeClock(),
        )
    )

    taken = Snapshot(config=to_object(config))

    async def take() -> Snapshot:
        return taken

    app.include_router(snapshot_endpoints(take, is_synced=lambda: True))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://berth") as client:
        answers = {path: await client.get(path) for path in ("/configz", "/flagz", "/snapshot")}
    for path, answer in answers.items():
        assert answer.status_code == 200
        assert REDACTED in answer.text or "[redacted]" in answer.text, path
        assert secrets_in(answer.text) == [], path
    assert answers["/configz"].json() == to_configz(config)
    told = Configurations().effective(config, IN_TREE, generation=1, loaded_at=0.0)
    assert told.configuration == to_shown(config)
    assert secrets_in(taken.config) == list(SECRETS)  # what is asked itself needs them


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("tlsConfig", {"keyData": "hunter2!"}, id="a key that is no base64"),
        pytest.param("weight", "https://me:hunter2@x", id="a URL in the wrong place"),
        pytest.param("tlsConfig", [{"keyData": "hunter2"}], id="a field that is no object"),
    ],
)
def test_errors_do_not_show_them(field: str, value: Any) -> None:
    wrong = copy.deepcopy(CONFIG) | {"extenders": [{"urlPrefix": "http://e", field: value}]}
    with pytest.raises(ConfigError) as caught:
        from_object(wrong, source="test", args_models=args_models(IN_TREE))
    assert f"extenders[0].{field}" in str(caught.value)
    assert secrets_in(str(caught.value)) == []


def test_what_is_given_stays_as_it_is() -> None:
    before = copy.deepcopy(ARGS)
    redacted_object(ARGS)
    assert before == ARGS
