"""`pointsman budget`: what may be spent, what is reserved, what was spent."""

from typing import Any
from urllib.parse import quote

import click

from cli import output
from cli.api import Api
from cli.context import Session, json_option, pass_session

AT = "/v1/operator/budgets"
DIMENSIONS = ("cost", "attempts", "review_minutes")
PARTS = ("spent", "held", "soft", "hard")
TIMES = (("deadline", "deadline_at"), ("soft limit reached", "soft_limit_at"), ("last refusal", "refused_at"))


@click.group()
def budget() -> None:
    """Budgets: a tree of limits, what is held and what was spent."""


@budget.command("list")
@click.option("--tenant", default="", help="Only this tenant's.")
@click.option("--root", default="", help="Only this one and those below it.")
@json_option
@pass_session
def list_(session: Session, tenant: str, root: str, as_json: bool) -> None:
    """List budgets as the tree that they are."""
    query = {name: value for name, value in (("tenant", tenant), ("root", root)) if value}

    async def read(api: Api) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            page = await api.get(AT, page_size=1000, **query, **({"page_token": token} if token else {}))
            found += page["budgets"]
            token = page["next_page_token"]
            if not token:
                return {"budgets": found}

    answer = session.do(read)
    if as_json:
        output.show_json(answer)
        return
    columns = ("id", "level", "class", "spent", "held", "soft", "hard", "attempts", "review min", "deadline")
    output.show_rows("Budgets", columns, map(_row, as_tree(answer["budgets"])), "no budgets")


@budget.command()
@click.argument("budget_id", metavar="ID")
@json_option
@pass_session
def show(session: Session, budget_id: str, as_json: bool) -> None:
    """Show one budget in every dimension."""
    _show(session.do(lambda api: api.get(_path(budget_id))), as_json)


@budget.command()
@click.argument("budget_id", metavar="ID")
@click.option("--level", required=True, help="project, stage, episode, shot, node, or a name of your own.")
@click.option("--parent", default="", help="The budget above it; without one it is a root.")
@click.option("--tenant", default="")
@click.option("--currency", default="", help="ISO 4217; taken from the parent where there is one.")
@click.option("--class", "value_class", type=click.Choice(["hero", "normal", "background"]), default="normal")
@click.option("--cost", help="Hard limit of money.")
@click.option("--attempts", type=int, help="Hard limit of attempts at providers.")
@click.option("--review-minutes", type=int, help="Hard limit of reviewers' minutes.")
@click.option("--soft-cost", help="Soft limit of money: it warns once.")
@click.option("--soft-attempts", type=int, help="Soft limit of attempts.")
@click.option("--soft-review-minutes", type=int, help="Soft limit of reviewers' minutes.")
@click.option("--deadline", default="", help="RFC 3339 time after which nothing is held.")
@json_option
@pass_session
def create(
    session: Session,
    budget_id: str,
    level: str,
    parent: str,
    tenant: str,
    currency: str,
    value_class: str,
    deadline: str,
    as_json: bool,
    **limits: Any,
) -> None:
    """Make a budget; the same again is the same budget."""
    texts = {"parent": parent, "tenant": tenant, "currency": currency, "deadline_at": deadline}
    body = {"id": budget_id, "level": level, "value_class": value_class, **_said(texts), **_limits(**limits)}
    _show(session.do(lambda api: api.call("POST", AT, body=body)), as_json)


@budget.command("raise")
@click.argument("budget_id", metavar="ID")
@click.option("--reason", required=True, help="Who changes the limits, and why: it stays on record.")
@click.option("--cost", help="New hard limit of money; 0: none.")
@click.option("--attempts", type=int, help="New hard limit of attempts; 0: none.")
@click.option("--review-minutes", type=int, help="New hard limit of reviewers' minutes; 0: none.")
@click.option("--soft-cost", help="New soft limit of money; 0: none.")
@click.option("--soft-attempts", type=int, help="New soft limit of attempts; 0: none.")
@click.option("--soft-review-minutes", type=int, help="New soft limit of reviewers' minutes; 0: none.")
@click.option("--deadline", default="", help="New deadline.")
@json_option
@pass_session
def raise_(session: Session, budget_id: str, reason: str, deadline: str, as_json: bool, **limits: Any) -> None:
    """Change limits, up or down to what is used; what is not named stays."""
    body = {"reason": reason, **_said({"deadline_at": deadline}), **_limits(**limits)}
    _show(session.do(lambda api: api.call("POST", f"{_path(budget_id)}/limits", body=body)), as_json)


@budget.command()
@click.argument("budget_id", metavar="ID")
@click.option("--after", default=0, help="Only movements after this number.")
@json_option
@pass_session
def entries(session: Session, budget_id: str, after: int, as_json: bool) -> None:
    """List the movements of a budget, oldest first."""
    path = f"{_path(budget_id)}/entries"
    answer = session.do(lambda api: api.get(path, after=after, page_size=1000))
    if as_json:
        output.show_json(answer)
        return
    columns = ("number", "when", "what", "hold", "held", "spent", "reason")
    rows = (
        (
            item["sequence"],
            output.when(item["created_at"]),
            item["kind"],
            item["hold"],
            output.money(item["held"]["cost"]),
            output.money(item["spent"]["cost"]),
            item["reason"],
        )
        for item in answer["entries"]
    )
    output.show_rows(f"Movements of {budget_id}", columns, rows, "nothing has moved")


def as_tree(budgets: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """(depth, budget): every budget after its parent and before its parent's next child."""
    known = {item["id"] for item in budgets}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for item in budgets:
        below.setdefault(item["parent"] if item["parent"] in known else None, []).append(item)
    ordered: list[tuple[int, dict[str, Any]]] = []
    waiting = [(0, item) for item in reversed(below.get(None, []))]
    while waiting:
        depth, item = waiting.pop()
        ordered.append((depth, item))
        waiting += [(depth + 1, child) for child in reversed(below.get(item["id"], []))]
    return ordered


def _row(placed: tuple[int, dict[str, Any]]) -> tuple[object, ...]:
    depth, item = placed
    used = {name: item["spent"][name] + item["held"][name] for name in DIMENSIONS[1:]}
    return (
        "  " * depth + item["id"],
        item["level"],
        item["value_class"],
        output.money(item["spent"]["cost"]),
        output.money(item["held"]["cost"]),
        output.money(item["soft"]["cost"]),
        output.money(item["hard"]["cost"]),
        *(_of(used[name], item["hard"][name]) for name in DIMENSIONS[1:]),
        output.when(item["deadline_at"]),
    )


def _of(used: int, limit: int | None) -> str:
    return f"{used} of {limit}" if limit else str(used or "")


def _show(item: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.show_json(item)
        return
    who = f"{item['level']} budget {item['id']} ({item['value_class']})"
    above = f" below {item['parent']}" if item["parent"] else ""
    output.console.print(who + above, highlight=False, markup=False)
    rows = ((name.replace("_", " "), *(_cell(item[part][name]) for part in PARTS)) for name in DIMENSIONS)
    output.show_rows("", ("", *PARTS), rows, "")
    for said, at in TIMES:
        if item[at]:
            output.console.print(f"{said}: {output.when(item[at])}", highlight=False)


def _cell(value: Any) -> object:
    return output.money(value) if isinstance(value, dict) else value


def _path(budget_id: str) -> str:
    return f"{AT}/{quote(budget_id, safe='')}"


def _said(values: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _limits(**flags: Any) -> dict[str, dict[str, Any]]:
    """`cost` … are hard limits, `soft_cost` … soft ones; None = not named."""
    hard = {name: flags[name] for name in DIMENSIONS if flags[name] is not None}
    soft = {name: flags[f"soft_{name}"] for name in DIMENSIONS if flags[f"soft_{name}"] is not None}
    return {part: limit for part, limit in (("hard", hard), ("soft", soft)) if limit}
