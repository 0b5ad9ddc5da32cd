"""`pointsman capacity`: slots and windows."""

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.command()
@json_option
@pass_session
def capacity(session: Session, as_json: bool) -> None:
    """Show configured, effective and used slots of each Channel and Supply."""
    answer = session.do(lambda api: api.get("/v1/operator/capacity"))
    if as_json:
        output.show_json(answer)
        return
    columns = ("id", "configured", "effective", "in use", "requests/min", "tokens/min")
    for title in ("channels", "supplies"):
        rows = (
            (item["id"], item["configured"], item["effective"], item["in_use"], item["rpm_used"], item["tpm_used"])
            for item in answer[title]
        )
        output.console.print(output.table(title.capitalize(), columns, rows))
    output.console.print(f"{len(answer['leases'])} leases")
