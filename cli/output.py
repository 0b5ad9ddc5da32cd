"""Words on a terminal: tables by default, JSON on demand, errors that name the next step.

Exit codes: 0 done; 1 the server refused; 2 wrong use; 3 no server; 4 the run ended without a result.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from rich.console import Console
from rich.table import Table

REFUSED = 1
WRONG_USE = 2
NO_SERVER = 3
NO_RESULT = 4

PIPED_WIDTH = 140
"""Columns where nobody tells the width of the terminal: a file, a pipe, CI."""

console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
errors = Console(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH)

NEXT_STEPS: Mapping[str, str] = {
    "unauthenticated": "give a key with --key or POINTSMAN_KEY, or run where DATA/admin.key can be read (--data)",
    "forbidden": "this key lacks the scope; make one with `pointsman keys create --scopes …`",
    "model_not_published": "`pointsman catalog show` lists the models and why one is not published",
    "catalog_invalid": "mend the places named above and apply again; nothing was changed",
    "catalog_not_publishable": "mend the places named above, apply, then publish again",
    "idempotency_conflict": "the key was used with another body; take a new key for a new request",
    "join_timeout": "the run goes on; `pointsman run watch` follows it",
    "governance_backend_down": "the server's database is away; `pointsman doctor` looks closer",
    "submission_unresolved": "`pointsman attempt resolve` tells the server what you found at the provider",
}


def show_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose cells are texts; None is an empty cell."""
    made = Table(title=title, title_justify="left", header_style="bold", expand=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*("" if cell is None else str(cell) for cell in row))
    return made


def money(value: Mapping[str, str] | None) -> str:
    """`5.00 CNY`, or nothing."""
    return f"{value['amount']} {value['currency']}" if value else ""


def fail(message: str, code: int, next_step: str = "", details: Iterable[str] = ()) -> NoReturn:
    """Say what went wrong and what to do next, and leave."""
    errors.print(f"[bold red]error:[/] {message}", highlight=False)
    for detail in details:
        errors.print(f"  {detail}", highlight=False, markup=False)
    if next_step:
        errors.print(f"[bold]next:[/]  {next_step}", highlight=False)
    raise SystemExit(code)


def fail_with_problem(body: Mapping[str, Any], message: str) -> NoReturn:
    """The same for a problem of the server."""
    code = str(body.get("code", ""))
    details = [f"{item.get('pointer', '')}: {item.get('reason', '')}" for item in body.get("errors", ())]
    said = f"{message} [dim]({code}, request {body.get('request_id', 'unknown')})[/]"
    fail(said, REFUSED, NEXT_STEPS.get(code, ""), details)
