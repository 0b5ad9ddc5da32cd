"""Sums in words or signs: `17 + 25`, `what is 12 times 12?`, `(3.5 - 1) / 2`. Exact, in fractions."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

MOST_DIGITS = 200
MOST_POWER = 64
MOST_BITS = 8192
"""The longest number that is raised to a power may become."""
_WORDS = (
    (r"\bmultiplied by\b|\btimes\b|[×·]|(?<=\d)\s*x\s*(?=\d)", "*"),
    (r"\bdivided by\b|\bover\b|÷", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
    (r"\bto the power of\b|\^", "**"),
)
_SUM = re.compile(r"[(\s]*-?\d[\d.,\s()+*/-]*[+*/-][\d.,\s()+*/-]*\d[\s)]*")
_TWO: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def solved(question: str) -> str | None:
    """`17 + 25 = 42`, or None where the question has no sum or one that cannot be worked out."""
    text = question
    for words, sign in _WORDS:
        text = re.sub(words, sign, text, flags=re.IGNORECASE)
    found = _SUM.search(text)
    if found is None:
        return None
    given = re.sub(r"(?<=\d),(?=\d{3}\b)", "", " ".join(found.group(0).split()))
    if len(given) > MOST_DIGITS or re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", given.replace(" ", "")):
        return None
    try:
        return f"{given} {_told(_value(ast.parse(given, mode='eval').body))}"
    except ZeroDivisionError:
        return f"{given} has no answer: nothing can be divided by zero."
    except (SyntaxError, ValueError, OverflowError, RecursionError):
        return None


def _value(node: ast.expr) -> Fraction:
    """Raises ValueError for what is no sum of numbers, or is beyond reason."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _TWO:
        return _TWO[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        raised, power = _value(node.left), _value(node.right)
        if power.denominator == 1 and abs(power) <= min(MOST_POWER, MOST_BITS / _bits(raised)):
            return Fraction(raised ** int(power))
    raise ValueError("no sum")


def _bits(number: Fraction) -> int:
    return max(abs(number.numerator).bit_length(), number.denominator.bit_length())


def _told(result: Fraction) -> str:
    """Raises ValueError or OverflowError for what is too long to be written."""
    if result.denominator == 1:
        return f"= {result.numerator}"
    rounded = round(float(result), 6)
    return f"= {rounded:g}" if Fraction(str(rounded)) == result else f"≈ {rounded:g}"
