"""A conversation that asks for its next message, and the message as it will be said, token by token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STOP, LENGTH, TOOL_CALLS, CONTENT_FILTER = "stop", "length", "tool_calls", "content_filter"
TEXT, JSON_OBJECT, JSON_SCHEMA = "text", "json_object", "json_schema"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `name` is the tool that a message of role "tool" speaks for, where the caller said so."""

    role: str
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that may be called; `parameters` is a JSON schema."""

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChatJob:
    """What is asked. `must_call` demands a tool call, of `tools` as they are left by the caller's choice.

    `reasoning_tokens` are thought before the first word, counted and charged but not said.
    """

    model: str
    messages: tuple[Message, ...]
    prompt_tokens: int
    max_tokens: int
    n: int = 1
    stop: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    tools: tuple[Tool, ...] = ()
    must_call: bool = False
    format: str = TEXT
    schema: Mapping[str, Any] = field(default_factory=dict)
    reasoning_tokens: int = 0

    @property
    def question(self) -> str:
        """The last thing the user said."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def words(self) -> str:
        """Everything that was said, for markers and scripts."""
        return "\n".join(message.text for message in self.messages)


@dataclass(frozen=True, slots=True)
class Answer:
    """The next message: its tokens, and why it ends. `tool` names the function whose arguments the tokens are.

    `refused` says that the tokens are the words of a refusal.
    """

    tokens: tuple[str, ...]
    finish: str = STOP
    tool: str = ""
    refused: bool = False

    @property
    def text(self) -> str:
        """The whole message."""
        return "".join(self.tokens)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a streamed answer; `tokens` says how many of the answer's it brings."""

    data: bytes
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of an answer that is still being made; the last one has a `finish` and may be empty."""

    text: str
    finish: str = ""
