"""Who a request is of: what proxies, certificates and tokens prove."""

import json
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from berth.kube.client.errors import UnavailableError
from berth.kube.client.reviews import TOKEN_REVIEWS, User
from berth.runtime.clock import FakeClock
from berth.service.server.access.authentication import (
    ANONYMOUS,
    Authenticator,
    Headers,
    NotReviewedError,
    UnauthenticatedError,
)
from berth.service.server.access.client_authorities import ClientAuthorities, RequestHeaders
from berth.service.server.access.client_certificates import CREDENTIAL_ID, CertificateAuthorities
from tests.kube.client.fake_api import FakeApi, Request
from tests.service.server.access.issuing import Authority, der

NOW = 1_700_000_000.0
IN = "system:authenticated"
PROXIED = (("x-remote-user", "jane"), ("x-remote-group", "dev"), ("x-remote-group", "ops"))


@cache
def authority(name: str) -> Authority:
    return Authority(name, now=NOW)


@cache
def certificate(name: str, *groups: str, by: str = "clients") -> bytes:
    return der(authority(by).issue(name, groups=groups))


def known_by(shown: bytes) -> dict[str, tuple[str, ...]]:
    digest = x509.load_der_x509_certificate(shown).fingerprint(hashes.SHA256()).hex()
    return {CREDENTIAL_ID: (f"X509SHA256={digest}",)}


@cache
def settings(*allowed_names: str) -> ClientAuthorities:
    return ClientAuthorities(
        CertificateAuthorities(authority("clients").pem),
        RequestHeaders(
            CertificateAuthorities(authority("proxies").pem),
            allowed_names=allowed_names,
            username_headers=("X-Remote-User",),
            group_headers=("X-Remote-Group",),
            extra_prefixes=("X-Remote-Extra-",),
            uid_headers=("X-Remote-Uid",),
        ),
    )


def reviewer(request: Request) -> bytes:
    """Know the token ``good``."""
    assert (request.method, request.path) == ("POST", TOKEN_REVIEWS)
    known = request.body["spec"]["token"] == "good"
    user = {"username": "joe", "groups": ["dev"]}
    return json.dumps({"status": {"authenticated": True, "user": user} if known else {}}).encode()


def authenticator(
    api: FakeApi | None = None,
    *,
    clock: FakeClock | None = None,
    believed: ClientAuthorities | None = None,
) -> Authenticator:
    return Authenticator(
        api or FakeApi(reviewer),
        settings=believed or settings(),
        token_ttl=10.0,
        clock=clock or FakeClock(NOW),
    )


def bearer(token: str) -> tuple[tuple[str, str]]:
    return (("authorization", f"Bearer {token}"),)


JOE = User(username="joe", groups=("dev", IN))


@pytest.mark.parametrize(
    ("headers", "shown", "want"),
    [
        pytest.param((), None, ANONYMOUS, id="nothing is shown"),
        pytest.param(bearer("good"), None, JOE, id="a good token"),
        pytest.param((("authorization", "bEARER  good "),), None, JOE, id="the scheme's case"),
        pytest.param((("authorization", "Basic good"),), None, ANONYMOUS, id="another scheme"),
        pytest.param((("authorization", "Bearer "),), None, ANONYMOUS, id="an empty token"),
        pytest.param(
            (),
            certificate("ann", "dev", "ops"),
            User(
                username="ann",
                groups=("dev", "ops", IN),
                extra=known_by(certificate("ann", "dev", "ops")),
            ),
            id="a client certificate",
        ),
        pytest.param((), certificate("", "dev"), ANONYMOUS, id="a certificate without a name"),
        pytest.param(
            PROXIED,
            certificate("front", by="proxies"),
            User(username="jane", groups=("dev", "ops", IN)),
            id="a proxy speaks for somebody",
        ),
        pytest.param(
            (
                ("x-remote-user", "jane"),
                ("x-remote-uid", "7"),
                ("x-remote-extra-acme.io%2Fproject", "a"),
                ("x-remote-extra-acme.io%2Fproject", "b"),
            ),
            certificate("front", by="proxies"),
            User(
                username="jane",
                uid="7",
                groups=(IN,),
                extra={"acme.io/project": ("a", "b")},
            ),
            id="all that a proxy may tell",
        ),
        pytest.param(
            (("x-remote-user", "system:anonymous"), ("x-remote-group", "system:unauthenticated")),
            certificate("front", by="proxies"),
            ANONYMOUS,
            id="a proxy speaks for nobody, who thereby is not known",
        ),
        pytest.param(PROXIED, None, ANONYMOUS, id="who is no proxy speaks for himself"),
        pytest.param(
            PROXIED,
            certificate("ann"),
            User(username="ann", groups=(IN,), extra=known_by(certificate("ann"))),
            id="nor does a client speak for others",
        ),
        pytest.param(
            bearer("good"),
            certificate("front", by="proxies"),
            JOE,
            id="a token proves what a proxy's certificate does not",
        ),
    ],
)
async def test_who_it_is(headers: Headers, shown: bytes | None, want: User) -> None:
    assert await authenticator().authenticate(headers, certificate=shown) == want


@pytest.mark.parametrize(
    ("headers", "shown", "why"),
    [
        pytest.param((), b"x", "the client certificate cannot be read", id="no certificate"),
        pytest.param(bearer("bad"), None, "invalid bearer token", id="a token of nobody"),
        pytest.param(
            (), certificate("eve", by="strangers"), "unknown authority", id="a stranger's word"
        ),
        pytest.param(
            (),
            certificate("front", by="proxies"),
            "unknown authority",
            id="a proxy that speaks for nobody",
        ),
        pytest.param(
            bearer("bad"), certificate("eve", by="strangers"), "bearer", id="nothing that is good"
        ),
    ],
)
async def test_what_proves_nothing(headers: Headers, shown: bytes | None, why: str) -> None:
    with pytest.raises(UnauthenticatedError, match=why):
        await authenticator().authenticate(headers, certificate=shown)


async def test_a_stranger_with_the_name_of_an_authority() -> None:
    forged = der(Authority("clients", now=NOW).issue("ann", groups=["system:masters"]))
    with pytest.raises(UnauthenticatedError, match="unknown authority"):
        await authenticator().authenticate((), certificate=forged)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("front", User(username="jane", groups=("dev", "ops", IN)), id="allowed"),
        pytest.param("side", None, id="not allowed"),
    ],
)
async def test_proxies_have_names(name: str, want: User | None) -> None:
    shown = certificate(name, by="proxies")
    asked = authenticator(believed=settings("front", "back"))
    if want is None:
        with pytest.raises(UnauthenticatedError):
            await asked.authenticate(PROXIED, certificate=shown)
    else:
        assert await asked.authenticate(PROXIED, certificate=shown) == want


async def test_certificates_mean_nothing_without_authorities() -> None:
    asked = authenticator(believed=ClientAuthorities())
    assert await asked.authenticate(PROXIED, certificate=certificate("ann")) == ANONYMOUS


@pytest.mark.parametrize("days", [-1.1, 1.1])
async def test_a_connection_outlives_its_certificate(days: float) -> None:
    asked = authenticator(clock=FakeClock(NOW + days * 86_400))
    with pytest.raises(UnauthenticatedError, match="expired"):
        await asked.authenticate((), certificate=certificate("ann"))


@pytest.mark.parametrize("token", ["good", "bad"])
async def test_tokens_are_remembered_for_a_while(token: str) -> None:
    api, clock = FakeApi(reviewer), FakeClock(NOW)
    asked = authenticator(api, clock=clock)

    async def ask() -> None:
        try:
            assert await asked.authenticate(bearer(token), certificate=None) == JOE
        except UnauthenticatedError:
            assert token == "bad"

    await ask()
    clock.advance(9.9)
    await ask()
    assert len(api.requests) == 1
    clock.advance(0.1)
    await ask()
    assert len(api.requests) == 2
    assert "good" not in repr(vars(asked._tokens))


async def test_a_token_that_could_not_be_reviewed_is_asked_about_again() -> None:
    answers: list[bytes | Exception] = [
        UnavailableError("nobody there", sent=False),
        b"<html>",
        reviewer(Request("POST", TOKEN_REVIEWS, {"spec": {"token": "good"}})),
    ]
    asked = authenticator(FakeApi(lambda _request: answers.pop(0)))
    for _ in range(2):
        with pytest.raises(NotReviewedError, match="could not be reviewed"):
            await asked.authenticate(bearer("good"), certificate=None)
    assert await asked.authenticate(bearer("good"), certificate=None) == JOE
