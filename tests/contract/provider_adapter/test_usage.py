"""Usage and reports on the wire: every figure has its place, and what was not reported has none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointsman.common.v1 import usage_pb2
from services.provider_adapter import wire
from services.provider_adapter.domain.calls import Report, Usage

FIGURES = [name for name in Usage.__struct_fields__ if name != "seconds"]
COUNTS = st.none() | st.integers(0, 2**62)


def test_every_figure_of_the_contract_can_be_said() -> None:
    """SYN-11: none of the sorts that prices are made of is without a word here."""
    assert {*FIGURES, "duration"} == set(usage_pb2.Usage.DESCRIPTOR.fields_by_name)


@given(st.fixed_dictionaries(dict.fromkeys(FIGURES, COUNTS)), st.none() | st.floats(0, 1e6))
def test_absent_is_not_zero(figures: dict[str, int | None], seconds: float | None) -> None:
    """SYN-11: a figure that was reported arrives, zero too; one that was not is absent."""
    told = wire.report_to_proto(Report(Usage(**figures, seconds=seconds)), 0.25).usage
    for name, value in figures.items():
        assert (getattr(told, name) if told.HasField(name) else None) == value
    assert told.HasField("duration") == (seconds is not None)
    assert told.duration.ToTimedelta().total_seconds() == pytest.approx(seconds or 0, abs=1e-6)
