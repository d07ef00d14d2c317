"""TLS handshakes in memory: which certificate is shown, and whose is accepted."""

import ssl
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from berth.runtime.certificates import KeyPair, self_signed
from berth.scheduler.config.options import SecureServingOptions
from berth.service.server.access.client_certificates import CertificateAuthorities
from berth.service.server.access.serving_tls import ServingTls
from berth.service.server.access.tls_settings import SUITES, TlsFlagError
from tests.service.server.access.issuing import Authority, der, written

# Of today, for OpenSSL looks at the machine's clock.
TODAY = datetime.now(UTC)
NOW = TODAY.timestamp()


@cache
def pair(*names: str) -> KeyPair:
    return self_signed(names, now=TODAY, name=names[0])


@cache
def authority(name: str) -> Authority:
    return Authority(name, now=NOW)


class Seen(NamedTuple):
    """What the two sides know of each other after a handshake."""

    shown: bytes | None
    client: bytes | None
    cipher: str
    version: str | None


def trusting_all() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def shake_hands(
    tls: ServingTls, client: ssl.SSLContext | None = None, *, name: str | None = "localhost"
) -> Seen:
    """Raises ssl.SSLError when one side does not want to."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = (client or trusting_all()).wrap_bio(to_client, to_server, server_hostname=name)
    serving = tls.context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [asking, serving]
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(side)
    cipher = serving.cipher()
    assert cipher is not None
    return Seen(asking.getpeercert(True), serving.getpeercert(True), cipher[0], serving.version())  # noqa: FBT003 - the argument has no name for SSLObject


def showing(shown: KeyPair, tmp_path: Path) -> ssl.SSLContext:
    """Return a client with a certificate."""
    context = trusting_all()
    context.load_cert_chain(*written(shown, tmp_path, "client"))
    return context


def files(shown: KeyPair, folder: Path, name: str = "tls") -> SecureServingOptions:
    certificate, key = written(shown, folder, name)
    return SecureServingOptions(tls_cert_file=certificate, tls_private_key_file=key)


def test_a_certificate_is_made_up_for_this_machine() -> None:
    tls = ServingTls(SecureServingOptions(), now=NOW)
    shown = shake_hands(tls).shown
    assert shown is not None
    trusting = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(shown))
    for name in ("localhost", "127.0.0.1", "::1"):
        assert shake_hands(tls, trusting, name=name).shown == shown


def test_files_are_shown_and_reloaded(tmp_path: Path) -> None:
    old, new, newest = pair("a.example"), pair("b.example"), pair("c.example")
    tls = ServingTls(files(old, tmp_path), now=NOW)
    assert shake_hands(tls).shown == der(old)

    files(new, tmp_path)
    assert shake_hands(tls).shown == der(old)
    tls.refresh()
    assert shake_hands(tls).shown == der(new)

    files(KeyPair(newest.certificate, new.key), tmp_path)  # half of it is there
    tls.refresh()
    (tmp_path / "tls.key").unlink()
    tls.refresh()
    assert shake_hands(tls).shown == der(new)
    files(newest, tmp_path)
    tls.refresh()
    assert shake_hands(tls).shown == der(newest)


def test_an_encrypted_key_is_refused_and_nobody_asked_for_a_password(tmp_path: Path) -> None:
    shown = pair("a.example")
    key = serialization.load_pem_private_key(shown.key, password=None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(TlsFlagError, match=f"--tls-cert-file {tmp_path}/tls.crt, "):
        ServingTls(files(KeyPair(shown.certificate, encrypted), tmp_path), now=NOW)


def test_a_folder_keeps_the_certificate(tmp_path: Path) -> None:
    options = SecureServingOptions(cert_dir=str(tmp_path / "certs"))
    first = shake_hands(ServingTls(options, now=NOW)).shown
    assert shake_hands(ServingTls(options, now=NOW)).shown == first
    assert sorted(file.name for file in (tmp_path / "certs").iterdir()) == [
        "kube-scheduler.crt",
        "kube-scheduler.key",
    ]
    assert (tmp_path / "certs" / "kube-scheduler.key").stat().st_mode & 0o777 == 0o600


def test_a_folder_with_half_a_certificate_gets_a_whole_one_for_its_owner(tmp_path: Path) -> None:
    key = tmp_path / "kube-scheduler.key"
    key.write_text("of somebody who waits to read more")
    key.chmod(0o666)
    shake_hands(ServingTls(SecureServingOptions(cert_dir=str(tmp_path)), now=NOW))
    assert key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["kube-scheduler.crt", "kube-scheduler.key"])
def test_a_folder_with_a_link_is_refused(tmp_path: Path, name: str) -> None:
    target = tmp_path / "elsewhere"
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / name).symlink_to(target)
    with pytest.raises(TlsFlagError, match=f"--cert-dir {folder}/{name}: is a symbolic link"):
        ServingTls(SecureServingOptions(cert_dir=str(folder)), now=NOW)
    assert not target.exists()


@pytest.mark.parametrize(
    ("asked_for", "want"),
    [
        pytest.param("given.example", "given", id="a name that the flag gives"),
        pytest.param("GIVEN.example", "given", id="in any case"),
        pytest.param("own.example", "own", id="a name of the certificate"),
        pytest.param("x.wild.example", "own", id="one that a wildcard covers"),
        pytest.param("x.y.wild.example", "tls", id="one that it does not"),
        pytest.param("in.example", "tls", id="a name that the flag does not give"),
        pytest.param(None, "tls", id="no name"),
    ],
)
def test_certificates_for_names(tmp_path: Path, asked_for: str | None, want: str) -> None:
    shown = {
        "tls": pair("tls.example"),
        "given": pair("in.example"),
        "own": pair("own.example", "*.wild.example", "10.0.0.1"),
    }
    names = {name: ",".join(written(shown[name], tmp_path, name)) for name in shown}
    certificate, key = names["tls"].split(",")
    options = SecureServingOptions(
        tls_cert_file=certificate,
        tls_private_key_file=key,
        tls_sni_cert_key=(f"{names['given']}:given.example,also.example", names["own"]),
    )
    assert shake_hands(ServingTls(options, now=NOW), name=asked_for).shown == der(shown[want])


def test_clients_are_asked_for_a_certificate_and_need_none(tmp_path: Path) -> None:
    ann, eve = authority("ours").issue("ann"), authority("theirs").issue("eve")
    tls = ServingTls(SecureServingOptions(), now=NOW)
    assert shake_hands(tls, showing(ann, tmp_path)).client is None

    tls.trust([authority("ours").pem])
    assert shake_hands(tls).client is None
    assert shake_hands(tls, showing(ann, tmp_path)).client == der(ann)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(tls, showing(eve, tmp_path))

    tls.trust([authority("theirs").pem])
    assert shake_hands(tls, showing(eve, tmp_path)).client == der(eve)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(tls, showing(ann, tmp_path))

    tls.trust([])
    assert shake_hands(tls, showing(ann, tmp_path)).client is None


def test_a_certificate_of_a_server_makes_nobody_a_client(tmp_path: Path) -> None:
    server = authority("ours").issue("ann", purpose=ExtendedKeyUsageOID.SERVER_AUTH)
    tls = ServingTls(SecureServingOptions(), now=NOW)
    tls.trust([authority("ours").pem])
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands(tls, showing(server, tmp_path))


def test_a_new_certificate_leaves_the_authorities(tmp_path: Path) -> None:
    ann = authority("ours").issue("ann")
    tls = ServingTls(files(pair("a.example"), tmp_path), now=NOW)
    tls.trust([authority("ours").pem])
    files(pair("b.example"), tmp_path)
    tls.refresh()
    seen = shake_hands(tls, showing(ann, tmp_path))
    assert (seen.shown, seen.client) == (der(pair("b.example")), der(ann))


def test_authorities_may_stand_in_any_text() -> None:
    authority = Authority("clients", now=NOW)
    pem = f"# für Clients\n{authority.pem}\nund das war es\n"
    tls = ServingTls(SecureServingOptions(), now=NOW)
    tls.trust([CertificateAuthorities(pem).pem])

    assert CertificateAuthorities(pem).pem == authority.pem


@pytest.mark.parametrize(
    ("minimum", "client", "works"),
    [
        pytest.param("", ssl.TLSVersion.TLSv1_2, True, id="1.2 by default"),
        pytest.param("VersionTLS12", ssl.TLSVersion.TLSv1_2, True, id="1.2"),
        pytest.param("VersionTLS13", ssl.TLSVersion.TLSv1_2, False, id="too old"),
        pytest.param("VersionTLS13", ssl.TLSVersion.TLSv1_3, True, id="1.3"),
    ],
)
def test_versions(minimum: str, client: ssl.TLSVersion, works: bool) -> None:
    tls = ServingTls(SecureServingOptions(tls_min_version=minimum), now=NOW)
    context = trusting_all()
    context.maximum_version = client
    if works:
        assert shake_hands(tls, context).version == client.name.replace("_", ".")
    else:
        with pytest.raises(ssl.SSLError):
            shake_hands(tls, context)


def test_cipher_suites() -> None:
    names = ("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    tls = ServingTls(SecureServingOptions(tls_cipher_suites=names), now=NOW)
    context = trusting_all()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake_hands(tls, context).cipher == "ECDHE-ECDSA-AES128-GCM-SHA256"
    context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    with pytest.raises(ssl.SSLError):
        shake_hands(tls, context)


@pytest.mark.parametrize("name", SUITES)
def test_openssl_has_all_suites(name: str) -> None:
    context = ServingTls(SecureServingOptions(tls_cipher_suites=(name,)), now=NOW).context
    assert SUITES[name] in [cipher["name"] for cipher in context.get_ciphers()]


def test_an_intermediate_authority_may_be_named_alone() -> None:
    assert (
        ServingTls(SecureServingOptions(), now=NOW).context.verify_flags
        & ssl.VERIFY_X509_PARTIAL_CHAIN
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(
            SecureServingOptions(tls_min_version="1.2"), "--tls-min-version 1.2: must", id="version"
        ),
        pytest.param(
            SecureServingOptions(tls_cipher_suites=("TLS_AES_128_GCM_SHA256", "RC4")),
            "--tls-cipher-suites RC4: must be of TLS_",
            id="suite",
        ),
        pytest.param(
            SecureServingOptions(tls_cert_file="x"),
            "--tls-cert-file x: .* go together",
            id="no key",
        ),
        pytest.param(
            SecureServingOptions(tls_private_key_file="x"),
            "--tls-private-key-file x: ",
            id="no certificate",
        ),
        pytest.param(
            SecureServingOptions(tls_cert_file="/nowhere", tls_private_key_file="x"),
            "--tls-cert-file /nowhere: No such file",
            id="no file",
        ),
        pytest.param(
            SecureServingOptions(cert_dir="/dev/null/x"),
            "--cert-dir /dev/null/x.*: Not a dir",
            id="no folder",
        ),
        pytest.param(
            SecureServingOptions(tls_sni_cert_key=("a",)),
            "--tls-sni-cert-key a: must be",
            id="no pair",
        ),
        pytest.param(
            SecureServingOptions(tls_sni_cert_key=("/nowhere,b",)),
            "--tls-sni-cert-key /nowhere",
            id="no SNI",
        ),
    ],
)
def test_flags_that_cannot_be_obeyed(options: SecureServingOptions, why: str) -> None:
    with pytest.raises(TlsFlagError, match=why):
        ServingTls(options, now=NOW)


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    mixed = KeyPair(pair("a.example").certificate, pair("b.example").key)
    with pytest.raises(TlsFlagError, match=f"--tls-cert-file {tmp_path}/tls.crt, .*MISMATCH"):
        ServingTls(files(mixed, tmp_path), now=NOW)
    garbage = KeyPair(b"-", b"-")
    certificate, key = written(garbage, tmp_path, "garbage")
    with pytest.raises(TlsFlagError, match="--tls-sni-cert-key"):
        ServingTls(SecureServingOptions(tls_sni_cert_key=(f"{certificate},{key}",)), now=NOW)


def test_a_certificate_without_names(tmp_path: Path) -> None:
    nameless = authority("ours").issue("")
    certificate, key = written(nameless, tmp_path, "nameless")
    assert not x509.load_pem_x509_certificate(nameless.certificate).subject
    with pytest.raises(TlsFlagError, match="is for no name"):
        ServingTls(SecureServingOptions(tls_sni_cert_key=(f"{certificate},{key}",)), now=NOW)
