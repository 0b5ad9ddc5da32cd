"""How the answer is to be made, in Anthropic's words: sampling, reasoning, tools, shape.

Models from 4.6 on think as much as an `effort` says; older ones take a budget of tokens, which stays below all tokens
of the answer. A name that tells no version is taken for a new one.
"""

import re
from collections.abc import Mapping
from typing import Any

from libs.faults.fault import Fault
from services.provider_adapter.adapters.anthropic.manifest import DEFAULT_MAX_TOKENS
from services.provider_adapter.adapters.anthropic.messages import NAME
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
    "temperature top_p top_k max_tokens max_completion_tokens stop tools tool_choice parallel_tool_calls"
    " response_format reasoning_effort thinking user safety_identifier".split()
)
LEFT_OUT = frozenset("store metadata service_tier prompt_cache_key prompt_cache_retention".split())
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 60000}
_EFFORTS = {"minimal": "low"} | {word: word for word in ("low", "medium", "high", "xhigh", "max")}
LEAST_BUDGET = 1024
_VERSION = re.compile(r"claude-(?:[a-z]+-)*(\d)(?:[-.](\d)(?!\d))?")


def options(given: Mapping[str, Any], model: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields beside the conversation, and the names of those of the input that were left out."""
    ignored = checked(given, NAME, SAID, LEFT_OUT)
    said: dict[str, Any] = {
        "temperature": number_in(given, "temperature", 0, 1),
        "top_p": number_in(given, "top_p", 0, 1),
        "top_k": number_in(given, "top_k", 0, 1_000_000),
        "stop_sequences": stops_of(given) or None,
    }
    user = given.get("safety_identifier") or given.get("user")
    if user is not None:
        said["metadata"] = {"user_id": str(user)}
    said |= _reasoning(given, model) | _tools(given)
    shape, schema = schema_of(given, NAME, plain_json=False)
    if shape == "schema":
        said["output_config"] = {**said.get("output_config", {}), "format": {"type": "json_schema", "schema": schema}}
    return {name: value for name, value in said.items() if value is not None}, ignored


def _reasoning(given: Mapping[str, Any], model: str) -> dict[str, Any]:
    """`max_tokens` and what of them may be thought."""
    most = tokens_at_most(given)
    effort = given.get("reasoning_effort")
    own = given.get("thinking")
    if own is not None:
        if effort is not None:
            raise Fault.invalid(("/input/reasoning_effort", "says the same as /input/thinking: leave one of them out"))
        return {"max_tokens": most or DEFAULT_MAX_TOKENS, "thinking": own}
    if effort is None or effort == "none":
        off = {"thinking": {"type": "disabled"}} if effort == "none" else {}
        return {"max_tokens": most or DEFAULT_MAX_TOKENS, **off}
    if effort not in _BUDGETS:
        raise Fault.invalid(("/input/reasoning_effort", f"must be one of none, {', '.join(_BUDGETS)}"))
    if adapts(model):
        thinking = {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORTS[effort]}}
        return {"max_tokens": most or DEFAULT_MAX_TOKENS + _BUDGETS[effort], **thinking}
    most = most or DEFAULT_MAX_TOKENS + _BUDGETS[effort]
    if most <= LEAST_BUDGET:
        text = f"must be above {LEAST_BUDGET} with reasoning_effort: thinking takes that much; or leave the effort out"
        raise Fault.invalid(("/input/max_completion_tokens", text))
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": min(_BUDGETS[effort], most - 1)}}


def adapts(model: str) -> bool:
    """Whether the model takes an effort in place of a budget."""
    found = _VERSION.search(model)
    return found is None or (int(found[1]), int(found[2] or 0)) >= (4, 6)


def _tools(given: Mapping[str, Any]) -> dict[str, Any]:
    functions = functions_of(given, NAME)
    choice = _choice(given)
    if not functions:
        return {}
    tools = []
    for function in functions:
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        tool = {"name": function["name"], "input_schema": schema, **chosen(function, "description", "cache_control")}
        tools.append(tool | ({"strict": True} if function.get("strict") else {}))
    if given.get("parallel_tool_calls") is False and (choice or {}).get("type") != "none":
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return {"tools": tools, "tool_choice": choice}


def _choice(given: Mapping[str, Any]) -> dict[str, Any] | None:
    choice = given.get("tool_choice")
    plain = {"auto": "auto", "required": "any", "none": "none"}
    if choice is None:
        return None
    if isinstance(choice, str) and choice in plain:
        return {"type": plain[choice]}
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        name = choice.get("function", {}).get("name") if isinstance(choice.get("function"), Mapping) else None
        if isinstance(name, str):
            return {"type": "tool", "name": name}
    raise Fault.invalid(("/input/tool_choice", f"must be auto, required, none or one function; or {OTHERWISE}"))
