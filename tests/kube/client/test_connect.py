"""Where the API server is found, and what is said when it is not."""

import base64
import os
import ssl
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from berth.kube.client.connect import ConnectError, connect, find, proxy_from_environment
from berth.runtime.certificates import self_signed
from berth.runtime.clock import FakeClock

CONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "contexts": [
        {"name": "here", "context": {"cluster": "c1", "user": "u1"}},
        {"name": "there", "context": {"cluster": "c2", "user": "u2"}},
    ],
    "clusters": [
        {"name": "c1", "cluster": {"server": "http://here:8080"}},
        {
            "name": "c2",
            "cluster": {"server": "https://there:6443", "insecure-skip-tls-verify": True},
        },
    ],
}
OTHER_USER = {"username": "me", "password": "pw"}


def write(path: Path, user: object) -> None:
    """Write a kubeconfig whose current context has *user*'s credentials."""
    users = [{"name": "u1", "user": user}, {"name": "u2", "user": OTHER_USER}]
    path.write_text(yaml.safe_dump({**CONFIG, "users": users}))


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    write(path, {"token": "secret"})
    return path


async def test_the_current_context_says_where_and_as_whom(kubeconfig: Path) -> None:
    endpoint = await find(kubeconfig=str(kubeconfig), context=None, master=None, clock=FakeClock())

    assert endpoint.url == "http://here:8080"
    assert await endpoint.authorization() == "Bearer secret"


async def test_another_context_can_be_picked(kubeconfig: Path) -> None:
    endpoint = await find(
        kubeconfig=str(kubeconfig), context="there", master=None, clock=FakeClock()
    )

    assert endpoint.url == "https://there:6443"
    assert isinstance(endpoint.tls, ssl.SSLContext)
    assert endpoint.tls.verify_mode is ssl.CERT_NONE
    assert await endpoint.authorization() == "Basic bWU6cHc="


async def test_master_overrides_the_server_and_keeps_the_user(kubeconfig: Path) -> None:
    endpoint = await find(
        kubeconfig=str(kubeconfig), context=None, master="http://other", clock=FakeClock()
    )

    assert endpoint.url == "http://other"
    assert await endpoint.authorization() == "Bearer secret"


async def test_a_token_file_that_changes_is_read_again(kubeconfig: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    write(kubeconfig, {"tokenFile": str(token)})
    clock = FakeClock()
    endpoint = await find(kubeconfig=str(kubeconfig), context=None, master=None, clock=clock)
    assert await endpoint.authorization() == "Bearer first"

    token.write_text("second\n")
    assert await endpoint.authorization() == "Bearer first"
    clock.advance(61)

    assert await endpoint.authorization() == "Bearer second"


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def test_keys_in_a_kubeconfig_touch_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))  # writing there fails
    pair = self_signed(["there"], now=datetime(2026, 11, 1, tzinfo=UTC), name="there")
    user = {
        "client-certificate-data": b64(pair.certificate),
        "client-key-data": b64(pair.key),
        "token": "secret",
    }
    cluster = {"server": "https://there", "certificate-authority-data": b64(pair.certificate)}
    path = tmp_path / "config"
    path.write_text(
        yaml.safe_dump(
            {
                **CONFIG,
                "clusters": [{"name": "c1", "cluster": cluster}],
                "users": [{"name": "u1", "user": user}],
            }
        )
    )
    clock = FakeClock()
    endpoint = await find(kubeconfig=str(path), context=None, master=None, clock=clock)
    assert isinstance(endpoint.tls, ssl.SSLContext)
    assert len(endpoint.tls.get_ca_certs()) == 1
    descriptors = os.listdir("/proc/self/fd")
    clock.advance(61)
    assert await endpoint.authorization() == "Bearer secret"
    assert os.listdir("/proc/self/fd") == descriptors  # it was loaded again


@pytest.mark.wall
async def test_an_exec_plugin_is_asked_for_the_token(kubeconfig: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        '#!/bin/sh\necho \'{"apiVersion":"client.authentication.k8s.io/v1",'
        '"kind":"ExecCredential","status":{"token":"made"}}\'\n'
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    write(kubeconfig, {"exec": run})

    endpoint = await find(kubeconfig=str(kubeconfig), context=None, master=None, clock=FakeClock())

    assert await endpoint.authorization() == "Bearer made"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(None, "no such file", id="missing"),
        pytest.param("a: [", "while parsing", id="not YAML"),
        pytest.param("- 1", "", id="a list"),
        pytest.param("", "", id="empty"),
        pytest.param("apiVersion: v1", "current-context", id="without contexts"),
        pytest.param(
            yaml.safe_dump({**CONFIG, "current-context": "lost"}), "lost", id="no such context"
        ),
        pytest.param(yaml.safe_dump({**CONFIG, "clusters": []}), "c1", id="no such cluster"),
    ],
)
async def test_a_kubeconfig_that_is_no_use_is_named(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConnectError) as caught:
        await connect(kubeconfig=str(path))

    assert str(caught.value).startswith(f"kubeconfig {path}: ")
    assert problem in str(caught.value)


async def test_a_kubeconfig_that_cannot_be_looked_at_is_named() -> None:
    """As one in a folder of somebody else; that name is too long for any folder."""
    name = "k" * 300

    with pytest.raises(ConnectError, match=f"^kubeconfig {name}: "):
        await connect(kubeconfig=name)


async def test_without_a_kubeconfig_and_outside_a_pod_both_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(ConnectError, match=r"no kubeconfig and no master was given.*not a pod"):
        await connect(kubeconfig=None)


@pytest.mark.parametrize(
    ("url", "want"),
    [
        pytest.param("https://api.example:6443", "http://proxy:3128", id="https by its proxy"),
        pytest.param("http://api.example", None, id="http has none"),
        pytest.param("https://api.inside.example", None, id="excepted by NO_PROXY"),
        pytest.param("https://127.0.0.1:6443", None, id="ourselves"),
    ],
)
def test_proxy_from_environment(
    url: str, want: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", ".inside.example")

    assert proxy_from_environment(url) == want
