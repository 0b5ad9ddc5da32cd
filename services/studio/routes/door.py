"""The door of an account: reads a request, records it, lets the fault script have its way, and calls the handler.

Order of judgement: the script first (a provider that is down does not check keys), then the body, the key, the model,
the parameters, the markers in the prompt and the slots. A POST is on record before any of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from services.studio.archive import Post, Submission
from services.studio.desk import Desk
from services.studio.dialects import ark, dashscope, fal, kling, local_ocr, minimax, openai, replicate
from services.studio.domain import markers
from services.studio.domain.accounts import Account, Model
from services.studio.domain.jobs import Failure, Task
from services.studio.domain.refusals import Reason, Refusal
from services.studio.domain.script import Facts, Step
from services.studio.keys import IN_USE
from services.studio.routes.connection import Cut, Garbled, Truncated, silence
from services.studio.routes.live import Live

log = logging.getLogger(__name__)
DIALECTS: Mapping[str, ModuleType] = {
    "ark": ark,
    "dashscope": dashscope,
    "fal": fal,
    "kling": kling,
    "local-ocr": local_ocr,
    "minimax": minimax,
    "openai": openai,
    "replicate": replicate,
}


@dataclass(slots=True)
class Call:
    """One request to one account. `post` is its number in the archive if it is a POST that `submits` something; `step`
    is the script's will."""

    request: Request
    account: Account
    dialect: ModuleType
    path: str
    raw: bytes
    body: Any
    request_id: str
    client_token: str
    safety_identifier: str
    submits: bool = True
    step: Step = field(default_factory=Step)
    post: int = 0
    accepted: bool = False

    def link(self, name: str) -> str:
        """Public URL of a file of this account, at the address by which the caller came."""
        return f"{self.request.url.scheme}://{self.request.url.netloc}/{self.account.id}/files/{name}"

    @property
    def fate(self) -> Failure | None:
        """The failure that the script chose for the job, if any."""
        return Failure(*self.step.fail_task) if self.step.fail_task else None


Handler = Callable[[Call], Awaitable[Response]]


class Door:
    """Serves one account id in one dialect; the account's settings are those of the moment."""

    def __init__(self, desk: Desk, account_id: str) -> None:
        self._desk = desk
        self._account_id = account_id

    async def serve(
        self, request: Request, path: str, handler: Handler, *, open_to_all: bool = False, submits: bool = True
    ) -> Response:
        """The whole life of one request. `path` is without the account's prefix; `open_to_all` asks for no key, and a
        POST that does not `submit` anything is in no ledger."""
        try:
            call = await self._read(request, path, submits)
        except ClientDisconnect:
            return Cut()
        call.step = step = self._desk.script.decide(self._facts(call))
        if step.slow_s:
            await asyncio.sleep(step.slow_s)
        ends_unheard = step.cut or bool(step.hang_s)
        if step.status:
            response = self._scripted(call)
        elif ends_unheard and not step.accept:
            self._refused(call, 0, "cut" if step.cut else "hang")
            response = Cut()
        else:
            response = await self._handled(call, handler, open_to_all)
        if step.hang_s:
            await silence(request, step.hang_s)
        if ends_unheard:
            return Cut()
        if step.garble and not isinstance(response, Live):
            return Garbled(response)
        return Truncated(response) if step.truncate else response

    async def _read(self, request: Request, path: str, submits: bool) -> Call:
        raw = await request.body()
        try:
            body = msgspec.json.decode(raw) if raw else {}
        except (msgspec.DecodeError, UnicodeDecodeError):
            body = None
        account = self._desk.accounts[self._account_id]
        fields = body if isinstance(body, Mapping) else {}
        safety_identifier = str(fields.get("safety_identifier") or fields.get("external_task_id") or "")
        token = safety_identifier or next(
            (request.headers[name] for name in ("x-client-request-id", "idempotency-key") if name in request.headers),
            str(fields.get("user") or ""),
        )
        call = Call(
            request,
            account,
            DIALECTS[account.dialect],
            path,
            raw,
            body,
            request_id=f"02{secrets.token_hex(15)}",
            client_token=token,
            safety_identifier=safety_identifier,
            submits=submits and request.method == "POST",
        )
        if call.submits:
            digest = hashlib.sha256(raw).hexdigest()
            model = named(call)
            call.post = self._desk.archive.received(Post(self._desk.now(), account.id, path, model, token, digest))
        return call

    def _facts(self, call: Call) -> Facts:
        fields = call.body if isinstance(call.body, Mapping) else {}
        model, prompt, token = named(call), prompt_of(fields), call.client_token
        task_id = call.request.path_params.get("task_id") or call.request.query_params.get("task_id")
        task = self._desk.archive.task(call.account.id, task_id) if task_id else None
        if task is not None:
            model, prompt, token = task.model, task.job.prompt, task.job.safety_identifier
        return Facts(call.account.id, call.request.method, call.path, model, prompt, token, call.submits)

    async def _handled(self, call: Call, handler: Handler, open_to_all: bool) -> Response:
        try:
            if not isinstance(call.body, Mapping):
                raise Refusal(Reason.BODY_INVALID, "The request body is not a JSON object.")
            if not open_to_all:
                scheme = getattr(call.dialect, "SCHEME", "bearer")
                self._desk.authenticate(call.account, call.request.headers.get("authorization", ""), scheme)
            return self._marked(call, await self._once(call, handler))
        except Refusal as error:
            refusal = error
        except Exception:
            log.exception("account %s could not serve %s", call.account.id, call.path)
            refusal = Refusal(Reason.INTERNAL, "")
        status, body = call.dialect.refuse(refusal, call.request_id)
        self._refused(call, status, str(call.dialect.CODES[refusal.reason][1]))
        return self._marked(call, JSONResponse(body, status, call.dialect.HEADERS.get(refusal.reason)))

    async def _once(self, call: Call, handler: Handler) -> Response:
        """The handler's answer; where the account honours keys, the answer of the request that holds this one's."""
        key = call.request.headers.get("idempotency-key", "") if call.post and call.account.honours_keys else ""
        if not key:
            return await handler(call)
        keys, digest = self._desk.keys, hashlib.sha256(call.raw).hexdigest()
        known = keys.answered(call.account.id, key, digest)
        if known is None:
            if self._desk.archive.knows(call.account.id, key):
                raise Refusal(Reason.KEY_IN_USE, IN_USE)
            return await keys.held(call.account.id, key, digest, lambda: handler(call), lambda: call.accepted)
        self._desk.archive.replayed(call.post)
        if isinstance(known, Refusal):
            raise known
        return known

    def _scripted(self, call: Call) -> Response:
        step = call.step
        body = step.body
        if body is None:
            body = call.dialect.scripted(step.status, step.code, step.message, call.request_id)
        response = (
            Response(body, step.status, media_type="text/plain")
            if isinstance(body, str)
            else JSONResponse(body, step.status)
        )
        response.headers.update(step.headers)
        self._refused(call, step.status, "scripted")
        return self._marked(call, response)

    def _refused(self, call: Call, status: int, code: str) -> None:
        if call.post and not call.accepted:
            self._desk.archive.refused(call.post, status, code)

    def _marked(self, call: Call, response: Response) -> Response:
        response.headers["x-request-id"] = call.request_id
        return response


def named(call: Call) -> str:
    """The model that a request names: in its body, or in its path where the dialect has it there."""
    fields = call.body if isinstance(call.body, Mapping) else {}
    if hasattr(call.dialect, "named"):
        return str(call.dialect.named(call.path, fields))
    return str(fields.get(call.dialect.MODEL) or "")


def model_of(call: Call, *kinds: str) -> Model:
    """The model that the request names. Raises Refusal when it is missing, unknown to the account or of other kinds."""
    field_name = call.dialect.MODEL
    name = named(call)
    if not name:
        raise Refusal(Reason.PARAMETER_MISSING, f"The required parameter `{field_name}` is missing.", field_name)
    model = call.account.models.get(name)
    if model is None or model.kind not in kinds:
        raise call.dialect.model_unknown(name)
    return model


def check_prompt(call: Call, prompt: str) -> None:
    """Raises Refusal when a marker in the prompt asks for an early one."""
    reason = markers.early(prompt, call.account.real_person)
    if reason is not None:
        raise Refusal(reason, "")


def accept(desk: Desk, call: Call, kind: str, model: Model, charge: str, task: Task | None = None) -> str:
    """Writes the accepted job down and gives the submission's id. `charge` is a decimal string."""
    submission = Submission(
        id=f"sub-{secrets.token_hex(8)}",
        post=call.post,
        account=call.account.id,
        model=model.id,
        at=desk.now(),
        kind=kind,
        request_sha256=hashlib.sha256(call.raw).hexdigest(),
        client_token=call.client_token,
        safety_identifier=call.safety_identifier,
        provider_task_id=task.id if task else None,
        status=task.status if task else "running",
        currency=model.price.currency,
        would_charge=charge,
    )
    desk.archive.accepted(submission, task)
    call.accepted = True
    return submission.id


def prompt_of(fields: Mapping[str, Any]) -> str:
    """The words of a request, wherever its dialect has them."""
    content = fields.get("content")
    texts = [str(item.get("text") or "") for item in content if isinstance(item, Mapping)] if content else []
    said = [message.get("content") for message in fields.get("messages") or () if isinstance(message, Mapping)]
    texts += [text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in said if text]
    inner = fields.get("input")
    if isinstance(inner, Mapping):
        return "\n".join([*filter(None, texts), str(inner.get("prompt") or "")])
    return "\n".join([*filter(None, texts), *(str(fields[key]) for key in ("prompt", "input") if fields.get(key))])
