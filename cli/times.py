"""Times as they are typed: a stretch of time, or a moment in the past."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Stretch(click.ParamType):
    """A stretch of time in seconds: `90s`, `30m`, `24h`, `7d`."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        found = re.fullmatch(r"(\d{1,6})([smhd])", str(value), re.ASCII)
        if found is None or int(found[1]) == 0:
            self.fail(f"{value!r} is no time; write for example 30m, 24h or 7d", param, ctx)
        return float(int(found[1]) * UNITS[found[2]])


class Moment(click.ParamType):
    """A moment: `90s`, `30m`, `24h`, `7d` ago, or an RFC 3339 time, as the API takes it."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """An RFC 3339 time in UTC."""
        text = str(value)
        if re.fullmatch(r"\d{1,6}[smhd]", text, re.ASCII):
            ago = timedelta(seconds=Stretch().convert(text, param, ctx))
            return (datetime.now(UTC) - ago).isoformat()
        try:
            found = datetime.fromisoformat(text)
            if found.tzinfo is not None:
                return found.astimezone(UTC).isoformat()
        except (ValueError, OverflowError):
            pass
        self.fail(f"{value!r} is no time; write for example 1h, 7d or 2026-01-31T09:30:00Z", param, ctx)
