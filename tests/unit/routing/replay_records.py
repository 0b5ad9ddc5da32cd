"""Records as the store keeps them."""

from services.routing.domain.decision import Inputs
from services.routing.domain.selection import select
from services.routing.domain.selection_record import record


def saved(inputs: Inputs) -> str:
    """The record of the decision over these inputs."""
    return record(inputs, select(inputs)).decode()
