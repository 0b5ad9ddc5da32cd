"""The certificates of this process: read from files, checked before they are used, read again when they change.

Laws of this file:
- a process that cannot prove every context which it hosts does not start; the error names the variable and the remedy;
- files that were changed are taken over within seconds; while they make no sense (half of them written, a key of
  another certificate, expired) those before them stay in force and the log says why.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from libs.host.placement import PlacementError, TlsFiles
from libs.kernel.clock import Clock
from libs.rpc.tls import Certificates, Tls

LOOK_S = 5.0
WARN_BEFORE = timedelta(days=7)

log = logging.getLogger(__name__)
Mark = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Read:
    certificates: Certificates
    ends: datetime


class OwnCertificates:
    """`tls` is what doors and channels use; `look` takes over what has changed on disk. PlacementError."""

    def __init__(self, files: TlsFiles, contexts: Sequence[str], clock: Clock) -> None:
        self._files = files
        self._contexts = tuple(contexts)
        self._clock = clock
        self._seen = _mark(files)
        self._warned = False
        read = _read(files, self._contexts, clock.now())
        self._ends = read.ends
        self.tls = Tls(read.certificates, files.domain)

    async def look(self) -> None:
        """Renew what has changed; a few calls of stat when nothing has."""
        self._warn()
        try:
            mark = _mark(self._files)
            if mark == self._seen:
                return
            read = _read(self._files, self._contexts, self._clock.now())
        except PlacementError as error:
            log.warning("the certificates before stay in force: %s", error)
            return
        self._seen, self._ends, self._warned = mark, read.ends, False
        self.tls.renew(read.certificates)
        log.info("certificates were renewed", extra={"ends": read.ends.isoformat()})

    def _warn(self) -> None:
        if not self._warned and self._ends - self._clock.now() < WARN_BEFORE:
            self._warned = True
            log.warning("%s ends %s; put a new one in its place", self._files.chain, self._ends.isoformat())


def _mark(files: TlsFiles) -> Mark:
    """Tells a changed file from an unchanged one."""
    marks = []
    for variable, path in files.by_variable():
        try:
            stat = path.stat()
        except OSError as error:
            raise PlacementError(f"{variable} is {path}, which cannot be read: {error.strerror}") from None
        marks.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(marks)


def _read(files: TlsFiles, contexts: Sequence[str], now: datetime) -> _Read:
    """The files, if they fit together and name every context. PlacementError."""
    texts = {}
    for variable, path in files.by_variable():
        try:
            texts[variable] = path.read_bytes()
        except OSError as error:
            raise PlacementError(f"{variable} is {path}, which cannot be read: {error.strerror}") from None
    chain, key, authorities = texts.values()
    own = _loaded(chain, "POINTSMAN_TLS_CERT", files.chain)[0]
    _loaded(authorities, "POINTSMAN_TLS_CA", files.authorities)
    try:
        public = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError):
        raise PlacementError(f"POINTSMAN_TLS_KEY is {files.key}, which is no PEM key without a password") from None
    if public != own.public_key():
        raise PlacementError(f"POINTSMAN_TLS_KEY is {files.key}, which is not the key of {files.chain}")
    if not own.not_valid_before_utc <= now < own.not_valid_after_utc:
        raise PlacementError(
            f"POINTSMAN_TLS_CERT is {files.chain}, which is valid from {own.not_valid_before_utc.isoformat()} "
            f"to {own.not_valid_after_utc.isoformat()}; put one in its place that is valid now"
        )
    found = Certificates(chain, key, authorities)
    tls = Tls(found, files.domain)
    proved = tls.contexts(_names(own, x509.DNSName), ())
    missing = [context for context in contexts if context not in proved]
    if missing:
        wanted = ", ".join(tls.server_name(context) for context in missing)
        raise PlacementError(
            f"POINTSMAN_TLS_CERT is {files.chain}, which lacks the DNS name {wanted} (`pointsman certs`)"
        )
    return _Read(found, own.not_valid_after_utc)


def _loaded(pem: bytes, variable: str, path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise PlacementError(f"{variable} is {path}, which holds no PEM certificate") from None


def _names(certificate: x509.Certificate, kind: type[x509.DNSName]) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return names.value.get_values_for_type(kind)
