"""What a replica does not know yet, because another one was told of it a moment ago."""

from dataclasses import replace

import pytest

from libs.faults.fault import Fault
from services.routing.app.submit_task import Submission, check_task
from services.routing.domain.catalog import Catalog
from services.routing.domain.request import Request
from services.routing.domain.task import TaskState
from tests.unit.routing.dispatch_fakes import stage
from tests.unit.routing.dispatch_offers import MODEL, FakeCatalog, catalog


def published_a_moment_ago() -> FakeCatalog:
    """Two revisions, of which this process has seen the first: in that one the model is not there."""
    return FakeCatalog([Catalog(revision=1), replace(catalog(), revision=2)], unseen=1)


async def test_nobody_is_refused_for_what_is_no_longer_so() -> None:
    """CAT-3: a model that was published at one replica can be used at once at every other."""
    request = Request(tenant="t", model=MODEL, input={"prompt": "a boat", "duration_s": 5})
    for use in ("check", "submit"):
        late = stage()
        late = replace(late, desk=replace(late.desk, catalog=published_a_moment_ago()))
        if use == "check":
            await check_task(late.desk, Submission("t1", request))
        else:
            assert (await late.submit()).state is TaskState.QUEUED


async def test_what_the_newest_revision_refuses_is_refused() -> None:
    """CAT-3: a look that finds nothing newer leaves the refusal, and one that does decides anew."""
    unknown = stage(offers=Catalog(revision=1))
    with pytest.raises(Fault) as told:
        await unknown.submit()
    assert told.value.code == "model_not_published"
    closed = FakeCatalog([Catalog(revision=1), Catalog(revision=2)], unseen=1)
    with pytest.raises(Fault) as told:
        await check_task(
            replace(unknown.desk, catalog=closed), Submission("t1", Request(tenant="t", model=MODEL, input={}))
        )
    assert (told.value.code, closed.unseen) == ("model_not_published", 0)


async def test_a_dispatcher_that_knows_less_looks_before_it_lets_a_task_wait() -> None:
    """ATT-10: a Task that another replica admitted is dispatched by one that has not seen its model yet."""
    first = stage()
    await first.submit()
    late = stage(like=replace(first, catalog=published_a_moment_ago()), store=first.desk.store, worker="worker-2")
    await late.work()
    assert [call[0] for call in late.provider.calls] == ["submit"]
    assert not (await late.task()).waiting_reason.startswith("model")


async def test_prices_of_a_newer_revision_are_not_mixed_with_the_catalogue_that_they_supersede() -> None:
    """CAT-3, COST-3: a decision is by one revision; where newer prices are in force, the newer catalogue is read."""
    first = stage()
    await first.submit()
    newer = FakeCatalog([catalog(), replace(catalog(), revision=2)], unseen=1)
    late = stage(like=replace(first, catalog=newer), store=first.desk.store, worker="worker-2")
    late.quotes.revision = 2
    await late.work()
    assert [attempt.catalog_revision for attempt in (await late.task()).attempts] == [2]
