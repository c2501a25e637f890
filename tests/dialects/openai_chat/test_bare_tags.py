"""Thinking tags of which one is missing, or that a stream cuts; and text after tool calls."""

import json

import pytest

from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.dialects import openai_chat
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.spec.contracts import Frame
from interlingua.spec.events import TextDelta
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def chunk(**delta):
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta}]}


def end(reason="stop"):
    return {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def events_of(*chunks):
    text = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
    return decode_frames(openai_chat, cut_frames([text.encode()]))


def whole(content, *calls):
    message = {"role": "assistant", "content": content}
    message |= {"tool_calls": list(calls)} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return openai_chat.decode_response({"id": "x", "model": "m", "choices": [choice]})


def streamed(content, *calls):
    pieces = [content[i : i + 3] for i in range(0, len(content), 3)]
    numbered = [{"index": i, **call} for i, call in enumerate(calls)]
    return fold(
        events_of(
            *(chunk(content=piece) for piece in pieces),
            *(chunk(tool_calls=[call]) for call in numbered),
            end(),
        )
    )


@pytest.fixture(params=[whole, streamed])
def answer(request):
    """Makes the response of a content and tool calls, from a whole body or from a stream."""
    return request.param


@pytest.mark.parametrize("calls", [(), (CALL,)], ids=["text", "call"])
@pytest.mark.parametrize(
    ("content", "thinking", "text"),
    [
        ("Hm.</think>\n\nYes.", "Hm.", "\n\nYes."),
        ("Hm.\n</think>\nYes.", "Hm.\n", "\nYes."),
        ("Hm.</think>", "Hm.", ""),
        ("\n</think>\n\nYes.", "\n", "\n\nYes."),
        ("<think>", "", ""),
        ("<think>Hm.", "Hm.", ""),
    ],
)
def test_thinking_with_one_tag_is_split(answer, content, thinking, text, calls):
    """Some templates write the opening tag themselves; a cut stream has no closing one."""
    response = answer(content, *calls)
    parts = response.message.content

    assert isinstance(parts[0], Thinking)
    assert (response.reasoning or "", response.text) == (thinking, text)
    assert [type(part) for part in parts[1:]] == [
        *([Text] if text else []),
        *[ToolCall for _ in calls],
    ]
    message = openai_chat.encode_response(response)["choices"][0]["message"]
    assert message["content"] == content


@pytest.mark.parametrize(
    "content",
    [
        "Close it with `</think>` at the end.",
        "Write </think>.",
        "a <think>b</think>\n\nc",
        "</thin",
    ],
)
def test_a_tag_that_a_text_mentions_stays_text(answer, content):
    """Only a tag that ends its line ends thinking."""
    assert [part.text for part in answer(content).message.content] == [content]


def test_deltas_before_a_closing_tag_are_text():
    """What was shown cannot be taken back; the response at the end has it as thinking."""
    events = events_of(chunk(content="Hm."), chunk(content="</think>\n\nYes."), end())
    shown = [event.delta for event in events if isinstance(event, TextDelta)]

    assert "".join(shown) == "Hm.</think>\n\nYes."
    assert events[-1].response.reasoning == "Hm."
    frames = encode_events(openai_chat, events)
    assert fold(decode_frames(openai_chat, frames)).reasoning == "Hm."


def test_text_after_a_tool_call_is_before_it_in_the_message():
    """`tool_calls` is a field beside the content, so its place in the stream says nothing."""
    call = {"index": 0, **CALL}
    response = fold(events_of(chunk(tool_calls=[call]), chunk(content="I look."), end()))
    history = (Message.user("?"), response.message, Message.tool_result("c1", "ok"))
    wire = openai_chat.encode_request(Request(model="m", messages=history))

    assert [type(part) for part in response.message.content] == [Text, ToolCall]
    assert wire.warnings == ()


def test_an_answer_cut_at_its_tag_is_sent_back_as_it_came(answer):
    """No field is added that the host did not send."""
    response = answer("<think>", CALL)
    history = (Message.user("?"), response.message, Message.tool_result("c1", "ok"))
    profile = profile_for("openai_chat", "m", "vllm")
    wire = openai_chat.encode_request(Request(model="m", messages=history), profile)

    assert wire.body["messages"][1] == {
        "role": "assistant",
        "content": "<think>",
        "tool_calls": [CALL],
    }
    assert wire.warnings == ()


def test_a_host_that_splits_thinking_itself_is_not_searched():
    """Its row says so."""
    profile = profile_for("openai_chat", "gpt-5.2", "openai")
    decoder = openai_chat.stream_decoder(profile=profile)
    frames = [*map(json.dumps, (chunk(content="Hm.</think>\n\nYes."), end())), "[DONE]"]
    events = [event for data in frames for event in decoder.feed(Frame(data=data))]

    assert fold(events).text == "Hm.</think>\n\nYes."
