"""Every adapter by name, and the table for a provider that has none."""

from collections.abc import Mapping
from types import MappingProxyType

from services.provider_adapter.adapters import (
    anthropic,
    ark,
    azure_openai,
    dashscope,
    fal,
    google,
    kling,
    local_ocr,
    minimax,
    openai,
    replicate,
    runway,
    vidu,
)
from services.provider_adapter.domain.adapter import Adapter
from services.provider_adapter.domain.table import FaultTable

GENERIC = FaultTable(
    provider="generic",
    headers=("x-fal-error-type", "x-error-code", "x-error-type", "x-amzn-errortype", "x-ms-error-code"),
    errors_of_polls_judge=True,
)

ADAPTERS: Mapping[str, Adapter] = MappingProxyType(
    {
        adapter.manifest.name: adapter
        for adapter in (
            anthropic.ADAPTER,
            ark.ADAPTER,
            azure_openai.ADAPTER,
            dashscope.ADAPTER,
            fal.ADAPTER,
            google.ADAPTER,
            kling.ADAPTER,
            local_ocr.ADAPTER,
            minimax.ADAPTER,
            openai.ADAPTER,
            replicate.ADAPTER,
            runway.ADAPTER,
            vidu.ADAPTER,
        )
    }
)

# Providers that speak another's dialect, by the names that people give them.
_SPEAK_AS = {"volcengine-ark": "ark", "byteplus-modelark": "ark"}


def adapter_of(provider: str) -> str:
    """The name of the adapter for a provider's replies; `generic` where there is none."""
    name = _SPEAK_AS.get(provider, provider)
    return name if name in ADAPTERS else "generic"
