"""A request in Pointsman's own words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks of a Public Model.

    `input` holds JSON values as in the public contract (materials are `{"url"}` or `{"artifact"}`); `billing_mode`
    and `degradation` are empty where the caller said nothing.
    """

    tenant: str
    model: str
    input: Mapping[str, Any]
    degradation: str = ""
    billing_mode: str = ""
    priority: str = "normal"
    deadline: datetime | None = field(default=None)
