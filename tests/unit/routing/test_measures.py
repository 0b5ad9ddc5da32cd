"""What an alert measured: how it goes on, and where it goes."""

import pytest

from services.routing.domain.measure import LONGEST, Measure, continued, trend


def cost(*values: float, baseline: float = 1.0, unit: str = "CNY") -> Measure:
    """A figure that was held against `baseline`."""
    return Measure("cost", unit, baseline, values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.5,), "rising"),
        ((0.5,), "falling"),
        ((1.09,), "steady"),
        ((1.5, 1.5, 1.55), "steady"),
        ((1.5, 1.5, 1.65), "rising"),
        ((1.0, 1.0, 0.9, 0.6, 0.4), "falling"),
        ((0.1, 0.1, 0.1, 0.1, 0.1, 0.3), "rising"),
        ((9.0, 0.4, 0.4, 0.4, 0.4, 0.4), "steady"),
    ],
)
def test_a_trend_is_the_newest_against_those_before(values: tuple[float, ...], expected: str) -> None:
    """SLO-2: against the few before it, against the baseline while there are none; a tenth of the baseline is none."""
    assert trend(cost(*values)) == expected


def test_what_was_held_against_nothing_has_a_trend() -> None:
    """SLO-2: a baseline of 0 is one too."""
    assert trend(cost(0.1, baseline=0)) == "rising"
    assert trend(cost(0, baseline=0)) == "steady"


def test_an_open_alert_goes_on_measuring() -> None:
    """SLO-2, OPS-6: raised again it keeps what it measured and adds the newest; the newest baseline holds."""
    assert continued(cost(1.5, 1.6), cost(9, 1.7, baseline=1.2)) == cost(1.5, 1.6, 1.7, baseline=1.2)
    assert continued(None, cost(1.5)) == cost(1.5)
    assert continued(cost(1.5), None) == cost(1.5)
    assert continued(None, None) is None
    assert continued(cost(1.5), cost(2, unit="USD")) == cost(2, unit="USD")
    many = cost(*map(float, range(LONGEST)))
    assert continued(many, cost(99)) == cost(*map(float, range(1, LONGEST)), 99)
