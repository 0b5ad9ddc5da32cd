"""Query strings over every operation of the document: what nobody knows is refused by name, what is known is taken."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.edge.house import EdgeHouse
from tests.contract.edge.test_problems import check

FITTING: dict[str, str] = {"at": "2026-01-01T12:00:00Z", "expires": "1", "kind": "x"}
"""By name, a value that the parameter takes where its schema names no other."""


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """(method, path, parameters of its query string)."""
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            asked = [item for item in found["parameters"] if item["in"] == "query"]
            yield method.upper(), path.replace("{", "").replace("}", ""), asked


def fitting(parameter: dict[str, Any]) -> str:
    """A value that it takes."""
    schema = parameter["schema"]
    if "enum" in schema:
        return str(schema["enum"][0])
    if schema.get("type") == "boolean":
        return "true"
    if schema.get("type") in ("integer", "number"):
        return str(schema.get("minimum", schema.get("default", 1)))
    return FITTING.get(parameter["name"], "")


async def test_a_misspelt_parameter_is_refused_everywhere(edge: EdgeHouse) -> None:
    """EDG-1, EDG-3: on every path and method a parameter that it does not know is 422, named with those that there are,
    before anything is done; one that it knows is not."""
    async with edge.admin as admin:
        document = (await admin.get("/openapi.json")).json()
        seen = 0
        for method, path, parameters in operations(document):
            told = check(await admin.request(method, path, params={"lmit": "5"}), 422, "validation_failed")
            (error,) = told["errors"]
            assert error["pointer"] == "/query/lmit"
            names = [parameter["name"] for parameter in parameters]
            there = f"known are {', '.join(names)}" if names else "there are none here"
            assert error["reason"] == f"is not a known parameter; {there}"
            for parameter in parameters:
                answer = await admin.request(method, path, params={parameter["name"]: fitting(parameter)})
                assert "known parameter" not in answer.text
                assert answer.status_code != 500, answer.text
                seen += 1
        assert seen > 40
        assert edge.runs.created == []


@pytest.mark.parametrize(
    "query, pointer, reason",
    [
        ("afer=10", "/query/afer", "is not a known parameter; known are after, limit"),
        ("after=1&after=2", "/query/after", "is given more than once; give it once"),
        ("after=1&After=2", "/query/After", "is not a known parameter; known are after, limit"),
        ("after=1;limit=2&limt", "/query/limt", "is not a known parameter; known are after, limit"),
        ("a~b/c=1", "/query/a~0b~1c", "is not a known parameter; known are after, limit"),
        ("limit=%00", "/query/limit", "holds a NUL character"),
        (f"{'x' * 200}=1", f"/query/{'x' * 100}", "is not a known parameter; known are after, limit"),
    ],
)
async def test_what_a_query_string_may_hold(edge: EdgeHouse, query: str, pointer: str, reason: str) -> None:
    """EDG-3: names are spelt exactly and given once; each that is not is told by its pointer."""
    edge.runs.add("r1", "default")
    async with edge.admin as admin:
        told = check(await admin.get(f"/v1/runs/r1/events?{query}"), 422, "validation_failed")
    assert {"pointer": pointer, "reason": reason} in told["errors"]


async def test_what_may_be_given_several_times(edge: EdgeHouse) -> None:
    """EDG-3: a list of states may repeat its name, and an empty query string says nothing."""
    edge.runs.add("r1", "default")
    async with edge.admin as admin:
        assert (await admin.get("/v1/runs?status=pending&status=running")).status_code == 200
        assert (await admin.get("/v1/operator/runs?status=pending&status=running")).status_code == 200
        for query in ("?", "?&", "?page_size=", "?page_size=5&"):
            assert (await admin.get(f"/v1/runs{query}")).status_code == 200
        assert (await admin.request("OPTIONS", "/v1/runs?whatever=1")).status_code == 204
        assert (await admin.head("/v1/runs/r1?whatever=1")).status_code == 422


async def test_strangers_learn_no_names(edge: EdgeHouse) -> None:
    """AUTH-1: without a key, or without its scope, a query string is not looked at."""
    async with edge.client() as stranger, await edge.user() as user:
        check(await stranger.get("/v1/runs?lmit=5"), 401, "unauthenticated")
        check(await user.get("/v1/operator/health?lmit=5"), 403, "forbidden")
