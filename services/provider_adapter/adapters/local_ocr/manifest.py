"""What the dialect of a reading server can do."""

from services.provider_adapter.domain.adapter import Auth, Manifest

OCR = "/ocr"
TASKS = ("recognize_text", "parse_layout")

MANIFEST = Manifest(
    name="local-ocr",
    kinds=("ocr",),
    synchronous_kinds=("ocr",),
    auth=Auth(),
    reconcile_by="none",
    cancels=False,
    limits={"image": "one, as a URL or as base64", "task": " or ".join(TASKS)},
    cost_fields={"ocr.pages": "pages"},
    read_fields=frozenset(
        {
            "ocr.text",
            "ocr.blocks[].text",
            "ocr.blocks[].box",
            "ocr.blocks[].confidence",
            "ocr.blocks[].kind",
            "ocr.pages",
        }
    ),
    ignored_fields=frozenset({"ocr.model", "ocr.task"}),
)
