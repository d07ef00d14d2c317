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
    names = [_general_name(host) for host in hosts]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + VALIDITY)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


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


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
