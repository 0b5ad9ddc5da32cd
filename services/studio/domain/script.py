"""The fault script: which requests a rule matches, and what happens to each of them in turn.

The laws:
- rules are tried in the order they were added; the first that matches and is not used up decides;
- one step is used per matching request; the last step is used `repeat` times (1 by default, or "forever");
- a rule that names neither method nor path matches submissions only, so that polls and cancellations do not eat its
  steps;
- an unknown key is an error: a misspelt fault must not pass as no fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

MATCH_KEYS = frozenset({"account", "path", "method", "model", "prompt_contains", "client_token"})
STEP_KEYS = frozenset(
    {
        "ok",
        "slow_s",
        "status",
        "body",
        "headers",
        "retry_after",
        "code",
        "message",
        "hang_s",
        "drop_after_body",
        "accept_then_drop",
        "truncate",
        "accept",
        "fail_task",
        "expire_task",
        "garble",
        "first_token_s",
        "token_gap_s",
        "stall_after",
        "stall_s",
        "cut_after",
        "error_after",
        "content_filter_after",
        "refusal",
    }
)
FOREVER = -1
NEVER = -1


class ScriptError(ValueError):
    """The script cannot be read; the text says which part."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule may look at: `path` without the account prefix; of a poll, the model and prompt of its task.

    `submits` is False for a POST that creates nothing.
    """

    account: str
    method: str
    path: str
    model: str = ""
    prompt: str = ""
    client_token: str = ""
    submits: bool = True


@dataclass(frozen=True, slots=True)
class Flow:
    """What befalls an answer while it is being said, in tokens that were said before it; NEVER for what does not.

    `first_token_s` and `token_gap_s` take the place of the account's pace where they are given; `stall_s` is waited
    once, after `stall_after` tokens. The stream is cut after `cut_after`, broken off by an error event after
    `error_after`, and ended by moderation after `content_filter_after`; `refusal` is said in place of the answer.
    """

    first_token_s: float | None = None
    token_gap_s: float | None = None
    stall_after: int = NEVER
    stall_s: float = 0.0
    cut_after: int = NEVER
    error_after: int = NEVER
    content_filter_after: int = NEVER
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with one request.

    `slow_s` waits and goes on. `status` answers without accepting. `hang_s` stays silent that long, then cuts.
    `cut` cuts without an answer, `truncate` cuts in the middle of the answer; `accept` says whether the job is taken on
    before the silence or the cut. `fail_task` and `expire_task` let the job be accepted and choose its end; `garble`
    breaks the JSON of its answer, and `flow` is for answers that are said token by token.
    """

    slow_s: float = 0.0
    status: int = 0
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    message: str = ""
    hang_s: float = 0.0
    cut: bool = False
    truncate: bool = False
    accept: bool = True
    fail_task: tuple[str, str] | None = None
    expire_task: bool = False
    garble: bool = False
    flow: Flow = Flow()

    @property
    def unheard(self) -> bool:
        """Whether the answer does not reach the caller whole, so that there is no use in saying it bit by bit."""
        return self.cut or self.truncate or bool(self.hang_s)

    @property
    def hears_as_made(self) -> bool:
        """Whether an answer may be told while it is made: nothing is to be changed of it."""
        return not (self.unheard or self.flow.refusal or self.flow.content_filter_after != NEVER)


OK = Step()


@dataclass(slots=True)
class Rule:
    """One rule with the number of requests it has decided so far."""

    id: int
    match: Mapping[str, str]
    steps: tuple[Step, ...]
    repeat: int
    source: Mapping[str, Any]
    used: int = 0

    def step(self) -> Step | None:
        """The step for the next matching request, or None when the rule is used up."""
        last = len(self.steps) - 1
        if self.used < last:
            return self.steps[self.used]
        if self.repeat == FOREVER or self.used < last + self.repeat:
            return self.steps[last]
        return None


class Script:
    """All rules of the studio."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._next_id = 1

    def add(self, source: Any) -> Rule:
        """Reads one rule `{"match", "then", "repeat"}` and appends it. Raises ScriptError."""
        rule = read_rule(self._next_id, source)
        self._next_id += 1
        self._rules.append(rule)
        return rule

    def remove(self, rule_id: int) -> bool:
        """Takes one rule away; False when there is none of that id."""
        kept = [rule for rule in self._rules if rule.id != rule_id]
        removed = len(kept) < len(self._rules)
        self._rules = kept
        return removed

    def clear(self) -> None:
        """Takes all rules away."""
        self._rules.clear()

    def decide(self, facts: Facts) -> Step:
        """The step for this request; it is used up by this call. OK when no rule matches."""
        for rule in self._rules:
            step = rule.step() if matches(rule.match, facts) else None
            if step is not None:
                rule.used += 1
                return step
        return OK

    def view(self) -> list[dict[str, Any]]:
        """The rules as they were given, each with how many requests it decided and whether it is used up."""
        return [{"id": r.id, **r.source, "used": r.used, "done": r.step() is None} for r in self._rules]


def matches(match: Mapping[str, str], facts: Facts) -> bool:
    """Whether every condition of `match` holds. `path` is a glob when it has a `*`, else a part of the path."""
    method = match.get("method", "*" if "path" in match else "POST").upper()
    if method not in ("*", facts.method):
        return False
    if not (facts.submits or "method" in match or "path" in match):
        return False
    path = match.get("path", "")
    if not (fnmatchcase(facts.path, path) if "*" in path else path in facts.path):
        return False
    same = (("account", facts.account), ("model", facts.model), ("client_token", facts.client_token))
    if any(key in match and match[key] != value for key, value in same):
        return False
    return match.get("prompt_contains", "") in facts.prompt


def read_rule(rule_id: int, source: Any) -> Rule:
    """Reads a rule from JSON. Raises ScriptError."""
    if not isinstance(source, Mapping):
        raise ScriptError("a rule is an object with match and then")
    _known(source, frozenset({"match", "then", "repeat"}), "rule")
    match = source.get("match", {})
    if not isinstance(match, Mapping) or not all(isinstance(value, str) for value in match.values()):
        raise ScriptError("match is an object of strings")
    _known(match, MATCH_KEYS, "match")
    then = source.get("then")
    if not isinstance(then, list) or not then:
        raise ScriptError("then is a list of at least one step")
    repeat = source.get("repeat", 1)
    if repeat == "forever":
        repeat = FOREVER
    elif not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise ScriptError('repeat is a whole number from 1, or "forever"')
    return Rule(rule_id, dict(match), tuple(read_step(step) for step in then), repeat, dict(source))


def read_step(source: Any) -> Step:
    """Reads a step from JSON. Raises ScriptError."""
    if not isinstance(source, Mapping):
        raise ScriptError("a step is an object")
    _known(source, STEP_KEYS, "step")
    headers = {str(name): str(value) for name, value in dict(source.get("headers", {})).items()}
    if "retry_after" in source:
        headers["Retry-After"] = str(source["retry_after"])
    fail = source.get("fail_task")
    if fail is not None and not (isinstance(fail, Mapping) and "code" in fail):
        raise ScriptError("fail_task is an object with code and message")
    try:
        return Step(
            slow_s=float(source.get("slow_s", 0)),
            status=int(source.get("status", 0)),
            body=source.get("body"),
            headers=headers,
            code=str(source.get("code", "")),
            message=str(source.get("message", "")),
            hang_s=float(source.get("hang_s", 0)),
            cut=bool(source.get("drop_after_body") or source.get("accept_then_drop")),
            truncate=bool(source.get("truncate")),
            accept=bool(source.get("accept", "hang_s" not in source)),
            fail_task=(str(fail["code"]), str(fail.get("message", ""))) if fail is not None else None,
            expire_task=bool(source.get("expire_task")),
            garble=bool(source.get("garble")),
            flow=_flow(source),
        )
    except (TypeError, ValueError) as error:
        raise ScriptError(f"step {dict(source)!r}: {error}") from error


def _flow(source: Mapping[str, Any]) -> Flow:
    pace: dict[str, Any] = {
        name: float(source[name]) for name in ("first_token_s", "token_gap_s", "stall_s") if name in source
    }
    places = ("stall_after", "cut_after", "error_after", "content_filter_after")
    marks = {name: int(source[name]) for name in places if name in source}
    if any(number < 0 for number in (*pace.values(), *marks.values())):
        raise ValueError("seconds and tokens are not negative")
    if ("stall_s" in pace) != ("stall_after" in marks):
        raise ValueError("stall_after and stall_s go together")
    return Flow(**pace, **marks, refusal=str(source.get("refusal", "")))


def _known(source: Mapping[str, Any], keys: frozenset[str], what: str) -> None:
    unknown = sorted(set(source) - keys)
    if unknown:
        raise ScriptError(f"{what} does not know {', '.join(unknown)}; it knows {', '.join(sorted(keys))}")
