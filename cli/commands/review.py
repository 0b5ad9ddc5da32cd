"""`pointsman review`: the questions that wait for a person."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import click
import yaml

from cli import output
from cli.api import Api
from cli.context import Session, json_option, pass_session
from cli.given import amount, read_input

AT = "/v1/operator/reviews"
STATUSES = ("open", "claimed", "decided", "withdrawn")
DECISIONS = ("approve", "reject", "reroute", "change_input", "raise_budget", "waive", "stop")
WAITING = frozenset({"open", "claimed"})
NEEDS: Mapping[str, str] = {
    "reject": "--comment 'what is to be changed'",
    "reroute": "--supply SUPPLY",
    "change_input": "--input '{…}'",
    "raise_budget": "--budget CNY:250.00",
}
"""What a decision cannot do without, as it is typed."""


@click.group()
def review() -> None:
    """Reviews: what waits for a person, what it is about, and the decision."""


@review.command("list")
@click.option("--run", "run_id", default="", help="Only of this run.")
@click.option("--tenant", default="", help="Only this tenant's.")
@click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES), help="Default: open and claimed.")
@json_option
@pass_session
def list_(session: Session, run_id: str, tenant: str, statuses: tuple[str, ...], as_json: bool) -> None:
    """List reviews in the order in which they should be looked at."""
    query = {name: value for name, value in (("run", run_id), ("tenant", tenant)) if value}
    if statuses:
        query["status"] = ",".join(statuses)

    async def read(api: Api) -> dict[str, Any]:
        return {"reviews": [item async for item in every(api, AT, "reviews", query)]}

    answer = session.do(read)
    if as_json:
        output.show_json(answer)
        return
    columns = ("id", "rank", "kind", "run", "node", "status", "until", "who", "question")
    output.show_rows("Reviews", columns, map(_row, answer["reviews"]), "nobody is asked anything")


def _row(item: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        item["id"],
        item["rank"],
        item["kind"],
        item["run_id"],
        item["node"],
        item["status"],
        output.when(item["deadline"]),
        item["assignee"],
        item["question"],
    )


async def every(api: Api, path: str, name: str, query: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    """The items of all pages."""
    token = ""
    while True:
        page = await api.get(path, page_size=1000, **query, **({"page_token": token} if token else {}))
        for item in page[name]:
            yield item
        token = page["next_page_token"]
        if not token:
            return


@review.command()
@click.argument("review_id", metavar="ID")
@json_option
@pass_session
def show(session: Session, review_id: str, as_json: bool) -> None:
    """Show one review with all that is needed to decide it."""
    _show(session.do(lambda api: api.get(f"{AT}/{quote(review_id, safe='')}")), as_json)


@review.command()
@click.argument("review_id", metavar="ID")
@click.option("--who", default="", help="Whom it is handed to; without it, the holder of the key.")
@json_option
@pass_session
def claim(session: Session, review_id: str, who: str, as_json: bool) -> None:
    """Take a review to look at, or hand it on."""
    body = {"who": who} if who else {}
    taken = session.do(lambda api: api.call("POST", f"{AT}/{quote(review_id, safe='')}/claim", body=body))
    _show(taken, as_json)


@review.command()
@click.argument("review_id", metavar="ID")
@click.argument("decision", type=click.Choice(DECISIONS))
@click.option("--comment", default="", help="Why; with reject, what is to be changed.")
@click.option("--input", "given", default="", help="With change_input: JSON, or @FILE; fields that change.")
@click.option("--node", default="", help="With change_input and reroute: which node, where it is about several.")
@click.option("--supply", default="", help="With reroute: the supply that makes it.")
@click.option("--budget", default="", help="With raise_budget: the new hard limit, CNY:250.00.")
@click.option("--attempts", type=int, help="With raise_budget: the new hard limit, where attempts are refused.")
@click.option("--review-minutes", type=int, help="With raise_budget: the new hard limit, where minutes are refused.")
@click.option("--subject-hash", default="", help="What was looked at; if it is another by now, nothing is decided.")
@json_option
@pass_session
def decide(
    session: Session,
    review_id: str,
    decision: str,
    comment: str,
    given: str,
    node: str,
    supply: str,
    budget: str,
    attempts: int | None,
    review_minutes: int | None,
    subject_hash: str,
    as_json: bool,
) -> None:
    """Decide a review, once. DECISION is one of those that `review show` names."""
    texts = {"comment": comment, "supply": supply, "subject_hash": subject_hash}
    body: dict[str, Any] = {"decision": decision, **{name: text for name, text in texts.items() if text}}
    changes = read_input(given) if given else {}
    if not isinstance(changes, dict):
        output.fail("--input is no object", output.WRONG_USE, "name the fields that change")
    if node:
        changes["node"] = node
    if changes:
        body["input"] = changes
    counts = {"attempts": attempts, "review_minutes": review_minutes}
    limit = {name: count for name, count in counts.items() if count is not None}
    if budget or limit:
        body["budget"] = amount(budget, "--budget") if budget else limit
    decided = session.do(lambda api: api.call("POST", f"{AT}/{quote(review_id, safe='')}/decide", body=body))
    if as_json:
        output.show_json(decided)
        return
    output.console.print(f"{decided['decision']}: {decided['question']}", highlight=False, markup=False)
    output.console.print(f"see what follows: pointsman run show {decided['run_id']}", highlight=False)


def _show(item: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        output.show_json(item)
        return
    console = output.console
    console.print(f"[bold]{item['id']}[/]  {item['kind']} review  [bold]{item['status']}[/]", highlight=False)
    for line in _context(item):
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    for failure in item["failures"]:
        console.print(f"  failed before: {failure['code']}: {failure['message']}", highlight=False, markup=False)
    for artifact in item["artifacts"]:
        console.print(f"  {artifact['media_type']} {artifact['url']}", highlight=False)
    if item["status"] not in WAITING:
        return
    console.print("decide with one of", highlight=False)
    for decision, remedy in zip(item["decisions"], item["remedies"], strict=False):
        line = f"pointsman review decide {item['id']} {decision} {NEEDS.get(decision, '')}".rstrip()
        console.print(f"  {line}   ({remedy.partition(': ')[2] or remedy})", highlight=False, markup=False)


def _context(item: Mapping[str, Any]) -> list[str]:
    about = f" with {', '.join(item['subject_nodes'])}" if item["subject_nodes"] else ""
    lines = [
        item["question"],
        f"because: {item['cause']}",
        f"node {item['node']}{about} of run {item['run_id']} ({item['tenant']}), rank {item['rank']}",
        f"spent {output.money(item['spent']) or 'nothing'}",
    ]
    if item.get("subject") is not None:
        lines += ["about:", *_spelled(item["subject"])]
    if item["input"]:
        lines.append(f"input: {item['input']}")
    if item["subject_hash"]:
        lines.append(f"a decision binds to {item['subject_hash']}")
    if item["status"] in WAITING:
        asked = item["assignee"] or "nobody in particular"
        lines.append(f"asked: {asked}, until {output.when(item['deadline'])}; then {item['deputy'] or 'operator'}")
        if item["escalations"]:
            lines.append(f"handed on {output.count(item['escalations'], 'time')} because nobody decided")
    elif item["decision"]:
        lines.append(f"{item['decision']} by {item['decided_by']} at {output.when(item['finished_at'])}")
    if item["comment"]:
        lines.append(f"said: {item['comment']}")
    return lines


def _spelled(subject: Any) -> list[str]:
    """A value as a person reads it: texts as they are, the rest as YAML."""
    text = subject if isinstance(subject, str) else yaml.safe_dump(subject, allow_unicode=True, sort_keys=False)
    return [f"  {line}" for line in text.rstrip().splitlines()]
