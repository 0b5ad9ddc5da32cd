"""Tasks through real peers, a real database and the studio."""

from pointsman.routing.v1 import task_pb2
from tests.integration.routing.stack import Stack


async def test_a_task_becomes_a_film(stack: Stack):
    """SEL-15, ATT-5: from SubmitTask to stored artifacts: one submission in the ledger, all slots free again."""
    await stack.apply({"aurora": 5, "boreal": 8})
    await stack.submit("t1")
    task = (await stack.ended("t1"))[0]
    assert task.state == task_pb2.TASK_STATE_SUCCEEDED, task
    assert task.result.artifacts[0].media_type == "video/mp4"
    assert task.cost.units == 4
    assert len(await stack.submissions()) == 1
    assert {level.in_use for level in (await stack.capacity()).values()} == {0}
