"""Reads Helm charts that are plain: values, `if`, one `range` over a map, `quote`, `printf` with two texts, `toYaml`.

What else Helm's templates can do is refused, so that a chart which passes here says no more than what is read here.
"""

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

BLOCK = re.compile(r"^\{\{- (?P<word>if|range|end)\b ?(?P<rest>.*?) ?\}\}$")
INLINE = re.compile(r"\{\{-? (.+?) \}\}")
RANGE = re.compile(r"\$(\w+), \$(\w+) := (\S+)")


class ChartError(ValueError):
    """A template says what is not read here, or names a value that is not there."""


def rendered(chart: Path, values: Mapping[str, Any], *, release: str) -> list[dict[str, Any]]:
    """The objects of a chart whose own values are overlaid by these, in the order of the files."""
    own = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    scope = {"Values": _overlaid(own, values), "Release": {"Name": release}}
    texts = (filled(path.read_text(encoding="utf-8"), scope) for path in sorted((chart / "templates").glob("*.yaml")))
    return [item for text in texts for item in yaml.safe_load_all(text) if item]


def filled(text: str, scope: Mapping[str, Any]) -> str:
    """A template with everything put in. ChartError."""
    lines, rest = _block(text.splitlines(), scope, nested=False)
    if rest:
        raise ChartError(f"an `end` without a beginning: {rest[0]}")
    return "\n".join(lines) + "\n"


def _block(lines: list[str], scope: Mapping[str, Any], *, nested: bool) -> tuple[list[str], list[str]]:
    """What the lines up to the end of this block come to, and the lines after it."""
    out: list[str] = []
    while lines:
        line, lines = lines[0], lines[1:]
        begun = BLOCK.match(line.strip())
        if begun is None:
            out.append(INLINE.sub(lambda found: _put(found[1], scope), line))
        elif begun["word"] == "end":
            if nested:
                return out, lines
            return out, [line, *lines]
        else:
            body = lines
            for inner in _scopes(begun["word"], begun["rest"], scope):
                out += _block(body, inner, nested=True)[0]
            lines = _after(body)
    if nested:
        raise ChartError("a block has no end")
    return out, []


def _after(lines: list[str]) -> list[str]:
    """The lines after the end of the block that these begin in."""
    depth = 1
    for number, line in enumerate(lines):
        begun = BLOCK.match(line.strip())
        depth += {None: 0, "end": -1}.get(begun and begun["word"], 1)
        if depth == 0:
            return lines[number + 1 :]
    raise ChartError("a block has no end")


def _scopes(word: str, rest: str, scope: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """In which scopes the body of a block is put out: none, one, or one for each pair of a map."""
    if word == "if":
        wanted = not rest.startswith("not ")
        return [scope] if bool(_value(rest.removeprefix("not "), scope)) is wanted else []
    found = RANGE.fullmatch(rest)
    if found is None:
        raise ChartError(f"not read here: range {rest}")
    return [{**scope, f"${found[1]}": key, f"${found[2]}": value} for key, value in _value(found[3], scope).items()]


def _put(expression: str, scope: Mapping[str, Any]) -> str:
    """One expression with its pipes."""
    first, *pipes = expression.split(" | ")
    if first.startswith("toYaml "):
        text = yaml.safe_dump(_value(first.removeprefix("toYaml "), scope)).rstrip()
        depth = re.fullmatch(r"nindent (\d+)", " | ".join(pipes))
        if depth is None:
            raise ChartError(f"not read here: {expression}")
        return "\n" + "\n".join(" " * int(depth[1]) + line for line in text.splitlines())
    if first.startswith('printf "%s:%s" '):
        value: Any = ":".join(str(_value(word, scope)) for word in first.split()[2:])
    else:
        value = _value(first, scope)
    if pipes == ["quote"]:
        return json.dumps(str(value), ensure_ascii=False)
    if pipes or isinstance(value, (dict, list)):
        raise ChartError(f"not read here: {expression}")
    return str(value)


def _value(path: str, scope: Mapping[str, Any]) -> Any:
    """`.Values.a.b`, `.Release.Name`, or a `$name` of a range."""
    if path.startswith("$"):
        parts = [path]
    elif re.fullmatch(r"(?:\.\w+)+", path):
        parts = path[1:].split(".")
    else:
        raise ChartError(f"not read here: {path}")
    found: Any = scope
    for part in parts:
        if not isinstance(found, Mapping) or part not in found:
            raise ChartError(f"{path} has no value")
        found = found[part]
    return found


def _overlaid(own: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """As Helm does it: maps are put together, everything else replaced."""
    merged = copy.deepcopy(dict(own))
    for name, value in values.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _overlaid(merged[name], value) if both else value
    return merged
