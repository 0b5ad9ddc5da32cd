"""`pointsman models`: what this key may use."""

from collections.abc import Mapping

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
            "\n".join(map(price, item["price_range"])),
            "\n".join(f"-> {lost['to_profile']}: {lost['discloses']}" for lost in item["degradations"]),
        )
        for item in answer["data"]
    )
    columns = ("model", "kind", "profile", "price range", "may degrade")
    output.show_rows("Models", columns, rows, "no models that this key may use")


def price(span: Mapping[str, str]) -> str:
    """`0.20-0.28 CNY / image`; one amount where both ends are the same."""
    ends = dict.fromkeys((span["low"], span["high"]))
    return f"{'-'.join(ends)} {span['currency']} / {span['per']}"
