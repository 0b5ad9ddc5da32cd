"""`pointsman slo`, against a server that answers as the edge does."""

import json

from cli.commands.slo import slo
from tests.unit.cli.fake_server import FakeServer, invoke

AT = "/v1/operator/slo"
WHOLE = {
    "model": None, "runs": 4, "nodes": 3, "success_rate": 0.75, "queue_time_s": 1.25, "first_pass_yield": None,
    "retry_rate": 0.0, "cost_per_usable_second": [{"currency": "CNY", "amount": "1.25"}], "review_wait_s": 90.0,
    "stale_propagation_s": None,
}  # fmt: skip


def test_figures_are_a_table() -> None:
    """SLO-1, OPS-8: a row for everything and for each model; what is not known is empty."""
    report = {"levels": [WHOLE, {**WHOLE, "model": "clip"}], "checked": 3, "rebuilt": 2}
    said = invoke(slo, FakeServer({AT: report}))
    assert said.exit_code == 0, said.output
    for text in ("all", "clip", "75%", "0%", "1.25 CNY", "90.0", "2 of 3 ended runs"):
        assert text in said.output
    assert json.loads(invoke(slo, FakeServer({AT: report}), "--window", "60", "--json").output) == report
    assert invoke(slo, FakeServer({AT: report}), "--window", "0").exit_code == 2
