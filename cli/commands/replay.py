"""`pointsman explain TASK|CALL --replay`: every saved decision made again, and compared byte for byte."""

from typing import Any
from urllib.parse import quote

from cli import output
from cli.api import Api


async def read_replay(api: Api, plural: str, name: str) -> dict[str, Any]:
    """The replay of every round of one of the `tasks` or `calls`."""
    return await api.get(f"/v1/{plural}/{quote(name, safe='')}/replay")


def show_replay(answer: dict[str, Any]) -> None:
    """Each round: identical, or where it differs first."""
    rows = [
        (item["round"], "identical" if item["identical"] else "DIFFERS", item["decision_digest"][:16], _where(item))
        for item in answer["rounds"]
    ]
    columns = ("round", "replay", "decision", "first difference")
    whose = f"call {answer['call_id']}" if "call_id" in answer else f"task {answer['task_id']}"
    output.console.print(output.table(f"Replay of {whose}", columns, rows))
    if not rows:
        output.console.print("no selection yet, so there is nothing to replay")


def _where(item: dict[str, Any]) -> str:
    found = item["difference"]
    if found is None:
        return ""
    recorded, replayed = (found[name] if found[name] is not None else "nothing" for name in ("recorded", "replayed"))
    return f"{found['pointer'] or 'the whole'}: recorded {recorded}, replayed {replayed}"
