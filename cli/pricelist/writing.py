"""Rules as a part of a catalogue file, and back."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from cli.pricelist.importing import Rule

_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
HEADER = """\
# Prices of LiteLLM's public table, imported by `pointsman prices import litellm`; SHA-256 of the table: {digest}
# The table is part of LiteLLM (https://github.com/BerriAI/litellm), Copyright (c) 2023 Berri AI, under the MIT License.
# It is a third party's word: check what you will be charged. Import it again into this file to keep versions rising.
"""


class WritingError(ValueError):
    """A file that holds no rules."""


def text_of_rules(rules: Iterable[Rule], digest: str) -> str:
    """A catalogue file of prices alone, for `pointsman catalog apply --merge`."""
    body = yaml.dump({"version": 1, "prices": list(rules)}, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return HEADER.format(digest=digest) + body


def rules_in(path: Path) -> dict[str, Rule]:
    """The rules of an earlier import by id; none where there is no file. Raises WritingError."""
    if not path.exists():
        return {}
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise WritingError(f"is no catalogue: {error}") from None
    rules = found.get("prices") if isinstance(found, dict) else None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) and "id" in rule for rule in rules):
        raise WritingError("holds no `prices` of an earlier import")
    return {str(rule["id"]): rule for rule in rules}
