"""How the answer is to be made, in Gemini's words: sampling, reasoning, tools, shape.

Models from 3 on think by level and cannot stop; those of 2.5 take a budget of tokens, which may be 0. A name that
tells no version is taken for a new one.
"""

import re
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.google.manifest import NAME
from services.provider_adapter.domain.replies import chosen
from services.provider_adapter.domain.turns import (
    OTHERWISE,
    checked,
    functions_of,
    number_in,
    schema_of,
    stops_of,
    tokens_at_most,
)

SAID = frozenset(
    "temperature top_p top_k max_tokens max_completion_tokens n stop seed presence_penalty frequency_penalty tools"
    " tool_choice response_format reasoning_effort".split()
)
LEFT_OUT = frozenset(
    "store metadata user safety_identifier service_tier prompt_cache_key prompt_cache_retention".split()
)
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_LEVELS = {"minimal": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH"}
_VERSION = re.compile(r"gemini-(\d+)")


def options(given: Mapping[str, Any], model: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields beside the conversation, and the names of those of the input that were left out."""
    ignored = checked(given, NAME, SAID, LEFT_OUT)
    shape, schema = schema_of(given, NAME, plain_json=True)
    said = {
        "temperature": number_in(given, "temperature", 0, 2),
        "topP": number_in(given, "top_p", 0, 1),
        "topK": number_in(given, "top_k", 1, 1_000_000),
        "maxOutputTokens": tokens_at_most(given),
        "candidateCount": number_in(given, "n", 1, 8),
        "stopSequences": stops_of(given) or None,
        "seed": number_in(given, "seed", -(2**31), 2**31 - 1),
        "presencePenalty": number_in(given, "presence_penalty", -2, 2),
        "frequencyPenalty": number_in(given, "frequency_penalty", -2, 2),
        "responseMimeType": None if shape == "text" else "application/json",
        "responseJsonSchema": schema,
        "thinkingConfig": _thinking(given, model),
    }
    generation = {name: value for name, value in said.items() if value is not None}
    return ({"generationConfig": generation} if generation else {}) | _tools(given), ignored


def _thinking(given: Mapping[str, Any], model: str) -> dict[str, Any] | None:
    effort = given.get("reasoning_effort")
    if effort is None:
        return None
    found = _VERSION.search(model)
    by_budget = found is not None and int(found[1]) < 3
    words: Mapping[str, Any] = _BUDGETS if by_budget else _LEVELS
    if effort not in words:
        more = "" if by_budget else ": this model cannot stop thinking"
        raise Fault.invalid(("/input/reasoning_effort", f"must be one of {', '.join(words)} in this dialect{more}"))
    return {"thinkingBudget" if by_budget else "thinkingLevel": words[effort]}


def _tools(given: Mapping[str, Any]) -> dict[str, Any]:
    functions = functions_of(given, NAME)
    choice = _choice(given)
    if not functions:
        return {}
    declared = [
        {"name": function["name"], **chosen(function, "description")}
        | ({"parametersJsonSchema": function["parameters"]} if function.get("parameters") else {})
        for function in functions
    ]
    said: dict[str, Any] = {"tools": [{"functionDeclarations": declared}]}
    return said | ({"toolConfig": {"functionCallingConfig": choice}} if choice else {})


def _choice(given: Mapping[str, Any]) -> dict[str, Any] | None:
    choice = given.get("tool_choice")
    plain = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
    if choice is None:
        return None
    if isinstance(choice, str) and choice in plain:
        return {"mode": plain[choice]}
    if isinstance(choice, Mapping) and choice.get("type") == "function" and isinstance(choice.get("function"), Mapping):
        name = choice["function"].get("name")
        if isinstance(name, str):
            return {"mode": "ANY", "allowedFunctionNames": [name]}
    raise Fault.invalid(("/input/tool_choice", f"must be auto, required, none or one function; or {OTHERWISE}"))
