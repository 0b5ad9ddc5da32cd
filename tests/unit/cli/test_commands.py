"""What the verbs say and with which exit code they leave, against a server in words."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cli import output
from cli.api import Unreachable, server_url
from cli.commands.alerts import alerts, look_with
from cli.commands.capacity import capacity
from cli.commands.catalog import catalog
from cli.commands.doctor import doctor
from cli.commands.explain import explain
from cli.commands.keys import keys
from cli.commands.models import models, price
from cli.commands.run import run
from cli.commands.supply import supply
from cli.main import main
from tests.unit.cli.fake_server import FakeServer, Turns, a_run, a_task, invoke, problem

ORDER = ("create", "--model", "m", "--input", '{"prompt": "a lake"}')


def test_explain_takes_the_id_of_a_run_too() -> None:
    """OPS-8: the id that every other verb prints is good enough to ask why; a task's own id is as well."""
    answers = {"/v1/runs/R1": a_run(), "/v1/tasks/T1": a_task(), "/v1/tasks/T1/selections": {"selections": []}}
    server = FakeServer(answers)
    for name in ("R1", "T1"):
        said = invoke(explain, server, name)
        assert said.exit_code == 0
        assert "task T1 for m is running" in said.output


def test_explain_says_that_there_is_neither() -> None:
    """OPS-8: an id of nothing is refused once, in one sentence."""
    said = invoke(explain, FakeServer(), "X")
    assert said.exit_code == output.REFUSED
    assert "there is no task, no run and no call 'X'" in said.output


def test_explain_of_a_production_names_the_tasks_of_its_nodes() -> None:
    """OPS-8: a production went many ways; who asks why is told what to ask about, and nothing of one node alone."""
    nodes = [{"id": "gate", "task_id": None}, *({"id": f"shots/{n}", "task_id": f"T{n}"} for n in range(50))]
    production = {**a_run(), "production": "film", "nodes": nodes}
    said = invoke(explain, FakeServer({"/v1/runs/R1": production}), "R1")
    assert said.exit_code == output.REFUSED
    assert "shots/0: T0" in said.stderr
    assert "and 10 more" in said.stderr
    said = invoke(explain, FakeServer({"/v1/runs/R1": {**production, "nodes": nodes[:1]}}), "R1")
    assert "nothing of run R1 has a task yet" in said.stderr


def test_create_names_the_run_before_it_watches() -> None:
    """OPS-8: whoever is cut off while watching knows which run to ask for."""
    server = FakeServer({"/v1/runs": {"id": "R1", "status": "pending"}, "/v1/runs/R1": a_run()})
    said = invoke(run, server, *ORDER, "--watch")
    assert said.exit_code == 0
    assert said.stderr.startswith("run R1\n")


def test_ctrl_c_leaves_the_run_alone() -> None:
    """OPS-8: an interrupted watcher says that the run goes on and how to follow it, and exits with 130."""
    said = invoke(run, FakeServer(broken=KeyboardInterrupt()), "watch", "R1")
    assert said.exit_code == 130
    assert "run R1 goes on; follow it with: pointsman run watch R1" in said.stderr


def test_a_server_that_goes_away_while_following(tmp_path: Path) -> None:
    """OPS-8: the next step is to follow the same run again, not to start a server."""

    class Away(FakeServer):
        async def download(self, path: str, target: Path) -> int:
            raise Unreachable("no server answers at http://server.test")

    file = {"sha256": "0", "media_type": "video/mp4", "bytes": 1, "url": "/v1/artifacts/0"}
    server = Away({"/v1/runs/R1": a_run(result={"artifacts": [file]})})
    said = invoke(run, server, "watch", "R1", "--save", str(tmp_path / "clips"))
    assert said.exit_code == output.NO_SERVER
    assert "next:  pointsman run watch R1" in said.stderr


def test_save_without_watch_is_wrong_use() -> None:
    """OPS-8: a flag that would do nothing is refused before anything is asked of the server."""
    server = FakeServer()
    said = invoke(run, server, *ORDER, "--save", "clips")
    assert said.exit_code == output.WRONG_USE
    assert "--watch" in said.stderr
    assert not server.asked


def test_cancel_promises_nothing() -> None:
    """OPS-8: a cancel is on record; whether the provider stops, and what it charges, is its own."""
    said = invoke(run, FakeServer({"/v1/runs/R1/cancel": a_run("running")}), "cancel", "R1")
    assert "cancel requested; run R1 is running" in said.output
    assert "may refuse to stop" in said.output


def test_cancel_by_the_key_that_a_run_came_of() -> None:
    """IDEM-3: whoever has the key alone may end the run; both or neither is a wrong use."""
    server = FakeServer({"/v1/runs:cancelByKey": a_run("running")})
    said = invoke(run, server, "cancel", "--key-of", "order-17")
    assert "cancel requested; run R1 is running" in said.output
    assert server.asked == [("POST", "/v1/runs:cancelByKey", {"idempotency_key": "order-17"})]
    for wrong in (("cancel",), ("cancel", "R1", "--key-of", "k")):
        said = invoke(run, server, *wrong)
        assert (said.exit_code, "--key-of KEY" in said.stderr) == (output.WRONG_USE, True)


def test_show_tells_of_a_cancel_on_its_way_and_of_the_error() -> None:
    """OPS-8: what the API knows is shown."""
    server = FakeServer({"/v1/runs/R1": a_run("running"), "/v1/tasks/T1": a_task(cancel_requested=True)})
    assert "cancel requested" in invoke(run, server, "show", "R1").output
    error = {"code": "material_unreachable", "message": "it cannot be read; the provider said: 404 [x]"}
    server = FakeServer({"/v1/runs/R1": a_run("failed", error=error), "/v1/tasks/T1": a_task()})
    assert "the provider said: 404 [x]" in invoke(run, server, "show", "R1").output


def test_several_faults_are_told_once_each() -> None:
    """OPS-8: places stand below the title, not in the sentence and below it; a single one stays in the sentence."""
    places = [{"pointer": "/input/a", "reason": "is wrong"}, {"pointer": "/input/b", "reason": "is missing"}]
    many = problem("validation_failed", 422, detail="/input/a is wrong; /input/b is missing", title="T", errors=places)
    assert many.told() == ("T", ["/input/a: is wrong", "/input/b: is missing"])
    one = problem("validation_failed", 422, detail="/input/a is wrong", title="T", errors=places[:1])
    assert one.told() == ("/input/a is wrong", [])
    other = problem("validation_failed", 422, detail="look below", title="T", errors=places)
    assert other.told() == ("look below", ["/input/a: is wrong", "/input/b: is missing"])


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("http://a.test/", "http://a.test"),
        ("https://[::1]:1", "https://[::1]:1"),
    ],
)
def test_addresses_without_a_scheme_are_understood(given: str, spelled: str) -> None:
    """OPS-8: the scheme is http where none is said."""
    assert server_url(given) == spelled


@pytest.mark.parametrize("given", ["", "a b", "ftp://a", "http://", "http://a:port", "http://a:99999"])
def test_what_is_no_address_is_wrong_use(given: str) -> None:
    """OPS-8: a bad --url is said in a sentence, with exit code 2."""
    said = CliRunner().invoke(main, ["--url", given, "models"])
    assert said.exit_code == output.WRONG_USE
    assert "http://HOST:PORT" in said.stderr


def test_a_file_that_is_no_text_is_no_catalogue(tmp_path: Path) -> None:
    """OPS-8: bytes that are no text are refused in words before anything is sent."""
    file = tmp_path / "catalogue.yaml"
    file.write_bytes(b"\x7fELF\xff\xfe")
    server = FakeServer()
    said = invoke(catalog, server, "apply", str(file))
    assert said.exit_code == output.WRONG_USE
    assert "is no text in UTF-8" in said.stderr
    assert not server.asked


def test_empty_lists_say_so() -> None:
    """OPS-8: a table without rows is no answer; a filter that finds nothing says what there is to ask for."""
    some = {"kind": "breaker_opened"}
    assert invoke(alerts, FakeServer({"/v1/operator/alerts": {"alerts": []}})).output == "no open alerts\n"
    assert invoke(run, FakeServer({"/v1/runs": {"runs": [], "next_page_token": ""}}), "list").output == "no runs\n"

    class OneKind(FakeServer):
        async def call(self, method: str, path: str, **given: Any) -> dict[str, Any]:
            return {"alerts": [] if "kind" in (given.get("query") or {}) else [some]}

    assert "there are alerts of breaker_opened" in invoke(alerts, OneKind(), "--kind", "nope").output


def test_prices_read_as_text() -> None:
    """OPS-8: a range of prices is words, and one price is no range."""
    span = {"low": "0.20", "high": "0.28", "currency": "CNY", "per": "image", "billing_mode": "per_image"}
    assert price(span) == "0.20-0.28 CNY / image"
    assert price({**span, "high": "0.20"}) == "0.20 CNY / image"
    item = {"id": "m", "kind": "image", "profile": None, "price_range": [span], "degradations": []}
    assert "0.20-0.28 CNY / image" in invoke(models, FakeServer({"/v1/models": {"data": [item]}})).output


def test_no_gate_reads_as_no_limit() -> None:
    """OPS-8: 0 configured slots mean no gate, and are shown as what they mean; one lease is no plural."""
    item = {"id": "a", "configured": 0, "effective": None, "in_use": 1, "rpm_used": 2, "tpm_used": 0}
    answer = {"channels": [item], "supplies": [], "leases": [{}]}
    said = invoke(capacity, FakeServer({"/v1/operator/capacity": answer})).output
    assert said.count("no limit") == 2
    assert "no supplies" in said
    assert "1 lease\n" in said


def test_closed_models_are_named_with_the_way_to_the_reason() -> None:
    """OPS-8: `doctor` and `catalog show` name the models that callers may not use, and how to learn why."""
    model = {"kind": "model", "revision": 1, "spec": {}}
    objects = [{**model, "id": "open", "published": True}, {**model, "id": "closed", "published": False}]
    standing = {"/v1/operator/catalog": {"revision": 1, "objects": objects}}
    fine = {path: {} for path in ("/healthz", "/readyz", "/v1/models", "/v1/operator/health")}
    fine["/v1/operator/budgets:check"] = {"mismatches": []}
    said = invoke(doctor, FakeServer({**standing, **fine}))
    assert said.exit_code == 0
    assert "1 of 2" in said.output
    assert "closed" in said.output
    shown = invoke(catalog, FakeServer(standing), "show").output
    assert "not published: closed; `pointsman catalog publish MODEL`" in shown


def test_a_closed_model_says_why_and_a_supply_its_evidence() -> None:
    """CAT-3, CAT-7: `catalog show` has every reason against a model, and each supply's evidence."""
    model = {"kind": "model", "id": "m", "revision": 1, "spec": {}, "published": False, "evidence": None}
    offer = {"kind": "supply", "id": "a/b", "revision": 1, "spec": {}, "evidence": "none", "reasons": []}
    objects = [{**model, "reasons": ["bindings[0].supply: no price rule", "policy: none"]}, offer]
    shown = invoke(catalog, FakeServer({"/v1/operator/catalog": {"revision": 1, "objects": objects}}), "show").output
    assert "no price rule" in shown
    assert "policy: none" in shown
    assert "none" in next(line for line in shown.splitlines() if "a/b" in line)


CASE = {"name": "words", "status": "failed", "task_id": "T1", "cost": {"currency": "CNY", "amount": "4.00"}}


@pytest.mark.parametrize("status, code", [("passed", 0), ("failed", output.NO_RESULT)])
def test_a_verification_tells_each_request_and_ends_by_its_verdict(status: str, code: int) -> None:
    """CAT-7: `supply verify` shows what each request cost and lacked; its exit code is the verdict."""
    path = "/v1/operator/supplies/a%2Fb:verify"
    told = {"supply": "a/b", "status": status, "capability_version": 2, "cases": [{**CASE, "reasons": ["lasts 1 s"]}]}
    server = FakeServer({path: told})
    said = invoke(supply, server, "verify", "a/b")
    assert said.exit_code == code
    for word in ("a/b", status, "words", "T1", "lasts 1 s", "4.00"):
        assert word in said.output
    as_json = invoke(supply, FakeServer({path: told}), "verify", "a/b", "--json")
    assert (json.loads(as_json.output), as_json.exit_code) == (told, code)


def test_a_verification_that_runs_is_asked_for_by_its_id() -> None:
    """CAT-7: the command goes on with the verification that it began, also after a connection broke."""
    path = "/v1/operator/supplies/a%2Fb:verify"
    told = {"supply": "a/b", "capability_version": 1, "cases": []}
    answers = [{**told, "status": "running"}, Unreachable("gone"), {**told, "status": "passed"}]
    server = FakeServer(Turns(path, answers))
    assert invoke(supply, server, "verify", "a/b").exit_code == 0
    assert len({body["request_id"] for _, _, body in server.asked}) == 1
    assert len(server.asked) == 3


def test_times_end_at_the_second() -> None:
    """OPS-8: a person reads seconds; nothing else of the time is lost."""
    assert output.when("2026-01-31T09:30:00.123456Z") == "2026-01-31T09:30:00Z"
    assert output.when("2026-01-31T09:30:00Z") == "2026-01-31T09:30:00Z"
    assert output.when(None) == ""


def test_cells_are_texts_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-8: brackets in what a server says are no markup."""
    output.show_rows("T", ("a",), [("[red]x[/]",)], "nothing")
    output.errors.print("", end="")
    assert "[red]x[/]" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        output.fail("no [/] here", output.REFUSED)
    assert "no [/] here" in capsys.readouterr().err


def test_columns_are_respected_in_a_pipe() -> None:
    """OPS-8: COLUMNS says the width where no terminal does; without it there is room for a table."""
    assert output.width(io.StringIO(), {"COLUMNS": "60"}) is None
    assert output.width(io.StringIO(), {}) == output.PIPED_WIDTH


def test_a_key_is_rotated_and_shown_once() -> None:
    """AUTH-1: the new text goes to stdout alone, whole, for people and for machines."""
    server = FakeServer({"/v1/operator/keys/K1:rotate": {"id": "K1", "key": "pm_K1_x"}})
    said = invoke(keys, server, "rotate", "K1", "--grace", "60")
    assert "key pm_K1_x" in said.stdout
    assert "shown this once" in said.stderr
    assert server.asked == [("POST", "/v1/operator/keys/K1:rotate", {"grace_s": 60.0})]
    assert json.loads(invoke(keys, server, "rotate", "K1", "--json").stdout) == {"id": "K1", "key": "pm_K1_x"}


def test_alerts_name_the_command_that_shows_what_they_are_about() -> None:
    """OPS-6, OPS-8: an alert about an attempt or a run is opened by typing what stands below it; each is named once."""
    links = ["/v1/operator/runs/R1", "/v1/tasks/T1", "/v1/calls/C1", "/v1/operator/budgets/film%2Fa%20b", None, "/v1/x"]
    assert [look_with(link) for link in links] == [
        "pointsman run show R1", "pointsman explain T1", "pointsman explain C1", "pointsman budget show 'film/a b'", "",
        "",
    ]  # fmt: skip
    some = {
        "id": "A", "kind": "stuck_state", "severity": "high", "subject": "s", "count": 1, "message": "m",
        "created_at": "2026-01-31T09:30:00Z", "acknowledged_at": None,
    }  # fmt: skip
    told = [{**some, "link": f"/v1/operator/runs/R{number // 2}"} for number in range(14)]
    said = invoke(alerts, FakeServer({"/v1/operator/alerts": {"alerts": told}})).output
    assert said.count("look at it: pointsman run show R") == 5
    assert "and 2 more" in said


def test_an_operator_is_shown_whoevers_run() -> None:
    """OPS-8: one verb for both: a run that is not the key's own is looked up among everybody's, and says whose."""
    answers = {
        "/v1/operator/runs/R1": a_run(tenant="acme"),
        "/v1/operator/runs/R1/events": {"events": [happened(3, "run_started")]},
        "/v1/tasks/T1": a_task(),
        "/v1/tasks/T1/selections": {"selections": []},
    }
    without_runs = {path: problem("forbidden", 403) for path in ("/v1/runs/R1", "/v1/runs/R1/events")}
    for own in ({}, without_runs):
        server = FakeServer({**answers, **own})
        assert "of tenant acme" in invoke(run, server, "show", "R1").output
        assert "run started" in invoke(run, server, "events", "R1").output
        assert "task T1" in invoke(explain, server, "R1").output


def happened(sequence: int, kind: str) -> dict[str, Any]:
    """An event as the API tells it."""
    return {"sequence": sequence, "kind": kind, "created_at": "2026-01-31T09:30:00.5Z", "data": {}}


def test_a_tenants_key_is_refused_in_its_own_words() -> None:
    """AUTH-1: whose key opens no operator's door is told that there is no such run, and of no other door."""
    closed = {"/v1/operator/runs/R1": problem("forbidden", 403)}
    said = invoke(run, FakeServer(closed), "show", "R1")
    assert (said.exit_code, "not_found" in said.stderr) == (output.REFUSED, True)


def test_events_go_on_where_a_page_ended() -> None:
    """OPS-8: a full page names what to type for the next one."""
    server = FakeServer({"/v1/runs/R1/events": {"events": [happened(1, "run_created"), happened(2, "run_started")]}})
    assert "--after 2" in invoke(run, server, "events", "R1", "--limit", "2").output
    assert "--after" not in invoke(run, server, "events", "R1").output


def test_runs_of_others_are_listed_for_operators() -> None:
    """OPS-8: one tenant's or all, of which each is named; a page names the next one; both at once is wrong use."""
    page = {"runs": [a_run(tenant="acme")], "next_page_token": "R1"}
    server = FakeServer({"/v1/operator/runs": page, "/v1/runs": {"runs": [], "next_page_token": ""}})
    said = invoke(run, server, "list", "--all-tenants")
    assert "acme" in said.output
    assert "--page-token R1" in said.output
    assert invoke(run, server, "list", "--tenant", "acme").exit_code == 0
    assert "no runs" in invoke(run, server, "list").output
    assert [path for _, path, _ in server.asked] == ["/v1/operator/runs", "/v1/operator/runs", "/v1/runs"]
    assert invoke(run, server, "list", "--tenant", "acme", "--all-tenants").exit_code == output.WRONG_USE
