"""Telling the letters of one line: its size and baseline by vote, then each patch by the shape that it is most like.

Letters that touch are told apart by taking the likeliest first letter away and looking at what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image

from services.studio.reading.glyphs import (
    BEYOND,
    LARGEST,
    MARGIN,
    SMALLEST,
    STRIDE,
    Glyph,
    Shape,
    glyphs,
    shape_of,
    space,
)

TALLEST = 50
"""Rows of a line beyond which it is made smaller: letters of the largest size may stand in fewer."""
VOTERS = 10
VOTING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
GOOD = 0.9
"""A likeness at which nothing better is looked for."""
LEAST_LARGE = 2
"""Patches of a line of large letters: one alone is a thing that is drawn."""
LIKELY = 0.65
"""The likeness of the voters below which a line has not this size."""
EXACT = 0.98
LEAST = 0.55
"""A likeness below which a patch is no letter."""
DEEPEST, FIRSTS, TRIES = 8, 16, 4
"""How many letters may touch, and of the likeliest first ones, with their variants, how many letters are tried."""
LETTER_LIKE, DEARER, MUCH_DEARER = 0.75, 0.02, 0.1
"""By how much likeness one letter more must pay for itself: by more where the whole is like one letter already."""
BLANK = 0.55
"""How much of a blank's width beyond the letters' own makes a blank."""
UNSURE = "\ufffd"


@dataclass(frozen=True, slots=True)
class Words:
    """What a line says, how sure that is (0 to 1), and the size of its letters in pixels."""

    text: str
    confidence: float
    size: float


@dataclass(frozen=True, slots=True)
class _Patch:
    left: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class _Told:
    glyph: Glyph
    left: int
    likeness: float


@dataclass(frozen=True, slots=True)
class _First:
    """A letter that may be the first of a patch, where it would be drawn, and how well it would explain it."""

    glyph: Glyph
    drawn: int
    likeness: float


def told(grey: Image.Image, light: bool) -> Words | None:
    """Reads a picture of one line, lighter or darker than its ground; None where there are no letters of the font."""
    scale = 1
    while grey.height // scale > TALLEST:
        scale *= 2
    ink = _ink(grey.reduce(scale), light)
    patches = list(_patches(ink))
    if not patches or (scale > 1 and len(patches) < LEAST_LARGE):
        return None
    best: Words | None = None
    for size, baseline in _sizes(patches, scale):
        words = _Reader(size, scale, baseline).read(patches)
        if words is not None and (best is None or words.confidence > best.confidence):
            best = words
        if best is not None and best.confidence > GOOD:
            break
    return best


def _ink(grey: Image.Image, light: bool) -> Image.Image:
    """255 where there is ink: cut in the middle between the ground and the letters."""
    low, high = grey.getextrema()
    middle = (low + high) / 2  # type: ignore[operator]  # one band has two numbers
    return grey.point(lambda level: 255 if (level > middle) == light else 0)


def _patches(ink: Image.Image) -> Iterator[_Patch]:
    """Runs of columns with ink; `rise` counts from the foot of the picture."""
    upright = ink.transpose(Image.Transpose.TRANSPOSE).tobytes()
    columns = bytes(255 in upright[x * ink.height : (x + 1) * ink.height] for x in range(ink.width))
    start = None
    for x, level in enumerate(columns + b"\x00"):
        if level and start is None:
            start = x
        elif not level and start is not None:
            piece = ink.crop((start, 0, x, ink.height))
            _, top, _, bottom = piece.getbbox() or (0, 0, 0, 0)
            yield _Patch(start, shape_of(piece.crop((0, top, x - start, bottom)), rise=ink.height - bottom))
            start = None


def _sizes(patches: Sequence[_Patch], scale: int) -> list[tuple[int, int]]:
    """Likely sizes with their baselines (rows above the foot of the picture), the likeliest first."""
    tallest = max(patch.shape.height for patch in patches)
    voters = sorted(patches, key=lambda patch: -patch.shape.ink)
    voters = [patch for patch in voters if patch.shape.width <= tallest * 1.5][:VOTERS] or voters[:VOTERS]
    votes: list[tuple[float, int, int]] = []
    lowest, highest = max(SMALLEST, int(tallest * 0.9)), min(LARGEST, int(tallest * 2.2)) + 2
    for size in range(lowest * scale, highest * scale, scale):
        lines: dict[int, float] = {}
        total = 0.0
        for patch in voters:
            likeness, glyph = max(
                ((_alike(patch.shape, one.shape), one) for one in glyphs(size, scale, VOTING)), key=lambda pair: pair[0]
            )
            vote = likeness**4  # letters that touch are a little like many at a size that is none of theirs
            total += vote
            baseline = patch.shape.rise - glyph.shape.rise
            lines[baseline] = lines.get(baseline, 0.0) + vote
        baseline = max(lines, key=lambda row: lines[row])
        if total >= LIKELY**4 * len(voters):
            votes.append((total, size, baseline))
    return [(size, baseline) for _, size, baseline in sorted(votes, reverse=True)[:3]]


def _alike(one: Shape, other: Shape) -> float:
    """Likeness of two shapes, box on box; 0 where the boxes differ by more than a pixel."""
    if abs(one.width - other.width) > 1 or abs(one.height - other.height) > 1:
        return 0.0
    apart = min((one.bits ^ moved).bit_count() for moved in _moved(other.bits, one.width != other.width, False))
    return 1 - apart / (one.ink + other.ink)


def _moved(bits: int, aside: bool, upright: bool) -> Iterator[int]:
    yield bits
    if aside:
        yield bits >> 1
        yield bits << 1
    if upright:
        yield bits >> STRIDE
        yield bits << STRIDE


class _Reader:
    """Reads patches at one size over one baseline."""

    def __init__(self, size: int, scale: int, baseline: int) -> None:
        self._size = size
        self._baseline = baseline
        self._blank = space(size, scale)
        self._rows = size // scale
        self._depth = self._rows // 2 + 2
        self._letters = [*glyphs(size, scale, between=True), *glyphs(size, scale, BEYOND)]
        self._standing = {id(glyph): glyph.shape.standing(self._depth) for glyph in self._letters}
        self._known: dict[tuple[int, int, int], list[tuple[int, Glyph, float]]] = {}

    def read(self, patches: Sequence[_Patch]) -> Words | None:
        told: list[_Told] = []
        for patch in patches:
            shape = patch.shape
            stood = Shape(shape.bits, shape.width, shape.height, shape.rise - self._baseline)
            for offset, glyph, likeness in self._parts(stood, 0):
                told.append(_Told(glyph, patch.left + offset, likeness))
        if not told:
            return None
        weight = sum(one.glyph.shape.ink for one in told)
        sure = sum(one.likeness * one.glyph.shape.ink for one in told) / weight
        return Words(_mended(self._spaced(told)), max(0.0, sure), self._size)

    def _parts(self, shape: Shape, deep: int) -> list[tuple[int, Glyph, float]]:
        """The letters of a patch with their first columns, counted from its own."""
        key = (shape.bits, shape.width, shape.rise)
        if key not in self._known:
            self._known[key] = self._split(shape, deep)
        return self._known[key]

    def _split(self, shape: Shape, deep: int) -> list[tuple[int, Glyph, float]]:
        bits = shape.standing(self._depth)
        whole = max(((self._whole(bits, shape, glyph), glyph) for glyph in self._letters), key=lambda pair: pair[0])
        best, worth = [(0, whole[1], whole[0])], whole[0]
        if whole[0] >= GOOD or deep >= DEEPEST or shape.width < self._rows // 4:
            return best
        firsts = sorted(
            (self._first(bits, shape, glyph, deep) for glyph in self._letters if glyph.shape.width < shape.width),
            key=lambda first: (-round(first.likeness, 1), -first.glyph.shape.ink),  # a stroke is like a part of many
        )
        dearer = DEARER if whole[0] < LETTER_LIKE else MUCH_DEARER
        tried: set[str] = set()
        for first in firsts[:FIRSTS]:
            if first.likeness < LEAST or first.glyph.letter in tried or len(tried) == TRIES:
                continue
            tried.add(first.glyph.letter)
            parts = [(0, first.glyph, first.likeness), *self._rest(bits, shape, first, deep)]
            ink = sum(one.shape.ink for _, one, _ in parts)
            told = sum(sure * one.shape.ink for _, one, sure in parts) / ink - dearer * (len(parts) - 1)
            if told > worth:
                best, worth = parts, told
        return best

    def _whole(self, bits: int, shape: Shape, glyph: Glyph) -> float:
        other = glyph.shape
        if abs(shape.width - other.width) > 1 or abs(shape.height - other.height) > 2:
            return 0.0
        if abs(shape.rise - other.rise) > 2:
            return 0.0
        apart = min((bits ^ moved).bit_count() for moved in _moved(self._standing[id(glyph)], True, True))
        return 1 - apart / (shape.ink + other.ink)

    def _first(self, bits: int, shape: Shape, glyph: Glyph, deep: int) -> _First:
        """How well a letter explains the first columns; what reaches in from the next letter counts half.

        Its first column may be gone with the letter before it, so all but the very first may stand a pixel aside.
        """
        window = bits & _columns(glyph.shape.width - 1, shape.height + self._depth * 2)

        def apart(drawn: int) -> int:
            return (drawn & ~bits).bit_count() * 2 + (window & ~drawn).bit_count()

        drawn = min(_moved(self._standing[id(glyph)], deep > 0, False), key=apart)
        return _First(glyph, drawn, 1 - apart(drawn) / (2 * glyph.shape.ink))

    def _rest(self, bits: int, shape: Shape, first: _First, deep: int) -> list[tuple[int, Glyph, float]]:
        """What is left of a patch when its first letter is taken away."""
        drawn = first.drawn
        left = bits & ~drawn
        if first.likeness < EXACT:  # its edge may lie a pixel off, and its rim is not the next letter
            left &= ~(drawn << 1 | drawn >> 1)
        left &= ~_columns(max(1, first.glyph.shape.width - 2), shape.height + self._depth * 2)
        offset = next((x for x in range(shape.width) if left & _column(x, shape.height + self._depth * 2)), None)
        if offset is None:
            return []
        moved = left << offset
        empty = (moved & -moved).bit_length() - 1
        rows = empty // STRIDE
        height = -(-moved.bit_length() // STRIDE) - rows
        rest = Shape(moved >> (rows * STRIDE), shape.width - offset, height, rows - self._depth)
        return [(offset + at, one, sure) for at, one, sure in self._parts(rest, deep + 1)]

    def _spaced(self, told: Sequence[_Told]) -> str:
        text = ""
        pen = 0.0
        for index, one in enumerate(told):
            begins = one.left - one.glyph.left
            if index and begins - pen > BLANK * self._blank:
                text += " "
            text += one.glyph.letter if one.likeness >= LEAST else UNSURE
            pen = begins + one.glyph.advance
        return text


@lru_cache(maxsize=4096)
def _columns(count: int, height: int) -> int:
    """A mask of the first columns."""
    row = ((1 << count) - 1) << (STRIDE - MARGIN - count) if count > 0 else 0
    return row * _every(height)


def _column(x: int, height: int) -> int:
    return (1 << (STRIDE - MARGIN - x - 1)) * _every(height)


@lru_cache(maxsize=512)
def _every(height: int) -> int:
    """One bit at the foot of every row."""
    return ((1 << (STRIDE * height)) - 1) // ((1 << STRIDE) - 1)


def _mended(text: str) -> str:
    """What shape alone cannot tell: two strokes are one quotation mark, and an I among small letters is an l."""
    text = text.replace("''", '"').replace("’’", "”").replace("‘‘", "“")
    letters = list(text)
    for index, letter in enumerate(letters):
        before = letters[index - 1] if index else " "
        after = letters[index + 1] if index + 1 < len(letters) else " "
        if letter == "!" and after.isalpha():
            letters[index] = "I"
        elif letter in "I|" and (before.islower() or (after.islower() and before == " " and letter == "|")):
            letters[index] = "l"
    return "".join(letters)
