"""`pointsman doctor`: is everything as it should be?"""

import click
from rich.text import Text

from cli import output
from cli.api import Api, Problem
from cli.commands.catalog import WHY_NOT, unpublished
from cli.context import Session, json_option, pass_session

Check = tuple[str, bool, str]
"""(what is checked, whether it holds, what to know or do)"""
YES, NO = Text("ok", "green"), Text("no", "red")


@click.command()
@json_option
@pass_session
def doctor(session: Session, as_json: bool) -> None:
    """Check the server, its readiness, this key, and what is published; exit code 1 if something is wrong."""

    async def look(api: Api) -> list[Check]:
        return [
            await _check(api, "the server lives", "/healthz"),
            await _check(api, "it is ready", "/readyz"),
            await _check(api, "this key is known", "/v1/models"),
            await _check(api, "this key may operate", "/v1/operator/health"),
            await _models(api),
            await _ledger(api),
        ]

    found = session.do(look)
    if as_json:
        output.show_json({"checks": [{"name": name, "ok": ok, "detail": detail} for name, ok, detail in found]})
    else:
        rows = ((name, YES if ok else NO, detail) for name, ok, detail in found)
        output.console.print(output.table(f"Doctor for {session.url}", ("check", "", "detail"), rows))
    if not all(ok for _, ok, _ in found):
        raise SystemExit(output.REFUSED)


async def _check(api: Api, name: str, path: str) -> Check:
    try:
        await api.get(path)
    except Problem as problem:
        return name, False, output.NEXT_STEPS.get(problem.code, str(problem))
    return name, True, ""


async def _ledger(api: Api) -> Check:
    """Budgets, their Holds and their entries say the same."""
    name = "the ledger adds up"
    try:
        wrong = (await api.get("/v1/operator/budgets:check"))["mismatches"]
    except Problem as problem:
        return name, False, output.NEXT_STEPS.get(problem.code, str(problem))
    return name, not wrong, "; ".join(f"{item['budget']}: {item['message']}" for item in wrong)


async def _models(api: Api) -> Check:
    """A model that is closed on purpose is no fault; nothing at all on offer is."""
    name = "models are published"
    try:
        objects = (await api.get("/v1/operator/catalog", kind="model"))["objects"]
    except Problem as problem:
        return name, False, output.NEXT_STEPS.get(problem.code, str(problem))
    closed = unpublished(objects)
    opened = len(objects) - len(closed)
    said = f"{opened} of {len(objects)}" if objects else "the catalogue is empty; `pointsman catalog apply FILE`"
    return name, opened > 0, "; ".join([said, *([f"not {', '.join(closed)}: {WHY_NOT}"] if closed else [])])
