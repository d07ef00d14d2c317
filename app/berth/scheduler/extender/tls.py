"""TLS towards an extender (spec §9.1)."""

import ssl
from pathlib import Path

from berth.runtime.certificates import KeyPair, load_pair
from berth.scheduler.config.errors import invalid
from berth.scheduler.config.types import Extender, ExtenderTLSConfig


def client_context(config: Extender) -> ssl.SSLContext:
    """Return whom to trust and which certificate to show. Raises OSError, ValueError, SSLError.

    Data wins over files. With enableHTTPS and no authority the extender is not verified, as in
    kube-scheduler.
    """
    tls = config.tls_config or ExtenderTLSConfig()
    has_authority = bool(tls.ca_data or tls.ca_file)
    if tls.insecure and has_authority:
        raise ValueError("insecure: Invalid value: true: there is a CA to verify with")
    if tls.ca_data:
        context = ssl.create_default_context(cadata=tls.ca_data.decode("ascii"))
    else:
        try:
            context = ssl.create_default_context(cafile=tls.ca_file or None)
        except OSError as exc:  # ssl names no file
            raise ValueError(invalid("caFile", tls.ca_file, exc.strerror or str(exc))) from exc
    if tls.insecure or (config.enable_https and not has_authority):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data or tls.cert_file:
        certificate = tls.cert_data or Path(tls.cert_file).read_bytes()
        key = tls.key_data or (Path(tls.key_file).read_bytes() if tls.key_file else b"")
        load_pair(context, KeyPair(certificate, key))
    return context
