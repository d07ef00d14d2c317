"""A TLS context for a server that runs for months: certificates and authorities may change."""

import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from berth.runtime.certificates import KeyPair, server_context
from berth.scheduler.config.options import SecureServingOptions
from berth.service.server.access.serving_certificates import (
    CertificateFiles,
    default_files,
    made_up,
    named_files,
)
from berth.service.server.access.tls_settings import TlsFlagError, apply_suites, apply_version

log = logging.getLogger(__name__)

DEFAULT: Final = ""
"""Stands for any server name without a certificate of its own."""

Pairs: TypeAlias = dict[str, tuple[CertificateFiles | None, KeyPair]]
"""Certificates by server name, and where they are from, unless they are made up."""


class ServingTls:
    """Shows the certificates that the flags name, and asks clients for theirs.

    OpenSSL neither replaces certificates in a context nor forgets authorities. So a change makes
    new contexts, and :attr:`context`, which the listener has for good, hands every handshake over
    to one of them.
    """

    def __init__(self, options: SecureServingOptions, *, now: float) -> None:
        """*now* is when a certificate that is made up begins to be valid, in Unix seconds.

        Raises TlsFlagError.
        """
        self._options = options
        self._files = default_files(options, now=now)
        self._named = named_files(options)
        self._made_up = made_up(now) if self._files is None else None
        self._authorities: tuple[str, ...] = ()
        self._pairs = self._read()
        self._contexts = self._make(self._pairs, self._authorities)
        self.context = self._contexts[DEFAULT]
        self.context.sni_callback = self._hand_over

    def trust(self, authorities: Sequence[str]) -> None:
        """Ask clients for a certificate, and accept those that *authorities* (PEM) issued."""
        if tuple(authorities) != self._authorities:
            self._contexts = self._make(self._pairs, authorities)
            self._authorities = tuple(authorities)
            # Of the context that a handshake begins with, this stays in force.
            self.context.verify_mode = ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE

    def refresh(self) -> None:
        """Use what the files hold now for new connections; what cannot be used is logged."""
        try:
            pairs = self._read()
            if pairs != self._pairs:
                self._contexts = self._make(pairs, self._authorities)
                self._pairs = pairs
                log.info("serving certificates reloaded")
        except (TlsFlagError, OSError) as exc:  # half written, perhaps: there will be another look
            log.warning("serving certificates were not reloaded", extra={"error": str(exc)})

    def _read(self) -> Pairs:
        """Return the certificates by server name."""
        pairs: Pairs = {}
        if self._made_up is not None:
            pairs[DEFAULT] = None, self._made_up
        for files in (self._files, *self._named):
            if files is not None:
                pair = files.read()
                for name in files.names or (DEFAULT,):
                    pairs.setdefault(name.lower(), (files, pair))
        return pairs

    def _make(self, pairs: Pairs, authorities: Sequence[str]) -> Mapping[str, ssl.SSLContext]:
        return {
            name: self._context(files, pair, authorities) for name, (files, pair) in pairs.items()
        }

    def _context(
        self, files: CertificateFiles | None, pair: KeyPair, authorities: Sequence[str]
    ) -> ssl.SSLContext:
        try:
            context = server_context(pair)
        except ssl.SSLError as exc:
            where = files and f"{files.flag} {files.certificate}, {files.key}"
            raise TlsFlagError(f"{where}: {exc.reason or exc}") from exc
        apply_version(context, self._options.tls_min_version)
        apply_suites(context, self._options.tls_cipher_suites)
        # A file may name an intermediate authority alone, and mean just that one.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        for pem in authorities:
            context.load_verify_locations(cadata=pem)
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _hand_over(
        self, connection: ssl.SSLObject, server_name: str | None, _context: ssl.SSLContext
    ) -> None:
        """Choose the context for a handshake: of this name, of its wildcard, of any."""
        name = (server_name or DEFAULT).lower()
        wildcard = f"*.{name.partition('.')[2]}"
        contexts = self._contexts
        connection.context = contexts.get(name) or contexts.get(wildcard) or contexts[DEFAULT]
