"""Replays and alternative histories of routing."""

from pointsman.routing.v1 import replay_pb2
from pointsman.routing.v1 import routing_service_pb2 as pb
from services.edge.domain import replay_shapes as shapes
from services.edge.domain.shapes import Amount
from services.edge.wire.values import amount, moment


def replay(task_id: str, message: pb.ReplaySelectionResponse) -> shapes.Replay:
    """Every round."""
    rounds = [_round(item) for item in message.rounds]
    return shapes.Replay(task_id, all(item.identical for item in rounds), rounds)


def call_replay(call_id: str, message: pb.ReplaySelectionResponse) -> shapes.CallReplay:
    """Every round of a call."""
    rounds = [_round(item) for item in message.rounds]
    return shapes.CallReplay(call_id, all(item.identical for item in rounds), rounds)


def _round(message: replay_pb2.ReplayedRound) -> shapes.ReplayedRound:
    difference = None
    if message.HasField("difference"):
        found = message.difference
        difference = shapes.ReplayDifference(found.pointer, found.recorded or None, found.replayed or None)
    decided = moment(message.decide_time)
    return shapes.ReplayedRound(message.round, message.identical, difference, message.decision_digest, decided)


def what_if(message: pb.WhatIfResponse, first: bool) -> shapes.WhatIf:
    """One page; the number of rounds is told with the first."""
    report = message.report
    return shapes.WhatIf(
        decided=report.decided_count,
        untouched=report.untouched_count,
        refused=report.refused_count,
        unreadable=report.unreadable_count,
        changed=report.changed_count,
        totals=shapes.BeforeAfter(_totals(report.before), _totals(report.after)),
        shared=shapes.BeforeAfter(_totals(report.shared_before), _totals(report.shared_after)),
        moves=[shapes.ChoiceMove(m.model, m.from_choice, m.to_choice, m.count) for m in report.moves],
        examples=[_example(item) for item in report.examples],
        rounds=message.round_count if first else None,
        next_page_token=message.next_page_token,
    )


def _totals(message: replay_pb2.DecisionTotals) -> shapes.DecisionTotals:
    costs: list[Amount] = [told for item in message.expected_costs if (told := amount(item)) is not None]
    return shapes.DecisionTotals(
        message.chosen_count, message.waiting_count, message.failed_count, costs, message.expected_successes
    )


def _example(message: replay_pb2.WhatIfExample) -> shapes.WhatIfExample:
    return shapes.WhatIfExample(
        task_id=message.task_id,
        round=message.round,
        model=message.model,
        from_choice=message.from_choice,
        to_choice=message.to_choice,
        quote_before=amount(message.quote_before),
        quote_after=amount(message.quote_after),
        reason=message.reason,
    )
