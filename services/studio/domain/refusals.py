"""Reasons for which a provider refuses, free of any dialect. Each dialect maps them to its own codes."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a request was refused or a job failed."""

    UNAUTHENTICATED = "unauthenticated"
    MODEL_UNKNOWN = "model_unknown"
    PARAMETER_MISSING = "parameter_missing"
    PARAMETER_INVALID = "parameter_invalid"
    BODY_INVALID = "body_invalid"
    MATERIAL_UNREADABLE = "material_unreadable"
    MATERIAL_UNREACHABLE = "material_unreachable"
    CONTENT_INPUT = "content_input"
    CONTENT_OUTPUT = "content_output"
    PERSON_INPUT = "person_input"
    PERSON_OUTPUT = "person_output"
    CONCURRENCY = "concurrency"
    TASK_UNKNOWN = "task_unknown"
    TASK_RUNNING = "task_running"
    KEY_IN_USE = "key_in_use"
    KEY_REUSED = "key_reused"
    ROUTE_UNKNOWN = "route_unknown"
    INTERNAL = "internal"


class Refusal(Exception):
    """A request that is not accepted. `message` speaks to the caller; `param` names the field at fault, if any.

    `code` is the provider's own where it has a finer one than the reason's.
    """

    def __init__(self, reason: Reason, message: str, param: str = "", code: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.param = param
        self.code = code
