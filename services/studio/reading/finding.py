"""Finding lines of text: patches that differ from what is around them, of like height and side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from PIL import Image, ImageChops, ImageFilter

CONTRAST = 36
"""Least difference of a patch from its surroundings, of 255."""
LEAST_HEIGHT, MOST_HEIGHT = 5, 160
SIGN = 0.45
"""How high a comma or a dash may be, of the height of its line."""
REACH = 1.6
"""How far from a letter the next one of its line may begin, in heights: a blank and a small sign fit between."""
MOST_PATCHES = 6000
_RUN = re.compile(rb"\xff+")


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels; right and bottom lie outside."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Columns."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Rows."""
        return self.bottom - self.top

    def joined(self, other: Box) -> Box:
        """The smallest box around both."""
        return Box(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )

    def shared_rows(self, other: Box) -> int:
        """Rows that both have; negative is the distance between them."""
        return min(self.bottom, other.bottom) - max(self.top, other.top)

    def shared_columns(self, other: Box) -> int:
        """Columns that both have; negative is the distance between them."""
        return min(self.right, other.right) - max(self.left, other.left)


@dataclass(frozen=True, slots=True)
class Line:
    """Where a line of text may stand, and whether it is lighter than its ground."""

    box: Box
    light: bool


def lines(grey: Image.Image) -> list[Line]:
    """Every place that may be a line of text, of both kinds; some are none."""
    radius = min(64, max(12, min(grey.size) // 16))
    around = grey.filter(ImageFilter.BoxBlur(radius))
    found = []
    for light in (True, False):
        stands_out = ImageChops.subtract(grey, around) if light else ImageChops.subtract(around, grey)
        mask = stands_out.point(lambda level: 255 if level > CONTRAST else 0)
        found += [Line(box, light) for box in _in_lines(patches(mask), grey.size)]
    return found


def patches(mask: Image.Image) -> list[Box]:
    """The boxes of the connected patches of 255, also where they touch at a corner."""
    width, height = mask.size
    data = mask.tobytes()
    boxes: list[Box] = []
    parent: list[int] = []

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    above: list[tuple[int, int, int]] = []
    for y in range(height):
        here = []
        at = 0
        for run in _RUN.finditer(data, y * width, (y + 1) * width):
            left, right = run.start() - y * width, run.end() - y * width
            own = len(parent)
            parent.append(own)
            boxes.append(Box(left, y, right, y + 1))
            while at < len(above) and above[at][1] < left:
                at += 1
            touching = at
            while touching < len(above) and above[touching][0] <= right:
                one, other = root(own), root(above[touching][2])
                if one != other:
                    parent[one] = other
                    boxes[other] = boxes[other].joined(boxes[one])
                touching += 1
            here.append((left, right, own))
        above = here
    return [box for index, box in enumerate(boxes) if parent[index] == index]


def _in_lines(found: Iterable[Box], size: tuple[int, int]) -> list[Box]:
    """Boxes of lines: letters side by side, with the small signs between and above them."""
    width, height = size
    letters = [
        box
        for box in found
        if box.height <= min(height * 0.6, MOST_HEIGHT) and box.width <= max(40, box.height * 12, width // 4)
    ]
    tall = sorted((box for box in letters if box.height >= LEAST_HEIGHT), key=lambda box: box.left)[:MOST_PATCHES]
    small = [box for box in letters if box.height < LEAST_HEIGHT]
    rows: list[Box] = []
    last: list[Box] = []
    for box in tall:
        row = next((index for index in range(len(rows)) if _beside(last[index], rows[index], box)), None)
        if row is None:
            rows.append(box)
            last.append(box)
        else:
            rows[row], last[row] = rows[row].joined(box), box
    merged = _merged(rows)
    return [
        _with_signs(row, [*small, *(other for other in merged if other.height <= row.height * SIGN)]) for row in merged
    ]


def _beside(last: Box, row: Box, box: Box) -> bool:
    reach = max(last.height, row.height, box.height)
    alike = box.shared_rows(row) >= 0.5 * min(box.height, row.height) and reach <= 4 * min(row.height, box.height)
    return alike and box.left - row.right <= reach * REACH


def _merged(rows: Sequence[Box]) -> list[Box]:
    """Rows that lie over each other are one: a letter that came before its line was long enough to be beside it."""
    kept: list[Box] = []
    for row in sorted(rows, key=lambda box: -box.width):
        for index, other in enumerate(kept):
            inside = row.shared_columns(other) > -other.height * 0.6
            if inside and row.shared_rows(other) >= 0.6 * min(row.height, other.height):
                kept[index] = other.joined(row)
                break
        else:
            kept.append(row)
    return kept


def _with_signs(row: Box, small: Sequence[Box]) -> Box:
    reach = row.height * 0.4
    grown = row
    for sign in small:
        near = row.left - reach <= sign.left and sign.right <= row.right + reach
        if near and row.top - reach <= sign.top and sign.bottom <= row.bottom + reach:
            grown = grown.joined(sign)
    return replace(grown, top=max(grown.top, row.top - int(reach)), bottom=min(grown.bottom, row.bottom + int(reach)))
