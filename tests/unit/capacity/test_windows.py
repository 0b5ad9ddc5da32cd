"""How long a count of windows is lent."""

from services.capacity.domain.counts import Count
from services.capacity.store.windows import COUNTED_IN_A_SECOND, FEW, Windows


def count(requests: int) -> Count:
    """So many leases of the last minute, three of them live."""
    return Count("chat", "a", "a/x", 1, 1, 3, requests, 10 * requests)


def test_few_leases_are_counted_each_time():
    """PRF-3: what costs nothing to count is never old."""
    windows = Windows()
    assert windows.lent(0.0) is None
    windows.keep([count(FEW - 1)], 0.0)
    assert windows.lent(0.0) is None


def test_many_leases_are_counted_so_often_that_it_costs_a_twentieth():
    """PRF-3: the count is lent in proportion to what it cost, without its live leases, and then taken anew."""
    windows = Windows()
    windows.keep([count(FEW), count(FEW)], 100.0)
    until_s = 100.0 + 2 * FEW / COUNTED_IN_A_SECOND
    assert windows.lent(until_s - 0.001) == (Count("chat", "a", "a/x", 1, 1, 0, FEW, 10 * FEW),) * 2
    assert windows.lent(until_s) is None
    windows.keep([], until_s)
    assert windows.lent(until_s) is None
