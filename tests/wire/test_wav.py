"""WAV headers, compared with the standard library's reader."""

import io
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.wire.wav import unsized, wav_header, wav_seconds, with_sizes, wrap_samples


def read(data):
    with wave.open(io.BytesIO(data)) as file:
        return file.getframerate(), file.getnchannels(), file.readframes(file.getnframes())


@given(st.binary(max_size=400), st.integers(1, 192_000), st.integers(1, 2))
def test_what_is_wrapped_can_be_read(samples, rate, channels):
    """The standard library reads the rate, the channels and the same samples."""
    samples = samples[: len(samples) // (2 * channels) * 2 * channels]

    assert read(wrap_samples(samples, rate, channels)) == (rate, channels, samples)


@given(st.binary(max_size=400), st.integers(1, 192_000))
def test_a_header_without_a_size_is_repaired(samples, rate):
    """So is one whose size is too large; one that is right stays."""
    samples = samples[: len(samples) // 2 * 2]
    right = wrap_samples(samples, rate)
    streamed = wav_header(0xFFFFFFFF - 36, rate) + samples

    assert with_sizes(streamed) == right
    assert with_sizes(right) is right


@given(st.binary(max_size=80))
def test_any_bytes(data):
    """Nothing else is changed, and nothing fails."""
    assert len(with_sizes(data)) == len(data)
    assert len(with_sizes(b"RIFF\xff\xff\xff\xffWAVE" + data)) == len(data) + 12
    wav_seconds(b"RIFF\xff\xff\xff\xffWAVE" + data)
    unsized(data, len(data))


@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_length(seconds):
    """Bytes of samples divided by the rate of bytes; None for anything else."""
    samples = bytes(round(seconds * 24_000) * 2)

    assert wav_seconds(wrap_samples(samples, 24_000)) == seconds
    assert wav_seconds(b"ID3") is None
