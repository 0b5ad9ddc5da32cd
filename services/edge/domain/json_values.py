"""What holds for every JSON value that comes in, whatever it means.

Refused by pointer: NUL characters (no store keeps them) and whole numbers that a double cannot hold (they would arrive
changed). Refused as unreadable: nesting beyond reason, numbers beyond the largest double, and an object that names a
member twice, of which a decoder believes one.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from libs.faults.fault import Fault
from libs.kernel.figures import plain

DEEPEST = 64
LARGEST_WHOLE = 2**53
NAMED_ERRORS = 25
ESCAPED_COLON = b"\\u003"
"""How one begins, and a few others."""


def pointer_to(parent: str, name: str | int) -> str:
    """The JSON pointer of a member (RFC 6901)."""
    return f"{parent}/{str(name).replace('~', '~0').replace('/', '~1')}"


def value_of(raw: bytes | msgspec.Raw) -> Any:
    """The value of bytes that are known to be JSON; the values in it are not judged yet. Fault malformed_request."""
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise too_deep() from None
    except msgspec.ValidationError as error:
        raise out_of_range(error) from None
    check_depth(value)
    return value


def too_deep() -> Fault:
    """The Fault for what is nested so deeply that it cannot be read at all."""
    return Fault.of("malformed_request", "the body is nested too deeply")


def out_of_range(error: msgspec.ValidationError) -> Fault:
    """The Fault for a number such as 1e999: read without a type, JSON has nothing else that its decoder refuses."""
    return Fault.of("malformed_request", f"the body holds a number that nobody can keep: {error}")


def check_values(value: Any) -> None:
    """Fault validation_failed that names every value that cannot be taken."""
    errors = list(islice(_faults(value, "", LARGEST_WHOLE), NAMED_ERRORS))
    if errors:
        raise Fault.invalid(*errors)


def text_faults(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """NUL characters alone: what is wrong with a value that travels as the bytes that came. It stands at `pointer`."""
    return islice(_faults(value, pointer, None), NAMED_ERRORS)


def check_members(raw: bytes, value: Any) -> None:
    """Fault malformed_request for an object in `raw` that names a member twice; `value` is what it was decoded to.

    Each member has a colon, and a text may hold some: where there are as many as the value accounts for, nothing was
    passed over. Otherwise it is read again, slowly.
    """
    if raw.count(b":") != _colons(value) or ESCAPED_COLON in raw:
        _read_slowly(raw, _once)


def check_names(raw: bytes, fields: Mapping[str, msgspec.Raw]) -> None:
    """The same for the outermost object alone, whose values are not decoded."""
    known = sum(1 + name.count(":") + bytes(item).count(b":") for name, item in fields.items())
    if raw.count(b":") != known or ESCAPED_COLON in raw:
        _once(_read_slowly(raw, list))


def _colons(value: Any) -> int:
    if isinstance(value, str):
        return value.count(":")
    if isinstance(value, dict):
        return sum(1 + name.count(":") + _colons(item) for name, item in value.items())
    return sum(map(_colons, value)) if isinstance(value, list) else 0


def _read_slowly(raw: bytes, with_members: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    try:
        return json.loads(raw, object_pairs_hook=with_members, parse_int=str)
    except RecursionError:
        raise too_deep() from None


def _once(members: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for name, _ in members:
        if name in seen:
            told = f"an object of the body names the member {name[:100]!r} more than once; name it once"
            raise Fault.of("malformed_request", told)
        seen.add(name)


def check_depth(value: Any) -> None:
    """Fault malformed_request for what is nested too deeply to be walked."""
    if depth_of(value) > DEEPEST + 1:
        raise Fault.of("malformed_request", f"the body is nested deeper than {DEEPEST} levels")


def depth_of(value: Any) -> int:
    """How many objects and lists stand within one another, counted no further than `DEEPEST` allows."""
    level, depth = [value], 0
    while level and depth <= DEEPEST + 1:
        depth += 1
        level = [
            item
            for outer in level
            if isinstance(outer, (dict, list))
            for item in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(item, (dict, list))
        ]
    return depth


def _faults(value: Any, pointer: str, largest: int | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if "\x00" in value:
            yield pointer, "holds a NUL character"
    elif isinstance(value, int) and not isinstance(value, bool):
        if largest is not None and abs(value) > largest:
            yield pointer, "is a whole number beyond 2^53; send it as a text"
    elif isinstance(value, dict):
        for name, item in value.items():
            if "\x00" in name:
                yield pointer_to(pointer, name.replace("\x00", "\\u0000")), "holds a NUL character in its name"
            else:
                yield from _faults(item, pointer_to(pointer, name), largest)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, pointer_to(pointer, index), largest)


class Reader:
    """Reads one JSON object field by field and collects what is wrong; `finish` raises it all at once.

    Every field asked for is known; what nobody asked for is refused as unknown.
    """

    def __init__(self, value: Any, pointer: str = "", errors: list[tuple[str, str]] | None = None) -> None:
        if not isinstance(value, dict):
            raise Fault.invalid((pointer, "must be an object"))
        self.errors: list[tuple[str, str]] = [] if errors is None else errors
        self._pointer = pointer
        self._known: set[str] = set()
        self._value = value

    def refuse(self, name: str, reason: str) -> None:
        """Note what is wrong with a field ("" = the object itself)."""
        self.errors.append((pointer_to(self._pointer, name) if name else self._pointer, reason))

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        self._known.add(name)
        return self._value.get(name) is not None

    def text(self, name: str, *, required: bool = False, longest: int = 1024) -> str:
        """A text, "" where there is none."""
        if not self.has(name):
            if required:
                self.refuse(name, "is required")
            return ""
        value = self._value[name]
        if not isinstance(value, str):
            self.refuse(name, "must be a text")
        elif not value and required:
            self.refuse(name, "must not be empty")
        elif len(value) > longest:
            self.refuse(name, f"must have at most {longest} characters")
        else:
            return value
        return ""

    def choice(self, name: str, choices: tuple[str, ...], *, required: bool = False) -> str:
        """One of some words, "" where there is none."""
        value = self.text(name, required=required)
        if value and value not in choices:
            self.refuse(name, f"must be one of {', '.join(choices)}")
            return ""
        return value

    def seconds(self, name: str, least: float, most: float) -> float | None:
        """A number of seconds within bounds, None where there is none."""
        if not self.has(name):
            return None
        value = self._value[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            self.refuse(name, f"must be a number of seconds between {plain(least)} and {plain(most)}")
            return None
        return float(value)

    def whole(self, name: str, least: int, most: int) -> int | None:
        """A whole number within bounds, None where there is none."""
        if not self.has(name):
            return None
        value = self._value[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.refuse(name, f"must be a whole number between {least} and {most}")
            return None
        return value

    def flag(self, name: str) -> bool | None:
        """True or false, None where nothing is said."""
        if not self.has(name):
            return None
        value = self._value[name]
        if not isinstance(value, bool):
            self.refuse(name, "must be true or false")
            return None
        return value

    def texts(self, name: str, *, required: bool = False) -> list[str]:
        """A list of texts, empty where there is none."""
        if not self.has(name):
            if required:
                self.refuse(name, "is required")
            return []
        value = self._value[name]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(name, "must be a list of texts")
            return []
        return list(value)

    def object(self, name: str, *, required: bool = False) -> dict[str, Any]:
        """An object, empty where there is none."""
        if not self.has(name):
            if required:
                self.refuse(name, "is required")
            return {}
        value = self._value[name]
        if not isinstance(value, dict):
            self.refuse(name, "must be an object")
            return {}
        return value

    def nested(self, name: str) -> "Reader":
        """A reader of the object in that field, with the same list of errors."""
        return Reader(self.object(name), pointer_to(self._pointer, name), self.errors)

    def close(self) -> None:
        """Refuse the fields that nobody asked for."""
        for name in self._value.keys() - self._known:
            self.refuse(name, "is not a field that is known here")

    def finish(self) -> None:
        """Close, and raise Fault validation_failed with everything that was wrong."""
        self.close()
        if self.errors:
            raise Fault.invalid(*sorted(self.errors)[:NAMED_ERRORS])
