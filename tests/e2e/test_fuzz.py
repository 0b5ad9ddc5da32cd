"""The whole API under requests that its own document makes up: whatever comes, no 5xx and nothing undocumented.

A new operation is fuzzed from its first day, because the document is drawn from what is served. In the small size with
every run of CI, in the large one by `make drills`.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tests.e2e.scenery import setting
from tests.support.stack import AllInOne, Stack, running
from tests.support.visitor import FIXED

EXAMPLES = 200 if os.environ.get("POINTSMAN_DRILLS") else 5
CHECKS: list[Any] = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
]
OURS = frozenset({"authorization", "host"})
"""Headers that the document's own inventions are not sent as."""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """The product in one process, with its providers. Nothing may be logged as an error, whatever comes."""
    with asyncio.Runner() as runner:
        context = running(AllInOne, setting())
        stack = runner.run(context.__aenter__())
        yield stack
        runner.run(context.__aexit__(None, None, None))
        assert stack.said == []


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[httpx2.Client]:
    """A client with every scope."""
    headers = {"authorization": f"Bearer {stack.key}"}
    with httpx2.Client(base_url=stack.url, headers=headers, timeout=60, follow_redirects=False) as client:
        yield client


def test_the_document_is_openapi(client: httpx2.Client) -> None:
    """EDG-1: /openapi.json is a valid OpenAPI 3.1 document, and every reference in it leads somewhere."""
    document = client.get("/openapi.json").json()
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []
    assert list(OPENAPI_31_VALIDATOR.iter_errors({**document, "paths": 5})), "the validator validates"
    for name in references(document):
        assert name.removeprefix("#/components/schemas/") in document["components"]["schemas"], name


def references(value: Any) -> Iterator[str]:
    """Every `$ref` in a JSON value."""
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


@pytest.mark.timeout(1800)  # the large size
def test_whatever_comes(client: httpx2.Client) -> None:
    """EDG-1, EDG-2, EDG-3: every operation answers made-up requests as it documents, and none with a bug of ours.

    Half of the requests name things that are there, so that what lies behind the first check is met too.
    """
    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    known = things(client)
    found = [play(client, result.ok(), known) for result in schema.get_all_operations()]
    assert len(found) > 50
    assert not any(found), "\n\n".join(filter(None, found))


def things(client: httpx2.Client) -> dict[str, str]:
    """Ids of what is there, by the name of the parameter that takes them."""
    order = {"model": "steady", "input": {"prompt": "a lake", **FIXED}}
    run = client.post("/v1/runs", json=order).json()
    run = client.get(f"/v1/runs/{run['id']}/join", params={"timeout_s": 30}).json()
    assert run["status"] == "succeeded"
    key = client.post("/v1/operator/keys", json={"tenant": "somebody", "scopes": ["runs"]}).json()
    return {
        "run_id": run["id"],
        "task_id": run["nodes"][0]["task_id"],
        "sha256": run["result"]["artifacts"][0]["sha256"],
        "key_id": key["id"],
        "model_id": "steady",
        "id": "lossy/clip",
        "model": "steady",
    }


def play(client: httpx2.Client, operation: Any, known: dict[str, str]) -> str:
    """What is wrong with an operation, "" for nothing."""
    count = 0

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    @given(case=operation.as_strategy())
    def each(case: Any) -> None:
        nonlocal count
        count += 1
        if count % 2:
            point_at(case, known)
        case.validate_response(asked(client, case), checks=CHECKS)

    try:
        each()
    except Exception as error:
        return f"{operation.label}: {error}"
    return ""


def point_at(case: Any, known: dict[str, str]) -> None:
    """Let the request be about something that is there."""
    for name in case.path_parameters or {}:
        case.path_parameters[name] = known.get(name, case.path_parameters[name])
    if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
        case.body["model"] = known["model"]


def asked(client: httpx2.Client, case: Any) -> httpx2.Response:
    """The answer. Of a stream of events only the head is read: it may last for ever."""
    given = case.as_transport_kwargs(base_url=str(client.base_url))
    parts = {name: given.get(name) for name in ("method", "url", "headers", "params", "json", "data", "files")}
    request = requests.Request(**parts).prepare()
    assert request.method is not None
    assert request.url is not None
    headers = {name: value for name, value in request.headers.items() if name.lower() not in OURS}
    with client.stream(request.method, request.url, headers=headers, content=request.body) as response:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            response._content = b""
        else:
            response.read()
    return response
