"""`pointsman health`: the state of every Channel and Supply."""

from typing import Any

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.command()
@json_option
@pass_session
def health(session: Session, as_json: bool) -> None:
    """Show each Channel and Supply: state, since when, why, and its success rate."""
    answer = session.do(lambda api: api.get("/v1/operator/health"))
    if as_json:
        output.show_json(answer)
        return
    for title in ("channels", "supplies"):
        columns = ("id", "state", "since", "ladder", "slots", "success", "samples", "reason")
        output.show_rows(title.capitalize(), columns, map(_row, answer[title]), f"no {title}")


def _row(item: dict[str, Any]) -> tuple[object, ...]:
    rate = item["success_rate"]
    interval = (
        f"{rate:.0%} ({item['success_rate_low']:.0%}-{item['success_rate_high']:.0%})" if rate is not None else ""
    )
    return (
        item["id"],
        item["state"],
        output.when(item["since"]),
        item["recovery_successes"],
        "no limit" if item["effective_concurrency"] is None else item["effective_concurrency"],
        interval,
        item["samples"],
        item["reason"],
    )
