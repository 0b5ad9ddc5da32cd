"""`pointsman restored`: the database was put back to a backup."""

import click

from cli import output
from cli.context import Session, json_option, pass_session


@click.command()
@click.option(
    "--backup-at",
    metavar="TIME",
    default="",
    help="The moment up to which the backup holds everything, like 2026-11-30T03:00:00Z; rather too early.",
)
@click.option("--over", is_flag=True, help="A person has compared both books: look nothing up any more.")
@json_option
@pass_session
def restored(session: Session, backup_at: str, over: bool, as_json: bool) -> None:
    """Say that the database was put back to a backup: whatever may have been submitted since is looked up at its
    provider before it is sent again.

    An embedded database notices it by itself. For one of your own, start the stack with
    POINTSMAN_RESTORED_BACKUP_AT=TIME once, so that nothing is sent before the word.
    """
    if not backup_at and not over:
        output.fail("say either --backup-at TIME or --over", output.WRONG_USE)
    body = {**({"backup_at": backup_at} if backup_at else {}), **({"over": True} if over else {})}
    answer = session.do(lambda api: api.call("POST", "/v1/operator/restores", body=body))
    if as_json:
        output.show_json(answer)
        return
    rows = (
        (output.when(item["backup_at"]), output.when(item["noticed_at"]), output.when(item["over_at"]))
        for item in answer["restores"]
    )
    output.show_rows("Restores", ("backup of", "noticed", "over"), rows, "none is known")
    said = "no longer looked up" if over else "looked up before anything is sent"
    output.console.print(f"{output.count(answer['tasks'], 'task')} {said}", highlight=False)
