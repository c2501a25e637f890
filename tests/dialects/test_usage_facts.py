"""What a price depends on: served tier, hour-long cache writes, media, the provider's figure."""

import pytest

from interlingua import dialects
from interlingua.conformance.laws import decode_frames, encode_events, fold
from interlingua.dialects.openai_shared import video, xai_video
from interlingua.dialects.openai_shared.images import read_image_usage
from interlingua.spec.response import Usage
from interlingua.streams.accumulate import events_from_response
from interlingua.wire.usage import own_cost


def chat(usage, **body):
    answer = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    whole = {"id": "c", "object": "chat.completion", "model": "m", "choices": [answer]}
    return "openai_chat", {**whole, "usage": usage, **body}


def responses(usage, **body):
    content = [{"type": "output_text", "text": "a", "annotations": []}]
    item = {"type": "message", "id": "i", "role": "assistant", "content": content}
    whole = {"id": "r", "model": "m", "status": "completed", "output": [item]}
    return "openai_responses", {**whole, "usage": usage, **body}


def messages(usage):
    whole = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
    content = [{"type": "text", "text": "a"}]
    return "anthropic_messages", {
        **whole,
        "content": content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def gemini(usage):
    candidate = {"content": {"role": "model", "parts": [{"text": "a"}]}, "finishReason": "STOP"}
    return "gemini_generate", {"candidates": [candidate], "usageMetadata": usage}


def modalities(**counts):
    return [{"modality": name.upper(), "tokenCount": count} for name, count in counts.items()]


CASES = {
    "chat tier": (
        chat({"prompt_tokens": 9, "completion_tokens": 1}, service_tier="flex"),
        {"service_tier": "flex"},
    ),
    "chat standard": (
        chat({"prompt_tokens": 9, "completion_tokens": 1}, service_tier="default"),
        {"service_tier": None},
    ),
    "chat audio": (
        chat(
            {
                "prompt_tokens": 90,
                "completion_tokens": 10,
                "prompt_tokens_details": {
                    "audio_tokens": 80,
                    "image_tokens": 5,
                    "cached_tokens": 40,
                    "cached_tokens_details": {"audio_tokens": 30},
                },
                "completion_tokens_details": {"audio_tokens": 7, "image_tokens": 2},
            }
        ),
        {
            "input_audio_tokens": 80,
            "input_image_tokens": 5,
            "cache_read_audio_tokens": 30,
            "output_audio_tokens": 7,
            "output_image_tokens": 2,
        },
    ),
    "chat zeros": (
        chat(
            {
                "prompt_tokens": 90,
                "completion_tokens": 10,
                "prompt_tokens_details": {"audio_tokens": 0},
            }
        ),
        {"input_audio_tokens": None},
    ),
    "chat cost": (
        chat({"prompt_tokens": 9, "completion_tokens": 1, "cost": 0.25}),
        {"reported_cost": 0.25},
    ),
    "chat cost that is none": (
        chat({"prompt_tokens": 9, "completion_tokens": 1, "cost": {"total": 1}}),
        {"reported_cost": None},
    ),
    "responses tier": (
        responses({"input_tokens": 9, "output_tokens": 1}, service_tier="priority"),
        {"service_tier": "priority"},
    ),
    "responses images": (
        responses(
            {
                "input_tokens": 90,
                "input_tokens_details": {"image_tokens": 50, "audio_tokens": 20},
                "output_tokens": 30,
                "output_tokens_details": {"image_tokens": 20, "audio_tokens": 5},
            }
        ),
        {
            "input_image_tokens": 50,
            "input_audio_tokens": 20,
            "output_image_tokens": 20,
            "output_audio_tokens": 5,
        },
    ),
    "responses searches": (
        responses(
            {"input_tokens": 9, "output_tokens": 1},
            tool_usage={"web_search": {"num_requests": 3}},
        ),
        {"web_searches": 3},
    ),
    "responses cost": (
        responses({"input_tokens": 9, "output_tokens": 1, "cost_in_usd_ticks": 10_306_000}),
        {"reported_cost": 0.0010306},
    ),
    "anthropic hour": (
        messages(
            {
                "input_tokens": 9,
                "output_tokens": 1,
                "cache_creation_input_tokens": 50,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 20,
                    "ephemeral_1h_input_tokens": 30,
                },
                "service_tier": "batch",
                "server_tool_use": {"web_search_requests": 2},
            }
        ),
        {
            "cache_write_tokens": 50,
            "cache_write_1h_tokens": 30,
            "service_tier": "batch",
            "web_searches": 2,
        },
    ),
    "anthropic priority is paid in advance": (
        messages({"input_tokens": 9, "output_tokens": 1, "service_tier": "priority"}),
        {"service_tier": None},
    ),
    "anthropic fast": (
        messages(
            {"input_tokens": 9, "output_tokens": 1, "service_tier": "standard", "speed": "fast"}
        ),
        {"service_tier": "fast"},
    ),
    "gemini tier": (
        gemini({"promptTokenCount": 9, "candidatesTokenCount": 1, "serviceTier": "flex"}),
        {"service_tier": "flex"},
    ),
    "gemini traffic": (
        gemini(
            {
                "promptTokenCount": 9,
                "candidatesTokenCount": 1,
                "trafficType": "ON_DEMAND_PRIORITY",
            }
        ),
        {"service_tier": "priority"},
    ),
    "gemini modalities": (
        gemini(
            {
                "promptTokenCount": 90,
                "cachedContentTokenCount": 60,
                "candidatesTokenCount": 30,
                "promptTokensDetails": modalities(text=10, audio=50, image=30),
                "cacheTokensDetails": modalities(audio=40, text=20),
                "candidatesTokensDetails": modalities(image=20, audio=4, text=6),
            }
        ),
        {
            "input_audio_tokens": 50,
            "input_image_tokens": 30,
            "cache_read_audio_tokens": 40,
            "output_image_tokens": 20,
            "output_audio_tokens": 4,
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_whole_and_streamed(name):
    """The facts are in the usage, and the same in a stream of the same answer."""
    (dialect, body), facts = CASES[name]
    spoken = dialects.get(dialect)
    whole = spoken.decode_response(body)

    assert {fact: getattr(whole.usage, fact) for fact in facts} == facts
    assert through_stream(spoken, whole).usage == whole.usage


def through_stream(spoken, whole):
    """The response, sent as a stream by the server side of its dialect."""
    return fold(decode_frames(spoken, encode_events(spoken, events_from_response(whole))))


IMPOSSIBLE = {
    "chat": chat({"prompt_tokens": -5, "completion_tokens": 1}),
    "responses": responses({"input_tokens": 3, "output_tokens": -1}),
    "anthropic": messages({"input_tokens": -5, "output_tokens": 1}),
    "gemini": gemini({"promptTokenCount": -5, "candidatesTokenCount": 1}),
    "in the details": chat(
        {
            "prompt_tokens": 5,
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": -2},
        }
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_negative_counts_are_clamped_and_flagged(name):
    """0 is counted, and a warning names the figure; whole and streamed (field bug 70)."""
    dialect, body = IMPOSSIBLE[name]
    spoken = dialects.get(dialect)
    whole = spoken.decode_response(body)
    streamed = through_stream(spoken, whole)

    for response in (whole, streamed):
        (warning,) = {warning.code: warning for warning in response.warnings}.values()
        assert warning.code == "usage_negative"
        assert warning.path.startswith("usage.")
        assert min(response.usage.input_tokens, response.usage.output_tokens) >= 0
    assert whole.usage == streamed.usage


def test_media_above_their_whole_are_limited_and_flagged():
    """More audio than input cannot be (field bug 70)."""
    dialect, body = chat(
        {
            "prompt_tokens": 10,
            "completion_tokens": 1,
            "prompt_tokens_details": {"audio_tokens": 11},
            "completion_tokens_details": {"audio_tokens": 5},
        }
    )
    response = dialects.get(dialect).decode_response(body)

    assert (response.usage.input_audio_tokens, response.usage.output_audio_tokens) == (10, 1)
    assert [warning.code for warning in response.warnings] == ["usage_limited"] * 2
    assert "only 1 output tokens" in response.warnings[1].message


def test_hour_long_writes_are_never_more_than_all_writes():
    """An hour-long part is never larger than all writes (field bug 63)."""
    dialect, body = messages(
        {
            "input_tokens": 1,
            "output_tokens": 1,
            "cache_creation_input_tokens": 5,
            "cache_creation": {"ephemeral_1h_input_tokens": 9},
        }
    )

    assert dialects.get(dialect).decode_response(body).usage.cache_write_1h_tokens == 5


def test_sums():
    """Counts add up; a tier stays if it is the same; a cost that one lacks is unknown."""
    one = Usage(input_tokens=1, cache_write_1h_tokens=2, service_tier="flex", reported_cost=0.5)
    other = Usage(input_tokens=1, service_tier="batch")

    assert (one + one).reported_cost == 1.0
    assert (one + one).service_tier == "flex"
    assert (one + other).service_tier is None
    assert (one + other).reported_cost is None
    assert (one + other).cache_write_1h_tokens == 2


@pytest.mark.parametrize("amount", [-5, -0.5, True, 10**400, 1e300, "7", None, [1], {}])
@pytest.mark.parametrize("name", ["cost", "cost_in_usd_ticks"])
@pytest.mark.parametrize(
    "read",
    [
        own_cost,
        lambda wire: read_image_usage(wire, Usage(images=1)).reported_cost,
        lambda wire: video._read_usage(wire).reported_cost,
        lambda wire: xai_video._read_usage(wire).reported_cost,
    ],
)
def test_a_cost_that_is_no_amount_is_unknown(read, name, amount):
    """A host may report anything: a negative cost would fill up a budget."""
    assert read({name: amount}) is None
    assert read({name: 10_000_000}) > 0
