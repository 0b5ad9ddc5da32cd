"""Numbers as people write them."""


def plain(number: float) -> str:
    """`10000000` and `0.25`: never with an exponent; fractions to six figures, or to the ninth place."""
    if float(number).is_integer():
        return f"{number:.0f}"
    return f"{number:.6g}" if 1e-4 <= abs(number) < 1e6 else f"{number:.9f}".rstrip("0").rstrip(".")
