"""`pointsman certs`: a development authority and a certificate for every context."""

from pathlib import Path

import click

from cli import output
from cli.issuing import Authority
from libs.host.placement import START_ORDER
from libs.rpc.tls import DOMAIN

EVERY = "all"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1, metavar="[CONTEXT[+CONTEXT…]]…")
@click.option(
    "--days", type=click.FloatRange(0, min_open=True), default=90.0, show_default=True, help="How long they last."
)
@click.option(
    "--domain", envvar="POINTSMAN_TLS_DOMAIN", default=DOMAIN, show_default=True, help="What follows a context."
)
def certs(folder: Path, names: tuple[str, ...], days: float, domain: str) -> None:
    """Make certificates for mutual TLS between contexts, in FOLDER, by an authority for development that is kept there.

    One for each context named, or for all; `routing+runs` is one certificate for a process that hosts both, `all` one
    for a process that hosts everything. Run it again to renew them: processes take the new ones over by themselves.
    """
    wanted = {name: _contexts(name) for name in names or (*START_ORDER, EVERY)}
    try:
        authority = Authority(folder.absolute(), domain)
        for name, contexts in wanted.items():
            made = authority.issue(name, contexts, days)
            output.console.print(str(made), highlight=False, soft_wrap=True)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for line in (f"POINTSMAN_TLS_CERT={made}", f"POINTSMAN_TLS_KEY={made.with_suffix('.key')}"):
        output.console.print(line, highlight=False, soft_wrap=True)
    output.console.print(f"POINTSMAN_TLS_CA={authority.path}", highlight=False, soft_wrap=True)


def _contexts(name: str) -> tuple[str, ...]:
    contexts = START_ORDER if name == EVERY else tuple(name.split("+"))
    for context in contexts:
        if context not in START_ORDER:
            raise click.BadParameter(f"there is no context {context!r}; the contexts are {', '.join(START_ORDER)}")
    return contexts
