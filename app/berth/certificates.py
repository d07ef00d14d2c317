"""Certificates made at start, for servers that were given none."""

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from berth.files import file_in_memory

VALIDITY: Final = timedelta(days=365)
AUTHORITY_VALIDITY: Final = 10 * VALIDITY
CLOCKS_DIFFER_BY: Final = timedelta(hours=1)


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
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signing = serialization.load_pem_private_key(by.key, password=None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of the authority is of another kind than ours")
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


def server_context(pair: KeyPair) -> ssl.SSLContext:
    """Return the TLS settings of a server with *pair*; clients need no certificate.

    Raises ssl.SSLError when the two do not belong together, or the key is encrypted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
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
