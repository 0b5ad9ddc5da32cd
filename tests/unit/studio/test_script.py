"""The fault script: which request a rule takes, and how its steps are used up."""

import pytest

from services.studio.domain.script import OK, Facts, Script, ScriptError, read_step

CREATE = Facts("aurora", "POST", "/api/v3/contents/generations/tasks", "seedance", "a storm at sea", "tok-1")
POLL = Facts("aurora", "GET", "/api/v3/contents/generations/tasks/cgt-1", "seedance", "a storm at sea", "tok-1")


def script_of(*rules: dict) -> Script:
    script = Script()
    for rule in rules:
        script.add(rule)
    return script


def test_steps_are_used_in_order_one_per_matching_request():
    """Each matching request takes the next step; afterwards requests pass untouched."""
    script = script_of({"match": {}, "then": [{"status": 429, "retry_after": 2}, {"status": 500}, {"ok": True}]})
    statuses = [script.decide(CREATE).status for _ in range(4)]
    assert statuses == [429, 500, 0, 0]
    assert script.view()[0]["done"]


@pytest.mark.parametrize(
    "repeat, expected", [(1, [429, 500, 0, 0]), (2, [429, 500, 500, 0]), ("forever", [429, 500, 500, 500])]
)
def test_repeat_counts_the_uses_of_the_last_step(repeat, expected):
    """`repeat` says how often the last step is used, and "forever" never ends."""
    script = script_of({"match": {}, "then": [{"status": 429}, {"status": 500}], "repeat": repeat})
    assert [script.decide(CREATE).status for _ in range(4)] == expected


def test_the_first_rule_that_is_not_used_up_decides():
    """A used-up rule gives way to the next one that matches."""
    script = script_of({"then": [{"status": 401}]}, {"then": [{"status": 503}], "repeat": "forever"})
    assert [script.decide(CREATE).status for _ in range(3)] == [401, 503, 503]


@pytest.mark.parametrize(
    "match, create, poll",
    [
        ({}, True, False),  # submissions only, unless told otherwise
        ({"method": "*"}, True, True),
        ({"method": "get"}, False, True),
        ({"path": "/tasks/"}, False, True),
        ({"path": "*/generations/tasks"}, True, False),
        ({"account": "boreal"}, False, False),
        ({"account": "aurora", "model": "seedance"}, True, False),
        ({"model": "another"}, False, False),
        ({"prompt_contains": "storm"}, True, False),
        ({"prompt_contains": "calm"}, False, False),
        ({"client_token": "tok-1"}, True, False),
        ({"client_token": "tok-2"}, False, False),
    ],
)
def test_every_condition_of_a_match_must_hold(match, create, poll):
    """A rule takes exactly the requests that its match describes, and without method and path only submissions."""
    for facts, expected in ((CREATE, create), (POLL, poll)):
        script = script_of({"match": match, "then": [{"status": 418}]})
        assert (script.decide(facts).status == 418) is expected
        assert script.view()[0]["used"] == int(expected)


def test_what_is_done_to_the_job_follows_from_the_step():
    """A drop takes the job on unless told otherwise; a hang does not unless told so."""
    assert read_step({"drop_after_body": True}).accept
    assert read_step({"accept_then_drop": True}) == read_step({"drop_after_body": True})
    assert not read_step({"drop_after_body": True, "accept": False}).accept
    assert not read_step({"hang_s": 30}).accept
    assert read_step({"hang_s": 30, "accept": True}).accept
    assert read_step({"ok": True}) == OK
    assert read_step({"status": 429, "retry_after": 2}).headers == {"Retry-After": "2"}
    assert read_step({"fail_task": {"code": "X", "message": "y"}}).fail_task == ("X", "y")


@pytest.mark.parametrize(
    "rule",
    [
        [],
        {"then": []},
        {"then": [{"staus": 500}]},
        {"match": {"acount": "aurora"}, "then": [{"ok": True}]},
        {"match": {"account": 5}, "then": [{"ok": True}]},
        {"then": [{"ok": True}], "repeat": 0},
        {"then": [{"ok": True}], "times": 3},
        {"then": [{"status": "many"}]},
        {"then": [{"fail_task": "badly"}]},
    ],
)
def test_a_script_that_cannot_be_read_is_refused(rule):
    """A misspelt fault is an error, not a fault that never happens."""
    with pytest.raises(ScriptError):
        Script().add(rule)
