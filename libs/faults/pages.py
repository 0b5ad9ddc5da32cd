"""Writes the page of every code, docs/errors/<code>.md, and their index, from the registry.

python -m libs.faults.pages            write them into docs/errors of the working directory
"""

import json
from pathlib import Path

from libs.faults.fault import Fault, FieldError
from libs.faults.registry import CODES, Category, Code, type_uri

FOLDER = Path("docs/errors")

_MEANS = {
    Category.CONTENT: "the content was refused; no other supply is tried and no health suffers",
    Category.REQUEST: "the request, or the state it meets, does not allow this",
    Category.SUPPLY: "the machinery behind the request failed",
    Category.CAPACITY: "there is no room for it now",
    Category.UNKNOWN: "the outcome is not known",
}


def example(code: Code) -> Fault:
    """A fault as it could look."""
    errors: tuple[FieldError, ...] = ()
    if code.name == "validation_failed":
        errors = (FieldError("/input/duration_s", "must be between 4 and 15"),)
    elif code.name == "catalog_invalid":
        errors = (FieldError("/models/2/bindings/0/supply", "no supply 'x'"),)
    return Fault.of(code.name, code.example, errors=errors)


def problem(code: Code) -> dict[str, object]:
    """The example as the HTTP edge writes it."""
    body: dict[str, object] = {
        "type": type_uri(code.name),
        "title": code.title,
        "status": code.http_status,
        "detail": code.example,
        "code": code.name,
        "category": code.category.value,
        "scope": code.scope.value,
        "retryable": code.retryable,
        "request_id": "01JDXQ4Z8R6W3V5T7Y9ABCDEFG",
    }
    fault = example(code)
    if fault.errors:
        body["errors"] = [{"pointer": error.pointer, "reason": error.reason} for error in fault.errors]
    return body


def page(code: Code) -> str:
    """The page of one code, in Markdown."""
    retry = "yes" if code.retryable else "no"
    if code.retry_after_ms is not None:
        retry += f", after {code.retry_after_ms / 1000:g} s"
    rows = [
        ("HTTP status", str(code.http_status)),
        ("gRPC status", f"`{code.grpc_status}`"),
        ("category", f"`{code.category.value}`: {_MEANS[code.category]}"),
        ("scope", f"`{code.scope.value}`"),
        ("retryable", retry),
        ("asked for by", ", ".join(code.source.split())),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    body = json.dumps(problem(code), indent=2, ensure_ascii=False)
    return (
        f"# {code.name}\n\n{code.title}.\n\n"
        f"**What to do.** {code.does}\n\n"
        f"| | |\n|---|---|\n{table}\n\n"
        f"Over gRPC the reason `{code.name}` is in `google.rpc.ErrorInfo` (domain `pointsman`). Branch on it,\n"
        f"never on the message. Over HTTP:\n\n"
        f"```json\n{body}\n```\n"
    )


def index() -> str:
    """The list of all codes, in Markdown."""
    rows = "\n".join(
        f"| [{code.name}]({code.name}.md) | {code.http_status} | `{code.grpc_status}` | {code.category.value}"
        f" | {'yes' if code.retryable else 'no'} | {code.title} |"
        for code in sorted(CODES.values(), key=lambda code: code.name)
    )
    return (
        "# Error codes\n\n"
        "One list for gRPC reasons, HTTP problems and stored failures. A code is never renamed or removed; new ones\n"
        "come, and a client treats one that it does not know by `category` and `retryable`.\n\n"
        "These pages are written from `libs/faults/registry.py` by `python -m libs.faults.pages`.\n\n"
        "| code | HTTP | gRPC | category | retryable | meaning |\n|---|---|---|---|---|---|\n"
        f"{rows}\n"
    )


def pages() -> dict[str, str]:
    """Every page by file name."""
    return {f"{name}.md": page(code) for name, code in CODES.items()} | {"README.md": index()}


def main() -> None:
    """Write all pages; remove none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
