"""What an operator says of a Channel or Supply until the next word: enable, disable, drain."""

from urllib.parse import quote

import click

from cli import output
from cli.context import Session, json_option, pass_session

reason_option = click.option("--reason", default="", help="Why, for the record.")
VERBS = {
    "enable": "Take {id} into use.",
    "disable": "Take {id} out of use; what its provider has accepted is polled on.",
    "drain": "Begin nothing new at {id}; what has begun may finish.",
}


def give_verbs(group: click.Group, sort: str, plural: str) -> None:
    """Adds `enable`, `disable` and `drain` for the Channels or Supplies to their group of commands."""
    for verb, told in VERBS.items():
        group.add_command(_command(verb, told.format(id=f"{sort.upper()}_ID"), f"{sort}_id", plural))


def _command(verb: str, told: str, argument: str, plural: str) -> click.Command:
    @click.command(verb, help=told)
    @click.argument("subject", metavar=argument.upper())
    @reason_option
    @json_option
    @pass_session
    def switch(session: Session, subject: str, reason: str, as_json: bool) -> None:
        path = f"/v1/operator/{plural}/{quote(subject, safe='')}:{verb}"
        answer = session.do(lambda api: api.call("POST", path, body={"reason": reason} if reason else {}))
        if as_json:
            output.show_json(answer)
        else:
            state = answer["spec"].get("admin", "enabled")
            output.console.print(f"{subject} is [bold]{state}[/] since revision {answer['revision']}", highlight=False)

    return switch
