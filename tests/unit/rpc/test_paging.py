"""What a page may be asked for with."""

import pytest

from libs.faults.fault import Fault
from libs.rpc.paging import number_in, page_size


def test_a_page_has_one_to_a_thousand_rows() -> None:
    """Nothing said is the default, more than the largest is the largest."""
    assert [page_size(asked) for asked in (0, 1, 1000, 1001, 2**31 - 1)] == [100, 1, 1000, 1000, 1000]
    assert page_size(0, default=200) == 200


@pytest.mark.parametrize("asked", [-1, -(2**31)])
def test_fewer_than_no_rows_are_refused(asked: int) -> None:
    """EDG-3: no store is asked for a negative number of rows."""
    with pytest.raises(Fault) as caught:
        page_size(asked)
    assert (caught.value.code, caught.value.errors[0].pointer) == ("validation_failed", "/page_size")


@pytest.mark.parametrize("token", ["-1", "x", "1.5", "\u0663", "9" * 19, "9" * 5000])
def test_a_token_that_nobody_gave_is_refused(token: str) -> None:
    """EDG-3: what is no number of ours is named, however long it is."""
    with pytest.raises(Fault) as caught:
        number_in(token)
    assert (caught.value.code, caught.value.errors[0].pointer) == ("validation_failed", "/page_token")


def test_a_token_is_the_number_in_it() -> None:
    """Without one a list begins at its beginning."""
    assert (number_in(""), number_in("100")) == (0, 100)
