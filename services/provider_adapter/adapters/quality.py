"""How far each adapter is proved. Written by `python -m tools.ladder` from tests/cases; never edited.

Exchanges, those with unknown fields, rows of faults, reconciles, prices usage, classified as labelled, labelled.
"""

from collections.abc import Mapping

from services.provider_adapter.domain.adapter import Quality

QUALITY: Mapping[str, Quality] = {
    "anthropic": Quality(36, 0, 12, False, True, 15, 15),
    "ark": Quality(48, 0, 37, True, True, 25, 25),
    "azure-openai": Quality(27, 0, 50, False, True, 12, 12),
    "dashscope": Quality(51, 0, 2, True, True, 27, 27),
    "fal": Quality(44, 0, 1, False, True, 25, 25),
    "google": Quality(53, 0, 30, False, True, 25, 25),
    "kling": Quality(22, 0, 22, True, True, 12, 12),
    "local-ocr": Quality(23, 0, 13, False, True, 0, 0),
    "minimax": Quality(53, 0, 24, True, True, 13, 13),
    "openai": Quality(85, 0, 28, True, True, 34, 34),
    "replicate": Quality(53, 0, 4, True, True, 11, 11),
    "runway": Quality(39, 0, 10, False, False, 14, 14),
    "vidu": Quality(40, 0, 22, False, True, 17, 17),
}
