"""The laws of token counts, over every recorded answer and over figures that contradict."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua import dialects
from interlingua.conformance.laws import cut_frames, decode_frames, fold
from interlingua.spec.errors import ProviderError, StreamError
from interlingua.spec.response import Response
from interlingua.wire.json_text import dump_text
from support import corpus

CHAT, GEMINI = "openai_chat", "gemini_generate"
LIMITED = "usage_limited"
needs_corpus = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")


def answers(name):
    """The records of a dialect with their answers, whole or streamed."""
    dialect = dialects.get(name)
    for case in corpus.cases(name):
        if case.stream is not None:
            try:
                frames = cut_frames([case.stream], case.framing)
                yield case, fold(decode_frames(dialect, frames))
            except (ProviderError, StreamError):  # other laws are about these
                continue
        elif case.status < 400 and isinstance(case.response, dict):
            yield case, dialect.decode_response(case.response)


def parts_fit(response):
    """No part is larger than its whole, so that no remainder is negative."""
    usage = response.usage
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    as_messages = dialects.get("anthropic_messages").encode_response(Response(usage=usage))
    return (
        max(read, written) <= usage.input_tokens
        and (usage.reasoning_tokens or 0) <= usage.output_tokens
        and as_messages["usage"]["input_tokens"] >= 0
    )


def is_note_right(response, *parts):
    """There is a note exactly if a part was limited."""
    is_limited = any(part > response.usage.input_tokens for part in parts)
    return [w.code for w in response.warnings].count(LIMITED) == (1 if is_limited else 0)


@needs_corpus
@pytest.mark.parametrize("name", dialects.names())
def test_recorded_parts_of_usage_fit_their_whole(name):
    """In no recorded answer is a part of the usage larger than its whole."""
    assert [case.name for case, response in answers(name) if not parts_fit(response)] == []


READ = ("cached_tokens", "num_cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")


def details(usage, side, *names):
    """The first of these counts that the host reports, in the details or beside them."""
    places = (usage.get(f"{side}_tokens_details") or {}, usage)
    found = (place[name] for place in places for name in names if place.get(name) is not None)
    return next(found, 0)


@needs_corpus
def test_the_hosts_own_counts_stand_where_its_total_is_their_sum():
    """The host's own prompt and completion stand where its total is their sum."""
    wrong, seen = {}, 0
    for case, response in answers(CHAT):
        usage, raw = response.usage, response.usage.raw
        if raw is None:
            continue
        prompt, completion = raw["prompt_tokens"], raw["completion_tokens"]
        reasoning = details(raw, "completion", "reasoning_tokens")
        cached = details(raw, "prompt", *READ)
        if raw["total_tokens"] != prompt + completion:
            continue
        seen += 1
        output = completion + (reasoning if reasoning > completion else 0)
        expected = (prompt, output, min(cached, prompt))
        actual = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens or 0)
        if actual != expected or not is_note_right(response, cached):
            wrong[case.name] = (actual, expected, response.warnings)
    assert wrong == {}
    assert seen > 2000


@needs_corpus
def test_a_total_above_its_parts_is_kept_where_a_figure_explains_the_rest():
    """A total above prompt and completion is kept where a figure explains the rest."""
    totals = {
        case.name: (response.usage.total_tokens, raw["total_tokens"])
        for case, response in answers(CHAT)
        if (raw := response.usage.raw) is not None
        and raw["total_tokens"] > raw["prompt_tokens"] + raw["completion_tokens"]
        and raw.get("prompt_tokens_details")
    }

    assert len(totals) >= 4
    assert {name: pair for name, pair in totals.items() if pair[0] != pair[1]} == {}


COUNTED = [f"{name}TokenCount" for name in ("prompt", "toolUsePrompt", "candidates", "thoughts")]


@needs_corpus
def test_a_gemini_total_that_agrees_with_its_figures_is_ours():
    """Where a Gemini answer's figures agree with its total, ours is the same."""
    wrong, seen = {}, 0
    for case, response in answers(GEMINI):
        raw = response.usage.raw
        if raw and sum(raw.get(name) or 0 for name in COUNTED) == raw.get("totalTokenCount"):
            seen += 1
            if response.usage.total_tokens != raw["totalTokenCount"]:
                wrong[case.name] = raw
    assert wrong == {}
    assert seen > 800


def chat_answer(usage, *, stream):
    """A Chat answer with this usage."""
    message = {"role": "assistant", "content": "Hi."}
    end = {"index": 0, "finish_reason": "stop"}
    if not stream:
        body = {"choices": [{**end, "message": message}], "usage": usage}
        return dialects.get(CHAT).decode_response(body)
    chunks = [{"choices": [{**end, "delta": message}]}, {"choices": [], "usage": usage}]
    lines = [f"data: {dump_text(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"]
    return fold(decode_frames(dialects.get(CHAT), cut_frames(["".join(lines).encode()])))


def chat_usage(prompt, completion, total, **parts):
    read, written, audio = (parts.get(name) for name in ("read", "written", "audio"))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        "prompt_tokens_details": {
            "cached_tokens": read,
            "cache_write_tokens": written,
            "audio_tokens": audio,
        },
        "completion_tokens_details": {"reasoning_tokens": parts.get("reasoning")},
    }


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("wire", "expected", "notes"),
    [
        # prompt stands, also where more is cached
        (chat_usage(7, 1, 8, read=163), (7, 1, 7, None, None), 1),
        (chat_usage(7, 1, None, read=163), (7, 1, 7, None, None), 1),
        # reads and writes are compared each alone
        (chat_usage(10, 1, 11, read=8, written=9), (10, 1, 8, 9, None), 0),
        (chat_usage(10, 1, 11, read=18, written=19), (10, 1, 10, 10, None), 2),
        # reasoning above the completion is beside it
        (chat_usage(9, 2, 11, reasoning=25), (9, 27, None, None, 25), 0),
        (chat_usage(9, 2, 36, reasoning=25), (9, 27, None, None, 25), 0),
        (chat_usage(9, 30, 64, reasoning=25), (9, 55, None, None, 25), 0),
        (chat_usage(9, 30, 39, reasoning=25), (9, 30, None, None, 25), 0),
        # the total says what else is beside the prompt
        (chat_usage(11, 15, 401, read=9, audio=375), (386, 15, 9, None, None), 0),
        (chat_usage(10, 5, 115, read=100), (110, 5, 100, None, None), 0),
        (chat_usage(10, 5, 135, read=100, written=20), (130, 5, 100, 20, None), 0),
        # what it does not explain is not guessed
        (chat_usage(35, 12, 109), (35, 12, None, None, None), 0),
    ],
)
def test_each_contradiction_of_chat_figures_is_settled(stream, wire, expected, notes):
    """Each kind of contradiction, whole and streamed; `raw` keeps the figures."""
    response = chat_answer(wire, stream=stream)
    usage = response.usage

    assert (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    ) == expected
    assert usage.raw == wire
    assert [warning.code for warning in response.warnings] == [LIMITED] * notes


FIGURES = st.integers(0, 50)


@given(st.lists(FIGURES | st.none(), min_size=7, max_size=7))
def test_any_reported_figures_fit_their_whole(figures):
    """Whatever a host reports, no part is larger than its whole, in any dialect."""
    one, two, three, four, five, six, seven = figures
    bodies = {
        CHAT: {
            "choices": [{"message": {"content": "Hi."}}],
            "usage": chat_usage(
                one, two, three, read=four, written=five, audio=six, reasoning=seven
            ),
        },
        "openai_responses": {
            "output": [],
            "usage": {
                "input_tokens": one,
                "output_tokens": two,
                "total_tokens": three,
                "input_tokens_details": {"cached_tokens": four, "cache_write_tokens": five},
                "output_tokens_details": {"reasoning_tokens": seven},
            },
        },
        "anthropic_messages": {
            "type": "message",
            "role": "assistant",
            "content": [],
            "usage": {
                "input_tokens": one,
                "output_tokens": two,
                "cache_read_input_tokens": four,
                "cache_creation_input_tokens": five,
                "output_tokens_details": {"thinking_tokens": seven},
            },
        },
        GEMINI: {
            "candidates": [],
            "usageMetadata": {
                **dict(zip(COUNTED, (one, two, five, seven), strict=True)),
                "cachedContentTokenCount": four,
                "totalTokenCount": three,
            },
        },
    }
    for name, body in bodies.items():
        assert parts_fit(dialects.get(name).decode_response(body)), name


def gemini_stream(*usages):
    """A Gemini stream with a frame for each usage."""
    lines = []
    for i, usage in enumerate(usages):
        candidate = {"content": {"role": "model", "parts": [{"text": "Hi."}]}}
        if i == len(usages) - 1:
            candidate["finishReason"] = "STOP"
        frame = {"candidates": [candidate], "usageMetadata": usage}
        lines.append(f"data: {dump_text(frame)}\n\n")
    return fold(decode_frames(dialects.get(GEMINI), cut_frames(["".join(lines).encode()])))


def gemini_usage(prompt=None, answer=None, thoughts=None, tools=None, total=None, **more):
    figures = {**dict(zip(COUNTED, (prompt, tools, answer, thoughts), strict=True)), **more}
    figures["totalTokenCount"] = total
    return {name: value for name, value in figures.items() if value is not None}


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        # figures that later frames leave out are still counted
        ([(10, None, 50, None, 60), (10, 5, None, None, 65)], (10, 55)),
        # but not if that contradicts the total
        ([(10, None, 50, None, 60), (10, 5, None, None, 15)], (10, 5)),
        ([(10, 1, None, 30, 41), (40, 5, None, None, 45)], (40, 5)),
        # the last that agrees, where the last frame itself does not
        ([(10, 5, None, None, 15), (10, 7, 100, None, 17)], (10, 5)),
        # a total with tokens that no figure names does not bring back an old figure
        ([(10, None, None, None, 10), (10, 50, None, None, 65)], (10, 50)),
        # no figures agree
        ([(10, None, 50, None, 99), (10, 5, None, None, 3)], (10, 55)),
    ],
)
def test_folded_gemini_figures_give_way_to_the_last_that_agree(usages, expected):
    """Folded figures that contradict the total give way to the last that agree."""
    usage = gemini_stream(*(gemini_usage(*figures) for figures in usages)).usage

    assert (usage.input_tokens, usage.output_tokens) == expected


def test_other_usage_fields_stay():
    """Where counts give way, fields that are no counts are kept."""
    first = gemini_usage(10, None, 50, None, 60, trafficType="ON_DEMAND")
    usage = gemini_stream(first, gemini_usage(10, 5, total=15)).usage

    assert usage.raw == {**gemini_usage(10, 5, total=15), "trafficType": "ON_DEMAND"}


@needs_corpus
def test_recorded_totals_are_the_sum_of_the_answering_passes():
    """Other passes, such as a compaction, are not in the totals of the API, and count in ours."""
    seen = set()
    for case, response in answers("anthropic_messages"):
        entries = (response.usage.raw or {}).get("iterations") or ()
        seen |= {entry["type"] for entry in entries}
        for side, total in (
            ("input_tokens", response.usage.input_tokens),
            ("output_tokens", response.usage.output_tokens),
        ):
            attempts = [each[side] for each in entries if each["type"] == "message"]
            assert not entries or sum(attempts) == response.usage.raw[side], case.name
            assert total >= sum(each[side] for each in entries)
    assert seen == {"message", "compaction", "advisor_message"}
