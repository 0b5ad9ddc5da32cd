"""/v1/operator/budgets: what may be spent, what is reserved, what was spent."""

from typing import Any

from starlette.responses import Response

from libs.faults.fault import Fault
from services.edge.domain import budget_shapes, queries
from services.edge.domain.budgets import VALUE_CLASSES, change_of, order_of, refuse_unknown_parent
from services.edge.ports import Budgets
from services.edge.routes.answers import answer
from services.edge.routes.bodies import SMALL_BODY_BYTES, read_object
from services.edge.routes.operations import JSON, OPERATORS, PAGING, TEXT, Asked, Operation, Parameter

LIMIT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "cost": {"type": "string", "description": "In the budget's currency, such as 200.00; 0 = not limited."},
        "attempts": {"type": "integer", "minimum": 0},
        "review_minutes": {"type": "integer", "minimum": 0},
    },
}
TIME = {"type": "string", "format": "date-time"}
CREATE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "level"],
    "properties": {
        "id": TEXT,
        "level": {**TEXT, "description": "project, stage, episode, shot, node, or a name of your own."},
        "parent": {**TEXT, "description": "The budget above it; without one it is a root."},
        "tenant": TEXT,
        "value_class": {"enum": list(VALUE_CLASSES), "default": "normal"},
        "currency": {**TEXT, "description": "ISO 4217; taken from the parent where there is one."},
        "hard": LIMIT,
        "soft": LIMIT,
        "deadline_at": TIME,
    },
}
CHANGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reason"],
    "properties": {
        "reason": {**TEXT, "description": "Who changes the limits, and why."},
        "hard": LIMIT,
        "soft": LIMIT,
        "deadline_at": TIME,
    },
}


class BudgetRoutes:
    """The handlers with what they need."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets

    async def list(self, asked: Asked) -> Response:
        """Parents before their children."""
        size, token = queries.page_size(asked.query("page_size")), asked.query("page_token") or ""
        found = await self._budgets.page(asked.query("tenant") or "", asked.query("root") or "", size, token)
        return answer(budget_shapes.BudgetList(*found))

    async def create(self, asked: Asked) -> Response:
        """201, also for a repeat of the same declaration. What is wrong is told together, the parent with it."""
        body = await read_object(asked.request, SMALL_BODY_BYTES)
        order = order_of(body)
        if body.errors and order.parent and not await self._known(order.parent):
            refuse_unknown_parent(body, order.parent)
        body.finish()
        return answer(await self._budgets.create(order), 201)

    async def _known(self, budget_id: str) -> bool:
        try:
            await self._budgets.get(budget_id)
        except Fault as fault:
            if fault.code != "not_found":
                raise
            return False
        return True

    async def get(self, asked: Asked) -> Response:
        """One budget."""
        return answer(await self._budgets.get(asked.path("budget_id")))

    async def change(self, asked: Asked) -> Response:
        """The budget with its new limits."""
        key = queries.idempotency_key(asked.request.headers.get("idempotency-key"))
        change = change_of(await read_object(asked.request, SMALL_BODY_BYTES))
        return answer(await self._budgets.change(asked.path("budget_id"), change, key))

    async def entries(self, asked: Asked) -> Response:
        """Movements, oldest first."""
        after, size = queries.cursor(asked.query("after"), "after"), queries.page_size(asked.query("page_size"))
        return answer(budget_shapes.BudgetEntryList(await self._budgets.entries(asked.path("budget_id"), after, size)))

    async def check(self, asked: Asked) -> Response:
        """Whether figures, entries and Holds agree."""
        return answer(budget_shapes.LedgerCheck(await self._budgets.mismatches()))

    def operations(self) -> tuple[Operation, ...]:
        """What is served; an id may hold slashes, so what ends in a word of ours comes first."""
        at = "/v1/operator/budgets"
        filters = (Parameter("tenant", "Only this tenant's."), Parameter("root", "Only this one and those below it."))
        after = Parameter("after", "Only movements after this sequence.", {"type": "integer", "default": 0})
        bad = ("malformed_request", "validation_failed")
        return (
            Operation(
                "listBudgets", "GET", at, self.list, "Budgets, parents before children.", OPERATORS,
                answer=budget_shapes.BudgetList, parameters=(*filters, *PAGING), codes=bad,
            ),
            Operation(
                "createBudget", "POST", at, self.create, "Make a budget; the same again is the same budget.", OPERATORS,
                201, budget_shapes.Budget, takes=CREATE_SCHEMA, types=frozenset({JSON}), codes=(*bad, "already_exists"),
            ),
            Operation(
                "checkLedger", "GET", f"{at}:check", self.check, "Whether figures, entries and Holds agree.", OPERATORS,
                answer=budget_shapes.LedgerCheck,
            ),
            Operation(
                "changeBudgetLimits", "POST", f"{at}/{{budget_id:path}}/limits", self.change,
                "Change limits, with a reason; what is not named stays.", OPERATORS, answer=budget_shapes.Budget,
                takes=CHANGE_SCHEMA, types=frozenset({JSON}), codes=(*bad, "not_found", "conflict"),
            ),
            Operation(
                "listBudgetEntries", "GET", f"{at}/{{budget_id:path}}/entries", self.entries,
                "The movements of a budget, oldest first.", OPERATORS, answer=budget_shapes.BudgetEntryList,
                parameters=(after, PAGING[0]), codes=("malformed_request", "validation_failed", "not_found"),
            ),
            Operation(
                "getBudget", "GET", f"{at}/{{budget_id:path}}", self.get, "One budget.", OPERATORS,
                answer=budget_shapes.Budget, codes=("not_found",),
            ),
        )  # fmt: skip
