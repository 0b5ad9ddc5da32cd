"""`pointsman whatif`: history decided again under another policy, price list or catalogue."""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cli import output
from cli.api import Api
from cli.context import Session, json_option, pass_session
from cli.times import Stretch

PAGE = 200
EXAMPLES = 20
EXAMPLES_OF_A_MOVE = 3
"""A table shows so many of each move, since their reasons resemble each other; --json has up to EXAMPLES."""
COUNTS = ("decided", "untouched", "refused", "unreadable", "changed")
Report = dict[str, Any]

yaml_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--policy", type=yaml_file, help="One policy, or a file with `policies` that go by their ids.")
@click.option("--prices", type=yaml_file, help="A file with `prices`, and `currency` and `fx` where rates change.")
@click.option("--catalog", type=yaml_file, help="A whole catalogue file.")
@click.option("--since", type=Stretch(), default="24h", show_default=True, help="How far back: 30m, 24h, 7d.")
@click.option("--model", default="", help="Only decisions about this model.")
@json_option
@pass_session
def whatif(
    session: Session,
    policy: Path | None,
    prices: Path | None,
    catalog: Path | None,
    since: float,
    model: str,
    as_json: bool,
) -> None:
    """Decide history again under another policy, price list or catalogue. Nothing is changed.

    Health and capacity are taken as they were at each decision.
    """
    given = {"policy": policy, "prices": prices, "catalog": catalog}
    named = {kind: file for kind, file in given.items() if file is not None}
    if len(named) != 1:
        raise click.UsageError("give exactly one of --policy, --prices and --catalog")
    ((kind, file),) = named.items()
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file} cannot be read as text: {error}", param_hint=f"--{kind}") from error
    body = {kind: text, "since_s": since, "model": model}
    report = session.do(lambda api: read_pages(api, body, quiet=as_json))
    if as_json:
        output.show_json(report)
    else:
        show(report)
        if not any(report[name] for name in COUNTS):
            about = f" about model {model!r}" if model else ""
            output.console.print(f"  no decision{about} was saved in that time; --since reaches further back")


async def read_pages(api: Api, body: dict[str, Any], *, quiet: bool) -> Report:
    """The sum of all pages, with a bar on a terminal."""
    columns = (TextColumn("deciding again"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = quiet or not output.errors.is_terminal
    with Progress(*columns, console=output.errors, disable=hidden, transient=True) as progress:
        bar = progress.add_task("", total=None)
        whole, token = None, ""
        while whole is None or token:
            query = {"page_size": PAGE, **({"page_token": token} if token else {})}
            page = await api.call("POST", "/v1/operator/whatif", body=body, query=query)
            if whole is None:
                progress.update(bar, total=page["rounds"])
            whole, token = (page if whole is None else added(whole, page)), page["next_page_token"]
            done = sum(page[name] for name in COUNTS if name != "changed")
            progress.advance(bar, done)
    return {name: value for name, value in whole.items() if name != "next_page_token"}


def added(whole: Report, page: Report) -> Report:
    """Two reports as one: every figure is a sum."""
    moves: Counter[tuple[str, str, str]] = Counter()
    for item in (*whole["moves"], *page["moves"]):
        moves[(item["model"], item["from_choice"], item["to_choice"])] += item["count"]
    ordered = sorted(moves.items(), key=lambda item: (-item[1], item[0]))
    names = ("model", "from_choice", "to_choice")
    return {
        **whole,
        **{name: whole[name] + page[name] for name in COUNTS},
        **{part: _both(whole[part], page[part]) for part in ("totals", "shared")},
        "moves": [{**dict(zip(names, key, strict=True)), "count": count} for key, count in ordered],
        "examples": [*whole["examples"], *page["examples"]][:EXAMPLES],
    }


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {side: _totals(one[side], other[side]) for side in ("before", "after")}


def _totals(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    costs: dict[str, Decimal] = {}
    for item in (*one["expected_cost"], *other["expected_cost"]):
        costs[item["currency"]] = costs.get(item["currency"], Decimal(0)) + Decimal(item["amount"])
    return {
        **{name: one[name] + other[name] for name in ("chosen", "waiting", "failed")},
        "expected_cost": [{"currency": name, "amount": format(cost, "f")} for name, cost in sorted(costs.items())],
        "expected_successes": round(one["expected_successes"] + other["expected_successes"], 6),
    }


def show(report: Report) -> None:
    """The sums, the moves, and some of the decisions."""
    say = output.console.print
    again = output.count(report["decided"], "decision")
    say(f"{again} made again, [bold]{report['changed']}[/] would have been another")
    for name, words in (
        ("untouched", "stand as they were: the file says nothing of them"),
        ("refused", "left out: their reservation was refused, the round after them counts"),
        ("unreadable", "cannot be read by this release"),
    ):
        if report[name]:
            say(f"  {report[name]} {words}")
    if not report["decided"]:
        return
    say(output.table("All decisions", ("", "before", "after"), _figures(report["totals"])))
    if report["shared"] != report["totals"]:
        say(output.table("Where both choose a supply", ("", "before", "after"), _figures(report["shared"])))
    if report["moves"]:
        rows = [(item["model"], item["from_choice"], item["to_choice"], item["count"]) for item in report["moves"]]
        say(output.table("Changes", ("model", "from", "to", "decisions"), rows))
        shown = map(_example, _few_of_each(report["examples"]))
        say(output.table("Examples", ("task", "round", "from", "to", "quote", "why"), shown))
    say("Health and capacity are as they were at each decision; what a change would have done to them is not known.")


def _few_of_each(examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of each move, in their order."""
    seen: Counter[tuple[str, str, str]] = Counter()
    few = []
    for item in examples:
        move = (item["model"], item["from_choice"], item["to_choice"])
        seen[move] += 1
        if seen[move] <= EXAMPLES_OF_A_MOVE:
            few.append(item)
    return few


def _figures(sides: dict[str, Any]) -> list[tuple[str, str, str]]:
    before, after = sides["before"], sides["after"]
    rows = [(f"decisions {name}", str(before[name]), str(after[name])) for name in ("chosen", "waiting", "failed")]
    rows.append(("expected cost of a success, all", _costs(before), _costs(after)))
    rows.append(("expected successes", _successes(before), _successes(after)))
    return rows


def _costs(side: dict[str, Any]) -> str:
    return ", ".join(output.money(item) for item in side["expected_cost"]) or "none"


def _successes(side: dict[str, Any]) -> str:
    share = f" ({side['expected_successes'] / side['chosen']:.1%})" if side["chosen"] else ""
    return f"{side['expected_successes']:.2f}{share}"


def _example(item: dict[str, Any]) -> tuple[object, ...]:
    quotes = f"{output.money(item['quote_before']) or 'none'} -> {output.money(item['quote_after']) or 'none'}"
    return item["task_id"], item["round"], item["from_choice"], item["to_choice"], quotes, item["reason"]
