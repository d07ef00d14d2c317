"""The extender port that flags ask for."""

import argparse
import ipaddress

from berth.cli.flags.extender_port import DEST, MEBIBYTE
from berth.runtime.terminal import UsageError
from berth.service.extender_port_settings import ExtenderPortSettings


def extender_port(given: argparse.Namespace, *, prefix: str = "") -> ExtenderPortSettings | None:
    """Return what the flags say; None where they name no port.

    Raises UsageError when they do not fit together.
    """
    values = {
        name.removeprefix(DEST): value
        for name, value in vars(given).items()
        if name.startswith(DEST)
    }
    number = values.pop("port")
    max_body_bytes = values.pop("max_body_mib") * MEBIBYTE
    asked = ExtenderPortSettings(
        port=number or 0, max_body_bytes=max_body_bytes, flag_prefix=prefix, **values
    )
    if (asked.tls_cert_file is None) != (asked.tls_private_key_file is None):
        raise UsageError(
            f"--{prefix}tls-cert-file and --{prefix}tls-private-key-file need each other"
        )
    try:
        address = ipaddress.ip_address(asked.bind_address)
    except ValueError as exc:
        raise UsageError(f"--{prefix}bind-address: {exc}") from exc
    if not (address.is_loopback or asked.authenticates or asked.allow_unauthenticated):
        raise UsageError(
            f"--{prefix}bind-address {address} exposes the extender port: pass"
            f" --{prefix}client-ca-file or --{prefix}authentication-token-webhook, or"
            f" --{prefix}allow-unauthenticated to accept any client"
        )
    return None if number is None else asked
