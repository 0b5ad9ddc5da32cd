"""The lab: the fault script, the accounts' settings, the ledger and the way back to a clean studio. No key."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from services.studio.desk import CHANGEABLE, Desk
from services.studio.domain import ledger
from services.studio.domain.accounts import Account
from services.studio.domain.script import ScriptError
from services.studio.renders import Renders
from services.studio.routes.door import DIALECTS

BASES = {name: dialect.BASE for name, dialect in DIALECTS.items()}


class LabRoutes:
    """The handlers of /lab. `reset` is given by the owner of the renders, which must stop first."""

    def __init__(self, desk: Desk, renders: Renders, reset: Callable[[], Awaitable[None]]) -> None:
        self._desk = desk
        self._renders = renders
        self._reset = reset

    def routes(self) -> list[Route]:
        """All routes of the lab."""
        return [
            Route("/lab/script", self.script, methods=["GET", "POST", "DELETE"]),
            Route("/lab/script/{rule_id:int}", self.rule, methods=["DELETE"]),
            Route("/lab/accounts", self.accounts, methods=["GET"]),
            Route("/lab/accounts/{account_id}", self.account, methods=["GET", "POST"]),
            Route("/lab/ledger", self.ledger, methods=["GET"]),
            Route("/lab/reset", self.reset, methods=["POST"]),
        ]

    async def script(self, request: Request) -> Response:
        """GET the rules, POST one rule or a list of them, DELETE all."""
        script = self._desk.script
        if request.method == "DELETE":
            script.clear()
        elif request.method == "POST":
            try:
                given = await _json(request)
                rules = [script.add(rule) for rule in (given if isinstance(given, list) else [given])]
            except (ScriptError, ValueError) as error:
                return _bad(error)
            return JSONResponse({"ids": [rule.id for rule in rules], "rules": script.view()}, 201)
        return JSONResponse({"rules": script.view()})

    async def rule(self, request: Request) -> Response:
        """DELETE one rule."""
        if not self._desk.script.remove(request.path_params["rule_id"]):
            return JSONResponse({"error": "no such rule"}, 404)
        return JSONResponse({"rules": self._desk.script.view()})

    async def accounts(self, request: Request) -> Response:
        """GET all accounts with their base URLs, keys, settings and models."""
        return JSONResponse({"accounts": [self._view(account, request) for account in self._desk.accounts.values()]})

    async def account(self, request: Request) -> Response:
        """GET one account; POST changes to it, which hold until the studio is reset or restarted."""
        account_id = request.path_params["account_id"]
        try:
            account = self._desk.accounts[account_id]
            if request.method == "POST":
                given = await _json(request)
                if not isinstance(given, dict):
                    raise ValueError("an object of settings is needed")
                account = self._desk.change(account_id, given)
                await self._renders.changed(account_id)
        except KeyError:
            return JSONResponse({"error": f"no account {account_id}"}, 404)
        except ValueError as error:
            return _bad(error)
        return JSONResponse(self._view(account, request))

    async def ledger(self, request: Request) -> Response:
        """GET the ledger of `?account=` or of all."""
        account = request.query_params.get("account")
        if account and account not in self._desk.accounts:
            return JSONResponse({"error": f"no account {account}"}, 404)
        archive = self._desk.archive
        view = ledger.view(archive.submissions(account), archive.posts(account))
        most = {name: self._desk.most_calls(name) for name in ([account] if account else self._desk.accounts)}
        view["calls"]["most_at_once"] = {name: count for name, count in most.items() if count}
        return JSONResponse(view)

    async def reset(self, request: Request) -> Response:
        """POST: forgets all jobs, files, rules and changes."""
        await self._reset()
        return JSONResponse({"reset": True})

    def _view(self, account: Account, request: Request) -> dict[str, Any]:
        origin = f"{request.url.scheme}://{request.url.netloc}"
        view: dict[str, Any] = {"id": account.id, "dialect": account.dialect}
        view["base_url"] = f"{origin}/{account.id}{BASES[account.dialect]}"
        view |= {name: getattr(account, name) for name in CHANGEABLE}
        view["active"] = self._desk.active(account.id)
        most = self._desk.most_at_once(account.id)
        view["most_at_once"] = {"account": most.pop("", 0), "models": most}
        view["models"] = [json.loads(json.dumps(asdict(model), default=str)) for model in account.models.values()]
        return view


async def _json(request: Request) -> Any:
    return json.loads(await request.body())


def _bad(error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)
