"""The call that may cost money: once an Attempt, after its intent is durable, with no transaction open (SEL-15)."""

from libs.faults.fault import Fault
from services.routing.app import settle
from services.routing.app.desk import Desk, failure_of
from services.routing.app.listen import silence_began
from services.routing.app.record import record_outcome
from services.routing.domain import transitions
from services.routing.domain.attempts import next_look, next_poll
from services.routing.domain.catalog import Channel, Supply
from services.routing.domain.task import Attempt, Task
from services.routing.ports import Write

NOT_SENT = frozenset({"overloaded", "unimplemented", "deadline_required"})
"""Refusals of provider_adapter before it opened a socket: the Attempt does not count."""


async def submit_attempt(desk: Desk, task: Task, attempt: Attempt, channel: Channel, supply: Supply) -> None:
    """Send it and write down what came of it. `task` is claimed and durably in `submitting`."""
    began = desk.world.clock.monotonic()
    try:
        with desk.sending.to(channel.id):
            sent = await desk.provider.submit(channel, supply, attempt)
    except Fault as error:
        failure = failure_of(error)
        if failure.code in NOT_SENT:
            await settle.fail(desk, task, attempt, failure, sent=False)
        elif failure.category == "unknown":
            reason = f"uncertain: {failure.code} at {supply.id}, the provider's records will be asked"
            look = next_look(attempt, desk.now(), desk.chance())
            since = await silence_began(desk, began)
            after = transitions.uncertain(task, attempt, failure, reason, look, since)
            await record_outcome(desk, Write(task, after, desk.now()))
        else:
            await settle.fail(desk, task, attempt, failure)
        return
    if sent.delivered is not None:
        await settle.succeed(desk, task, attempt, sent.delivered)
        return
    now = desk.now()
    poll_at = next_poll(attempt, channel.poll_interval_s, None, now, desk.chance())
    after = transitions.accepted(task, attempt, sent.provider_task_id, now, poll_at)
    await record_outcome(desk, Write(task, after, now))
