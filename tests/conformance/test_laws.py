"""Each law fails on a dialect that breaks it: a law that cannot fail proves nothing."""

import inspect
import json
from types import SimpleNamespace

import msgspec
import pytest

from interlingua import dialects
from interlingua.conformance import laws
from interlingua.conformance.laws import (
    LAWS,
    Case,
    chunking_never_shows,
    cut_frames,
    cut_is_an_error,
    encoding_is_pure,
    errors_always_decode,
    grammar_holds,
    read_cases,
    round_trip,
    stream_equals_whole,
    stream_round_trip,
    unknown_survives,
)
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ProviderError
from support import corpus

GOOD = dialects.get("anthropic_messages")
NAMES = [
    "FACTS",
    "NAME",
    "encode_request",
    "decode_request",
    "encode_response",
    "decode_response",
    "stream_decoder",
    "stream_encoder",
    "decode_error",
    "encode_error",
]
CASES = {case.name: case for case in read_cases(corpus.FIXTURES / "anthropic_messages")}


def broken(**changes):
    """The good dialect with some of its functions replaced."""
    return SimpleNamespace(**{**{name: getattr(GOOD, name) for name in NAMES}, **changes})


class Decoder:
    """A decoder with one flaw."""

    def __init__(self, change=None, *, forgiving=False):
        self._inner = GOOD.stream_decoder()
        self._change = change or (lambda events: events)
        self._forgiving = forgiving

    def feed(self, frame):
        return self._change(self._inner.feed(frame))

    def finish(self):
        return [] if self._forgiving else self._inner.finish()


def test_the_good_one_passes():
    """The dialect these are made from keeps every law."""
    assert all(law(GOOD, case) == [] for law in LAWS.values() for case in CASES.values())


def test_laws_are_silent_on_cases_without_their_matter():
    """A case with nothing in it breaks nothing."""
    assert all(law(GOOD, Case(name="empty")) == [] for law in LAWS.values())


def test_round_trip_notices_a_lost_field():
    """Law 3."""

    def forgetful(call):
        return GOOD.decode_request(
            WireCall(body={k: v for k, v in call.body.items() if k != "service_tier"})
        )

    assert round_trip(broken(decode_request=forgetful), CASES["text"]) == [
        "request: $.service_tier: 'auto' is missing on the right"
    ]


def test_round_trip_notices_a_changed_answer():
    """Law 3, responses."""

    def shouting(response):
        return json.loads(json.dumps(GOOD.encode_response(response)).replace("hi", "HI"))

    assert "content" in round_trip(broken(encode_response=shouting), CASES["text"])[0]


def drop_deltas(events):
    return [event for event in events if event.type != "text_delta"]


def shorten_text(events):
    return [
        msgspec.structs.replace(event, part=msgspec.structs.replace(event.part, text="h"))
        if event.type == "text_end"
        else event
        for event in events
    ]


def test_stream_laws_notice_lost_text():
    """Laws 2 and 3 for streams."""
    streams = iter(range(100))

    def every_second():
        return Decoder(shorten_text if next(streams) % 2 else None)

    assert stream_round_trip(broken(stream_decoder=every_second), CASES["text"]) != []
    assert stream_equals_whole(broken(stream_decoder=lambda: Decoder(shorten_text)), CASES["text"])


def test_grammar_notices_a_missing_end():
    """Law 8."""

    def endless(events):
        return [event for event in events if event.type != "text_end"]

    assert grammar_holds(broken(stream_decoder=lambda: Decoder(endless)), CASES["text"])


def test_cut_notices_a_short_success():
    """Law 5."""
    forgiving = broken(stream_decoder=lambda: Decoder(forgiving=True))

    assert "short success" in cut_is_an_error(forgiving, CASES["text"])[0]


def test_chunking_notices_a_decoder_with_a_memory():
    """Law 1: frames that decode differently the second time."""
    count = iter(range(100))

    def moody():
        return Decoder(drop_deltas if next(count) else None)

    assert chunking_never_shows(broken(stream_decoder=moody), CASES["text"]) == [
        "one byte at a time differs"
    ]


def test_chunking_is_cut_where_it_is_told(monkeypatch):
    """The chunks are the stream, cut at the given places, or after every byte."""
    seen = []

    def record(chunks, framing="sse"):
        seen.append(list(chunks))
        return cut_frames(seen[-1], framing)

    monkeypatch.setattr(laws, "cut_frames", record)
    case = CASES["text"]
    assert chunking_never_shows(GOOD, case, [7, 3]) == []
    assert chunking_never_shows(GOOD, case) == []

    assert [case.stream[:3], case.stream[3:7], case.stream[7:]] in seen
    assert [bytes([byte]) for byte in case.stream] in seen


def test_chunking_notices_a_reader_that_loses_what_is_cut(monkeypatch):
    """Law 1: only the first chunk is read."""
    monkeypatch.setattr(
        laws, "cut_frames", lambda chunks, framing="sse": cut_frames([next(iter(chunks))], framing)
    )

    assert chunking_never_shows(GOOD, CASES["text"], [3]) != []


def test_unknown_fields_are_missed():
    """Law 6."""

    def tidy(call):
        body = json.loads(json.dumps(call.body))
        body.pop("x_not_yet_invented", None)
        return GOOD.decode_request(WireCall(body=body))

    assert unknown_survives(broken(decode_request=tidy), CASES["text"]) != []


def test_errors_of_the_wrong_status():
    """Law 7."""
    vague = broken(decode_error=lambda *_: ProviderError("?"))

    assert errors_always_decode(vague, CASES["text"]) != []


def test_impure_encoding():
    """Law 10: an encoder that counts its calls, or a decoder that eats its input."""
    calls = iter(range(100))

    def counting(request, *, stream):
        body = {**GOOD.encode_request(request).body, "count": next(calls)}
        return WireCall(body=body, stream=stream)

    def eating(call):
        request = GOOD.decode_request(call)
        call.body.pop("service_tier", None)
        return request

    victim = WireCall(body=json.loads(json.dumps(CASES["text"].call.body)))
    assert encoding_is_pure(broken(encode_request=counting), CASES["text"]) == [
        "two encodings differ"
    ]
    assert (
        "input changed"
        in encoding_is_pure(broken(decode_request=eating), Case(name="x", call=victim))[0]
    )


@pytest.mark.parametrize("law", LAWS)
def test_laws_have_a_sentence(law):
    """Each law says what it claims."""
    assert inspect.getdoc(LAWS[law]).startswith(f"Law {law.split()[0]}")
