"""The guide's diagram is drawn from the state table. `python -m tests.unit.health.guide` redraws it."""

from pathlib import Path

from services.health.domain.states import diagram

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "health.md"
BEGIN, END = "```mermaid\n", "```\n"


def redrawn(text: str) -> str:
    """The guide with the diagram of the present table."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + diagram() + END + after


if __name__ == "__main__":
    GUIDE.write_text(redrawn(GUIDE.read_text()))
