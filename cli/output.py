"""Words on a terminal: tables by default, JSON on demand, errors that name the next step.

Exit codes: 0 done; 1 the server refused; 2 wrong use; 3 no server; 4 the run ended without a result; 130 Ctrl-C.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from cli.api import Problem

REFUSED = 1
WRONG_USE = 2
NO_SERVER = 3
NO_RESULT = 4
INTERRUPTED = 130

COPIED = frozenset({"id", "run", "task", "call"})
"""Columns of ids that people copy into the next command: they stay in one piece while others are folded."""

PIPED_WIDTH = 140
"""Columns where nobody tells the width: a file, a pipe, CI."""


def width(stream: TextIO, env: Mapping[str, str]) -> int | None:
    """Columns to fill; None where the terminal, or COLUMNS, says it."""
    return None if stream.isatty() or env.get("COLUMNS", "").isdigit() else PIPED_WIDTH


console = Console(width=width(sys.stdout, os.environ))
errors = Console(stderr=True, width=width(sys.stderr, os.environ))

NEXT_STEPS: Mapping[str, str] = {
    "unauthenticated": "give a key with --key or POINTSMAN_KEY, or run where DATA/admin.key can be read (--data)",
    "forbidden": "this key lacks the scope; make one with `pointsman keys create --scopes …`",
    "model_not_published": "`pointsman models` lists what this key may use, `pointsman doctor` what is closed",
    "catalog_invalid": "mend the places named above, then give the same command again",
    "catalog_not_publishable": "mend the places named above, apply, then publish again",
    "idempotency_conflict": "the key was used with another body; take a new key for a new request",
    "not_found": (
        "`pointsman run list`, `pointsman health`, `pointsman alerts --all` and `pointsman review list`"
        " show the ids that there are"
    ),
    "run_terminal": "`pointsman run show` tells how it ended; `pointsman run redrive` begins failed nodes again",
    "conflict": "read it again: `pointsman run show` and `pointsman review list` tell how things stand now",
    "budget_exhausted": "`pointsman budget list` shows what is left, `pointsman budget raise` changes a limit",
    "join_timeout": "the run goes on; `pointsman run watch` follows it",
    "governance_backend_down": "the server's database is away; `pointsman doctor` looks closer",
    "submission_unresolved": "`pointsman attempt resolve` tells the server what you found at the provider",
}


def show_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose cells are texts as they stand, or `Text` with a style; None is an empty cell."""
    made = Table(title=title, title_justify="left", header_style="bold", expand=False)
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column in COPIED)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in row))
    return made


def show_rows(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], nothing: str) -> None:
    """A table, or the words for an empty one."""
    made = table(title, columns, rows)
    console.print(made if made.row_count else nothing, highlight=False)


def when(time: str | None) -> str:
    """An RFC 3339 time to the second: `2026-01-31T09:30:00Z`."""
    whole, dot, rest = (time or "").partition(".")
    return f"{whole}Z" if dot and rest.endswith("Z") else whole


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def money(value: Mapping[str, str] | None) -> str:
    """`5.00 CNY`, or nothing."""
    return f"{value['amount']} {value['currency']}" if value else ""


def fail(message: str, code: int, next_step: str = "", details: Iterable[str] = (), source: str = "") -> NoReturn:
    """Say what went wrong and what to do next, and leave. `source` names who said it, in pale."""
    pale = f" [dim]({escape(source)})[/]" if source else ""
    errors.print(f"[bold red]error:[/] {escape(message)}{pale}", highlight=False)
    for detail in details:
        errors.print(f"  {detail}", highlight=False, markup=False)
    if next_step:
        errors.print(f"[bold]next:[/]  {escape(next_step)}", highlight=False)
    raise SystemExit(code)


def fail_with_problem(problem: Problem) -> NoReturn:
    """The same for a problem of the server."""
    sentence, places = problem.told()
    request = problem.body.get("request_id")
    source = f"{problem.code}, request {request}" if problem.code else f"status {problem.status}"
    call_id = problem.body.get("call_id")
    known = NEXT_STEPS.get(problem.code, f"`pointsman explain {call_id}` tells every try and why" if call_id else "")
    fail(sentence, REFUSED, known, places, source)
