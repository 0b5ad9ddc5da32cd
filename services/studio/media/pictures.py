"""Pictures with Pillow: a scene from a prompt in the account's colours, and the badge that names its maker."""

from __future__ import annotations

import hashlib
import io
import math
import random
import re
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageColor, ImageDraw, ImageFont, ImageOps

from services.studio.domain.accounts import Style
from services.studio.domain.jobs import ImageJob
from services.studio.media.motifs import MOTIFS

Colour = tuple[int, int, int]
MOST_SIGNS, MOST_LETTERS = 4, 40
_QUOTED = re.compile(r"[\"“]([^\"“”]+)[\"”]")


def scene(prompt: str, seed: int, size: tuple[int, int], style: Style) -> Image.Image:
    """A landscape for this prompt. The same prompt, seed, size and style give the same picture."""
    digest = hashlib.sha256(f"{prompt}|{seed}|{style.motif}".encode()).digest()
    chance = random.Random(digest)
    dark, middle, light = colours(style)
    picture = _sky(size, dark, middle, light, chance.uniform(0.35, 0.65))
    draw = ImageDraw.Draw(picture, "RGBA")
    width, height = size
    radius = height * chance.uniform(0.07, 0.14)
    x, y = width * chance.uniform(0.15, 0.85), height * chance.uniform(0.15, 0.4)
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(*light, 230))
    for layer in range(3):
        _hill(draw, size, blend(middle, dark, 0.35 + layer * 0.3), 0.62 + layer * 0.11, chance)
    MOTIFS[style.motif](draw, size, (dark, middle, light), chance)
    return picture


def badge(width: int, text: str, style: Style, caption: str = "") -> Image.Image:
    """The strip for the foot of a picture: who made it on the left, the prompt's beginning on the right.

    The font that ships with Pillow is Latin: letters that it does not have are left out of the caption.
    """
    caption = " ".join("".join(letter if letter < "\u0250" else " " for letter in caption).split())
    dark, middle, light = colours(style)
    height = max(24, width // 24)
    strip = Image.new("RGB", (width, height), blend(dark, (0, 0, 0), 0.35))
    draw = ImageDraw.Draw(strip)
    draw.rectangle((0, 0, width, max(1, height // 12)), fill=middle)
    font = ImageFont.load_default(size=max(10, int(height * 0.58)))
    pad = height // 3
    draw.text((pad, height / 2), text, font=font, fill=light, anchor="lm")
    room = width - draw.textlength(text, font=font) - 4 * pad
    shown = _fitting(caption, room, lambda words: draw.textlength(words, font=font))
    draw.text((width - pad, height / 2), shown, font=font, fill=blend(light, middle, 0.3), anchor="rm")
    return strip


def _fitting(caption: str, room: float, length: Callable[[str], float]) -> str:
    """The caption, or as much of its beginning as there is room for. Found by halving: a prompt may be a book."""
    caption = caption[: max(0, int(room))]  # no letter is narrower than a pixel
    if length(caption) <= room:
        return caption
    most = bisect_right(range(len(caption) - 1), room, key=lambda kept: length(caption[:kept].rstrip() + "…")) - 1
    return caption[:most].rstrip() + "…" if most > 1 else ""


def signed(picture: Image.Image, text: str, style: Style, caption: str = "") -> Image.Image:
    """The picture with the badge over its foot and a frame in the account's colour."""
    strip = badge(picture.width, text, style, caption)
    picture.paste(strip, (0, picture.height - strip.height))
    frame = max(2, picture.width // 160)
    ImageDraw.Draw(picture).rectangle(
        (0, 0, picture.width - 1, picture.height - 1), outline=colours(style)[1], width=frame
    )
    return picture


def still(path: Path, size: tuple[int, int]) -> Image.Image:
    """A given picture cut to `size`."""
    with Image.open(path) as picture:
        return ImageOps.fit(picture.convert("RGB"), size, Image.Resampling.BILINEAR)


def words_in(prompt: str) -> list[str]:
    """What the prompt puts in double quotes: words that are to stand in the picture, as far as the font has them."""
    quoted = (match.group(1) for match in _QUOTED.finditer(prompt))
    shown = (" ".join("".join(letter if letter < "\u0250" else " " for letter in words).split()) for words in quoted)
    return [words[:MOST_LETTERS] for words in shown if words][:MOST_SIGNS]


def lettered(picture: Image.Image, texts: list[str], style: Style) -> Image.Image:
    """The picture with a sign for each text, one under the other in its upper half."""
    dark, _, light = colours(style)
    draw = ImageDraw.Draw(picture)
    top = picture.height * 0.12
    for words in texts:
        size = max(12, min(picture.height // 12, int(picture.width * 1.4 / (len(words) + 4))))
        font = ImageFont.load_default(size=size)
        wide = draw.textlength(words, font=font)
        left = (picture.width - wide) // 2
        draw.rectangle((left - size, top, left + wide + size, top + size * 2), fill=light, outline=dark, width=2)
        draw.text((left, top + size), words, font=font, fill=dark, anchor="lm")
        top += size * 2.5
    return picture


def referenced(scenery: Image.Image, references: list[Path]) -> Image.Image:
    """The scene with the reference pictures shown in it, so that a person sees that they were used."""
    shown = references[:4]
    side = scenery.height // 3
    for index, path in enumerate(shown):
        inset = ImageOps.expand(still(path, (side, side)), border=max(2, side // 40), fill="white")
        scenery.paste(inset, (side // 6 + index * (inset.width + side // 8), side // 6))
    return scenery


def made(job: ImageJob, seed: int, references: list[Path], style: Style, signature: str) -> bytes:
    """One picture of a job, signed, as bytes of the asked encoding."""
    picture = scene(job.prompt, seed, (job.width, job.height), style)
    if references:
        picture = referenced(picture, references)
    picture = lettered(picture, words_in(job.prompt), style)
    return encoded(signed(picture, signature, style, job.prompt), job.encoding)


def encoded(picture: Image.Image, encoding: str) -> bytes:
    """The bytes of a picture as png, jpeg or webp; quick rather than small."""
    buffer = io.BytesIO()
    options = {"png": {"compress_level": 1}, "jpeg": {"quality": 85}, "webp": {"quality": 80, "method": 0}}[encoding]
    picture.save(buffer, encoding.upper(), **options)
    return buffer.getvalue()


def colours(style: Style) -> tuple[Colour, Colour, Colour]:
    """Dark, middle and light of a style as RGB."""
    dark, middle, light = (ImageColor.getrgb(colour)[:3] for colour in style.palette)
    return dark, middle, light


def blend(one: Colour, other: Colour, share: float) -> Colour:
    """`one` with `share` of `other`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _sky(size: tuple[int, int], dark: Colour, middle: Colour, light: Colour, midpoint: float) -> Image.Image:
    gradient = Image.linear_gradient("L").resize(size, Image.Resampling.BILINEAR)
    return ImageOps.colorize(gradient, dark, blend(light, middle, 0.35), mid=middle, midpoint=round(midpoint * 255))


def _hill(draw: ImageDraw.ImageDraw, size: tuple[int, int], colour: Colour, base: float, chance: random.Random) -> None:
    width, height = size
    phase, waves, swing = chance.uniform(0, 6.3), chance.uniform(0.8, 2.2), chance.uniform(0.03, 0.08)
    steps = 48
    line = [
        (
            width * step / steps,
            height
            * (
                base
                + swing * math.sin(phase + waves * 6.3 * step / steps)
                + swing / 3 * math.sin(3 * phase + waves * 17 * step / steps)
            ),
        )
        for step in range(steps + 1)
    ]
    draw.polygon([(0, height), *line, (width, height)], fill=colour)
