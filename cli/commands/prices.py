"""`pointsman prices`: public price tables as rules of the catalogue."""

import hashlib
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from cli import output
from cli.context import json_option
from cli.pricelist.changes import Change, changes, continued
from cli.pricelist.importing import Imported, import_table
from cli.pricelist.table import TableError, read_table
from cli.pricelist.writing import WritingError, rules_in, text_of_rules


@click.group()
def prices() -> None:
    """Prices of providers."""


@prices.group("import")
def import_() -> None:
    """Turn a public price table into rules of the catalogue."""


@import_.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--only", default="*", show_default=True, help="Models whose name fits this pattern.")
@click.option("--currency", default="USD", show_default=True, help="The currency that the table counts in.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the rules there, not to the screen."
)
@click.option("--report", is_flag=True, help="Tell every model without a price, and what rules leave out.")
@click.option(
    "--more-than",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    help="With an --out that exists: tell prices that changed by more than so many percent.",
)
@json_option
def litellm(
    file: Path, only: str, currency: str, out: Path | None, report: bool, more_than: int, as_json: bool
) -> None:
    """Import FILE, LiteLLM's `model_prices_and_context_window.json`.

    What the table does not state has no price and is listed. Nothing is sent: `pointsman catalog apply --merge` does
    that with the file that is written.
    """
    if len(currency) != 3 or not currency.isalpha() or not currency.isupper():
        raise click.BadParameter("must be three capital letters, for example USD", param_hint="--currency")
    data = file.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    try:
        found = import_table(read_table(data), currency, only)
    except TableError as error:
        output.fail(f"{file} {error}", output.WRONG_USE)
    try:
        before = rules_in(out) if out else {}
    except WritingError as error:
        output.fail(f"{out} {error}; name another file for --out", output.WRONG_USE)
    rules = continued(found.rules, before)
    moved = changes(rules, before, Decimal(more_than) / 100) if before else []
    text = text_of_rules(rules, digest)
    if out:
        out.write_text(text, encoding="utf-8")
    elif not as_json:
        click.echo(text, nl=False)
    if as_json:
        output.show_json(_document(found, moved, digest))
        return
    _tell(found, moved, report, f" to {out}" if out else "")


def _document(found: Imported, moved: Iterable[Change], digest: str) -> dict[str, Any]:
    return {
        "table_sha256": digest,
        "rules": len(found.rules),
        "unpriced": found.unpriced,
        "warnings": found.warnings,
        "changes": [
            {"id": item.id, "change": item.what, "percent": _percent(item), "prices": item.words} for item in moved
        ],
    }


def _percent(change: Change) -> str | None:
    if change.what != "changed":
        return None
    return format(round(change.share * 100, 1), "f") if change.share.is_finite() else "from zero"


def _tell(found: Imported, moved: list[Change], report: bool, where: str) -> None:
    """On standard error: the rules themselves may be on standard output."""
    console = output.errors
    counts = (
        f"{output.count(len(found.rules), 'rule')}{where}",
        output.count(len(found.unpriced), "model without a price", "models without a price"),
        output.count(len(found.warnings), "rule that leaves something out", "rules that leave something out"),
    )
    console.print(", ".join(counts), highlight=False, markup=False)
    if moved:
        rows = ((item.id, item.what, _percent(item), item.words) for item in moved)
        console.print(output.table("Changed", ("id", "change", "percent", "largest"), list(rows)))
    if report:
        console.print(output.table("Without a price", ("model", "why"), list(found.unpriced.items())))
        told = ((name, "\n".join(words)) for name, words in found.warnings.items())
        console.print(output.table("Left out", ("model", "what"), list(told)))
    elif found.unpriced or found.warnings:
        console.print("--report names them, --json for programs", highlight=False, markup=False)
