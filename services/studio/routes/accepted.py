"""An accepted synchronous job: it has a place at the desk and a line in the ledger until it is settled, once."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from services.studio.desk import Desk
from services.studio.domain.accounts import Model
from services.studio.domain.jobs import ABANDONED, SUCCEEDED
from services.studio.routes.door import Call, accept
from services.studio.routes.tasks import amount


class Accepted:
    """Takes the job on when it is made. Raises Refusal when there is no place."""

    def __init__(self, desk: Desk, call: Call, kind: str, model: Model, would_charge: Decimal) -> None:
        self._desk = desk
        self._account = call.account
        self._model = model
        self._open = True
        desk.take_slot(call.account, model)
        try:
            self._submission = accept(desk, call, kind, model, amount(would_charge))
        except BaseException:
            desk.free_slot(call.account.id, model.id)
            raise
        desk.begin_call(call.account.id)

    def settle(self, status: str, charge: Decimal, usage: Mapping[str, int]) -> None:
        """Ends it: what succeeded or was abandoned is charged, what failed only where the account charges for that."""
        if not self._open:
            return
        self._open = False
        charged = status in (SUCCEEDED, ABANDONED) or self._account.charges_on_failure
        try:
            self._desk.archive.settled(
                self._submission, status, amount(charge) if charged else None, self._desk.now(), usage
            )
        finally:
            self._desk.end_call(self._account.id)
            self._desk.free_slot(self._account.id, self._model.id)
