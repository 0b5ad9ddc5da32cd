"""Writes the list of names into docs/guides/telemetry.md, below the line that says so.

python -m libs.telemetry.pages            write it in the working directory
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from libs.telemetry.names import ATTRIBUTES, METRICS, SPANS

GUIDE = Path("docs/guides/telemetry.md")
MARK = "<!-- From here on: libs/telemetry/names.py, written by `python -m libs.telemetry.pages`. -->"


def written(guide: str) -> str:
    """The guide with the list as it stands below the mark."""
    head, mark, _ = guide.partition(MARK)
    return f"{head}{mark}\n\n{tables()}"


def tables() -> str:
    """Every metric, span and attribute with its unit and its meaning."""
    metrics = [
        (
            f"`{metric.name}`",
            metric.kind.value,
            metric.unit,
            ", ".join(f"`{name}`" for name in metric.labels),
            metric.tells,
        )
        for metric in METRICS.values()
    ]
    return "\n".join(
        (
            "## Metrics",
            "",
            *_table(("name", "kind", "unit", "labels", "tells"), metrics),
            "",
            "On the page for Prometheus a name with dots is spelt with underscores and its unit,",
            "and so are its labels:",
            ",\n".join(f"`{metric.page_name}`" for metric in METRICS.values() if metric.page_name != metric.name) + ".",
            "",
            "## Spans of a fixed name",
            "",
            *_table(("name", "covers"), [(f"`{name}`", tells) for name, tells in SPANS.items()]),
            "",
            "## Attributes",
            "",
            *_table(("name", "tells"), [(f"`{name}`", tells) for name, tells in ATTRIBUTES.items()]),
            "",
        )
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def main() -> None:
    """Write it."""
    GUIDE.write_text(written(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
