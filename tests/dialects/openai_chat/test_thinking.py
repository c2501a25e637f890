"""Thoughts in fields and tags."""

import pytest

from interlingua.conformance.laws import cut_frames, fold
from interlingua.dialects import openai_chat
from interlingua.dialects.openai_chat.content import (
    TagSplitter,
    decode_thinking,
    encode_thinking,
    split_tags,
)
from interlingua.dialects.openai_chat.decoder import PartAssembler
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.rows import providers
from interlingua.spec.content import Text, Thinking
from interlingua.spec.contracts import NEUTRAL_PROFILE
from interlingua.streams.accumulate import StreamAccumulator
from interlingua.wire.fields import Fields
from interlingua.wire.json_text import dump_text
from interlingua.wire.tool_calls import counting_ids

NAME = "openai_chat"
DETAILS = [
    {"type": "reasoning.summary", "summary": "So", "index": 0},
    {"type": "reasoning.encrypted", "data": "E", "index": 1},
]


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ({"reasoning_content": "a"}, "a"),
        ({"reasoning": "a"}, "a"),
        ({"reasoning_content": "a", "reasoning": "a"}, "a"),
        ({"reasoning": "a", "reasoning_details": DETAILS}, "a"),
        ({"reasoning_details": DETAILS}, "So"),
    ],
)
def test_fields_both_ways(wire, text):
    """The thought is one part, whatever fields it came in, and goes back to them."""
    fields = Fields(wire)
    thought = decode_thinking(fields)
    message = {}
    encode_thinking(thought, message)

    assert thought.text == text
    assert fields.left == {}
    assert message == wire


def test_nothing_to_read_is_no_thought():
    """Null, empty text and an empty list stay where they are."""
    wire = {"reasoning": None, "reasoning_content": "", "reasoning_details": []}
    fields = Fields(wire)

    assert decode_thinking(fields) is None
    assert fields.left == wire


def test_two_different_texts_are_not_mixed():
    """The second stays in its field."""
    fields = Fields({"reasoning_content": "a", "reasoning": "b"})

    assert decode_thinking(fields).text == "a"
    assert fields.left == {"reasoning": "b"}


def test_several_thoughts_share_the_fields():
    """They are written one after the other."""
    message = {}
    for text in ("a", "b"):
        encode_thinking(Thinking(text=text), message)

    assert message == {"reasoning_content": "ab"}


@pytest.mark.parametrize(
    ("text", "thought", "rest"),
    [
        ("<think>hm</think>\n\nYes", "hm", "\n\nYes"),
        ("\n<think>hm</think>Yes", "hm", "Yes"),
        ("<think></think>Yes", "", "Yes"),
        ("<think>hm", "hm", None),
        ("Yes <think>no</think>", None, "Yes <think>no</think>"),
        ("<thin", None, "<thin"),
        ("<think>a</thin</think>b", "a</thin", "b"),
    ],
)
def test_tags(text, thought, rest):
    """A thought at the start is told from the text, and both are given back to the byte."""
    parts = split_tags(text)

    assert [p.text for p in parts if isinstance(p, Thinking)] == (
        [] if thought is None else [thought]
    )
    assert [p.text for p in parts if isinstance(p, Text)] == ([] if rest is None else [rest])
    again = "".join(
        encode_thinking(p, {})[0]["text"] if isinstance(p, Thinking) else p.text for p in parts
    )
    assert again == text


def test_a_tag_cut_anywhere_never_leaks_into_the_text():
    """A tag that comes in pieces never leaks into the text (field bug 45)."""
    text = "<think>a < b</think> c </think>"
    for size in range(1, len(text)):
        splitter = TagSplitter()
        pieces = [
            piece
            for start in range(0, len(text), size)
            for piece in splitter.feed(text[start : start + size])
        ]
        pieces += splitter.finish()
        assert "".join(p for is_thought, p in pieces if is_thought) == "a < b"
        assert "".join(p for is_thought, p in pieces if not is_thought) == " c </think>"


def test_white_space_before_a_tag_is_cheap():
    """However many fragments of white space come first, each is looked at once."""
    splitter = TagSplitter()
    count = 200_000

    assert not any(splitter.feed(" ") for _ in range(count))
    assert splitter.feed("<think>a</think>") == [(True, "a")]
    assert splitter.tags == {"before": " " * count, "closed": True}


# Tags at the hosts.

ROWS = [row.name for row in providers().values() if row.dialect == NAME]
SPLITTERS = {"deepseek", "mistral", "moonshot", "openrouter", "xai", "zai"}
TAGGED = "\n<think>2 < 3, so é.</think>\n\nYes."


def answer(message, profile, *, cut=None):
    """An answer, whole, or streamed in two messages that are cut at this place of the text."""
    if cut is None:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
        return openai_chat.decode_response({"choices": [choice]}, profile=profile)
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{name: message[name]} for name in message if name != "content"]
    deltas += [{"content": piece} for piece in (message["content"][:cut], message["content"][cut:])]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines = [f"data: {dump_text(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
    decoder = openai_chat.stream_decoder(profile=profile)
    frames = cut_frames(bytes([byte]) for byte in "".join(lines).encode())
    return fold([event for frame in frames for event in decoder.feed(frame)])


@pytest.mark.parametrize("host", ROWS)
def test_tags_become_thinking(host):
    """On Chat rows that do not split it, whole and cut everywhere (field bug 110)."""
    profile = profile_for(NAME, "some-model", host)
    expected = (None, TAGGED) if host in SPLITTERS else ("2 < 3, so é.", "\n\nYes.")

    for cut in (None, *range(len(TAGGED) + 1)):
        response = answer({"content": TAGGED}, profile, cut=cut)
        assert (response.reasoning, response.text) == expected, cut


@pytest.mark.parametrize(
    "text",
    [
        "The <think> tag: <think>a</think>",
        "`<think>` opens it.",
        "</think> closes it.",
        "<thinking>a</thinking>",
        "<think",
        "< think>a</think>",
    ],
)
def test_a_tag_that_is_mentioned_stays_text(text):
    """Text that mentions the tag later, or another tag, stays text."""
    for cut in (None, *range(len(text) + 1)):
        response = answer({"content": text}, NEUTRAL_PROFILE, cut=cut)
        assert (response.reasoning, response.text) == (None, text), cut


@pytest.mark.parametrize("cut", [None, 0, 3, 9])
def test_tags_stay_text_after_thinking_in_a_field_of_its_own(cut):
    """After thinking in a field of its own, tags in the text are text."""
    text = "<think> is a tag."
    response = answer({"reasoning_content": "Hm.", "content": text}, NEUTRAL_PROFILE, cut=cut)

    assert (response.reasoning, response.text) == ("Hm.", text)


# Thoughts out of deltas.


def assemble(*deltas):
    """The parts that deltas add up to, and the message's other fields."""
    assembler = PartAssembler(counting_ids(), think_tags=False)
    accumulator = StreamAccumulator()
    for delta in deltas:
        for event in assembler.feed(delta):
            accumulator.feed(event)
    for event in assembler.finish():
        accumulator.feed(event)
    return accumulator.partial().message.content, assembler.extra


def text_detail(**fields):
    return {"type": "reasoning.text", "index": 0, **fields}


def test_fragments_of_reasoning_details_are_merged():
    """Text comes in fragments by index; a signature or encrypted data may come alone.

    Field bug 91.
    """
    encrypted = {"type": "reasoning.encrypted", "data": "E", "index": 0}
    parts, extra = assemble(
        {"reasoning": "h", "reasoning_details": [text_detail(text="h", format="x")]},
        {"reasoning": "m", "reasoning_details": [text_detail(text="m", format="x")]},
        {"reasoning_details": [text_detail(signature="S", format=None), encrypted]},
        {"content": "a"},
    )

    assert parts == (
        Thinking(
            text="hm",
            extra={
                NAME: {
                    "~fields": ["reasoning"],
                    "reasoning_details": [
                        text_detail(text="hm", format="x", signature="S"),
                        encrypted,
                    ],
                }
            },
        ),
        Text(text="a"),
    )
    assert extra == {}


def test_details_of_one_chunk_stay_apart():
    """A whole list that comes at once is as it is."""
    details = [text_detail(text="a"), text_detail(text="b"), "odd"]
    parts, _ = assemble({"reasoning_details": details})

    assert parts[0].text == "ab"
    assert parts[0].extra[NAME]["reasoning_details"] == details


def test_details_alone_have_the_text():
    """If no field has it."""
    parts, _ = assemble(
        {"content": "", "reasoning_details": [text_detail(text="h")]},
        {"content": "", "reasoning_details": [text_detail(text="m")]},
        {"content": "a"},
    )

    assert [part.text for part in parts] == ["hm", "a"]


def test_thought_after_text():
    """A new thought is a new part, and so is the text after it."""
    parts, _ = assemble({"content": "a"}, {"reasoning": "hm"}, {"content": "b"})

    assert [part.kind for part in parts] == ["text", "thinking", "text"]


def test_thought_and_text_in_one_delta():
    """The thought comes first; neither is lost."""
    parts, _ = assemble({"content": "a", "reasoning_content": "hm"})

    assert [part.text for part in parts] == ["hm", "a"]


def test_thoughts_as_content_parts():
    """One server streams lists of parts."""

    def thinking(*texts, **fields):
        chunks = [{"type": "text", "text": text} for text in texts]
        return {"content": [{"type": "thinking", "thinking": chunks, **fields}]}

    parts, _ = assemble(
        thinking("h"),
        thinking("m"),
        thinking(closed=True),
        {"content": [{"type": "text", "text": "a"}]},
        {"content": "b"},
    )

    assert parts == (
        Thinking(text="hm", extra={NAME: {"~sent_as": "part", "closed": True}}),
        Text(text="ab"),
    )
