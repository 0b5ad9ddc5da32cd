"""`pointsman models`: what this key may use."""

import json

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.command()
@json_option
@pass_session
def models(session: Session, as_json: bool) -> None:
    """List the models that this key may use, with price range and what may be lost."""
    answer = session.do(lambda api: api.get("/v1/models"))
    if as_json:
        output.show_json(answer)
        return
    rows = (
        (
            item["id"],
            item["kind"],
            item["profile"],
            json.dumps(item["price_range"]) if item["price_range"] else "",
            "\n".join(f"-> {lost['to_profile']}: {lost['discloses']}" for lost in item["degradations"]),
        )
        for item in answer["data"]
    )
    output.console.print(output.table("Models", ("model", "kind", "profile", "price range", "may degrade"), rows))
