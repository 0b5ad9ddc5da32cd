"""What the demonstration asks for, and how it waits for answers."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from cli.api import Api
from cli.demo.stage import wait_until

SCENES = (
    "a lighthouse at dawn",
    "a market in the rain",
    "a train in the snow",
    "a kite over the dunes",
)
RESTING = frozenset({"succeeded", "failed", "timed_out", "cancelled"})
RUN_LIMIT_S = 90.0


async def create(api: Api, model: str, given: Mapping[str, Any], act: str) -> str:
    """A new Run's id. The label names the act, so that the story can be told from the runs alone."""
    body = {"model": model, "input": dict(given), "labels": {"act": act}}
    return str((await api.call("POST", "/v1/runs", body=body))["id"])


async def get(api: Api, run_id: str) -> dict[str, Any]:
    """The Run as it is now."""
    return await api.get(f"/v1/runs/{run_id}")


async def task_of(api: Api, run: Mapping[str, Any]) -> dict[str, Any]:
    """The Task behind a Run."""
    return await api.get(f"/v1/tasks/{run['nodes'][0]['task_id']}")


async def finish(api: Api, run_id: str, *, seconds: float = RUN_LIMIT_S) -> dict[str, Any]:
    """The Run once it rests, or as it is when the time is over."""
    return await wait_until(lambda: get(api, run_id), lambda run: run["status"] in RESTING, seconds=seconds, every=0.15)


async def finish_all(api: Api, run_ids: Sequence[str], *, seconds: float = RUN_LIMIT_S) -> list[dict[str, Any]]:
    """All of them."""
    return list(await asyncio.gather(*(finish(api, run_id, seconds=seconds) for run_id in run_ids)))


def clip(prompt: str, first_frame: str | None = None, **more: Any) -> dict[str, Any]:
    """The input of a clip of four seconds."""
    given: dict[str, Any] = {"prompt": prompt, "duration_s": 4, "resolution": "720p", "ratio": "16:9", **more}
    if first_frame:
        given["first_frame"] = {"artifact": first_frame}
    return given


async def supply_health(api: Api, supply: str) -> dict[str, Any]:
    """One Supply's line of the health view."""
    answer = await api.get("/v1/operator/health")
    return next(item for item in answer["supplies"] if item["id"] == supply)


async def channel_health(api: Api, channel: str) -> dict[str, Any]:
    """One Channel's line of the health view."""
    answer = await api.get("/v1/operator/health")
    return next(item for item in answer["channels"] if item["id"] == channel)


async def slots_in_use(api: Api) -> dict[str, int]:
    """Slots in use by Supply."""
    answer = await api.get("/v1/operator/capacity")
    return {item["id"]: item["in_use"] for item in answer["supplies"]}
