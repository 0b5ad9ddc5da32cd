"""Secrets from the environment and from files, read at the moment of use and kept nowhere."""

from collections.abc import Mapping
from pathlib import Path

from libs.faults.fault import Fault


class ReferencedSecrets:
    """`Secrets` over an environment and the file system."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def value(self, ref: str) -> str:
        """See `Secrets.value`."""
        secret, problem = self._read(ref)
        if problem:
            raise Fault.of("source_not_configured", f"secret {ref[:200]} {problem}")
        return secret

    def problem(self, ref: str) -> str:
        """See `Secrets.problem`."""
        return self._read(ref)[1]

    def _read(self, ref: str) -> tuple[str, str]:
        kind, _, name = ref.partition(":")
        if kind == "env" and name:
            secret = self._environment.get(name, "").strip()
            return secret, "" if secret else "is not set"
        if kind == "file" and name:
            try:
                secret = Path(name).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError, ValueError) as error:
                return "", f"cannot be read: {type(error).__name__}"
            return secret, "" if secret else "is empty"
        return "", "is no reference: expected env:NAME or file:PATH"
