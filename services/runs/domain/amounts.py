"""Sums of money that may not be there yet: None is nothing, and amounts of two currencies are never mixed."""

from libs.kernel.money import Money


def added(left: Money | None, right: Money | None) -> Money | None:
    """The sum. Another currency than before begins anew."""
    if left is None or right is None or left.currency != right.currency:
        return right if right is not None else left
    return left + right


def moved(total: Money | None, before: Money | None, after: Money | None) -> Money | None:
    """The sum after one of its parts has changed."""
    if before is not None and total is not None and after is not None and before.currency == total.currency:
        return added(total - before, after)
    return added(total, after)
