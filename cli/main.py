"""`pointsman`: the command line."""

from pathlib import Path

import click

from cli.api import server_url
from cli.commands.adapters import adapters
from cli.commands.alerts import alerts
from cli.commands.attempt import attempt
from cli.commands.budget import budget
from cli.commands.calls import calls
from cli.commands.capacity import capacity
from cli.commands.catalog import catalog
from cli.commands.certs import certs
from cli.commands.channel import channel
from cli.commands.classify import classify
from cli.commands.dead_letters import dead_letters
from cli.commands.demo import demo
from cli.commands.doctor import doctor
from cli.commands.drill import drill
from cli.commands.explain import explain
from cli.commands.health import health
from cli.commands.invoke import invoke
from cli.commands.keys import keys
from cli.commands.models import models
from cli.commands.prices import prices
from cli.commands.restored import restored
from cli.commands.review import review
from cli.commands.run import run
from cli.commands.slo import slo
from cli.commands.supply import supply
from cli.commands.up import up
from cli.commands.webhooks import webhooks
from cli.commands.whatif import whatif
from cli.context import Session

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


def _url(context: click.Context, option: click.Parameter, given: str) -> str:
    try:
        return server_url(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.group(context_settings=SETTINGS)
@click.option(
    "--url",
    envvar="POINTSMAN_URL",
    default="http://127.0.0.1:8080",
    show_default=True,
    callback=_url,
    help="The server (POINTSMAN_URL).",
)
@click.option("--key", envvar=["POINTSMAN_KEY", "POINTSMAN_ADMIN_KEY"], default="", help="The API key (POINTSMAN_KEY).")
@click.option(
    "--data",
    envvar="POINTSMAN_DATA",
    type=click.Path(path_type=Path),
    default=Path(".pointsman"),
    show_default=True,
    help="The server's data directory, where its admin key lies (POINTSMAN_DATA).",
)
@click.version_option(package_name="pointsman")
@click.pass_context
def main(context: click.Context, url: str, key: str, data: Path) -> None:
    """Sets the switches for generation requests: one result, paid for once, with the reason on record."""
    context.obj = Session(url, key, data)


STARTING = (up, demo, drill)
ASKING = (run, invoke, calls, models, explain, whatif)
OPERATING = (
    catalog,
    channel,
    supply,
    health,
    capacity,
    budget,
    slo,
    alerts,
    attempt,
    restored,
    review,
    dead_letters,
    keys,
    webhooks,
    doctor,
)
OFFLINE = (adapters, classify, prices, certs)
for command in (*STARTING, *ASKING, *OPERATING, *OFFLINE):
    main.add_command(command)


if __name__ == "__main__":
    main()
