"""The laws of the product as functions from a world's story to the breaches found in it: one law, one file."""

from tests.simulation.checkers import (
    attempts_within_budget,
    capacity_held_and_returned,
    closed_circuits_only,
    events_without_gap,
    every_run_rests,
    history_folds,
    money_adds_up,
    no_double_submission,
    nothing_unexpected,
    results_are_the_jobs,
)
from tests.simulation.story import Checker

CHECKERS: dict[str, Checker] = {
    module.__name__.rpartition(".")[2]: module.check
    for module in (
        no_double_submission,
        capacity_held_and_returned,
        events_without_gap,
        every_run_rests,
        closed_circuits_only,
        attempts_within_budget,
        results_are_the_jobs,
        money_adds_up,
        history_folds,
        nothing_unexpected,
    )
}
