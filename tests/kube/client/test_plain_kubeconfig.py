"""Kubeconfigs that are read without kubernetes-asyncio, which is the oracle; and pods."""

import base64
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import load_kube_config

from berth.kube.client.plain_kubeconfig import PlainAccess, plain_access, pod_access

HTTPS: Final = {"server": "https://there:6443/"}
TOKEN: Final = {"token": "secret"}


def written(folder: Path, cluster: object, user: object, **more: object) -> Path:
    """Write a kubeconfig with a context for *cluster* and *user*, and the files it may name."""
    for name in ("ca.crt", "me.crt", "me.key", "token"):
        (folder / name).write_text(f"content of {name}\n")
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "contexts": [
                    {"name": "other", "context": {"cluster": "b", "user": "v"}},
                    {"name": "here", "context": {"cluster": "a", "user": "u", "namespace": "n"}},
                ],
                "clusters": [
                    {"name": "b", "cluster": {"server": "http://b"}},
                    {"name": "a", "cluster": cluster},
                ],
                "users": [{"name": "v", "user": {"token": "other"}}, {"name": "u", "user": user}],
                **more,
            }
        )
    )
    return path


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def content(path: str | None) -> str:
    return Path(path).read_text() if path else ""


@pytest.mark.parametrize("context", [None, "other"])
@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        pytest.param({"server": "http://here:8080"}, TOKEN, id="plain HTTP and a token"),
        pytest.param(HTTPS, {}, id="HTTPS, and nobody"),
        pytest.param(HTTPS, {"tokenFile": "token"}, id="a token file"),
        pytest.param(HTTPS, {"tokenFile": "token", **TOKEN}, id="a token wins over its file"),
        pytest.param(
            {**HTTPS, "certificate-authority": "ca.crt"},
            {"client-certificate": "me.crt", "client-key": "me.key"},
            id="files beside the kubeconfig",
        ),
        pytest.param(
            {
                **HTTPS,
                "certificate-authority-data": data("authority"),
                "certificate-authority": "nowhere",
            },
            {"client-certificate-data": data("me"), "client-key-data": data("my key")},
            id="data win over files",
        ),
        pytest.param(
            {
                **HTTPS,
                "insecure-skip-tls-verify": True,
                "tls-server-name": "name",
                "proxy-url": "http://proxy:3128",
                "extensions": [{"name": "berth", "extension": {"process": 1}}],
            },
            TOKEN,
            id="the rest",
        ),
    ],
)
async def test_the_same_as_by_the_library(
    tmp_path: Path, cluster: object, user: object, context: str | None
) -> None:
    path = written(tmp_path, cluster, user)
    by_library = Configuration()
    await load_kube_config(
        str(path), context=context, client_configuration=by_library, persist_config=False
    )
    with ExitStack() as files:
        access = plain_access(str(path), context, files)
        assert access is not None
        assert access.server == by_library.host
        assert access.bearer() == by_library.api_key.get("BearerToken", "")
        assert access.verifies is by_library.verify_ssl
        assert access.server_name == by_library.tls_server_name
        assert access.proxy == by_library.proxy
        assert content(access.authority) == content(by_library.ssl_ca_cert)
        assert content(access.certificate) == content(by_library.cert_file)
        assert content(access.key) == content(by_library.key_file)


@pytest.mark.parametrize(
    ("cluster", "user", "more"),
    [
        pytest.param(HTTPS, {"exec": {"command": "login"}}, {}, id="a plugin"),
        pytest.param(HTTPS, {"auth-provider": {"name": "oidc"}}, {}, id="a provider"),
        pytest.param(HTTPS, {"username": "me", "password": "pw"}, {}, id="a password"),
        pytest.param(HTTPS, None, {}, id="no user"),
        pytest.param(HTTPS, {"tokenFile": "nowhere"}, {}, id="a file that is not there"),
        pytest.param(HTTPS, {"client-key-data": "abc"}, {}, id="no base64"),
        pytest.param({"server": 1}, TOKEN, {}, id="no URL"),
        pytest.param(HTTPS, TOKEN, {"contexts": None}, id="no contexts"),
        pytest.param(HTTPS, TOKEN, {"current-context": "lost"}, id="no such context"),
    ],
)
def test_what_is_left_to_the_library(
    tmp_path: Path, cluster: object, user: object, more: dict[str, Any]
) -> None:
    with ExitStack() as files:
        path = written(tmp_path, cluster, user, **more)
        assert plain_access(str(path), None, files) is None
        assert plain_access(f"{path}:{path}", None, files) is None


@pytest.mark.parametrize("text", ["", "[]", "text"])
def test_what_is_no_kubeconfig_is_left_to_the_library(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with ExitStack() as files:
        assert plain_access(str(tmp_path / "config"), "chosen", files) is None


@pytest.mark.parametrize(
    ("host", "server"),
    [
        pytest.param("10.0.0.1", "https://10.0.0.1:443", id="IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:443", id="IPv6"),
    ],
)
def test_the_service_account_of_a_pod(tmp_path: Path, host: str, server: str) -> None:
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_text("authority")
    access = pod_access(
        {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}, tmp_path
    )
    token = str(tmp_path / "token")
    assert access == PlainAccess(
        server=server, authority=str(tmp_path / "ca.crt"), token_file=token
    )
    assert access.bearer() == "Bearer first"
    (tmp_path / "token").write_text("second")
    assert access.bearer() == "Bearer second"


@pytest.mark.parametrize(
    ("token", "authority", "why"),
    [
        pytest.param(None, "a", r"token: No such file or directory$", id="no token"),
        pytest.param("", "a", r"token is empty$", id="an empty token"),
        pytest.param("t", None, r"ca\.crt: No such file or directory$", id="no authority"),
        pytest.param("t", "", r"ca\.crt is empty$", id="an empty authority"),
    ],
)
def test_a_service_account_that_is_not_whole(
    tmp_path: Path, token: str | None, authority: str | None, why: str
) -> None:
    for name, text in (("token", token), ("ca.crt", authority)):
        if text is not None:
            (tmp_path / name).write_text(text)
    environment = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(ValueError, match=why):
        pod_access(environment, tmp_path)


def test_the_library_is_not_imported(tmp_path: Path) -> None:
    path = written(tmp_path, {"server": "http://here"}, TOKEN)
    program = (
        "import asyncio, sys; from berth.kube.client.connect import find;"
        " from berth.runtime.clock import FakeClock;"
        " asyncio.run(find(kubeconfig=sys.argv[1], context=None, master=None,"
        " clock=FakeClock())); sys.exit('kubernetes_asyncio' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
