"""What `POST /v1/runs` may say, read into an Order with its materials found.

What a model takes (durations, counts, sizes) is routing's to judge; here stands what every order must keep: the fields
that exist, their types, and materials that are one of `{"url"}`, `{"artifact"}` or `{"base64"}`, which may say its
`media_type`; the bytes tell what they are.
"""

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from libs.faults.fault import Fault
from libs.fetching.addresses import syntax_reason
from services.edge.domain.json_values import Reader, depth_of, pointer_to

INPUT, PRODUCTION, DATA = "/input", "/production", "/data"
MATERIAL_KEYS = frozenset({"url", "artifact", "base64"})
MATERIAL_LISTS = {
    "reference_images": "image",
    "reference_videos": "video",
    "reference_audios": "audio",
    "clips": "video",
    "narration": "audio",
}
WITH_GAPS = frozenset({"narration"})
"""Lists in which null stands for a place that has no material."""
MATERIAL_FIELDS = {"first_frame": "image", "last_frame": "image", "image": "image"}
MOST_MATERIALS = 256
DEEPEST_PRODUCTION = 30
DEGRADATIONS = ("strict", "best_effort")
PRIORITIES = ("high", "normal", "low")
BILLING_MODES = ("per_second", "per_request", "per_image", "per_token", "per_character", "per_page")
LONGEST_DEADLINE_S = 30 * 24 * 3600.0
MOST_LABELS = 64
LONGEST_LABEL = 1024
SCHEME_WITHIN = 32
"""Characters within which a URL has told its scheme; base64 has no colon."""
STAND_IN = "0" * 64
DIGEST = re.compile(r"[0-9a-f]{64}")
MEDIA_TYPE = re.compile(r"[\w.+-]{1,80}/[\w.+-]{1,80}", re.ASCII)
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)


@dataclass(frozen=True, slots=True)
class Material:
    """One material where it stands in the input. Exactly one of the three is not empty; `base64` has a media type.

    `family` is what its field takes (image, video, audio), "" where any will do. `passed_on`: the URL goes to the
    provider as it is (pictures in a chat), so it is judged and not fetched; `bare`: it stands at the pointer itself.
    """

    pointer: str
    url: str = ""
    artifact: str = ""
    base64: str = ""
    media_type: str = ""
    family: str = ""
    passed_on: bool = False
    bare: bool = False

    @property
    def url_pointer(self) -> str:
        """Where its URL stands."""
        return self.pointer if self.bare else pointer_to(self.pointer, "url")

    def content(self) -> bytes:
        """The bytes of a base64 material. Fault validation_failed if they cannot be decoded or are none."""
        try:
            content = binascii.a2b_base64(self.base64, strict_mode=True)
        except (binascii.Error, ValueError):
            content = b""
        if not content:
            raise Fault.invalid((pointer_to(self.pointer, "base64"), "must be bytes in base64 (RFC 4648), not empty"))
        return content


@dataclass(frozen=True, slots=True)
class Order:
    """A run as asked for. `deadline_s` counts from the time of asking.

    A production stands in `production`, with its materials found there; then `model` is "" and `input` empty. `budget`
    is what a single generation is paid from, "" = nothing that the caller names.
    """

    model: str
    input: dict[str, Any]
    materials: tuple[Material, ...] = ()
    degradation: str = ""
    billing_mode: str = ""
    priority: str = ""
    deadline_s: float | None = None
    callback_url: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    production: dict[str, Any] | None = None
    budget: str = ""
    wrong: tuple[tuple[str, str], ...] = ()
    """Of a production: (pointer, reason) of what is wrong already, to be told with what others know of it."""

    def deadline(self, now: datetime) -> datetime | None:
        """The time after which no result is wanted."""
        return now + timedelta(seconds=self.deadline_s) if self.deadline_s is not None else None


def read_order(body: Any) -> Order:
    """The order in a request body. Fault validation_failed names everything that is wrong, by JSON pointer."""
    reader = Reader(body)
    if reader.has("production"):
        return _production(reader)
    model = reader.text("model", required=True, longest=200)
    given = reader.object("input", required=True)
    options = reader.nested("options")
    deadline_s = options.seconds("deadline_s", 1, LONGEST_DEADLINE_S)
    timeout_s = options.seconds("timeout_s", 1, LONGEST_DEADLINE_S)
    budget = options.text("budget", longest=200)
    order = Order(
        model=model,
        input=given,
        materials=tuple(materials_in(given, reader.errors)),
        degradation=options.choice("degradation", DEGRADATIONS),
        billing_mode=options.choice("billing_mode", BILLING_MODES),
        priority=options.choice("priority", PRIORITIES),
        deadline_s=min((s for s in (deadline_s, timeout_s) if s is not None), default=None),
        callback_url=_callback(reader),
        labels=_labels(reader),
        budget=budget,
    )
    options.close()
    reader.finish()
    return order


def _production(reader: Reader) -> Order:
    """The whole document is runs' to judge; here its materials are found, wherever they stand in it."""
    document = reader.object("production", required=True)
    if depth_of(document) > DEEPEST_PRODUCTION:
        reader.refuse("production", f"must not be nested deeper than {DEEPEST_PRODUCTION} levels")
    if reader.errors:
        reader.finish()
    for name in ("model", "input", "options"):
        if reader.has(name):
            reader.refuse(name, "goes with a single request; a production says it in its nodes")
    materials = tuple(materials_within(document, PRODUCTION, reader.errors))
    callback_url, labels = _callback(reader), _labels(reader)
    reader.close()
    return Order(
        model="",
        input={},
        materials=materials if len(materials) <= MOST_MATERIALS else (),
        callback_url=callback_url,
        labels=labels,
        production=document,
        wrong=tuple(reader.errors),
    )


def materials_within(value: Any, root: str, errors: list[tuple[str, str]]) -> Iterator[Material]:
    """Objects that hold a material and nothing else. One whose text is an expression becomes one later."""
    count = 0
    for place, item in _objects(value, root):
        if not _is_material(item):
            continue
        material = _material(item, place, "", errors)
        count += 1
        if count == MOST_MATERIALS + 1:
            errors.append((root, f"must hold at most {MOST_MATERIALS} materials; upload others as artifacts"))
        if material is not None:
            yield material


def _is_material(item: Any) -> bool:
    whole = _looks(item) and item.keys() <= MATERIAL_KEYS | {"media_type"}
    return whole and not any(isinstance(text, str) and "${" in text for text in item.values())


def with_stand_ins(value: Any) -> Any:
    """A production with one and the same artifact for each material, so that it can be looked at without them."""
    if isinstance(value, dict):
        if _is_material(value):
            return {"artifact": STAND_IN}
        return {name: with_stand_ins(item) for name, item in value.items()}
    return [with_stand_ins(item) for item in value] if isinstance(value, list) else value


def _callback(reader: Reader) -> str:
    url = reader.text("callback_url", longest=8192)
    reason = syntax_reason(url) if url else None
    if reason:
        reader.refuse("callback_url", reason)
        return ""
    return url


def _labels(reader: Reader) -> dict[str, str]:
    labels = reader.object("labels")
    if len(labels) > MOST_LABELS:
        reader.refuse("labels", f"must be at most {MOST_LABELS}")
    for name, value in labels.items():
        if not name or len(name) > LONGEST_LABEL or "=" in name:
            reader.errors.append((pointer_to("/labels", name), "must have a name without '=', not empty, not too long"))
        elif not isinstance(value, str) or len(value) > LONGEST_LABEL:
            reason = f"must be a text of at most {LONGEST_LABEL} characters"
            reader.errors.append((pointer_to("/labels", name), reason))
    return labels


def materials_in(given: dict[str, Any], errors: list[tuple[str, str]]) -> Iterator[Material]:
    """Every material of the input. Known fields must hold them; elsewhere an object that looks like one is one."""
    for name in MATERIAL_LISTS:
        items = given.get(name)
        if items is not None and not (isinstance(items, list) and all(_looks(item, name) for item in items)):
            gaps = ", null where a clip has none" if name in WITH_GAPS else ""
            errors.append(
                (pointer_to("/input", name), f'must be a list of {{"url"}}, {{"artifact"}} or {{"base64"}}{gaps}')
            )
    for name in MATERIAL_FIELDS:
        if given.get(name) is not None and not _looks(given[name]):
            errors.append((pointer_to("/input", name), 'must be {"url"}, {"artifact"} or {"base64"}'))
    count = 0
    for name, value in given.items():
        pointer = pointer_to("/input", name)
        if name == "messages":
            found = _of_messages(value, pointer, errors)
        else:
            found = _of_field(value, pointer, {**MATERIAL_LISTS, **MATERIAL_FIELDS}.get(name, ""), errors)
        for material in found:
            count += 1
            if count == MOST_MATERIALS + 1:
                errors.append(("/input", f"must hold at most {MOST_MATERIALS} materials"))
            yield material


def _of_field(value: Any, pointer: str, family: str, errors: list[tuple[str, str]]) -> Iterator[Material]:
    for place, item in _objects(value, pointer):
        if _looks(item):
            material = _material(item, place, family, errors)
            if material is not None:
                yield material


def _of_messages(messages: Any, pointer: str, errors: list[tuple[str, str]]) -> Iterator[Material]:
    """What a chat shows (`image_url`, `video_url` …) or gives to read (`file_data`): `data:` URLs and bare base64 are
    content, other URLs are the provider's to fetch."""
    for place, item in _objects(messages, pointer):
        for name, shown in item.items():
            where = pointer_to(place, name)
            if name == "file_data" and isinstance(shown, str):
                if ":" not in shown[:SCHEME_WITHIN] or shown.startswith("data:"):
                    continue
                if reason := syntax_reason(shown):
                    errors.append((where, reason))
                else:
                    yield Material(where, shown, passed_on=True, bare=True)
            if not name.endswith("_url"):
                continue
            url = shown.get("url") if isinstance(shown, dict) else None
            if not isinstance(url, str):
                errors.append((pointer_to(where, "url"), "is required, as a text"))
            elif reason := syntax_reason(url):
                if not url.startswith("data:"):
                    errors.append((pointer_to(where, "url"), reason))
            else:
                yield Material(where, url, family=name.removesuffix("_url"), passed_on=True)


def _looks(value: Any, name: str = "") -> bool:
    return (value is None and name in WITH_GAPS) or (isinstance(value, dict) and bool(MATERIAL_KEYS & value.keys()))


def _objects(value: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield pointer, value
        for name, item in value.items():
            yield from _objects(item, pointer_to(pointer, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _objects(item, pointer_to(pointer, index))


def _material(value: dict[str, Any], pointer: str, family: str, errors: list[tuple[str, str]]) -> Material | None:
    reader = Reader(value, pointer, errors)
    before = len(errors)
    url = reader.text("url", longest=8192)
    artifact = reader.text("artifact", longest=64)
    base64, media_type = _encoded(reader)
    reader.close()
    if len(errors) > before:
        return None
    if sum(bool(text) for text in (url, artifact, base64)) != 1:
        reader.refuse("", "must hold exactly one of url, artifact and base64")
    elif media_type and not base64:
        reader.refuse("media_type", "goes with base64 alone")
    elif media_type and not MEDIA_TYPE.fullmatch(media_type):
        reader.refuse("media_type", "must be type/subtype")
    elif artifact and not DIGEST.fullmatch(artifact):
        reader.refuse("artifact", "must be a SHA-256 in 64 lower-case hexadecimal digits")
    elif url and syntax_reason(url):
        reader.refuse("url", syntax_reason(url) or "")
    return Material(pointer, url, artifact, base64, media_type, family) if len(errors) == before else None


def _encoded(reader: Reader) -> tuple[str, str]:
    """(base64, media type); a data: URL in the field says its type itself."""
    text = reader.text("base64", longest=1 << 31)
    media_type = reader.text("media_type", longest=161)
    found = DATA_URL.match(text)
    if found:
        return text[found.end() :], media_type or found[1]
    return text, media_type


def with_artifacts(given: dict[str, Any], digests: dict[str, str], root: str = INPUT) -> dict[str, Any]:
    """The value at `root` with the material at each pointer replaced by `{"artifact": digest}`."""
    replaced: dict[str, Any] = _replaced(given, root, digests)
    return replaced


def _replaced(value: Any, pointer: str, digests: dict[str, str]) -> Any:
    if pointer in digests:
        return {"artifact": digests[pointer]}
    if isinstance(value, dict):
        return {name: _replaced(item, pointer_to(pointer, name), digests) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, pointer_to(pointer, index), digests) for index, item in enumerate(value)]
    return value
