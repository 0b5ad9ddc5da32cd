"""How alike two pictures look: a difference hash by Pillow.

Whether each of 8x8 fields is brighter than its right and its lower neighbour makes 128 bits. Size, compression, and a
change of light as a whole leave them as they are; another composition changes half of them. Colour is not looked at,
and pictures of one tone are all alike.
"""

from pathlib import Path

from PIL import Image

from libs.materials.probing import FORMATS, Unreadable

SIDE = 8
BITS = 2 * SIDE * SIDE
NOISE = 2
"""Differences of brightness, of 255, up to which two fields count as equal."""


def fingerprint(path: Path) -> str:
    """The difference hash of a picture that can be read, as 32 hexadecimal digits. Unreadable. Blocks: decodes it."""
    try:
        with Image.open(path, formats=FORMATS) as picture:
            small = picture.convert("L").resize((SIDE + 1, SIDE + 1), Image.Resampling.BOX)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise Unreadable("is a broken picture") from error
    light = small.tobytes()
    bits = 0
    for row in range(SIDE):
        for column in range(SIDE):
            at = row * (SIDE + 1) + column
            right, below = light[at] - light[at + 1] > NOISE, light[at] - light[at + SIDE + 1] > NOISE
            bits = bits << 2 | right << 1 | below
    return f"{bits:0{BITS // 4}x}"
