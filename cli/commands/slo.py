"""`pointsman slo`: how well productions go."""

from collections.abc import Mapping
from typing import Any

import click

from cli import output
from cli.context import Session, json_option, pass_session

COLUMNS = (
    "model", "runs", "nodes", "success", "first pass", "retries", "queue s", "cost / s", "review s", "stale s",
)  # fmt: skip


@click.command()
@click.option("--window", "window_s", type=click.FloatRange(min=1), default=86_400, help="Seconds up to now.")
@json_option
@pass_session
def slo(session: Session, window_s: float, as_json: bool) -> None:
    """Show success, yield, retries, waits and cost of Runs created lately, of all and by model."""
    answer = session.do(lambda api: api.get("/v1/operator/slo", window_s=f"{window_s:.9g}"))
    if as_json:
        output.show_json(answer)
        return
    output.show_rows("Service levels", COLUMNS, map(_row, answer["levels"]), "no runs")
    said = f"{answer['rebuilt']} of {answer['checked']} ended runs are what their events tell"
    output.console.print(said, highlight=False)


def _row(item: Mapping[str, Any]) -> tuple[object, ...]:
    costs = ", ".join(f"{cost['amount']} {cost['currency']}" for cost in item["cost_per_usable_second"])
    shares = (_share(item[name]) for name in ("success_rate", "first_pass_yield", "retry_rate"))
    times = [_time(item[name]) for name in ("queue_time_s", "review_wait_s", "stale_propagation_s")]
    return item["model"] or "all", item["runs"], item["nodes"], *shares, times[0], costs, *times[1:]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _time(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
