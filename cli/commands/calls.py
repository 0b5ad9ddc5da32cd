"""A synchronous call on record, for `pointsman explain`."""

from collections.abc import Mapping
from typing import Any

from cli import output


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
