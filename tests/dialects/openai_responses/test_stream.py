"""Stream frames <-> events."""

from pathlib import Path

import pytest

from interlingua.conformance.equality import same_response
from interlingua.conformance.laws import cut_frames, decode_frames, encode_events, fold
from interlingua.dialects import get
from interlingua.spec.contracts import NEUTRAL_PROFILE

NAME = "openai_responses"
STREAMS = sorted((Path(__file__).parents[2] / "fixtures" / NAME).glob("*/stream.sse"))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.parent.name)
def test_there_and_back(path):
    """What is decoded and encoded again adds up to the same response."""
    spoken = get(NAME)
    events = decode_frames(spoken, cut_frames([path.read_bytes()]))

    again = decode_frames(spoken, encode_events(spoken, events))

    assert same_response(fold(events), fold(again)) == []


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.parent.name)
def test_frames_are_named(path):
    """Each frame has its type as its event name, as the vendor's do."""
    spoken = get(NAME)
    events = decode_frames(spoken, cut_frames([path.read_bytes()]))

    frames = encode_events(spoken, events)

    assert all(f'"type":"{frame.event}"' in frame.data for frame in frames)


def test_arguments():
    """Ids are injected, and a profile is accepted."""
    spoken = get(NAME)

    assert spoken.stream_decoder(new_id=lambda: "x", profile=NEUTRAL_PROFILE).feed
    assert spoken.stream_encoder(None).feed
