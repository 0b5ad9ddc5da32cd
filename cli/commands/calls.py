"""Synchronous calls on record: `pointsman calls` lists them, `pointsman explain` shows one."""

from collections.abc import Mapping
from typing import Any

import click

from cli import output
from cli.context import Session, json_option, pass_session
from cli.times import Moment


@click.command()
@click.option("--model", default="", help="Only of this model.")
@click.option("--status", default="", help="Only these: succeeded, failed, abandoned; with commas between them.")
@click.option("--session-id", default="", help="Only of this conversation.")
@click.option("--since", type=Moment(), help="Only those that ended since: 1h, 7d, or an RFC 3339 time.")
@click.option("--until", type=Moment(), help="Only those that ended before that, told in the same way.")
@click.option("--tenant", default="", help="With an operator's key: those of this tenant.")
@click.option("--all-tenants", is_flag=True, help="With an operator's key: those of every tenant.")
@click.option("--limit", default=20, show_default=True)
@click.option("--page-token", default="", help="Those that are older than the page that named it.")
@json_option
@pass_session
def calls(session: Session, all_tenants: bool, limit: int, as_json: bool, **said: str | None) -> None:
    """List synchronous calls that have ended, of the key's own tenant, or of others with an operator's key, newest
    first. `explain ID` shows one with its tries, also while it is under way."""
    if said["tenant"] and all_tenants:
        output.fail("calls wants one tenant or all", output.WRONG_USE, "leave out --tenant or --all-tenants")
    path = "/v1/operator/calls" if said["tenant"] or all_tenants else "/v1/calls"
    query = {name: value for name, value in said.items() if value}
    page = session.do(lambda api: api.get(path, page_size=limit, **query))
    if as_json:
        output.show_json(page)
        return
    rows = (
        (
            item["id"],
            *([item["tenant"]] if all_tenants else []),
            item["status"],
            item["model"],
            output.when(item["finished_at"]),
            f"{item['times']['wall_ms']:g}",
            "the response cache" if item["cached"] else item["supply"],
            len(item["attempts"]),
            _tokens(item["usage"]),
            output.money(item["cost"]),
            (item["error"] or {}).get("code"),
        )
        for item in page["calls"]
    )
    whose = ("tenant",) if all_tenants else ()
    columns = ("call", *whose, "status", "model", "ended", "ms", "supply", "tries", "tokens in, out", "cost", "error")
    output.show_rows("Calls", columns, rows, "no calls")
    if page["next_page_token"]:
        older = page["next_page_token"]
        output.console.print(f"there are older ones: --page-token {older}, or more at once by --limit", highlight=False)


def show_call(call: Mapping[str, Any]) -> None:
    """Its end, where the time went, and its tries; the rounds follow."""
    output.console.print(
        f"call [bold]{call['id']}[/] for {call['model']} is [bold]{call['status']}[/]", highlight=False
    )
    if call["error"]:
        error = call["error"]
        output.console.print(f"  error: {error['code']}: {error['message']}", highlight=False, markup=False)
    whom = "the response cache" if call["cached"] else call["supply"] or "nobody"
    cost = output.money(call["cost"]) or "no cost"
    output.console.print(f"  served by {whom}, {cost}", highlight=False, markup=False)
    times = call["times"]
    output.console.print(
        f"  {times['wall_ms']:g} ms: {times['productive_ms']:g} in tries, {times['stall_ms']:g} waiting,"
        f" {times['overhead_ms']:g} of our own",
        highlight=False,
    )
    rows = (
        (
            item["number"],
            item["supply"],
            item["state"],
            f"{item['latency_ms']:g}",
            "" if item["time_to_first_token_ms"] is None else f"{item['time_to_first_token_ms']:g}",
            _tokens(item["usage"]),
            output.money(item["quote"]),
            output.money(item["cost"]) or ("perhaps charged" if item["possible_charge"] else ""),
            (item["error"] or {}).get("code"),
        )
        for item in call["attempts"]
    )
    columns = ("#", "supply", "state", "ms", "first token", "tokens in, out", "quote", "cost", "error")
    output.show_rows("Tries", columns, rows, "no try was made")


def _tokens(usage: Mapping[str, Any] | None) -> str:
    if not usage or (usage["input_tokens"] is None and usage["output_tokens"] is None):
        return ""
    return f"{usage['input_tokens'] or 0}, {usage['output_tokens'] or 0}"
