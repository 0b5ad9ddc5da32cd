"""`pointsman webhooks`: the secrets that sign callbacks."""

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.group()
def webhooks() -> None:
    """Secrets that sign what is sent to a run's callback_url."""


@webhooks.command()
@click.option("--tenant", required=True)
@json_option
@pass_session
def rotate(session: Session, tenant: str, as_json: bool) -> None:
    """Make a tenant's secret. It is shown once; the one before signs beside it until the next."""
    made = session.do(lambda api: api.call("POST", "/v1/operator/webhook-secrets", body={"tenant": tenant}))
    if as_json:
        output.show_json(made)
        return
    output.console.print(f"secret {made['secret']}", highlight=False)
    output.errors.print("the secret is shown this once; keep it now")
