"""The letters of the studio's own font as sets of black pixels, at every size and between two pixels.

A shape is one integer: rows of STRIDE bits, the lowest row last, so that comparing two of them is one exclusive or.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

STRIDE = 192
"""Bits of a row: more than the widest window that is compared."""
MARGIN = 8
"""Bits before the first column, so that a shape can be moved either way."""
SMALLEST, LARGEST = 9, 64
"""Sizes of letters that are compared; larger ones are made smaller first."""
PLAIN = "".join(map(chr, range(33, 127)))
BEYOND = "".join(map(chr, [*range(0xA1, 0xAD), *range(0xAE, 0x100)])) + "…–—‘’“”•€"
_HALVES = (0.0, 0.5)


@dataclass(frozen=True, slots=True)
class Shape:
    """Black pixels in their own box; `rise` is how far its lowest row stands above the baseline, below is negative."""

    bits: int
    width: int
    height: int
    rise: int

    @property
    def ink(self) -> int:
        """How many pixels are black."""
        return self.bits.bit_count()

    def standing(self, depth: int) -> int:
        """The bits with the baseline `depth` rows above the lowest one."""
        rows = depth + self.rise
        return self.bits << (rows * STRIDE) if rows >= 0 else self.bits >> (-rows * STRIDE)


@dataclass(frozen=True, slots=True)
class Glyph:
    """A letter as it is drawn: `left` is from the pen to its first column, `advance` from pen to pen, in pixels."""

    letter: str
    shape: Shape
    left: int
    advance: float


@lru_cache(maxsize=64)
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """The font that ships with Pillow."""
    return ImageFont.load_default(size=size)


@lru_cache(maxsize=512)
def glyphs(size: int, scale: int = 1, letters: str = PLAIN, *, between: bool = False) -> tuple[Glyph, ...]:
    """Every letter that the font has at this size, made smaller by `scale` as the picture was.

    `between` adds how they look half a pixel to the right or lower.
    """
    places = [(x, y) for x in _HALVES for y in _HALVES] if between else [(0.0, 0.0)]
    drawn = (_drawn(letter, size, scale, x, y) for letter in letters for x, y in places)
    return tuple(glyph for glyph in drawn if glyph is not None)


@lru_cache(maxsize=64)
def space(size: int, scale: int) -> float:
    """The width of a blank."""
    return float(font(size).getlength(" ")) / scale


def _drawn(letter: str, size: int, scale: int, x: float, y: float) -> Glyph | None:
    pen, base = -(-size // scale), -(-size * 5 // (4 * scale))
    canvas = Image.new("L", ((2 * pen + 8) * scale, (base + pen) * scale))
    place = ((pen + x) * scale, (base + y) * scale)
    ImageDraw.Draw(canvas).text(place, letter, font=font(size), fill=255, anchor="ls")
    ink = canvas.reduce(scale).point(_half)
    box = ink.getbbox()
    if box is None:
        return None
    shape = shape_of(ink.crop(box), rise=base - box[3])
    return Glyph(letter, shape, box[0] - pen, float(font(size).getlength(letter)) / scale)


def shape_of(ink: Image.Image, rise: int = 0) -> Shape:
    """The shape of a picture of black and white (255 is ink), as wide as a row at most."""
    row = Image.new("1", (STRIDE, ink.height))
    row.paste(ink.convert("1", dither=Image.Dither.NONE), (MARGIN, 0))
    return Shape(int.from_bytes(row.tobytes(), "big"), min(ink.width, STRIDE - MARGIN), ink.height, rise)


def _half(level: int) -> int:
    return 255 if level >= 128 else 0
