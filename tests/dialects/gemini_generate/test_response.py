"""Response <-> body."""

import pytest
from google.genai import types

from interlingua.dialects import gemini_generate
from interlingua.dialects.gemini_generate.response import Frames, fold
from interlingua.spec.content import Image, Refusal, Text, Thinking, ToolCall
from interlingua.spec.errors import DecodeError
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response, Usage

NAME = "gemini_generate"
CALL = {"functionCall": {"name": "f", "args": {"a_b": 1}}, "thoughtSignature": "U0lH"}


def answer(*parts, **candidate):
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP", **candidate}]}


@pytest.mark.parametrize(
    "body",
    [
        answer({"text": "hi"}),
        answer({"text": "hi"}, index=0, avgLogprobs=-0.1, newNextYear={"a_b": None}),
        answer(CALL, finishMessage="Model generated function call(s)."),
        answer({"executableCode": {"code": "1"}}, {"codeExecutionResult": {}}, {"text": "1"}),
        answer({"text": 5}, 7, None),
        {"candidates": [{"finishReason": "SAFETY", "safetyRatings": []}]},
        {"candidates": [{"content": {}, "finishReason": "SAFETY"}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{"content": None, "finishReason": None, "index": 0}]},
        {"candidates": [{"content": {"parts": None, "role": "assistant"}}]},
        {"candidates": [{"content": {"parts": [], "new": 1}, "finishReason": {}}]},
        {"candidates": [], "modelVersion": ""},
        {"candidates": [{"index": 0}, {"index": 1, "content": {"parts": [CALL]}}]},
        {"candidates": 5, "responseId": 5},
        {"promptFeedback": {"blockReason": "OTHER"}, "usageMetadata": {"trafficType": "X"}},
        {"modelVersion": "m", "responseId": "r", "usageMetadata": {}, "createTime": "now"},
        {"totalTokens": 5},
        {"embeddings": [{"values": [0.5]}], "usageMetadata": {"promptTokenCount": 1}},
        {"error": {"code": 400, "message": "no"}},
        {},
    ],
)
def test_bodies_come_back_exactly(body):
    """Whatever is missing, empty, odd or unknown is the same again."""
    response = gemini_generate.decode_response(body)

    assert gemini_generate.encode_response(response) == body
    assert NAME in response.extra


def test_fields():
    """The envelope's names and figures, and the first candidate's parts."""
    response = gemini_generate.decode_response(
        {
            **answer({"text": "hm", "thought": True}, {"text": "hi"}, CALL),
            "usageMetadata": {"promptTokenCount": 5},
            "modelVersion": "gemini-4-argon",
            "responseId": "r1",
        },
        new_id=lambda: "01ABC",
    )

    assert (response.id, response.model) == ("r1", "gemini-4-argon")
    assert (response.reasoning, response.text) == ("hm", "hi")
    assert response.tool_calls[0].id == "call_01ABC"
    assert response.tool_calls[0].arguments == {"a_b": 1}
    assert response.finish_reason == FinishReason(reason="tool_calls", raw="STOP")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("CONTINUATION", "length"),
        ("SAFETY", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("IMAGE_PROHIBITED_CONTENT", "content_filter"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("OTHER", "other"),
        ("NEXT_YEARS_REASON", "other"),
        (1, "stop"),
        (2, "length"),
        (3, "content_filter"),
        (10, "other"),
    ],
)
def test_each_finish_reason_has_its_meaning(raw, reason):
    """Each reason has its meaning; unknown words and numbers are kept as they are.

    Field bug 95.
    """
    body = answer({"text": "x"}, finishReason=raw)
    response = gemini_generate.decode_response(body)

    assert response.finish_reason == FinishReason(reason=reason, raw=str(raw))
    assert gemini_generate.encode_response(response) == body


def test_a_length_stop_after_a_call_is_a_length_stop():
    """A call that the length limit cut after is still a `length` stop (field bug 87)."""
    response = gemini_generate.decode_response(answer(CALL, finishReason="MAX_TOKENS"))

    assert response.finish_reason.reason == "length"


def test_blocked_prompt():
    """A refused prompt has no candidate; its reason is the block's."""
    body = {"promptFeedback": {"blockReason": "MODEL_ARMOR", "blockReasonMessage": "no"}}

    response = gemini_generate.decode_response(body)

    assert response.finish_reason == FinishReason(reason="content_filter", raw="MODEL_ARMOR")
    assert response.message.content == ()


def test_thoughts_and_tool_prompts_are_counted():
    """Thoughts are output, what a tool put in is input, cached tokens are part of it.

    Field bug 66.
    """
    wire = {
        "promptTokenCount": 29,
        "toolUsePromptTokenCount": 10,
        "cachedContentTokenCount": 20,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 804,
        "totalTokenCount": 858,
    }

    usage = gemini_generate.decode_response({**answer(), "usageMetadata": wire}).usage

    assert usage == Usage(
        input_tokens=39,
        output_tokens=819,
        reasoning_tokens=804,
        cache_read_tokens=20,
        raw=wire,
    )
    assert usage.total_tokens == 858


def test_no_figure_of_thoughts_stays_none():
    """No thoughts counted is not zero thoughts (field bug 90)."""
    wire = {"promptTokenCount": 5, "totalTokenCount": 5}
    usage = gemini_generate.decode_response({**answer(), "usageMetadata": wire}).usage

    assert (usage.reasoning_tokens, usage.cache_read_tokens) == (None, None)


def test_the_providers_own_tools_are_no_calls():
    """Code that the provider ran is carried, and nobody is asked to run it (field bug 89)."""
    body = answer({"executableCode": {"code": "1"}}, {"toolCall": {"id": "t"}}, {"text": "1"})

    response = gemini_generate.decode_response(body)

    assert response.tool_calls == ()
    assert response.finish_reason.reason == "stop"


def test_answers_of_other_models():
    """Another provider's answer is one the vendor's client can read."""
    body = gemini_generate.encode_response(
        Response(
            id="msg_1",
            model="claude",
            message=Message(
                role="assistant",
                content=(
                    Thinking(text="hm", signature="s", extra={"anthropic_messages": {}}),
                    Text(text="hi"),
                    ToolCall(id="toolu_1", name="f", arguments={"a": 1}),
                    Image(data=b"\x89PNG\r\n\x1a\n"),
                    Refusal(text="no"),
                ),
            ),
            finish_reason=FinishReason(reason="tool_calls", raw="tool_use"),
            usage=Usage(input_tokens=10, output_tokens=8, reasoning_tokens=3, cache_read_tokens=4),
            extra={"anthropic_messages": {"stop_details": {}}},
        )
    )

    assert body == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "hi"},
                        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "toolu_1"}},
                        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
                        {"text": "no"},
                    ],
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 3,
            "cachedContentTokenCount": 4,
            "totalTokenCount": 18,
        },
        "modelVersion": "claude",
        "responseId": "msg_1",
    }
    parsed = types.GenerateContentResponse.model_validate(body)
    assert parsed.text == "hino"
    assert parsed.function_calls[0].id == "toolu_1"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("stop", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("cancelled", "OTHER"),
        ("error", "OTHER"),
        ("other", "OTHER"),
    ],
)
def test_foreign_finish_reasons(reason, word):
    """Another provider's reason is said with the nearest word."""
    response = Response(finish_reason=FinishReason(reason=reason, raw="theirs"))

    assert gemini_generate.encode_response(response)["candidates"][0]["finishReason"] == word


def test_changed_usage_is_written_anew():
    """Figures that were changed are not hidden by the raw ones."""
    wire = {"promptTokenCount": 5, "candidatesTokenCount": 5, "totalTokenCount": 10}
    response = Response(usage=Usage(input_tokens=7, output_tokens=5, raw=wire))

    body = gemini_generate.encode_response(response)

    assert body["usageMetadata"]["promptTokenCount"] == 7


def test_snake_case_is_read():
    """A server that writes snake case is understood."""
    response = gemini_generate.decode_response(
        {
            "candidates": [
                {
                    "content": {"parts": [{"function_call": {"name": "f", "args": {"a_b": 1}}}]},
                    "finish_reason": "STOP",
                }
            ],
            "usage_metadata": {"prompt_token_count": 5, "candidates_token_count": 2},
            "model_version": "m",
        }
    )

    assert response.tool_calls[0].arguments == {"a_b": 1}
    assert (response.model, response.usage.total_tokens) == ("m", 7)


def test_a_body_that_is_no_object():
    """It is an error, not an answer."""
    with pytest.raises(DecodeError):
        gemini_generate.decode_response([])


def test_later_values_count_unless_null():
    """A null says nothing about what is known."""
    known = {"a": 1, "b": 2}

    fold(known, {"a": 3, "b": None, "c": None})

    assert known == {"a": 3, "b": 2, "c": None}


def test_candidates_are_put_together():
    """Text goes on from frame to frame; signed parts and other kinds stay their own."""
    frames = Frames()
    signed = {"text": "", "thoughtSignature": "U0lH"}
    main = {"index": 0, "content": {"parts": [{"text": "main"}]}}

    assert frames.feed({"candidates": [main]}) == [main]
    for candidate in (
        {"index": 1, "content": {"role": "model", "parts": [{"text": "a"}]}},
        {"index": 2, "finishReason": "SAFETY"},
        {"index": 1, "content": {"parts": [{"text": "b"}, {"text": "c"}]}},
        {"index": 1, "content": {"parts": [signed]}, "finishReason": "STOP"},
        "x",
    ):
        assert frames.feed({"candidates": [candidate]}) == []

    assert frames.whole()["candidates"] == [
        {"index": 0, "content": {"parts": []}},
        "x",
        {
            "index": 1,
            "content": {"role": "model", "parts": [{"text": "ab"}, {"text": "c"}, signed]},
            "finishReason": "STOP",
        },
        {"index": 2, "finishReason": "SAFETY"},
    ]


def test_odd_frames_take_nothing_away():
    """A content or figures that are none leave what has come before."""
    frames = Frames()
    frames.feed({"candidates": [{}, {"content": {"parts": [{"text": "a"}]}}], "usageMetadata": {}})
    frames.feed({"candidates": [{"index": 1, "content": "x"}], "usageMetadata": {"a": 1}})
    frames.feed({"candidates": 5, "usageMetadata": 5})

    assert frames.whole() == {
        "candidates": [{}, {"index": 1, "content": {"parts": [{"text": "a"}]}}],
        "usageMetadata": {"a": 1},
    }


def test_figures_of_others_are_not_passed_on():
    """Another's own figures, should they say nothing here, are not ours."""
    usage = Usage(raw={"trafficType": "x", "total_tokens": 0})

    wire = gemini_generate.encode_response(Response(usage=usage, extra={"openai_chat": {}}))

    assert wire["usageMetadata"] == {
        "promptTokenCount": 0,
        "candidatesTokenCount": 0,
        "totalTokenCount": 0,
    }
