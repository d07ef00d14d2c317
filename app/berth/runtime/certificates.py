"""Certificates made at start, for servers that were given none."""

import ipaddress
import ssl
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from berth.runtime.files import file_in_memory

VALIDITY: Final = timedelta(days=365)
AUTHORITY_VALIDITY: Final = 10 * VALIDITY
CLOCKS_DIFFER_BY: Final = timedelta(hours=1)
BACKDATE: Final = timedelta(minutes=5)
"""By how much a certificate that was asked for begins earlier."""
SHORT_LIVED: Final = timedelta(hours=8)

SIGNATURES: Final = frozenset({"digital signature", "signing"})
KEY_USAGES: Final = SIGNATURES | {
    "content commitment",
    "key encipherment",
    "data encipherment",
    "key agreement",
    "cert sign",
    "crl sign",
}
EXTENDED_USAGES: Final[Mapping[str, x509.ObjectIdentifier]] = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
}
"""Usages of CertificateSigningRequests that are extended key usages."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (with its chain) and its key, as PEM."""

    certificate: bytes
    key: bytes


def self_signed(hosts: Sequence[str], *, now: datetime, name: str) -> KeyPair:
    """Make a certificate for *hosts*, DNS names or addresses, that is its own authority.

    *now* must know its zone; *name* becomes the common name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate(key, name, now=now, validity=VALIDITY)
        .issuer_name(_named(name))
        .add_extension(_of_hosts(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True, serves=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    return _signed(builder, key, by=key)


def authority(*, now: datetime, name: str) -> KeyPair:
    """Make a certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate(key, name, now=now, validity=AUTHORITY_VALIDITY)
        .issuer_name(_named(name))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs=True), critical=True)
    )
    return _signed(builder, key, by=key)


def issued(by: KeyPair, hosts: Sequence[str], *, now: datetime, name: str) -> KeyPair:
    """Make a certificate for a server that the authority *by* vouches for.

    The rest is as for :func:`self_signed`. Raises ValueError when *by* cannot be read.
    """
    issuer, signing = _issuer(by)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _certificate(key, name, now=now, validity=VALIDITY)
        .issuer_name(issuer.subject)
        .add_extension(_of_hosts(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(serves=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
    )
    return _signed(builder, key, by=signing)


def signed_request(
    by: KeyPair,
    request: x509.CertificateSigningRequest,
    *,
    now: datetime,
    seconds: int,
    usages: Collection[str],
) -> bytes:
    """Return the certificate that *request* asks for, as PEM, signed by the authority *by*.

    It has the names of the request, is good for *seconds* and for the *usages* that
    CertificateSigningRequests know. It begins a little ago, as clocks differ; one for less than 8
    hours is not shortened by that. Raises ValueError when *by* cannot be read.
    """
    issuer, signing = _issuer(by)
    shortened = BACKDATE if seconds >= SHORT_LIVED.total_seconds() else timedelta(0)
    end = now + timedelta(seconds=seconds) - shortened
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(min(end, issuer.not_valid_after_utc))
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
    )
    if not KEY_USAGES.isdisjoint(usages):
        builder = builder.add_extension(_key_usage_of(usages), critical=True)
    purposes = [EXTENDED_USAGES[usage] for usage in sorted(usages) if usage in EXTENDED_USAGES]
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    with suppress(x509.ExtensionNotFound):
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        builder = builder.add_extension(names.value, critical=not len(request.subject))
    return builder.sign(signing, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def server_context(pair: KeyPair, *, client_authority: bytes | None = None) -> ssl.SSLContext:
    """Return the TLS settings of a server with *pair*; clients need no certificate.

    One that *client_authority* (PEM) has issued is accepted. Raises ssl.SSLError when *pair* does
    not belong together, or the key is encrypted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if client_authority is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=client_authority.decode())
    load_pair(context, pair)
    return context


def load_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Have *context* show *pair*. Raises ssl.SSLError as :func:`server_context` does."""
    with file_in_memory(pair.certificate + b"\n" + pair.key) as path:
        context.load_cert_chain(path, password="")  # else it asks the terminal for one


def _certificate(
    key: ec.EllipticCurvePrivateKey, name: str, *, now: datetime, validity: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + validity)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    *,
    by: ec.EllipticCurvePrivateKey,
) -> KeyPair:
    return KeyPair(
        builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _issuer(by: KeyPair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signing = serialization.load_pem_private_key(by.key, password=None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of the authority is of another kind than ours")
    return issuer, signing


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _of_hosts(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_general_name(host) for host in hosts])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs: bool = False, serves: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=serves,
        key_cert_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_usage_of(usages: Collection[str]) -> x509.KeyUsage:
    agrees = "key agreement" in usages
    return x509.KeyUsage(
        digital_signature=bool(SIGNATURES & set(usages)),
        content_commitment="content commitment" in usages,
        key_encipherment="key encipherment" in usages,
        data_encipherment="data encipherment" in usages,
        key_agreement=agrees,
        key_cert_sign="cert sign" in usages,
        crl_sign="crl sign" in usages,
        encipher_only=agrees and "encipher only" in usages,
        decipher_only=agrees and "decipher only" in usages,
    )
