"""Logging: JSON lines on stderr, plain lines on a terminal, nothing secret on either (ERR-4).

Use the standard library: `logging.getLogger(__name__).info("lease expired", extra={"lease_id": lease.id})`. Every field
of `extra` becomes a key of the line; `correlation.facts()` are added; all of it is redacted here, the last step.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from libs.telemetry.correlation import current_trace, facts
from libs.telemetry.redaction import redact, redact_fields

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The record as redacted fields: time, level, logger, message, facts, extras, error."""
    extras = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    fields: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": redact(_message_of(record)),
    }
    fields |= redact_fields({**facts(), **extras})
    trace_id, span_id = current_trace()
    if trace_id:
        fields |= {"trace_id": trace_id, "span_id": span_id}
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = redact(logging.Formatter().formatException(record.exc_info))
    return fields


def _message_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # a wrong format argument must not lose the line
        return str(record.msg)


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        return json.dumps(fields_of(record), ensure_ascii=False, default=str)


class PlainLines(logging.Formatter):
    """For a person at a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and a traceback below it where there is one."""
        fields = fields_of(record)
        time, level, logger = fields.pop("time"), fields.pop("level"), fields.pop("logger")
        message, error = fields.pop("message"), fields.pop("error", "")
        rest = " ".join(f"{name}={value}" for name, value in fields.items())
        line = f"{time[11:23]} {level:7} {logger}: {message}" + (f"  {rest}" if rest else "")
        return f"{line}\n{error}" if error else line


def configure(
    level: str = "info",
    stream: TextIO | None = None,
    plain: bool | None = None,
    logger: logging.Logger | None = None,
) -> None:
    """Send `logger` (the root) to `stream` (stderr); `plain` None: whether it is a terminal. Call once, early."""
    stream = stream if stream is not None else sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainLines() if (stream.isatty() if plain is None else plain) else JsonLines())
    root = logger if logger is not None else logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    # These repeat, at `info`, what our own lines say with more care (URLs with their queries, for one).
    for noisy in ("uvicorn.access", "aiohttp.access", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
