"""What the studio answers in a conversation: short, sensible, and the same for the same words. It knows nothing.

In this order: the answer of a tool, words to repeat, counting, sums, summaries, a text of so many words, a name that
was told, a greeting, and otherwise the question with its weightiest words. JSON and the arguments of tools are made
from their schema, with words and numbers of the question where they fit (`structured.py`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

from services.studio.domain import sums, tokens
from services.studio.domain.chat import JSON_OBJECT, JSON_SCHEMA, LENGTH, TOOL_CALLS, Answer, ChatJob, Tool
from services.studio.domain.structured import instance

MOST_COUNTED = 2000
MOST_WORDS = 2000
SENTENCES_OF_A_SUMMARY = 2
PLAIN_WORDS = frozenset(
    "a about all an and any are as at be been but by can could do does for from had has have how i if in into is "
    "it its me my no not of on one or our please she he so some tell than that the their them then there these "
    "they this to us was we were what when where which who why will with would you your".split()
)
VERBS = frozenset({"get", "set", "find", "search", "make", "create", "run", "do"})
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_REPEAT = re.compile(
    r"^\s*(?:please\s+)?(?:say|repeat|echo|reply with|answer with)\b(?: exactly| only| just)?[:\s]+(.+)$", re.I | re.S
)
_COUNT = re.compile(r"\bcount (?:from (\d+) )?(?:up )?to (\d+)", re.I)
_SUMMARY = re.compile(
    r"^\s*(?:please\s+)?(?:summari[sz]e|sum up|tl;?dr|give (?:me )?a summary)\b[^:\n]*[:\n]?\s*", re.I
)
_LENGTH = re.compile(r"\b(?:in|write|about|with)?\s*(\d+) words\b", re.I)
_NAMED = re.compile(r"\bmy name is ([^\W\d_]+(?:[ -][A-Z][^\W\d_]+)*)", re.I)
_GREETING = re.compile(r"^\s*(?:hello|hi|hey|good (?:morning|day|evening|afternoon))\b[^?]*$", re.I)


def answer(job: ChatJob) -> Answer:
    """The next message of the conversation, cut where the caller's stops and bounds say."""
    tool = _called(job)
    if tool is not None:
        place = f"tools[{job.tools.index(tool)}].function.parameters"
        made = instance(tool.parameters or {"type": "object"}, job.question, reply(job), place)
        arguments = json.dumps(made, ensure_ascii=False)
        return _bounded(job, Answer(tokens.pieces(arguments), TOOL_CALLS, tool=tool.name))
    if job.format == JSON_OBJECT:
        text = json.dumps({"answer": reply(job)}, ensure_ascii=False)
    elif job.format == JSON_SCHEMA:
        made = instance(job.schema, job.question, reply(job), "response_format")
        text = json.dumps(made, ensure_ascii=False)
    else:
        text = reply(job)
    for stop in job.stop:
        text = text.partition(stop)[0]
    return _bounded(job, Answer(tokens.pieces(text)))


def _bounded(job: ChatJob, whole: Answer) -> Answer:
    room = max(0, job.max_tokens - job.reasoning_tokens)
    if len(whole.tokens) <= room:
        return whole
    return Answer(whole.tokens[:room], LENGTH, whole.tool)


def _called(job: ChatJob) -> Tool | None:
    """The tool to call: the first if one must be, else one whose name the question has; none after a tool answered."""
    if not job.tools or (job.messages and job.messages[-1].role == "tool"):
        return None
    said = set(weighty(job.question))
    for tool in job.tools:
        if set(re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", tool.name).lower())) - VERBS & said:
            return tool
    return job.tools[0] if job.must_call else None


def calls_tool(job: ChatJob) -> bool:
    """Whether the answer is the call of a tool."""
    return _called(job) is not None


def reply(job: ChatJob) -> str:
    """The message as plain words."""
    if job.messages and job.messages[-1].role == "tool":
        told = job.messages[-1]
        return f"{told.name or 'The tool'} says: {told.text.strip()}"
    question = job.question.strip()
    if not question:
        return "There is no question yet. What would you like to know?"
    earlier = [message.text for message in job.messages if message.role == "user"][:-1]
    attempts: Sequence[Callable[[], str | None]] = (
        lambda: _repeated(question),
        lambda: _counted(question),
        lambda: sums.solved(question),
        lambda: _summary(question),
        lambda: _essay(question),
        lambda: _name(question, earlier),
        lambda: "Hello. What can I do for you?" if _GREETING.match(question) else None,
    )
    for attempt in attempts:
        said = attempt()
        if said:
            return said
    return _gist(question)


def weighty(text: str, most: int = 0) -> list[str]:
    """The words that carry meaning, in small letters, the most frequent first, then as they came; 0 is all."""
    counts = Counter(word for word in (match.lower() for match in _WORD.findall(text)) if word not in PLAIN_WORDS)
    return [word for word, _ in counts.most_common(most or None)]


def _repeated(question: str) -> str | None:
    found = _REPEAT.match(question)
    if found is None:
        return None
    words = found.group(1).strip()
    return words[1:-1] if len(words) > 2 and words[0] + words[-1] in ('""', "''", "“”", "``") else words


def _counted(question: str) -> str | None:
    found = _COUNT.search(question)
    if found is None:
        return None
    first, last = int(found.group(1) or 1), int(found.group(2))
    if not first <= last < first + MOST_COUNTED:
        return f"I count upwards, and {MOST_COUNTED} numbers at most."
    return ", ".join(map(str, range(first, last + 1)))


def _summary(question: str) -> str | None:
    """The sentences with the most of the text's own frequent words, in their order."""
    found = _SUMMARY.match(question)
    if found is None:
        return None
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(question[found.end() :]) if sentence.strip()]
    if not sentences:
        return "There is no text to sum up."
    weights = Counter(word for sentence in sentences for word in weighty(sentence))

    def weight(index: int) -> tuple[float, int]:
        words = weighty(sentences[index])
        return (-sum(weights[word] for word in words) / (len(words) + 3), index)

    best = sorted(sorted(range(len(sentences)), key=weight)[:SENTENCES_OF_A_SUMMARY])
    return " ".join(sentences[index] for index in best)


def _essay(question: str) -> str | None:
    """A text of exactly as many words as were asked for, about the question's own."""
    found = _LENGTH.search(question)
    if found is None or not 1 <= int(found.group(1)) <= MOST_WORDS:
        return None
    subjects = weighty(question.replace(found.group(0), " ")) or ["it"]
    said: list[str] = []
    frames = (
        "Consider {0}.",
        "There is more to say of {0} than of {1}.",
        "Where {0} ends, {1} begins.",
        "So much for {0}.",
    )
    turn = 0
    while len(said) < int(found.group(1)):
        one, other = subjects[turn % len(subjects)], subjects[(turn + 1) % len(subjects)]
        said += frames[turn % len(frames)].format(one, other).split()
        turn += 1
    return " ".join(said[: int(found.group(1))])


def _name(question: str, earlier: Sequence[str]) -> str | None:
    if not re.search(r"\bmy name\b", question, re.I):
        return None
    for text in (question, *reversed(earlier)):
        found = _NAMED.search(text)
        if found is not None and found.group(1).lower() not in ("what", "not"):
            return f"Your name is {found.group(1)}."
    return "You have not told me your name."


def _gist(question: str) -> str:
    asked = " ".join(question.split())
    asked = asked if len(asked) <= 160 else asked[:157].rstrip() + "…"
    words = weighty(question, 3)
    about = f" It is about {_listed(words)}." if words else ""
    kind = "You ask" if question.rstrip().endswith(("?", "？")) else "You say"
    return f"{kind}: “{asked}”{about} I am the studio's own responder: I can count, calculate, repeat and sum up."


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
