"""`pointsman channel`: what an operator says of a Channel, an account at a provider."""

import click

from cli.commands.switching import give_verbs


@click.group()
def channel() -> None:
    """Channels: take one in or out of use. `pointsman health` shows them."""


give_verbs(channel, "channel", "channels")
