"""A Supply's own regression set as it stands in a catalogue file: what is wrong with it (CAT-7)."""

from collections.abc import Mapping
from typing import Any

from services.routing.domain.catalog import Kind
from services.routing.domain.input_shape import complaints
from services.routing.domain.regression import ANSWERED, FAMILIES, PICTURE, SIGN, ratio_of
from services.routing.domain.spec_reader import SpecReader

MOST_CASES = 20
DAY_S = 86_400.0
ANY_DIGEST = "0" * 64


def check_set(reader: SpecReader, kind: Kind) -> None:
    """Report every fault of `regression`, by its path."""
    items = reader.items("regression")
    if len(items) > MOST_CASES:
        reader.fault("regression", f"must hold at most {MOST_CASES} requests")
    names: set[str] = set()
    for item in items:
        name = item.text("name")
        if name in names:
            item.fault("name", f"{name!r} is there twice")
        names.add(name)
        given = item.anything("input")
        if not isinstance(given, Mapping):
            item.fault("input", f"is required: what a request of kind {kind} holds")
        else:
            for pointer, reason in complaints(kind, _with_digests(given)):
                item.fault(pointer.removeprefix("/").replace("/", "."), reason)
        _check_expected(item, kind)
        item.close()


def _check_expected(item: SpecReader, kind: Kind) -> None:
    expect = item.nested("expect")
    if expect is None:
        return
    if kind in ANSWERED:
        for name in ("vectors", "dimensions") if kind is Kind.EMBEDDING else ("min_characters",):
            expect.whole(name, 1, low=1)
        if kind is not Kind.EMBEDDING:
            expect.text("contains", "")
        expect.close()
        return
    expect.word("family", ("", *FAMILIES.values()), "")
    for name in ("artifacts", "width", "height", "min_bytes"):
        expect.whole(name, 1, low=1)
    ratio = expect.text("ratio", "")
    if ratio and ratio_of(ratio) is None:
        expect.fault("ratio", "must be WIDTH:HEIGHT, for example 16:9")
    bounds = expect.nested("duration_s")
    if bounds is not None:
        low, high = bounds.number("min", 0.0, high=DAY_S, above=False), bounds.number("max", DAY_S, high=DAY_S)
        if high < low:
            bounds.fault("max", f"must not be below min ({low:g})")
        bounds.close()
    expect.close()


def _with_digests(value: Any) -> Any:
    """The input with a digest where it names our picture, as it will have when it is sent."""
    if isinstance(value, Mapping):
        return {name: ANY_DIGEST if item in (PICTURE, SIGN) and name == "artifact" else _with_digests(item)
                for name, item in value.items()}  # fmt: skip
    return [_with_digests(item) for item in value] if isinstance(value, list) else value
