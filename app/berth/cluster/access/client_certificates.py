"""Users of client certificates: the common name, with the organizations as groups."""

from functools import lru_cache

from cryptography import x509
from cryptography.x509.oid import NameOID

from berth.cluster.access.users import AUTHENTICATED, User


@lru_cache(maxsize=256)  # a connection has one for all of its requests
def user_of(certificate: bytes) -> User | None:
    """Return the user of a verified certificate, as DER; None if it names nobody.

    Who issued it, and whether it is for clients, was checked in the TLS handshake.
    """
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    if not names or not names[0]:
        return None
    return User(names[0], tuple(dict.fromkeys((*groups, AUTHENTICATED))))
