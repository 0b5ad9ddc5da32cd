"""The laws of the product as functions from a world's story to the breaches found in it: one law, one file."""

from tests.simulation.checkers import (
    attempts_within_budget,
    capacity_held_and_returned,
    closed_circuits_only,
    events_without_gap,
    every_run_rests,
    history_folds,
    ledger_balanced,
    money_adds_up,
    no_double_submission,
    nodes_paid_once,
    nothing_unexpected,
    nothing_unheld,
    results_are_the_jobs,
    snapshots_kept,
    steering_kept,
    superseded_stay_silent,
)
from tests.simulation.story import Checker

_MODULES = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        no_double_submission,
        capacity_held_and_returned,
        events_without_gap,
        every_run_rests,
        closed_circuits_only,
        superseded_stay_silent,
        attempts_within_budget,
        results_are_the_jobs,
        snapshots_kept,
        money_adds_up,
        history_folds,
        ledger_balanced,
        steering_kept,
        nodes_paid_once,
        nothing_unheld,
        nothing_unexpected,
    )
}
CHECKERS: dict[str, Checker] = {law: module.check for law, module in _MODULES.items()}
NEEDS: dict[str, tuple[str, ...]] = {law: module.NEEDS for law, module in _MODULES.items()}
"""What must have happened for a law to be put to the test: names of what `exercised` and the faults count."""
