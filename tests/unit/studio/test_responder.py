"""The responder: short, sensible answers, the same for the same words, in the bounds that the caller set."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.studio.domain import tokens
from services.studio.domain.chat import JSON_OBJECT, JSON_SCHEMA, ChatJob, Message, Tool
from services.studio.domain.refusals import Reason, Refusal
from services.studio.domain.responder import answer
from services.studio.domain.structured import instance
from services.studio.domain.sums import solved

STORY = (
    "The harbour wakes before the sun does. Boats leave the harbour in a line and the harbour bell rings. "
    "Someone sells bread. By noon the harbour is quiet, and the boats are far out."
)


def asked(*texts: str, **more) -> ChatJob:
    """A job whose user said these texts in turn."""
    return ChatJob("m", tuple(Message("user", text) for text in texts), 10, **{"max_tokens": 4096} | more)


@pytest.mark.parametrize(
    "question, said",
    [
        ("What is 17 + 25?", "17 + 25 = 42"),
        ("what is 12 times 12", "12 * 12 = 144"),
        ("(3.5 - 1) / 2", "(3.5 - 1) / 2 = 1.25"),
        ("1 divided by 3", "1 / 3 ≈ 0.333333"),
        ("1/0", "1/0 has no answer: nothing can be divided by zero."),
        ("Say: good morning", "good morning"),
        ('Repeat exactly "a b"', "a b"),
        ("Count from 3 to 6", "3, 4, 5, 6"),
        ("Hello there", "Hello. What can I do for you?"),
        ("", "There is no question yet. What would you like to know?"),
    ],
)
def test_a_question_has_its_answer(question, said):
    """Sums, words to repeat, counting and a greeting."""
    assert answer(asked(question)).text == said


def test_a_summary_is_made_of_the_weightiest_sentences():
    """Sentences of the text itself, in their order, fewer than it has."""
    said = answer(asked(f"Summarise this: {STORY}")).text
    assert said in (STORY[: len(said)], said)
    sentences = [sentence.strip() for sentence in said.split(". ")]
    assert all(sentence.strip(".") in STORY for sentence in sentences)
    assert "bread" not in said
    assert len(said) < len(STORY) * 0.8


def test_a_text_has_as_many_words_as_were_asked_for():
    """So that the length of an answer can be had on purpose."""
    said = answer(asked("Write 200 words about lighthouses")).text
    assert len(said.split()) == 200
    assert "lighthouses" in said


def test_what_was_told_before_is_known():
    """The conversation counts, not the last message alone."""
    assert answer(asked("My name is Ada.", "What is my name?")).text == "Your name is Ada."
    assert answer(asked("What is my name?")).text == "You have not told me your name."


def test_an_unknown_matter_is_told_back():
    """The question itself and its weightiest words."""
    said = answer(asked("Why do lighthouses blink?")).text
    assert "Why do lighthouses blink?" in said
    assert "lighthouses and blink" in said


@given(st.text(max_size=300), st.integers(1, 20))
@example("1 - 1\n", 5)
def test_any_words_have_one_answer_within_its_bound(text, most):
    """The same words, the same tokens; never more than may be said, and cut where "length" says so."""
    whole = answer(asked(text))
    cut = answer(asked(text, max_tokens=most))
    assert whole == answer(asked(text))
    assert cut.tokens == whole.tokens[:most]
    assert cut.finish == ("length" if len(whole.tokens) > most else "stop")


@given(st.text())
def test_tokens_join_to_their_text(text):
    """No letter is lost or doubled by counting."""
    assert "".join(tokens.pieces(text)) == text
    assert tokens.count(text) == len(tokens.pieces(text))


@given(st.text(alphabet="0123456789+-*/(). ^x", max_size=40))
@example("9**64*9**64*9**64*9**64*9**64*9**64/7")
@example("(99999**60)*(99999**60)*(99999**60)*(99999**60)")
@example("((9**64)**64)**64 + 1")
@example("9^64^64^64")
def test_no_sum_is_beyond_the_studio(text):
    """Whatever looks like a sum is worked out, told impossible, or left alone, in little time."""
    said = solved(text)
    assert said is None or "=" in said or "≈" in said or "no answer" in said


def test_json_is_an_object():
    """json_object: the plain answer under one name."""
    assert json.loads(answer(asked("What is 2 + 2?", format=JSON_OBJECT)).text) == {"answer": "2 + 2 = 4"}


SCHEMAS = st.recursive(
    st.one_of(
        st.sampled_from([{"type": "string"}, {"type": "boolean"}, {"type": "null"}, {"type": ["integer", "null"]}]),
        st.builds(
            lambda low, span: {"type": "integer", "minimum": low, "maximum": low + span},
            st.integers(-50, 50),
            st.integers(0, 20),
        ),
        st.builds(lambda values: {"enum": values}, st.lists(st.integers() | st.text(), min_size=1, max_size=3)),
        st.builds(
            lambda low, span: {"type": "string", "minLength": low, "maxLength": low + span},
            st.integers(0, 8),
            st.integers(0, 8),
        ),
    ),
    lambda inner: st.one_of(
        st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3)),
        st.builds(
            lambda fields: {"type": "object", "properties": fields, "required": sorted(fields)},
            st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
        ),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
    ),
    max_leaves=8,
)


def admits(schema: dict, value) -> bool:
    """A judge of its own for the words that the property uses."""
    if "anyOf" in schema:
        return any(admits(option, value) for option in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    judges = {
        "string": lambda: (
            isinstance(value, str) and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 10**6)
        ),
        "boolean": lambda: isinstance(value, bool),
        "null": lambda: value is None,
        "integer": lambda: (
            isinstance(value, int) and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        ),
        "array": lambda: (
            isinstance(value, list)
            and len(value) >= schema["minItems"]
            and all(admits(schema["items"], item) for item in value)
        ),
        "object": lambda: (
            isinstance(value, dict)
            and set(schema["required"]) <= set(value)
            and all(admits(schema["properties"][name], item) for name, item in value.items())
        ),
    }
    return any(judges[kind]() for kind in kinds)


@given(SCHEMAS, st.text(max_size=60))
def test_a_made_value_is_one_that_its_schema_admits(schema, question):
    """Types, bounds, lists, choices and fields, one within another."""
    made = json.loads(answer(asked(question, format=JSON_SCHEMA, schema=schema)).text)
    assert admits(schema, made), (schema, made)


def test_a_schema_that_refers_to_itself_ends():
    """A tree of trees stops at some depth, with every required field."""
    node = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["name", "children"],
    }
    made = instance({"$ref": "#/$defs/node", "$defs": {"node": node}}, "x", "y", "response_format")
    while made["children"]:
        made = made["children"][0]
    assert made["name"] == "y"


NODE = {"$ref": "#"}
WIDE = {f"p{index}": NODE for index in range(10)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"child": NODE}, "required": ["child"]},
        {"type": "object", "properties": WIDE, "required": list(WIDE)},
        {"allOf": [NODE] * 10},
        {"anyOf": [NODE]},
        {"type": "array", "items": NODE, "minItems": 2},
        {"type": "array", "minItems": 10**9},
        {"type": "string", "minLength": 10**12},
        {"type": "object", "required": 5},
        {"enum": 5},
        {"type": "integer", "minimum": "a"},
        {"type": "string", "format": []},
        {"anyOf": 5},
        {"type": "number", "multipleOf": 1e-320},
    ],
    ids=str,
)
def test_a_schema_that_nobody_can_fill_is_refused(schema):
    """One without an end, beyond reason or with a keyword of the wrong type, named as the provider names it."""
    with pytest.raises(Refusal) as caught:
        answer(asked("x", format=JSON_SCHEMA, schema=schema))
    refused = caught.value
    assert (refused.reason, refused.param, refused.code) == (
        Reason.PARAMETER_INVALID, "response_format", "invalid_json_schema",
    )  # fmt: skip
    tool = Tool("f", schema)
    with pytest.raises(Refusal) as caught:
        answer(asked("call f", tools=(tool,), must_call=True))
    assert caught.value.param == "tools[0].function.parameters"


def test_a_wide_schema_that_may_end_ends():
    """Optional parts are left out once there is enough; what must be is there."""
    made = instance({"type": "object", "properties": WIDE}, "x", "y", "response_format")
    assert made.keys() == WIDE.keys()


@pytest.mark.parametrize(
    "question, must, called",
    [
        ("What is the weather in Oslo?", False, "get_weather"),
        ("What is 2 + 2?", False, ""),
        ("What is 2 + 2?", True, "get_weather"),
    ],
)
def test_a_tool_is_called_when_its_name_is_meant_or_it_must_be(question, must, called):
    """By the words of its name, or by force."""
    tools = (Tool("get_weather", {"type": "object", "properties": {"city": {"type": "string"}}}),)
    said = answer(asked(question, tools=tools, must_call=must))
    assert said.tool == called
    assert said.finish == ("tool_calls" if called else "stop")
    assert not called or set(json.loads(said.text)) == {"city"}
