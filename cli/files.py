"""Files that people write: a production, or one request, as `pointsman run create FILE` takes them.

The notation is that of the catalogue: YAML 1.2, in which `16:9` is a text, and a key that stands twice is a mistake.
"""

from pathlib import Path
from typing import Any

from cli import output
from services.routing.domain.catalog_text import load

REQUEST_FIELDS = frozenset({"model", "input", "options", "labels", "callback_url"})
LOOKS_LIKE = "a file holds a production (`production:` and `nodes:`) or one request (`model:` and `input:`)"


def read_order(path: Path) -> dict[str, Any]:
    """The body of a new Run. A file that is neither a production nor a request ends the command (wrong use)."""
    value = read_document(path)
    if not isinstance(value, dict):
        output.fail(f"{path} holds no mapping", output.WRONG_USE, LOOKS_LIKE)
    if "production" in value:
        inner = value["production"]
        # The body of a request, saved to a file, is taken as well as the document alone.
        return value if isinstance(inner, dict) else {"production": value}
    if "model" not in value:
        output.fail(f"{path} names neither a production nor a model", output.WRONG_USE, LOOKS_LIKE)
    if unknown := sorted(value.keys() - REQUEST_FIELDS):
        fields = ", ".join(sorted(REQUEST_FIELDS))
        output.fail(f"{path}: a request has no field {unknown[0]!r}", output.WRONG_USE, f"it may have {fields}")
    return value


def read_document(path: Path) -> Any:
    """The value of a YAML or JSON file. One that cannot be read ends the command, with line and column where known."""
    try:
        return load(path.read_text(encoding="utf-8"))
    except OSError as error:
        output.fail(f"{path} cannot be read: {error.strerror}", output.WRONG_USE)
    except UnicodeDecodeError:
        output.fail(f"{path} is no text in UTF-8", output.WRONG_USE)
    except ValueError as error:
        output.fail(f"{path}: {error}", output.WRONG_USE, "mend that place, then give the same command again")
