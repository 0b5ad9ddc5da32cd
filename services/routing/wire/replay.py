"""Replays, and what would have been."""

import base64
import json
from datetime import UTC, datetime

from libs.faults.fault import Fault
from libs.kernel.money import Money
from libs.rpc.paging import page_size
from libs.rpc.values import money_to_proto, time_from_proto, time_to_proto
from pointsman.routing.v1 import replay_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.routing.app.read_alternative import catalog_swap, policy_swap, price_swap
from services.routing.app.what_if import Page
from services.routing.domain.alternative import Alternative
from services.routing.domain.replaying import Replay
from services.routing.domain.rounds import RoundQuery, SelectionRound
from services.routing.domain.what_if import Example, Tally, Totals

DEFAULT_PAGE = 200


def replay_to_proto(item: SelectionRound, replay: Replay) -> replay_pb2.ReplayedRound:
    """One round with what its replay came to."""
    found = replay.difference
    difference = None
    if found is not None:
        difference = replay_pb2.ReplayDifference(
            pointer=found.pointer, recorded=found.recorded, replayed=found.replayed
        )
    return replay_pb2.ReplayedRound(
        round=item.round,
        identical=replay.identical,
        difference=difference,
        decision_digest=replay.digest,
        decide_time=time_to_proto(item.decided_at),
    )


def check_subject(message: pb.ReplaySelectionRequest) -> None:
    """Fault `validation_failed` for a replay of two things at once. (What is not named is not found.)"""
    if message.task_id and message.call_id:
        raise Fault.invalid(("/call_id", "is not given together with task_id"))


def alternative_from_proto(message: pb.WhatIfRequest) -> Alternative:
    """What is decided under instead. Faults: `validation_failed` without any; `catalog_invalid` for a bad text."""
    match message.WhichOneof("alternative"):
        case "policy_yaml":
            return policy_swap(message.policy_yaml)
        case "prices_yaml":
            return price_swap(message.prices_yaml)
        case "catalog_yaml":
            return catalog_swap(message.catalog_yaml)
    raise Fault.invalid(("/alternative", "is required: a policy, a price list or a catalogue"))


def rounds_from_proto(message: pb.WhatIfRequest, now: datetime) -> RoundQuery:
    """Which rounds. A page token carries the times and the place of the first request. Faults for either."""
    size = page_size(message.page_size, DEFAULT_PAGE)
    if message.page_token:
        since, until, after = _window_of(message.page_token)
        return RoundQuery(since, until, message.model, after, size)
    asked_since = time_from_proto(message.since_time)
    if asked_since is None:
        raise Fault.invalid(("/since_time", "is required"))
    return RoundQuery(asked_since, time_from_proto(message.until_time) or now, message.model, None, size)


def page_to_proto(page: Page, query: RoundQuery) -> pb.WhatIfResponse:
    """One page, with the token of the next."""
    token = _token_of(query, page.last) if page.last else ""
    return pb.WhatIfResponse(report=_report(page.tally), next_page_token=token, round_count=page.total or 0)


def _token_of(query: RoundQuery, last: SelectionRound) -> str:
    moments = [moment.isoformat() for moment in (query.since, query.until, last.decided_at)]
    return base64.urlsafe_b64encode(json.dumps([*moments, last.task_id, last.round]).encode()).decode()


def _window_of(token: str) -> tuple[datetime, datetime, tuple[datetime, str, int]]:
    try:
        *moments, task_id, number = json.loads(base64.urlsafe_b64decode(token.encode()))
        since, until, at = (datetime.fromisoformat(moment).astimezone(UTC) for moment in moments)
        return since, until, (at, str(task_id), int(number))
    except (ValueError, TypeError, OverflowError) as error:
        raise Fault.of("malformed_request", "the page token is not one of ours") from error


def _report(tally: Tally) -> replay_pb2.WhatIfReport:
    moves = sorted(tally.moves.items(), key=lambda item: (-item[1], item[0]))
    return replay_pb2.WhatIfReport(
        decided_count=tally.decided,
        untouched_count=tally.untouched,
        refused_count=tally.refused,
        unreadable_count=tally.unreadable,
        changed_count=tally.changed,
        before=_totals(tally.before),
        after=_totals(tally.after),
        shared_before=_totals(tally.shared_before),
        shared_after=_totals(tally.shared_after),
        moves=[
            replay_pb2.ChoiceMove(model=model, from_choice=one, to_choice=other, count=count)
            for (model, one, other), count in moves
        ],
        examples=[_example(item) for item in tally.examples],
    )


def _totals(totals: Totals) -> replay_pb2.DecisionTotals:
    return replay_pb2.DecisionTotals(
        chosen_count=totals.chosen,
        waiting_count=totals.waiting,
        failed_count=totals.failed,
        expected_costs=[money_to_proto(Money(code, cost)) for code, cost in sorted(totals.costs.items())],
        expected_successes=totals.success_percents / 100,
    )


def _example(item: Example) -> replay_pb2.WhatIfExample:
    return replay_pb2.WhatIfExample(
        task_id=item.task_id,
        round=item.round,
        model=item.model,
        from_choice=item.before.choice,
        to_choice=item.after.choice,
        quote_before=money_to_proto(item.before.quote),
        quote_after=money_to_proto(item.after.quote),
        reason=item.after.reason,
    )
