"""The operator's word that the database was put back to a backup."""

from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check

PATH = "/v1/operator/restores"


async def test_an_operators_word_that_the_database_was_put_back(edge: EdgeHouse) -> None:
    """ATT-6, OPS-8: the moment of the backup goes to routing, and what is known comes back; `over` needs none."""
    async with edge.admin as admin:
        told = await admin.post(PATH, json={"backup_at": "2026-01-01T14:00:00+02:00"})
        assert told.json() == {
            "restores": [
                {"backup_at": "2026-01-01T12:00:00Z", "noticed_at": "2026-01-01T12:00:09Z", "over_at": None},
            ],
            "tasks": 3,
        }
        assert (await admin.post(PATH, json={"over": True})).status_code == 200
    first, second = edge.routing.restored
    assert (first.backup_time.seconds, first.over) == (1767268800, False)
    assert (second.HasField("backup_time"), second.over) == (False, True)


async def test_a_word_without_its_moment_is_refused(edge: EdgeHouse) -> None:
    """AUTH-1: by its field, with the remedy; and nobody but an operator says it."""
    async with edge.admin as admin:
        for wrong in ({}, {"over": False}, {"backup_at": "yesterday"}, {"backup_at": "2026-01-01T12:00:00"}):
            problem = check(await admin.post(PATH, json=wrong), 422, "validation_failed")
            assert [error["pointer"] for error in problem["errors"]] == ["/backup_at"]
        check(await admin.post(PATH, json={"over": True, "why": "x"}), 422, "validation_failed")
    async with await edge.user() as client:
        check(await client.post(PATH, json={"over": True}), 403, "forbidden")
    assert edge.routing.restored == []
