"""Serving certificates: from files, from a folder, or made at start (spec §7.2)."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from berth.runtime.addresses import THIS_MACHINE
from berth.runtime.certificates import KeyPair, self_signed
from berth.runtime.files import PUBLIC, write_file
from berth.scheduler.config.options import SecureServingOptions
from berth.service.server.access.tls_settings import TlsFlagError

NAME: Final = "kube-scheduler"
"""What the files in --cert-dir are called, as kube-scheduler's are."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate, its key, and for which server names it is shown; none: for all others."""

    flag: str
    certificate: Path
    key: Path
    names: tuple[str, ...] = ()

    def read(self) -> KeyPair:
        """Return what the files hold. Raises TlsFlagError with the file's name."""
        try:
            return KeyPair(self.certificate.read_bytes(), self.key.read_bytes())
        except OSError as exc:
            raise TlsFlagError(f"{self.flag} {exc.filename}: {exc.strerror}") from exc


def default_files(options: SecureServingOptions, *, now: float) -> CertificateFiles | None:
    """Return the files of the certificate for any name; None to make one up in memory.

    In --cert-dir they are made at *now* (Unix seconds) unless they exist. Raises TlsFlagError.
    """
    certificate, key = options.tls_cert_file, options.tls_private_key_file
    if bool(certificate) != bool(key):
        given = f"--tls-cert-file {certificate}" if certificate else f"--tls-private-key-file {key}"
        raise TlsFlagError(f"{given}: --tls-cert-file and --tls-private-key-file go together")
    if certificate:
        return CertificateFiles("--tls-cert-file", Path(certificate), Path(key))
    if not options.cert_dir:
        return None
    folder = Path(options.cert_dir)
    files = CertificateFiles("--cert-dir", folder / f"{NAME}.crt", folder / f"{NAME}.key")
    try:
        if not (files.certificate.exists() and files.key.exists()):
            _write(made_up(now), files)
    except OSError as exc:
        raise TlsFlagError(f"--cert-dir {exc.filename or folder}: {exc.strerror}") from exc
    return files


def named_files(options: SecureServingOptions) -> list[CertificateFiles]:
    """Return the files of --tls-sni-cert-key, ``certificate,key[:name,name]`` each."""
    return [_named(text) for text in options.tls_sni_cert_key]


def made_up(now: float) -> KeyPair:
    """Make a certificate, valid from *now* in Unix seconds.

    It is for this machine: clients on others cannot verify it anyway.
    """
    return self_signed(THIS_MACHINE, now=datetime.fromtimestamp(now, UTC), name=NAME)


def _named(text: str) -> CertificateFiles:
    files, _, names = text.partition(":")
    certificate, comma, key = files.partition(",")
    if not (comma and certificate and key) or "," in key:
        raise TlsFlagError(f"--tls-sni-cert-key {text}: must be certificate,key[:name,name]")
    found = CertificateFiles("--tls-sni-cert-key", Path(certificate), Path(key))
    wanted = tuple(filter(None, names.split(","))) or _names_in(found)
    if not wanted:
        raise TlsFlagError(f"--tls-sni-cert-key {text}: the certificate is for no name")
    return CertificateFiles(found.flag, found.certificate, found.key, wanted)


def _names_in(files: CertificateFiles) -> tuple[str, ...]:
    """Return the DNS names that a certificate is for."""
    try:
        certificate = x509.load_pem_x509_certificate(files.read().certificate)
    except ValueError as exc:
        raise TlsFlagError(f"{files.flag} {files.certificate}: {exc}") from exc
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        subject = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return tuple(str(attribute.value) for attribute in subject)
    return tuple(names.value.get_values_for_type(x509.DNSName))


def _write(pair: KeyPair, files: CertificateFiles) -> None:
    files.certificate.parent.mkdir(parents=True, exist_ok=True)
    # The key first: a certificate says that both are there.
    write_file(files.key, pair.key)
    write_file(files.certificate, pair.certificate, mode=PUBLIC)
