"""/v1/calls, /v1/operator/calls: synchronous calls that have ended, for their tenant and for operators."""

from typing import Any

from msgspec.structs import asdict
from starlette.responses import Response

from services.edge.app.reveal import Reveal
from services.edge.domain import call_shapes, queries
from services.edge.ports.call_records import CallRecords
from services.edge.routes.answers import answer
from services.edge.routes.calls import SEERS
from services.edge.routes.operations import OPERATORS, PAGING, Asked, Operation, Parameter

TIME = {"type": "string", "format": "date-time"}
FILTERS = (
    Parameter("model", "Only of this Public Model."),
    Parameter("status", "Only these, repeated or separated by commas: succeeded, failed, abandoned.", repeats=True),
    Parameter("session_id", "Only of this conversation."),
    Parameter("since", "Only those that ended then or later.", TIME),
    Parameter("until", "Only those that ended before then.", TIME),
)


class CallRecordRoutes:
    """The handlers with what they need."""

    def __init__(self, records: CallRecords, reveal: Reveal) -> None:
        self._records = records
        self._reveal = reveal

    async def own(self, asked: Asked) -> Response:
        """A page of the tenant's own, the newest end first."""
        found, following = await self._page(asked, asked.tenant)
        own = [call_shapes.ListedCall(**_but_tenant(call)) for call in found]
        await self._reveal.grant(asked.tenant, [artifact.sha256 for call in own for artifact in call.artifacts])
        return answer(call_shapes.CallPage(own, following))

    async def everybodys(self, asked: Asked) -> Response:
        """A page, the newest end first; without a tenant, of all."""
        return answer(call_shapes.TenantCallPage(*await self._page(asked, asked.query("tenant") or "")))

    async def _page(self, asked: Asked, tenant: str) -> tuple[list[call_shapes.TenantCall], str]:
        which = call_shapes.CallFilter(
            model=asked.query("model") or "",
            statuses=queries.words(asked.every("status"), "status", queries.CALL_ENDS),
            session_id=asked.query("session_id") or "",
            since=queries.moment(asked.query("since"), "since"),
            until=queries.moment(asked.query("until"), "until"),
        )
        size = queries.page_size(asked.query("page_size"))
        return await self._records.page(tenant, which, size, asked.query("page_token") or "")

    def operations(self) -> tuple[Operation, ...]:
        """What is served."""
        codes = ("malformed_request", "validation_failed")
        return (
            Operation(
                "listCalls", "GET", "/v1/calls", self.own,
                "Synchronous calls of the key's tenant that have ended, the newest end first.", SEERS,
                answer=call_shapes.CallPage, parameters=(*FILTERS, *PAGING), codes=codes,
            ),
            Operation(
                "listTenantCalls", "GET", "/v1/operator/calls", self.everybodys,
                "Synchronous calls of every tenant that have ended, the newest end first.", OPERATORS,
                answer=call_shapes.TenantCallPage,
                parameters=(Parameter("tenant", "Only this tenant's."), *FILTERS, *PAGING), codes=codes,
            ),
        )  # fmt: skip


def _but_tenant(call: call_shapes.TenantCall) -> dict[str, Any]:
    fields = asdict(call)
    del fields["tenant"]
    return fields
