"""`pointsman health`: the state of every Channel and Supply, and why one was in a state at a time."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import click

from cli import output
from cli.api import Api, Problem
from cli.commands.switching import reason_option
from cli.context import Session, json_option, pass_session

PLURALS = {"channel": "channels", "supply": "supplies"}
sort_option = click.option(
    "--sort", type=click.Choice(list(PLURALS)), help="Needed only where a Channel and a Supply share an id."
)


@click.group(invoke_without_command=True)
@json_option
@pass_session
@click.pass_context
def health(context: click.Context, session: Session, as_json: bool) -> None:
    """Show each Channel and Supply: state, since when, why, until when, and its success rate.

    The ladder counts successes in a row since probing began; the fifth makes it healthy. Samples are recent outcomes.
    """
    if context.invoked_subcommand is not None:
        return
    answer = session.do(lambda api: api.get("/v1/operator/health"))
    if as_json:
        output.show_json(answer)
        return
    for title in PLURALS.values():
        columns = ("id", "state", "since", "reason", "cooldown until", "ladder", "slots", "success", "samples")
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
        item["reason"],
        output.when(item["cooldown_until"]),
        item["recovery_successes"],
        "no limit" if item["effective_concurrency"] is None else item["effective_concurrency"],
        interval,
        item["samples"],
    )


@health.command()
@click.argument("subject")
@click.option("--at", default="", help="A time such as 2026-01-31T09:30:00Z; absent: now.")
@sort_option
@json_option
@pass_session
def explain(session: Session, subject: str, at: str, sort: str | None, as_json: bool) -> None:
    """Explain why SUBJECT, the id of a Channel or Supply, was in its state at a time: the event that brought it there
    and what was observed since."""
    answer = session.do(lambda api: past_of(api, subject, at, sort))
    if as_json:
        output.show_json(answer)
        return
    until = f", not to be tried before {output.when(answer['cooldown_until'])}" if answer["cooldown_until"] else ""
    output.console.print(
        f"{answer['sort']} [bold]{answer['id']}[/] {'was' if at else 'is'} [bold]{answer['state']}[/]"
        f" since {output.when(answer['since'])}{until}",
        highlight=False,
    )
    output.console.print(f"  because of {told(answer['cause'])}", highlight=False, markup=False)
    output.console.print(
        f"  epoch {answer['epoch']}, revision {answer['revision']},"
        f" {output.count(answer['recovery_successes'], 'success', 'successes')} in a row since probing began",
        highlight=False,
    )
    columns = ("at", "event", "from", "to", "successes", "reason", "attempt")
    output.show_rows("Since then", columns, map(_event, answer["events"]), "")


@health.command("close")
@click.argument("subject")
@reason_option
@sort_option
@json_option
@pass_session
def close_circuit(session: Session, subject: str, reason: str, sort: str | None, as_json: bool) -> None:
    """Use SUBJECT, the id of a Channel or Supply, again at once, without the steps of recovery."""
    _switch(session, subject, sort, "close", reason, as_json)


@health.command("open")
@click.argument("subject")
@reason_option
@sort_option
@json_option
@pass_session
def open_circuit(session: Session, subject: str, reason: str, sort: str | None, as_json: bool) -> None:
    """Keep SUBJECT, the id of a Channel or Supply, out as after a failure: it is probed when its cooldown is over.

    To keep it out until you say otherwise: `pointsman supply disable`, `pointsman channel disable`.
    """
    _switch(session, subject, sort, "open", reason, as_json)


def _switch(session: Session, subject: str, sort: str | None, verb: str, reason: str, as_json: bool) -> None:
    body = {"reason": reason} if reason else {}
    answer = session.do(
        lambda api: of_either_sort(
            subject, sort, lambda path: api.call("POST", f"{path}:{verb}-circuit", body=body), "is known"
        )
    )
    if as_json:
        output.show_json(answer)
        return
    until = f", not to be tried before {output.when(answer['cooldown_until'])}" if answer["cooldown_until"] else ""
    output.console.print(f"{answer['id']} is [bold]{answer['state']}[/]{until}", highlight=False)


def told(event: dict[str, Any]) -> str:
    """`opened (key_invalid) at 2026-01-31T09:30:00Z by attempt 01J…`."""
    reason = f" ({event['reason']})" if event["reason"] else ""
    by = f" by attempt {event['attempt_id']}" if event["attempt_id"] else ""
    return f"{event['kind']}{reason} at {output.when(event['observed_at'])}{by}"


def _event(item: dict[str, Any]) -> tuple[object, ...]:
    names = ("kind", "from_state", "to_state", "recovery_successes", "reason", "attempt_id")
    return (output.when(item["observed_at"]), *(item[name] for name in names))


async def past_of(api: Api, subject: str, at: str, sort: str | None) -> dict[str, Any]:
    """The past of the Supply of that id, or of the Channel."""
    query = {"at": at} if at else {}
    return await of_either_sort(
        subject, sort, lambda path: api.get(f"{path}/health", **query), "was known then" if at else "is known"
    )


async def of_either_sort(
    subject: str, sort: str | None, ask: Callable[[str], Awaitable[dict[str, Any]]], missing: str
) -> dict[str, Any]:
    """The answer of `ask` at the path of the Supply of that id, or of the Channel."""
    sorts = [sort] if sort else ["supply", "channel"]
    for place, one in enumerate(sorts, start=1):
        try:
            return await ask(f"/v1/operator/{PLURALS[one]}/{quote(subject, safe='')}")
        except Problem as problem:
            if problem.code != "not_found":
                raise
            if place == len(sorts):
                nobody = f"no channel and no supply {subject!r} {missing}"
                detail = problem.body.get("detail") if sort else nobody
                raise Problem(problem.status, {**problem.body, "detail": detail}) from problem
    raise AssertionError("every sort was asked for")
