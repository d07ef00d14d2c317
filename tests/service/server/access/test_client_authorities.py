"""Whose certificates are believed: flags before the cluster's ConfigMap."""

import json
from pathlib import Path
from typing import Any

import pytest

from berth.kube.client.errors import ForbiddenError
from berth.scheduler.config.options import DelegatingAuthenticationOptions, Options
from berth.service.server.access.client_authorities import (
    LOOKUP,
    AuthenticationError,
    ClientAuthorities,
    client_authorities,
)
from tests.kube.client.fake_api import FakeApi, Request
from tests.service.server.access.issuing import Authority

NOW = 1_700_000_000.0
CLIENTS, PROXIES, OTHERS = (Authority(name, now=NOW).pem for name in ("c", "p", "o"))

PUBLISHED = {
    "client-ca-file": CLIENTS,
    "requestheader-client-ca-file": PROXIES,
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def publishing(data: Any) -> FakeApi:
    return FakeApi(lambda _request: json.dumps({"data": data}).encode())


def told(settings: ClientAuthorities) -> tuple[str | None, str | None]:
    """Return who vouches for clients, and who for proxies."""
    clients, proxies = settings.clients, settings.proxies
    return (
        None if clients is None else clients.pem,
        None if proxies is None else proxies.authorities.pem,
    )


async def test_what_the_cluster_says() -> None:
    api = publishing(PUBLISHED)
    settings = await client_authorities(DelegatingAuthenticationOptions(), api)

    assert api.requests == [Request("GET", LOOKUP)]
    assert told(settings) == (CLIENTS, PROXIES)
    assert [found.pem for found in settings.authorities] == [CLIENTS, PROXIES]
    proxies = settings.proxies
    assert proxies is not None
    assert (
        proxies.allowed_names,
        proxies.username_headers,
        proxies.group_headers,
        proxies.extra_prefixes,
        proxies.uid_headers,
    ) == (
        ("front-proxy-client",),
        ("X-Remote-User",),
        ("X-Remote-Group",),
        ("X-Remote-Extra-",),
        (),
    )


@pytest.mark.parametrize(
    ("clients", "proxies", "want", "asked"),
    [
        pytest.param(True, False, (OTHERS, PROXIES), True, id="proxies from the cluster"),
        pytest.param(False, True, (CLIENTS, OTHERS), True, id="clients from the cluster"),
        pytest.param(True, True, (OTHERS, OTHERS), False, id="nothing left to ask"),
    ],
)
async def test_flags_win(
    tmp_path: Path,
    clients: bool,
    proxies: bool,
    want: tuple[str, str],
    asked: bool,
) -> None:
    file = tmp_path / "ca.crt"
    file.write_text(OTHERS)
    options = DelegatingAuthenticationOptions(
        client_ca_file=str(file) if clients else "",
        requestheader_client_ca_file=str(file) if proxies else "",
    )
    api = publishing(PUBLISHED)
    assert told(await client_authorities(options, api)) == want
    assert bool(api.requests) == asked


async def test_the_cluster_need_not_be_asked() -> None:
    api = publishing(PUBLISHED)
    options = DelegatingAuthenticationOptions(authentication_skip_lookup=True)
    assert told(await client_authorities(options, api)) == (None, None)
    assert api.requests == []


async def test_a_cluster_that_says_nothing() -> None:
    assert told(await client_authorities(DelegatingAuthenticationOptions(), publishing({}))) == (
        None,
        None,
    )


REFUSED = ForbiddenError(403, "Forbidden", "not yours to read")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(REFUSED, "not yours to read", id="refused"),
        pytest.param(b"<html>", "JSON is malformed", id="no JSON"),
        pytest.param(b'{"data":{"client-ca-file":"x"}}', "PEM", id="no certificate"),
        pytest.param(
            json.dumps(
                {"data": {**PUBLISHED, "requestheader-allowed-names": "front-proxy"}}
            ).encode(),
            "JSON is malformed",
            id="names that are no list",
        ),
    ],
)
async def test_a_failed_lookup(answer: bytes | Exception, why: str) -> None:
    api = FakeApi(lambda _request: answer)
    strict = DelegatingAuthenticationOptions(authentication_tolerate_lookup_failure=False)
    with pytest.raises(AuthenticationError, match=why):
        await client_authorities(strict, api)
    assert told(await client_authorities(DelegatingAuthenticationOptions(), api)) == (
        None,
        None,
    )


async def test_a_later_lookup_that_fails_changes_what_flags_say_only(tmp_path: Path) -> None:
    known = await client_authorities(DelegatingAuthenticationOptions(), publishing(PUBLISHED))
    file = tmp_path / "ca.crt"
    file.write_text(OTHERS)
    options = DelegatingAuthenticationOptions(
        client_ca_file=str(file), authentication_tolerate_lookup_failure=False
    )
    failing = FakeApi(lambda _request: REFUSED)
    assert told(await client_authorities(options, failing, known=known)) == (OTHERS, PROXIES)


@pytest.mark.parametrize("field", ["client_ca_file", "requestheader_client_ca_file"])
async def test_a_file_that_cannot_be_used(tmp_path: Path, field: str) -> None:
    flag = "--" + field.replace("_", "-")
    with pytest.raises(AuthenticationError, match=f"{flag} /nowhere: No such file"):
        await client_authorities(Options.of({field: "/nowhere"}).authentication, FakeApi())
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(AuthenticationError, match=f"{flag} {empty}: "):
        await client_authorities(Options.of({field: str(empty)}).authentication, FakeApi())
