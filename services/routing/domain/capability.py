"""Hard capability: whether what a request needs is within what a Supply, or a Public Model, admits (SEL-2, SEL-5).

One table serves both: a Supply's `capabilities` and a model's `limits` have the same fields.

| field of the declaration | compared with | absent means |
|---|---|---|
| `inputs: {reference_images: 9}` | number of materials; a material that the mapping does not name admits 0 | no limit |
| `inputs: {clips: 64}` and no references | whether there are clips: what joins films draws nothing | no limit |
| `resolutions`, `ratios`, `sizes`, `voices`, `formats`, `tasks` | the named choice, if one was made | no limit |
| `duration_s: {min, max, lengths}` | seconds asked for; of `lengths` the longest is a limit too | no limit |
| `n_max`, `max_characters`, `max_batch`, `context_tokens`, `max_output_tokens` | an amount | no limit |
| `dimensions` | the size of vectors, one or a list | no limit |
| `features` | abilities needed; one that the list does not name is not there | no limit |
| `parameters` | sampling parameters that are set; one that the list does not name is not there | no limit |
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from libs.kernel.figures import plain
from services.routing.domain.catalog import Kind, Spec
from services.routing.domain.request_facts import REFERENCE_LISTS, Facts

CHOICES = {
    "resolution": "resolutions",
    "ratio": "ratios",
    "size": "sizes",
    "voice": "voices",
    "format": "formats",
    "task": "tasks",
}
AMOUNTS: Mapping[str, tuple[str, str, str]] = {
    # amount: (field of the declaration, field of the input, noun)
    "n": ("n_max", "n", "images"),
    "characters": ("max_characters", "text", "characters"),
    "batch": ("max_batch", "input", "texts"),
    "context_tokens": ("context_tokens", "messages", "tokens of context"),
    "bytes": ("max_bytes", "image", "bytes"),
    "output_tokens": ("max_output_tokens", "max_completion_tokens", "tokens of output"),
}
SOURCES = {"reasoning": "reasoning_effort", "json_schema": "response_format", "vision": "messages"}
"""Feature -> the field of the input that asks for it; else its own name."""
NOUNS = {
    "reference_images": "images",
    "reference_videos": "videos",
    "reference_audios": "audios",
    "narration": "narrations",
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """One need that is not met: the input's field, what it needs and what is admitted, for a person."""

    field: str
    needs: str
    admits: str

    @property
    def figures(self) -> str:
        """As written beside a dropped Supply: `needs 3 videos, admits 0`."""
        return f"needs {self.needs}, admits {self.admits}"


def misfits(declared: Spec, facts: Facts) -> list[Misfit]:
    """Every need that the declaration does not meet, in a fixed order; none = it fits."""
    if not declared:
        return []
    found: list[Misfit] = []
    if "inputs" in declared:
        if facts.counts:
            found += _inputs(declared["inputs"], facts)
        if facts.kind is Kind.VIDEO:
            found += _clips(declared["inputs"], facts)
    if facts.choices:
        found += _choices(declared, facts)
    if "duration_s" in declared:
        found += _duration(declared["duration_s"], facts)
    if facts.amounts:
        found += _amounts(declared, facts)
    if facts.features and "features" in declared:
        found += _features(declared["features"], facts)
    if facts.parameters and "parameters" in declared:
        found += _parameters(declared["parameters"], facts)
    return found


def _inputs(admitted: Mapping[str, Any], facts: Facts) -> Iterator[Misfit]:
    for name, count in facts.counts.items():
        limit = int(admitted.get(name, 0))
        if count > limit:
            yield Misfit(name, f"{count} {NOUNS.get(name, name)}", str(limit))


def _clips(admitted: Mapping[str, Any], facts: Facts) -> Iterator[Misfit]:
    if admitted.get("clips") and "clips" not in facts.counts and not any(map(admitted.get, REFERENCE_LISTS)):
        yield Misfit("clips", "a clip that is drawn", "clips to be joined alone")


def _choices(declared: Spec, facts: Facts) -> Iterator[Misfit]:
    for name, choice in facts.choices.items():
        admitted = declared.get(CHOICES[name])
        if admitted is not None and choice not in admitted:
            yield Misfit(name, f"{name} {choice}", ", ".join(map(str, admitted)) or "none")


def _duration(bounds: Mapping[str, Any], facts: Facts) -> Iterator[Misfit]:
    seconds = facts.amounts.get("duration_s")
    if seconds is None:
        return
    low, high = bounds.get("min"), bounds.get("max")
    if lengths := bounds.get("lengths"):
        high = min(lengths[-1], lengths[-1] if high is None else high)
    if (low is not None and seconds < low) or (high is not None and seconds > high):
        yield Misfit("duration_s", f"{seconds:g} s", _span(low, high))


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return f"at most {high:g} s"
    return f"{low:g}-{high:g} s" if high is not None else f"at least {low:g} s"


def _amounts(declared: Spec, facts: Facts) -> Iterator[Misfit]:
    for name, amount in facts.amounts.items():
        if name == "dimensions" and "dimensions" in declared:
            sizes = declared["dimensions"]
            offered = sizes if isinstance(sizes, (list, tuple)) else [sizes]
            if amount not in offered:
                yield Misfit("dimensions", f"{plain(amount)} dimensions", ", ".join(map(plain, offered)))
        elif name in AMOUNTS:
            field, source, noun = AMOUNTS[name]
            source = facts.output_field if name == "output_tokens" else source
            limit = declared.get(field)
            if limit is not None and amount > limit:
                yield Misfit(source, f"{plain(amount)} {noun}", plain(limit))


def _parameters(offered: Sequence[str], facts: Facts) -> Iterator[Misfit]:
    for name in facts.parameters:
        if name not in offered:
            yield Misfit(name, f"parameter {name}", ", ".join(offered) or "none")


def _features(offered: Sequence[str], facts: Facts) -> Iterator[Misfit]:
    for name in facts.features:
        if name not in offered:
            yield Misfit(SOURCES.get(name, name), f"feature {name}", ", ".join(offered) or "none")
