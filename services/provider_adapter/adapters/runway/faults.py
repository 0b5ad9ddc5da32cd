"""Runway's failure codes (dot-separated, the general part first) and the sentences of its refusals."""

from services.provider_adapter.domain.table import FaultTable, Row

TABLE = FaultTable(
    provider="runway",
    rows=(
        # a likeness has no code of its own: only the sentence tells
        Row("SAFETY.*", "real_person_rejected", says=r"another person|without \w+ permission|public figure"),
        Row("SAFETY.*", "content_rejected"),
        Row("INPUT_PREPROCESSING.SAFETY.*", "content_rejected"),
        Row("INPUT_PREPROCESSING.INTERNAL", "provider_error"),
        Row("ASSET.INVALID", "material_unreachable"),
        Row("ASSET.*", "material_unreachable"),
        Row("INTERNAL.BAD_OUTPUT.*", "provider_error"),
        Row("INTERNAL", "provider_error"),
        Row("INTERNAL.*", "provider_error"),
        Row("THIRD_PARTY.*", "provider_error"),
    ),
)
