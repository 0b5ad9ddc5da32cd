"""A development authority and certificates for contexts, made on this machine: what `pointsman certs` writes.

The authority is made once for a folder and kept; certificates are made anew each time, whole files at once, so that
running processes may be pointed at them. A real installation has an authority of its own and needs none of this.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from libs.rpc.tls import DOMAIN

AUTHORITY_DAYS = 3650
CLOCKS_DIFFER = timedelta(minutes=5)
_Pair = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


class Authority:
    """The authority of a folder: `ca.pem` and `ca.key`, made if they are not there. OSError, ValueError."""

    def __init__(self, folder: Path, domain: str = DOMAIN, now: datetime | None = None) -> None:
        self._folder = folder
        self._domain = domain
        self._now = now or datetime.now(UTC)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / "ca.pem"
        self._certificate, self._key = self._kept() if self.path.exists() else self._made()

    def issue(self, name: str, contexts: Sequence[str], days: float) -> Path:
        """`NAME.pem` and `NAME.key` for these contexts, in place of those before; the path of the certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = [f"{context.replace('_', '-')}.{self._domain}" for context in contexts]
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.UniformResourceIdentifier(f"spiffe://{self._domain}/{context}") for context in contexts]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])]), timedelta(days=days))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        )
        path = self._folder / f"{name}.pem"
        _write(path.with_suffix(".key"), _pem_of(key), 0o600)
        _write(path, builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM), 0o644)
        return path

    def _kept(self) -> _Pair:
        key = load_pem_private_key(self.path.with_suffix(".key").read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{self.path.with_suffix('.key')} was not made here; name another folder")
        return x509.load_pem_x509_certificate(self.path.read_bytes()), key

    def _made(self) -> _Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{self._domain} development authority")])
        certificate = (
            self._builder(name, timedelta(days=AUTHORITY_DAYS))
            .issuer_name(name)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write(self.path.with_suffix(".key"), _pem_of(key), 0o600)
        _write(self.path, certificate.public_bytes(Encoding.PEM), 0o644)
        return certificate, key

    def _builder(self, subject: x509.Name, lasting: timedelta) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - CLOCKS_DIFFER)
            .not_valid_after(self._now + lasting)
        )


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, text: bytes, mode: int) -> None:
    """The whole file at once; a key is never open to others, not even for a moment."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(text)
    fresh.replace(path)
