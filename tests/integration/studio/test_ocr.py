"""OCR in the local-ocr dialect, over a real socket: the studio reads what it drew itself."""

import base64
import io

import pytest
from PIL import Image, ImageDraw, ImageFont


def page(*lines: str, size: int = 24) -> dict:
    """An image of these lines, as a request carries it."""
    picture = Image.new("RGB", (600, 40 + 40 * len(lines)), "white")
    for index, line in enumerate(lines):
        ImageDraw.Draw(picture).text((20, 20 + 40 * index), line, font=ImageFont.load_default(size=size), fill="black")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return {"base64": base64.b64encode(buffer.getvalue()).decode(), "media_type": "image/png"}


async def read(caller, image: dict, **more) -> tuple[int, dict]:
    """One request to the account that reads."""
    return await caller.call("POST", "opal", "/ocr", json={"model": "own-font", "image": image, **more})


async def test_lines_are_read_with_their_boxes(caller):
    """recognize_text: the whole text, a block for each line, a box in pixels, a confidence; charged by the page."""
    status, answer = await read(caller, page("Departures", "Platform 7: 18:40"), task="recognize_text")
    assert (status, answer["text"], answer["pages"]) == (200, "Departures\nPlatform 7: 18:40", 1)
    assert [block["kind"] for block in answer["blocks"]] == ["line", "line"]
    x, y, width, height = answer["blocks"][1]["box"]
    assert (abs(x - 20) < 5, 60 <= y <= 70, 150 < width < 300, 15 < height < 30) == (True, True, True, True)
    assert all(0.9 < block["confidence"] <= 1 for block in answer["blocks"])
    (row,) = (await caller.lab("GET", "/ledger"))["submissions"]
    assert (row["kind"], row["usage"], row["charged"]["amount"]) == ("ocr", {"pages": 1}, "0.01")


async def test_a_layout_is_read_in_blocks(caller):
    """parse_layout: lines that belong together are one paragraph."""
    _, answer = await read(caller, page("The first line", "and the second"), task="parse_layout")
    assert [(block["kind"], block["text"]) for block in answer["blocks"]] == [
        ("paragraph", "The first line\nand the second")
    ]


async def test_words_in_a_generated_picture_are_read_by_its_url(caller):
    """A picture that the studio made of a prompt with words in quotes says those words, by link."""
    body = {"model": "gpt-image-1", "prompt": 'a kiosk, "FRESH BREAD"', "size": "1024x768", "response_format": "url"}
    _, made = await caller.call("POST", "dahlia", "/images/generations", json=body)
    status, answer = await read(caller, {"url": made["data"][0]["url"]})
    assert status == 200
    lines = answer["text"].splitlines()  # strokes of the motif may read as letters between the two
    assert lines[0] == "FRESH BREAD"
    assert "dahlia · gpt-image-1" in lines


@pytest.mark.parametrize(
    "change, param, code",
    [
        ({"image": {}}, "image", "missing_parameter"),
        ({"image": {"base64": "bm8="}}, "image_url", "invalid_image"),
        ({"image": {"url": "http://127.0.0.1:1/x.png"}}, "image_url", "image_unreachable"),
        ({"task": "translate"}, "task", "invalid_value"),
        ({"model": "another"}, "model", "model_not_found"),
    ],
)
async def test_a_bad_request_names_its_parameter_and_costs_nothing(caller, change, param, code):
    """What is missing, unreadable, out of reach or unknown; nothing is accepted."""
    body = {"model": "own-font", "image": page("x y z")} | change
    status, answer = await caller.call("POST", "opal", "/ocr", json=body)
    assert (status in (400, 404), answer["error"]["param"], answer["error"]["code"]) == (True, param, code)
    assert (await caller.lab("GET", "/ledger"))["totals"]["accepted"] == 0


async def test_scripted_statuses_speak_the_dialect(caller):
    """A 429 with Retry-After, in this dialect's own envelope."""
    await caller.lab("POST", "/script", {"match": {"account": "opal"}, "then": [{"status": 429, "retry_after": 3}]})
    status, answer = await read(caller, page("x y z"))
    assert (status, answer["error"]["code"]) == (429, "rate_limit_exceeded")
