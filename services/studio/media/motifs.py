"""What is drawn into the scenes of an account: one motif each, so that accounts can be told apart at a glance."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from PIL import ImageDraw

Colour = tuple[int, int, int]
Palette = tuple[Colour, Colour, Colour]
Motif = Callable[[ImageDraw.ImageDraw, tuple[int, int], Palette, random.Random], None]


def curtains(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Hanging curtains of light in the sky."""
    width, height = size
    light = palette[2]
    for _ in range(5):
        x, phase = width * chance.uniform(0, 0.9), chance.uniform(0, 6.3)
        for step in range(26):
            left = x + step * width / 160 + math.sin(phase + step / 4) * width / 60
            top = height * (0.08 + 0.05 * math.sin(phase + step / 5))
            bottom = height * (0.42 + 0.12 * math.sin(phase * 2 + step / 3))
            draw.rectangle((left, top, left + width / 200, bottom), fill=(*light, 38))


def pines(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """A forest in front."""
    width, height = size
    for index in range(26):
        x, foot = width * chance.random(), height * chance.uniform(0.8, 0.98)
        tall = height * chance.uniform(0.16, 0.34)
        tone = palette[0] if index % 3 else palette[1]
        for tier in range(3):
            top, half = foot - tall + tier * tall * 0.22, tall * (0.12 + 0.07 * tier)
            draw.polygon([(x, top), (x - half, top + tall * 0.42), (x + half, top + tall * 0.42)], fill=(*tone, 235))


def clouds(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Heaps of cloud."""
    width, height = size
    for _ in range(6):
        x, y, scale = width * chance.random(), height * chance.uniform(0.1, 0.5), height * chance.uniform(0.05, 0.11)
        for puff in range(6):
            px = x + (puff - 3) * scale * 0.8
            radius = scale * (1.2 - abs(puff - 2.5) * 0.25)
            draw.ellipse((px - radius, y - radius, px + radius, y + radius * 0.7), fill=(*palette[2], 120))


def petals(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Flowers of many petals."""
    width, height = size
    for _ in range(7):
        x, y = width * chance.random(), height * chance.uniform(0.5, 0.95)
        reach = height * chance.uniform(0.05, 0.12)
        for petal in range(9):
            angle = petal * math.tau / 9
            px, py = x + math.cos(angle) * reach, y + math.sin(angle) * reach
            radius = reach * 0.45
            draw.ellipse((px - radius, py - radius, px + radius, py + radius), fill=(*palette[1 + petal % 2], 210))
        draw.ellipse((x - reach * 0.5, y - reach * 0.5, x + reach * 0.5, y + reach * 0.5), fill=palette[0])


def sparks(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Sparks that rise from the ground."""
    width, height = size
    for _ in range(160):
        x = width * min(max(chance.gauss(0.5, 0.22), 0), 1)
        y, radius = height * chance.random() ** 0.7, height * chance.uniform(0.002, 0.009)
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=(*palette[2], chance.randint(90, 255)))


def waves(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Long waves on water in front."""
    width, height = size
    for row in range(9):
        y, phase, reach = height * (0.62 + row * 0.045), chance.uniform(0, 6.3), height * (0.006 + row * 0.002)
        points = [(x, y + math.sin(phase + x * 18 / width) * reach) for x in range(0, width + 1, max(1, width // 48))]
        draw.line(points, fill=(*palette[1 + row % 2], 170), width=max(1, height // 160))


def floes(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Broken plates of ice on dark water."""
    width, height = size
    for _ in range(14):
        x, y = width * chance.random(), height * chance.uniform(0.55, 0.95)
        wide, flat = width * chance.uniform(0.04, 0.12), height * chance.uniform(0.015, 0.04)
        corners = [
            (x - wide, y),
            (x - wide * 0.4, y - flat),
            (x + wide * 0.7, y - flat * 0.8),
            (x + wide, y + flat * 0.3),
        ]
        draw.polygon([*corners, (x - wide * 0.2, y + flat)], fill=(*palette[2], 215))
        draw.line(
            [corners[0], (x - wide * 0.2, y + flat), corners[3]], fill=(*palette[1], 230), width=max(1, height // 180)
        )


def gusts(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Wind in the sky, as curls that run out."""
    width, height = size
    for _ in range(9):
        x, y, reach = (
            width * chance.uniform(0, 0.8),
            height * chance.uniform(0.08, 0.6),
            height * chance.uniform(0.04, 0.1),
        )
        stroke = max(2, height // 120)
        draw.line((x, y + reach, x + reach * 3, y + reach), fill=(*palette[2], 150), width=stroke)
        curl = (x + reach * 2, y - reach, x + reach * 4, y + reach)
        draw.arc(curl, 200, 90, fill=(*palette[2], 150), width=stroke)


def mists(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Layers of mist before the hills."""
    width, height = size
    for layer in range(6):
        y, phase, tall = height * (0.45 + layer * 0.09), chance.uniform(0, 6.3), height * 0.05
        points = [(x, y + math.sin(phase + x * 7 / width) * tall / 2) for x in range(0, width + 1, max(1, width // 32))]
        draw.polygon([*points, (width, y + tall), (0, y + tall)], fill=(*palette[2], 55))


def stars(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Stars with rays in the sky."""
    width, height = size
    for _ in range(22):
        x, y, reach = width * chance.random(), height * chance.uniform(0.03, 0.55), height * chance.uniform(0.012, 0.04)
        for turn in range(4):
            angle = turn * math.pi / 4
            dx, dy = math.cos(angle) * reach, math.sin(angle) * reach
            draw.line((x - dx, y - dy, x + dx, y + dy), fill=(*palette[2], 220), width=max(1, height // 240))


def reeds(draw: ImageDraw.ImageDraw, size: tuple[int, int], palette: Palette, chance: random.Random) -> None:
    """Reeds in front, bent by the wind."""
    width, height = size
    for index in range(60):
        x, tall, bend = width * chance.random(), height * chance.uniform(0.15, 0.4), width * chance.uniform(0.0, 0.03)
        tip = (x + bend, height - tall)
        draw.line((x, height, *tip), fill=(*palette[index % 2], 230), width=max(2, height // 150))
        seed = height * 0.012
        draw.ellipse((tip[0] - seed, tip[1] - seed * 3, tip[0] + seed, tip[1] + seed), fill=(*palette[1], 240))


# By the names in domain/accounts.
MOTIFS: dict[str, Motif] = {
    "curtains": curtains,
    "pines": pines,
    "clouds": clouds,
    "petals": petals,
    "sparks": sparks,
    "waves": waves,
    "floes": floes,
    "gusts": gusts,
    "mists": mists,
    "stars": stars,
    "reeds": reeds,
}
