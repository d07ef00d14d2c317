"""TLS as the flags of Kubernetes spell it: versions, cipher suites, certificates for names."""

import ssl
from collections.abc import Sequence
from typing import Final

from berth.runtime.errors import UserError

VERSIONS: Final = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}

FIXED_SUITES: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
"""Those of TLS 1.3: allowed to be named, always on."""

SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
"""The names that Kubernetes knows and OpenSSL's for them. Triple DES and RC4 are gone."""


class TlsFlagError(UserError):
    """A TLS flag that cannot be obeyed; the message names it and its value."""


def apply_version(context: ssl.SSLContext, name: str) -> None:
    """Obey --tls-min-version. Raises TlsFlagError for a name that is none."""
    if name not in VERSIONS:
        known = ", ".join(filter(None, VERSIONS))
        raise TlsFlagError(f"--tls-min-version {name}: must be one of {known}")
    context.minimum_version = VERSIONS[name]


def apply_suites(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Obey --tls-cipher-suites, which is about TLS 1.2. Raises TlsFlagError."""
    unknown = [name for name in names if name not in SUITES and name not in FIXED_SUITES]
    if unknown:
        raise TlsFlagError(
            f"--tls-cipher-suites {','.join(unknown)}: must be of {', '.join(sorted(SUITES))}"
        )
    ciphers = [SUITES[name] for name in names if name in SUITES]
    if ciphers:
        try:
            context.set_ciphers(":".join(ciphers))
        except ssl.SSLError as exc:
            raise TlsFlagError(
                f"--tls-cipher-suites {','.join(names)}: OpenSSL has none of them"
            ) from exc
