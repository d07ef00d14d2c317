"""Client certificates: who issued them, and which user they name."""

from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from berth.kube.client.reviews import User

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
"""Where a user's extra values say by which credential they were known."""


class CertificateAuthorities:
    """The CAs whose client certificates are accepted."""

    def __init__(self, pem: str) -> None:
        """Raises ValueError when *pem* has no certificate, or one that cannot be read."""
        self._certificates = x509.load_pem_x509_certificates(pem.encode())
        # Written anew: around certificates a file may have what OpenSSL does not take.
        self.pem = "".join(
            authority.public_bytes(Encoding.PEM).decode() for authority in self._certificates
        )

    def have_issued(self, certificate: x509.Certificate) -> bool:
        """Return whether one of these has signed *certificate* itself.

        The rest (the chain above, constraints, purpose) was checked by the TLS handshake, though
        against all authorities that the server trusts for anything. Intermediate authorities
        therefore have to be in the file; those that a client sends along do not count.
        """
        for authority in self._certificates:
            try:
                certificate.verify_directly_issued_by(authority)
            except (ValueError, TypeError, InvalidSignature):
                continue
            return True
        return False


def common_name(certificate: x509.Certificate) -> str:
    """Return the first common name, "" without."""
    return next(iter(_values(certificate, NameOID.COMMON_NAME)), "")


def user_of(certificate: x509.Certificate) -> User:
    """Return the user of *certificate*: the common name, with its organizations as groups."""
    fingerprint = certificate.fingerprint(hashes.SHA256()).hex()
    return User(
        username=common_name(certificate),
        groups=_values(certificate, NameOID.ORGANIZATION_NAME),
        extra={CREDENTIAL_ID: (f"X509SHA256={fingerprint}",)},
    )


def _values(certificate: x509.Certificate, kind: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(
        str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(kind)
    )
