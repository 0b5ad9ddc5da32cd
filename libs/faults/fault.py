"""The one shape of failure. Standard library only, so that deciding code may raise it.

Laws of this file:
- consumers branch on `code`, never on `message`;
- what is not said takes its value from the registry, and a code that the registry does not know survives (ERR-3);
- a Fault is a value: two with equal fields are equal. Never change one; `replaced` gives a copy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from libs.faults.registry import CODES, Category, Scope

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field. `pointer` is a JSON pointer into the request body ("/input/duration_s")."""

    pointer: str
    reason: str


class Fault(Exception):
    """A failure with a name. Raised inside a context, sent as `google.rpc.Status`, stored as a Failure.

    `retry_after_ms` is None when nobody knows. `provider*` say who answered and in which words (redacted before they
    leave this process). `metadata` carries further short facts for machines, strings only.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        category: Category = Category.UNKNOWN,
        scope: Scope = Scope.REQUEST,
        retryable: bool = False,
        retry_after_ms: int | None = None,
        provider: str = "",
        provider_code: str = "",
        provider_message: str = "",
        errors: tuple[FieldError, ...] = (),
        metadata: Mapping[str, str] = _NOTHING,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.category = Category(category)
        self.scope = Scope(scope)
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        self.provider = provider
        self.provider_code = provider_code
        self.provider_message = provider_message
        self.errors = tuple(errors)
        self.metadata = MappingProxyType(dict(metadata))

    @classmethod
    def of(cls, code: str, message: str = "", **overrides: Any) -> Self:
        """A fault with the registry's defaults; `overrides` are fields by name.

        KeyError if the registry does not know `code`: own code names only what is documented. (Faults that arrive
        from a peer are built by `wire`, which lets unknown codes live.)
        """
        entry = CODES[code]
        fields: dict[str, Any] = {
            "category": entry.category,
            "scope": entry.scope,
            "retryable": entry.retryable,
            "retry_after_ms": entry.retry_after_ms,
        }
        fields.update(overrides)
        return cls(code, message or entry.title, **fields)

    @classmethod
    def invalid(cls, *errors: tuple[str, str], message: str = "", code: str = "validation_failed") -> Self:
        """A refusal of named fields: `Fault.invalid(("/input/prompt", "is required"))`."""
        named = tuple(FieldError(pointer, reason) for pointer, reason in errors)
        text = message or "; ".join(f"{error.pointer or 'the body'} {error.reason}" for error in named)
        return cls.of(code, text, errors=named)

    def fields(self) -> dict[str, Any]:
        """Every field by name, as given to the constructor."""
        return {
            "code": self.code,
            "message": self.message,
            "category": self.category,
            "scope": self.scope,
            "retryable": self.retryable,
            "retry_after_ms": self.retry_after_ms,
            "provider": self.provider,
            "provider_code": self.provider_code,
            "provider_message": self.provider_message,
            "errors": self.errors,
            "metadata": dict(self.metadata),
        }

    def replaced(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**(self.fields() | changes))

    def to_json(self) -> dict[str, Any]:
        """JSON types only, empty fields left out; the form in which a store keeps a Failure."""
        value: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "category": self.category.value,
            "scope": self.scope.value,
            "retryable": self.retryable,
        }
        if self.retry_after_ms is not None:
            value["retry_after_ms"] = self.retry_after_ms
        for name in ("provider", "provider_code", "provider_message"):
            if getattr(self, name):
                value[name] = getattr(self, name)
        if self.errors:
            value["errors"] = [{"pointer": error.pointer, "reason": error.reason} for error in self.errors]
        if self.metadata:
            value["metadata"] = dict(self.metadata)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Fields that this release does not know are ignored."""
        return cls(
            value["code"],
            value.get("message", ""),
            category=Category.of(value.get("category", "")),
            scope=Scope.of(value.get("scope", "")),
            retryable=bool(value.get("retryable", False)),
            retry_after_ms=value.get("retry_after_ms"),
            provider=value.get("provider", ""),
            provider_code=value.get("provider_code", ""),
            provider_message=value.get("provider_message", ""),
            errors=tuple(FieldError(item["pointer"], item["reason"]) for item in value.get("errors", ())),
            metadata=value.get("metadata", {}),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fault) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.scope))

    def __repr__(self) -> str:
        return f"Fault({self.code!r}, {self.message!r}, {self.category.value}/{self.scope.value})"

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.to_json()))


def _restore(kind: type[Fault], value: Mapping[str, Any]) -> Fault:
    return kind.from_json(value)
