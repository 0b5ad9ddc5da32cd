"""`pointsman doctor`: is everything as it should be?"""

import click

from cli import output
from cli.api import Api, Problem
from cli.context import Session, json_option, pass_session


@click.command()
@json_option
@pass_session
def doctor(session: Session, as_json: bool) -> None:
    """Check the server, its readiness, this key, and what is published; exit code 1 if something is wrong."""

    async def look(api: Api) -> list[tuple[str, bool, str]]:
        return [
            await _check(api, "the server lives", "/healthz"),
            await _check(api, "it is ready", "/readyz"),
            await _check(api, "this key is known", "/v1/models"),
            await _check(api, "this key may operate", "/v1/operator/health"),
        ]

    found = session.do(look)
    if as_json:
        output.show_json({"checks": [{"name": name, "ok": ok, "detail": detail} for name, ok, detail in found]})
    else:
        rows = ((name, "[green]ok[/]" if ok else "[red]no[/]", detail) for name, ok, detail in found)
        output.console.print(output.table(f"Doctor for {session.url}", ("check", "", "detail"), rows))
    if not all(ok for _, ok, _ in found):
        raise SystemExit(output.REFUSED)


async def _check(api: Api, name: str, path: str) -> tuple[str, bool, str]:
    try:
        await api.get(path)
    except Problem as problem:
        return name, False, output.NEXT_STEPS.get(problem.code, str(problem))
    return name, True, ""
