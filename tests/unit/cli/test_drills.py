"""What a drill counts, and what its command says without a stack."""

import json
from typing import Any

from click.testing import CliRunner

from cli.drills.acts import DRILLS
from cli.drills.report import Report, charges, judge, orphans
from cli.main import main


def job(token: str, amount: str = "1.00", safety: str = "") -> dict[str, Any]:
    """A line of the providers' ledger."""
    return {"client_token": token, "safety_identifier": safety, "charged": {"currency": "CNY", "amount": amount}}


def task(task_id: str, *tokens: str) -> dict[str, Any]:
    """A Task with its attempts."""
    return {"id": task_id, "attempts": [{"client_token": token} for token in tokens]}


def test_jobs_paid_twice_and_nobodys_are_counted() -> None:
    """SLO-2: by Task, whichever attempt; a job that cost nothing counts for nobody; an unknown token is nobody's."""
    tasks = [task("t1", "a", "b"), task("t2", "c"), task("t3", "d")]
    book = [job("a"), job("b"), job("", safety="c"), job("c", "0.00"), job("d", "0.00"), job("x"), job("")]
    assert charges(tasks, {"submissions": book}) == (1, 2)
    assert charges(tasks, {"submissions": [job("a"), job("c")]}) == (0, 0)


def test_nodes_that_have_not_ended_are_orphans() -> None:
    """SLO-2: at the end of a drill nothing may wait."""
    run = {"id": "r", "nodes": [{"id": "a", "status": "succeeded"}, {"id": "b", "status": "running"}]}
    assert orphans([run]) == ["r/b running"]


def test_a_promise_is_kept_only_if_every_measure_is_as_promised() -> None:
    """SLO-2: money, nodes, data and the recovery itself; what the fault takes may be lost, and no more."""
    good = Report("d", "f", recovery_s=1.04, data_lost=["r"])
    judge(good, [], [], {"submissions": [job("x")]}, lost=["r"], unbooked=1)
    assert good.kept
    assert (good.as_json()["recovery_s"], good.as_json()["kept"]) == (1.0, True)
    twice = {"submissions": [job("a"), job("a")]}
    for report, more, book in (
        (Report("d", "f", recovery_s=1.0), [], twice),
        (Report("d", "f", recovery_s=1.0, data_lost=["r"]), [], {"submissions": []}),
        (Report("d", "f"), [], {"submissions": []}),
        (Report("d", "f", recovery_s=1.0), [{"id": "r", "nodes": [{"id": "b", "status": "pending"}]}], twice),
    ):
        judge(report, more, [task("t1", "a")], book)
        assert not report.kept


def test_the_drills_are_listed() -> None:
    """SLO-2: every fault of the rule, each with what it does."""
    listed = CliRunner().invoke(main, ["drill", "--list", "--json"])
    told = json.loads(listed.stdout)["drills"]
    names = "provider-timeout hash-mismatch reviewer-absent rights-revoked database-restored upload-failure"
    assert [item["name"] for item in told] == names.split() == list(DRILLS)
    assert all(item["fault"] for item in told)
    assert CliRunner().invoke(main, ["drill"]).exit_code == 2
    assert CliRunner().invoke(main, ["drill", "rain"]).exit_code == 2
