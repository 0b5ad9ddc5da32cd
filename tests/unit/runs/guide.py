"""The guide's diagram of a node is drawn from the table of its moves. `python -m tests.unit.runs.guide` redraws it."""

from pathlib import Path

from services.runs.domain.moves import diagram, recovery

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "productions.md"
BEGIN, END = "```mermaid\n", "```\n"
HEAD = recovery().partition("\n")[0]


def redrawn(text: str) -> str:
    """The guide with the diagram and the rules of the present tables."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    text = before + BEGIN + diagram() + END + after
    before, _, rest = text.partition(HEAD)
    _, _, after = rest.partition("\n\n")
    return before + recovery() + "\n" + after


if __name__ == "__main__":
    GUIDE.write_text(redrawn(GUIDE.read_text()))
