"""`pointsman attempt`: uncertain submissions."""

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.group()
def attempt() -> None:
    """Attempts whose submission is uncertain: list them, and tell what was found at the provider."""


@attempt.command()
@json_option
@pass_session
def uncertain(session: Session, as_json: bool) -> None:
    """List attempts of which nobody knows whether the provider took them."""
    answer = session.do(lambda api: api.get("/v1/operator/uncertain"))
    if as_json:
        output.show_json(answer)
        return
    rows = (
        (item["id"], item["supply"], item["state"], item["client_token"], output.when(item["submitted_at"]))
        for item in answer["attempts"]
    )
    columns = ("attempt", "supply", "state", "client token", "sent")
    output.show_rows("Uncertain", columns, rows, "no uncertain attempts")


@attempt.command()
@click.argument("attempt_id")
@click.option("--accepted", "provider_task_id", default="", help="The provider has it, under this id.")
@click.option("--not-accepted", is_flag=True, help="The provider surely has no such job.")
@json_option
@pass_session
def resolve(session: Session, attempt_id: str, provider_task_id: str, not_accepted: bool, as_json: bool) -> None:
    """Tell what was found at the provider for ATTEMPT_ID."""
    if bool(provider_task_id) == not_accepted:
        output.fail("say either --accepted PROVIDER_TASK_ID or --not-accepted", output.WRONG_USE)
    body = (
        {"resolution": "not_accepted"}
        if not_accepted
        else {
            "resolution": "accepted",
            "provider_task_id": provider_task_id,
        }
    )
    answer = session.do(lambda api: api.call("POST", f"/v1/operator/attempts/{attempt_id}/resolve", body=body))
    if as_json:
        output.show_json(answer)
    else:
        output.console.print(f"recorded; the task goes on from there (attempt {attempt_id})")
        if answer.get("waiting_reason"):
            output.console.print(answer["waiting_reason"])
