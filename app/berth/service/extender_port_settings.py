"""Settings of the extender port."""

import ipaddress
from pathlib import Path

import msgspec

from berth.scheduler.config.options import DelegatingAuthenticationOptions, SecureServingOptions


class ExtenderPortSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where to serve the extender port, and who may call it."""

    port: int
    """0: any free one."""
    bind_address: str
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    client_ca_file: Path | None
    authentication_token_webhook: bool
    allow_unauthenticated: bool
    max_body_bytes: int
    flag_prefix: str = ""
    """What the flags of these settings begin with; for messages."""

    @property
    def authenticates(self) -> bool:
        return self.client_ca_file is not None or self.authentication_token_webhook

    @property
    def is_encrypted(self) -> bool:
        return self.tls_cert_file is not None or self.authenticates

    @property
    def trusts_this_machine(self) -> bool:
        """Whether any client on this machine may ask, and no other."""
        asks_nobody = not (self.authenticates or self.allow_unauthenticated)
        return asks_nobody and ipaddress.ip_address(self.bind_address).is_loopback

    @property
    def serving(self) -> SecureServingOptions:
        return SecureServingOptions(
            bind_address=self.bind_address,
            secure_port=self.port,
            tls_cert_file=_text(self.tls_cert_file),
            tls_private_key_file=_text(self.tls_private_key_file),
        )

    @property
    def authentication(self) -> DelegatingAuthenticationOptions:
        """Of the cluster's own authorities none counts."""
        return DelegatingAuthenticationOptions(
            client_ca_file=_text(self.client_ca_file), authentication_skip_lookup=True
        )


def _text(path: Path | None) -> str:
    return "" if path is None else str(path)
