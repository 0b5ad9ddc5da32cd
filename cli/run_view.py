"""A run on the terminal: what it is, how far each of its nodes is, what it waits for and what it cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli import output

Node = Mapping[str, Any]
TERMINAL = frozenset({"succeeded", "failed", "timed_out", "cancelled", "dead_letter"})
MANY_ITEMS = 20
"""Of a map with more, items that are waiting for nothing but their turn, or done, are counted and not listed."""
COLUMNS = ("node", "kind", "status", "attempts", "cost", "what it waits for, or why it ended")


def show_run(found: Mapping[str, Any], task: Mapping[str, Any], *, every_item: bool = False) -> None:
    """The whole view. `task` is that of a single generation, {} if it is not to be shown."""
    single = not found.get("production")
    said = " (cancel requested)" if task.get("cancel_requested") and found["status"] not in TERMINAL else ""
    name = found["model"] if single else found["production"]
    output.console.print(f"[bold]{found['id']}[/]  {name}  [bold]{found['status']}[/]{said}", highlight=False)
    if found.get("tenant"):
        output.console.print(f"  of tenant {found['tenant']}", highlight=False, markup=False)
    if found.get("error"):
        error = found["error"]
        output.console.print(f"  error: {error['code']}: {error['message']}", highlight=False, markup=False)
    _show_usage(found, single)
    if single:
        for node in found["nodes"]:
            if node.get("waiting_reason"):
                output.console.print(f"  {node['id']} waits: {node['waiting_reason']}", highlight=False, markup=False)
    else:
        _show_nodes(found, every_item)
    _show_result(found)
    if task:
        _show_attempts(task)
    if not single:
        _show_next_steps(found)


def _show_usage(found: Mapping[str, Any], single: bool) -> None:
    usage = found["usage"]
    tries = output.count(usage["attempts"], "attempt")
    cost = output.money(usage["cost"]) or "no cost"
    if single:
        output.console.print(f"  supply {usage['supply'] or '-'}, {tries}, {cost}", highlight=False)
        return
    budget = f", budget {found['budget_id']}" if found.get("budget_id") else ""
    output.console.print(f"  {cost}, {tries}{budget}", highlight=False)
    if found.get("backpressure"):
        output.console.print(f"  producing waits for people: {found['backpressure']}", highlight=False, markup=False)
    if found.get("pending_steering"):
        waiting = output.count(found["pending_steering"], "steering input")
        output.console.print(f"  {waiting} not yet taken by a node", highlight=False)


def _show_result(found: Mapping[str, Any]) -> None:
    result = found.get("result") or {}
    if result.get("degraded"):
        lost = ", ".join(result["dropped_inputs"])
        output.console.print(f"  degraded {result['requested_profile']} -> {result['actual_profile']}, without {lost}")
    for artifact in result.get("artifacts", ()):
        size = output.count(artifact["bytes"], "byte")
        output.console.print(f"  {artifact['media_type']} {size} {artifact['url']}", highlight=False)


def _show_nodes(found: Mapping[str, Any], every_item: bool) -> None:
    output.show_rows("Nodes", COLUMNS, _rows(found["nodes"], every_item), "no nodes")


def _rows(nodes: Sequence[Node], every_item: bool) -> Iterator[Sequence[object]]:
    items: dict[str, list[Node]] = {}
    for node in nodes:
        if node.get("parent"):
            items.setdefault(node["parent"], []).append(node)
    for node in nodes:
        if node.get("parent"):
            continue
        below = items.get(node["id"], [])
        yield _row(node, node["id"], tally(below) if below else "")
        folded = 0
        for item in below:
            if every_item or len(below) <= MANY_ITEMS or _tells_something(item):
                yield _row(item, f"  {item['id'].partition('/')[2]}")
            else:
                folded += 1
        if folded:
            yield (f"  … {folded} more", "", "", "", "", "--all shows them")


def _tells_something(item: Node) -> bool:
    return item["status"] not in ("succeeded", "pending", "cancelled")


def _row(node: Node, name: str, more: str = "") -> Sequence[object]:
    error = node.get("error")
    why = f"{error['code']}: {error['message']}" if error else node.get("waiting_reason") or ""
    kind = f"{node['kind']} ({node['shot_class']})" if node.get("shot_class") else node["kind"]
    told = "; ".join(part for part in (more, why) if part)
    return name, kind, node["status"], node.get("attempts") or "", output.money(node.get("cost")), told


def tally(items: Sequence[Node]) -> str:
    """`3 of 8 done, 1 failed, 2 running`: the items of a map, by their states."""
    counts = Counter(item["status"] for item in items)
    done = counts.pop("succeeded", 0)
    others = [f"{number} {status.replace('_', ' ')}" for status, number in sorted(counts.items())]
    return ", ".join([f"{done} of {len(items)} done", *others])


def _show_next_steps(found: Mapping[str, Any]) -> None:
    reviews = list(dict.fromkeys(node["review_id"] for node in found["nodes"] if node.get("review_id")))
    for review_id in reviews[:3]:
        output.console.print(f"a person is asked: pointsman review show {review_id}", highlight=False)
    if len(reviews) > 3:
        output.console.print(f"{len(reviews) - 3} more: pointsman review list --run {found['id']}", highlight=False)
    if found["status"] == "paused":
        output.console.print(f"go on with: pointsman run resume {found['id']}", highlight=False)
    if found["status"] == "dead_letter":
        output.console.print(f"see what failed: pointsman dead-letters list --run {found['id']}", highlight=False)
        output.console.print(f"then: pointsman run redrive {found['id']} --preview", highlight=False)


def _show_attempts(task: Mapping[str, Any]) -> None:
    rows = (
        (
            item["number"],
            item["supply"],
            item["state"],
            output.money(item["quote"]),
            output.money(item["cost"]),
            (item["error"] or {}).get("code"),
        )
        for item in task["attempts"]
    )
    columns = ("#", "supply", "state", "quote", "cost", "error")
    output.show_rows(f"Attempts of task {task['id']}", columns, rows, f"task {task['id']} has no attempt yet")
    for item in task["attempts"]:
        _show_late(item)


def _show_late(item: Mapping[str, Any]) -> None:
    """What the provider said after the attempt had ended by our own timeout."""
    late = item.get("late")
    if late is None:
        return
    before = output.money(late["cost_before"]) or "nothing"
    said = f"  attempt {item['number']} {late['outcome']} at {output.when(late['heard_at'])}, after it had ended"
    output.console.print(f"{said}; {before} was booked until then", highlight=False, soft_wrap=True)
    for artifact in late["artifacts"]:
        size = output.count(artifact["bytes"], "byte")
        output.console.print(f"    {artifact['media_type']} {size} {artifact['url']}", highlight=False)
