"""Parts out of deltas."""

from interlingua.dialects.openai_chat.stream_parts import PartAssembler
from interlingua.spec.content import Opaque, Text, Thinking
from interlingua.wire.accumulate import StreamAccumulator
from interlingua.wire.carry import counting_ids

NAME = "openai_chat"


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


def test_field_bug_91_details_are_merged():
    """Text comes in fragments by index; a signature or encrypted data may come alone."""
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
                    "fields": ["reasoning"],
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
        Thinking(text="hm", extra={NAME: {"sent_as": "part", "closed": True}}),
        Text(text="ab"),
    )


def test_unknown_content_parts():
    """They arrive whole."""
    strange = {"type": "reference", "ids": [1]}
    parts, _ = assemble({"content": "a"}, {"content": [strange]}, {"content": "b"})

    assert parts == (Text(text="a"), Opaque(dialect=NAME, data=strange), Text(text="b"))


def test_empty_content_before_calls():
    """It is empty text, in its place; after a call it says nothing."""
    call = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    before, _ = assemble({"content": ""}, {"tool_calls": [call]}, {"content": ""})
    after, _ = assemble({"tool_calls": [call]}, {"content": ""})

    assert [part.kind for part in before] == ["text", "tool_call"]
    assert [part.kind for part in after] == ["tool_call"]


def test_other_fields_of_the_message():
    """Lists grow, objects merge, sound is joined, anything else is the last word."""
    _, extra = assemble(
        {
            "role": "assistant",
            "annotations": [1],
            "channel": "a",
            "refusal": None,
            "meta": {"a": 1},
        },
        {"role": "", "annotations": [2], "channel": "b", "refusal": None, "meta": {"b": 2}},
        {"audio": {"id": "s", "data": "aa", "transcript": "x"}},
        {"audio": {"data": "bb", "transcript": "y"}, "channel": None},
        {"content": "a", "tool_calls": None, "reasoning": ""},
    )

    assert extra == {
        "annotations": [1, 2],
        "channel": "b",
        "refusal": None,
        "meta": {"a": 1, "b": 2},
        "audio": {"id": "s", "data": "aabb", "transcript": "xy"},
        "tool_calls": None,
        "reasoning": "",
    }


def test_empty_fields_that_are_filled_later():
    """Null says nothing once there is something."""
    _, extra = assemble({"refusal": None, "reasoning": None}, {"refusal": "no", "reasoning": "hm"})

    assert extra == {}


def test_roles_of_their_own():
    """A role that is not the assistant's is kept."""
    assert assemble({"role": "model", "content": "a"})[1] == {"role": "model"}


def test_odd_calls_are_kept():
    """What is no call is carried as it is."""
    parts, _ = assemble({"tool_calls": [5, {"index": 0, "type": "mcp", "id": "x"}]})

    assert [part.data for part in parts] == [5, {"type": "mcp", "id": "x"}]
