"""Certificates of clients, and the authorities that issue them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from berth.runtime.certificates import KeyPair

DAY = timedelta(days=1)


class Authority:
    """Issues certificates that are valid for a day before *now* (Unix seconds) and one after."""

    def __init__(self, name: str, *, now: float) -> None:
        self._now = datetime.fromtimestamp(now, UTC)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()

    def issue(
        self,
        name: str,
        *,
        groups: Sequence[str] = (),
        purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    ) -> KeyPair:
        """Return a client certificate of *name*, as kubeadm makes them: without other names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        if name:
            subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        usage = x509.ExtendedKeyUsage([purpose])
        certificate = (
            self._builder(x509.Name(subject), key)
            .add_extension(usage, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return KeyPair(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - DAY)
            .not_valid_after(self._now + DAY)
        )


def der(pair: KeyPair) -> bytes:
    """Return the certificate of *pair* as a TLS connection has it."""
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    return certificate.public_bytes(serialization.Encoding.DER)


def written(pair: KeyPair, folder: Path, name: str) -> tuple[str, str]:
    """Write *pair* to files, and return their names."""
    files = folder / f"{name}.crt", folder / f"{name}.key"
    files[0].write_bytes(pair.certificate)
    files[1].write_bytes(pair.key)
    return str(files[0]), str(files[1])
