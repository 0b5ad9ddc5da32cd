"""Values for a JSON schema, made from the words of a question: valid first, fitting where they can be.

Understood: type (also a list of them), properties, required, items, minItems, maxItems, enum, const, anyOf, oneOf,
allOf, $ref to a place in the same schema, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf,
minLength, maxLength, format (date, date-time, email, uuid, uri). Other words are passed over. `pattern` cannot be
followed in general and is not.

A schema is somebody's: one that refers to itself without an end, asks for more than anybody would, or has a word of
the wrong sort is refused as a provider refuses it, within a bounded time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from services.studio.domain.refusals import Reason, Refusal

DEEPEST, ENOUGH = 12, 1000
"""From this depth on, or from so many values on, only what must be is made."""
BOTTOM, MOST_VALUES, LONGEST_TEXT = 64, 20_000, 100_000
"""What must be and goes beyond is refused."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_QUOTED = re.compile(r"[\"“]([^\"”]+)[\"”]|'([^']{2,})'")
_PROPER = re.compile(r"(?<=[a-z,] )([A-Z][\w'-]*(?: [A-Z][\w'-]*)*)")
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "someone@example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "uri": "https://example.com/",
}


def instance(schema: Mapping[str, Any], question: str, answer: str, param: str) -> Any:
    """A value that the schema admits. `answer` fills what has no better words. Raises Refusal of `param`, where the
    schema stands, for one that no value can be made for."""
    try:
        return _Maker(schema, question, answer).value(schema, "", 0)
    except _Endless as error:
        reason = str(error)
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        reason = "a keyword has a value of the wrong type."
    raise Refusal(
        Reason.PARAMETER_INVALID, f"Invalid schema for '{param}': {reason}", param, "invalid_json_schema"
    ) from None


class _Endless(Exception):
    """The schema asks for what has no end, or none in reason."""


class _Maker:
    def __init__(self, root: Mapping[str, Any], question: str, answer: str) -> None:
        self._root = root
        self._question = question
        self._answer = answer
        self._made = self._followed = 0

    def _is_deep(self, depth: int) -> bool:
        return depth >= DEEPEST or self._made > ENOUGH

    def value(self, given: Any, name: str, depth: int) -> Any:
        self._made += 1
        if depth > BOTTOM:
            raise _Endless("it requires itself within itself without an end.")
        if self._made > MOST_VALUES:
            raise _Endless(f"it requires more than {MOST_VALUES} values.")
        schema = self._resolved(given)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._chosen(list(schema["enum"]))
        for word in ("anyOf", "oneOf"):
            options = [option for option in schema.get(word, ()) if isinstance(option, Mapping)]
            if options:
                deep = self._is_deep(depth)
                kept = [option for option in options if not deep or self._kind(self._resolved(option)) == "null"]
                return self.value((kept or options)[0], name, depth + 1)
        makers = {"object": self._object, "array": self._array, "number": self._number, "integer": self._number}
        kind = self._kind(schema)
        if kind in makers:
            return makers[kind](schema, name, depth)
        if kind == "boolean":
            return not re.search(r"\b(?:no|not|never|off|false)\b", self._question, re.IGNORECASE)
        return None if kind == "null" else self._text(schema, name)

    def _resolved(self, given: Any, depth: int = 0) -> Mapping[str, Any]:
        """The schema with its reference followed and its `allOf` folded in."""
        self._followed += 1
        if self._followed > 4 * MOST_VALUES:
            raise _Endless("its parts refer to one another too often.")
        schema = given if isinstance(given, Mapping) else {}
        for _ in range(DEEPEST):
            if "$ref" not in schema:
                break
            schema = self._place(str(schema["$ref"]))
        merged: dict[str, Any] = dict(schema)
        for piece in schema.get("allOf", ()) if depth < DEEPEST else ():
            for key, value in self._resolved(piece, depth + 1).items():
                both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
                merged[key] = {**merged[key], **value} if both else value
        return merged

    def _place(self, reference: str) -> Mapping[str, Any]:
        place: Any = self._root
        for part in filter(None, reference.removeprefix("#").split("/")):
            place = place.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(place, Mapping) else None
        return place if isinstance(place, Mapping) else {}

    def _kind(self, schema: Mapping[str, Any]) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
        return str(kind)

    def _chosen(self, options: list[Any]) -> Any:
        said = self._question.lower()
        return next((o for o in options if isinstance(o, str) and o and o.lower() in said), options[0])

    def _object(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        properties = schema.get("properties")
        wanted = properties if isinstance(properties, Mapping) else {}
        required = [str(key) for key in schema.get("required", ())]
        if self._is_deep(depth):
            wanted = {key: value for key, value in wanted.items() if key in required}
        made = {str(key): self.value(value, str(key), depth + 1) for key, value in wanted.items()}
        return made | {key: self._answer for key in required if key not in made}

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        least = int(schema.get("minItems", 0))
        count = least if self._is_deep(depth) else max(1, least)
        most = schema.get("maxItems")
        count = min(count, int(most)) if most is not None else count
        return [self.value(schema.get("items", {}), name, depth + 1) for _ in range(count)]

    def _number(self, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        whole = self._kind(schema) == "integer"
        found = _NUMBER.search(self._question)
        number = float(found.group(0)) if found else 1.0
        low, high = schema.get("minimum"), schema.get("maximum")
        step = schema.get("multipleOf") or (1 if whole else None)
        if "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"] + (step or 0.5)
        if "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"] - (step or 0.5)
        if low is not None:
            number = max(number, low)
        if high is not None:
            number = min(number, high)
        if step:
            below = math.floor(number / step) * step
            number = below if low is None or below >= low else math.ceil(low / step) * step
        return int(number) if whole or float(number).is_integer() else number

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        found = _QUOTED.search(self._question)
        words = (found.group(1) or found.group(2)) if found else ""
        proper = _PROPER.search(self._question)
        plain = re.sub(r"[^a-z]", "", name.lower()) in ("answer", "text", "summary", "result", "reply", "content")
        text = words or (proper.group(1) if proper and not plain else "") or self._answer
        most = schema.get("maxLength")
        text = text[: int(most)] if most is not None else text
        least = int(schema.get("minLength", 0))
        if least > LONGEST_TEXT:
            raise _Endless(f"it requires a text of more than {LONGEST_TEXT} characters.")
        return text.ljust(least, ".")
