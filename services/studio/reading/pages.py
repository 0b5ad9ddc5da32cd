"""Reading a page: its lines from top to bottom, or its blocks with what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from PIL import Image, ImageOps, ImageSequence

from services.studio.reading.finding import Box, lines
from services.studio.reading.letters import UNSURE, told

LEAST_SURE, SHORT_SURE = 0.82, 0.96
"""A line that is less sure is taken for a part of the picture; one of a letter or two must be quite like them."""
SHORT = 2
MOST_PAGES = 20
MOST_PIXELS = 40_000_000
LINE, PARAGRAPH, TITLE = "line", "paragraph", "title"


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of text: its box, how sure it is (0 to 1), what it is, and the size of its letters in pixels."""

    text: str
    box: Box
    confidence: float
    kind: str
    size: float


def read(picture: Image.Image, layout: bool) -> list[list[Block]]:
    """The blocks of every page (a file may hold several pictures), in reading order."""
    pages = []
    for number, frame in enumerate(ImageSequence.Iterator(picture)):
        if number == MOST_PAGES:
            break
        found = page(flat(frame))
        pages.append(laid_out(found) if layout else found)
    return pages


def flat(picture: Image.Image) -> Image.Image:
    """Grey, on white where it is transparent."""
    if "A" in picture.getbands() or "transparency" in picture.info:
        coloured = picture.convert("RGBA")
        ground = Image.new("RGBA", coloured.size, "white")
        picture = Image.alpha_composite(ground, coloured)
    return picture.convert("L")


def page(grey: Image.Image) -> list[Block]:
    """The lines of one picture from top to bottom, of each place the surest reading."""
    framed = ImageOps.expand(grey, border=8, fill=_ground(grey))
    read = sorted(_lines(framed), key=lambda block: -block.confidence * len(block.text))
    kept: list[Block] = []
    for block in read:
        if not any(_over(block.box, other.box) for other in kept):
            kept.append(block)
    moved = [replace(block, box=_inside(block.box, 8, grey.size)) for block in kept]
    return sorted(moved, key=_place)


def _lines(grey: Image.Image) -> Iterator[Block]:
    for line in lines(grey):
        box = line.box
        words = told(grey.crop((box.left, box.top, box.right, box.bottom)), line.light)
        if words is not None and words.confidence >= _needed(words.text) and _is_text(words.text):
            yield Block(words.text, line.box, round(words.confidence, 4), LINE, words.size)


def _needed(text: str) -> float:
    return SHORT_SURE if len(text.replace(" ", "")) <= SHORT else LEAST_SURE


def _is_text(text: str) -> bool:
    """Mostly letters and digits (sparks and leaves are read as marks with a letter between), and few places that could
    not be told."""
    shown = text.replace(" ", "")
    told = sum(letter.isalnum() for letter in shown)
    mostly = told * 2 > len(shown) or (told > 0 and len(shown) <= SHORT)
    return mostly and text.count(UNSURE) * 4 <= len(text)


def _ground(grey: Image.Image) -> int:
    """The most frequent level along the edge."""
    edges = (grey.crop((0, 0, grey.width, 1)), grey.crop((0, grey.height - 1, grey.width, grey.height)))
    counts = [sum(levels) for levels in zip(*(edge.histogram() for edge in edges), strict=True)]
    return counts.index(max(counts))


def _over(box: Box, other: Box) -> bool:
    return box.shared_rows(other) > 0.3 * min(box.height, other.height) and box.shared_columns(other) > 0


def _inside(box: Box, border: int, size: tuple[int, int]) -> Box:
    width, height = size
    return Box(
        max(0, box.left - border),
        max(0, box.top - border),
        min(width, box.right - border),
        min(height, box.bottom - border),
    )


def _place(block: Block) -> tuple[int, int]:
    """Top to bottom in steps of a line's half height, then left to right."""
    return block.box.bottom // max(4, int(block.size / 2)), block.box.left


def laid_out(found: Sequence[Block]) -> list[Block]:
    """Lines of one size, one under the other, as paragraphs; those much larger than the rest as titles."""
    groups: list[list[Block]] = []
    for block in found:
        group = next((group for group in reversed(groups) if _goes_on(group[-1], block)), None)
        if group is None:
            groups.append([block])
        else:
            group.append(block)
    usual = median(block.size for block in found) if found else 0.0
    return [_joined(group, usual) for group in groups]


def _goes_on(above: Block, block: Block) -> bool:
    gap = block.box.top - above.box.bottom
    alike = abs(above.size - block.size) <= 0.15 * above.size
    return alike and -above.size * 0.5 <= gap <= above.size * 1.1 and above.box.shared_columns(block.box) > 0


def _joined(group: Sequence[Block], usual: float) -> Block:
    box = group[0].box
    for block in group[1:]:
        box = box.joined(block.box)
    letters = sum(len(block.text) for block in group)
    sure = sum(block.confidence * len(block.text) for block in group) / letters
    kind = TITLE if group[0].size >= usual * 1.25 and len(group) <= 3 else PARAGRAPH
    return Block("\n".join(block.text for block in group), box, round(sure, 4), kind, group[0].size)
