"""The answers beside the first."""

from interlingua.dialects.gemini_generate.candidates import OtherCandidates, fold


def test_later_values_count_unless_null():
    """A null says nothing about what is known."""
    known = {"a": 1, "b": 2}

    fold(known, {"a": 3, "b": None, "c": None})

    assert known == {"a": 3, "b": 2, "c": None}


def test_candidates_are_put_together():
    """Text goes on from frame to frame; signed parts and other kinds stay their own."""
    others = OtherCandidates()
    others.feed(1, {"index": 1, "content": {"role": "model", "parts": [{"text": "a"}]}})
    others.feed(2, {"index": 2, "finishReason": "SAFETY"})
    others.feed(1, {"index": 1, "content": {"parts": [{"text": "b"}, {"text": "c"}]}})
    signed = {"text": "", "thoughtSignature": "U0lH"}
    others.feed(1, {"index": 1, "content": {"parts": [signed]}, "finishReason": "STOP"})
    others.feed_odd("x")

    assert others.finish() == [
        "x",
        {
            "index": 1,
            "content": {"role": "model", "parts": [{"text": "ab"}, {"text": "c"}, signed]},
            "finishReason": "STOP",
        },
        {"index": 2, "finishReason": "SAFETY"},
    ]
